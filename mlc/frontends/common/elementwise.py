"""Elementwise operations: arithmetic, comparison, selection, casts and activations."""

from __future__ import annotations

import math

from mlir import ir

from mlc.frontends.common import known, types
from mlc.frontends.common.builder import Builder, Tensor, unit
from mlc.frontends.report import NodeError

_SIGN_MATTERS = ("div", "mod", "fmod", "pow", "max", "min", "shr")


def unary(b: Builder, kind: str, x: Tensor, **attributes: object) -> Tensor:
    """`mlc.unary`; same shape and dtype, but `i1` for `isnan` and `isinf`."""
    is_unsigned = x.unsigned and kind not in ("isnan", "isinf")
    folded = known.unary(kind, x.known)
    sign = unit(is_unsigned and kind in ("abs", "sign"))
    return b.op("unary", [x], kind=kind, unsigned=is_unsigned, known=folded, is_unsigned=sign, **attributes)


def binary(b: Builder, kind: str, lhs: Tensor, rhs: Tensor) -> Tensor:
    """`mlc.binary` with NumPy broadcasting; the dtype of `lhs`."""
    if kind != "pow" and lhs.dtype != rhs.dtype:
        raise NodeError(f"the operands have different types, {lhs.dtype} and {rhs.dtype}", "insert a Cast")
    if kind == "pow" and rhs.unsigned and lhs.dtype != rhs.dtype:  # the operation reads exponents as signed
        rhs = cast(b, rhs, lhs.dtype if lhs.is_float else "int64")
    folded = known.binary(b, kind, lhs.known, rhs.known)
    sign = unit(lhs.unsigned and kind in _SIGN_MATTERS)
    return b.op("binary", [lhs, rhs], kind=kind, unsigned=lhs.unsigned, known=folded, is_unsigned=sign)


def compare(b: Builder, predicate: str, lhs: Tensor, rhs: Tensor) -> Tensor:
    """`mlc.compare` with NumPy broadcasting; `i1`."""
    if lhs.dtype != rhs.dtype:
        raise NodeError(f"the operands have different types, {lhs.dtype} and {rhs.dtype}", "insert a Cast")
    folded = known.compare(predicate, lhs.known, rhs.known)
    sign = unit(lhs.unsigned and predicate not in ("eq", "ne"))
    return b.op("compare", [lhs, rhs], predicate=predicate, known=folded, is_unsigned=sign)


def select(b: Builder, condition: Tensor, on_true: Tensor, on_false: Tensor) -> Tensor:
    """`mlc.select` with NumPy broadcasting; the dtype of the choices."""
    folded = known.select(condition.known, on_true.known, on_false.known)
    return b.op("select", [condition, on_true, on_false], unsigned=on_true.unsigned, known=folded)


def cast(b: Builder, x: Tensor, dtype: str, saturate: bool = False) -> Tensor:
    """`x` converted to `dtype`; nothing is built when it has it already."""
    if x.dtype == dtype:
        return x
    target = types.element_type(dtype)
    to_unsigned = types.is_unsigned(dtype)
    folded = known.cast(x.known, dtype)
    if target == x.element:
        # Only the sign changes: the same bits.
        return Tensor(x.value, to_unsigned, folded)
    result = ir.RankedTensorType.get(x.type.shape, target)
    return b.op(
        "cast",
        [x],
        [result],
        unsigned=to_unsigned,
        known=folded,
        unsigned_in=unit(x.unsigned),
        unsigned_out=unit(to_unsigned),
        saturate=unit(saturate),
    )


def floating(b: Builder, x: Tensor) -> Tensor:
    """`x`, as float32 where it is not of floats."""
    return x if x.is_float else cast(b, x, "float32")


def bitcast(b: Builder, x: Tensor, dtype: str) -> Tensor:
    """The bits of `x` as the equally wide `dtype`."""
    result = ir.RankedTensorType.get(x.type.shape, types.element_type(dtype))
    return b.op("bitcast", [x], [result], unsigned=types.is_unsigned(dtype))


def shift(b: Builder, kind: str, x: Tensor, amount: Tensor) -> Tensor:
    """A shift by less than 0 or by the width or more leaves only copies of the sign (right) or zeros (left)."""
    last = b.like(ir.IntegerType(x.element).width - 1, x)
    inside = binary(b, "and", compare(b, "ge", amount, b.like(0, amount)), compare(b, "le", amount, last))
    shifted = binary(b, kind, x, select(b, inside, amount, last))
    return shifted if kind == "shr" else select(b, inside, shifted, b.like(0, x))


def to_integers(b: Builder, x: Tensor, dtype: str) -> Tensor:
    """Floats rounded to the nearest integers, half to even, within the limits of `dtype`."""
    return cast(b, unary(b, "round", x), dtype, saturate=True)


def activation(b: Builder, kind: str, x: Tensor, alpha: float | None = None, beta: float | None = None) -> Tensor:
    """`mlc.activation` of a float tensor."""
    return b.op("activation", [x], kind=kind, alpha=alpha, beta=beta)


def relu(b: Builder, x: Tensor) -> Tensor:
    """max(x, 0), for integers too."""
    return activation(b, "relu", x) if x.is_float else binary(b, "max", x, b.like(0, x))


def clamp(b: Builder, x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """`mlc.clamp` with scalar bounds of the dtype of `x`, either of which may be missing."""
    if low is None and high is None:
        return x
    return b.op("clamp", [x, low, high], unsigned=x.unsigned, is_unsigned=unit(x.unsigned))


def log_add_exp(b: Builder, x: Tensor, y: Tensor, base2: bool = False) -> Tensor:
    """ln(e^x + e^y) of two float tensors without overflow, or the same to base 2; of two equal infinities the same."""
    distance = unary(b, "abs", binary(b, "sub", x, y))
    less = unary(b, "neg", select(b, compare(b, "eq", x, y), b.like(0, x), distance))
    if base2:
        tail = scaled(b, unary(b, "log1p", unary(b, "exp2", less)), 1 / math.log(2))
    else:
        tail = activation(b, "softplus", less)
    return binary(b, "add", binary(b, "max", x, y), tail)


def fold(b: Builder, kind: str, operands: list[Tensor]) -> Tensor:
    """`binary` over a list, from the left."""
    result = operands[0]
    for operand in operands[1:]:
        result = binary(b, kind, result, operand)
    return result


def scaled(b: Builder, x: Tensor, factor: float) -> Tensor:
    """`x` times a constant; `x` itself for 1."""
    return x if factor == 1 else binary(b, "mul", x, b.like(factor, x))
