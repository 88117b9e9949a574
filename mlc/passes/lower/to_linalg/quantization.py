"""`dequantize` of a weight that is read where it is multiplied: one operation with the blocks in its maps."""

from __future__ import annotations

from mlir import ir

from mlc.passes.lower.to_linalg import lowers, scalar
from mlc.passes.lower.to_linalg.builder import Source, dim, dims, pointwise
from mlc.passes.lower.to_linalg.context import Lowering
from mlc.passes.lower.to_linalg.sizes import sizes_of


@lowers("mlc.dequantize")
def dequantize(op: Lowering) -> ir.Value:
    """`(codes - zero) * scale`, in blocks along an axis; the difference is taken in `i32`."""
    codes, axis, block = op.operand(0), op.int("axis", 0), op.int("block_size", 0)
    rank, unsigned = codes.type.rank, op.flag("unsigned")
    each = [dim(i) if i != axis else ir.AffineExpr.get_floor_div(dim(i), block) for i in range(rank)]
    parameters = [Source(v, each) for v in list(op.op.operands)[1:]]
    wide, result = ir.IntegerType.get_signless(32), op.types[0].element_type

    def body(args: list[ir.Value]) -> ir.Value:
        value = scalar.convert(args[0], wide, unsigned_in=unsigned)
        if len(args) > 2:
            value = scalar.sub(value, scalar.convert(args[2], wide, unsigned_in=unsigned))
        return scalar.mul(scalar.convert(value, result), args[1])

    return pointwise(sizes_of(codes), result, [Source(codes, dims(rank)), *parameters], body)
