"""Operands of contractions that are computed where they are multiplied: integers with scales, in blocks (the pass
`mlc-stream-weights`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_identity, operand_map

STREAMED = "mlc.streamed"
"""Attribute of an operation, `dequantize` or `unpack`, that is computed where it is read, every time, and of the
generic that it becomes."""


@dataclass(frozen=True)
class Codes:
    """An operand that is `(codes - zero) * scale`. `bits` is that of a code in words of 32 (`mlc.unpack`), or 0 where
    each has a byte; `block` elements along the operand's dimension `axis` share a scale."""

    codes: ir.Value
    bits: int
    scale: ir.Value
    zero: ir.Value | int
    block: int
    axis: int


def is_streamed(op: ir.Operation | None) -> bool:
    """Is `op` a generic that is computed where it is read?"""
    return op is not None and op.name == "linalg.generic" and STREAMED in op.attributes


def find_codes(value: ir.Value) -> Codes | None:
    """The integers and scales that the operand `value` of a contraction is computed from; None for other operands, and
    where they have other dimensions than it has."""
    op = defining_op(value)
    if op is None or not is_streamed(op) or not isinstance(value.type.element_type, ir.FloatType):
        return None
    arguments = list(op.regions[0].blocks[0].arguments)
    inputs = dict(zip(arguments, range(len(op.operands) - 1), strict=False))
    scale, zero = 1, _zero_point(op, inputs)
    blocks = _blocks(list(operand_map(op, scale).results), value.type.rank)
    if blocks is None or not is_identity(op, 0) or isinstance(zero, ir.Value) and zero.type.rank != value.type.rank:
        return None
    axis, block = blocks
    codes, bits = op.operands[0], 0
    unpack = defining_op(codes)
    if unpack is not None and is_streamed(unpack):
        codes = unpack.operands[0]
        bits = 32 * codes.type.shape[-3] // value.type.shape[-2]
    return Codes(codes, bits, op.operands[scale], zero, block, axis)


def _zero_point(op: ir.Operation, inputs: dict[ir.Value, int]) -> ir.Value | int:
    """What is subtracted from the codes: an input of `op`, or a number."""
    for inner in op.regions[0].blocks[0].operations:
        if inner.operation.name != "arith.subi":
            continue
        value = inner.operation.operands[1]
        made = defining_op(value)
        unsigned = made is not None and made.name == "arith.extui"
        if made is not None and (unsigned or made.name == "arith.extsi"):
            value, made = made.operands[0], defining_op(made.operands[0])
        if value in inputs:
            return op.operands[inputs[value]]
        assert made is not None
        number = int(ir.IntegerAttr(made.attributes["value"]).value)
        return number % (1 << value.type.width) if unsigned else number
    return 0


def _blocks(exprs: Sequence[ir.AffineExpr], rank: int) -> tuple[int, int] | None:
    """The dimension, of `rank`, along which elements share a scale, and how many do; None where there is none alone."""
    divided = [i for i, e in enumerate(exprs) if isinstance(e, ir.AffineFloorDivExpr)]
    plain = [i for i, e in enumerate(exprs) if isinstance(e, ir.AffineDimExpr) and e.position == i]
    if len(divided) != 1 or len(plain) != rank - 1 or len(exprs) != rank:
        return None
    [axis] = divided
    return axis, ir.AffineConstantExpr(ir.AffineFloorDivExpr(exprs[axis]).rhs).value
