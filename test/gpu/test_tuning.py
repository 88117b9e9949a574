"""Tuning for GPUs from end to end, with a stand-in for the driver: everything but the times is real."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from gpu.stand_in import run_with
from onnx import helper, numpy_helper
from toolchain import needs_ptxas

from mlc.cli.compile import main
from mlc.tuning import cache, gpu_bundle

COMPILE = [sys.executable, "-m", "mlc.cli.compile"]
pytestmark = needs_ptxas


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A product with a bias, small enough for many schedules to be compiled."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in (("w", (64, 48)), ("b", 48))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "product", [value("x", 1, [70, 64])], [value("y", 1, [70, 48])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(cache.__file__).parents[2]))
    monkeypatch.delenv("MLC_TUNING_CACHE", raising=False)
    monkeypatch.setattr("mlc.tuning.gpu_candidates.MOST", {"hopper_contraction": 2, "hopper_attention": 2, "depthwise": 2})
    return tmp_path


def _options(*more: str) -> list[str]:
    return ["m.onnx", "--target", "cuda", "--precision", "bf16", *more]


def _schedules(path: Path) -> list[str]:
    """The schedules in the IR of a file."""
    return [line.split("mlc.schedule = ")[1] for line in path.read_text().splitlines() if "mlc.schedule" in line]


def test_a_bundle_is_measured_elsewhere_and_taken(model: Path, driver: Path) -> None:
    assert main(_options("-o", "m.so")) == 0  # a program that is known has kernels to measure, too
    assert main(_options("--tune-bundle", "bundle", "-o", "m.so")) == 0
    (task,) = gpu_bundle.read_tasks(Path("bundle"))
    assert len(task.schedules) == 3 and all(task.libraries) and task.target == "sm_90a"
    outcome = run_with(driver, [sys.executable, "-m", "mlc.tuning.gpu_bundle", "bundle"])
    assert outcome.code == 0, outcome.said
    assert "1/1 hopper_contraction" in outcome.printed and not [x for x in outcome.log if "BREACH" in x]
    entries = cache.read(Path("bundle") / gpu_bundle.RESULTS)
    assert list(entries) == [task.key] and entries[task.key].tried == 3
    times = json.loads((Path("bundle") / gpu_bundle.TIMES).read_text())
    assert len(times[0]["times"]) == 3
    # Another winner is what the next compilation takes; the same file gives the same bytes.
    assert main(_options("--emit", "schedule", "-o", "default.mlir")) == 0
    other = cache.Entry(**{**entries[task.key].__dict__, "schedule": task.schedules[2]})
    cache.replace(Path("tuned.json"), {task.key: other})
    for name in ("one", "two"):
        assert main(_options("--tuning-cache", "tuned.json", "-o", f"{name}.so")) == 0
    assert Path("one.so").read_bytes() == Path("two.so").read_bytes() != Path("m.so").read_bytes()
    assert main(_options("--tuning-cache", "tuned.json", "--emit", "schedule", "-o", "tuned.mlir")) == 0
    assert _schedules(Path("tuned.mlir")) != _schedules(Path("default.mlir"))
    assert 'mlc.tuning = "' in Path("tuned.mlir").read_text()


def test_tune_where_the_gpu_is(model: Path, driver: Path) -> None:
    """Measured once, remembered, and used by the compilation that measured."""
    command = [*COMPILE, *_options("--tune=60", "--tuning-cache", "t.json", "-o", "m.so")]
    outcome = run_with(driver, command)
    assert outcome.code == 0, outcome.said
    assert "tune       1/1 hopper_contraction" in outcome.said and not [x for x in outcome.log if "BREACH" in x]
    assert len(cache.read(Path("t.json"))) == 1
    again = run_with(driver, command)
    assert again.code == 0 and "tune       1/" not in again.said and not again.log


def test_what_cannot_be_measured(model: Path, driver: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(_options("--tune", "-o", "m.so")) == 1
    assert "there is no NVIDIA driver (libcuda.so.1) on this machine" in capsys.readouterr().err
    assert main(["m.onnx", "--tune-bundle", "bundle", "-o", "m.so"]) == 2
    assert "kernels of target 'cpu' are measured here" in capsys.readouterr().err
    assert main(_options("--tune", "--tune-bundle", "bundle", "-o", "m.so")) == 2
    Path("bundle").mkdir()
    outcome = run_with(driver, [sys.executable, "-m", "mlc.tuning.gpu_bundle", "bundle"])
    assert outcome.code == 1 and "'bundle' is no bundle of kernels to measure" in outcome.said
    old = run_with(driver, [*COMPILE, *_options("--tune", "-o", "m.so")], FAKE_CUDA_CAPABILITY="8.0")
    assert old.code == 1 and "compute capability 8.0, on which code for sm_90a cannot be measured" in old.said
