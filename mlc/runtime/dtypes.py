"""Element types of the artefact's ABI: NumPy names, DLPack codes (`mlc_dtype` in mlc.h), NumPy dtypes."""

from __future__ import annotations

import numpy as np

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6

# name -> (DLPack type code, bits)
DTYPES: dict[str, tuple[int, int]] = {
    "int2": (_INT, 2),
    "int4": (_INT, 4),
    "int8": (_INT, 8),
    "int16": (_INT, 16),
    "int32": (_INT, 32),
    "int64": (_INT, 64),
    "uint2": (_UINT, 2),
    "uint4": (_UINT, 4),
    "uint8": (_UINT, 8),
    "uint16": (_UINT, 16),
    "uint32": (_UINT, 32),
    "uint64": (_UINT, 64),
    "float16": (_FLOAT, 16),
    "float32": (_FLOAT, 32),
    "float64": (_FLOAT, 64),
    "bfloat16": (_BFLOAT, 16),
    "complex64": (_COMPLEX, 64),
    "complex128": (_COMPLEX, 128),
    "bool": (_BOOL, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
    "float4_e2m1fn": (17, 4),
    "string": (240, 128),
}
_NAMES = {code: name for name, code in DTYPES.items()}


def dtype_code(name: str) -> int:
    """The `mlc_dtype` of a type name; KeyError when the ABI does not know it."""
    code, bits = DTYPES[name]
    return code | bits << 8


def dtype_name(code: int) -> str:
    """The name of an `mlc_dtype`."""
    return _NAMES.get((code & 0xFF, code >> 8), f"dtype({code & 0xFF}, {code >> 8})")


def numpy_dtype(name: str) -> np.dtype:
    """How NumPy holds elements of this type.

    Types that NumPy does not know are ml_dtypes' when that package is installed, else unsigned integers of the
    same width with the raw bits. Strings are Python objects.
    """
    if name == "string":
        return np.dtype(object)
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        bits = DTYPES[name][1]
        return np.dtype(f"uint{max(bits, 8)}")


def accepted_name(dtype: np.dtype) -> str:
    """The ABI's name of a NumPy dtype; ValueError when it has none."""
    if dtype.kind in "OUST":
        return "string"
    if dtype.name in DTYPES:
        return dtype.name
    raise ValueError(f"arrays of NumPy dtype '{dtype}' are not supported")
