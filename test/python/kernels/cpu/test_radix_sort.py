"""Sorting by digits: every type, both orders, ties, NaN, infinities and both zeros, lines along and across memory."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mlc
from mlc.interp.indexing import stable_order

TYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "i1",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
}  # fmt: skip
LONG = 8200  # elements of a line whose digits have eleven bits
SEVERAL = 130  # of a line that is sorted by digits though the compiler knows its length


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)


def _draw(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Few different numbers among many, all bits in use, and what floats have besides numbers."""
    rng, kind = np.random.default_rng(seed), _numpy(dtype)
    size = int(np.prod(shape))
    raw = rng.integers(0, 256, size * kind.itemsize, np.uint8).view("bool" if dtype == "bool" else kind)
    if dtype == "bool":
        raw = rng.integers(0, 2, size).astype(bool)
    few = rng.integers(0, 7, size).astype(kind)
    found = np.where(rng.random(size) < 0.5, few, raw)
    if dtype.startswith(("float", "bfloat")):
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0], np.float64).astype(kind)
        found = np.where(rng.random(size) < 0.2, special[rng.integers(0, len(special), size)], found)
    return found.astype(kind).reshape(shape)


def _module(dtype: str) -> str:
    """Sorts `x` down its columns and `z` along its rows, each both ways."""
    element, unsigned = TYPES[dtype], ", unsigned" if dtype.startswith("uint") else ""
    shapes = {"x": "?x3x", "y": f"3x{SEVERAL}x", "z": f"2x{LONG}x"}
    arguments = ", ".join(
        f'%{n}: tensor<{s}{element}> {{mlc.name = "{n}", mlc.dtype = "{dtype}", mlc.dims = ["", ""]}}'
        for n, s in shapes.items()
    )
    lines, returned, types, described = [], [], [], []
    for name, shape in shapes.items():
        for order in ("true", "false"):
            values, places = f"tensor<{shape}{element}>", f"tensor<{shape}i64>"
            flags = f"{{axis = {0 if name == 'x' else 1} : i64, descending = {order}{unsigned}}}"
            lines.append(f"%{name}{order}:2 = mlc.sort %{name} {flags} : {values} -> {values}, {places}")
            for number, (type_, kind) in enumerate(((values, dtype), (places, "int64"))):
                returned.append(f"%{name}{order}#{number}")
                types.append(type_)
                result = f'mlc.name = "{name}{order}{number}", mlc.dtype = "{kind}", mlc.dims = ["", ""]'
                described.append(f"{type_} {{{result}}}")
    body = "\n".join([*lines, f"return {', '.join(returned)} : {', '.join(types)}"])
    return f"module {{ func.func @forward({arguments}) -> ({', '.join(described)}) {{\n{body}\n}} }}"


@pytest.mark.parametrize("dtype", TYPES)
def test_sorts_as_numpy_does(dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "sort.mlir"
    path.write_text(_module(dtype))
    model = mlc.compile(path, output=tmp_path / "sort.so", from_phase="import", cache=False)
    templates = [kernel["template"] for kernel in model.metadata["kernels"]]
    assert templates.count("radix_sort") == 6
    y, z = _draw(dtype, (3, SEVERAL), 1), _draw(dtype, (2, LONG), 2)
    y[1] = y[1, 0]  # a line whose elements have all digits in common
    for rows in (0, 1, 2, 127, 128, 129, 1000):
        inputs = (_draw(dtype, (rows, 3), rows), y, z)
        results = iter(model(*inputs))
        for array, axis in zip(inputs, (0, 1, 1), strict=True):
            with np.errstate(invalid="ignore"):  # NaN
                wide = array.astype(np.float64) if dtype in ("bfloat16", "float16") else array
            for descending in (True, False):
                order = stable_order(wide, axis, descending)
                values, places = next(results), next(results)
                np.testing.assert_array_equal(places, order, f"{rows} rows, axis {axis}, {descending}")
                want = np.take_along_axis(array, order, axis)
                assert values.tobytes() == want.tobytes(), "the very elements, with the bits of their NaN and zeros"
