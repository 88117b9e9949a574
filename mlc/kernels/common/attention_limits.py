"""The limits of the keys that rows see, computed where a kernel of attention needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.attention import Attention
from mlc.kernels.common.attention_chain import FAR, Chain, Limit
from mlc.kernels.common.attention_points import coordinates_below
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame
from mlc.kernels.common.index import Idx, IndexMath, Scalar
from mlc.kernels.common.positional import Linear

_FEW = 8  # rows of which each is asked for its limit


@dataclass(frozen=True)
class Blocks:
    """Blocks of keys: those from `begin` to `end` are seen by a row, at least one; those in front of `open` lose no key
    behind a row, those from `front` on none in front of one."""

    begin: Scalar
    end: Scalar
    open: Scalar
    front: Scalar


class RowLimits:
    """The limits of `chain` in numbers of `math`, for `extents`: rows and keys. `wide` makes a coordinate of tensors of
    a number, `narrow` a number of an integer of 64 bits, which is no farther from 0 than `FAR`."""

    def __init__(
        self,
        frame: Frame,
        attention: Attention,
        chain: Chain,
        math: IndexMath,
        extents: tuple[Scalar, Scalar],
        wide: Callable[[Scalar], Scalar],
        narrow: Callable[[ir.Value], Scalar],
    ) -> None:
        self.frame, self.a, self.chain, self.math = frame, attention, chain, math
        (self.rows, self.keys), self.wide, self.narrow = extents, wide, narrow

    def last(self, batch: Sequence[Idx], row: Scalar) -> Scalar:
        """The last visible key of a row of the matrix of logits at `batch`."""
        return reduce(self.math.minimum, [self._number(one, batch, row) for one in self.chain.lasts])

    def first(self, batch: Sequence[Idx], row: Scalar) -> Scalar:
        """The first visible key of a row."""
        return reduce(self.math.maximum, [self._number(one, batch, row) for one in self.chain.firsts])

    def lasts(self, batch: Sequence[Idx], rows: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        """The least and the greatest last key of the rows from one to another one, or numbers beyond them."""
        unknown = -1, self.math.sub(self.keys, 1)
        return self._of_rows(self.chain.lasts, batch, rows, unknown, self.math.minimum)

    def firsts(self, batch: Sequence[Idx], rows: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        """The least and the greatest first key of the rows from one to another one, or numbers beyond them."""
        return self._of_rows(self.chain.firsts, batch, rows, (0, self.keys), self.math.maximum)

    def blocks(self, batch: Sequence[Idx], first: Scalar, count: int, each: int) -> Blocks:
        """What `count` rows from `first` on, or as many as there are, see of blocks of `each` keys."""
        math = self.math
        end: Scalar = math.ceildiv(self.keys, each)
        found = Blocks(0, end, end, 0)
        rows = first, math.sub(math.minimum(math.add(first, count), self.rows), 1)
        if self.chain.lasts:
            low, high = self.lasts(batch, rows)
            end = math.minimum(end, math.ceildiv(math.maximum(math.add(high, 1), 1), each))
            found = Blocks(0, end, math.minimum(math.div(math.maximum(math.add(low, 1), 0), each), end), 0)
        if self.chain.firsts:
            low, high = self.firsts(batch, rows)
            begin = math.minimum(math.div(math.maximum(low, 0), each), math.sub(end, 1))
            front = math.minimum(math.maximum(math.ceildiv(math.maximum(high, 0), each), begin), end)
            found = Blocks(begin, end, math.maximum(found.open, begin), front)
        return found

    def _of_rows(
        self,
        limits: Sequence[Limit],
        batch: Sequence[Idx],
        rows: tuple[Scalar, Scalar],
        unknown: tuple[Scalar, Scalar],
        combine: Callable[[Scalar, Scalar], Scalar],
    ) -> tuple[Scalar, Scalar]:
        found: list[tuple[Scalar, Scalar]] = []
        for limit in limits:
            if limit.is_monotone:
                found.append((self._number(limit, batch, rows[0]), self._number(limit, batch, rows[1])))
                continue
            few = self.rows if isinstance(self.rows, int) and self.rows <= _FEW else 0
            each = [self._number(limit, batch, row) for row in range(few)]
            found.append((reduce(self.math.minimum, each), reduce(self.math.maximum, each)) if each else unknown)
        return reduce(combine, [low for low, _ in found]), reduce(combine, [high for _, high in found])

    def _number(self, limit: Limit, batch: Sequence[Idx], row: Scalar) -> Scalar:
        """A limit of a row."""
        if limit.offset is not None:
            return self.math.add(row, limit.offset)
        number, where = limit.number, list[Idx]()
        if number.terms:
            inside = Idx(self.wide(self.math.minimum(row, self.math.sub(self.rows, 1))), level=2)
            point = [*batch, inside, Idx(0)]
            where = coordinates_below(self.frame, 1, self.a.logits, point, limit.op.results[0])
        whole = self._wide(number.constant)
        for term, factor in number.terms:
            found = Evaluator(self.frame, 1).tensor(term.value, [self._at(at, where) for at in term.at])
            found = found if found.type == whole.type else arith.extsi(whole.type, found)
            whole = arith.addi(whole, arith.muli(found, self._wide(factor)))
        near = arith.minsi(arith.maxsi(whole, self._wide(-FAR)), self._wide(FAR))
        return self.math.add(row, self.narrow(near)) if number.factors else self.narrow(near)

    def _wide(self, number: int) -> ir.Value:
        return self.frame.constants.get(ir.IntegerType.get_signless(64), number)

    def _at(self, linear: Linear, coords: Sequence[Idx]) -> Idx:
        """A coordinate that is a function of others."""
        math = self.frame.math
        total: Scalar = linear.constant
        for dim, factor in linear.factors:
            total = math.add(total, math.mul(coords[dim].base, factor))
        return Idx(total, level=2)
