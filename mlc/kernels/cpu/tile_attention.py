"""Attention of bf16 in one kernel whose products are on matrix tiles (AMX), with scores and sums in f32.

The work items, masks and running maximum of `attention`. For every block of keys an item packs the keys and the values
as right operands, a tile after the other: 16 groups of two elements of the reduction, for 16 keys or columns each. Of
32 rows, two tiles, the scores go to the stack in f32; there the chain, the maxima and the exponentials go row by row
along vectors, and the exponentials, rounded to bf16, are the left operand of the product with the values. Its sums
begin with what is on the stack, unless one block holds all keys. Rows, keys and head dimensions end anywhere: rows
behind the end are multiplied and never read, and behind the last key and the last element of a key there are zeros.

The sums of the rows are those of the exponentials before they are rounded. `tdpbf16ps` takes denormal numbers for
zeros (Intel, "Architecture Instruction Set Extensions Programming Reference", TDPBF16PS).

Schedule parameters: those of `attention`, with `lanes` 16; `rows`: 32, or 16 where there are no more; `vectors`, an
even number; `row_block`, a multiple of `rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import peepholes
from mlc.kernels.common.evaluate import lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.cpu.attention_grid import AttentionSchedule
from mlc.kernels.cpu.attention_kernel import LARGE_SCORE
from mlc.kernels.cpu.paired_attention import GROUP, PairedAttention
from mlc.kernels.cpu.tiles import LINE, ROWS, Place, Tiles

STEP = LINE // 2  # elements of the reduction that a product of tiles takes
TILE = ROWS * STEP  # elements of a tile


def expand(source: KernelSource, schedule: AttentionSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    if schedule.row_block % schedule.rows or schedule.vectors % 2:
        raise ValueError(f"kernel {source.func.name.value}: tiles do not divide blocks of rows or of keys")
    return _TileAttention.expand(source, schedule)


@dataclass(frozen=True)
class _Block:
    """Keys that are taken in together: the first one, and for how many vectors there is room, an even number. `masks`
    are those of the vectors that have keys; `count` is how many keys there are where they do not fill all vectors."""

    key: Scalar
    vectors: int
    masks: list[ir.Value | None]
    count: Scalar | None = None


_EmitRows = Callable[[Scalar, Scalar, int], None]
"""Emits code for rows: the first of them, how many there are, and how many tiles they take."""


class _TileAttention(PairedAttention):
    margin = 0.0  # a row's shift is its largest logit

    def _row_of_a_head(self) -> None:
        """One row goes the way of all rows."""

    def _allocate(self) -> None:
        super()._allocate()
        self.tiles = Tiles(self.frame)
        self.is_one_block = isinstance(self.keys, int) and -(-self.keys // STEP) * 2 <= self.s.vectors

    # -- operands ---------------------------------------------------------------------------------------------------

    def _groups_of_depth(self) -> int:
        return self.depth_pitch // GROUP

    def _key_place(self, group: Scalar, number: Scalar) -> Scalar:
        math = self.frame.math
        step, row = math.div(group, ROWS), math.rem(group, ROWS)
        tile = math.add(math.mul(number, STEP), math.mul(step, self.s.vectors * TILE))
        return math.add(tile, math.mul(row, STEP))

    def _pack(self, block: _Block) -> None:
        """The keys of `block`, in groups along the head dimension, and the values, in groups along the keys."""
        self._pack_groups_of_keys(block.key, block.masks, block.count)
        for_pairs = partial(partial, self._pack_two_values, block)
        self.loop(0, block.vectors // 2, 1, lambda step: self.loop(0, ROWS, 1, for_pairs(step)))

    def _pack_two_values(self, block: _Block, step: ir.Value, row: ir.Value) -> None:
        """Two keys' values as row `row` of the tiles of `step`."""
        math = self.frame.math
        number = math.add(math.mul(step, STEP), math.mul(row, GROUP))

        def place(j: int) -> Scalar:
            tile = math.add(math.mul(step, self.columns), j)
            return math.add(math.mul(tile, TILE), math.mul(row, STEP))

        self._pack_group_of_values(block.key, number, block.count, place)

    # -- rows and keys ----------------------------------------------------------------------------------------------

    def _clear_rows(self) -> None:
        """By tiles: of vectors LLVM makes a call, after which tiles have to be configured again."""

        def rows(at: ir.Value) -> None:
            zero = self.tiles.zero(ROWS)
            written = self.is_one_block and self.flags is None
            for panel, count in (("sums", 1), *(() if written else [("output", self.columns)])):
                first, pitch = self.frame.math.mul(at, count * ROWS), count * ROWS
                for j in range(count):
                    place = self._place(panel, self.frame.math.add(first, j * ROWS), pitch)
                    self.tiles.store(ROWS, place, zero)
            self.store("largest", at, self.splat(float("-inf")))

        self.loop(0, self.row_count, ROWS, rows)

    def _row_groups(self, emit: _EmitRows) -> None:
        """All rows of the item, two tiles at a time; a known rest is two tiles or one, an unknown one single tiles."""
        math, rows, count = self.frame.math, self.s.rows, self.row_count
        whole = math.mul(math.div(count, rows), rows)
        if not (isinstance(whole, int) and whole == 0):
            self.loop(0, whole, rows, lambda at: emit(at, rows, rows // ROWS))
        if isinstance(whole, int) and whole == count:
            return
        if not isinstance(self.row_extent, int):
            self.loop(whole, count, ROWS, lambda at: emit(at, math.minimum(math.sub(count, at), ROWS), 1))
        elif rest := self.row_extent % rows:
            self.loop(whole, count, rows, lambda at: emit(at, rest, -(-rest // ROWS)))

    def _key_blocks(self) -> None:
        """Known extents split into blocks of equal size but for 32 keys; else what remains is a block with masks."""
        lanes, vectors, math = self.s.lanes, self.s.vectors, self.frame.math
        if not isinstance(self.keys, int):
            whole = math.mul(math.div(self.keys, vectors * lanes), vectors * lanes)
            self.blocks(0, whole, vectors * lanes, partial(self._whole_block, vectors))
            self.blocks(whole, self.keys, vectors * lanes, partial(self._last_block, vectors))
            return
        units = -(-self.keys // STEP)
        small, more = divmod(units, -(-2 * units // vectors))
        first = 0
        for number, size in ((more, small + 1), (-(-2 * units // vectors) - more, small)):
            end = first + number * size * STEP
            whole = end if end <= self.keys else end - size * STEP
            if first < whole:
                self.blocks(first, whole, size * STEP, partial(self._whole_block, 2 * size))
            if whole < end:
                self._last_block(2 * size, whole)
            first = end

    def _whole_block(self, vectors: int, key: ir.Value) -> None:
        self._take_in(_Block(key, vectors, [None] * vectors))

    def _last_block(self, vectors: int, key: Scalar) -> None:
        """A block whose room for keys is not all used."""
        math, c, lanes = self.frame.math, self.frame.constants, self.s.lanes
        left = math.sub(self.keys, key)
        live = min(vectors, -(-left // lanes)) if isinstance(left, int) else vectors
        masks = [
            None
            if isinstance(left, int) and left >= (j + 1) * lanes
            else lane_mask(self.frame, lanes, c.index(math.sub(left, j * lanes)))
            for j in range(live)
        ]
        self._take_in(_Block(key, vectors, masks, left))

    def _take_in(self, block: _Block) -> None:
        """The part that a block of keys has in the results of all rows that a mask does not hide it from."""
        c = self.frame.constants

        def work() -> None:
            self._pack(block)
            self._row_groups(partial(self._visible_rows, block))

        if self.flags is None:
            work()
            return
        end = c.index(self.s.row_block)
        self._flag(end, 0)
        self._row_groups(lambda at, size, _: self._mark_rows(block, at, size))
        if_then(self._is_set(end), work)

    def _mark_rows(self, block: _Block, at: Scalar, size: Scalar) -> None:
        """Set the flag of rows, and that of the block, unless every logit is hidden. The last row is asked first."""
        math = self.frame.math

        def mark() -> None:
            self._flag(at, 1)
            self._flag(self.s.row_block, 1)

        def bounds(row: Scalar, top: ir.Value, vectors: int) -> ir.Value:
            for j, mask in enumerate(block.masks[:vectors]):
                bound = self.logits(at, row, block.key, j, mask, self.splat(LARGE_SCORE))
                top = arith.select(arith.cmpf(arith.CmpFPredicate.UGT, bound, top), bound, top)
            return top

        def ask(row: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            return [bounds(row, carried[0], len(block.masks))]

        def ask_all() -> None:
            [top] = for_loop(self.frame, 0, size, 1, [self.splat(float("-inf"))], ask)
            if_then(self._is_visible(top), mark)

        self._flag(at, 0)
        last = bounds(math.sub(size, 1), self.splat(float("-inf")), 1)
        if_then(arith.ori(self._is_set(self.all), self._is_visible(last)), mark, ask_all)

    # -- one or two tiles of rows -------------------------------------------------------------------------------------

    def _visible_rows(self, block: _Block, at: Scalar, size: Scalar, high: int) -> None:
        def rows() -> None:
            self._products_with_keys(block, at, high)
            self.loop(0, size, 1, partial(self._take_logits, block, at))
            for first in range(0, high * ROWS, self.s.lanes):
                factors = peepholes.exp_nonpositive(self.frame, self.load("factors", first))
                self.store("factors", first, factors)
            self.loop(0, size, 1, partial(self._take_powers, block, at))
            self._products_with_values(block, at, high)

        if self.flags is None:
            rows()
        else:
            if_then(self._is_set(at), rows)

    def _take_logits(self, block: _Block, at: Scalar, r: ir.Value) -> None:
        """The logits of one row in place of its scores, and the largest of them."""
        math, top = self.frame.math, self.splat(float("-inf"))
        for j, mask in enumerate(block.masks):
            place = math.add(math.mul(r, self.key_pitch), j * self.s.lanes)
            score = self.load("scores", place)
            value = self.logits(at, r, block.key, j, mask, score)
            if value != score:
                self.store("scores", place, value)
            top = peepholes.maximum_of_numbers(top, value)
        self._note_largest(at, r, top)

    def _take_powers(self, block: _Block, at: Scalar, r: ir.Value) -> None:
        if not self.is_one_block:  # there is nothing in front of an only one
            self._rescale(at, r)
        self._exponentials(at, r, len(block.masks))
        math, lanes = self.frame.math, self.s.lanes
        for j in range(len(block.masks), block.vectors):
            self.store("powers", math.add(math.mul(r, self.key_pitch), j * lanes), self._zeros(lanes))

    # -- products ---------------------------------------------------------------------------------------------------

    def _place(self, panel: str, at: Scalar, pitch: int) -> Place:
        """The tile that begins at element `at` of a panel with `pitch` elements between rows."""
        size = self.stack[panel].type.element_type.width // 8
        return self.tiles.place(self.stack[panel], self.frame.math.mul(at, size), pitch * size)

    def _products_with_keys(self, block: _Block, at: Scalar, high: int) -> None:
        """The scores of `high` tiles of rows; those of a vector without keys may be anything."""
        math = self.frame.math

        def left(i: int, step: int) -> Place:
            row = math.mul(math.add(at, i * ROWS), self.depth_pitch)
            return self._place("queries", math.add(row, step * STEP), self.depth_pitch)

        def columns(j: ir.Value) -> None:
            def right(n: int, step: int) -> Place:
                return self._place("panel", math.mul(math.add(j, n + step * self.s.vectors), TILE), STEP)

            def result(i: int, n: int) -> Place:
                first = math.add(math.mul(math.add(j, n), ROWS), i * ROWS * self.key_pitch)
                return self._place("scores", first, self.key_pitch)

            self._multiply((high, 2, self.steps), left, right, result, add=False)

        self.loop(0, len(block.masks), 2, columns)

    def _products_with_values(self, block: _Block, at: Scalar, high: int) -> None:
        """Add the products of the exponentials and the values to the results of `high` tiles of rows."""
        math = self.frame.math

        def left(i: int, step: int) -> Place:
            return self._place("powers", i * ROWS * self.key_pitch + step * STEP, self.key_pitch)

        def columns(wide: int, j: Scalar) -> None:
            def right(n: int, step: int) -> Place:
                return self._place("values", math.mul(math.add(j, n + step * self.columns), TILE), STEP)

            def result(i: int, n: int) -> Place:
                row = math.mul(math.add(at, i * ROWS), self.width_pitch)
                return self._place("output", math.add(row, math.mul(math.add(j, n), ROWS)), self.width_pitch)

            self._multiply((high, wide, block.vectors // 2), left, right, result, add=not self.is_one_block)

        pairs = self.columns // 2 * 2
        if pairs:
            self.loop(0, pairs, 2, partial(columns, 2))
        if pairs < self.columns:
            columns(1, pairs)

    def _multiply(
        self,
        size: tuple[int, int, int],
        left: Callable[[int, int], Place],
        right: Callable[[int, int], Place],
        result: Callable[[int, int], Place],
        *,
        add: bool,
    ) -> None:
        """Tiles of rows by tiles of columns, summed up over steps: as many as `size` says. Where the operands are is
        asked by row or column and step, where a sum belongs by row and column; `add` to what is there."""
        (high, wide, steps), tiles = size, self.tiles
        names = [(i, n) for i in range(high) for n in range(wide)]
        sums = [tiles.load(ROWS, result(*name)) if add else tiles.zero(ROWS) for name in names]
        for step in range(steps):
            b: list[ir.Value] = []
            new = []
            for i in range(high):  # each tile is loaded right before the first product that takes it
                a = tiles.load(ROWS, left(i, step))
                for n in range(wide):
                    if i == 0:
                        b.append(tiles.load(ROWS, right(n, step)))
                    new.append(tiles.multiply("tdpbf16ps", ROWS, sums[i * wide + n], a, b[n]))
            sums = new
        for name, tile in zip(names, sums, strict=True):
            tiles.store(ROWS, result(*name), tile)
