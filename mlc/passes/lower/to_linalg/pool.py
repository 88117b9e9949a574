"""`pool`: a reduction over window taps of the explicitly padded input; `avg` divides by a count that follows from the
coordinates."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlc.dialects import linalg
from mlc.passes.adaptor import Size, element
from mlc.passes.lower.to_linalg import lowers, scalar
from mlc.passes.lower.to_linalg.builder import Source, dim, dims, filled, generic, pointwise, size_value
from mlc.passes.lower.to_linalg.context import Lowering
from mlc.passes.lower.to_linalg.reduction import combiner, start_value
from mlc.passes.lower.to_linalg.sizes import extent, plus, sizes_of
from mlc.passes.lower.to_linalg.windows import Layout, padded, window


@lowers("mlc.pool")
def pool(op: Lowering) -> ir.Value:
    """Iteration space: the result's dimensions, then the taps, whose extents an unread operand carries."""
    value, kind = op.operand(0), op.text()
    layout = Layout(value.type.rank, op.text("layout", "nchw") == "nhwc")
    unsigned, result = op.flag("unsigned"), op.types[0].element_type
    reduction = "max" if kind == "max" else "sum"
    accumulator = scalar.compute_type(element(value))
    start = start_value(reduction, accumulator, unsigned)
    fill = start_value(reduction, element(value), unsigned)
    source = padded(value, layout.spatial, op.ints("padding"), fill)
    kernel, strides, dilations = op.ints("kernel"), op.ints("strides"), op.ints("dilations")
    rank, sizes, combine = layout.rank, op.sizes(), combiner(reduction, unsigned)
    exprs = dims(rank)
    for i, position in enumerate(layout.spatial):
        exprs[position] = window(position, rank + i, strides[i], dilations[i])
    pooled = generic(
        [filled(sizes, accumulator, start)],
        [dims(rank)],
        "p" * rank + "r" * len(kernel),
        [Source(source, exprs)],
        lambda args: combine(args[1], scalar.widen(args[0])),
        window=(kernel, [dim(rank + i) for i in range(len(kernel))]),
    )[0]
    return _finished(op, layout, pooled, result, kind == "avg")


def _finished(op: Lowering, layout: Layout, pooled: ir.Value, result: ir.Type, average: bool) -> ir.Value:
    if not average:
        if element(pooled) == result:
            return pooled
        return pointwise(
            sizes_of(pooled), result, [Source(pooled, dims(layout.rank))], lambda a: scalar.narrow(a[0], result)
        )
    limits = _Counter(op, layout)

    def body(args: list[ir.Value]) -> ir.Value:
        total, count = args[0], limits.count()
        if not scalar.is_float(total.type):
            return arith.divsi(total, scalar.convert(arith.index_cast(ir.IntegerType.get_signless(64), count), result))
        divisor = arith.sitofp(total.type, arith.index_cast(ir.IntegerType.get_signless(64), count))
        return scalar.narrow(arith.divf(total, divisor), result)

    return pointwise(sizes_of(pooled), result, [Source(pooled, dims(layout.rank))], body)


class _Counter:
    """How many elements a window counts: taps `t` with `first <= o * stride + t * dilation < limit`, multiplied over
    the dimensions (coordinates of the padded input)."""

    def __init__(self, op: Lowering, layout: Layout) -> None:
        self.op, self.layout = op, layout
        spatial = len(layout.spatial)
        self.low, high = op.ints("padding")[:spatial], op.ints("padding")[spatial:]
        extra = op.ints("ceil_extra") if op.has("ceil_extra") else [0] * spatial
        self.include = op.flag("count_include_pad")
        self.partial = [bool(extra[i]) or (not self.include and bool(self.low[i] or high[i])) for i in range(spatial)]
        self.limits: list[ir.Value] = []
        for i, position in enumerate(layout.spatial):
            limit: Size = plus(extent(op.operand(0), position), self.low[i])
            if self.include:
                limit = plus(limit, high[i] - extra[i])
            self.limits.append(size_value(limit) if self.partial[i] else None)

    def count(self) -> ir.Value:
        """The count at the iteration point, an `index`."""
        total = None
        for i in range(len(self.partial)):
            factor = self._taps(i) if self.partial[i] else scalar.index(self.op.ints("kernel")[i])
            total = factor if total is None else arith.muli(total, factor)
        assert total is not None
        return total

    def _taps(self, i: int) -> ir.Value:
        kernel, stride, dilation = (self.op.ints(n)[i] for n in ("kernel", "strides", "dilations"))
        start = arith.muli(linalg.IndexOp(self.layout.spatial[i]).result, scalar.index(stride))
        end = _ceil_div(arith.subi(self.limits[i], start), dilation)
        end = arith.minsi(end, scalar.index(kernel))
        if self.include or not self.low[i]:
            return end
        first = arith.maxsi(_ceil_div(arith.subi(scalar.index(self.low[i]), start), dilation), scalar.index(0))
        return arith.subi(end, first)


def _ceil_div(value: ir.Value, divisor: int) -> ir.Value:
    """For positive results; negative ones only keep their sign."""
    if divisor == 1:
        return value
    return arith.divsi(arith.addi(value, scalar.index(divisor - 1)), scalar.index(divisor))
