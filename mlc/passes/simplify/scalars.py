"""Scalar arithmetic that folds as it is built: numbers stay Python numbers, the rest becomes `arith` on `index`, `i1`
or a float type. A scalar is an `int`, `bool` or `float`, or an `ir.Value` of type `index`, `i1`, `f32` or `f64`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import arith
from mlir.dialects import math as math_dialect

Scalar = Any


class UnsupportedError(Exception):
    """A computation that these scalars cannot express."""


def is_known(scalar: Scalar) -> bool:
    """Whether a scalar is a number."""
    return not isinstance(scalar, ir.Value)


def index_value(scalar: Scalar) -> ir.Value:
    """An integer scalar as a value of type `index`."""
    if isinstance(scalar, ir.Value):
        return scalar
    return arith.constant(ir.IndexType.get(), int(scalar))


def bool_value(scalar: Scalar) -> ir.Value:
    """A truth value as an `i1`."""
    if isinstance(scalar, ir.Value):
        return scalar
    return arith.constant(ir.IntegerType.get_signless(1), int(bool(scalar)))


def float_value(scalar: Scalar, type_: ir.Type) -> ir.Value:
    """A float scalar as a value of a float type."""
    return scalar if isinstance(scalar, ir.Value) else arith.constant(type_, float(scalar))


def _wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _floor_mod(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.subi(a, arith.muli(arith.floordivsi(a, b), b))


_IntRule = tuple[Callable[[int, int], int], Callable[[ir.Value, ir.Value], ir.Value]]
_INTEGER: dict[str, _IntRule] = {
    "add": (lambda a, b: a + b, arith.addi),
    "sub": (lambda a, b: a - b, arith.subi),
    "mul": (lambda a, b: a * b, arith.muli),
    "div": (_truncated, arith.divsi),
    "fmod": (lambda a, b: a - b * _truncated(a, b), arith.remsi),
    "mod": (lambda a, b: a % b, _floor_mod),
    "max": (max, arith.maxsi),
    "min": (min, arith.minsi),
}
_BOOL: dict[str, tuple[Callable[[bool, bool], bool], Callable[[ir.Value, ir.Value], ir.Value]]] = {
    "and": (lambda a, b: a and b, arith.andi),
    "mul": (lambda a, b: a and b, arith.andi),
    "min": (lambda a, b: a and b, arith.andi),
    "or": (lambda a, b: a or b, arith.ori),
    "max": (lambda a, b: a or b, arith.ori),
    "xor": (lambda a, b: a != b, arith.xori),
}
_FLOAT: dict[str, tuple[Callable[..., Any], Callable[[ir.Value, ir.Value], ir.Value]]] = {
    "add": (np.add, arith.addf),
    "sub": (np.subtract, arith.subf),
    "mul": (np.multiply, arith.mulf),
    "div": (np.divide, arith.divf),
    "max": (np.maximum, arith.maximumf),
    "min": (np.minimum, arith.minimumf),
}
_NEUTRAL_RIGHT = {"add": 0, "sub": 0, "mul": 1, "div": 1}


def binary(kind: str, lhs: Scalar, rhs: Scalar, element: ir.Type) -> Scalar:
    """`lhs kind rhs` for operands of an element type.

    Raises `UnsupportedError` for kinds that it does not know and for a division by a constant zero.
    """
    if isinstance(element, ir.IntegerType):
        return _bool_binary(kind, lhs, rhs) if element.width == 1 else _int_binary(kind, lhs, rhs)
    if kind not in _FLOAT:
        raise UnsupportedError(kind)
    fold, build = _FLOAT[kind]
    if is_known(lhs) and is_known(rhs):
        with np.errstate(all="ignore"):
            of = _numpy(element)
            return float(fold(of(lhs), of(rhs)))
    return build(float_value(lhs, element), float_value(rhs, element))


def _int_binary(kind: str, lhs: Scalar, rhs: Scalar) -> Scalar:
    if kind not in _INTEGER:
        raise UnsupportedError(kind)
    fold, build = _INTEGER[kind]
    if kind in ("div", "mod", "fmod") and is_known(rhs) and rhs == 0:
        raise UnsupportedError("division by zero")
    if is_known(lhs) and is_known(rhs):
        return _wrap(fold(int(lhs), int(rhs)))
    if is_known(rhs) and _NEUTRAL_RIGHT.get(kind) == rhs:
        return lhs
    if kind in ("add", "mul") and is_known(lhs) and _NEUTRAL_RIGHT[kind] == lhs:
        return rhs
    return build(index_value(lhs), index_value(rhs))


def _bool_binary(kind: str, lhs: Scalar, rhs: Scalar) -> Scalar:
    if kind not in _BOOL:
        raise UnsupportedError(kind)
    fold, build = _BOOL[kind]
    if is_known(lhs) and is_known(rhs):
        return fold(bool(lhs), bool(rhs))
    return build(bool_value(lhs), bool_value(rhs))


def _numpy(element: ir.Type) -> type:
    if isinstance(element, ir.F32Type):
        return np.float32
    if isinstance(element, ir.F64Type):
        return np.float64
    raise UnsupportedError(str(element))


HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
"""Whether a predicate holds between two numbers, or arrays."""
_PREDICATES: dict[str, tuple[int, int]] = {
    "eq": (arith.CmpIPredicate.eq, arith.CmpFPredicate.OEQ),
    "ne": (arith.CmpIPredicate.ne, arith.CmpFPredicate.UNE),
    "lt": (arith.CmpIPredicate.slt, arith.CmpFPredicate.OLT),
    "le": (arith.CmpIPredicate.sle, arith.CmpFPredicate.OLE),
    "gt": (arith.CmpIPredicate.sgt, arith.CmpFPredicate.OGT),
    "ge": (arith.CmpIPredicate.sge, arith.CmpFPredicate.OGE),
}


def compare(predicate: str, lhs: Scalar, rhs: Scalar, element: ir.Type) -> Scalar:
    """`lhs predicate rhs`, a truth value, for operands of an element type."""
    on_int, on_float = _PREDICATES[predicate]
    if is_known(lhs) and is_known(rhs):
        return bool(HOLDS[predicate](lhs, rhs))
    if not isinstance(element, ir.IntegerType):
        return arith.cmpf(on_float, float_value(lhs, element), float_value(rhs, element))
    if element.width == 1:
        if predicate not in ("eq", "ne"):
            raise UnsupportedError(predicate)
        return arith.cmpi(on_int, bool_value(lhs), bool_value(rhs))
    return arith.cmpi(on_int, index_value(lhs), index_value(rhs))


def select(condition: Scalar, on_true: Scalar, on_false: Scalar, element: ir.Type) -> Scalar:
    """One of two scalars of an element type."""
    if is_known(condition):
        return on_true if condition else on_false
    if is_known(on_true) and is_known(on_false) and on_true == on_false:
        return on_true
    return arith.select(condition, value_of(on_true, element), value_of(on_false, element))


def value_of(scalar: Scalar, element: ir.Type) -> ir.Value:
    """A scalar of an element type as a value (integers: `index`)."""
    if isinstance(element, ir.IntegerType):
        return bool_value(scalar) if element.width == 1 else index_value(scalar)
    return float_value(scalar, element)


_ROUNDING = {
    "floor": (np.floor, math_dialect.floor),
    "ceil": (np.ceil, math_dialect.ceil),
    "round": (np.rint, math_dialect.roundeven),
    "trunc": (np.trunc, math_dialect.trunc),
    "sqrt": (np.sqrt, math_dialect.sqrt),
    "abs": (np.abs, math_dialect.absf),
    "neg": (np.negative, arith.negf),
}


def unary(kind: str, scalar: Scalar, element: ir.Type) -> Scalar:
    """A function of a scalar of an element type. Raises `UnsupportedError` for kinds that it does not know."""
    if isinstance(element, ir.IntegerType):
        if element.width == 1:
            return _bool_not(kind, scalar)
        if kind == "neg":
            return _int_binary("sub", 0, scalar)
        if kind == "abs":
            return _int_binary("max", scalar, _int_binary("sub", 0, scalar))
        if kind in ("floor", "ceil", "round", "trunc"):
            return scalar
        raise UnsupportedError(kind)
    if kind not in _ROUNDING:
        raise UnsupportedError(kind)
    fold, build = _ROUNDING[kind]
    if is_known(scalar):
        return float(fold(_numpy(element)(scalar)))
    return build(scalar)


def _bool_not(kind: str, scalar: Scalar) -> Scalar:
    if kind != "not":
        raise UnsupportedError(kind)
    return not scalar if is_known(scalar) else arith.xori(scalar, bool_value(True))


def cast(scalar: Scalar, source: ir.Type, target: ir.Type) -> Scalar:
    """Conversion between element types; integers narrower than 64 bits are taken to hold their values."""
    from_int, to_int = (isinstance(t, ir.IntegerType) for t in (source, target))
    if to_int and ir.IntegerType(target).width == 1:
        if from_int and ir.IntegerType(source).width == 1:
            return scalar
        return compare("ne", scalar, 0 if from_int else 0.0, source)
    if from_int and to_int:
        return _from_bool(scalar) if ir.IntegerType(source).width == 1 else scalar
    if from_int:
        return _to_float(scalar, source, target)
    if to_int:
        return _float_to_int(scalar)
    if is_known(scalar):
        return float(_numpy(target)(scalar))
    wider = ir.FloatType(target).width > ir.FloatType(source).width
    return scalar if source == target else arith.extf(target, scalar) if wider else arith.truncf(target, scalar)


def _from_bool(scalar: Scalar) -> Scalar:
    return int(scalar) if is_known(scalar) else arith.index_castui(ir.IndexType.get(), scalar)


def _to_float(scalar: Scalar, source: ir.Type, target: ir.Type) -> Scalar:
    of = _numpy(target)
    if is_known(scalar):
        return float(of(scalar))
    if ir.IntegerType(source).width == 1:
        return arith.uitofp(target, scalar)
    return arith.sitofp(target, arith.index_cast(ir.IntegerType.get_signless(64), scalar))


def _float_to_int(scalar: Scalar) -> Scalar:
    if is_known(scalar):
        if not math.isfinite(scalar):
            raise UnsupportedError("a size that is no number")
        return int(scalar)
    return arith.index_cast(ir.IndexType.get(), arith.fptosi(ir.IntegerType.get_signless(64), scalar))
