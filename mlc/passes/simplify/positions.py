"""Integers that the coordinates of an element alone decide: sums of multiples of them, and constants. Conditions on
such numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from mlir import ir

from mlc.dims import DimAnalysis, constant_of
from mlc.kernels.common.positional import Linear
from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op, element, splat_number
from mlc.passes.simplify.rewrite import constant_array
from mlc.passes.simplify.scalars import HOLDS
from mlc.passes.simplify.stored import Bounds, Stored, line_of

_DEEPEST = 64  # operations that are looked through
_LARGEST = 1 << 20  # of constants, and of factors in 64 bits: no sum of them with coordinates leaves its type
_NARROWEST = 32  # bits
_FLAGS = {"is_unsigned", "unsigned_in", "unsigned_out", "saturate"}  # of operations that read numbers in another way
_MOVES = ("mlc.reshape", "mlc.transpose", "mlc.slice", "mlc.broadcast", "mlc.gather_nd")
_ZERO = Linear((), 0)

INVERSE = {"le": "gt", "lt": "ge", "ge": "lt", "gt": "le"}
"""The predicate that holds where one does not."""


@dataclass(frozen=True)
class Condition:
    """What holds where `difference`, compared with 0 by `predicate`, does."""

    predicate: str
    difference: Linear

    @property
    def inverse(self) -> Condition:
        """What holds where this does not."""
        return Condition(INVERSE[self.predicate], self.difference)


class Positions:
    """What the elements of integer tensors are in terms of their coordinates. A boolean is 1 where it holds.

    Coordinates of extents of 1 are 0. Answers are remembered: while it is in use no operation may be erased.
    """

    def __init__(self, analysis: DimAnalysis, stored: Stored | None = None) -> None:
        """`stored` has the elements of weights, which count as coordinates' where they are that."""
        self.analysis, self.stored = analysis, stored
        self._known: dict[ir.Value, Linear | None] = {}
        self._conditions: dict[ir.Value, tuple[Condition, ...] | None] = {}

    def of(self, value: ir.Value, depth: int = 0) -> Linear | None:
        """The elements of a value; None where more than coordinates decides them, or that is not known."""
        if value not in self._known:
            found = self._answer(value, depth) if depth < _DEEPEST else None
            self._known[value] = None if found is None else self._plain(value, found)
        return self._known[value]

    def extents(self, value: ir.Value) -> list[int]:
        """The extents of a tensor, `DYNAMIC` where they are not known."""
        found = [constant_of(expr) for expr in self.analysis.dims(value)]
        return [DYNAMIC if n is None else n for n in found]

    def picks(self, gather: ir.Operation) -> list[Linear] | None:
        """The coordinates of the input that a `mlc.gather_nd` picks, in terms of those of its result; None where they
        are not known, or not known to be in range."""
        data, indices = gather.operands
        view, source = OpAdaptor(gather), defining_op(indices)
        if view.int("batch_dims", 0) != 0 or source is None:
            return None
        last = indices.type.rank - 1
        joined = source.name == "mlc.concat" and OpAdaptor(source).int("axis") == last
        parts = list(source.operands) if joined else [indices]
        if any(self.extents(part)[last] != 1 for part in parts):
            return None
        found = [self.of(part) for part in parts]
        shape, dims = self.analysis.dims(indices), self.analysis.dims(data)
        if any(f is None or not self._is_in_range(f, shape, dims[d]) for d, f in enumerate(found)):
            return None
        return [f for f in found if f is not None]

    def difference(self, compare: ir.Operation) -> Linear | None:
        """What the left operand of a `mlc.compare` is more than the right one, in terms of the result's coordinates."""
        rule = _Rule(self, OpAdaptor(compare), 0)
        left, right = rule.spread(0), rule.spread(1)
        if left is None or right is None or {*compare.attributes} & _FLAGS:
            return None
        return left.plus(right, -1)

    def conditions(self, value: ir.Value, depth: int = 0) -> tuple[Condition, ...] | None:
        """The conditions that all hold where a boolean does; None where more than coordinates decides it."""
        if value not in self._conditions:
            self._conditions[value] = self._all_of(value, depth) if depth < _DEEPEST else None
        return self._conditions[value]

    def _all_of(self, value: ir.Value, depth: int) -> tuple[Condition, ...] | None:
        op = defining_op(value)
        known = self.of(value)
        if op is None or known is not None:
            return () if known == Linear((), 1) else None
        view = OpAdaptor(op)
        difference = self.difference(op) if op.name == "mlc.compare" else None
        if difference is not None and isinstance(element(op.operands[0]), ir.IntegerType):
            return (Condition(view.text("predicate"), difference),)
        if op.name in ("mlc.compare", "mlc.cast", "mlc.weight"):
            return self._of_stored(view)
        if op.name == "mlc.unary" and view.text() == "not":
            below = self.conditions(op.operands[0], depth + 1) or ()
            return (below[0].inverse,) if len(below) == 1 and below[0].predicate in INVERSE else None
        is_both = op.name == "mlc.binary" and view.text() == "and"
        if op.name not in _MOVES and not is_both:
            return None
        found: list[Condition] = []
        for number in range(2 if is_both else 1):
            part = self.conditions(op.operands[number], depth + 1)
            moved = [self._moved(view, number, one) for one in part or ()]
            if part is None or None in moved:
                return None
            found += [one for one in moved if one is not None]
        return tuple(found)

    def _of_stored(self, view: OpAdaptor) -> tuple[Condition, ...] | None:
        """The conditions that a stored array says, or what it is asked: by a comparison with a number, by a cast to a
        boolean; also where it was moved in between."""
        source, moves = view.op, list[ir.Operation]()
        with_ = splat_number(source.operands[1]) if source.name == "mlc.compare" else 0
        predicate = view.text("predicate") if source.name == "mlc.compare" else "ne"
        if source.name != "mlc.weight":
            below = defining_op(source.operands[0])
            while below is not None and below.name in _MOVES[:-1]:
                moves.append(below)
                below = defining_op(below.operands[0])
            if below is None or source.operands[0].type.shape != source.results[0].type.shape:
                return None
            source = below
        holds = HOLDS.get(predicate)
        if self.stored is None or with_ is None or holds is None or {*view.op.attributes} & _FLAGS:
            return None
        band = self.stored.band(source, lambda array: np.asarray(holds(array, with_)))
        found = None if band is None else between(band, len(source.results[0].type.shape))
        for move in reversed(moves):
            moved = [self._moved(OpAdaptor(move), 0, one) for one in found or ()]
            if found is None or None in moved:
                return None
            found = tuple(one for one in moved if one is not None)
        return found

    def _moved(self, view: OpAdaptor, number: int, below: Condition) -> Condition | None:
        """A condition on an operand's coordinates in terms of the result's."""
        rule = _Rule(self, view, 0, below.difference)
        made = rule.spread(number) if view.name == "mlc.binary" else _RULES[view.name](rule)
        made = None if made is None else self._plain(view.op.results[0], made)
        return None if made is None else Condition(below.predicate, made)

    def _is_in_range(self, at: Linear, shape: Sequence[ir.AffineExpr], extent: ir.AffineExpr) -> bool:
        """Is a coordinate never outside of `extent`, where those that it is made of are inside of `shape`?"""
        if at.constant < 0 or any(factor < 0 for _, factor in at.factors):
            return False
        symbols = self.analysis.symbols
        end = symbols.constant(at.constant + 1)
        for dim, factor in at.factors:
            end = symbols.add(end, symbols.mul(symbols.sub(shape[dim], symbols.constant(1)), symbols.constant(factor)))
        if at.factors:  # where there is an element at all
            return symbols.at_most(end, extent)
        return symbols.at_most(end, extent) or at.constant == 0 and any(self.analysis.equal(extent, n) for n in shape)

    def _plain(self, value: ir.Value, found: Linear) -> Linear | None:
        """Without coordinates that are always 0; None where numbers are too large."""
        extents = self.extents(value)
        factors = tuple((d, f) for d, f in found.factors if extents[d] != 1)
        most = 1 if element(value).width <= _NARROWEST else _LARGEST
        small = abs(found.constant) <= _LARGEST and all(abs(f) <= most for _, f in factors)
        return Linear(factors, found.constant) if small else None

    def _answer(self, value: ir.Value, depth: int) -> Linear | None:
        op, type_ = defining_op(value), value.type
        if op is None or not isinstance(type_, ir.RankedTensorType) or not _is_exact(type_.element_type):
            return None
        if op.name == "mlc.constant":
            return _of_constant(value)
        if op.name == "mlc.weight":
            found = None if self.stored is None else self.stored.line(op)
            return found if found is not None and found.factors else None
        rule = _RULES.get(op.name)
        return None if rule is None else rule(_Rule(self, OpAdaptor(op), depth + 1))


def _is_exact(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and (type_.width == 1 or type_.width >= _NARROWEST)


def _of_constant(value: ir.Value) -> Linear | None:
    number = splat_number(value)
    if number is not None:
        return Linear((), int(number))
    array = constant_array(value)
    return None if array is None else line_of(array.astype(np.int64))


def between(band: Bounds, rank: int) -> tuple[Condition, ...]:
    """The conditions for the columns of a row from its number plus one up to that plus another one."""
    away = Linear(((rank - 2, -1), (rank - 1, 1)), 0)
    parts = zip(("ge", "le"), band, strict=True)
    return tuple(Condition(p, away.plus(Linear((), n), -1)) for p, n in parts if n is not None)


class _Rule:
    """One operation whose result is asked for."""

    def __init__(self, positions: Positions, view: OpAdaptor, depth: int, given: Linear | None = None) -> None:
        """`given` is taken for the elements of its operands."""
        self.positions, self.view, self.depth, self.given = positions, view, depth, given
        self.result = view.op.results[0]

    def operand(self, number: int) -> Linear | None:
        return self.given or self.positions.of(self.view.operand(number), self.depth)

    def dims(self, value: ir.Value) -> list[ir.AffineExpr]:
        return self.positions.analysis.dims(value)

    def spread(self, number: int) -> Linear | None:
        """An operand in terms of the result's coordinates, as far as it does not come again along them."""
        value, found = self.view.operand(number), self.operand(number)
        if found is None or not found.factors:
            return found
        shift = self.result.type.rank - value.type.rank
        own, whole = self.dims(value), self.dims(self.result)
        if shift < 0 or any(not self.positions.analysis.equal(own[d], whole[d + shift]) for d, _ in found.factors):
            return None
        return Linear(tuple((d + shift, f) for d, f in found.factors), found.constant)


def _iota(rule: _Rule) -> Linear | None:
    return Linear(((rule.view.int("axis"), 1),), 0)


def _cast(rule: _Rule) -> Linear | None:
    found, source = rule.operand(0), element(rule.view.operand(0))
    if found is None or not _is_exact(source) or {*rule.view.op.attributes} & _FLAGS:
        return None
    if element(rule.result).width == 1:
        return None if found.factors else Linear((), int(found.constant != 0))
    return found


def _reshape(rule: _Rule) -> Linear | None:
    """Dimensions of extent 1 come and go."""
    found, source = rule.operand(0), rule.view.operand(0)
    if found is None or not found.factors:
        return found
    before, after = (
        [d for d, n in enumerate(rule.positions.extents(value)) if n != 1] for value in (source, rule.result)
    )
    own, whole = rule.dims(source), rule.dims(rule.result)
    pairs = list(zip(before, after, strict=False))
    same = len(before) == len(after) and all(rule.positions.analysis.equal(own[a], whole[b]) for a, b in pairs)
    to = dict(pairs)
    return Linear(tuple(sorted((to[d], f) for d, f in found.factors)), found.constant) if same else None


def _not(rule: _Rule) -> Linear | None:
    found = rule.operand(0)
    if found is None or found.factors or rule.view.text() != "not" or element(rule.result).width != 1:
        return None
    return Linear((), 1 - found.constant)


def _broadcast(rule: _Rule) -> Linear | None:
    return rule.spread(0)


def _transpose(rule: _Rule) -> Linear | None:
    found = rule.operand(0)
    if found is None:
        return None
    order = rule.view.ints("permutation")
    return Linear(tuple(sorted((order.index(d), f) for d, f in found.factors)), found.constant)


def _slice(rule: _Rule) -> Linear | None:
    found, view = rule.operand(0), rule.view
    if found is None:
        return None
    segments, expr = view.segments(), rule.positions.analysis.expr
    offsets, strides = view.mixed("offsets", segments[1]), view.mixed("strides", segments[3])
    factors, constant = [], found.constant
    for d, factor in found.factors:
        offset, stride = constant_of(expr(offsets[d])), constant_of(expr(strides[d]))
        if offset is None or stride is None or offset < 0:
            return None
        factors.append((d, factor * stride))
        constant += factor * offset
    return Linear(tuple(factors), constant)


def _concat(rule: _Rule) -> Linear | None:
    """Parts that go on where the one in front of them ends. Of a part with one element any step is one."""
    values, axis = list(rule.view.operands), rule.view.int("axis")
    parts = [found for n in range(len(values)) if (found := rule.operand(n)) is not None]
    extents = [rule.positions.extents(value)[axis] for value in values]
    if len(parts) < len(values) or any(extent < 0 for extent in extents[:-1]):
        return None
    begins = list(accumulate(extents[:-1], initial=0))
    steps = {dict(part.factors).get(axis, 0) for part, n in zip(parts, extents, strict=True) if n != 1}
    if not steps and len(parts) > 1:
        steps = {parts[1].constant - parts[0].constant}
    if len(steps) > 1:
        return None
    step = steps.pop() if steps else 0
    along = Linear(((axis, step),), 0) if step else _ZERO
    lines = {_without(part, axis).plus(Linear((), -step * begin)) for part, begin in zip(parts, begins, strict=True)}
    return lines.pop().plus(along) if len(lines) == 1 else None


def _without(found: Linear, axis: int) -> Linear:
    return Linear(tuple((d, f) for d, f in found.factors if d != axis), found.constant)


def _binary(rule: _Rule) -> Linear | None:
    left, right, kind = rule.spread(0), rule.spread(1), rule.view.text()
    if left is None or right is None or {*rule.view.op.attributes} & _FLAGS:
        return None
    if kind in ("add", "sub") and element(rule.result).width > 1:
        return left.plus(right, 1 if kind == "add" else -1)
    if left.factors or right.factors:
        return None
    made = _OF_NUMBERS.get(kind)
    return None if made is None else Linear((), made(left.constant, right.constant))


def _compare(rule: _Rule) -> Linear | None:
    """Known where the two differ by a number."""
    difference, made = rule.positions.difference(rule.view.op), HOLDS.get(rule.view.text("predicate"))
    if difference is None or difference.factors or made is None:
        return None
    return Linear((), int(made(difference.constant, 0)))


def _scan(rule: _Rule) -> Linear | None:
    found = rule.operand(0)
    is_zero = found == _ZERO and rule.view.text() == "sum" and len(rule.view.operands) == 1
    return _ZERO if is_zero else None


def _gather_nd(rule: _Rule) -> Linear | None:
    found, at = rule.operand(0), rule.positions.picks(rule.view.op)
    if found is None or at is None:
        return None
    picked, kept = len(at), rule.view.operand(1).type.rank - 1
    made = Linear((), found.constant)
    for d, factor in found.factors:
        point = at[d] if d < picked else Linear(((d - picked + kept, 1),), 0)
        made = made.plus(Linear(tuple((p, f * factor) for p, f in point.factors), point.constant * factor))
    return made


_OF_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
}
_RULES: dict[str, Callable[[_Rule], Linear | None]] = {
    "mlc.iota": _iota,
    "mlc.cast": _cast,
    "mlc.unary": _not,
    "mlc.reshape": _reshape,
    "mlc.broadcast": _broadcast,
    "mlc.transpose": _transpose,
    "mlc.slice": _slice,
    "mlc.concat": _concat,
    "mlc.binary": _binary,
    "mlc.compare": _compare,
    "mlc.scan": _scan,
    "mlc.gather_nd": _gather_nd,
}
