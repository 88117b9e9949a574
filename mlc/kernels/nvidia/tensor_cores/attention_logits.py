"""From scores to logits: what stands between the products of attention, applied to accumulators.

A positive factor that the scores are multiplied by first is left to the softmax. Rounding on the way to it is not done:
scores stay in f32. A mask that hides all keys behind a row's own position, or in front of such a place (a window), or
behind a place that the run says (the length of a cache), bounds the blocks that are read. Anything else is evaluated
for every pair of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common.attention import Attention
from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import body_of, input_number, is_number
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.positional import Band, Linear, band_of
from mlc.kernels.nvidia.tensor_cores.attention_softmax import HALVES
from mlc.kernels.nvidia.tensor_cores.words import Words

_FEW = 8  # rows of which each is asked for its limit
_FAR = 1 << 29
_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")
_CASTS = ("arith.extf", "arith.truncf")


@dataclass(frozen=True)
class Limit:
    """The first or the last visible key of a row: `number` is a function of the coordinates of `op`, which hides
    others."""

    op: ir.Operation
    number: Linear

    @property
    def offset(self) -> int | None:
        """What it is more than the row's number, where that is known."""
        known = not self.number.terms and len(self.number.factors) == 1
        return self.number.constant if known else None

    @property
    def is_monotone(self) -> bool:
        """Does it never fall from one row to the next?"""
        row = len(self.op.attributes["iterator_types"]) - 2
        return not any(at.mentions(row) for term, _ in self.number.terms for at in term.at)


@dataclass(frozen=True)
class Chain:
    """The operations between scores and logits: `start` is the value that is `scale` times the scores, `diagonals` are
    selections of the keys between limits, which are the largest of `firsts` and the least of `lasts`, and `is_plain`
    says that there is nothing else."""

    scale: float
    start: ir.Value
    diagonals: tuple[tuple[ir.Operation, int], ...]
    firsts: tuple[Limit, ...]
    lasts: tuple[Limit, ...]
    is_plain: bool

    @property
    def is_bounded(self) -> bool:
        """Is anything known of the keys that are hidden?"""
        return bool(self.firsts or self.lasts)

    @property
    def window(self) -> int | None:
        """How many keys a row sees at most, where that is known."""
        firsts, lasts = ([limit.offset for limit in limits] for limits in (self.firsts, self.lasts))
        known = [[n for n in offsets if n is not None] for offsets in (firsts, lasts)]
        return min(known[1]) - max(known[0]) + 1 if known[0] and known[1] else None


def chain_of(attention: Attention) -> Chain:
    """What the logits of `attention` are made by."""
    scale, start, rest = 1.0, attention.scores.op.results[0], list(reversed(attention.path))
    while rest:
        factor = _factor(*rest[0])
        if factor is None:
            break
        scale, start = scale * factor, rest.pop(0)[0].results[0]
    diagonals: list[tuple[ir.Operation, int]] = []
    firsts: list[Limit] = []
    lasts: list[Limit] = []
    for number, (op, operand) in enumerate(rest):
        band = _band(op, operand)
        if band is None or not all(_keeps_hidden(*later) for later in rest[number + 1 :]):
            continue
        firsts += [Limit(op, one) for one in band.firsts]
        lasts += [Limit(op, one) for one in band.lasts]
        if band.is_whole:
            diagonals.append((op, operand))
    hidden = {op for op, _ in diagonals}
    plain = all(op in hidden or _factor(op, operand) == 1.0 for op, operand in rest)
    return Chain(scale, start, tuple(diagonals), _narrowest(firsts, max), _narrowest(lasts, min), plain)


def _narrowest(limits: Sequence[Limit], choose: Callable[[Iterable[int]], int]) -> tuple[Limit, ...]:
    """Of limits that are so much more than the row's number the one that counts, and all others."""
    known = [limit.offset for limit in limits if limit.offset is not None]
    if not known:
        return tuple(limits)
    kept = next(limit for limit in limits if limit.offset == choose(known))
    return (kept, *(limit for limit in limits if limit.offset is None))


def _factor(op: ir.Operation, operand: int) -> float | None:
    """What `op` multiplies its operand by, if that is a positive number and all it does; 1 for views and rounding."""
    if op.name in _VIEWS:
        return 1.0
    if len(op.operands) != 2 or operand != 0:
        return None
    factor, value = 1.0, op.regions[0].blocks[0].arguments[0]
    for inner in body_of(op):
        if inner.name in ("arith.constant", "linalg.yield"):
            continue
        if not inner.operands or inner.operands[0] != value and (len(inner.operands) < 2 or inner.operands[1] != value):
            return None
        if inner.name in ("arith.mulf", "arith.divf"):
            number = _number(inner.operands[1] if inner.operands[0] == value else inner.operands[0])
            if number is None or number <= 0 or inner.name == "arith.divf" and inner.operands[0] != value:
                return None
            factor = factor * number if inner.name == "arith.mulf" else factor / number
        elif inner.name not in _CASTS:
            return None
        value = inner.results[0]
    return factor


def _number(value: ir.Value) -> float | None:
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], ir.FloatAttr):
        return None
    return float(op.attributes["value"].value)


def _band(op: ir.Operation, operand: int) -> Band | None:
    """The keys that `op` shows, where it hides others and does nothing else."""
    inner = [o for o in body_of(op) if o.name not in ("arith.constant", "linalg.yield")]
    selects = [o for o in inner if o.name == "arith.select"]
    if not inner or len(selects) != 1 or inner[-1] != selects[0]:
        return None
    condition, shown, hidden = selects[0].operands
    if input_number(op, shown) != operand or not is_number(hidden, float("-inf")):
        return None
    return band_of(op, condition)


def _keeps_hidden(op: ir.Operation, operand: int) -> bool:
    """Does `op` leave -inf as it is, whatever finite numbers its other operands are?"""
    if op.name in _VIEWS:
        return True
    names = {o.name for o in body_of(op)} - {"arith.constant", "linalg.yield", "linalg.index", *_CASTS}
    if names == {"arith.addf"} or not names:
        return True
    select = next((o for o in body_of(op) if o.name == "arith.select"), None)
    if select is None or names - {"arith.select", "arith.cmpi", "arith.index_cast", "arith.addi"}:
        return False
    return input_number(op, select.operands[1]) == operand and is_number(select.operands[2], float("-inf"))


@dataclass(frozen=True)
class Seen:
    """The visible columns of either row of a thread: from `first` up to `last`, or all where there is nothing."""

    last: Sequence[Scalar] = ()
    first: Sequence[Scalar] = ()


def _clamped(words: Words, value: ir.Value) -> ir.Value:
    """An integer of the run in 32 bits; what is far out of any range stays so."""
    low, high = (words.frame.constants.get(value.type, n) for n in (-_FAR, _FAR))
    inside = arith.minsi(arith.maxsi(value, low), high)
    return inside if value.type == words.i32 else arith.trunci(words.i32, inside)


def _in_type(value: ir.Value, element: ir.Type) -> ir.Value:
    """Numbers of f32 as narrower floats, where operations on these follow, or back."""
    is_vector = isinstance(value.type, ir.VectorType)
    own = value.type.element_type if is_vector else value.type
    if own == element:
        return value
    type_ = ir.VectorType.get(value.type.shape, element) if is_vector else element
    return arith.truncf(type_, value) if own == ir.F32Type.get() else arith.extf(type_, value)


class Logits:
    """Logits of a thread's scores. `rows` and `keys` are the extents of the score matrix."""

    def __init__(self, words: Words, attention: Attention, chain: Chain, extents: tuple[Scalar, Scalar]) -> None:
        self.words, self.a, self.chain = words, attention, chain
        self.rows, self.keys = extents
        keys = attention.scores.op.results[0].type.shape[-1]
        self.lanes = 2 if keys > 0 and keys % 2 == 0 else 1
        self.low = words.frame.constants.get(words.f32, float("-inf"))

    def evaluate(
        self, scores: Sequence[ir.Value], batch: Sequence[Idx], rows: Sequence[Scalar], first: Scalar, *, at_end: bool
    ) -> list[ir.Value]:
        """What the chain makes of a block whose first column of this thread is `first`; diagonals are left out. Rows
        and, `at_end`, columns beyond the end get anything."""
        if self.chain.is_plain:
            return list(scores)
        math, result = self.words.math, list(scores)
        for half in range(HALVES):
            row = Idx(self.words.widen(math.minimum(rows[half], math.sub(self.rows, 1))), level=2)
            for group in range(len(scores) // 4):
                for i in range(0, 2, self.lanes):
                    column = math.add(first, 8 * group + i)
                    if at_end:
                        column = math.minimum(column, math.sub(self.keys, self.lanes))
                    at = 4 * group + 2 * half + i
                    key = Idx(self.words.widen(column), int(self.lanes > 1), level=3)
                    result[at : at + self.lanes] = self._pair(scores[at : at + self.lanes], [*batch, row, key])
        return result

    def _pair(self, scores: Sequence[ir.Value], point: list[Idx]) -> list[ir.Value]:
        """The logits of neighbours."""
        type_ = ir.VectorType.get([self.lanes], self.words.f32)
        value = scores[0] if self.lanes == 1 else vector.from_elements(type_, list(scores))
        if self.chain.scale != 1.0:
            factor = self.words.frame.constants.get(self.words.f32, self.chain.scale)
            value = arith.mulf(value, factor if self.lanes == 1 else vector.broadcast(type_, factor))
        value = _in_type(value, self.chain.start.type.element_type)
        overrides: dict[ir.Value, Override] = {self.chain.start: lambda _: value}
        scope = Evaluator(self.words.frame, self.lanes, overrides=overrides)
        for op, operand in self.chain.diagonals:
            shown = op.operands[operand]
            scope.overrides[op.results[0]] = partial(scope.tensor, shown)
        found = _in_type(scope.splat(scope.tensor(self.a.logits, point)), self.words.f32)
        if self.lanes == 1:
            return [found]
        return [vector.extract(found, [], [i]) for i in range(self.lanes)]

    def last(self, batch: Sequence[Idx], row: Scalar) -> Scalar:
        """The last visible key of a row of the matrix at `batch`."""
        return reduce(self.words.math.minimum, [self._limit(one, batch, row) for one in self.chain.lasts])

    def first(self, batch: Sequence[Idx], row: Scalar) -> Scalar:
        """The first visible key of a row."""
        return reduce(self.words.math.maximum, [self._limit(one, batch, row) for one in self.chain.firsts])

    def of_rows(
        self, limits: Sequence[Limit], batch: Sequence[Idx], rows: tuple[Scalar, Scalar]
    ) -> tuple[Scalar, Scalar]:
        """The least and the greatest that each of `limits` is for the rows from one to another one, combined as `last`
        and `first` combine them; of limits of which neither is known, what leaves nothing out."""
        math, found = self.words.math, []
        is_last = limits == self.chain.lasts
        for limit in limits:
            if limit.is_monotone:
                found.append([self._limit(limit, batch, row) for row in rows])
                continue
            few = self.rows if isinstance(self.rows, int) and self.rows <= _FEW else 0
            each = [self._limit(limit, batch, row) for row in range(few)]
            unknown: list[Scalar] = [-1, math.sub(self.keys, 1)] if is_last else [0, self.keys]
            found.append([reduce(math.minimum, each), reduce(math.maximum, each)] if each else unknown)
        combine = math.minimum if is_last else math.maximum
        low, high = (reduce(combine, [pair[i] for pair in found]) for i in range(2))
        return low, high

    def _limit(self, limit: Limit, batch: Sequence[Idx], row: Scalar) -> Scalar:
        """A limit of a row."""
        if limit.offset is not None:
            return self.words.math.add(row, limit.offset)
        inside = self.words.math.minimum(row, self.words.math.sub(self.rows, 1))
        where: list[list[Idx]] = []

        def capture(coords: Sequence[Idx]) -> ir.Value:
            where.append(list(coords))
            return self.low

        scope = Evaluator(self.words.frame, 1, overrides={limit.op.results[0]: capture})
        scope.tensor(self.a.logits, [*batch, Idx(self.words.widen(inside), level=2), Idx(0)])
        number = limit.number
        total: Scalar = number.constant if not number.factors else self.words.math.add(row, number.constant)
        for term, factor in number.terms:
            found = Evaluator(self.words.frame, 1).tensor(term.value, [self._at(at, where[0]) for at in term.at])
            total = self.words.math.add(total, self.words.math.mul(_clamped(self.words, found), factor))
        return total

    def _at(self, linear: Linear, coords: Sequence[Idx]) -> Idx:
        """A coordinate that is a function of others."""
        math = self.words.frame.math
        total: Scalar = linear.constant
        for dim, factor in linear.factors:
            total = math.add(total, math.mul(coords[dim].base, factor))
        return Idx(total, level=2)

    def hide(
        self,
        logits: Sequence[ir.Value],
        seen: Seen,
        first: Scalar,
        spread: tuple[int, int] = (8, 1),
        more: Sequence[int] = (0, 0),
    ) -> list[ir.Value]:
        """-inf in the place of logits that are not `seen`, with `more` added to either row's columns; `spread` is how
        far pairs of columns, and the two of a pair, are apart."""
        result = list(logits)
        kinds = ((seen.last, arith.CmpIPredicate.sgt), (seen.first, arith.CmpIPredicate.slt))
        for columns, predicate in kinds:
            if columns:
                limits = [self.words.value(self.words.math.sub(column, first)) for column in columns]
                result = self._hidden(result, limits, predicate, spread, more)
        return result

    def _hidden(
        self,
        logits: Sequence[ir.Value],
        limits: Sequence[ir.Value],
        predicate: arith.CmpIPredicate,
        spread: tuple[int, int],
        more: Sequence[int],
    ) -> list[ir.Value]:
        result = list(logits)
        for number in range(len(logits)):
            group, half, i = number // 4, number // 2 % 2, number % 2
            column = self.words.value(spread[0] * group + spread[1] * i - more[half])
            is_hidden = arith.cmpi(predicate, column, limits[half])
            result[number] = arith.select(is_hidden, self.low, logits[number])
        return result
