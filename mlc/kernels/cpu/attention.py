"""Attention in one kernel: the scores of a block of keys stay in the first-level cache.

A work item is a block of query rows of one head. For every block of keys the item packs the keys (transposed) and the
values onto the stack and walks over its rows in register tiles: the tile's scores, what is done to them (scale, masks)
on demand, the exponentials relative to a logit of the row, and the product with the values. That logit is the largest
of the first block; when one exceeds it by more than `MARGIN`, the largest so far takes its place, and the row's sum and
its accumulators are scaled down ("Online normalizer calculation for softmax", Milakov and Gimelshein, 2018;
"FlashAttention", Dao et al., 2022). Blocks whose logits a mask hides are left out: when the chain
grows with the scores and its value for a score of 1e30 is below −1e37 everywhere, while every row has seen a logit
above −1e30, all exponentials are exactly 0. So any mask helps, a causal one as well as a padding.

What does not come out as in three kernels: where a mask hides a whole block, infinities and NaN of its keys and values
and scores above 1e30 do not show.

Heads of a group, which share keys and values, may be of one work item (`together`): these are packed once for them. A
single row of each head is not worth that: it reads them where they lie (`attention_row`).

Schedule parameters: `lanes`; `rows`: rows of a register tile; `vectors`: vectors of keys of a block, and of columns of
the tile; `row_block`: rows of a work item, of each of its heads; `together`: how many heads these are, a divisor of
those of a group; `scalef`: 1 when exponentials may use the AVX-512 instruction of this name,
2 when `vreduceps` as well, 3 when results may be subnormal numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from mlir import ir
from mlir.dialects import arith, func, memref, vector

from mlc.kernels.common import memory, peepholes, vector_math
from mlc.kernels.common.attention import Attention, find_attention, grows_with_scores, shared_dim
from mlc.kernels.common.attention_points import contiguous_dim, points_below
from mlc.kernels.common.evaluate import Evaluator, Override, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.cpu.attention_row import Row, reads_in_place
from mlc.kernels.cpu.transpose import transposed

LARGE_SCORE, _HIDDEN, SEEN = 1e30, -1e37, -1e30
MARGIN = 16.0  # sums of 2^20 exponentials of it are far from the largest number


@dataclass(frozen=True)
class AttentionSchedule:
    """Parameters of the template; see the module's description."""

    lanes: int
    rows: int
    vectors: int
    row_block: int
    scalef: int = 0
    together: int = 1


def expand(source: KernelSource, schedule: AttentionSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    attention = find_attention(source)
    if attention is None:
        raise ValueError(f"kernel {source.func.name.value}: no attention")
    kernel = AttentionKernel(source, schedule, attention).emit()
    return [kernel, emit_grid(source, lambda frame, shape: items(frame, attention, shape, schedule))]


def items(frame: Frame, attention: Attention, shape: Sequence[Scalar], s: AttentionSchedule) -> list[Scalar]:
    """Extents of the grid: blocks of rows, then batch dimensions, so that neighbours share what a mask says of them."""
    order, heads = attention.output.order, shared_dim(attention) if s.together > 1 else None
    extents = {d: shape[order.index(d)] for d in attention.output.batch}
    batch = [frame.math.div(extent, s.together) if d == heads else extent for d, extent in extents.items()]
    return [frame.math.ceildiv(shape[order.index(attention.output.row)], s.row_block), *batch]


_EmitTile = Callable[[Scalar, int], None]


class AttentionKernel:
    """The memref function of one kernel; templates for other units multiply in other ways."""

    margin = MARGIN

    def __init__(self, source: KernelSource, schedule: AttentionSchedule, attention: Attention) -> None:
        self.source, self.s, self.a = source, schedule, attention
        self.frame = frame = Frame(source, vector_lanes=schedule.lanes, scalef=schedule.scalef)
        self.shape = frame.buffers[source.destinations[0]].shape
        order = attention.output.order
        with frame.prologue():
            self.depth = self._known(reduction_extents(frame, attention.scores.op)[attention.scores.inner])
            self.keys = reduction_extents(frame, attention.output.op)[attention.output.inner]
        self.width = self._known(self.shape[order.index(attention.output.column)])
        self.row_extent = self.shape[order.index(attention.output.row)]
        self.vector = ir.VectorType.get([schedule.lanes], ir.F32Type.get())
        self.masked = grows_with_scores(attention)
        self.heads = shared_dim(attention) if schedule.together > 1 else None
        self.base: Scalar = 0  # of a head's rows among those of the work item
        self.row = self._row_of_a_head()
        self.single: Row | None = None  # that, where the work item has one row of each head
        self._allocate()

    def _row_of_a_head(self) -> Row | None:
        """What computes a single row; None where there are several, or heads share keys that are computed."""
        several = isinstance(self.row_extent, int) and self.row_extent > 1
        again = self.heads is not None and not reads_in_place(self.a)
        return None if several or again else Row(self)

    def _known(self, extent: Scalar) -> int:
        if not isinstance(extent, int):
            raise ValueError(f"kernel {self.frame.name}: attention needs known head dimensions")
        return extent

    def _allocate(self) -> None:
        """Panels on the stack: packed operands, the scores of a tile, and the state of the item's rows."""
        s, lanes = self.s, self.s.lanes
        self.depth_pitch = -(-self.depth // lanes) * lanes
        self.columns = -(-self.width // lanes)
        self.key_pitch, self.width_pitch = s.vectors * lanes, self.columns * lanes
        f32, i8 = ir.F32Type.get(), ir.IntegerType.get_signless(8)
        self.end = rows = s.row_block * s.together
        sizes = {
            "queries": rows * self.depth_pitch,
            "panel": self.depth_pitch * self.key_pitch,
            "values": self.key_pitch * self.width_pitch,
            "scores": s.rows * self.key_pitch,
            "sums": rows * lanes,
            "output": rows * self.width_pitch,
            "largest": rows,
            "shifts": rows,
            "factors": lanes,
        }
        self.stack = {name: self.frame.on_stack(f32, size) for name, size in sizes.items()}
        self.flags = self.frame.on_stack(i8, rows + 1) if self.masked else None

    def emit(self) -> Frame:
        frame, s, math = self.frame, self.s, self.frame.math
        with frame.body():
            extents = items(frame, self.a, self.shape, s)

            def item(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                block, *batch = math.delinearize(variable, extents)
                self.first_row = math.mul(block, s.row_block)
                exact = isinstance(self.row_extent, int) and self.row_extent % s.row_block == 0
                left = math.sub(self.row_extent, self.first_row)
                self.row_count: Scalar = s.row_block if exact else math.minimum(left, s.row_block)
                self._locate(batch)
                self._item()
                return []

            for_loop(frame, frame.begin, frame.end, 1, [], item)
            func.ReturnOp([])
        return frame

    def _item(self) -> None:
        """All rows of a work item; a single one of each head in its own way."""
        if self.row is None:
            self._rows()
        elif isinstance(self.row_count, int):
            self._single_rows()
        else:
            one = arith.cmpi(arith.CmpIPredicate.eq, self.row_count, self.frame.constants.index(1))
            if_then(one, self._single_rows, self._rows)

    def _single_rows(self) -> None:
        count, self.row_count, self.single = self.row_count, 1, self.row
        self._rows()
        self.row_count, self.single = count, None

    def _rows(self) -> None:
        self._for_heads(self._pack_queries)
        self._for_heads(self._clear_rows)
        self._key_blocks()
        self._for_heads(lambda: self._for_rows(self._finish))

    # -- coordinates ------------------------------------------------------------------------------------------------

    def _locate(self, batch: Sequence[Scalar], head: Scalar = 0) -> None:
        """The coordinates of a head of the item: of the output's dimensions, and the leading ones of logits and
        scores."""
        out, math = self.a.output, self.frame.math
        self.batch = batch
        self.dims = [Idx(0)] * len(out.op.attributes["iterator_types"])
        for dim, at in zip(out.batch, batch, strict=True):
            place = at if dim != self.heads else math.add(math.mul(at, self.s.together), head)
            self.dims[dim] = Idx(place, level=1)
        self.logit_batch, batch_dims = points_below(self.a, self.frame, self.s.lanes, self.dims)
        count = len(self.a.scores.op.attributes["iterator_types"])
        self.score_dims = [batch_dims.get(dim, Idx(0)) for dim in range(count)]

    def _for_heads(self, body: Callable[[], None]) -> None:
        """`body` for every head of the item, whose rows begin at `base`; behind it the first one is the present one."""
        if self.heads is None:
            body()
            return
        first = self.dims, self.logit_batch, self.score_dims

        def head(variable: ir.Value) -> None:
            self.base = self.frame.math.mul(variable, self.s.row_block)
            self._locate(self.batch, variable)
            body()

        self.loop(0, self.s.together, 1, head)
        self.base, (self.dims, self.logit_batch, self.score_dims) = 0, first

    def _row(self, local: Scalar) -> Idx:
        math = self.frame.math
        return Idx(math.add(self.first_row, math.sub(local, self.base)), level=3)

    def operand(self, ev: Evaluator, op: ir.Operation, number: int, dims: list[Idx]) -> ir.Value:
        """Elements of an operand of one of the products, as a vector."""
        coords = [ev.idx.affine(e, dims) for e in operand_map(op, number).results]
        return ev.splat(ev.tensor(op.operands[number], coords))

    def _number(self, value: float) -> ir.Value:
        return self.frame.constants.get(ir.F32Type.get(), value)

    def splat(self, value: float | ir.Value) -> ir.Value:
        return memory.splat(value if isinstance(value, ir.Value) else self._number(value), self.s.lanes)

    # -- panels -----------------------------------------------------------------------------------------------------

    def load(self, panel: str, at: Scalar) -> ir.Value:
        return vector.LoadOp(self.vector, self.stack[panel], [self.frame.constants.index(at)]).result

    def store(self, panel: str, at: Scalar, value: ir.Value) -> None:
        vector.StoreOp(value, self.stack[panel], [self.frame.constants.index(at)])

    def load_scalar(self, panel: str, at: Scalar) -> ir.Value:
        return memref.load(self.stack[panel], [self.frame.constants.index(at)])

    def tail(self, extent: int, j: int) -> ir.Value | None:
        """The mask of vector `j` of `extent` elements."""
        left = extent - j * self.s.lanes
        return None if left >= self.s.lanes else lane_mask(self.frame, self.s.lanes, self.frame.constants.index(left))

    def loop(self, low: Scalar, high: Scalar, step: int, body: Callable[[ir.Value], None]) -> None:
        def run(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(variable)
            return []

        for_loop(self.frame, low, high, step, [], run)

    def _for_rows(self, body: Callable[[ir.Value], None]) -> None:
        self.loop(self.base, self.frame.math.add(self.base, self.row_count), 1, body)

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
                self.loop(0, vectors * lanes, lanes, lambda at, i=i: self._pack_square(key, at, i, mask))  # type: ignore[misc]
            return

        def line(d: ir.Value) -> None:
            for j in range(vectors):
                ev = Evaluator(self.frame, lanes, mask if j == vectors - 1 else None)
                dims = list(self.score_dims)
                dims[scores.column], dims[scores.inner] = self.key_point(key, j), Idx(d, level=4)
                packed = self.operand(ev, scores.op, 1, dims)
                self.store("panel", math.add(math.mul(d, self.key_pitch), j * lanes), packed)

        self.loop(0, self.depth, 1, line)

    def _pack_square(self, key: Scalar, at: ir.Value, i: int, mask: ir.Value | None) -> None:
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

    def _clear_rows(self) -> None:
        self._for_rows(self._clear)

    def _clear(self, local: ir.Value) -> None:
        math = self.frame.math
        self._note(local, self._number(float("-inf")), self._number(0.0))
        self.store("sums", math.mul(local, self.s.lanes), self.splat(0.0))
        for j in range(self.columns):
            at = math.add(math.mul(local, self.width_pitch), j * self.s.lanes)
            self.store("output", at, self.splat(0.0))

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

    def key_point(self, key: Scalar, j: int) -> Idx:
        return Idx(self.frame.math.add(key, j * self.s.lanes), 1, level=2)

    def _key_blocks(self) -> None:
        """Known extents split into blocks of equal size but for one vector; else what remains is single vectors."""
        lanes, math = self.s.lanes, self.frame.math
        vectors = (self.single or self.s).vectors
        if isinstance(self.keys, int):
            total = -(-self.keys // lanes)
            blocks = -(-total // vectors)
            small, more = divmod(total, max(blocks, 1))
            middle = more * (small + 1) * lanes
            partial = self.keys % lanes != 0
            last = blocks - more
            if more:
                self.loop(0, middle, (small + 1) * lanes, lambda k: self._block(k, small + 1, partial and not last))
            if last:
                self.loop(middle, self.keys, small * lanes, lambda k: self._block(k, small, partial))
            return
        whole = math.mul(math.div(self.keys, vectors * lanes), vectors * lanes)
        self.loop(0, whole, vectors * lanes, lambda k: self._block(k, vectors, False))
        self.loop(whole, self.keys, lanes, lambda k: self._block(k, 1, True))

    def _block(self, key: ir.Value, vectors: int, partial: bool) -> None:
        """One block of keys, whose last vector may reach behind the end when `partial`."""
        math, c, lanes = self.frame.math, self.frame.constants, self.s.lanes
        mask, count = None, vectors * lanes
        length: Scalar = count
        if partial:
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
        i8 = ir.IntegerType.get_signless(8)
        end = c.index(self.end)
        memref.store(c.get(i8, 0), self.flags, [end])
        self._for_heads(lambda: self._tiles(lambda at, size: self._mark(at, size, key, vectors, mask)))
        if_then(self._is_set(end), work)

    # -- masks ------------------------------------------------------------------------------------------------------

    def _is_set(self, at: Scalar) -> ir.Value:
        flag = memref.load(self.flags, [self.frame.constants.index(at)])
        return arith.cmpi(arith.CmpIPredicate.ne, flag, self.frame.constants.get(flag.type, 0))

    def _mark(self, at: Scalar, size: int, key: Scalar, vectors: int, mask: ir.Value | None) -> None:
        """Set the flag of a tile, and that of the block, unless every logit is hidden. The last row is asked first."""
        c, math, i8 = self.frame.constants, self.frame.math, ir.IntegerType.get_signless(8)
        least = self.load_scalar("largest", at)
        for r in range(1, size):
            seen = self.load_scalar("largest", math.add(at, r))
            least = arith.select(arith.cmpf(arith.CmpFPredicate.OLT, seen, least), seen, least)
        unseen = arith.cmpf(arith.CmpFPredicate.ULE, least, self._number(SEEN))

        def mark() -> None:
            for place in (at, self.end):
                memref.store(c.get(i8, 1), self.flags, [c.index(place)])

        def ask(points: Sequence[tuple[int, int]]) -> ir.Value:
            large, top = self.splat(LARGE_SCORE), self.splat(float("-inf"))
            for r, j in points:
                bound = self.logits(at, r, key, j, mask if j == vectors - 1 else None, large)
                top = arith.select(arith.cmpf(arith.CmpFPredicate.UGT, bound, top), bound, top)
            return self._is_visible(top)

        memref.store(c.get(i8, 0), self.flags, [c.index(at)])
        rest = [(r, j) for r in range(size) for j in range(vectors) if (r, j) != (size - 1, 0)]
        if_then(arith.ori(unseen, ask([(size - 1, 0)])), mark, lambda: if_then(ask(rest), mark) if rest else None)

    def _is_visible(self, top: ir.Value) -> ir.Value:
        """Is one of the logits that scores of `LARGE_SCORE` lead to not hidden?"""
        above = arith.cmpf(arith.CmpFPredicate.UGT, top, self.splat(_HIDDEN))
        kind = ir.Attribute.parse("#vector.kind<or>")
        return vector.ReductionOp(ir.IntegerType.get_signless(1), kind, above).result

    def logits(self, at: Scalar, r: Scalar, key: Scalar, j: int, mask: ir.Value | None, score: ir.Value) -> ir.Value:
        """What the chain makes of the scores of row `at + r` and vector `j`; −inf behind the end."""
        overrides: dict[ir.Value, Override] = {self.a.scores.op.results[0]: lambda _: score}
        ev = Evaluator(self.frame, self.s.lanes, mask, overrides=overrides)
        row = self._row(self.frame.math.add(at, r))
        value = ev.splat(ev.tensor(self.a.logits, [*self.logit_batch, row, self.key_point(key, j)]))
        return value if mask is None else arith.select(mask, value, self.splat(float("-inf")))

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
        math, lanes = self.frame.math, self.s.lanes
        unroll = next(u for u in (4, 2, 1) if self.depth % u == 0)

        def body(variable: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            for u in range(unroll):
                d = math.add(variable, u)
                right = [self.load("panel", math.add(math.mul(d, self.key_pitch), j * lanes)) for j in range(vectors)]
                new = []
                for r in range(size):
                    where = math.add(math.mul(math.add(at, r), self.depth_pitch), d)
                    left = self.splat(self.load_scalar("queries", where))
                    new += [vector.FMAOp(left, right[j], sums[r * vectors + j]).result for j in range(vectors)]
                sums = new
            return sums

        start = [self.splat(0.0)] * (size * vectors)
        sums = for_loop(self.frame, 0, self.depth, unroll, start, body)
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

    def _limit(self, largest: ir.Value) -> ir.Value:
        """What a logit may be without a move of the shift, which is `largest`."""
        return arith.addf(largest, self._number(self.margin))

    def _shift(self, at: Scalar, size: int, vectors: int) -> None:
        """Shift the logits of rows by the largest ones so far where these exceed the limit, and scale what such rows of
        the tile have come to."""
        self.loop(0, size, 1, lambda r: self._largest(at, r, vectors))
        self.store("factors", 0, vector_math.exp_nonpositive(self.load("factors", 0), self.frame.scalef))
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

    def _note_largest(self, at: Scalar, r: ir.Value, top: ir.Value) -> None:
        """What follows for one row from the vector `top` of its largest new logits."""
        math, c = self.frame.math, self.frame.constants
        f32, fast = ir.F32Type.get(), ir.Attribute.parse("#arith.fastmath<nnan,nsz>")
        local = math.add(at, r)
        old = self.load_scalar("largest", local)
        found = vector.ReductionOp(f32, ir.Attribute.parse("#vector.kind<maxnumf>"), top, fastmath=fast).result
        # What other rows of the tile have changes no bits of this one.
        new = arith.select(arith.cmpf(arith.CmpFPredicate.OGT, found, self._limit(old)), found, old)
        nothing = arith.cmpf(arith.CmpFPredicate.OEQ, new, self._number(float("-inf")))
        shift = arith.select(nothing, self._number(0.0), new)
        memref.store(arith.subf(old, shift), self.stack["factors"], [c.index(r)])
        self._note(local, new, shift)

    def _note(self, local: Scalar, largest: ir.Value, shift: ir.Value) -> None:
        """The logit of a row that its limit comes from, and what its logits are shifted by from here on."""
        at = [self.frame.constants.index(local)]
        memref.store(largest, self.stack["largest"], at)
        memref.store(shift, self.stack["shifts"], at)

    def _exponentials(self, at: Scalar, r: ir.Value, vectors: int) -> None:
        """Exponentials of one row in place of its logits, and their sum."""
        math, lanes = self.frame.math, self.s.lanes
        local = math.add(at, r)
        shift = self.splat(self.load_scalar("shifts", local))
        total = self.load("sums", math.mul(local, lanes))
        for j in range(vectors):
            place = math.add(math.mul(r, self.key_pitch), j * lanes)
            power = vector_math.exp_nonpositive(arith.subf(self.load("scores", place), shift), self.frame.scalef)
            self._keep_power(place, power)
            total = arith.addf(total, power)
        self.store("sums", math.mul(local, lanes), total)

    def _rescale(self, at: Scalar, r: ir.Value) -> None:
        """Scale the sum and the results of one row so far."""
        math, lanes = self.frame.math, self.s.lanes
        local, factor = math.add(at, r), self.splat(self.load_scalar("factors", r))
        places = [("sums", math.mul(local, lanes))]
        places += [("output", math.add(math.mul(local, self.width_pitch), j * lanes)) for j in range(self.columns)]
        for name, where in places:
            self.store(name, where, arith.mulf(self.load(name, where), factor))

    def _keep_power(self, place: Scalar, power: ir.Value) -> None:
        self.store("scores", place, power)

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
                row = math.mul(k, self.width_pitch)
                right = [self.load("values", math.add(row, (first + j) * lanes)) for j in range(vectors)]
                new = []
                for r in range(size):
                    left = self.splat(self.load_scalar("scores", math.add(k, r * self.key_pitch)))
                    new += [vector.FMAOp(left, right[j], sums[r * vectors + j]).result for j in range(vectors)]
                sums = new
            return sums

        start = [self.load("output", place) for place in places]
        for place, value in zip(places, for_loop(self.frame, 0, count, unroll, start, body), strict=True):
            self.store("output", place, value)

    def _finish(self, local: ir.Value) -> None:
        """Divide one row by its sum and store it with the epilogue."""
        a, math, lanes = self.a, self.frame.math, self.s.lanes
        kind, fast = ir.Attribute.parse("#vector.kind<add>"), ir.Attribute.parse("#arith.fastmath<reassoc,nsz>")
        sums = self.load("sums", math.mul(local, lanes))
        total = vector.ReductionOp(ir.F32Type.get(), kind, sums, fastmath=fast).result
        ev = Evaluator(self.frame, lanes, overrides={a.total.results[0]: lambda _: total})
        point = [*self.logit_batch, self._row(local), Idx(0)]
        divisor = ev.tensor(a.divisor, [ev.idx.affine(e, point) for e in operand_map(a.quotient, 1).results])
        factor = self.splat(arith.divf(self._number(1.0), divisor))
        for j in range(self.columns):
            where = math.add(math.mul(local, self.width_pitch), j * lanes)
            value = arith.mulf(self.load("output", where), factor)
            dims = list(self.dims)
            dims[a.output.row], dims[a.output.column] = self._row(local), Idx(j * lanes, 1)
            self._write([dims[d] for d in a.output.order], value, self.tail(self.width, j))

    def _write(self, point: list[Idx], value: ir.Value, mask: ir.Value | None) -> None:
        overrides: dict[ir.Value, Override] = {self.a.output.op.results[0]: lambda _: value}
        ev = Evaluator(self.frame, self.s.lanes, mask, overrides=overrides)
        for result, destination in zip(self.source.results, self.source.destinations, strict=True):
            stored = ev.tensor(result, point)
            memory.store(self.frame, ev.idx, self.frame.buffers[destination], point, stored, mask)
