"""Reductions at a point: the loops of one `linalg.generic` with reduction iterators.

Three ways, chosen by what is known: accumulators per lane when the point itself is a vector; vector accumulators along
the innermost reduction dimension, combined at the end, when that dimension is contiguous in an input and the combiner
is a plain associative one or finds a position (`positions`); a scalar loop otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory, peepholes
from mlc.kernels.common.frame import Frame, defining_op, for_loop
from mlc.kernels.common.fusion import is_expensive
from mlc.kernels.common.generics import is_reduction
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.positions import Position, finds_position, masked

if TYPE_CHECKING:
    from mlc.kernels.common.evaluate import Early, Evaluator

_COMBINERS: dict[str, tuple[str, float | int | str]] = {
    "arith.addf": ("add", 0.0),
    "arith.mulf": ("mul", 1.0),
    "arith.maximumf": ("maximumf", float("-inf")),
    "arith.minimumf": ("minimumf", float("inf")),
    "arith.maxnumf": ("maxnumf", float("-inf")),
    "arith.minnumf": ("minnumf", float("inf")),
    "arith.addi": ("add", 0),
    "arith.muli": ("mul", 1),
    "arith.maxsi": ("maxsi", "min"),
    "arith.minsi": ("minsi", "max"),
    "arith.maxui": ("maxui", 0),
    "arith.minui": ("minui", -1),
    "arith.andi": ("and", -1),
    "arith.ori": ("or", 0),
}
WIDE = 64  # lanes of several registers: a stretch of every line of the input is read
AHEAD = 8  # lines before their use such stretches are fetched: the hardware does not foresee where lines go on
UNROLL = 4  # vectors of a row at a time; as many independent accumulators hide the latency of what combines them


@dataclass(frozen=True)
class Combiner:
    """`acc' = op(acc, f(inputs))` with an associative op."""

    op: str
    kind: str
    identity: float | int


def combiner(generic: ir.Operation) -> Combiner | None:
    """The combiner of a one-result reduction, or None when its body has another form."""
    if len(generic.results) != 1:
        return None
    block = generic.regions[0].blocks[0]
    accumulator = block.arguments[len(block.arguments) - 1]
    uses = [u.owner.operation for u in accumulator.uses]
    last = block.operations[len(block.operations) - 1].operation
    op = defining_op(last.operands[0])
    if op is None or op.name not in _COMBINERS or len(uses) != 1 or uses[0] != op:
        return None
    kind, identity = _COMBINERS[op.name]
    if isinstance(identity, str):
        width = ir.IntegerType(accumulator.type).width
        identity = -(1 << (width - 1)) if identity == "min" else (1 << (width - 1)) - 1
    return Combiner(op.name, kind, identity)


def reduction_extents(frame: Frame, generic: ir.Operation) -> dict[int, Scalar]:
    """Extents of the reduction dimensions, by iteration dimension."""
    from mlc.kernels.common.generics import operand_map, reduced_loops

    wanted = reduced_loops(generic)
    extents: dict[int, Scalar] = {}
    for operand in range(len(generic.operands)):
        for position, expr in enumerate(operand_map(generic, operand).results):
            if isinstance(expr, ir.AffineDimExpr) and expr.position in wanted and expr.position not in extents:
                extents[expr.position] = frame.extent(generic.operands[operand], position)
    missing = [d for d in wanted if d not in extents]
    if missing:
        raise ValueError(f"kernel {frame.name}: extents of reduction dimensions {missing} cannot be derived")
    return {d: extents[d] for d in wanted}


def lane_dim(generic: ir.Operation) -> int | None:
    """The innermost reduction dimension when an input is contiguous along it, else None."""
    from mlc.kernels.common.generics import operand_map, reduced_loops

    reductions = reduced_loops(generic)
    if not reductions:
        return None
    arguments = generic.regions[0].blocks[0].arguments
    for operand in range(len(generic.operands) - len(generic.results)):
        if not any(True for _ in arguments[operand].uses):
            continue  # it only gives the extents of a window
        results = list(operand_map(generic, operand).results)
        last = results[-1] if results else None
        if isinstance(last, ir.AffineDimExpr) and last.position == reductions[-1]:
            return reductions[-1]
    return None


def has_long_terms(generic: ir.Operation) -> bool:
    """Does each term of a reduction take long to compute, a function of `math` for example, in its body or in those of
    the generics that it is computed by? What reductions in front of it take does not count."""
    waiting, seen = [generic], {generic}
    while waiting:
        op = waiting.pop()
        if is_expensive(op):
            return True
        producers = [p for p in map(defining_op, op.operands) if p is not None and p.name == "linalg.generic"]
        more = [p for p in producers if p not in seen and not is_reduction(p)]
        seen.update(more)
        waiting += more
    return False


def reduce_at(
    ev: Evaluator,
    generic: ir.Operation,
    coords: Sequence[Idx],
    ranges: Mapping[int, tuple[Scalar, Scalar]] | None = None,
) -> list[ir.Value]:
    """Results of the reduction `generic` for the output element(s) `coords`; of `ranges` of reduction dimensions, each
    from its first coordinate to its end, where the other elements change nothing.
    """
    from mlc.kernels.common.evaluate import iteration_coords

    rank = len(generic.attributes["iterator_types"])
    dims = [d if d is not None else Idx(0) for d in iteration_coords(generic, 0, coords, rank)]
    count = len(generic.operands) - len(generic.results)
    inits = [ev.tensor(generic.operands[count + i], coords) for i in range(len(generic.results))]
    extents = reduction_extents(ev.frame, generic)
    along = lane_dim(generic)
    combine = combiner(generic)
    lanes = ev.frame.vector_lanes
    if ranges:
        along = None  # elements are taken one after the other
    if all(c.uniform for c in coords) and along is not None and finds_position(generic) and lanes > 1:
        return _position(ev, generic, dims, along, extents[along], inits, lanes)
    if all(c.uniform for c in coords) and along is not None and combine is not None and lanes > 1:
        extents = _flattened(ev.frame, generic, extents, along)
        extent = extents[along]
        if not (isinstance(extent, int) and extent < 4):
            return [_horizontal(ev, generic, dims, extents, along, combine, inits[0], lanes)]
    vectors = not all(c.uniform for c in coords)
    inner = ev.child(mask=ev.mask) if vectors else ev.child(lanes=1)
    starts = [ev.splat(v) for v in inits] if vectors else inits
    loops = {dim: (0, extent) for dim, extent in extents.items()} | dict(ranges or {})
    return nest(inner, generic, dims, list(loops.items()), starts)


def _flattened(frame: Frame, generic: ir.Operation, extents: dict[int, Scalar], along: int) -> dict[int, Scalar]:
    """Extents with the dimensions that are contiguous with `along`, the last one, walked together with it; what is
    left out has coordinate 0."""
    from mlc.kernels.common.analysis import can_flatten_reduction

    first = along
    while first - 1 in extents and can_flatten_reduction(generic, first - 1, along):
        first -= 1
    with frame.prologue():
        total = frame.math.product([extents[d] for d in range(first, along + 1)])
    return {d: total if d == along else e for d, e in extents.items() if not first <= d < along}


def _applied(ev: Evaluator, generic: ir.Operation, dims: list[Idx], carried: Sequence[ir.Value]) -> list[ir.Value]:
    """One application of the body per lane."""
    from mlc.kernels.common.body import inline_body
    from mlc.kernels.common.evaluate import input_values

    values = input_values(ev, generic, dims, carried)
    if peepholes.ignores_nan(generic):
        vectors = isinstance(carried[0].type, ir.VectorType)
        return [peepholes.maximum_of_numbers(carried[0], ev.splat(values[0]) if vectors else values[0])]
    results = inline_body(ev, generic, values, dims)
    vectors = any(isinstance(c.type, ir.VectorType) for c in carried)
    return [ev.splat(r) for r in results] if vectors else results


Apply = Callable[["Evaluator", ir.Operation, list[Idx], Sequence[ir.Value]], list[ir.Value]]
"""What the sums of a generic become at a point of its iteration."""


def nest(
    ev: Evaluator,
    generic: ir.Operation,
    dims: list[Idx],
    loops: list[tuple[int, tuple[Scalar, Scalar]]],
    carried: Sequence[ir.Value],
    apply: Apply = _applied,
) -> list[ir.Value]:
    """`loops` over dimensions of `generic` (outermost first) around `apply`, at the other coordinates of `dims`."""
    if not loops:
        return apply(ev, generic, dims, carried)
    dim, (low, high) = loops[0]
    if (low, high) == (0, 1):
        return nest(ev, generic, _with(dims, dim, Idx(0)), loops[1:], carried, apply)
    depth = 1 + max(d.level for d in dims)

    def body(variable: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
        point = _with(dims, dim, Idx(variable, level=depth))
        if len(loops) == 1 and ev.lanes >= WIDE and ev.mask is None:
            _fetch_ahead(ev, generic, _with(dims, dim, Idx(ev.frame.math.add(variable, AHEAD), level=depth)))
        return nest(ev.child(mask=ev.mask), generic, point, loops[1:], inner, apply)

    return for_loop(ev.frame, low, high, 1, carried, body)


def _fetch_ahead(ev: Evaluator, generic: ir.Operation, dims: list[Idx]) -> None:
    """Ask for what will be read at the iteration point `dims`, which may lie behind the end."""
    from mlc.kernels.common.generics import operand_map

    for number in range(len(generic.operands) - len(generic.results)):
        buffer = ev.frame.buffers.get(generic.operands[number])
        if buffer is not None:
            coords = [ev.idx.affine(e, dims) for e in operand_map(generic, number).results]
            memory.fetch(ev.frame, ev.idx, buffer, coords)


def _with(dims: Sequence[Idx], dim: int, value: Idx) -> list[Idx]:
    return [value if i == dim else d for i, d in enumerate(dims)]


def _horizontal(
    ev: Evaluator,
    generic: ir.Operation,
    dims: list[Idx],
    extents: dict[int, Scalar],
    along: int,
    combine: Combiner,
    init: ir.Value,
    lanes: int,
) -> ir.Value:
    """Vector accumulators along `along`, combined across lanes at the end."""
    element = generic.results[0].type.element_type
    frame = ev.frame
    identity = vector.broadcast(ir.VectorType.get([lanes], element), frame.constants.get(element, combine.identity))
    outer = [(d, e) for d, e in extents.items() if d != along]

    def nest(point: list[Idx], remaining: list[tuple[int, Scalar]], carried: list[ir.Value]) -> list[ir.Value]:
        if not remaining:
            return _lane_loop(ev, generic, point, along, extents[along], carried, lanes, unroll)
        dim, extent = remaining[0]
        depth = 1 + max(d.level for d in point)
        return for_loop(
            frame,
            0,
            extent,
            1,
            carried,
            lambda variable, inner: nest(_with(point, dim, Idx(variable, level=depth)), remaining[1:], inner),
        )

    length = extents[along]
    unroll = UNROLL if not isinstance(length, int) or length >= UNROLL * lanes else 1
    count = min(frame.sums, unroll) if has_long_terms(generic) else unroll
    partial = nest(dims, outer, [identity] * count)
    # Accumulators that ignore NaN never are one: their combination need not ask.
    numbers = peepholes.ignores_nan(generic)
    both = peepholes.maximum_of_numbers if numbers else lambda a, b: _apply(combine, a, b)
    while len(partial) > 1:
        pairs = [partial[i : i + 2] for i in range(0, len(partial), 2)]
        partial = [p[0] if len(p) == 1 else both(p[0], p[1]) for p in pairs]
    kind = ir.Attribute.parse(f"#vector.kind<{'maxnumf' if numbers else combine.kind}>")
    flags = ir.Attribute.parse(f"#arith.fastmath<reassoc,nsz{',nnan' if numbers else ''}>")
    total = vector.ReductionOp(element, kind, partial[0], fastmath=flags).result
    return both(init, total)


def _position(
    ev: Evaluator,
    generic: ir.Operation,
    dims: list[Idx],
    along: int,
    extent: Scalar,
    inits: list[ir.Value],
    lanes: int,
) -> list[ir.Value]:
    """The extreme value of a line and its position."""
    unroll = 2 if not isinstance(extent, int) or extent >= 2 * lanes else 1
    start = [memory.splat(v, lanes) for v in inits]
    found = _lane_loop(ev, generic, dims, along, extent, start * unroll, lanes, unroll)
    position, best = Position(generic), (found[0], found[1])
    if unroll == 2:
        best = position.merged(best, (found[2], found[3]))
    return list(position.total(best))


def _apply(combine: Combiner, a: ir.Value, b: ir.Value) -> ir.Value:
    from mlc.kernels.common.body import EXTREMA, any_zero

    attributes = {"fastmath": any_zero()} if combine.op in EXTREMA else {}
    return ir.Operation.create(combine.op, [a.type], [a, b], attributes).results[0]


def _lane_loop(
    ev: Evaluator,
    generic: ir.Operation,
    dims: list[Idx],
    along: int,
    extent: Scalar,
    carried: list[ir.Value],
    lanes: int,
    unroll: int,
) -> list[ir.Value]:
    """The loop over the vectorised dimension: `unroll` vectors at a time, single vectors, one masked tail.

    `carried` are the accumulators, as many at a time as the generic has results, which the vectors take in turns.
    """
    from mlc.kernels.common.evaluate import lane_mask

    frame, math = ev.frame, ev.frame.math
    steps = _Steps(ev, generic, dims, along, lanes)
    width = len(generic.results)
    main = math.mul(math.div(extent, lanes * unroll), lanes * unroll)
    early = ev.early.get(generic.operands[0])
    if isinstance(main, int) and main > 0 and early is not None:
        carried = steps.with_early(early, main, carried, unroll)
    elif not (isinstance(main, int) and main == 0):
        carried = for_loop(frame, 0, main, lanes * unroll, carried, lambda v, c: steps.step(v, c, None, unroll))
    whole = math.mul(math.div(extent, lanes), lanes)
    if not (isinstance(whole, int) and whole == main):
        rest = for_loop(frame, main, whole, lanes, carried[:width], lambda v, c: steps.step(v, c, None))
        carried = [*rest, *carried[width:]]
    tail = math.rem(extent, lanes)
    if not (isinstance(tail, int) and tail == 0):
        # With a run-time extent the mask may be empty: masked-out lanes keep their accumulator.
        mask = lane_mask(frame, lanes, frame.constants.index(tail))
        carried = [*steps.step(whole, carried[:width], mask), *carried[width:]]
    return carried


class _Steps:
    """Applications of the body of `generic` to vectors along dimension `along`, at the other coordinates of `dims`."""

    def __init__(self, ev: Evaluator, generic: ir.Operation, dims: list[Idx], along: int, lanes: int) -> None:
        self.ev, self.generic, self.dims, self.along, self.lanes = ev, generic, dims, along, lanes
        self.depth = 1 + max(d.level for d in dims)

    def _point(self, base: Scalar, number: int) -> list[Idx]:
        linear = Idx(self.ev.frame.math.add(base, number * self.lanes), 1, level=self.depth)
        return _with(self.dims, self.along, linear)

    def step(
        self, base: Scalar, accumulators: list[ir.Value], mask: ir.Value | None, count: int = 1
    ) -> list[ir.Value]:
        """The accumulators after `count` vectors from `base` on."""
        results = list(accumulators)
        for number in range(count):
            self._add(self.ev.child(lanes=self.lanes, mask=mask), base, number, results)
        return results

    def _add(self, scope: Evaluator, base: Scalar, number: int, results: list[ir.Value]) -> None:
        """Vector `number` behind `base` goes into its accumulators."""
        width = len(self.generic.results)
        turn = slice(first := number * width % len(results), first + width)
        new = _applied(scope, self.generic, self._point(base, number), results[turn])
        results[turn] = masked(scope.mask, new, results[turn])

    def with_early(self, early: Early, main: int, carried: list[ir.Value], unroll: int) -> list[ir.Value]:
        """The accumulators after the first `main` elements, some of which there are, `unroll` vectors a step. What is
        `early` is evaluated before it is needed: in front of stores that processors take for those of the same memory,
        where only higher bits of addresses differ.
        """
        from mlc.kernels.common.generics import operand_map

        frame, exprs, stride = self.ev.frame, operand_map(self.generic, 0).results, self.lanes * unroll
        ahead, last = min(early.vectors, unroll), frame.constants.index(main - stride)

        def coords(base: Scalar, number: int) -> list[Idx]:
            return [self.ev.idx.affine(e, self._point(base, number)) for e in exprs]

        def value(base: Scalar, number: int) -> ir.Value:
            scope = self.ev.child(lanes=self.lanes)
            return scope.splat(scope.tensor(early.value, coords(base, number)))

        def body(base: ir.Value, before: list[ir.Value]) -> list[ir.Value]:
            results, known = before[: len(carried)], before[len(carried) :]
            then = arith.minsi(frame.constants.index(frame.math.add(base, stride)), last)
            for number in range(unroll):
                later = number + ahead
                known.append(value(base, later) if later < unroll else value(then, later - unroll))
                scope = self.ev.child(lanes=self.lanes)
                scope.remember(early.value, coords(base, number), known[number])
                self._add(scope, base, number, results)
            return [*results, *known[unroll:]]

        starts = [value(0, number) for number in range(ahead)]
        return for_loop(frame, 0, main, stride, [*carried, *starts], body)[: len(carried)]
