"""Scalar arithmetic of the `arith` and `index` dialects on Python numbers, for size computations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mlc.interp.dtypes import is_float, numpy_dtype
from mlc.interp.registry import InterpError

ScalarOp = Callable[[Sequence[Any], Mapping[str, Any], str, str], Any]
"""(operands, attributes, type of the first operand, type of the result) -> value."""

SCALAR_OPS: dict[str, ScalarOp] = {}
"""Evaluators by operation name."""


def _bits(type_: str) -> int:
    return 64 if type_ == "index" else int(type_[1:])


def _wrap(value: int, type_: str) -> Any:
    """An integer as the value that a signless integer of `type_` holds, read as signed; `i1` as bool."""
    bits = _bits(type_)
    if bits == 1:
        return bool(value & 1)
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _unsigned(value: int, type_: str) -> int:
    return int(value) & ((1 << _bits(type_)) - 1)


def _integer(names: str, function: Callable[[int, int], int], unsigned: bool = False) -> None:
    def run(operands: Sequence[Any], attrs: Mapping[str, Any], source: str, target: str) -> Any:
        left, right = (_unsigned(v, source) if unsigned else int(v) for v in operands)
        return _wrap(function(left, right), target)

    for name in names.split():
        SCALAR_OPS[name] = run


def _nonzero(value: int) -> int:
    if value == 0:
        raise InterpError("integer division by zero")
    return value


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(_nonzero(right))
    return quotient if (left < 0) == (right < 0) else -quotient


def _shift_left(left: int, right: int) -> int:
    return left << right if right < 64 else 0


_integer("arith.addi index.add", lambda a, b: a + b)
_integer("arith.subi index.sub", lambda a, b: a - b)
_integer("arith.muli index.mul", lambda a, b: a * b)
_integer("arith.divsi index.divs", _truncated)
_integer("arith.divui index.divu", lambda a, b: a // _nonzero(b), unsigned=True)
_integer("arith.floordivsi index.floordivs", lambda a, b: a // _nonzero(b))
_integer("arith.ceildivsi index.ceildivs", lambda a, b: -(-a // _nonzero(b)))
_integer("arith.ceildivui index.ceildivu", lambda a, b: -(-a // _nonzero(b)), unsigned=True)
_integer("arith.remsi index.rems", lambda a, b: a - b * _truncated(a, b))
_integer("arith.remui index.remu", lambda a, b: a % _nonzero(b), unsigned=True)
_integer("arith.maxsi index.maxs", max)
_integer("arith.minsi index.mins", min)
_integer("arith.maxui index.maxu", max, unsigned=True)
_integer("arith.minui index.minu", min, unsigned=True)
_integer("arith.andi index.and", lambda a, b: a & b)
_integer("arith.ori index.or", lambda a, b: a | b)
_integer("arith.xori index.xor", lambda a, b: a ^ b)
_integer("arith.shli index.shl", _shift_left)
_integer("arith.shrsi index.shrs", lambda a, b: a >> b)
_integer("arith.shrui index.shru", lambda a, b: a >> b, unsigned=True)


def _convert(names: str, signed: bool) -> None:
    def run(operands: Sequence[Any], attrs: Mapping[str, Any], source: str, target: str) -> Any:
        value = int(operands[0])
        return _wrap(value if signed and source != "i1" else _unsigned(value, source), target)

    for name in names.split():
        SCALAR_OPS[name] = run


def _signed_convert(operands: Sequence[Any], attrs: Mapping[str, Any], source: str, target: str) -> Any:
    value = int(operands[0])
    return _wrap(-value if source == "i1" else value, target)


for _name in ("arith.extsi", "arith.index_cast", "arith.trunci", "index.casts"):
    SCALAR_OPS[_name] = _signed_convert
_convert("arith.extui arith.index_castui index.castu", signed=False)

_PREDICATES: list[tuple[Callable[[int, int], bool], bool]] = [
    (lambda a, b: a == b, False),
    (lambda a, b: a != b, False),
    (lambda a, b: a < b, False),
    (lambda a, b: a <= b, False),
    (lambda a, b: a > b, False),
    (lambda a, b: a >= b, False),
    (lambda a, b: a < b, True),
    (lambda a, b: a <= b, True),
    (lambda a, b: a > b, True),
    (lambda a, b: a >= b, True),
]


def _cmpi(operands: Sequence[Any], attrs: Mapping[str, Any], source: str, target: str) -> bool:
    function, unsigned = _PREDICATES[attrs["predicate"]]
    left, right = (_unsigned(v, source) if unsigned else int(v) for v in operands)
    return function(left, right)


SCALAR_OPS["arith.cmpi"] = _cmpi

_ORDERED: dict[int, Callable[[float, float], bool]] = {
    1: lambda a, b: a == b,
    2: lambda a, b: a > b,
    3: lambda a, b: a >= b,
    4: lambda a, b: a < b,
    5: lambda a, b: a <= b,
    6: lambda a, b: a != b,
}


def _cmpf(operands: Sequence[Any], attrs: Mapping[str, Any], source: str, target: str) -> bool:
    """arith's predicates: 0 false, 1-6 ordered, 7 ord, 8-13 unordered (eq gt ge lt le ne), 14 uno, 15 true."""
    left, right = (float(v) for v in operands)
    unordered, predicate = math.isnan(left) or math.isnan(right), attrs["predicate"]
    if predicate in (0, 15):
        return predicate == 15
    if predicate in (7, 14):
        return unordered == (predicate == 14)
    if predicate < 7:
        return not unordered and _ORDERED[predicate](left, right)
    return unordered or _ORDERED[predicate - 7](left, right)


SCALAR_OPS["arith.cmpf"] = _cmpf


def _float(name: str, function: Callable[..., Any]) -> None:
    def run(operands: Sequence[Any], attrs: Mapping[str, Any], source: str, target: str) -> Any:
        wide = [np.asarray(v, np.float64) for v in operands]
        with np.errstate(all="ignore"):
            return np.asarray(function(*wide)).astype(numpy_dtype(target))[()]

    SCALAR_OPS[name] = run


_float("arith.addf", np.add)
_float("arith.subf", np.subtract)
_float("arith.mulf", np.multiply)
_float("arith.divf", np.divide)
_float("arith.remf", np.fmod)
_float("arith.negf", np.negative)
_float("arith.maximumf", np.maximum)
_float("arith.minimumf", np.minimum)
_float("arith.extf", lambda x: x)
_float("arith.truncf", lambda x: x)
_float("math.floor", np.floor)
_float("math.ceil", np.ceil)
_float("math.roundeven", np.rint)
_float("math.trunc", np.trunc)
_float("math.sqrt", np.sqrt)
_float("math.absf", np.abs)


def _int_to_float(unsigned: bool) -> ScalarOp:
    def run(operands: Sequence[Any], attrs: Mapping[str, Any], source: str, target: str) -> Any:
        value = _unsigned(operands[0], source) if unsigned else int(operands[0])
        assert is_float(numpy_dtype(target))
        return np.array(value).astype(numpy_dtype(target))[()]

    return run


def _float_to_int(operands: Sequence[Any], attrs: Mapping[str, Any], source: str, target: str) -> Any:
    value = float(operands[0])
    return _wrap(int(value) if math.isfinite(value) else 0, target)


SCALAR_OPS["arith.sitofp"] = _int_to_float(unsigned=False)
SCALAR_OPS["arith.uitofp"] = _int_to_float(unsigned=True)
SCALAR_OPS["arith.fptosi"] = _float_to_int
SCALAR_OPS["arith.fptoui"] = _float_to_int
