"""`pool_indices`: the maximum of each window and its position, tap after tap."""

from __future__ import annotations

import itertools

from mlir import ir
from mlir.dialects import arith

from mlc.passes.adaptor import OpAdaptor, Size, element
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition


@decomposition("mlc.pool_indices")
def pool_indices(op: OpAdaptor) -> list[ir.Value]:
    """Positions are offsets into the whole input with channels first; padding never wins, a NaN wins once and stays."""
    x, last = op.operand(0), op.text("layout", "nchw") == "nhwc"
    rank = x.type.rank
    if last:
        x = b.transpose(x, [0, rank - 1, *range(1, rank - 1)])
    best, where = _Windows(op, x).search()
    if not last:
        return [best, where]
    back = [0, *range(2, rank), 1]
    return [b.transpose(best, back), b.transpose(where, back)]


class _Windows:
    """The geometry of one `pool_indices`, channels first."""

    def __init__(self, op: OpAdaptor, x: ir.Value) -> None:
        self.x, self.unsigned = x, op.flag("unsigned")
        self.kernel, self.strides, self.dilations = (op.ints(n) for n in ("kernel", "strides", "dilations"))
        spatial = len(self.kernel)
        self.low, self.high = op.ints("padding")[:spatial], op.ints("padding")[spatial:]
        self.column_major = op.flag("column_major")
        self.extents = b.sizes(x)[2:]
        self.out = [self._out(i) for i in range(spatial)]

    def _out(self, i: int) -> Size:
        reach = (self.kernel[i] - 1) * self.dilations[i] + 1
        grown, stride = self.low[i] + self.high[i] - reach, self.strides[i]
        extent = self.extents[i]
        if isinstance(extent, int):
            return (extent + grown) // stride + 1
        total = arith.addi(extent, b.index(grown))
        return arith.addi(arith.floordivsi(total, b.index(stride)), b.index(1))

    def search(self) -> tuple[ir.Value, ir.Value]:
        rank = self.x.type.rank
        low = _lowest(element(self.x), self.unsigned)
        padded = self.x
        if any(self.low) or any(self.high):
            padded = b.pad(self.x, [0, 0, *self.low], [0, 0, *self.high], low)
        sizes = [*b.sizes(self.x)[:2], *self.out]
        best, where = b.broadcast(b.like(self.x, low), sizes), b.broadcast(b.scalar(-1, b.i64()), sizes)
        base = self._plane_offsets(rank)
        for taps in itertools.product(*(range(k) for k in self.kernel)):
            offsets = [0, 0, *(t * d for t, d in zip(taps, self.dilations, strict=True))]
            view = b.slice_(padded, offsets, sizes, [1, 1, *self.strides])
            position, inside = self._position(taps, base)
            better = b.binary("or", b.compare("lt", where, 0), self._beats(view, best))
            better = b.binary("and", better, inside)
            best, where = b.select(better, view, best), b.select(better, position, where)
        return best, where

    def _beats(self, view: ir.Value, best: ir.Value) -> ir.Value:
        greater = b.operation(
            "compare", [view, best], {"predicate": b.text("gt"), **b.unit(self.unsigned, "unsigned")}
        )[0]
        if not b.is_float(element(view)):
            return greater
        fresh = b.binary("and", b.unary("isnan", view), b.unary("not", b.unary("isnan", best)))
        return b.binary("or", greater, fresh)

    def _plane_offsets(self, rank: int) -> ir.Value:
        """Offset of the plane of each batch entry and channel, `[N, C, 1, …]`."""
        batch, channels = b.sizes(self.x)[:2]
        ones = [1] * (rank - 2)
        rows = b.mul(b.iota([batch, 1, *ones], 0, b.i64()), b.size_scalar(self.x, 1, b.i64()))
        planes = b.add(rows, b.iota([1, channels, *ones], 1, b.i64()))
        return b.mul(planes, b.count(self.x, range(2, rank), b.i64()))

    def _position(self, taps: tuple[int, ...], base: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Offset of the element under one tap of every window, and whether it is no padding."""
        rank = self.x.type.rank
        order = range(len(taps)) if self.column_major else reversed(range(len(taps)))
        total, inside, step = base, None, None
        for i in order:
            shape: list[Size] = [1] * rank
            shape[i + 2] = self.out[i]
            at = b.add(b.mul(b.iota(shape, i + 2, b.i64()), self.strides[i]), taps[i] * self.dilations[i] - self.low[i])
            extent = b.size_scalar(self.x, i + 2, b.i64())
            within = b.binary("and", b.compare("ge", at, 0), b.compare("lt", at, extent))
            inside = within if inside is None else b.binary("and", inside, within)
            total = b.add(total, at if step is None else b.mul(at, step))
            step = extent if step is None else b.mul(step, extent)
        assert inside is not None
        return total, inside


def _lowest(type_: ir.Type, unsigned: bool) -> float | int:
    if b.is_float(type_):
        return float("-inf")
    return 0 if unsigned else -(1 << (type_.width - 1))
