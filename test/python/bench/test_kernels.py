"""`bench/kernels.py`: its models, what they need at least, and one kernel from end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def kernel_cases(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import kernel_cases

    return kernel_cases


@pytest.fixture
def kernel_lists(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import kernel_lists

    return kernel_lists


def test_odd_sizes_are_those_of_the_date(kernel_lists: object) -> None:
    dates = ("2026-01-01", "2026-01-01", "2026-01-02")
    for draw in (kernel_lists.odd_cases, lambda date: kernel_lists.drawn_products(date, 4)):
        names = [[case.name for case in draw(date)] for date in dates]
        assert names[0] == names[1] != names[2]


def test_names_are_unique_and_models_valid(kernel_lists: object) -> None:
    found = list(kernel_lists.cases("2026-01-01"))
    assert len({(case.family, case.name) for case in found}) == len(found)
    for case in found:
        onnx.checker.check_model(case.model, full_check=True)  # the result's shape is as declared
        assert case.bytes > 0 and (case.flops or 1) > 0


@pytest.mark.parametrize(("extent", "kernel", "stride"), [(7, 3, 1), (14, 3, 2), (11, 7, 2), (5, 1, 1)])
def test_flops_of_convolutions_leave_out_the_padding(
    kernel_cases: object, extent: int, kernel: int, stride: int
) -> None:
    """Convolving ones with ones counts the taps inside the input."""
    case = kernel_cases.conv(2, extent, 3, kernel, stride)
    for tensor in case.model.graph.initializer:
        ones = np.ones(tensor.dims, np.float32) if tensor.name == "w" else np.zeros(tensor.dims, np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(ones, tensor.name))
    (counted,) = ReferenceEvaluator(case.model).run(None, {"x": np.ones((1, 2, extent, extent), np.float32)})
    assert case.flops == 2 * counted.sum()


def test_one_kernel_from_end_to_end(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    command = [sys.executable, str(ROOT / "bench" / "kernels.py"), "--only", "^(gemm:1x1000|concat:.*axis1$)"]
    options = ["--rounds", "1", "--burst", "0.001", "--json", "k.json", "--chart", "k.html", "--markdown", "k.md"]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    product, moved = json.loads((tmp_path / "k.json").read_text())["kernels"]
    assert product["flops"] == 2 * 1000 * 2048 and product["bytes"] == 4 * (2048 + 2048 * 1000 + 1000)
    assert moved["flops"] == 0 and moved["bytes"] == 4 * 4 * 256 * 56 * 56
    for record in (product, moved):
        assert record["ratio"] > 0
        assert [e["status"] for e in record["engines"]] == ["ok"] * len(record["engines"])
        assert record["engines"][0]["engine"] == "mlc" and record["engines"][1]["engine"] == "onnxruntime"
        assert all(0 < e["net_ms"] < e["median_ms"] for e in record["engines"])
    assert "| concat:256x56x56-axis1 |" in (tmp_path / "k.md").read_text()
    assert "concat:256x56x56-axis1" in done.stdout and "<table" in (tmp_path / "k.html").read_text()


def test_shares_compare_what_was_measured_in_the_same_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the second round the machine had half of its time: for the copy and for the kernel alike."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import kernels

    engine = {"net_ms": 1.5, "net_rounds_ms": [1.0, 2.0, 2.0], "peaks_gflops": []}
    copies = [10.0, 5.0, 5.0]
    record = {
        "flops": 0, "bytes": 8_000_000, "peak_gflops": None, "copy_gbs": 10.0, "copies_gbs": copies, "engines": [engine],
    }  # fmt: skip
    kernels.add_shares(record)
    assert record["bound"] == "memory" and engine["share"] == pytest.approx(0.8)
