"""Operands of contractions that are integers of eight bits in disguise: `(codes - zero) * scale`.

They come as `mlc.dequantize` (the model quantizes, multiplies in floats and quantizes again) or, without a scale, as
`cast(codes) - zero` in 32 bits (operators that give the sums of products themselves).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, TRANSPOSED, OpAdaptor, defining_op, element, lies_along_sum, splat_number
from mlc.passes.decompose import build as b

PLANNED = "mlc.integers"
"""Attribute of a contraction that is to multiply codes: decided by `mlc-plan-integers`."""

OWN_SIGNS = "mlc.own_signs"
"""Attribute of such a contraction for instructions that take operands with and without signs."""


@dataclass(frozen=True)
class Codes:
    """`(values - zero) * scale`, with `values` of eight bits; no zero point is zero, no scale is one.

    Parameters have rank 0, or run along `axis`, or (`axis` is None) broadcast to `values` as they are.
    """

    values: ir.Value
    unsigned: bool
    zero: ir.Value | None
    scale: ir.Value | None
    axis: int | None

    @property
    def rank(self) -> int:
        return self.values.type.rank

    def zero_point(self) -> ir.Value | None:
        """The zero point in 32 bits, of a shape that broadcasts to the codes."""
        if self.zero is None:
            return None
        i32, known = ir.IntegerType.get_signless(32), splat_number(self.zero)
        if known is not None:
            narrow = self.unsigned and element(self.zero) != i32
            return b.scalar(int(known) % 256 if narrow else int(known), i32)
        return self._spread(b.cast(self.zero, i32, unsigned_in=self.unsigned))

    def factor(self) -> ir.Value | None:
        """The scale, of a shape that broadcasts to the codes."""
        return None if self.scale is None else self._spread(self.scale)

    def _spread(self, parameter: ir.Value) -> ir.Value:
        if self.axis is None or parameter.type.rank != 1 or self.rank == 1:
            return parameter
        return b.channelwise(parameter, self.rank, self.axis)

    def varies_along(self, dims: Sequence[int]) -> str | None:
        """Which parameter has more than one value along the dimensions `dims` of the codes, if any."""
        for name, parameter in (("zero point", self.zero), ("scale", self.scale)):
            if parameter is not None and any(self._extent(parameter, d) != 1 for d in dims):
                return name
        return None

    def _extent(self, parameter: ir.Value, dim: int) -> int:
        shape = list(parameter.type.shape)
        if self.axis is not None and len(shape) == 1:
            return shape[0] if dim == self.axis else 1
        at = dim - (self.rank - len(shape))
        return shape[at] if at >= 0 else 1


def read_codes(value: ir.Value) -> Codes | str | None:
    """What an operand stands for; None when it was never quantized, a reason when its form does not suit."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "mlc.dequantize":
        return _dequantized(OpAdaptor(op))
    return _shifted(op)


def _dequantized(op: OpAdaptor) -> Codes | str | None:
    values, scale, zero = op.operand(0), op.operand(1), op.trailing(2)
    type_ = element(values)
    if not isinstance(type_, ir.IntegerType):
        return None
    if type_.width != 8:
        return f"its codes have {type_.width} bits"
    if not isinstance(op.types[0].element_type, ir.F32Type):
        return f"it is dequantized to {op.types[0].element_type}"
    if op.int("block_size", 0):
        return "its scales are those of blocks"
    return Codes(values, op.flag("unsigned"), zero, scale, op.int("axis", 0))


def _shifted(op: ir.Operation) -> Codes | None:
    """`cast(codes)` or `cast(codes) - zero`."""
    zero = None
    if op.name == "mlc.binary" and OpAdaptor(op).text() == "sub":
        zero, wide = op.operands[1], op.operands[0]
        inner = defining_op(wide)
        if inner is None or wide.type != op.results[0].type:
            return None
        op = inner
    if op.name != "mlc.cast":
        return None
    types = [element(op.results[0]), element(op.operands[0])]
    if [t.width if isinstance(t, ir.IntegerType) else 0 for t in types] != [32, 8]:
        return None
    return Codes(op.operands[0], OpAdaptor(op).flag("unsigned_in"), zero, None, None)


def reduced_dims(op: OpAdaptor, number: int) -> list[int]:
    """The dimensions of operand `number` of a `matmul` that are summed over; of a `conv`, those along which a parameter
    may not change."""
    rank = op.operand(number).type.rank
    if op.name == "mlc.matmul":
        return [rank - 1 if lies_along_sum(op.op, number) else rank - 2]
    return list(range(rank)) if number == 0 else list(range(1, rank))


def terms(op: OpAdaptor) -> int | None:
    """How many products a contraction sums; None when that is known at run time only."""
    shape = op.operand(1).type.shape
    count = 1
    for dim in reduced_dims(op, 1):
        if shape[dim] == DYNAMIC:
            return None
        count *= shape[dim]
    return count


def turned(op: OpAdaptor, number: int, value: ir.Value) -> ir.Value:
    """What has the dimensions of a matrix of the `matmul` `op`, as the product sees it."""
    if not op.flag(TRANSPOSED[number]) or value.type.rank < 1:
        return value
    if value.type.rank == 1:
        value = b.expand_dims(value, [0])
    return b.transpose_matrices(value)
