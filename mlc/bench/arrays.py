"""Arrays in files between the processes of a benchmark: any dtype, any name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlc.runtime.dtypes import numpy_dtype


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes named arrays. NumPy's archives know no bfloat16 and few names, so both are kept apart."""
    table = [(name, _dtype_text(array.dtype), array.shape) for name, array in arrays.items()]
    raw = {f"a{i}": np.frombuffer(array.tobytes(), np.uint8) for i, array in enumerate(arrays.values())}
    text = np.frombuffer(json.dumps(table).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, table=text, **raw)


def read(path: Path) -> dict[str, Any]:
    """The arrays of a file that `write` has written, aligned to 64 bytes."""
    with np.load(path) as archive:
        table = json.loads(archive["table"].tobytes())
        return {name: _aligned(archive[f"a{i}"], dtype, shape) for i, (name, dtype, shape) in enumerate(table)}


def _dtype_text(dtype: np.dtype) -> str:
    """A name that `_dtype_of` understands. Strings must have a fixed width."""
    return dtype.str if dtype.kind == "U" else dtype.name


def _dtype_of(text: str) -> np.dtype:
    return np.dtype(text) if "U" in text else numpy_dtype(text)


def _aligned(raw: np.ndarray, dtype: str, shape: list[int]) -> np.ndarray:
    room = np.empty(raw.size + 64, np.uint8)
    start = -room.ctypes.data % 64
    room[start : start + raw.size] = raw
    return room[start : start + raw.size].view(_dtype_of(dtype)).reshape(shape)
