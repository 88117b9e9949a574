"""Register-tiled products with a weight of few bits, whose columns have a scale for every block of the sum.

The tiles and epilogues of `contraction`. A tile's sums of a block are multiplied by the scales of its columns and added
to its sums of the blocks before; so a code costs what makes a number of it, and no multiplication. Codes come in words
of 32 bits for each column (`mlc.unpack`): one vector holds several steps of the sum of as many columns as it has lanes.

Where the other operand is floats, each code becomes one. With `lookup`, for targets that pick 32-bit elements of one
register of sixteen by another (`vpermps`), a shift and that instruction make `code - zero` of four bits or two;
elsewhere it is a shift, a mask, a difference and a conversion. Tiles of few accumulators have several chains of sums.

Where the other operand is codes with scales as well, a shift and a mask make bytes of four adjacent steps, which
`vpdpbusd` multiplies by four of a row and adds up exactly in 32 bits. `vpmaddubsw` adds pairs of them in 16 bits, for
codes of four bits or two: the sums of several quads stay below 2^15. The zero point is taken off before the sum begins:
that of a block is the sum of the row's codes, times the zero point, which the same instructions add up. (onnxruntime,
docs/ContribOperators.md, MatMulNBits, accuracy level 4: both operands are integers, with scales for each block.)

Schedule parameters: those of `contraction`, with `unroll` in words; `vector_operand`: the input with the vector
dimension, the weight; `instruction`: `fma`, `lookup`, `vpdpbusd` or `vpmaddubsw`; `distance`: words before its turn
that a word of the weight is fetched by tiles of few rows, which take no longer than the weight takes to arrive;
`least`: rows of a work item from which on the weight is taken apart once for all of them, on the stack, `depth` steps
at a time as in `deep_contraction` (0: it never is). Work items of the same rows follow each other, so that what they
take off for the zero point is computed once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.intrinsics import x86
from mlc.kernels.common.streamed import Codes, find_codes
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import tile_grid
from mlc.kernels.cpu.deep_contraction import DeepContraction, DeepContractionSchedule
from mlc.kernels.cpu.dot_product import in_every_lane
from mlc.kernels.cpu.dot_quads import byte_pair_products, pair_products, quad_products
from mlc.kernels.cpu.once import Once
from mlc.kernels.cpu.register_tile import Column, Loops, Position, Tile

QUAD, WORD = 4, 32  # steps in the bytes of a word, and its bits
_CHAINED = 8  # sums that are added to in turns: as many as a multiply-add takes steps, times two of them at a time
_CHAINS = (4, 2)  # for an accumulator of a tile of few
_FEW = 4  # rows of a tile that fetches
_ALIGNMENT = 64  # bytes: a line of the cache
_TABLE = 16  # elements that are picked from

_Sums = dict[tuple[int, int], ir.Value]
_Quads = tuple[list[ir.Value], list[ir.Value]]
_Step = Callable[[list[Scalar], list[ir.Value]], list[ir.Value]]


@dataclass(frozen=True)
class ScaledBlocksSchedule(DeepContractionSchedule):
    """Parameters of the template; see the module's description."""

    vector_operand: int = field(kw_only=True)
    instruction: str = field(kw_only=True)
    distance: int = field(default=0, kw_only=True)
    least: int = field(default=0, kw_only=True)


def expand(source: KernelSource, schedule: ScaledBlocksSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    of_codes = schedule.instruction in ("vpdpbusd", "vpmaddubsw")
    return [(_OfCodes if of_codes else _OfFloats)(source, schedule).emit(), tile_grid(source, schedule)]


class _ScaledBlocks(DeepContraction):
    """The loops over blocks and words; what a word adds to a tile's sums of a block is up to the kind of operand."""

    s: ScaledBlocksSchedule
    apart: ir.Value  # the part of a panel that is taken apart, where some are

    def __init__(self, source: KernelSource, schedule: ScaledBlocksSchedule) -> None:
        super().__init__(source, schedule)
        self.side, self.data = schedule.vector_operand, 1 - schedule.vector_operand
        self.weight = self._codes(self.side)
        if not self.weight.bits or schedule.least and self.extent % self.weight.block:
            raise ValueError(f"kernel {self.frame.name}: no codes in words, or no whole blocks of them")
        self.steps = WORD // self.weight.bits
        self.f32, self.i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)
        self.here: tuple[list[Idx], list[Column]] = ([], [])  # the point and the columns of the present panel
        self.is_apart = False  # is the weight taken apart on the stack?

    def _codes(self, operand: int) -> Codes:
        found = find_codes(self.root.operands[operand])
        if found is None:
            raise ValueError(f"kernel {self.frame.name}: operand {operand} is no integers with scales")
        return found

    def _grid_point(self, item: Scalar) -> list[Scalar]:
        """Work items of the same rows follow each other."""
        *others, blocks = self.items
        block, *rest = self.frame.math.delinearize(item, [blocks, *others])
        return [*rest, block]

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        math, c, s = self.frame.math, self.frame.constants, self.s
        self.here = point, columns

        def few() -> None:
            self.is_apart, self.stage = False, self._whole
            Contraction._rows(self, point, columns, block)

        def many() -> None:
            self.is_apart = True
            self._note_rows(point, block)
            if self.extent != s.depth:
                super(_ScaledBlocks, self)._rows(point, columns, block)
                return
            self.stage, self.low = self._whole, 0
            self._enter()
            Contraction._rows(self, point, columns, block)

        left = math.sub(self.row_extent, math.mul(block, s.row_block))
        if not s.least or isinstance(left, int) and left < s.least:
            few()
        elif isinstance(left, int):
            many()
        else:
            if_then(arith.cmpi(arith.CmpIPredicate.slt, c.index(left), c.index(s.least)), few, many)

    def _whole(self, ev: Evaluator, tile: Tile) -> None:
        """A tile that begins and ends with its sums in registers."""
        sums = self._summed(ev, tile, self._initial(ev, tile))
        self._epilogue(tile, dict(zip(tile.points, sums, strict=True)))

    def _note_rows(self, point: list[Idx], block: Scalar) -> None:
        """What is computed of a work item's rows, once for all panels."""

    def _enter(self) -> None:
        """The block's words, from step `low` on, taken apart: vectors of its columns, one behind the other."""
        math, (point, columns) = self.frame.math, self.here

        def body(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            ev = Evaluator(self.frame, self.s.lanes)
            word = math.add(math.div(self.low, self.steps), number)
            for v, column in enumerate(columns):
                values = self._taken_apart(self._word(ev, self._point(point, Idx(0), column.at), word, True))
                for i, value in enumerate(values):
                    line = math.add(math.mul(number, len(values)), i)
                    vector.StoreOp(value, self.apart, [self._place(line, v)], alignment=_ALIGNMENT)
            return []

        for_loop(self.frame, 0, self.s.depth // self.steps, 1, [], body)

    def _place(self, line: Scalar, column: int) -> ir.Value:
        math, lanes = self.frame.math, self.s.lanes * WORD // self.apart.type.element_type.width
        return self.frame.constants.index(math.mul(math.add(math.mul(line, self.s.vectors), column), lanes))

    def _stored(self, line: Scalar, column: int) -> ir.Value:
        """A vector of the weight that is taken apart."""
        element = self.apart.type.element_type
        type_ = ir.VectorType.get([self.s.lanes * WORD // element.width], element)
        return vector.LoadOp(type_, self.apart, [self._place(line, column)], alignment=_ALIGNMENT).result

    @abstractmethod
    def _taken_apart(self, word: ir.Value) -> list[ir.Value]:
        """What a word is made into, in the order of the sum."""

    def _reduce(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Block after block; the last one may be shorter."""
        block, math = self.weight.block, self.frame.math
        depth, low = (self.s.depth, math.div(self.low, block)) if self.is_apart else (self.extent, 0)
        whole, rest = divmod(depth, block)

        def body(number: Scalar, sums: Sequence[ir.Value], length: int) -> list[ir.Value]:
            found = self._block(ev.child(), tile, number, length, dict(zip(tile.points, sums, strict=True)))
            return list(found.values())

        sums = list(carried)
        if whole:
            end = math.add(low, whole)
            sums = for_loop(self.frame, low, end, 1, sums, lambda number, old: body(number, old, block))
        return body(whole, sums, rest) if rest else sums

    @abstractmethod
    def _block(self, ev: Evaluator, tile: Tile, number: Scalar, length: int, sums: _Sums) -> _Sums:
        """The sums with the products of block `number`, of `length` steps."""

    def _words(self, low: Scalar, length: int, carried: Sequence[ir.Value], step: _Step) -> list[ir.Value]:
        """`step` for the numbers of the words of `length` steps of the sum from `low` on, some of them at a time."""
        math, count = self.frame.math, length // self.steps
        first = math.div(low, self.steps)
        unroll = max(n for n in range(1, self.s.unroll + 1) if count % n == 0)

        def body(variable: Scalar, values: list[ir.Value]) -> list[ir.Value]:
            return step([math.add(math.add(first, variable), u) for u in range(unroll)], values)

        if count == unroll:
            return body(0, list(carried))
        return for_loop(self.frame, 0, count, unroll, list(carried), body)

    def _first_line(self, number: Scalar, each: int) -> Scalar:
        """The first of the `each` lines on the stack that word `number` has become."""
        math = self.frame.math
        return math.mul(math.sub(number, math.div(self.low, self.steps)), each)

    # -- operands ---------------------------------------------------------------------------------------------------

    def _coords(self, ev: Evaluator, operand: int, point: Sequence[Idx], k: Scalar) -> list[Idx]:
        """Where an operand is read at step `k` of the sum."""
        dims = self._iteration(point, {self.dim: Idx(k, level=4)})
        return [ev.idx.affine(e, dims) for e in self.reads[operand][0]]

    def _columns(self, tile: Tile) -> dict[int, Sequence[Idx]]:
        """A point of every vector of columns."""
        return {column: point for (_, column), point in reversed(tile.points.items())}

    def _each_row(self, tile: Tile) -> dict[int, Sequence[Idx]]:
        """A point of every row."""
        return {row: point for (row, _), point in reversed(tile.points.items())}

    def _word(self, ev: Evaluator, point: Sequence[Idx], number: Scalar, fetch: bool) -> ir.Value:
        """Word `number` of the columns of `point`, as 32 bits in each lane."""
        buffer = self.frame.buffers[self.weight.codes]
        *outer, _, column = self._coords(ev, self.side, point, 0)
        where = memory.address(buffer, [*outer, Idx(number, level=4), column, Idx(0)], ev.idx)
        base = self.frame.constants.index(where.base)
        if fetch and self.s.distance:
            there = self.frame.math.add(where.base, self.s.distance * buffer.strides[-3])
            memref.PrefetchOp(buffer.memory, [self.frame.constants.index(there)], False, 3, True)
        loaded = vector.LoadOp(ir.VectorType.get([QUAD * self.s.lanes], buffer.element), buffer.memory, [base]).result
        return vector.bitcast(self._vector(self.i32), loaded)

    def _by_block(
        self, ev: Evaluator, value: ir.Value, codes: Codes, operand: int, point: Sequence[Idx], number: Scalar
    ) -> ir.Value:
        """The scale or zero point `value` of block `number`, for the columns or the row of `point`."""
        coords = self._coords(ev, operand, point, 0)
        coords[codes.axis] = Idx(number, level=3)
        return ev.tensor(value, coords)

    def _scales(self, ev: Evaluator, tile: Tile, number: Scalar) -> dict[int, ir.Value]:
        """The scales of block `number`, by column."""
        weight, columns = self.weight, self._columns(tile)
        return {j: ev.splat(self._by_block(ev, weight.scale, weight, self.side, p, number)) for j, p in columns.items()}

    def _zeros(self, ev: Evaluator, tile: Tile, number: Scalar) -> dict[int, ir.Value]:
        """The zero points of block `number` as floats, by column; empty where one number is that of all."""
        weight = self.weight
        if isinstance(weight.zero, int):
            return {}
        found = {}
        for column, point in self._columns(tile).items():
            value = ev.splat(self._by_block(ev, weight.zero, weight, self.side, point, number))
            found[column] = arith.sitofp(self._vector(self.f32), arith.extui(self._vector(self.i32), value))
        return found

    # -- vectors ----------------------------------------------------------------------------------------------------

    def _vector(self, element: ir.Type) -> ir.VectorType:
        return ir.VectorType.get([self.s.lanes], element)

    def _splat(self, element: ir.Type, value: float) -> ir.Value:
        return memory.splat(self.frame.constants.get(element, value), self.s.lanes)

    def _shifted(self, word: ir.Value, bits: int) -> ir.Value:
        return arith.shrui(word, self._splat(self.i32, bits)) if bits else word


def _is_few(tile: Tile) -> bool:
    """Does a tile have so few rows that it fetches the weight?"""
    return len({row for row, _ in tile.points}) <= _FEW


class _OfFloats(_ScaledBlocks):
    """The other operand is floats."""

    def __init__(self, source: KernelSource, schedule: ScaledBlocksSchedule) -> None:
        super().__init__(source, schedule)
        if schedule.least:
            self.apart = self.frame.on_stack(self.f32, schedule.depth * schedule.panel)
        self.fixed = self.weight.zero if isinstance(self.weight.zero, int) else 0
        if schedule.instruction == "lookup":
            numbers = [float(code % (1 << self.weight.bits) - self.fixed) for code in range(_TABLE)]
            attributes = [ir.FloatAttr.get(self.f32, number) for number in numbers]
            with self.frame.prologue():
                table = ir.DenseElementsAttr.get(attributes, self._vector(self.f32))
                self.numbers = arith.ConstantOp(self._vector(self.f32), table).result

    def _taken_apart(self, word: ir.Value) -> list[ir.Value]:
        """`code - zero` where the zero point is a number, else the codes."""
        return [self._floats(self._shifted(word, shift), None) for shift in self._shifts()]

    def _shifts(self) -> list[int]:
        """Where in a word the code of each step begins."""
        return [k % QUAD * 8 + k // QUAD * self.weight.bits for k in range(self.steps)]

    def _block(self, ev: Evaluator, tile: Tile, number: Scalar, length: int, sums: _Sums) -> _Sums:
        chains = next((n for n in _CHAINS if n * len(tile.points) <= _CHAINED), 1)
        low, zero = self.frame.math.mul(number, self.weight.block), self._splat(self.f32, 0.0)
        scales, zeros = self._scales(ev, tile, number), self._zeros(ev, tile, number)

        def step(words: list[Scalar], values: list[ir.Value]) -> list[ir.Value]:
            for word in words:
                values = self._add_word(ev.child(), tile, word, zeros, values)
            return values

        added = self._words(low, length, [zero] * (len(sums) * chains), step)
        found = {}
        for i, (name, value) in enumerate(sums.items()):
            own = added[i * chains : (i + 1) * chains]
            while len(own) > 1:
                own = [arith.addf(a, b) for a, b in zip(own[::2], own[1::2], strict=True)]
            found[name] = vector.FMAOp(own[0], scales[name[1]], value).result
        return found

    def _add_word(
        self, ev: Evaluator, tile: Tile, number: Scalar, zeros: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """The sums of a block, some chains for each accumulator, with the products of word `number`."""
        columns, math = self._columns(tile), self.frame.math
        words = {} if self.is_apart else {j: self._word(ev, p, number, _is_few(tile)) for j, p in columns.items()}
        low, chains = math.mul(number, self.steps), len(values) // len(tile.points)
        line, values = self._first_line(number, self.steps), list(values)
        for k, shift in enumerate(self._shifts()):
            if self.is_apart:
                floats = {j: self._centered(self._stored(math.add(line, k), j), zeros.get(j)) for j in columns}
            else:
                floats = {j: self._floats(self._shifted(word, shift), zeros.get(j)) for j, word in words.items()}
            at = math.add(low, k)
            rows = {r: self._number(ev, point, at) for r, point in self._each_row(tile).items()}
            for i, (row, column) in enumerate(tile.points):
                place = i * chains + k % chains
                values[place] = vector.FMAOp(rows[row], floats[column], values[place]).result
        return values

    def _number(self, ev: Evaluator, point: Sequence[Idx], k: Scalar) -> ir.Value:
        """Element `k` of a row, in all lanes."""
        return ev.splat(ev.tensor(self.root.operands[self.data], self._coords(ev, self.data, point, k)))

    def _floats(self, word: ir.Value, zero: ir.Value | None) -> ir.Value:
        """`code - zero` of the lowest bits of every lane."""
        if self.s.instruction == "lookup":
            value = x86("avx512.permvar.sf.512", self._vector(self.f32), [self.numbers, word])
        else:
            code = arith.andi(word, self._splat(self.i32, (1 << self.weight.bits) - 1))
            if self.fixed:
                code = arith.subi(code, self._splat(self.i32, self.fixed))
            value = arith.sitofp(self._vector(self.f32), code)
        return self._centered(value, zero)

    def _centered(self, value: ir.Value, zero: ir.Value | None) -> ir.Value:
        return value if zero is None else arith.subf(value, zero)


class _OfCodes(_ScaledBlocks):
    """The other operand is codes with scales, too."""

    def __init__(self, source: KernelSource, schedule: ScaledBlocksSchedule) -> None:
        super().__init__(source, schedule)
        self.row_codes = self._codes(self.data)
        if self.row_codes.block != self.weight.block or self.extent % self.weight.block:
            raise ValueError(f"kernel {self.frame.name}: rows and columns have scales for the same whole blocks")
        self.i8, self.i16 = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(16)
        self.blocks = self.extent // self.weight.block
        if schedule.least:
            self.apart = self.frame.on_stack(self.i8, schedule.depth * schedule.panel)
            self.once, self.below = Once(self.frame), self.frame.on_stack(self.i32, self.rows * self.blocks)

    def _note_rows(self, point: list[Idx], block: Scalar) -> None:
        """What is taken off the sums of every block of every row."""
        math, c = self.frame.math, self.frame.constants
        first = self.first_row = math.mul(block, self.s.row_block)
        end = math.minimum(math.add(first, self.s.row_block), self.row_extent)

        def row(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            there = self._point(point, Idx(variable, level=2), Idx(0))

            def each(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                low = math.mul(number, self.weight.block)
                value = self._taken_off(Evaluator(self.frame, self.s.lanes), there, low)
                memref.store(value, self.below, [c.index(self._number(variable, number))])
                return []

            for_loop(self.frame, 0, self.blocks, 1, [], each)
            return []

        def every_row() -> None:
            for_loop(self.frame, first, end, 1, [], row)

        self.once.make(block, every_row)

    def _number(self, row: Scalar, block: Scalar) -> Scalar:
        """That of a block of a row of the work item."""
        math = self.frame.math
        return math.add(math.mul(math.sub(row, self.first_row), self.blocks), block)

    def _taken_apart(self, word: ir.Value) -> list[ir.Value]:
        """The bytes of each four adjacent steps."""
        bits = self.weight.bits
        mask = self._splat(self.i32, int.from_bytes(bytes([(1 << bits) - 1] * QUAD), "little", signed=True))
        words = [self._shifted(word, sub * bits) for sub in range(self.steps // QUAD)]
        return [vector.bitcast(self._bytes(), arith.andi(w, mask) if bits < 8 else w) for w in words]

    def _block(self, ev: Evaluator, tile: Tile, number: Scalar, length: int, sums: _Sums) -> _Sums:
        low = self.frame.math.mul(number, self.weight.block)
        scales, zeros, rows = self._scales(ev, tile, number), self._zeros(ev, tile, number), self._each_row(tile)
        off = {row: self._below(ev, point, number, low) for row, point in rows.items()}
        start = [off[row] if not zeros else self._splat(self.i32, 0) for row, _ in sums]
        dots = self._words(low, length, start, lambda words, values: self._add_words(ev.child(), tile, words, values))
        factors = {
            row: ev.splat(self._by_block(ev, self.row_codes.scale, self.row_codes, self.data, point, number))
            for row, point in rows.items()
        }
        below = {row: arith.sitofp(self._vector(self.f32), value) for row, value in off.items()} if zeros else {}
        found = {}
        for ((row, column), value), dot in zip(sums.items(), dots, strict=True):
            product = arith.sitofp(self._vector(self.f32), dot)
            if zeros:
                product = vector.FMAOp(below[row], zeros[column], product).result
            found[row, column] = vector.FMAOp(arith.mulf(product, scales[column]), factors[row], value).result
        return found

    def _below(self, ev: Evaluator, point: Sequence[Idx], number: Scalar, low: Scalar) -> ir.Value:
        """What is taken off the sums of a row of block `number`."""
        if not self.is_apart:
            return ev.splat(self._taken_off(ev, point, low))
        at = self._number(point[self.s.row_last].base if self.s.row_last >= 0 else 0, number)
        return ev.splat(memref.load(self.below, [self.frame.constants.index(at)]))

    def _taken_off(self, ev: Evaluator, point: Sequence[Idx], low: Scalar) -> ir.Value:
        """Minus the sum of a row's codes of the block from step `low` on, times the zero point where one number is that
        of all columns."""
        zero = self.weight.zero if isinstance(self.weight.zero, int) else 1
        lanes = max(n for n in (4, 8, 16) if n <= self.s.lanes and self.weight.block % (QUAD * n) == 0)
        bytes_of = ir.VectorType.get([QUAD * lanes], self.i8)
        word = self.frame.constants.get(self.i32, int.from_bytes(bytes([zero] * QUAD), "little", signed=True))
        factor, buffer = vector.bitcast(bytes_of, memory.splat(word, lanes)), self.frame.buffers[self.row_codes.codes]
        quads = []
        for k in range(0, self.weight.block, QUAD * lanes):
            where = memory.address(buffer, self._coords(ev, self.data, point, self.frame.math.add(low, k)), ev.idx)
            base = [self.frame.constants.index(where.base)]
            quads.append(([factor], [vector.LoadOp(bytes_of, buffer.memory, base).result]))
        [sums] = self._dots([memory.splat(self.frame.constants.get(self.i32, 0), lanes)], quads)
        total = vector.ReductionOp(self.i32, ir.Attribute.parse("#vector.kind<add>"), sums).result
        return arith.subi(self.frame.constants.get(self.i32, 0), total)

    def _add_words(
        self, ev: Evaluator, tile: Tile, words: Sequence[Scalar], values: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums of a block with the products of `words`."""
        rows = self._each_row(tile)

        def quads() -> Iterator[_Quads]:
            for number in words:
                codes = {j: self._quads_of(ev, tile, j, point, number) for j, point in self._columns(tile).items()}
                for sub in range(self.steps // QUAD):
                    own = {row: self._quad(ev, point, number, sub) for row, point in rows.items()}
                    yield [codes[j][sub] for _, j in tile.points], [own[row] for row, _ in tile.points]

        return self._dots(values, quads())

    def _quads_of(self, ev: Evaluator, tile: Tile, column: int, point: Sequence[Idx], number: Scalar) -> list[ir.Value]:
        """The quads of word `number` of some columns."""
        if not self.is_apart:
            return self._taken_apart(self._word(ev, point, number, _is_few(tile)))
        each = self.steps // QUAD
        line = self._first_line(number, each)
        return [self._stored(self.frame.math.add(line, sub), column) for sub in range(each)]

    def _dots(self, sums: Sequence[ir.Value], quads: Iterable[_Quads]) -> list[ir.Value]:
        """The sums with the products of quads: codes of columns and of rows for every sum."""
        values = list(sums)
        if self.s.instruction == "vpdpbusd":
            for codes, rows in quads:
                values = [quad_products(s, c, r) for s, c, r in zip(values, codes, rows, strict=True)]
            return values
        most, waiting = (1 << 15) // (2 * 127 * ((1 << self.weight.bits) - 1)), list(quads)
        ones = memory.splat(self.frame.constants.get(self.i16, 1), 2 * values[0].type.shape[0])
        for first in range(0, len(waiting), most):
            pairs: list[ir.Value] = []
            for codes, rows in waiting[first : first + most]:
                new = [byte_pair_products(c, r) for c, r in zip(codes, rows, strict=True)]
                pairs = [arith.addi(p, n) for p, n in zip(pairs, new, strict=True)] if pairs else new
            values = [arith.addi(s, pair_products(p, ones)) for s, p in zip(values, pairs, strict=True)]
        return values

    def _bytes(self) -> ir.VectorType:
        return ir.VectorType.get([QUAD * self.s.lanes], self.i8)

    def _quad(self, ev: Evaluator, point: Sequence[Idx], number: Scalar, sub: int) -> ir.Value:
        """Four codes of a row, those of steps `4 * sub` of word `number`, in all lanes."""
        math, buffer = self.frame.math, self.frame.buffers[self.row_codes.codes]
        k = math.add(math.mul(number, self.steps), QUAD * sub)
        where = memory.address(buffer, self._coords(ev, self.data, point, k), ev.idx)
        base = [self.frame.constants.index(where.base)]
        loaded = vector.LoadOp(ir.VectorType.get([QUAD], buffer.element), buffer.memory, base).result
        bits = vector.extract(vector.bitcast(ir.VectorType.get([1], self.i32), loaded), [], [0])
        return vector.bitcast(self._bytes(), in_every_lane(bits, self.s.lanes))
