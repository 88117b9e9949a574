"""Contractions on the tensor cores of Ampere and later chips: tiles copied by threads, multiplied by warps.

A block has one tile of the result. Its threads ask for the tiles of both operands, stage after stage of a ring in
shared memory, `stages` - 1 ahead of the products (`cp.async`); each warp multiplies its part of a tile with
instructions on registers (`mma.sync`). There is one barrier a stage: it says that the stage's data are there, and that
nobody needs those of the one before, whose place the next copies take. The method is that of CUTLASS's multistage
kernels (NVIDIA, "CUTLASS 2.x: efficient GEMM"). Blocks that run together work on `raster` rows of tiles, whose operands
the L2 cache keeps.

The input of a convolution is copied as windows: a row is a pixel of the result, and the sum goes over the taps of the
window and the channels; padding is not stored.

f32 that must stay exact takes the same way, and is multiplied by ordinary arithmetic (`exact.py`).

Takes contractions of bf16, f16, f32 rounded to tf32, or f32, that accumulate in f32 and whose operands are arguments
with rows that are multiples of 16 bytes apart (f32 along the sum only); any number of rows and columns, and any sum.
The epilogue runs on the accumulators, and is that of `hopper_contraction`.

Schedule parameters: `element` of the tensor cores; `tile_rows`, `tile_columns` of a block, `warp_rows`, `warp_columns`
of a warp; `stages`; `raster`; `lanes`: elements of the result that a thread handles at a time; `threads`; `blocks` of a
multiprocessor.
Measured on an H200 in bf16, whose `mma.sync` has about three fifths of the rate of its `wgmma`: 448 TFLOP/s at
4096x4096x4096, 347 at 6304x3072x768.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, func, nvvm

from mlc.kernels.common.analysis import is_contraction, reachable
from mlc.kernels.common.frame import Frame, KernelSource, if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.common.roles import Roles, roles_of
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.ampere.copies import Copier, PixelCopier, PlainCopier, end_group, wait_for_copies
from mlc.kernels.nvidia.ampere.exact import ExactProduct
from mlc.kernels.nvidia.ampere.fragments import BLOCK, STEPS, Fragments, multiply_add
from mlc.kernels.nvidia.tensor_cores.bands import place_in_bands
from mlc.kernels.nvidia.tensor_cores.epilogue import Domain, Epilogue, staging_bytes
from mlc.kernels.nvidia.tensor_cores.operands import Operand, Pixels, operands_of
from mlc.kernels.nvidia.tensor_cores.tiles import ELEMENT_BYTES, ROW, Tile
from mlc.kernels.nvidia.tensor_cores.words import Words, declare_shared_memory
from mlc.kernels.nvidia.tensor_maps import attach
from mlc.kernels.nvidia.threads import WARP


@dataclass(frozen=True)
class AmpereSchedule:
    """Parameters of the template; see the module's description."""

    element: str
    tile_rows: int
    tile_columns: int
    warp_rows: int
    warp_columns: int
    stages: int
    raster: int
    lanes: int
    threads: int
    blocks: int

    @property
    def bytes_each(self) -> int:
        """Bytes of an element of the operands."""
        return ELEMENT_BYTES[self.element]

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage."""
        return (self.tile_rows + self.tile_columns) * ROW

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: results are staged where the tiles were."""
        return max(self.stages * self.stage_bytes, staging_bytes(self.warp_columns, self.threads // WARP))


def expand(source: KernelSource, schedule: AmpereSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a block.

    Raises ValueError for a kernel whose contraction the template does not take.
    """
    found = [op for op in reachable(source.results) if is_contraction(op)]
    roles = roles_of(found[0], source.results) if len(found) == 1 else None
    operands = None if roles is None else operands_of(source, found[0], roles)
    if roles is None or operands is None:
        raise ValueError(f"kernel {source.func.name.value}: no product of matrices or convolution of arguments")
    frame = Frame(source, alignment=ALIGNMENT)
    declare_shared_memory(frame)
    attach(source.module, [], schedule.shared_bytes)
    with frame.body():
        _Block(source, found[0], roles, operands, schedule, frame).emit()
        func.ReturnOp([])
    return [frame, emit_grid(source, lambda grid, shape: _tiles(grid, shape, roles, schedule))]


def _tiles(frame: Frame, shape: list[Scalar], roles: Roles, s: AmpereSchedule) -> list[Scalar]:
    """Tiles of the rows, of the columns, and products of matrices."""
    math = frame.math
    rows, columns, outer = (
        math.product([shape[p] for p in roles.positions(dims)]) for dims in (roles.rows, roles.columns, roles.outer)
    )
    return [math.ceildiv(rows, s.tile_rows), math.ceildiv(columns, s.tile_columns), outer]


class _Epilogue(Epilogue):
    """That of a warp with a part of the columns of a tile."""

    def __init__(
        self, s: AmpereSchedule, words: Words, source: KernelSource, root: ir.Operation, domain: Domain
    ) -> None:
        super().__init__(words, source, root, domain, 0, (s.tile_rows, s.warp_columns))
        self._tile = s.tile_rows, s.tile_columns

    def _units(self) -> tuple[int, int]:
        return self._tile


class _Block:
    """What one block does."""

    def __init__(
        self, source: KernelSource, root: ir.Operation, roles: Roles, operands: tuple[Operand | Pixels, Operand],
        schedule: AmpereSchedule, frame: Frame,
    ) -> None:  # fmt: skip
        self.source, self.root, self.roles, self.s, self.frame = source, root, roles, schedule, frame
        self.words = Words(frame)
        self.shape = frame.buffers[source.destinations[0]].shape
        element = "f32" if schedule.element == "tf32" else schedule.element
        self.tiles = [
            Tile(element, schedule.bytes_each, rows, operand.across)
            for operand, rows in zip(operands, (schedule.tile_rows, schedule.tile_columns), strict=True)
        ]
        self.counts = [self.words.narrow(n) for n in _tiles(frame, self.shape, roles, schedule)]
        extents = reduction_extents(frame, root)
        depth, taps = (frame.math.product([extents[d] for d in dims]) for dims in (roles.reduced, roles.taps))
        self.steps_each = self.words.narrow(frame.math.ceildiv(depth, self.tiles[0].depth))  # of a tap
        self.steps = self.words.math.mul(self.steps_each, self.words.narrow(taps))
        self.row, self.column, self.outer = self._place()
        self.copiers = [self._copier(i, operand) for i, operand in enumerate(operands)]
        warp, across = self.words.math.div(self.words.thread(), WARP), schedule.tile_columns // schedule.warp_columns
        self.warp = warp
        self.warp_row = self.words.math.mul(self.words.math.div(warp, across), schedule.warp_rows)
        self.warp_column = self.words.math.mul(self.words.math.rem(warp, across), schedule.warp_columns)
        left, right = self.tiles
        if schedule.element == "f32":
            first = self.warp_row, self.warp_column
            self.exact = ExactProduct(self.words, (0, left.size), first, schedule.warp_rows, schedule.warp_columns)
            return
        self.fragments = (
            Fragments(self.words, left, 0, self.warp_row, schedule.element, True),
            Fragments(self.words, right, left.size, self.warp_column, schedule.element, False),
        )

    def _place(self) -> tuple[Scalar, Scalar, tuple[Scalar, ...]]:
        """The first row and column of the tile, and the outer coordinates: bands of `raster` rows of tiles, in which
        rows run fastest."""
        words, math, s = self.words, self.words.math, self.s
        rows, columns, outer = self.counts
        number = words.narrow(self.frame.begin)
        matrix = math.mul(rows, columns)
        product, inside = (0, number) if outer == 1 else (math.div(number, matrix), math.rem(number, matrix))
        row, column = place_in_bands(math, rows, columns, s.raster, inside)
        extents = [words.narrow(self.shape[p]) for p in self.roles.positions(self.roles.outer)]
        at = tuple(math.delinearize(product, extents))
        return math.mul(row, s.tile_rows), math.mul(column, s.tile_columns), at

    def _copier(self, which: int, operand: Operand | Pixels) -> Copier:
        row, tile, threads = (self.row, self.column)[which], self.tiles[which], self.s.threads
        if isinstance(operand, Pixels):
            return PixelCopier(self.words, self.source, operand, tile, threads, row)
        outer = dict(zip(self.roles.outer, self.outer, strict=True))
        return PlainCopier(self.words, self.source, operand, tile, threads, row, outer)

    def emit(self) -> None:
        words, s = self.words, self.s
        for stage in range(s.stages - 1):
            self._copy(stage * s.stage_bytes, stage)
        zeros = [self.frame.constants.get(words.f32, 0.0)] * (s.warp_rows * s.warp_columns // WARP)
        start = [words.value(0), words.value((s.stages - 1) * s.stage_bytes)]
        found = words.loop(0, self.steps, 1, [*start, *zeros], self._step)
        wait_for_copies(0)
        nvvm.Barrier0Op()  # nobody reads tiles any more: results are staged in their place
        self._store(found[2:])

    def _copy(self, offset: Scalar, step: Scalar) -> None:
        """Asks for the tiles of a step of the sum, if there is one, as a group."""
        words, math = self.words, self.words.math

        def load() -> None:
            tap, inside = (0, step) if not self.roles.taps else (
                math.div(step, self.steps_each), math.rem(step, self.steps_each)
            )  # fmt: skip
            for which, copier in enumerate(self.copiers):
                place = math.add(offset, self.tiles[0].size if which else 0)
                copier.load(place, math.mul(inside, self.tiles[0].depth), tap)

        if isinstance(step, int) and isinstance(self.steps, int):
            if step < self.steps:
                load()
        else:
            if_then(words.is_below(step, self.steps), load)
        end_group()

    def _step(self, number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        """One step of the sum: the ring's places are bytes of the stage that is read and of the one that is written."""
        math, s = self.words.math, self.s
        read, write, *sums = carried
        wait_for_copies(s.stages - 2)
        nvvm.Barrier0Op()
        self._copy(write, math.add(number, s.stages - 1))
        sums = self._multiply(read, sums)
        return [self._next(read), read, *sums]

    def _next(self, place: ir.Value) -> ir.Value:
        """The place of the next stage."""
        words, s = self.words, self.s
        following = words.math.add(place, s.stage_bytes)
        return arith.select(words.is_below(following, s.stages * s.stage_bytes), following, words.value(0))

    def _multiply(self, stage: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """The accumulators plus the products of a stage: of 16 rows of the warp after 16, eight columns after eight."""
        if self.s.element == "f32":
            return self.exact.add(stage, sums)
        words, s, left, right = self.words, self.s, *self.fragments
        each = s.warp_columns // 8
        for step in range(STEPS):
            rows = [left.load(stage, step, block) for block in range(s.warp_rows // BLOCK)]
            columns = [right.load(stage, step, block) for block in range(s.warp_columns // BLOCK)]
            for i, row in enumerate(rows):
                for j in range(each):
                    at, half = 4 * (i * each + j), 2 * (j % 2)
                    pair = columns[j // 2][half : half + 2]
                    sums[at : at + 4] = multiply_add(words, s.element, row, pair, sums[at : at + 4])
        return sums

    def _store(self, sums: list[ir.Value]) -> None:
        words, math, s = self.words, self.words.math, self.s
        rows, columns = (self.roles.positions(d) for d in (self.roles.rows, self.roles.columns))
        groups = [(p[0], p[-1]) if p else (-1, -2) for p in (rows, columns)]
        domain = Domain(tuple(self.shape), groups[0], groups[1], s.lanes)
        epilogue = _Epilogue(s, words, self.source, self.root, domain)
        each, lane = s.warp_columns // 2, words.value(math.rem(words.thread(), WARP))
        for block in range(s.warp_rows // BLOCK):
            row = math.add(math.add(self.row, self.warp_row), block * BLOCK)
            origin = row, math.add(self.column, self.warp_column)
            epilogue.store(sums[block * each : (block + 1) * each], words.value(self.warp), lane, origin, self.outer)
