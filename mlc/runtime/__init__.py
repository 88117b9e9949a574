"""Loading and running compiled models. Needs NumPy only, never the compiler."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import (
    ArgumentError,
    BusyError,
    DeviceError,
    InputError,
    LoadError,
    MlcError,
    ModelError,
    OutOfMemoryError,
    WeightsError,
)

__all__ = [
    "ArgumentError",
    "BusyError",
    "DeviceError",
    "InputError",
    "LoadError",
    "MlcError",
    "Model",
    "ModelError",
    "OutOfMemoryError",
    "WeightsError",
    "load",
]


def __getattr__(name: str) -> Any:
    """`load` and `Model` bring NumPy with them: only when they are used."""
    if name in ("load", "Model"):
        return getattr(importlib.import_module("mlc.runtime.loader"), name)
    raise AttributeError(f"module 'mlc.runtime' has no attribute {name!r}")
