"""Attention in one kernel: the scores of a block of keys stay in the first-level cache.

A work item is a block of query rows of one head. For every block of keys the item packs the keys (transposed) and the
values onto the stack and walks over its rows in register tiles: the tile's scores, what is done to them (scale, masks)
on demand, the exponentials relative to a logit of the row, and the product with the values. That logit is the largest
of the first block; when one exceeds it by more than `MARGIN`, the largest so far takes its place, and the row's sum and
its accumulators are scaled down ("Online normalizer calculation for softmax", Milakov and Gimelshein, 2018;
"FlashAttention", Dao et al., 2022). Blocks whose logits a mask hides are left out: when the chain
grows with the scores and its value for a score of 1e30 is below −1e37 everywhere, while every row sees a logit
above −1e30, all exponentials are exactly 0. So any mask helps, a causal one as well as a padding or a window. A row
that has seen no such logit at the end makes the item begin again with all blocks.

What does not come out as in three kernels: where a mask hides a whole block, infinities and NaN of its keys and values
and scores above 1e30 do not show.

Heads of a group, which share keys and values, may be of one work item (`together`): these are packed once for them. A
single row of each head is not worth that: it reads them where they lie (`attention_row`).

Products are of f32; what is narrower becomes that when it is packed.

Schedule parameters: `lanes`; `rows`: rows of a register tile; `vectors`: vectors of keys of a block, and of columns of
the tile; `row_block`: rows of a work item, of each of its heads; `together`: how many heads these are, a divisor of
those of a group; `scalef`: 1 when exponentials may use the AVX-512 instruction of this name,
2 when `vreduceps` as well, 3 when results may be subnormal numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import peepholes
from mlc.kernels.common.attention import Attention
from mlc.kernels.common.attention_points import contiguous_dim
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import KernelSource, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.attention_grid import AttentionSchedule
from mlc.kernels.cpu.attention_kernel import LARGE_SCORE, AttentionKernel
from mlc.kernels.cpu.attention_row import Row, reads_in_place
from mlc.kernels.cpu.transpose import transposed

_EmitTile = Callable[[Scalar, int], None]


class RegisterAttention(AttentionKernel):
    """The memref function of one kernel, with tiles of vector registers."""

    def __init__(self, source: KernelSource, schedule: AttentionSchedule, attention: Attention) -> None:
        super().__init__(source, schedule, attention)
        self.row = self._row_of_a_head()
        self.single: Row | None = None  # that, where the work item has one row of each head

    def _row_of_a_head(self) -> Row | None:
        """What computes a single row; None where there are several, or heads share keys that are computed."""
        several = isinstance(self.row_extent, int) and self.row_extent > 1
        again = self.heads is not None and not reads_in_place(self.a)
        return None if several or again else Row(self)

    def _operands(self) -> dict[str, ir.Value]:
        s, lanes = self.s, self.s.lanes
        self.depth_pitch = -(-self.depth // lanes) * lanes
        sizes = {
            "queries": s.row_block * s.together * self.depth_pitch,
            "panel": self.depth_pitch * self.key_pitch,
            "values": self.key_pitch * self.width_pitch,
        }
        return self.on_stack(ir.F32Type.get(), sizes)

    def _rows(self) -> None:
        """All rows of a work item; a single one of each head in its own way."""
        if self.row is None:
            super()._rows()
        elif isinstance(self.row_count, int):
            self._single_rows()
        else:
            one = arith.cmpi(arith.CmpIPredicate.eq, self.row_count, self.frame.constants.index(1))
            if_then(one, self._single_rows, super()._rows)

    def _single_rows(self) -> None:
        count, self.row_count, self.single = self.row_count, 1, self.row
        super()._rows()
        self.row_count, self.single = count, None

    # -- panels -----------------------------------------------------------------------------------------------------

    def _pack_queries(self) -> None:
        scores, math, lanes = self.a.scores, self.frame.math, self.s.lanes

        def row(local: ir.Value) -> None:
            for j in range(self.depth_pitch // lanes):
                ev = Evaluator(self.frame, lanes, self.tail(self.depth, j))
                dims = list(self.score_dims)
                dims[scores.row], dims[scores.inner] = self._row(local), Idx(j * lanes, 1)
                packed = self.operand(ev, scores.op, 0, dims)
                self.store("queries", math.add(math.mul(local, self.depth_pitch), j * lanes), packed)

        self._for_rows(row)

    def _pack_keys(self, key: Scalar, vectors: int, mask: ir.Value | None) -> None:
        scores, math, lanes = self.a.scores, self.frame.math, self.s.lanes
        if contiguous_dim(scores.op, 1) == scores.inner:
            for i in range(self.depth_pitch // lanes):
                self.loop(0, vectors * lanes, lanes, partial(self._pack_square, key, i, mask))
            return

        def line(d: ir.Value) -> None:
            for j in range(vectors):
                ev = Evaluator(self.frame, lanes, mask if j == vectors - 1 else None)
                dims = list(self.score_dims)
                dims[scores.column], dims[scores.inner] = self.key_point(key, j), Idx(d, level=4)
                packed = self.operand(ev, scores.op, 1, dims)
                self.store("panel", math.add(math.mul(d, self.key_pitch), j * lanes), packed)

        self.loop(0, self.depth, 1, line)

    def _pack_square(self, key: Scalar, i: int, mask: ir.Value | None, at: ir.Value) -> None:
        """`lanes` keys from `key + at` on, transposed; keys behind the end repeat the last one."""
        scores, math, lanes = self.a.scores, self.frame.math, self.s.lanes
        lines = []
        for k in range(lanes):
            position = math.add(math.add(key, at), k)
            if mask is not None:
                position = math.minimum(position, math.sub(self.keys, 1))
            ev = Evaluator(self.frame, lanes, self.tail(self.depth, i))
            dims = list(self.score_dims)
            dims[scores.column], dims[scores.inner] = Idx(position, level=4), Idx(i * lanes, 1)
            lines.append(self.operand(ev, scores.op, 1, dims))
        for k, column in enumerate(transposed(lines, lanes)):
            if i * lanes + k < self.depth:
                self.store("panel", math.add(at, (i * lanes + k) * self.key_pitch), column)

    def _pack_values(self, key: Scalar, count: Scalar) -> None:
        out, math, lanes = self.a.output, self.frame.math, self.s.lanes

        def line(k: ir.Value) -> None:
            for j in range(self.columns):
                ev = Evaluator(self.frame, lanes, self.tail(self.width, j))
                dims = list(self.dims)
                dims[out.inner], dims[out.column] = Idx(math.add(key, k), level=4), Idx(j * lanes, 1)
                packed = self.operand(ev, out.op, 1, dims)
                self.store("values", math.add(math.mul(k, self.width_pitch), j * lanes), packed)

        self.loop(0, count, 1, line)

    # -- rows and keys ----------------------------------------------------------------------------------------------

    def _tiles(self, tile: _EmitTile) -> None:
        """All rows of a head in register tiles; a known rest is one smaller tile, an unknown one single rows."""
        math, rows, base = self.frame.math, self.s.rows, self.base
        if self.single:
            return tile(base, 1)
        whole = math.mul(math.div(self.row_count, rows), rows)
        rest = self.row_extent % rows if isinstance(self.row_extent, int) else 1
        middle, end = math.add(base, whole), math.add(base, self.row_count)
        if not (isinstance(whole, int) and whole == 0):
            self.loop(base, middle, rows, lambda at: tile(at, rows))
        if rest and not (isinstance(whole, int) and whole == self.row_count):
            self.loop(middle, end, rest, lambda at: tile(at, rest))

    def _key_blocks(self) -> None:
        """Known extents split into blocks of equal size but for one vector; else what remains is single vectors."""
        lanes, math = self.s.lanes, self.frame.math
        vectors = (self.single or self.s).vectors
        if isinstance(self.keys, int):
            total = -(-self.keys // lanes)
            blocks = -(-total // vectors)
            small, more = divmod(total, max(blocks, 1))
            middle = more * (small + 1) * lanes
            is_partial = self.keys % lanes != 0
            last = blocks - more
            if more:
                is_cut = is_partial and not last
                self.blocks(0, middle, (small + 1) * lanes, lambda k: self._block(k, small + 1, is_cut))
            if last:
                self.blocks(middle, self.keys, small * lanes, lambda k: self._block(k, small, is_partial))
            return
        whole = math.mul(math.div(self.keys, vectors * lanes), vectors * lanes)
        self.blocks(0, whole, vectors * lanes, lambda k: self._block(k, vectors, False))
        self.blocks(whole, self.keys, lanes, lambda k: self._block(k, 1, True))

    def _block(self, key: ir.Value, vectors: int, is_partial: bool) -> None:
        """One block of keys, whose last vector may reach behind the end when `is_partial`."""
        math, c, lanes = self.frame.math, self.frame.constants, self.s.lanes
        mask, count = None, vectors * lanes
        length: Scalar = count
        if is_partial:
            left = math.sub(self.keys, key)
            mask = lane_mask(self.frame, lanes, c.index(math.sub(left, (vectors - 1) * lanes)))
            length = math.minimum(left, count)

        def visible(at: Scalar, size: int) -> None:
            self._visible_tile(at, size, key, vectors, mask, length)

        def work() -> None:
            if not self.single:
                self._pack_keys(key, vectors, mask)
                self._pack_values(key, length)
            self._for_heads(lambda: self._tiles(visible))

        if self.flags is None:
            work()
            return
        self._flag(self.end, 0)
        self._for_heads(lambda: self._tiles(lambda at, size: self._mark(at, size, key, vectors, mask)))
        if_then(self._is_set(self.end), work)

    # -- masks ------------------------------------------------------------------------------------------------------

    def _mark(self, at: Scalar, size: int, key: Scalar, vectors: int, mask: ir.Value | None) -> None:
        """Set the flag of a tile, and that of the block, unless every logit is hidden. The last row is asked first."""

        def mark() -> None:
            for place in (at, self.end):
                self._flag(place, 1)

        def ask(points: Sequence[tuple[int, int]]) -> ir.Value:
            large, top = self.splat(LARGE_SCORE), self.splat(float("-inf"))
            for r, j in points:
                bound = self.logits(at, r, key, j, mask if j == vectors - 1 else None, large)
                top = arith.select(arith.cmpf(arith.CmpFPredicate.UGT, bound, top), bound, top)
            return self._is_visible(top)

        self._flag(at, 0)
        rest = [(r, j) for r in range(size) for j in range(vectors) if (r, j) != (size - 1, 0)]
        wanted = arith.ori(self._is_set(self.all), ask([(size - 1, 0)]))
        if_then(wanted, mark, lambda: if_then(ask(rest), mark) if rest else None)

    # -- one tile ---------------------------------------------------------------------------------------------------

    def _visible_tile(
        self, at: Scalar, size: int, key: Scalar, vectors: int, mask: ir.Value | None, count: Scalar
    ) -> None:
        def tile() -> None:
            single = self.single
            tops = single.scores(at, key, vectors, mask) if single else self._scores(at, size, key, vectors, mask)
            if_then(self._is_any_above(at, tops), lambda: self._shift(at, size, vectors))
            self.loop(0, size, 1, lambda r: self._exponentials(at, r, vectors))
            if single:
                return single.product(at, key, count)
            for first in range(0, self.columns, self.s.vectors):
                self._product(at, size, first, min(self.s.vectors, self.columns - first), count)

        if self.flags is None:
            tile()
        else:
            if_then(self._is_set(at), tile)

    def _scores(self, at: Scalar, size: int, key: Scalar, vectors: int, mask: ir.Value | None) -> list[ir.Value]:
        """The logits of the tile, into the panel of scores; of each row the largest ones, by lanes."""
        lanes, steps = self.s.lanes, self.depth_steps
        unroll = next(u for u in (4, 2, 1) if steps % u == 0)

        def body(variable: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            for u in range(unroll):
                d = self.frame.math.add(variable, u)
                right = [self._keys_of_step(d, j) for j in range(vectors)]
                sums = self._add_products(sums, right, [partial(self._query_of_step, at, r, d) for r in range(size)])
            return sums

        start = [self.splat(0.0)] * (size * vectors)
        sums = for_loop(self.frame, 0, steps, unroll, start, body)
        tops = []
        for r in range(size):
            values = []
            for j in range(vectors):
                score = sums[r * vectors + j]
                values.append(self.logits(at, r, key, j, mask if j == vectors - 1 else None, score))
                self.store("scores", r * self.key_pitch + j * lanes, values[-1])
            tops.append(reduce(peepholes.maximum_of_numbers, values))
        return tops

    def _is_any_above(self, at: Scalar, tops: Sequence[ir.Value]) -> ir.Value:
        """Does one of the rows from `at` on have a new logit too large for what its logits are shifted by?"""
        above = []
        for r, top in enumerate(tops):
            limit = self._limit(self.load_scalar("largest", self.frame.math.add(at, r)))
            above.append(arith.cmpf(arith.CmpFPredicate.OGT, top, self.splat(limit)))
        kind = ir.Attribute.parse("#vector.kind<or>")
        return vector.ReductionOp(ir.IntegerType.get_signless(1), kind, reduce(arith.ori, above)).result

    def _shift(self, at: Scalar, size: int, vectors: int) -> None:
        """Shift the logits of rows by the largest ones so far where these exceed the limit, and scale what such rows of
        the tile have come to."""
        self.loop(0, size, 1, lambda r: self._largest(at, r, vectors))
        self.store("factors", 0, peepholes.exp_nonpositive(self.frame, self.load("factors", 0)))
        self.loop(0, size, 1, lambda r: self._rescale(at, r))

    def _largest(self, at: Scalar, r: ir.Value, vectors: int) -> None:
        """The largest logit of one row where it exceeds the limit, what its logits are shifted by, and how far that has
        moved."""
        math, lanes = self.frame.math, self.s.lanes
        top = self.splat(float("-inf"))
        for j in range(vectors):
            x = self.load("scores", math.add(math.mul(r, self.key_pitch), j * lanes))
            top = peepholes.maximum_of_numbers(top, x)
        self._note_largest(at, r, top)

    def _product(self, at: Scalar, size: int, first: int, vectors: int, count: Scalar) -> None:
        """Add the product of the tile's exponentials and `vectors` vectors of the values' columns."""
        math, lanes = self.frame.math, self.s.lanes
        unroll = 4 if isinstance(count, int) else 1
        places = [
            math.add(math.mul(math.add(at, r), self.width_pitch), (first + j) * lanes)
            for r in range(size)
            for j in range(vectors)
        ]

        def body(variable: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            for u in range(unroll):
                k = math.add(variable, u)
                right = [self._values_of_step(k, first + j) for j in range(vectors)]
                sums = self._add_products(sums, right, [partial(self._power_of_step, r, k) for r in range(size)])
            return sums

        start = [self.load("output", place) for place in places]
        for place, value in zip(
            places, for_loop(self.frame, 0, self._key_steps(count), unroll, start, body), strict=True
        ):
            self.store("output", place, value)

    # -- steps of the products ----------------------------------------------------------------------------------------

    @property
    def depth_steps(self) -> int:
        """How many steps a score takes."""
        return self.depth

    def _key_steps(self, count: Scalar) -> Scalar:
        """How many steps the product with `count` values takes."""
        return count

    def _query_of_step(self, at: Scalar, r: int, d: Scalar) -> ir.Value:
        math = self.frame.math
        return self.splat(self.load_scalar("queries", math.add(math.mul(math.add(at, r), self.depth_pitch), d)))

    def _keys_of_step(self, d: Scalar, j: int) -> ir.Value:
        math = self.frame.math
        return self.load("panel", math.add(math.mul(d, self.key_pitch), j * self.s.lanes))

    def _power_of_step(self, r: int, k: Scalar) -> ir.Value:
        return self.splat(self.load_scalar("scores", self.frame.math.add(k, r * self.key_pitch)))

    def _values_of_step(self, k: Scalar, j: int) -> ir.Value:
        math = self.frame.math
        return self.load("values", math.add(math.mul(k, self.width_pitch), j * self.s.lanes))

    def _add_products(
        self, sums: list[ir.Value], right: Sequence[ir.Value], left: Sequence[Callable[[], ir.Value]]
    ) -> list[ir.Value]:
        """A step of the sums of a tile, row by row; what is on the left is loaded when its row begins."""
        new = []
        for r, load in enumerate(left):
            row = load()
            new += [self._dot(sums[r * len(right) + j], row, columns) for j, columns in enumerate(right)]
        return new

    def _dot(self, accumulator: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        return vector.FMAOp(left, right, accumulator).result


expand = RegisterAttention.expand
