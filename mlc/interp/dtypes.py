"""Element types: MLIR spelling to NumPy dtype, and the integer and floating-point helpers that all families
share.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

DYNAMIC = -(2**63)
"""`ShapedType::kDynamic`: in a `static_*` list, the entry that is taken from the next index operand."""

_EXTENSIONS = {
    "i2": "int2",
    "i4": "int4",
    "bf16": "bfloat16",
    "f8E3M4": "float8_e3m4",
    "f8E4M3": "float8_e4m3",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn",
    "f4E2M1FN": "float4_e2m1fn",
}
_BY_NAME: dict[str, np.dtype] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
    # Older ml_dtypes lack some of them.
    **{name: np.dtype(getattr(ml_dtypes, t)) for name, t in _EXTENSIONS.items() if hasattr(ml_dtypes, t)},
}
_BY_DTYPE: dict[np.dtype, str] = {dtype: name for name, dtype in _BY_NAME.items() if name != "index"}

_SUB_BYTE = {"int2": "uint2", "int4": "uint4"}
_UNSIGNED: dict[np.dtype, np.dtype] = {
    np.dtype(np.int8): np.dtype(np.uint8),
    np.dtype(np.int16): np.dtype(np.uint16),
    np.dtype(np.int32): np.dtype(np.uint32),
    np.dtype(np.int64): np.dtype(np.uint64),
    **{
        np.dtype(getattr(ml_dtypes, signed)): np.dtype(getattr(ml_dtypes, unsigned))
        for signed, unsigned in _SUB_BYTE.items()
        if hasattr(ml_dtypes, unsigned)
    },
}
_SIGNED = {unsigned: signed for signed, unsigned in _UNSIGNED.items()}

BITS = {"i1": 1, "i2": 2, "i4": 4, "f4E2M1FN": 4, "f6E2M3FN": 6, "f6E3M2FN": 6}
"""Widths of the element types narrower than a byte."""


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy (or ml_dtypes) dtype of an MLIR element type name. Raises `ValueError` for an unknown
    name.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"no NumPy dtype for the element type '{name}'") from None


def mlir_dtype(dtype: np.dtype | type) -> str:
    """The MLIR element type name of a NumPy dtype; integers are signless, so `uint8` gives `i8`."""
    key = np.dtype(dtype)
    key = _SIGNED.get(key, key)
    try:
        return _BY_DTYPE[key]
    except KeyError:
        raise ValueError(f"no MLIR element type for the NumPy dtype '{dtype}'") from None


def bit_width(name: str) -> int:
    """Number of bits of one element of the MLIR element type `name` (`i1`: 1)."""
    return BITS.get(name, numpy_dtype(name).itemsize * 8)


def is_float(dtype: np.dtype) -> bool:
    """True for IEEE and ml_dtypes floating-point dtypes."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtype in _BY_DTYPE and _BY_DTYPE[dtype][0] in "bf")


def is_complex(dtype: np.dtype) -> bool:
    """True for complex dtypes."""
    return dtype.kind == "c"


def is_int(dtype: np.dtype) -> bool:
    """True for integer dtypes of any width and sign, not for bool."""
    return dtype.kind in "iu" or dtype in _UNSIGNED or dtype in _SIGNED


def is_narrow_float(dtype: np.dtype) -> bool:
    """True for floats that compute in float32: f16, bf16 and everything narrower."""
    return is_float(dtype) and dtype not in (np.dtype(np.float32), np.dtype(np.float64))


def widen(array: np.ndarray) -> np.ndarray:
    """`array` in the dtype that it computes in: narrow floats as float32, sub-byte integers as int8."""
    if is_narrow_float(array.dtype):
        return array.astype(np.float32)
    if array.dtype.kind == "V" and array.dtype in _UNSIGNED:
        return array.astype(np.int8)
    if array.dtype.kind == "V" and array.dtype in _SIGNED:
        return array.astype(np.uint8)
    return array


def narrow(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`array` rounded (floats) or wrapped (integers) to `dtype`; the inverse of `widen` and
    `unsigned_view`.
    """
    if array.dtype == dtype:
        return array
    if is_int(array.dtype) and is_int(dtype):
        return wrap_int(array, dtype)
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def unsigned_view(array: np.ndarray) -> np.ndarray:
    """The same bits read as an unsigned integer; other dtypes unchanged."""
    return array.view(_UNSIGNED[array.dtype]) if array.dtype in _UNSIGNED else array


def signed_view(array: np.ndarray) -> np.ndarray:
    """The same bits read as a signed (that is: signless) integer; other dtypes unchanged."""
    return array.view(_SIGNED[array.dtype]) if array.dtype in _SIGNED else array


def unsigned_dtype(dtype: np.dtype) -> np.dtype:
    """The unsigned integer dtype of the same width; other dtypes unchanged."""
    return _UNSIGNED.get(dtype, dtype)


def int_range(dtype: np.dtype) -> tuple[int, int]:
    """Lowest and highest value of an integer dtype of any width."""
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def wrap_int(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integer to integer conversion modulo 2**width, also for sub-byte dtypes."""
    if dtype.kind in "iu":
        return array.astype(np.int64 if array.dtype.kind == "V" else array.dtype).astype(dtype)
    low, high = int_range(dtype)
    values = array.astype(np.int64)
    return (((values - low) & (high - low)) + low).astype(dtype)


def lowest(dtype: np.dtype) -> float | int | bool:
    """The identity of `max`: minus infinity, the lowest integer or False."""
    if is_float(dtype):
        return -np.inf
    return False if dtype.kind == "b" else int_range(dtype)[0]


def highest(dtype: np.dtype) -> float | int | bool:
    """The identity of `min`: infinity, the highest integer or True."""
    if is_float(dtype):
        return np.inf
    return True if dtype.kind == "b" else int_range(dtype)[1]
