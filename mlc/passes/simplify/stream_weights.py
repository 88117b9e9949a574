"""Pass `mlc-stream-weights`: products of floats with quantized weights read the integers and scale them on the way.

```mlir
%b = mlc.dequantize %w, %s {axis = 0, block_size = 32} : tensor<4096x4096xi8>, tensor<128x4096xf32> -> …
%0 = mlc.matmul %x, %b : tensor<1x4096xf32>, tensor<4096x4096xf32> -> tensor<1x4096xf32>
// becomes
%p = %w as panels of columns : tensor<64x4096x64xi8>
%b = mlc.dequantize %p, %t {axis = 1, block_size = 32, mlc.streamed} : … -> tensor<64x4096x64xf32>
%1 = mlc.matmul %x', %b : tensor<1x1x4096xf32>, tensor<64x4096x64xf32> -> tensor<64x1x64xf32>
%0 = the panels side by side
```
Otherwise the weight would be dequantized when the model is compiled, and be four times as large in the file and in what
every product reads: products of few rows take as long as reading their weights does. The product takes the
`dequantize`, which stays whole, into its kernel. Codes of four bits are stored as eight.
"""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import arith

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, defining_op, element
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import replace
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

STREAMED = "mlc.streamed"
"""Attribute of a `dequantize` of a weight that is computed where it is read, every time."""

_PANEL = 64  # columns that lie together; vectors of every target divide it
_LEAST = 1 << 16  # elements of a weight that is worth it
_SHORTEST = 8  # elements of a block: shorter ones would have scales as large as the integers


class StreamWeights(Pass):
    """Products of floats with quantized weights scale the integers on the way."""

    dialects = ("mlc", "arith", "tensor")
    statistics = {"streamed": "products that read integers as weights"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            weights = WeightOnly()
            found = [op for op in operations(function) if _is_streamable(OpAdaptor(op), weights)]
            for inner in found:
                with ir.InsertionPoint(inner), inner.location:
                    replace(inner, [_streamed(OpAdaptor(inner))])
            self.count("streamed", len(found))


def _is_streamable(op: OpAdaptor, weights: WeightOnly) -> bool:
    if op.name != "mlc.matmul":
        return False
    source = defining_op(op.operand(1))
    if source is None or source.name != "mlc.dequantize" or STREAMED in source.attributes or op.flag("transpose_lhs"):
        return False
    codes, type_ = source.operands[0], element(source.operands[0])
    if not isinstance(type_, ir.IntegerType) or type_.width > 8 or codes.type.rank != 2:
        return False
    extents = list(codes.type.shape)
    if not _is_scaled_by_blocks(OpAdaptor(source), int(op.flag("transpose_rhs"))):
        return False
    if not isinstance(element(op.operand(1)), ir.F32Type) or DYNAMIC in extents or extents[0] * extents[1] < _LEAST:
        return False
    return all(weights.has(v) for v in source.operands) and not weights.has(op.operand(0))


def _is_scaled_by_blocks(op: OpAdaptor, depth: int) -> bool:
    """Is there one scale for long blocks along dimension `depth` of the codes, which is summed over, if not for all?"""
    if op.operand(1).type.rank == 0 or list(op.operand(1).type.shape) == [1]:
        return True
    block = op.int("block_size", 0)
    return op.int("axis", 0) == depth and block >= _SHORTEST if block else op.int("axis", 0) != depth


def _streamed(op: OpAdaptor) -> ir.Value:
    x = op.operand(0)
    panels, columns = _panels(op)
    rows = b.sizes(x)[:-1]
    count: Size = 1
    for size in rows:
        if isinstance(size, int) and isinstance(count, int):
            count = size * count
        else:
            count = arith.muli(b.index(count), b.index(size))
    product = b.matmul(b.reshape(x, [1, count, x.type.shape[-1]]), panels)
    width = panels.type.shape[0] * panels.type.shape[2]
    flat = b.reshape(b.transpose(product, [1, 0, 2]), [count, width])
    if width != columns:
        flat = b.slice_(flat, [0, 0], [count, columns])
    return b.reshape(flat, [*rows, columns])


def _panels(op: OpAdaptor) -> tuple[ir.Value, int]:
    """The weight as panels `[panels, K, columns of a panel]`, and the number of its columns."""
    source = OpAdaptor(op.operand(1).owner.operation)
    codes, scale, zero = source.operand(0), source.operand(1), source.trailing(2)
    turned, unsigned = op.flag("transpose_rhs"), source.flag("unsigned")
    depth, columns = codes.type.shape[int(turned)], codes.type.shape[1 - int(turned)]
    i8 = ir.IntegerType.get_signless(8)
    inputs = [_in_panels(b.cast(codes, i8, unsigned_in=unsigned), turned)]
    for parameter in (scale, zero):
        if parameter is not None:
            own = b.cast(parameter, i8, unsigned_in=unsigned) if parameter is zero else parameter
            inputs.append(_in_panels(_by_row(source, own, turned, columns), turned))
    steps = max(v.type.shape[1] for v in inputs[1:])
    for number, value in enumerate(inputs):
        if number and value.type.shape[1] < steps:
            inputs[number] = b.broadcast(value, [value.type.shape[0], steps, value.type.shape[2]])
    block = source.int("block_size", 0) if source.int("block_size", 0) and steps > 1 else -(-depth // steps)
    attributes = {"axis": b.integer(1), "block_size": b.integer(block), STREAMED: ir.UnitAttr.get()}
    return b.operation("dequantize", inputs, {**attributes, **b.unit(unsigned, "unsigned")})[0], columns


def _by_row(op: OpAdaptor, parameter: ir.Value, turned: bool, columns: int) -> ir.Value:
    """A scale or zero point as a matrix with a line for every block of rows, in the order of the codes."""
    if parameter.type.rank == 2:
        return parameter
    if parameter.type.rank and parameter.type.shape[0] != 1:
        return b.channelwise(parameter, 2, op.int("axis", 0))
    return b.broadcast(b.reshape(parameter, [1, 1]), [columns, 1] if turned else [1, columns])


def _in_panels(value: ir.Value, turned: bool) -> ir.Value:
    """A matrix `[K, N]`, or `[N, K]` when it is `turned`, as `[panels, K, columns of a panel]`."""
    if turned:
        value = b.transpose(value, [1, 0])
    depth, columns = value.type.shape
    panel = min(_PANEL, -(-columns // 16) * 16)
    missing = -columns % panel
    if missing:
        value = b.pad(value, [0, 0], [0, missing])
    split = b.reshape(value, [depth, (columns + missing) // panel, panel])
    return b.transpose(split, [1, 0, 2])
