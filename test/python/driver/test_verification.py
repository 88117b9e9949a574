"""`verify=N`: the library is compared with the interpreter, and thrown away when they disagree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mlc
import mlc.verification
from mlc.options import InternalError, UsageError
from mlc.verification import difference


def test_a_right_library_passes(model_file: Path, tmp_path: Path) -> None:
    stages: list[str] = []
    mlc.compile(model_file, output=tmp_path / "m.so", verify=4, progress=lambda stage, *_: stages.append(stage))
    assert stages[-1] == "verify" and (tmp_path / "m.so").exists()


def test_a_wrong_library_is_removed(model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = mlc.verification.run_function
    batches = []

    def dishonest(function: object, inputs: list[np.ndarray], store: object) -> list[np.ndarray]:
        batches.append(inputs[0].shape[0])
        (result,) = honest(function, inputs, store)
        if len(batches) == 2:
            result = result.copy()
            result[0, 3] += 0.1
        return [result]

    monkeypatch.setattr(mlc.verification, "run_function", dishonest)
    with pytest.raises(
        InternalError, match=r"output 'y' of 'forward' \(x\[1, 24\]\): 1 of 5 elements differ, by up to 0.1"
    ):
        mlc.compile(model_file, output=tmp_path / "m.so", verify=3)
    assert batches == [3, 1]
    assert not (tmp_path / "m.so").exists()


def test_it_needs_the_model(model_file: Path, tmp_path: Path) -> None:
    stage = mlc.compile(model_file, output=tmp_path / "x.mlir", emit="linalg")
    with pytest.raises(UsageError, match="verify compares a library with the model"):
        mlc.compile(stage, output=tmp_path / "m.so", verify=1)
    with pytest.raises(UsageError, match="verify compares a library with the model"):
        mlc.compile(model_file, output=tmp_path / "y.mlir", emit="linalg", verify=1)


def test_what_counts_as_a_difference() -> None:
    x = np.array([1.0, np.nan, np.inf, -50.0], np.float32)
    assert difference(x, x.copy()) is None
    assert difference(x + np.float32(0.001), x) is None
    assert "1 of 4 elements differ" in (difference(x + np.array([0, 0, 0, 1], np.float32), x) or "")
    assert "shape" in (difference(x[:2], x) or "")
    assert "elements differ" in (difference(np.where(np.isnan(x), 0, x), x) or "")
    assert "1 of 2" in (difference(np.array([1, 2]), np.array([1, 3])) or "")
    assert difference(np.array([255], np.uint8), np.array([-1], np.int8)) is None
