"""`bench/hottest.py`: which bound a kernel has, and the table of one model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def hottest(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import hottest

    return hottest


def test_the_nearer_bound_counts(hottest: object, monkeypatch: pytest.MonkeyPatch) -> None:
    here = hottest.Machine(None, 1, "fp32")
    here._peak = 100.0
    asked = []
    monkeypatch.setattr(here, "copy", lambda size: asked.append(size) or 10.0)
    kernel = {"flops": 2_000_000, "byte_flops": 0, "bytes": 1_000}
    assert here.bound(kernel) == ("compute", pytest.approx(2e-5))
    assert here.bound({"flops": 2_000, "byte_flops": 0, "bytes": 1_000_000}) == ("memory", pytest.approx(1e-4))
    assert asked == [1_000, 1_000_000]
    here._byte_peak = 400.0
    assert here.bound({**kernel, "byte_flops": 1_600_000}) == ("compute", pytest.approx(8e-6))


def test_kernels_are_ordered_by_the_time_of_a_run(hottest: object) -> None:
    here = hottest.Machine(None, 1, "fp32")
    here._peak = 1.0
    common = {"template": "loops", "nodes": ["n"], "contraction": False, "byte_flops": 0, "uneven": False}
    report = {"kernels": [
        {"name": "k0", "flops": 500, "bytes": 0, **common}, {"name": "k1", "flops": 1000, "bytes": 0, **common},
        {"name": "k2", "flops": 250, "bytes": 0, **common, "uneven": True},
        {"name": "never", "flops": 1, "bytes": 0, **common},
    ]}  # fmt: skip
    timed = {
        "k0": {"name": "k0", "calls": 4, "ns": 4000, "min_ns": 1000, "mean_ns": 1000},
        "k1": {"name": "k1", "calls": 2, "ns": 12000, "min_ns": 4000, "mean_ns": 5000},
        "k2": {"name": "k2", "calls": 4, "ns": 2000, "min_ns": 100, "mean_ns": 500},
    }
    first, second, third = hottest.records(report, timed, here, runs=2)
    assert (first["name"], first["calls"], first["share"], first["of_bound"]) == ("k1", 1, 12 / 18, pytest.approx(0.25))
    assert (second["name"], second["calls"], second["us"], second["of_bound"]) == ("k0", 2, 1.0, pytest.approx(0.5))
    assert (third["name"], third["us"], third["of_bound"]) == ("k2", 0.5, pytest.approx(0.5))  # the mean of its launches


def test_runs_add_up_to_the_least_mean(hottest: object) -> None:
    found: dict[str, dict[str, object]] = {}
    for ns, least in ((900, 200), (600, 250), (1200, 150)):
        hottest.add_run(found, {"name": "k", "calls": 3, "ns": ns, "min_ns": least})
    hottest.add_run(found, {"name": "never", "calls": 0, "ns": 0, "min_ns": 0})
    assert found["k"] == {"name": "k", "calls": 9, "ns": 2700, "min_ns": 150, "mean_ns": 200}
    assert found["never"]["calls"] == 0


def test_one_model_from_end_to_end(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"], name="product"), helper.make_node("Softmax", ["m"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", 64])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["rows", 32])],
        [numpy_helper.from_array(weight, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "small.onnx")
    command = [sys.executable, str(ROOT / "bench" / "hottest.py"), "small.onnx", "--input", "x=8x64", "--runs", "2"]
    done = subprocess.run([*command, "--json", "hot.json"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (model,) = json.loads((tmp_path / "hot.json").read_text())["models"]
    assert sorted(kernel["product"] for kernel in model["kernels"]) == [False, True]
    product = next(kernel for kernel in model["kernels"] if kernel["product"])
    assert product["nodes"] == ["product"] and product["gflops"] * product["us"] == pytest.approx(2 * 8 * 64 * 32 / 1e3)
    assert "below 60% of their bound" in done.stdout
