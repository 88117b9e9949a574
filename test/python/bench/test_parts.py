"""The parts of the benchmark: files between processes, workers, ratios, fixed models, charts."""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from models.perceptron import perceptron

from mlc.bench import arrays, chart, peak, subject
from mlc.bench.contest import Process, Result, WorkerError, paired_ratio
from mlc.bench.job import Job
from mlc.runtime.errors import ArgumentError


def test_arrays_of_any_dtype_and_name(tmp_path: Path) -> None:
    given = {
        "file": np.arange(6, dtype=np.float32).reshape(2, 3),
        "a/b:0": np.arange(4).astype(ml_dtypes.bfloat16),
        "": np.array(True),
        "text": np.array(["one", "three"]),
        "none": np.zeros((0, 3), np.int64),
    }
    arrays.write(tmp_path / "a.npz", given)
    found = arrays.read(tmp_path / "a.npz")
    assert list(found) == list(given)
    for name, value in given.items():
        assert found[name].dtype == value.dtype and found[name].shape == value.shape
        np.testing.assert_array_equal(found[name].view(found[name].dtype), value)
    assert found["file"].ctypes.data % 64 == 0


def test_ratio_is_paired_by_round() -> None:
    """Round by round against the best peer, so that a slow round of the machine cancels out."""
    ours = Result("mlc", "ok", rounds=[1.0, 10.0, 2.0])
    first, second = Result("a", "ok", rounds=[3.0, 20.0, 9.0]), Result("b", "ok", rounds=[4.0, 15.0, 5.0])
    assert paired_ratio(ours, [first, second]) == 2.5  # of 3, 1.5 and 2.5
    assert paired_ratio(ours, [Result("c", "failed")]) is None


def test_a_worker_that_fails_says_why(tmp_path: Path) -> None:
    arrays.write(tmp_path / "inputs.npz", {})
    job = Job("mlc", 1, "fp32", str(tmp_path / "inputs.npz"), str(tmp_path), library=str(tmp_path / "none.so"))
    with pytest.raises(WorkerError, match=r"LoadError: there is no file .*none\.so"):
        Process(job, timeout=60)


def test_a_worker_that_dies_or_hangs_does_not_take_us_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job("mlc", 1, "fp32", "", str(tmp_path))
    for code, message in (("raise SystemExit('no way')", r"died \(exit code 1\): no way"), ("import time; time.sleep(60)", "no answer")):
        program = tmp_path / "python"
        program.write_text(f"#!/bin/sh\nexec {sys.executable} -c \"{code}\"\n")
        program.chmod(0o755)
        monkeypatch.setattr("sys.executable", str(program))
        with pytest.raises(WorkerError, match=message):
            Process(job, timeout=1.5)
        monkeypatch.undo()


def test_fixed_model(tmp_path: Path) -> None:
    onnx.save(perceptron(), tmp_path / "p.onnx")
    (tmp_path / "fixed").mkdir()
    for shapes, dims in (({"x": (5, 24)}, {}), ({}, {"batch": 5})):
        path, fixed = subject.fixed_model(tmp_path / "p.onnx", tmp_path / "fixed", shapes, dims)
        assert fixed == {"x": (5, 24)}
        graph = onnx.load(path).graph
        assert [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim] == [5, 24]
        assert graph.output[0].type.tensor_type.shape.dim[0].dim_value == 5
        onnx.checker.check_model(str(path))
    with pytest.raises(ArgumentError, match="give --dim batch=N"):
        subject.fixed_model(tmp_path / "p.onnx", tmp_path / "fixed", {}, {})


@pytest.mark.parametrize(
    ("spec", "shape", "fill"),
    [
        ("1x3x224", (1, 3, 224), "random"),
        ("7", (7,), "random"),
        ("1,2048:0:256", (1, 2048), "random:0:256"),
        ("@x.npy", None, "@x.npy"),
        ("random:0:2", None, "random:0:2"),
    ],
)
def test_input_specs(spec: str, shape: tuple[int, ...] | None, fill: str) -> None:
    assert subject.parse_spec(spec) == (shape, fill)


def test_arena_formulas() -> None:
    assert subject.arena_bytes("192*batch + max(64, seq*4)", {"batch": 3, "seq": 100}) == 976
    assert subject.arena_bytes("4*unknown", {"batch": 3}) is None


def test_peak_without_a_program_and_with_one(tmp_path: Path) -> None:
    none = peak.Peak(None, 1)
    none.sample()
    assert none.best is None
    program = peak.build(tmp_path)
    if program is None:
        pytest.skip("no C compiler")
    for what, size in (("fp32", 0), ("bf16", 0), ("copy", 1 << 16)):
        rate = peak.Peak(program, 1, what, size)
        rate.sample()
        assert rate.best is not None and rate.best > 0
        assert rate.typical(0, 1e-9) > 0 and rate.typical(0, 9.0) <= rate.best * 1.001


def test_peak_of_stretches() -> None:
    rate = peak.Peak(None, 1)
    rate.samples, rate._seconds = [[4.0, 4.0, 4.0, 1.0, 4.0, 4.0]], 0.001
    assert rate.typical(0, 1e-6) == 4.0  # most short calls are not interrupted
    assert rate.typical(0, 0.003) == pytest.approx((4.0 + 2.0) / 2)  # half of those of three pieces are
    assert rate.typical(0, 1.0) == rate.best == pytest.approx(6 / (5 / 4 + 1))


def test_roofline_shows_every_point_and_escapes_names() -> None:
    points = [chart.Point("a<b>", 0.25, 9.0, "mlc"), chart.Point("c", 300.0, 90.0, "peer"), chart.Point("copy", 0, 0, "mlc")]
    page = chart.page("kernels", [chart.roofline(points, 100.0, 40.0)])
    assert page.count("<circle") == 2 and "a&lt;b&gt;" in page and "<b>" not in page
