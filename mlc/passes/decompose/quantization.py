"""`quantize` and `dequantize`: per tensor, per axis or in blocks along an axis; codes out of words."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlc.passes.adaptor import OpAdaptor, element, splat_number
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition


@decomposition("mlc.quantize")
def quantize(op: OpAdaptor) -> ir.Value:
    """`saturate(round(x / scale) + zero_point)`; a zero point of a narrow integer type is exact in `f32`. Results of a
    narrow float type are not rounded to integers first."""
    x, scale, zero = op.operand(0), op.operand(1), op.trailing(2)
    result, unsigned = op.types[0].element_type, op.flag("unsigned")
    compute = b.wide_type(element(scale))
    ratio = b.cast(x, compute)
    if splat_number(scale) != 1:
        ratio = b.div(ratio, _spread(op, x, b.cast(scale, compute)))
    value = ratio if b.is_float(result) else b.unary("round", ratio)
    if zero is not None:
        value = b.add(value, _spread(op, x, b.cast(zero, compute, unsigned_in=unsigned)))
    return b.cast(value, result, unsigned_out=unsigned, saturate=True)


@decomposition("mlc.dequantize")
def dequantize(op: OpAdaptor) -> ir.Value:
    """`(x - zero_point) * scale`; the difference is taken in `i32`, where it is exact."""
    x, scale, zero = op.operand(0), op.operand(1), op.trailing(2)
    result, unsigned = op.types[0].element_type, op.flag("unsigned")
    compute = b.wide_type(result)
    if zero is None:
        value = b.cast(x, compute, unsigned_in=unsigned)
    elif b.is_float(element(x)):
        value = b.sub(b.cast(x, compute), _spread(op, x, b.cast(zero, compute)))
    else:
        i32 = ir.IntegerType.get_signless(32)
        wide = i32 if element(x).width < 32 else b.i64()
        whole = b.cast(x, wide, unsigned_in=unsigned)
        value = b.cast(b.sub(whole, _spread(op, x, b.cast(zero, wide, unsigned_in=unsigned))), compute)
    return b.cast(b.mul(value, _spread(op, x, b.cast(scale, compute))), result)


@decomposition("mlc.unpack")
def unpack(op: OpAdaptor) -> ir.Value:
    """Each shift gives the codes of four adjacent places of a word."""
    words, bits = op.operand(0), op.int("bits", 0)
    *outer, count, columns, size = b.sizes(words)
    codes = []
    for shift in range(0, 8, bits):
        moved = b.binary("shr", words, shift, unsigned=True) if shift else words
        code = b.binary("and", moved, (1 << bits) - 1) if bits < 8 else moved
        codes.append(b.reshape(code, [*outer, count, 1, columns, size]))
    rank = len(outer) + 4
    order = [*range(rank - 2), rank - 1, rank - 2]  # [..., words, shift, byte, columns]
    each = 32 // bits
    depth = count * each if isinstance(count, int) else arith.muli(b.index(count), b.index(each))
    return b.reshape(b.transpose(b.concat(codes, rank - 3), order), [*outer, depth, columns])


def _spread(op: OpAdaptor, x: ir.Value, parameter: ir.Value) -> ir.Value:
    """A scale or zero point shaped to broadcast to the input."""
    rank, axis, block = x.type.rank, op.int("axis", 0), op.int("block_size", 0)
    if parameter.type.rank == 0:
        return parameter
    if list(parameter.type.shape) == [1] * parameter.type.rank:
        return b.reshape(parameter, [])
    if not block:
        return b.channelwise(parameter, rank, axis) if rank > 1 else parameter
    # Every element of a block reads its block's parameter: a gather of position // block.
    positions = b.div(b.arange(b.size(x, axis), b.i64()), block)
    return b.gather(parameter, positions, axis, in_range=True)
