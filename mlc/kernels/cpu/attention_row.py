"""The products of an attention for one row of a head: keys and values are read where they lie.

To pack a block of keys and values takes longer than one row takes with them. So the row's scores are sums along the
dimension in which keys lie in memory: as many keys at a time as a vector has lanes, each with its accumulator, whose
lanes are added up across them. The product with the values has several vectors of columns, or several chains of keys.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import peepholes
from mlc.kernels.common.analysis import only_moves
from mlc.kernels.common.attention import Attention
from mlc.kernels.common.attention_points import contiguous_dim
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.inner_product import lane_sums

if TYPE_CHECKING:
    from mlc.kernels.cpu.attention import RegisterAttention

_KEYS = 64  # of a block: their lines and those of the values stay in the first cache for all heads of an item
_SUMS = 8  # that a multiply-add may be added to in turns: as many as it takes steps, times two of them at a time


def reads_in_place(attention: Attention) -> bool:
    """Are keys and values elements in memory, which nothing is computed for but f32 of halves?"""
    return only_moves([attention.scores.op.operands[1], attention.output.op.operands[1]], widening=True)


class Row:
    """What a kernel computes of one row; the row's state and panels are the kernel's."""

    def __init__(self, kernel: RegisterAttention) -> None:
        self.k, self.s, self.frame = kernel, kernel.s, kernel.frame
        self.vectors = max(1, min(kernel.s.rows * kernel.s.vectors, _KEYS // kernel.s.lanes))
        scores = kernel.a.scores
        self.by_key = contiguous_dim(scores.op, 1) != scores.column  # does each key lie in one piece?

    def scores(self, at: Scalar, key: Scalar, vectors: int, mask: ir.Value | None) -> list[ir.Value]:
        """The logits of a block of keys, into the panel of scores; the largest ones, by lanes."""
        lanes = self.s.lanes
        if self.by_key:
            self.k.loop(0, vectors * lanes, lanes, lambda j: self._store_dots(at, key, j, mask is not None))
            found = [self.k.load("scores", j * lanes) for j in range(vectors)]
        else:
            found = self._steps(at, key, vectors, mask)
        values = []
        for j, score in enumerate(found):
            values.append(self.k.logits(at, 0, key, j, mask if j == vectors - 1 else None, score))
            self.k.store("scores", j * lanes, values[-1])
        return [reduce(peepholes.maximum_of_numbers, values)]

    def _store_dots(self, at: Scalar, key: Scalar, j: ir.Value, partial: bool) -> None:
        """The scores of `lanes` keys from `key + j` on; keys behind the end repeat the last one."""
        math, lanes, scores = self.frame.math, self.s.lanes, self.k.a.scores
        sums = [self.k.splat(0.0)] * lanes
        for i in range(self.k.depth_pitch // lanes):
            query = self.k.load("queries", math.add(math.mul(at, self.k.depth_pitch), i * lanes))
            for n in range(lanes):
                position = math.add(math.add(key, j), n)
                if partial:
                    position = math.minimum(position, math.sub(self.k.keys, 1))
                ev = Evaluator(self.frame, lanes, self.k.tail(self.k.depth, i))
                dims = list(self.k.score_dims)
                dims[scores.column], dims[scores.inner] = Idx(position, level=4), Idx(i * lanes, 1)
                sums[n] = vector.FMAOp(self.k.operand(ev, scores.op, 1, dims), query, sums[n]).result
        self.k.store("scores", j, lane_sums(sums))

    def _steps(self, at: Scalar, key: Scalar, vectors: int, mask: ir.Value | None) -> list[ir.Value]:
        """The scores, where keys are adjacent: step by step of the sum."""
        math, scores = self.frame.math, self.k.a.scores

        def body(d: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            query = self.k.splat(self.k.load_scalar("queries", math.add(math.mul(at, self.k.depth_pitch), d)))
            found = []
            for j in range(vectors):
                ev = Evaluator(self.frame, self.s.lanes, mask if j == vectors - 1 else None)
                dims = list(self.k.score_dims)
                dims[scores.column], dims[scores.inner] = self.k.key_point(key, j), Idx(d, level=4)
                found.append(vector.FMAOp(self.k.operand(ev, scores.op, 1, dims), query, sums[j]).result)
            return found

        return for_loop(self.frame, 0, self.k.depth, 1, [self.k.splat(0.0)] * vectors, body)

    def product(self, at: Scalar, key: Scalar, count: Scalar) -> None:
        """Add the product of the exponentials of `count` keys and their values."""
        for first in range(0, self.k.columns, _SUMS):
            self._columns(at, key, count, first, min(_SUMS, self.k.columns - first))

    def _columns(self, at: Scalar, key: Scalar, count: Scalar, first: int, width: int) -> None:
        math, lanes, out = self.frame.math, self.s.lanes, self.k.a.output
        most = _SUMS // width if isinstance(count, int) else 1
        chains = next(n for n in range(most, 0, -1) if n == 1 or count % n == 0)
        place = math.add(math.mul(at, self.k.width_pitch), first * lanes)

        def body(variable: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            found = []
            for chain in range(chains):
                k = math.add(variable, chain)
                power = self.k.splat(self.k.load_scalar("scores", k))
                for j in range(width):
                    ev = Evaluator(self.frame, lanes, self.k.tail(self.k.width, first + j))
                    dims = list(self.k.dims)
                    dims[out.inner] = Idx(math.add(key, k), level=4)
                    dims[out.column] = Idx((first + j) * lanes, 1)
                    value = self.k.operand(ev, out.op, 1, dims)
                    found.append(vector.FMAOp(power, value, sums[chain * width + j]).result)
            return found

        old = [self.k.load("output", math.add(place, j * lanes)) for j in range(width)]
        sums = for_loop(self.frame, 0, count, chains, old + [self.k.splat(0.0)] * (width * (chains - 1)), body)
        for j in range(width):
            total = reduce(arith.addf, sums[j::width])
            self.k.store("output", math.add(place, j * lanes), total)
