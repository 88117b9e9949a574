"""Pools that read an image without its padding: what `loops` does at windows that reach into it.

Where the padding is what the reduction starts with (the least number in front of a maximum, 0 in front of a sum), taps
in it change nothing and are left out. There are two versions of the taps: all of them, with bounds that are known, for
windows that lie inside, and loops with tighter bounds for those at the edges. The points of the windows lie outside of
the vector loop (channels last), so that a vector is in one of the two with all of its lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.evaluate import Evaluator, Hook, iteration_coords
from mlc.kernels.common.frame import defining_op, if_values
from mlc.kernels.common.generics import is_identity, is_reduction, only_operation, operand_map, starts_at
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.padding import Padding, padding_of
from mlc.kernels.common.reduce import combiner, nest, reduce_at, reduction_extents
from mlc.kernels.cpu import bf16_order
from mlc.kernels.cpu.padding import Window, taps_inside, windows_of

_WIDENS = "arith.extf"


@dataclass(frozen=True)
class PaddedPool:
    """A reduction over windows of its first operand, which is the padded `padding.source`."""

    reduction: ir.Operation
    padding: Padding
    windows: tuple[Window, ...]


def padded_pool(op: ir.Operation) -> PaddedPool | None:
    """The pool that `op` computes of a padded image, channels last; None for everything else."""
    if op.name != "linalg.generic" or len(op.results) != 1 or not is_reduction(op):
        return None
    producer = defining_op(op.operands[0])
    padding = None if producer is None else padding_of(producer)
    if padding is None or not _is_neutral(padding, op):
        return None
    iterators = [str(t) for t in op.attributes["iterator_types"]]
    exprs, last = list(operand_map(op, 0).results), padding.source.type.rank - 1
    is_along_channels = isinstance(exprs[last], ir.AffineDimExpr) and "reduction" not in iterators[exprs[last].position]
    windows = windows_of(padding, exprs, iterators)
    if windows is None or last in padding.dims or padding.low[last] != 0 or not is_along_channels:
        return None
    if padding.source.type.shape[last] == 1:  # the vectors are along lines, and reach into the padding
        return None
    return PaddedPool(op, padding, tuple(windows))


def _is_neutral(padding: Padding, op: ir.Operation) -> bool:
    """Does the reduction `op` combine the elements of its first operand as they are, or widened, and is that of the
    padding without effect?"""
    combine, block = combiner(op), op.regions[0].blocks[0]
    element, *others, _ = block.arguments
    names = [inner.operation.name for inner in block.operations]
    if combine is None or any(name not in (_WIDENS, combine.op, "linalg.yield") for name in names):
        return False
    is_read = any(True for _ in element.uses) and not any(True for other in others for _ in other.uses)
    return is_read and len(names) <= 3 and padding.value.value == combine.identity


def narrow_source(pool: PaddedPool) -> ir.Value | None:
    """The image of bf16 whose widened elements the pool takes the largest of; None for other pools."""
    op, source = pool.reduction, pool.padding.source
    combine = combiner(op)
    if combine is None or combine.op != "arith.maximumf" or not starts_at(op, float("-inf")):
        return None
    widen = defining_op(source)
    if widen is not None and only_operation(widen, _WIDENS) and is_identity(widen, 0) and is_identity(widen, 1):
        source = widen.operands[0]
    is_f32 = isinstance(op.results[0].type.element_type, ir.F32Type)
    return source if is_f32 and isinstance(source.type.element_type, ir.BF16Type) else None


def pooling(pool: PaddedPool) -> Hook:
    """Computes the pool at a point in place of the evaluator."""

    def hook(ev: Evaluator, coords: Sequence[Idx]) -> ir.Value:
        rank = len(pool.reduction.attributes["iterator_types"])
        dims = iteration_coords(pool.reduction, 0, coords, rank)
        points = [dims[w.point] for w in pool.windows]
        if any(point is None or not point.uniform for point in points):
            return ev.compute(pool.reduction.results[0], coords)
        return _Pooled(ev, pool, coords, [point.base for point in points if point is not None]).value()

    return hook


class _Pooled:
    """A pool at `coords`, where `points` are the coordinates of its windows."""

    def __init__(self, ev: Evaluator, pool: PaddedPool, coords: Sequence[Idx], points: Sequence[Scalar]) -> None:
        self.ev, self.pool, self.coords = ev, pool, coords
        self.windows = list(zip(pool.windows, points, strict=True))
        self.taps = reduction_extents(ev.frame, pool.reduction)

    def value(self) -> ir.Value:
        inside = self._inside()
        every: dict[int, tuple[Scalar, Scalar]] = {w.tap: (0, self.taps[w.tap]) for w, _ in self.windows}
        if inside is None:
            return self._reduced(every)
        type_ = self.pool.reduction.results[0].type.element_type
        if not all(c.uniform for c in self.coords):
            type_ = ir.VectorType.get([self.ev.lanes], type_)
        [value] = if_values(inside, [type_], lambda: [self._reduced(every)], lambda: [self._reduced(self._ranges())])
        return value

    def _reduced(self, ranges: dict[int, tuple[Scalar, Scalar]]) -> ir.Value:
        """The taps of `ranges`, read from the image itself."""
        pool, ev = self.pool, self.ev
        narrow = narrow_source(pool)
        if narrow is not None:
            return self._largest(narrow, ranges)

        def read(scope: Evaluator, coords: Sequence[Idx]) -> ir.Value:
            inner = [scope.idx.add(at, Idx(-low)) for at, low in zip(coords, pool.padding.low, strict=True)]
            return scope.tensor(pool.padding.source, inner)

        hooks = {**ev.hooks, pool.reduction.operands[0]: read}
        scope = Evaluator(ev.frame, ev.lanes, ev.mask, parent=ev, hooks=hooks)
        return reduce_at(scope, pool.reduction, self.coords, ranges)[0]

    def _largest(self, image: ir.Value, ranges: dict[int, tuple[Scalar, Scalar]]) -> ir.Value:
        """The largest number of bf16 among the taps, widened."""
        ev, op = self.ev, self.pool.reduction
        scope = ev.child(mask=ev.mask) if any(not c.uniform for c in self.coords) else ev.child(lanes=1)
        rank = len(op.attributes["iterator_types"])
        point = [d if d is not None else Idx(0) for d in iteration_coords(op, 0, self.coords, rank)]
        start = scope.splat(ev.frame.constants.get(ir.IntegerType.get_signless(16), bf16_order.LEAST))

        def larger(inner: Evaluator, op: ir.Operation, dims: list[Idx], largest: Sequence[ir.Value]) -> list[ir.Value]:
            at = [inner.idx.affine(e, dims) for e in operand_map(op, 0).results]
            coords = [inner.idx.add(c, Idx(-low)) for c, low in zip(at, self.pool.padding.low, strict=True)]
            return [arith.maxsi(largest[0], bf16_order.to_integers(inner, inner.tensor(image, coords)))]

        loops = {dim: (0, extent) for dim, extent in self.taps.items()} | ranges
        [found] = nest(scope, op, point, list(loops.items()), [start], larger)
        element = ir.BF16Type.get()
        narrow = element if scope.lanes == 1 else ir.VectorType.get([scope.lanes], element)
        wide = ir.F32Type.get() if scope.lanes == 1 else ir.VectorType.get([scope.lanes], ir.F32Type.get())
        return arith.extf(wide, bf16_order.from_integers(scope, found, narrow))

    def _ranges(self) -> dict[int, tuple[Scalar, Scalar]]:
        """The taps that are inside of the image."""
        math = self.ev.frame.math
        return {w.tap: taps_inside(math, w, at, self._source(w), self.taps[w.tap]) for w, at in self.windows}

    def _source(self, window: Window) -> Scalar:
        return self.ev.frame.extent(self.pool.padding.source, window.axis)

    def _inside(self) -> ir.Value | None:
        """Are all taps inside? None where that is certain."""
        math, c, found = self.ev.frame.math, self.ev.frame.constants, None
        for window, point in self.windows:
            first = math.sub(math.mul(point, window.stride), window.low)
            reach = math.mul(math.sub(self.taps[window.tap], 1), window.dilation)
            room = math.sub(self._source(window), reach)
            tests = [(arith.CmpIPredicate.slt, first, room)] if self._may_reach_past(window) else []
            if window.low > 0:
                tests.append((arith.CmpIPredicate.sge, first, 0))
            for predicate, a, b in tests:
                test = arith.cmpi(predicate, c.index(a), c.index(b))
                found = test if found is None else arith.andi(found, test)
        return found

    def _may_reach_past(self, window: Window) -> bool:
        """May a window lie beyond the end of the image?"""
        points = self.ev.frame.extent(self.pool.reduction.results[0], self._axis_of(window.point))
        source, taps = self._source(window), self.taps[window.tap]
        if not (isinstance(points, int) and isinstance(source, int) and isinstance(taps, int)):
            return True
        return (points - 1) * window.stride - window.low + (taps - 1) * window.dilation >= source

    def _axis_of(self, dim: int) -> int:
        """The dimension of the result that is the iteration dimension `dim`."""
        exprs = list(operand_map(self.pool.reduction, len(self.pool.reduction.operands) - 1).results)
        return next(i for i, e in enumerate(exprs) if isinstance(e, ir.AffineDimExpr) and e.position == dim)
