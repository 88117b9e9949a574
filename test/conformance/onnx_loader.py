"""The cases of ONNX's backend suite as its own loader makes them, kept from one process to the next.

Its reference calculates what the cases of single nodes should give, which takes ten seconds. Tools and tests of several
processes ask for them.
"""

from __future__ import annotations

import os
import pickle
import platform
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx

KEPT = Path(__file__).resolve().parents[2] / "out" / "onnx-cases"


def load_tests(kind: str, folder: Path = KEPT) -> list[Any]:
    """The suite's cases of `kind` (`TestCase`s), from `folder` when this onnx has calculated them before."""
    if kind != "node":
        return _loaded(kind)
    path = folder / f"{kind}-onnx-{onnx.__version__}-numpy-{np.__version__}-{platform.python_version()}.pickle"
    try:
        return list(pickle.loads(path.read_bytes()))
    except (OSError, pickle.UnpicklingError, EOFError):
        pass
    found = _loaded(kind)
    folder.mkdir(parents=True, exist_ok=True)
    own = path.with_suffix(f".{os.getpid()}")
    own.write_bytes(pickle.dumps(found))
    own.replace(path)  # others may be writing the same, or reading it
    return found


def _loaded(kind: str) -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(load_model_tests(kind=kind))
