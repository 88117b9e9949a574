"""What templates for attention have in common: work items, coordinates, masks, and the softmax of their rows.

A kernel has the state of a work item's rows on the stack: their sums and results so far, the logit that theirs are
shifted by and the one which that comes from. A template takes in one block of keys after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from mlir import ir
from mlir.dialects import arith, func, memref, vector

from mlc.kernels.common import memory, peepholes
from mlc.kernels.common.attention import Attention, find_attention, grows_with_scores, shared_dim
from mlc.kernels.common.attention_chain import Limit, chain_of
from mlc.kernels.common.attention_limits import RowLimits
from mlc.kernels.common.attention_points import points_below
from mlc.kernels.common.evaluate import Evaluator, Override, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.cpu.attention_grid import AttentionSchedule, items

LARGE_SCORE, _HIDDEN, SEEN = 1e30, -1e37, -1e30
MARGIN = 16.0  # sums of 2^20 exponentials of it are far from the largest number


def _is_of_heads(limit: Limit) -> bool:
    """May the run say other numbers for heads of a group, the last dimension but rows and keys?"""
    rank = len(limit.op.attributes["iterator_types"])
    return any(limit.mentions(dim) for dim in range(max(rank - 3, 0), rank - 2))


class AttentionKernel(ABC):
    """The memref function of one kernel; how operands are packed and multiplied is a template's affair."""

    margin = MARGIN

    @classmethod
    def expand(cls, source: KernelSource, schedule: AttentionSchedule) -> list[Frame]:
        """The memref function and the grid function of `source`. ValueError when it is no attention."""
        attention = find_attention(source)
        if attention is None:
            raise ValueError(f"kernel {source.func.name.value}: no attention")
        kernel = cls(source, schedule, attention).emit()
        return [kernel, emit_grid(source, lambda frame, shape: items(frame, attention, shape, schedule))]

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
        self.limits = self._limits()
        self.key_range: tuple[Scalar, Scalar] | None = None
        self.base: Scalar = 0  # of a head's rows among those of the work item
        self.columns = -(-self.width // schedule.lanes)
        self.key_pitch, self.width_pitch = schedule.vectors * schedule.lanes, self.columns * schedule.lanes
        self.row_count: Scalar = schedule.row_block
        self.stack = self._operands()
        self._allocate()

    def _limits(self) -> RowLimits | None:
        """What is known of the keys that rows see."""
        chain, frame, index = chain_of(self.a), self.frame, ir.IndexType.get()
        if not self.masked or not chain.is_bounded:
            return None
        if self.heads is not None and any(_is_of_heads(limit) for limit in (*chain.firsts, *chain.lasts)):
            return None
        extents = self.row_extent, self.keys
        return RowLimits(frame, self.a, chain, frame.math, extents, lambda n: n, lambda n: arith.index_cast(index, n))

    # -- what templates do --------------------------------------------------------------------------------------------

    @abstractmethod
    def _operands(self) -> dict[str, ir.Value]:
        """Panels on the stack for packed operands."""

    @abstractmethod
    def _pack_queries(self) -> None:
        """The queries of a head, into their panel."""

    @abstractmethod
    def _key_blocks(self) -> None:
        """What all keys have in the results of the item's rows."""

    # -- work items ---------------------------------------------------------------------------------------------------

    def on_stack(self, element: ir.Type, sizes: Mapping[str, int]) -> dict[str, ir.Value]:
        """Panels with so many elements, by name."""
        return {name: self.frame.on_stack(element, size) for name, size in sizes.items()}

    def _allocate(self) -> None:
        """Panels for the scores of a tile and the state of the item's rows, and flags of rows, whether a mask leaves
        something of a block of keys; behind those of all rows are that of the block, and whether all blocks count."""
        s = self.s
        self.end = rows = s.row_block * s.together
        self.all = rows + 1
        sizes = {
            "scores": s.rows * self.key_pitch,
            "sums": rows * s.lanes,
            "output": rows * self.width_pitch,
            "largest": rows,
            "shifts": rows,
            "factors": max(s.lanes, s.rows),
        }
        self.stack |= self.on_stack(ir.F32Type.get(), sizes)
        self.flags = self.frame.on_stack(ir.IntegerType.get_signless(8), rows + 2) if self.masked else None

    def _known(self, extent: Scalar) -> int:
        if not isinstance(extent, int):
            raise ValueError(f"kernel {self.frame.name}: attention needs known head dimensions")
        return extent

    def emit(self) -> Frame:
        frame, s, math = self.frame, self.s, self.frame.math
        with frame.body():
            extents = items(frame, self.a, self.shape, s)

            def item(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                block, *batch = math.delinearize(variable, extents)
                self.first_row = math.mul(block, s.row_block)
                exact = isinstance(self.row_extent, int) and self.row_extent % s.row_block == 0
                left = math.sub(self.row_extent, self.first_row)
                self.row_count = s.row_block if exact else math.minimum(left, s.row_block)
                self._locate(batch)
                self._rows()
                return []

            for_loop(frame, frame.begin, frame.end, 1, [], item)
            func.ReturnOp([])
        return frame

    def _rows(self) -> None:
        self._for_heads(self._pack_queries)
        if self.flags is None:
            self._take_in_keys()
        else:
            self._take_in_what_is_seen()
        self._for_heads(lambda: self._for_rows(self._finish))

    def _take_in_keys(self) -> None:
        self._for_heads(self._clear_rows)
        self._key_blocks()

    def _take_in_what_is_seen(self) -> None:
        """Blocks of keys that a mask hides from rows are left out. What operations say of rows that see nothing comes
        from all keys: where there is such a row, all blocks are taken in, from the beginning."""
        c = self.frame.constants

        def note(row: ir.Value) -> None:
            nothing = arith.cmpf(arith.CmpFPredicate.ULE, self.load_scalar("largest", row), self._number(SEEN))
            if_then(nothing, lambda: self._flag(self.all, 1))

        def once() -> None:
            self.key_range = self._seen_keys()
            self._take_in_keys()
            self._flag(self.all, 0)
            self._for_heads(lambda: self._for_rows(note))

        def attempt(number: ir.Value) -> None:
            first = arith.cmpi(arith.CmpIPredicate.eq, number, c.index(0))
            if_then(arith.ori(first, self._is_set(self.all)), once)

        self._flag(self.all, 0)
        self.loop(0, 2, 1, attempt)

    def _seen_keys(self) -> tuple[Scalar, Scalar] | None:
        """From which key on, and up to which one, a row of the item sees keys, as far as that is known; all of them
        where all blocks count."""
        if self.limits is None:
            return None
        math, c, limits = self.frame.math, self.frame.constants, self.limits
        rows = self.first_row, math.sub(math.add(self.first_row, self.row_count), 1)
        begin, end = c.index(0), c.index(self.keys)
        is_all = self._is_set(self.all)
        if limits.chain.firsts:
            low = math.maximum(limits.firsts(self.logit_batch, rows)[0], 0)
            begin = arith.select(is_all, begin, c.index(low))
        if limits.chain.lasts:
            high = math.minimum(math.add(limits.lasts(self.logit_batch, rows)[1], 1), self.keys)
            end = arith.select(is_all, end, c.index(high))
        return begin, end

    def blocks(self, low: Scalar, high: Scalar, step: int, body: Callable[[ir.Value], None]) -> None:
        """`body` for every `step` keys from `low` on of which a row may see one."""
        if self.key_range is None:
            self.loop(low, high, step, body)
            return
        math, (begin, end) = self.frame.math, self.key_range
        hidden = math.div(math.maximum(math.sub(begin, low), 0), step)
        self.loop(math.add(low, math.mul(hidden, step)), math.minimum(high, end), step, body)

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

    def read(self, ev: Evaluator, op: ir.Operation, number: int, dims: list[Idx]) -> ir.Value:
        """Elements of an operand of one of the products, as a vector."""
        coords = [ev.idx.affine(e, dims) for e in operand_map(op, number).results]
        return ev.splat(ev.tensor(op.operands[number], coords))

    def operand(self, ev: Evaluator, op: ir.Operation, number: int, dims: list[Idx]) -> ir.Value:
        """The same as f32."""
        value = self.read(ev, op, number, dims)
        return value if value.type == self.vector else arith.extf(self.vector, value)

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

    def key_point(self, key: Scalar, j: int) -> Idx:
        return Idx(self.frame.math.add(key, j * self.s.lanes), 1, level=2)

    # -- masks ------------------------------------------------------------------------------------------------------

    def _flag(self, at: Scalar, value: int) -> None:
        c = self.frame.constants
        memref.store(c.get(ir.IntegerType.get_signless(8), value), self.flags, [c.index(at)])

    def _is_set(self, at: Scalar) -> ir.Value:
        flag = memref.load(self.flags, [self.frame.constants.index(at)])
        return arith.cmpi(arith.CmpIPredicate.ne, flag, self.frame.constants.get(flag.type, 0))

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

    # -- softmax ----------------------------------------------------------------------------------------------------

    def _limit(self, largest: ir.Value) -> ir.Value:
        """What a logit may be without a move of the shift, which is `largest`."""
        return arith.addf(largest, self._number(self.margin))

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
            power = peepholes.exp_nonpositive(self.frame, arith.subf(self.load("scores", place), shift))
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

    # -- results ----------------------------------------------------------------------------------------------------

    def _finish(self, local: ir.Value) -> None:
        """Divide one row by its sum and store it with the epilogue."""
        a, math, lanes = self.a, self.frame.math, self.s.lanes
        kind, fast = ir.Attribute.parse("#vector.kind<add>"), ir.Attribute.parse("#arith.fastmath<reassoc,nsz>")
        sums = self.load("sums", math.mul(local, lanes))
        total = vector.ReductionOp(ir.F32Type.get(), kind, sums, fastmath=fast).result
        point, scale = [*self.logit_batch, self._row(local), Idx(0)], self._number(1.0)
        rows = {a.total.results[0]: total}
        if a.sink:
            largest, shift = (self.load_scalar(name, local) for name in ("largest", "shifts"))
            scale = self._down_to_sink(largest, shift, point)
            rows = {a.total.results[0]: arith.mulf(total, scale), a.maximum.results[0]: largest}
        overrides: dict[ir.Value, Override] = {v: partial(lambda number, _: number, n) for v, n in rows.items()}
        ev = Evaluator(self.frame, lanes, overrides=overrides)
        divisor = ev.tensor(a.divisor, [ev.idx.affine(e, point) for e in operand_map(a.quotient, 1).results])
        factor = self.splat(arith.divf(scale, divisor))
        for j in range(self.columns):
            where = math.add(math.mul(local, self.width_pitch), j * lanes)
            value = arith.mulf(self.load("output", where), factor)
            dims = list(self.dims)
            dims[a.output.row], dims[a.output.column] = self._row(local), Idx(j * lanes, 1)
            self._write([dims[d] for d in a.output.order], value, self.tail(self.width, j))

    def _down_to_sink(self, largest: ir.Value, shift: ir.Value, point: Sequence[Idx]) -> ir.Value:
        """The factor for what a row has come to that makes it relative to what the operations shift its logits by,
        which is the sink where that is larger than all of them."""
        a = self.a
        ev = Evaluator(self.frame, self.s.lanes, overrides={a.maximum.results[0]: lambda _: largest})
        exprs = operand_map(a.difference, a.shifted_by).results
        top = ev.tensor(a.shift, [ev.idx.affine(e, point) for e in exprs])
        down = arith.minimumf(arith.subf(shift, top), self._number(0.0))
        return vector.extract(peepholes.exp_nonpositive(self.frame, self.splat(down)), [], [0])

    def _write(self, point: list[Idx], value: ir.Value, mask: ir.Value | None) -> None:
        overrides: dict[ir.Value, Override] = {self.a.output.op.results[0]: lambda _: value}
        ev = Evaluator(self.frame, self.s.lanes, mask, overrides=overrides)
        for result, destination in zip(self.source.results, self.source.destinations, strict=True):
            stored = ev.tensor(result, point)
            memory.store(self.frame, ev.idx, self.frame.buffers[destination], point, stored, mask)
