"""Primitive elementwise operations: `unary`, `binary`, `compare`, `select`, `cast`, `bitcast`, and `clamp`,
`prelu`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np

from mlc.interp.dtypes import (
    int_range,
    is_complex,
    is_float,
    is_int,
    is_narrow_float,
    unsigned_dtype,
    unsigned_view,
    widen,
    wrap_int,
)
from mlc.interp.registry import Call, InterpError, evaluates

_EXPONENT = np.dtype(ml_dtypes.float8_e8m0fnu) if hasattr(ml_dtypes, "float8_e8m0fnu") else None


def prepare(array: np.ndarray, unsigned: bool = False) -> np.ndarray:
    """`array` in the dtype in which it computes, integers read as unsigned when asked."""
    return widen(unsigned_view(array) if unsigned else array)


def through_float(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """`function` on floats; integers and bools go through float64 (the result is rounded by the caller)."""
    return lambda x: function(x if is_float(x.dtype) or is_complex(x.dtype) else x.astype(np.float64))


_math_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function, correctly rounded from float64 (NumPy has none)."""
    return np.asarray(_math_erf(x.astype(np.float64)), dtype=np.float64).astype(x.dtype)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) that does not overflow on either side."""
    small = np.exp(-np.abs(x))
    one = x.dtype.type(1)
    return np.where(x < 0, small, one) / (one + small)


def _identity_on_ints(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: function(x) if is_float(x.dtype) else x


def _not(x: np.ndarray) -> np.ndarray:
    return np.logical_not(x) if x.dtype.kind == "b" else np.invert(x)


def _popcount(x: np.ndarray) -> np.ndarray:
    bytes_of = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, x.dtype.itemsize)
    return np.unpackbits(bytes_of, axis=-1).sum(axis=-1).astype(x.dtype)


def _neg(x: np.ndarray) -> np.ndarray:
    return x if x.dtype.kind == "b" else np.negative(x)


def _reciprocal(x: np.ndarray) -> np.ndarray:
    if is_int(x.dtype):
        return divide(np.ones_like(x), x)
    return x.dtype.type(1) / x


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return x.dtype.type(1) / np.sqrt(x)


_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": lambda x: x if x.dtype.kind in "bu" else np.abs(x),
    "neg": _neg,
    "sign": lambda x: x if x.dtype.kind == "b" else np.sign(x),
    "floor": _identity_on_ints(np.floor),
    "ceil": _identity_on_ints(np.ceil),
    "round": _identity_on_ints(np.rint),
    "trunc": _identity_on_ints(np.trunc),
    "reciprocal": _reciprocal,
    "not": _not,
    "popcount": _popcount,
    "sqrt": through_float(np.sqrt),
    "rsqrt": through_float(_rsqrt),
    "exp": through_float(np.exp),
    "exp2": through_float(np.exp2),
    "expm1": through_float(np.expm1),
    "log": through_float(np.log),
    "log2": through_float(np.log2),
    "log1p": through_float(np.log1p),
    "sin": through_float(np.sin),
    "cos": through_float(np.cos),
    "tan": through_float(np.tan),
    "asin": through_float(np.arcsin),
    "acos": through_float(np.arccos),
    "atan": through_float(np.arctan),
    "sinh": through_float(np.sinh),
    "cosh": through_float(np.cosh),
    "tanh": through_float(np.tanh),
    "asinh": through_float(np.arcsinh),
    "acosh": through_float(np.arccosh),
    "atanh": through_float(np.arctanh),
    "erf": through_float(erf),
    "sigmoid": through_float(sigmoid),
}


@evaluates("mlc.unary", "input")
def unary(call: Call, x: np.ndarray) -> np.ndarray:
    """`kind` of `x` elementwise; `isnan` and `isinf` give bool."""
    kind = call.need("kind")
    if kind == "isnan":
        return np.isnan(widen(x)) if is_float(x.dtype) else np.zeros(x.shape, np.bool_)
    if kind == "isinf":
        return _isinf(x, call.attr("positive", True), call.attr("negative", True))
    if kind not in _UNARY:
        raise InterpError(f"mlc.unary: unknown kind '{kind}'")
    return _UNARY[kind](prepare(x, call.unsigned))


def _isinf(x: np.ndarray, positive: bool, negative: bool) -> np.ndarray:
    if not is_float(x.dtype):
        return np.zeros(x.shape, np.bool_)
    wide = widen(x)
    return np.isinf(wide) & np.where(wide > 0, bool(positive), bool(negative))


def divide(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """True division of floats; integer division that truncates. Raises `InterpError` on integer division by
    zero.
    """
    if not is_int(lhs.dtype):
        return np.divide(lhs, rhs)
    _check_divisor(rhs)
    quotient = np.floor_divide(lhs, rhs)
    remainder = lhs - quotient * rhs
    # floor_divide rounds down: one too low when a remainder is left and the signs differ.
    return quotient + ((remainder != 0) & ((lhs < 0) != (rhs < 0))).astype(lhs.dtype)


def _check_divisor(rhs: np.ndarray) -> None:
    if np.any(rhs == 0):
        raise InterpError("integer division by zero")


def _mod(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    if is_int(lhs.dtype):
        _check_divisor(rhs)
    return np.mod(lhs, rhs)


def _fmod(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    if is_int(lhs.dtype):
        _check_divisor(rhs)
    return np.fmod(lhs, rhs)


def _int_pow(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Modular integer power; a negative exponent gives 1/base truncated (0 unless the base is 1 or -1)."""
    wide = np.uint64 if base.dtype.kind == "u" else np.int64
    base, exponent = np.broadcast_arrays(base.astype(wide), exponent)
    odd_minus = np.where(exponent % 2 != 0, wide(-1) if wide is np.int64 else wide(0), wide(1))
    inverse = np.where(base == 1, wide(1), np.where(base == wide(0) - wide(1), odd_minus, wide(0)))
    left = np.maximum(exponent, 0).astype(np.uint64)
    result, square = np.ones_like(base), base.copy()
    while np.any(left):
        result = np.where(left & np.uint64(1), result * square, result)
        square = square * square
        left = left >> np.uint64(1)
    return np.where(exponent < 0, inverse, result)


def _pow(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    if is_int(lhs.dtype):
        if is_int(rhs.dtype):
            return _int_pow(lhs, rhs).astype(lhs.dtype)
        return to_int(np.power(lhs.astype(np.float64), rhs), lhs.dtype, saturate=False)
    if is_complex(lhs.dtype):
        return np.power(lhs, rhs.astype(lhs.dtype))
    # An integer exponent may not fit the base's mantissa: compute in float64, which is at least as exact.
    wide = np.float64 if rhs.dtype != lhs.dtype else lhs.dtype
    return np.power(lhs.astype(wide), rhs.astype(wide)).astype(lhs.dtype)


def _shift(left: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def shift(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        bits = lhs.dtype.itemsize * 8
        amount = rhs.astype(np.uint64) if rhs.dtype.kind == "u" else np.maximum(rhs, 0).astype(np.uint64)
        safe = np.minimum(amount, bits - 1).astype(lhs.dtype)
        if left:
            return np.where(amount >= bits, lhs.dtype.type(0), np.left_shift(lhs, safe))
        beyond = (
            np.where(lhs < 0, lhs.dtype.type(-1), lhs.dtype.type(0)) if lhs.dtype.kind == "i" else lhs.dtype.type(0)
        )
        return np.where(amount >= bits, beyond, np.right_shift(lhs, safe))

    return shift


def _logical(on_bool: Callable[..., np.ndarray], on_int: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda lhs, rhs: on_bool(lhs, rhs) if lhs.dtype.kind == "b" else on_int(lhs, rhs)


_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": lambda a, b: np.logical_xor(a, b) if a.dtype.kind == "b" else np.subtract(a, b),
    "mul": np.multiply,
    "div": divide,
    "mod": _mod,
    "fmod": _fmod,
    "pow": _pow,
    "atan2": np.arctan2,
    "max": np.maximum,
    "min": np.minimum,
    "and": _logical(np.logical_and, np.bitwise_and),
    "or": _logical(np.logical_or, np.bitwise_or),
    "xor": _logical(np.logical_xor, np.bitwise_xor),
    "shl": _shift(left=True),
    "shr": _shift(left=False),
}


@evaluates("mlc.binary", "lhs rhs")
def binary(call: Call, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """`kind` of `lhs` and `rhs`, broadcast; both of one dtype except for `pow`."""
    kind = call.need("kind")
    if kind not in _BINARY:
        raise InterpError(f"mlc.binary: unknown kind '{kind}'")
    if lhs.dtype != rhs.dtype and kind != "pow":
        raise InterpError(f"mlc.binary {kind}: operands are {lhs.dtype} and {rhs.dtype}")
    return _BINARY[kind](prepare(lhs, call.unsigned), prepare(rhs, call.unsigned))


_COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@evaluates("mlc.compare", "lhs rhs")
def compare(call: Call, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """`predicate` of `lhs` and `rhs`, broadcast, as bool; false on NaN except for `ne`."""
    predicate = call.need("predicate")
    if predicate not in _COMPARE:
        raise InterpError(f"mlc.compare: unknown predicate '{predicate}'")
    return _COMPARE[predicate](prepare(lhs, call.unsigned), prepare(rhs, call.unsigned))


@evaluates("mlc.select", "condition on_true on_false")
def select(call: Call, condition: np.ndarray, on_true: np.ndarray, on_false: np.ndarray) -> np.ndarray:
    """`on_true` where `condition`, else `on_false`; the three broadcast."""
    shape = np.broadcast_shapes(condition.shape, on_true.shape, on_false.shape)
    result = np.array(np.broadcast_to(on_false, shape))
    np.copyto(result, on_true, where=np.broadcast_to(condition, shape))
    return result


def to_int(x: np.ndarray, dtype: np.dtype, saturate: bool) -> np.ndarray:
    """Floats truncated to the integer `dtype` (signed or unsigned); NaN gives 0 when `saturate`, else the
    lowest int64.
    """
    low, high = int_range(dtype)
    whole = np.trunc(x.astype(np.float64))
    if saturate:
        whole = np.where(np.isnan(whole), 0.0, whole)
        inside = np.clip(whole, float(low), float(high))
        # 2**63 - 1 and 2**64 - 1 are no float64: fill them in as integers.
        wide = np.where(inside >= 2.0**63, 0.0, inside).astype(np.int64)
        big = np.where(inside >= 2.0**63, np.minimum(inside - 2.0**63, 2.0**63 - 1024), 0.0).astype(np.uint64)
        exact = wide.astype(np.uint64) + np.where(inside >= 2.0**63, big + np.uint64(2**63), np.uint64(0))
        top = np.uint64(high)
        return np.where(whole >= high, top, exact).astype(np.int64 if low < 0 else np.uint64).astype(dtype)
    if dtype == np.dtype(np.uint64):
        return np.where(whole >= 2.0**63, whole, 0).astype(np.uint64) + np.where(whole < 2.0**63, whole, 0).astype(
            np.int64
        ).astype(np.uint64)
    return wrap_int(whole.astype(np.int64), dtype)


def _cast_to_exponent(x: np.ndarray, dtype: np.dtype, saturate: bool) -> np.ndarray:
    """To f8E8M0FNU, powers of two from 2**-127 to 2**127: rounds up (ONNX's default); negative numbers are NaN."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    power = np.where(mantissa == 0.5, exponent - 1, exponent).astype(np.float64)
    power = np.where(x == 0, -np.inf, np.where(np.isposinf(x), np.inf, power))
    if saturate:
        power = np.clip(power, -127, 127)
    valid = (x >= 0) & (power <= 127) & (power >= -127)
    return np.exp2(np.where(valid, power, np.nan)).astype(dtype)


def _cast_to_float(x: np.ndarray, dtype: np.dtype, saturate: bool) -> np.ndarray:
    if dtype == _EXPONENT:
        return _cast_to_exponent(x, dtype, saturate)
    if not (saturate and is_narrow_float(dtype) and dtype.itemsize == 1):
        return x.astype(dtype)
    info = ml_dtypes.finfo(dtype)
    top = float(info.max)
    low = float(info.min) if float(info.min) < 0 else -top
    wide = x.astype(np.float32)
    return np.where(np.isnan(wide), wide, np.clip(wide, low, top)).astype(dtype)


def cast_array(
    x: np.ndarray,
    dtype: np.dtype,
    unsigned_in: bool = False,
    unsigned_out: bool = False,
    saturate: bool = False,
) -> np.ndarray:
    """`x` converted to `dtype` with the meaning of `mlc.cast`; integers come back with the bits of
    `unsigned_out`.
    """
    source = prepare(x, unsigned_in)
    if dtype.kind == "b":
        return source != 0
    if is_complex(dtype):
        return source.astype(dtype)
    if is_complex(source.dtype):
        source = source.real
    if is_float(dtype):
        return _cast_to_float(source if x.dtype != np.float64 else x, dtype, saturate)
    target = unsigned_dtype(dtype) if unsigned_out else dtype
    if is_float(source.dtype):
        return to_int(source, target, saturate)
    if saturate and source.dtype.kind != "b":
        low, high = int_range(target)
        have_low, have_high = int_range(source.dtype)
        source = np.clip(source, max(low, have_low), min(high, have_high))
    return wrap_int(source, target)


@evaluates("mlc.cast", "input")
def cast(call: Call, x: np.ndarray) -> np.ndarray:
    """`x` converted to the result's element type."""
    return cast_array(
        x,
        call.dtype(),
        unsigned_in=bool(call.attr("unsigned_in", False)),
        unsigned_out=bool(call.attr("unsigned_out", False)),
        saturate=bool(call.attr("saturate", False)),
    )


@evaluates("mlc.bitcast", "input")
def bitcast(call: Call, x: np.ndarray) -> np.ndarray:
    """The bits of `x` read as the result's element type of the same width."""
    if x.dtype.itemsize != call.dtype().itemsize:
        raise InterpError(f"mlc.bitcast: {x.dtype} and {call.dtype()} differ in width")
    return np.ascontiguousarray(x).view(call.dtype()).reshape(x.shape)


@evaluates("mlc.clamp", "input low? high?")
def clamp(call: Call, x: np.ndarray, low: np.ndarray | None, high: np.ndarray | None) -> np.ndarray:
    """`min(max(x, low), high)`; NaN stays NaN."""
    value = prepare(x, call.unsigned)
    if low is not None:
        value = np.maximum(value, prepare(low, call.unsigned))
    if high is not None:
        value = np.minimum(value, prepare(high, call.unsigned))
    return value


@evaluates("mlc.prelu", "input slope")
def prelu(call: Call, x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """`x` where it is not negative, else `slope * x`; `slope` broadcasts to `x` from the right."""
    value = prepare(x, call.unsigned)
    return np.where(value < 0, value * prepare(slope, call.unsigned), value)
