"""Pass `mlc-fold-positions`: what coordinates alone decide is written as coordinates, and conditions that always hold.

    %i = mlc.iota [512] {axis = 0 : i64} : tensor<512xi64>
    %r = mlc.reshape %i [1, 512] : tensor<512xi64> -> tensor<1x512xi64>
    %n = mlc.gather_nd %r, %at : tensor<1x512xi64>, tensor<1x1x512x1x2xi64> -> tensor<1x1x512x1xi64>
    %b = mlc.compare ge %n, %n : tensor<1x1x512x1xi64> -> tensor<1x1x512x1xi1>
    %c = mlc.binary and %b, %mask : tensor<1x1x512x1xi1>
becomes, where `%at` are places in the order of the result,
    %n = mlc.iota [1, 1, 512, 1] {axis = 2 : i64} : tensor<1x1x512x1xi64>
    %c = %mask

Exporters of PyTorch write the masks of language models so: positions are picked from a table of positions, and asked
whether they belong to one text. Of that a causal mask remains, or a window, of which kernels of attention know what
they hide; a mask of the run that is picked by such places is a view of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from mlc.dims import DimAnalysis, constant_of
from mlc.kernels.common.positional import Linear
from mlc.passes.adaptor import OpAdaptor, Size, defining_op, element, readers, splat_number
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.positions import INVERSE, Condition, Positions, between
from mlc.passes.simplify.resolve_dims import SizeBuilder
from mlc.passes.simplify.rewrite import constant_array, is_pure_mlc, is_unused
from mlc.passes.simplify.scalars import HOLDS
from mlc.passes.simplify.stored import Stored
from mlc.passes.walk import functions, operations

_MOVES = ("mlc.reshape", "mlc.transpose", "mlc.slice", "mlc.concat", "mlc.gather_nd")
_FUNCTIONS = ("mlc.compare", "mlc.binary", "mlc.cast", "mlc.scan", "mlc.unary")
_SOURCES = ("mlc.iota", "mlc.trilu", "mlc.compare")  # without one there is nothing to find
_STEPS = 4  # from a weight to what reads it
_NEUTRAL = {"and": 1, "or": 0}  # conditions that leave the other one as it is


class FoldPositions(Pass):
    """Writes positions as coordinates, and leaves out conditions that they decide."""

    dialects = ("mlc", "arith", "tensor")
    statistics = {"folded": "values that coordinates alone decide", "picked": "tables that are read in their own order"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            if any(inner.name in _SOURCES or _may_count(inner) for inner in operations(function)):
                self._function(function, Stored(op))

    def _function(self, function: ir.Operation, stored: Stored) -> None:
        analysis = DimAnalysis(function)
        positions, sizes = Positions(analysis, stored), SizeBuilder(analysis)
        for inner in operations(function):
            if not inner.name.startswith("mlc.") or len(inner.results) != 1:
                continue
            with ir.InsertionPoint(inner), inner.location:
                self._visit(inner, positions, sizes)
        for inner in reversed(operations(function)):
            if is_pure_mlc(inner) and is_unused(inner):
                inner.erase()

    def _visit(self, op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> None:
        result = op.results[0]
        found = positions.of(result) if op.name in (*_MOVES, *_FUNCTIONS, "mlc.weight") else None
        made, kind = None, "folded"
        if found is not None and (op.name not in _FUNCTIONS or not found.factors):
            made = _written(op, found, sizes)
        elif op.name == "mlc.binary" and OpAdaptor(op).text() in _NEUTRAL and b.is_bool(element(result)):
            made = _other(op, positions, sizes)
        elif op.name == "mlc.broadcast" and op.operands[0].type == result.type:
            made = op.operands[0] if _is_whole(op.operands[0], op, sizes.analysis) else None
        elif op.name == "mlc.select":
            made = _turned(op, positions, sizes)
        elif op.name == "mlc.trilu":
            made = _triangle(op, positions, sizes)
        elif op.name in ("mlc.cast", "mlc.compare") and b.is_bool(element(result)):
            made = _chosen(op, positions, sizes) or _asked(op, positions, sizes)
        elif op.name == "mlc.weight" and _may_hide(op):
            made = _stored_mask(op, positions, sizes)
        elif op.name in (*_MOVES, "mlc.unary") and b.is_bool(element(result)):
            made = _conditions(op, positions, sizes)
        if made is None and op.name in _PICKED:
            made, kind = _PICKED[op.name](op, positions, sizes), "picked"
        if made is not None and made.type == result.type:
            result.replace_all_uses_with(made)  # what is known of values still refers to the operation
            self.count(kind)


def _extents(op: ir.Operation, sizes: SizeBuilder, of: ir.Value | None = None) -> list[Size] | None:
    """The extents of the result of `op`, or of another value; None where they cannot be computed in front of it."""
    value = op.results[0] if of is None else of
    found: list[Size] = []
    for extent, expr in zip(value.type.shape, sizes.analysis.dims(value), strict=True):
        known = extent if extent >= 0 else sizes.build(expr, op)
        if known is None:
            return None
        found.append(known)
    return found


def _written(op: ir.Operation, found: Linear, sizes: SizeBuilder) -> ir.Value | None:
    """The coordinates that the result of `op` is: those of one dimension, plus a constant, or that alone."""
    type_ = element(op.results[0])
    extents = _extents(op, sizes) if len(found.factors) < 2 else None
    if extents is None:
        return None
    if not found.factors:
        return b.broadcast(b.scalar(found.constant, type_), extents)
    ((axis, factor),) = found.factors
    made = b.iota(extents, axis, type_)
    made = made if factor == 1 else b.mul(made, factor)
    return made if found.constant == 0 else b.add(made, found.constant)


def _may_count(op: ir.Operation) -> bool:
    """Is `op` a stored array of integers, or one that may hide something?"""
    of_integers = op.name == "mlc.weight" and isinstance(element(op.results[0]), ir.IntegerType)
    return of_integers or _may_hide(op)


def _may_hide(op: ir.Operation) -> bool:
    """Is `op` a stored matrix of booleans, or one of floats that is added, or given to attention?"""
    if op.name != "mlc.weight" or op.results[0].type.rank < 2:
        return False
    type_, pending = op.results[0].type, [(op.results[0], _STEPS)]
    if b.is_bool(type_.element_type):
        return True
    while pending and b.is_float(type_.element_type) and min(type_.shape[-2:]) > 1:
        value, steps = pending.pop()
        for user in readers(value):
            if user.name == "mlc.attention" or user.name == "mlc.binary" and OpAdaptor(user).text() == "add":
                return True
            if steps and user.name in (*_MOVES, "mlc.broadcast", "mlc.cast"):
                pending.append((user.results[0], steps - 1))
    return False


def _stored_mask(op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> ir.Value | None:
    """A stored mask as a condition on coordinates, or a choice of 0 and the lowest number by one."""
    result, stored = op.results[0], positions.stored
    if b.is_bool(element(result)):
        all_true = positions.conditions(result) == ()
        extents = _extents(op, sizes)
        if all_true and extents is not None:
            return b.broadcast(b.scalar(1, element(result)), extents)
        return _conditions(op, positions, sizes)
    mask, extents = None if stored is None else stored.mask(op), _extents(op, sizes)
    if mask is None or extents is None:
        return None
    shown = _all_of(between(mask[0], result.type.rank), extents)
    if shown is None:
        return None
    return b.broadcast(b.select(shown, b.like(result, 0), b.like(result, mask[1])), extents)


def _triangle(op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> ir.Value | None:
    """A triangle of a number that is the same everywhere, as a choice by coordinates."""
    number, extents = _number(op.operands[0], positions.stored), _extents(op, sizes)
    diagonal = constant_of(sizes.analysis.expr(op.operands[1])) if len(op.operands) > 1 else 0
    if number is None or extents is None or diagonal is None:
        return None
    rank = len(extents)
    column = Linear(((rank - 1, 1),), 0)
    away = column.plus(Linear(((rank - 2, 1),), diagonal), -1)
    predicate = "ge" if OpAdaptor(op).flag("upper", True) else "le"
    shown = _condition(Condition(predicate, away), extents)
    return b.broadcast(b.select(shown, number, b.like(number, 0)), extents)


def _number(value: ir.Value, stored: Stored | None) -> ir.Value | None:
    """The constant of rank 0 that every element of a value is."""
    op = defining_op(value)
    while op is not None and op.name in ("mlc.broadcast", "mlc.reshape"):
        value = op.operands[0]
        op = defining_op(value)
    if op is not None and op.name == "mlc.weight":
        number = None if stored is None else stored.number(op)
    else:
        number = splat_number(value)
    return None if number is None else b.like(value, number)


def _turned(op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> ir.Value | None:
    """A selection of a number where coordinates hide something, as one of something where they show it; what is below
    zero hides zeros."""
    hidden, number, shown = op.operands
    low, zero = splat_number(number), splat_number(shown)
    is_turned = low is not None and (zero is None or low < 0 == zero)
    found = positions.conditions(hidden) if is_turned else None
    if found is None or len(found) != 1 or found[0].predicate not in INVERSE:
        return None
    extents = _extents(op, sizes, hidden)
    return None if extents is None else b.select(_condition(found[0].inverse, extents), shown, number)


def _chosen(op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> ir.Value | None:
    """What chooses between two numbers of which `op`, a cast to a boolean or a comparison with a number, holds for one;
    or the contrary of it."""
    select = defining_op(op.operands[0])
    while select is not None and select.name == "mlc.broadcast":
        select = defining_op(select.operands[0])
    if select is None or select.name != "mlc.select":
        return None
    compares = op.name == "mlc.compare"
    numbers = [splat_number(value) for value in (*select.operands[1:], *op.operands[1:])]
    known = [n for n in numbers if n is not None]
    holds = HOLDS.get(OpAdaptor(op).text("predicate") if compares else "ne")
    if len(known) < len(numbers) or holds is None or "is_unsigned" in op.attributes:
        return None
    chosen, extents = select.operands[0], _extents(op, sizes)
    of_both = [holds(n, known[2] if compares else 0) for n in known[:2]]
    if extents is None or of_both[0] == of_both[1]:
        return None
    if of_both[1]:
        found = positions.conditions(chosen) or ()
        if len(found) != 1 or found[0].predicate not in INVERSE:
            return None
        chosen = _condition(found[0].inverse, extents)
    return chosen if chosen.type == op.results[0].type else b.broadcast(chosen, extents)


def _asked(op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> ir.Value | None:
    """A comparison of positions of which one is a constant of few elements, or what a stored array is asked."""
    tables = [v for v in op.operands if constant_array(v) is not None and splat_number(v) is None]
    is_stored = op.name == "mlc.cast" or positions.difference(op) is None
    return _conditions(op, positions, sizes) if tables or is_stored else None


def _conditions(op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> ir.Value | None:
    """The conditions that the result of `op`, which moves booleans, is, on coordinates of its own."""
    found, extents = positions.conditions(op.results[0]), _extents(op, sizes)
    if not found or extents is None:
        return None
    made = _all_of(found, extents)
    return made if made is None or made.type == op.results[0].type else b.broadcast(made, extents)


def _all_of(conditions: Sequence[Condition], extents: Sequence[Size]) -> ir.Value | None:
    """All conditions together."""
    made: ir.Value | None = None
    for condition in conditions:
        one = _condition(condition, extents)
        made = one if made is None else b.binary("and", made, one)
    return made


def _condition(condition: Condition, extents: Sequence[Size]) -> ir.Value:
    above, below = ([(d, f) for d, f in condition.difference.factors if f * s > 0] for s in (1, -1))
    left = _sum(above, condition.difference.constant, extents)
    return b.compare(condition.predicate, left, _sum([(d, -f) for d, f in below], 0, extents))


def _sum(factors: Sequence[tuple[int, int]], constant: int, extents: Sequence[Size]) -> ir.Value:
    """Multiples of coordinates and a constant, with extents of 1 where they do not matter."""
    made: ir.Value | None = None
    for axis, factor in factors:
        along: list[Size] = [n if d == axis else 1 for d, n in enumerate(extents)]
        one = b.iota(along, axis, b.i64())
        one = one if factor == 1 else b.mul(one, factor)
        made = one if made is None else b.add(made, one)
    if made is None:
        return b.scalar(constant, b.i64())
    return b.add(made, constant) if constant else made


def _other(op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> ir.Value | None:
    """What a combination of two conditions is when one of them makes no difference."""
    neutral = Linear((), _NEUTRAL[OpAdaptor(op).text()])
    for number in (0, 1):
        if positions.of(op.operands[number]) != neutral:
            continue
        other = op.operands[1 - number]
        if other.type == op.results[0].type and _is_whole(other, op, sizes.analysis):
            return other
        extents = _extents(op, sizes)
        return None if extents is None else b.broadcast(other, extents)
    return None


def _is_whole(value: ir.Value, op: ir.Operation, analysis: DimAnalysis) -> bool:
    pairs = zip(analysis.dims(value), analysis.dims(op.results[0]), strict=True)
    return all(analysis.equal(own, whole) for own, whole in pairs)


def _stretch(op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> ir.Value | None:
    """A `mlc.gather` at positions one behind the other, as a slice."""
    data, indices = op.operands
    view, found, analysis = OpAdaptor(op), positions.of(indices), sizes.analysis
    if found is None or len(found.factors) != 1 or found.factors[0][1] != 1 or view.int("batch_dims", 0) != 0:
        return None
    axis, along, symbols = view.int("axis") % data.type.rank, found.factors[0][0], analysis.symbols
    begin, shape = found.constant, analysis.dims(indices)
    end = symbols.add(shape[along], symbols.constant(begin))
    single = all(n == 1 for d, n in enumerate(positions.extents(indices)) if d != along)
    extents = _extents(op, sizes)
    if begin < 0 or not single or extents is None or not symbols.at_most(end, analysis.dims(data)[axis]):
        return None
    return b.reshape(b.slice_dim(data, axis, begin, extents[axis + along]), extents)


def _moved(op: ir.Operation, positions: Positions, sizes: SizeBuilder) -> ir.Value | None:
    """A `mlc.gather_nd` that takes each element of its input once, in their order, as a view, with what repeats it."""
    data, indices = op.operands
    at = positions.picks(op)
    if at is None or not all(f == 1 for place in at for _, f in place.factors) or any(p.constant for p in at):
        return None
    analysis, kept = sizes.analysis, indices.type.rank - 1
    own, whole = analysis.dims(data), analysis.dims(op.results[0])
    order: list[int] = []
    for d, place in enumerate(at):
        if len(place.factors) > 1 or not place.factors and constant_of(own[d]) != 1:
            return None
        if place.factors:
            order.append(place.factors[0][0])
            if not analysis.equal(own[d], whole[order[-1]]):
                return None
    extents = _extents(op, sizes)
    if extents is None or order != sorted({*order}):
        return None
    one: list[Size] = [n if d in order or d >= kept else 1 for d, n in enumerate(extents)]
    view = b.reshape(data, one)
    return view if one == extents else b.broadcast(view, extents)


_PICKED = {"mlc.gather": _stretch, "mlc.gather_nd": _moved}
