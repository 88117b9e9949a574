"""A small model, and a cache of its own for every test."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from models.perceptron import perceptron


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def model() -> onnx.ModelProto:
    return perceptron()


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "perceptron.onnx"
    onnx.save(perceptron(), path)
    return path
