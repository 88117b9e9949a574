"""On-demand evaluation of tensor values at coordinates.

A template asks for the value of a tensor at a coordinate; the evaluator loads it when it is an argument, and otherwise
inlines the operation that computes it: bodies of elementwise `linalg.generic`s, views, fills, and whole reductions.
That is how producers fuse into every template without any rewriting of the IR, and why a template only has to know its
root. Epilogues are the same thing seen from the other side: the template evaluates the returned value and overrides
the root's result with its accumulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import codes, memory, peepholes, vector_math
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.frame import Frame, defining_op
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.common.index import Idx, IdxMath

Override = Callable[[Sequence[Idx]], ir.Value]
Hook: TypeAlias = "Callable[[Evaluator, Sequence[Idx]], ir.Value]"
"""Computes a value in place of the evaluator, in the scope where it is needed."""


@dataclass(frozen=True)
class Early:
    """A tensor that is evaluated so many vectors before something that is made of it at the same points."""

    value: ir.Value
    vectors: int


class Evaluator:
    """Values of the source function's tensors, for `lanes` lanes, at the current insertion point.

    A value is a scalar when it is the same in every lane and a `vector<LxT>` otherwise. `mask` (a `vector<Lxi1>`, or
    None for all) guards memory accesses. Evaluated values are remembered; a child sees its parents' memory, so it must
    be used where they dominate. `early` says of what reductions along vectors take what they evaluate before.
    """

    def __init__(
        self,
        frame: Frame,
        lanes: int,
        mask: ir.Value | None = None,
        parent: Evaluator | None = None,
        overrides: dict[ir.Value, Override] | None = None,
        hooks: dict[ir.Value, Hook] | None = None,
        early: dict[ir.Value, Early] | None = None,
    ) -> None:
        self.frame = frame
        self.lanes = lanes
        self.mask = mask
        self.parent = parent
        self.idx = IdxMath(frame.math, lanes)
        self.overrides: dict[ir.Value, Override] = dict(parent.overrides) if parent else {}
        self.overrides.update(overrides or {})
        self.hooks: dict[ir.Value, Hook] = hooks if hooks is not None else parent.hooks if parent else {}
        self.early: dict[ir.Value, Early] = early if early is not None else parent.early if parent else {}
        self._known: dict[tuple[object, ...], ir.Value] = {}

    def child(self, lanes: int | None = None, mask: ir.Value | None = None) -> Evaluator:
        """An evaluator for a nested block."""
        return Evaluator(self.frame, lanes or self.lanes, mask, parent=self)

    def _lookup(self, key: tuple[object, ...], uniform: bool) -> ir.Value | None:
        scope: Evaluator | None = self
        while scope is not None:
            usable = uniform or (scope.lanes == self.lanes and scope.mask is self.mask)
            if usable and key in scope._known:
                return scope._known[key]
            scope = scope.parent
        return None

    def tensor(self, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
        """The element(s) of `value` at `coords` (one `Idx` per dimension)."""
        if value in self.overrides:
            return self.overrides[value](coords)
        key = _place(value, coords)
        known = self._lookup(key, all(c.uniform for c in coords))
        if known is None:
            hook = self.hooks.get(value)
            known = self._known[key] = self.compute(value, coords) if hook is None else hook(self, coords)
        return known

    def remember(self, value: ir.Value, coords: Sequence[Idx], known: ir.Value) -> None:
        """Take over what another evaluator computed where this one's block can use it."""
        self._known[_place(value, coords)] = known

    def compute(self, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
        if value in self.frame.buffers:
            return memory.load(self.frame, self.idx, self.frame.buffers[value], coords, self.mask)
        op = defining_op(value)
        if op is None:
            raise ValueError(f"kernel {self.frame.name}: no buffer for {value}")
        handler = _HANDLERS.get(op.name)
        if handler is None:
            raise ValueError(f"kernel {self.frame.name}: {op.name} cannot be evaluated at a coordinate")
        return handler(self, op, value, coords)

    def splat(self, value: ir.Value) -> ir.Value:
        """`value` as a vector (as it is when lanes == 1)."""
        return memory.splat(value, self.lanes)


def _place(value: ir.Value, coords: Sequence[Idx]) -> tuple[object, ...]:
    """An element of a value, as what is known of it is found again."""
    return (hash(value), *[c.key() for c in coords])


def iteration_coords(generic: ir.Operation, result_number: int, coords: Sequence[Idx], rank: int) -> list[Idx | None]:
    """Iteration coordinates of the element `coords` of a result; None for dimensions its map leaves open."""
    maps = generic.attributes["indexing_maps"]
    out_map = ir.AffineMapAttr(maps[len(maps) - len(generic.results) + result_number]).value
    dims: list[Idx | None] = [None] * rank
    for expr, coord in zip(out_map.results, coords, strict=True):
        if isinstance(expr, ir.AffineDimExpr):
            dims[expr.position] = coord
        elif not isinstance(expr, ir.AffineConstantExpr):
            raise ValueError(f"a result map must be a projected permutation, got {out_map}")
    return dims


def input_values(ev: Evaluator, generic: ir.Operation, dims: Sequence[Idx], outs: Sequence[ir.Value]) -> list[ir.Value]:
    """Body arguments of `generic` at iteration point `dims`, with `outs` for the output arguments."""
    count = len(generic.operands) - len(generic.results)
    block = generic.regions[0].blocks[0]
    args = []
    for i in range(count):
        if not any(True for _ in block.arguments[i].uses):
            args.append(outs[0] if outs else ev.frame.constants.get(ir.IndexType.get(), 0))
            continue
        coords = [ev.idx.affine(e, dims) for e in operand_map(generic, i).results]
        args.append(ev.tensor(generic.operands[i], coords))
    return args + list(outs)


def _generic(ev: Evaluator, op: ir.Operation, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
    number = ir.OpResult(value).result_number
    reductions = ev.frame.reductions
    if value not in reductions:
        reductions[value] = is_reduction(op)
    if reductions[value]:
        from mlc.kernels.common.reduce import reduce_at

        results = reduce_at(ev, op, coords)
    else:
        dims = [d if d is not None else Idx(0) for d in iteration_coords(op, number, coords, _rank(op))]
        outs = []
        for i, result in enumerate(op.results):
            argument = op.regions[0].blocks[0].arguments[len(op.operands) - len(op.results) + i]
            if any(True for _ in argument.uses):
                outs.append(ev.tensor(op.operands[len(op.operands) - len(op.results) + i], coords))
            else:
                element = result.type.element_type
                zero = 0.0 if isinstance(element, ir.FloatType) else 0
                outs.append(ev.frame.constants.get(element, zero))
        results = _shorter(ev, op, dims) or inline_body(ev, op, input_values(ev, op, dims, outs), dims)
    for i, result in enumerate(op.results):
        ev._known[_place(result, coords)] = results[i]
    return results[number]


def _shorter(ev: Evaluator, op: ir.Operation, dims: Sequence[Idx]) -> list[ir.Value]:
    """The results of an elementwise generic by one of the `peepholes`; empty when none fits."""
    frame, result = ev.frame, op.results[0]
    if result not in frame.patterns:
        frame.patterns[result] = _patterns(frame, op)
    if frame.patterns[result] is None:
        return []
    if isinstance(frame.patterns[result], (codes.Rounded, codes.Restored)):
        return _rounded(ev, frame.patterns[result], dims)
    found, is_shifted, shift, divisor = frame.patterns[result]
    if found is not None and not _is_given(ev, found[0]):
        [x, *_] = input_values(ev, found[0], dims, [])
        return [peepholes.emit_plus_one(frame, found[1], x)]
    if shift is not None and frame.scalef and not _is_given(ev, shift.difference):
        power = _shifted_power(ev, shift, dims)
        if power is not None:
            return [power]
    if is_shifted:
        return [peepholes.exp_nonpositive(frame, input_values(ev, op, dims, [])[0])]
    if divisor is not None:
        values = [ev.splat(v) for v in input_values(ev, op, dims, [])]
        one = ev.splat(ev.frame.constants.get(op.results[0].type.element_type, 1.0))
        return [arith.mulf(values[1 - divisor], arith.divf(one, values[divisor]))]
    return []


def _is_given(ev: Evaluator, op: ir.Operation) -> bool:
    """Does something else stand in for the result of `op`?"""
    return op.results[0] in ev.overrides or op.results[0] in ev.hooks


def _shifted_power(ev: Evaluator, shift: peepholes.Shift, dims: Sequence[Idx]) -> ir.Value | None:
    """The exponential of a softmax at a point, without the difference that is its argument."""
    rank = len(shift.difference.attributes["iterator_types"])
    inside = [d if d is not None else Idx(0) for d in iteration_coords(shift.difference, 0, dims, rank)]
    values = input_values(ev, shift.difference, inside, [])
    return vector_math.exp_shifted(values[shift.value], values[shift.maximum], ev.frame.scalef)


def _patterns(
    frame: Frame, op: ir.Operation
) -> (
    tuple[tuple[ir.Operation, str] | None, bool, peepholes.Shift | None, int | None]
    | codes.Rounded
    | codes.Restored
    | None
):
    """Which of the `peepholes` an elementwise generic fits, asked once for all of its elements."""
    if not frame.has_exp2 and codes.ends_in_codes(op):  # GPUs round and convert in one instruction
        return codes.rounded_to_codes(op)
    if not frame.has_exp2 and codes.ends_in_numbers(op):
        return codes.restored_from_codes(op)
    if not peepholes.may_match(op):
        return None
    shifted = peepholes.shifted_by_maximum(op) is not None
    return peepholes.plus_one(op), shifted, peepholes.divided_shift(op), peepholes.row_sum(op)


def _rounded(ev: Evaluator, pattern: codes.Rounded | codes.Restored, dims: Sequence[Idx]) -> list[ir.Value]:
    """The codes, or the numbers that these stand for, that `pattern` describes; empty where something else stands in
    for what it skips."""
    rounded = pattern if isinstance(pattern, codes.Rounded) else pattern.rounded
    skipped = [*rounded.skipped, *([] if pattern is rounded else pattern.skipped)]
    if any(value in ev.overrides or value in ev.hooks for value in skipped):
        return []
    [x, *_] = input_values(ev, rounded.first, dims, [])
    given = _given(ev, rounded)
    if isinstance(pattern, codes.Rounded):
        return [codes.emit_codes(x, pattern, ev.frame.constants, given)]
    return [codes.emit_numbers(x, pattern, ev.frame.constants, given, _less(ev, pattern))]


def _given(ev: Evaluator, rounded: codes.Rounded) -> codes.Given | None:
    """A zero point that is an input, read once."""
    if rounded.given is None:
        return None
    key = (rounded.given, rounded.low, rounded.high)
    if key not in ev.frame.given:
        number = scalar_operand(ev, rounded.given)
        with ev.frame.prologue():
            ev.frame.given[key] = codes.emit_given(number, rounded, ev.frame.constants)
    found: codes.Given = ev.frame.given[key]
    return found


def _less(ev: Evaluator, restored: codes.Restored) -> ir.Value | None:
    """What is subtracted from rounded numbers where a zero point is an input, computed once."""
    zeros = (restored.rounded.given, restored.given)
    if all(zero is None for zero in zeros):
        return None
    key = (*zeros, restored.rounded.zero, restored.zero)
    if key not in ev.frame.given:
        zero, subtracted = (None if z is None else scalar_operand(ev, z) for z in zeros)
        with ev.frame.prologue():
            ev.frame.given[key] = codes.emit_less(restored, zero, subtracted, ev.frame.constants)
    found: ir.Value = ev.frame.given[key]
    return found


def _rank(generic: ir.Operation) -> int:
    return len(generic.attributes["iterator_types"])


def _fill(ev: Evaluator, op: ir.Operation, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
    return scalar_operand(ev, op.operands[0])


def scalar_operand(ev: Evaluator, value: ir.Value) -> ir.Value:
    """A scalar (non-tensor) value of the source function in the new one: constants and arithmetic on sizes."""
    if isinstance(value.type, ir.IndexType):
        return ev.frame.constants.index(ev.frame.scalar(value))
    op = defining_op(value)
    if op is not None and op.name == "arith.constant":
        return constant_value(ev, op)
    if value in ev.frame.numbers:
        return ev.frame.numbers[value]
    if op is not None and op.name.startswith("arith."):
        with ev.frame.prologue():
            operands = [scalar_operand(ev, v) for v in op.operands]
            attributes = {name: op.attributes[name] for name in op.attributes}
            number = ir.Operation.create(op.name, [r.type for r in op.results], operands, attributes).results[0]
        return ev.frame.numbers.setdefault(value, number)
    if op is not None and op.name == "tensor.extract" and op.operands[0] in ev.frame.buffers:
        with ev.frame.prologue():
            place = [Idx(ev.frame.scalar(v)) for v in list(op.operands)[1:]]
            number = memory.load(ev.frame, IdxMath(ev.frame.math, 1), ev.frame.buffers[op.operands[0]], place, None)
        return ev.frame.numbers.setdefault(value, number)
    raise ValueError(f"kernel {ev.frame.name}: scalar {value} is neither a constant nor a size")


def constant_value(ev: Evaluator, op: ir.Operation) -> ir.Value:
    """An `arith.constant` of the source as a constant of the new function."""
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr):
        return ev.frame.constants.get(op.results[0].type, attribute.value)
    if isinstance(attribute, ir.BoolAttr):
        return ev.frame.constants.get(op.results[0].type, int(attribute.value))
    raise ValueError(f"kernel {ev.frame.name}: constant {attribute} is not a scalar")


def _dense(ev: Evaluator, op: ir.Operation, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
    """A tensor constant; only splats live inside kernels, others are arguments."""
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        raise ValueError(f"kernel {ev.frame.name}: a constant table must be a kernel argument")
    element = value.type.element_type
    splat = attribute.get_splat_value()
    number = int(splat.value) if isinstance(splat, ir.BoolAttr) else splat.value
    return ev.frame.constants.get(element, number)


def _empty(ev: Evaluator, op: ir.Operation, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
    element = value.type.element_type
    return ev.frame.constants.get(element, 0.0 if isinstance(element, ir.FloatType) else 0)


def _cast(ev: Evaluator, op: ir.Operation, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
    return ev.tensor(op.operands[0], coords)


def _expand(ev: Evaluator, op: ir.Operation, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
    inner = []
    for group in op.attributes["reassociation"]:
        total = Idx(0)
        for position in (a.value for a in group):
            with ev.frame.prologue():
                extent = ev.frame.extent(value, position)
            total = ev.idx.add(ev.idx.scale(total, extent), coords[position])
        inner.append(total)
    return ev.tensor(op.operands[0], inner)


def _collapse(ev: Evaluator, op: ir.Operation, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
    inner: list[Idx] = []
    source = op.operands[0]
    for coord, group in zip(coords, op.attributes["reassociation"], strict=True):
        extents = [ev.frame.extent(source, a.value) for a in group]
        inner.extend(_delinearize(ev, coord, extents))
    return ev.tensor(source, inner)


def _delinearize(ev: Evaluator, coord: Idx, extents: Sequence[int | ir.Value]) -> list[Idx]:
    if coord.uniform:
        return [Idx(c, level=coord.level) for c in ev.frame.math.delinearize(coord.base, extents)]
    moving = [i for i, e in enumerate(extents) if not (isinstance(e, int) and e == 1)]
    if len(moving) <= 1:
        return [coord if i in moving else Idx(0) for i in range(len(extents))]
    rest, parts = coord, []
    for extent in reversed(extents[1:]):
        size = ev.idx.vector(Idx(extent))
        linear = ev.idx.vector(rest)
        parts.append(Idx(lanes=arith.remui(linear, size), level=coord.level))
        rest = Idx(lanes=arith.divui(linear, size), level=coord.level)
    return [rest, *reversed(parts)]


def _slice(ev: Evaluator, op: ir.Operation, value: ir.Value, coords: Sequence[Idx]) -> ir.Value:
    offsets, strides = ev.frame.mixed(op, "offsets"), ev.frame.mixed(op, "strides")
    inner = [ev.idx.add(ev.idx.scale(c, s), Idx(o)) for c, o, s in zip(coords, offsets, strides, strict=True)]
    return ev.tensor(op.operands[0], inner)


_HANDLERS: dict[str, Callable[[Evaluator, ir.Operation, ir.Value, Sequence[Idx]], ir.Value]] = {
    "linalg.generic": _generic,
    "linalg.fill": _fill,
    "arith.constant": _dense,
    "mlc.constant": _dense,
    "tensor.empty": _empty,
    "tensor.cast": _cast,
    "tensor.expand_shape": _expand,
    "tensor.collapse_shape": _collapse,
    "tensor.extract_slice": _slice,
}


def lane_mask(frame: Frame, lanes: int, count: ir.Value) -> ir.Value:
    """A mask with the first `count` lanes set (`count` of type index)."""
    type_ = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
    return vector.CreateMaskOp(type_, [count]).result
