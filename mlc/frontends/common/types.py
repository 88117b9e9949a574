"""Element types: NumPy dtype names on one side, signless MLIR types on the other."""

from __future__ import annotations

import numpy as np
from mlir import ir

_FLOATS = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
}
_WIDTHS = (2, 4, 8, 16, 32, 64)
_FLOAT_NAMES = {text: name for name, text in _FLOATS.items()}
_NAMES = _FLOAT_NAMES | {"i1": "bool", "!mlc.str": "string"}


def element_type(dtype: str) -> ir.Type:
    """The MLIR type of a NumPy (or ml_dtypes) dtype name; `KeyError` for one without a counterpart."""
    if dtype == "bool":
        return ir.IntegerType.get_signless(1)
    if dtype == "string":
        return ir.Type.parse("!mlc.str")
    if dtype in _FLOATS:
        return ir.Type.parse(_FLOATS[dtype])
    for width in _WIDTHS:
        if dtype in (f"int{width}", f"uint{width}"):
            return ir.IntegerType.get_signless(width)
    raise KeyError(dtype)


def is_dtype(dtype: str) -> bool:
    """Whether `dtype` names an element type."""
    integers = {f"{sign}int{width}" for sign in ("", "u") for width in _WIDTHS}
    return dtype in ("bool", "string") or dtype in _FLOATS or dtype in integers


def is_unsigned(dtype: str) -> bool:
    """Whether `dtype` is an unsigned integer."""
    return dtype.startswith("uint")


def dtype_name(element: ir.Type, unsigned: bool = False) -> str:
    """The dtype name of an MLIR element type."""
    text = str(element)
    if text in _NAMES:
        return _NAMES[text]
    if text.startswith("i") and text[1:].isdigit():
        return f"{'u' if unsigned else ''}int{text[1:]}"
    return text


def numpy_dtype(dtype: str) -> np.dtype:
    """The NumPy dtype of a dtype name; the narrow types come from ml_dtypes."""
    try:
        return np.dtype(dtype)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, dtype))


def is_float(element: ir.Type) -> bool:
    """Whether `element` is any floating-point type."""
    return str(element) in _FLOAT_NAMES


def is_integer(element: ir.Type) -> bool:
    """Whether `element` is an integer type other than `i1`."""
    return str(element).startswith("i") and str(element)[1:].isdigit() and str(element) != "i1"


def is_bool(element: ir.Type) -> bool:
    """Whether `element` is `i1`."""
    return str(element) == "i1"
