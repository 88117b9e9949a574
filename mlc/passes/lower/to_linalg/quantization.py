"""What is computed of a quantized weight where it is multiplied: codes out of words, and `dequantize`, one operation
with the blocks in its maps."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.streamed import STREAMED
from mlc.passes.lower.to_linalg import lowers, scalar
from mlc.passes.lower.to_linalg.builder import Source, dim, dims, indices, pointwise
from mlc.passes.lower.to_linalg.context import Lowering
from mlc.passes.lower.to_linalg.sizes import sizes_of


@lowers("mlc.dequantize")
def dequantize(op: Lowering) -> ir.Value:
    """`(codes - zero) * scale`, in blocks along an axis; the difference is taken in `i32`."""
    codes, axis, block = op.operand(0), op.int("axis", 0), op.int("block_size", 0)
    rank, unsigned = codes.type.rank, op.flag("unsigned")
    each = [dim(i) if i != axis else ir.AffineExpr.get_floor_div(dim(i), block) for i in range(rank)]
    parameters = [Source(v, each if v.type.rank else []) for v in list(op.op.operands)[1:]]
    wide, result = ir.IntegerType.get_signless(32), op.types[0].element_type

    def body(args: list[ir.Value]) -> ir.Value:
        value = scalar.convert(args[0], wide, unsigned_in=unsigned)
        if len(args) > 2:
            value = scalar.sub(value, scalar.convert(args[2], wide, unsigned_in=unsigned))
        return scalar.mul(scalar.convert(value, result), args[1])

    return _marked(pointwise(sizes_of(codes), result, [Source(codes, dims(rank)), *parameters], body))


@lowers("mlc.unpack")
def unpack(op: Lowering) -> ir.Value:
    """The bits of one byte of a word."""
    words, bits = op.operand(0), op.int("bits", 0)
    rank, [*outer, count, columns, _] = words.type.rank - 1, sizes_of(words)
    k, codes = dim(rank - 2), 32 // bits
    word, byte = ir.AffineExpr.get_floor_div(k, codes), ir.AffineExpr.get_mod(k, 4)
    byte_type = words.type.element_type

    def body(args: list[ir.Value]) -> ir.Value:
        place = indices(rank)[rank - 2]
        number = arith.remui(arith.divui(place, scalar.index(4)), scalar.index(8 // bits))
        shift = arith.index_cast(byte_type, arith.muli(number, scalar.index(bits)))
        return arith.andi(arith.shrui(args[0], shift), scalar.constant(byte_type, (1 << bits) - 1))

    depth = count * codes if isinstance(count, int) else arith.muli(count, scalar.index(codes))
    maps = [*dims(rank - 2), word, dim(rank - 1), byte]
    return _marked(pointwise([*outer, depth, columns], byte_type, [Source(words, maps)], body))


def _marked(value: ir.Value) -> ir.Value:
    """`value` as one that is computed where it is read."""
    value.owner.operation.attributes[STREAMED] = ir.UnitAttr.get()
    return value
