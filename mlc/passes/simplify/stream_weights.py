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
`dequantize`, which stays whole, into its kernel. That of halves becomes one of f32, as all will (`mlc-widen-halves`).

Codes with scales in blocks are in words of 32 bits, which `mlc.unpack` takes apart, where words divide the blocks;
those of two and four bits stay so small. Where the product lets its other operand be rounded (`lhs_bits`) and the
target multiplies codes of so many bits (`codes`), that becomes codes, too, with a scale for each block of a row:
```mlir
%w = words of four bits : tensor<64x512x64x4xi8>
%u = mlc.unpack %w {bits = 4, mlc.streamed} : tensor<64x512x64x4xi8> -> tensor<64x4096x64xi8>
%b = mlc.dequantize %u, %t {axis = 1, block_size = 32, mlc.streamed} : … -> tensor<64x4096x64xf32>
%a = mlc.dequantize %c, %r {axis = 2, block_size = 32, mlc.streamed} : tensor<1x1x4096xi8>, tensor<1x1x128xf32> -> …
%1 = mlc.matmul %a, %b
```
"""

from __future__ import annotations

from typing import Any

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.streamed import STREAMED
from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, defining_op, element
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import replace
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.simplify.words import WORD, coded_rows, packed, unpacked
from mlc.passes.walk import functions, operations

_PANEL, _LEAST_PANEL = 64, 16  # columns that lie together; vectors of every target divide them
_VECTORS = (4, 2)  # of columns that lie together where codes are multiplied, and where floats are
_LEAST = 1 << 16  # elements of a weight that is worth it
_SHORTEST = 8  # elements of a block: shorter ones would have scales as large as the integers
_MULTIPLE = 16  # of elements of a block of codes that are multiplied: vectors of every target divide it
_LONGEST = 256  # elements of a block of codes that are multiplied: of longer ones rows lose more than weights do
_CODE = 8  # bits of a code by which rows are multiplied


class StreamWeights(Pass):
    """Products of floats with quantized weights scale the integers on the way."""

    dialects = ("mlc", "arith", "tensor")
    codes: int = 0
    "bits of the largest codes that the target multiplies by those of a row, faster than floats"
    lanes: int = 16
    "elements of 32 bits in a vector of the target"

    rows: int = 0
    "bits that all rows may be rounded to; 0: those of products that say so"

    statistics = {"streamed": "products that read integers as weights", "coded": "of these, products of integers"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            weights = WeightOnly()
            found = [op for op in operations(function) if _is_streamable(OpAdaptor(op), weights)]
            for inner in found:
                with ir.InsertionPoint(inner), inner.location:
                    product = _Product(OpAdaptor(inner), self)
                    replace(inner, [product.streamed()])
                    self.count("coded", int(product.is_coded))
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
    if not isinstance(element(op.operand(1)), ir.F32Type | ir.F16Type):
        return False
    if DYNAMIC in extents or extents[0] * extents[1] < _LEAST:
        return False
    return all(weights.has(v) for v in source.operands) and not weights.has(op.operand(0))


def _is_scaled_by_blocks(op: OpAdaptor, depth: int) -> bool:
    """Is there one scale for long blocks along dimension `depth` of the codes, which is summed over, if not for all?"""
    if op.operand(1).type.rank == 0 or list(op.operand(1).type.shape) == [1]:
        return True
    block = op.int("block_size", 0)
    return op.int("axis", 0) == depth and block >= _SHORTEST if block else op.int("axis", 0) != depth


class _Product:
    """A product of floats with a quantized weight, and what becomes of it by the pass `by`."""

    def __init__(self, op: OpAdaptor, by: StreamWeights) -> None:
        self.result, self.turned = element(op.operand(0)), op.flag("transpose_rhs")
        self.x = b.cast(op.operand(0), b.f32())
        self.source = OpAdaptor(op.operand(1).owner.operation)
        codes = self.source.operand(0)
        self.unsigned = self.source.flag("unsigned")
        self.depth, self.columns = codes.type.shape[int(self.turned)], codes.type.shape[1 - int(self.turned)]
        self.bits = self.source.int("bits", 0) or element(codes).width
        self.bits = next(bits for bits in (2, 4, 8) if bits >= self.bits)
        self.block = min(self.source.int("block_size", 0) or self.depth, self.depth)
        divides = self.depth % (WORD // self.bits) == 0 and self.block % (WORD // self.bits) == 0
        may_be_coded = (op.int("lhs_bits", 0) or by.rows) == _CODE and isinstance(element(self.x), ir.F32Type)
        self.is_coded = may_be_coded and self.bits <= by.codes and divides and self.depth % self.block == 0
        self.is_coded = self.is_coded and self.block % _MULTIPLE == 0 and self.block <= _LONGEST
        self.is_coded = self.is_coded and self.block < self.depth
        self.in_words = self.is_coded or divides and self.block < self.depth
        self.panel = _PANEL
        if self.in_words:
            self.panel = max(_LEAST_PANEL, by.lanes * _VECTORS[0 if self.is_coded and by.lanes > 8 else 1])

    def streamed(self) -> ir.Value:
        """The product that takes the place of this one."""
        panels = self._panels()
        rows = b.sizes(self.x)[:-1]
        count: Size = 1
        for size in rows:
            if isinstance(size, int) and isinstance(count, int):
                count = size * count
            else:
                count = arith.muli(b.index(count), b.index(size))
        product = b.matmul(self._rows(count), panels)
        width = panels.type.shape[0] * panels.type.shape[2]
        flat = b.reshape(b.transpose(product, [1, 0, 2]), [count, width])
        if width != self.columns:
            flat = b.slice_(flat, [0, 0], [count, self.columns])
        return b.cast(b.reshape(flat, [*rows, self.columns]), self.result)

    def _rows(self, count: Size) -> ir.Value:
        """The left operand as `[1, count, K]`, of codes where they are multiplied."""
        if not self.is_coded:
            return b.reshape(self.x, [1, count, self.depth])
        attributes = {"axis": b.integer(2), "block_size": b.integer(self.block), STREAMED: ir.UnitAttr.get()}
        return b.operation("dequantize", coded_rows(self.x, [1, count], self.block), attributes)[0]

    def _panels(self) -> ir.Value:
        """The weight as panels `[panels, K, columns of a panel]`."""
        codes, zero = self.source.operand(0), self.source.trailing(2)
        scale = b.cast(self.source.operand(1), b.f32())
        i8, unsigned = ir.IntegerType.get_signless(8), self.unsigned
        codes = b.cast(codes, i8, unsigned_in=unsigned)
        zero = None if zero is None else b.cast(zero, i8, unsigned_in=unsigned)
        if self.in_words and not unsigned:  # codes in words have no sign
            half = 1 << (self.bits - 1)
            codes, unsigned = b.add(codes, half), True
            zero = b.scalar(half, i8) if zero is None else b.add(zero, half)
        codes = self._in_panels(codes)
        if self.in_words:
            codes = unpacked(packed(codes, self.bits), self.bits, {STREAMED: ir.UnitAttr.get()})
        parameters = [self._in_panels(self._by_row(scale))]
        if zero is not None:
            parameters.append(zero if zero.type.rank == 0 else self._in_panels(self._by_row(zero)))
        steps = max(v.type.shape[1] for v in parameters if v.type.rank)
        for number, value in enumerate(parameters):
            if value.type.rank and value.type.shape[1] < steps:
                parameters[number] = b.broadcast(value, [value.type.shape[0], steps, value.type.shape[2]])
        block = self.block if self.source.int("block_size", 0) and steps > 1 else -(-self.depth // steps)
        attributes = {"axis": b.integer(1), "block_size": b.integer(block), STREAMED: ir.UnitAttr.get()}
        attributes |= b.unit(unsigned, "unsigned")
        return b.operation("dequantize", [codes, *parameters], attributes)[0]

    def _by_row(self, parameter: ir.Value) -> ir.Value:
        """A scale or zero point as a matrix with a line for every block of rows, in the order of the codes."""
        if parameter.type.rank == 2:
            return parameter
        if parameter.type.rank and parameter.type.shape[0] != 1:
            return b.channelwise(parameter, 2, self.source.int("axis", 0))
        shape = [self.columns, 1] if self.turned else [1, self.columns]
        return b.broadcast(b.reshape(parameter, [1, 1]), shape)

    def _in_panels(self, value: ir.Value) -> ir.Value:
        """A matrix `[K, N]`, or `[N, K]` when it is turned, as `[panels, K, columns of a panel]`."""
        if self.turned:
            value = b.transpose(value, [1, 0])
        depth, columns = value.type.shape
        panel = min(self.panel, -(-columns // _LEAST_PANEL) * _LEAST_PANEL)
        missing = -columns % panel
        if missing:
            value = b.pad(value, [0, 0], [0, missing])
        split = b.reshape(value, [depth, (columns + missing) // panel, panel])
        return b.transpose(split, [1, 0, 2])
