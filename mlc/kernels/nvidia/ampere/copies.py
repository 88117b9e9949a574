"""Copies of tiles to shared memory by the threads of a block, 16 bytes each, past the registers.

`cp.async` (PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy") writes zeros for bytes that it is told
not to read: what lies outside of a tensor, the padding of a convolution included. Tiles (`tensor_cores/tiles.py`) lie
in shared memory as Hopper's do: lines of 128 bytes whose pieces of 16 bytes are permuted by the line's number modulo
eight, so that neither a line nor a column of eight pieces meets in a bank.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, llvm, memref, nvvm

from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.tensor_cores.operands import ROWS, SUM, TAPS, Operand, Pixels
from mlc.kernels.nvidia.tensor_cores.tiles import ROW, Tile
from mlc.kernels.nvidia.tensor_cores.words import Words
from mlc.kernels.nvidia.tensor_maps import Product

PIECE = 16  # bytes of a copy
PIECES = ROW // PIECE  # of a line


@dataclass(frozen=True)
class _Piece:
    """What one thread copies of every tile: from `offset` elements behind `pointer` on, if the `conditions` hold and no
    coordinate of `begins` is outside of the window's dimension at the tap."""

    pointer: ir.Value
    offset: Scalar
    conditions: tuple[ir.Value, ...]
    begins: tuple[Scalar, ...] = ()


class Copier(ABC):
    """The copies that one thread makes of an operand's tiles: piece `thread % 8` of lines that are `step` apart.

    `row` is the first row of the block's tile, `outer` the outer coordinates by iteration dimension.
    """

    def __init__(self, words: Words, source: KernelSource, value: ir.Value, tile: Tile, threads: int) -> None:
        self.words, self.frame, self.tile = words, words.frame, tile
        self.source, self.value = source, value
        self.step = threads // PIECES
        self.count = tile.size // (PIECE * threads)
        self.lanes = PIECE // tile.bytes_each  # elements of a piece
        thread, math = words.thread(), words.math
        self.line, self.column = math.div(thread, PIECES), math.rem(thread, PIECES)
        swizzled = words.xor(self.column, math.rem(self.line, PIECES))
        self.place = math.add(math.mul(self.line, ROW), math.mul(swizzled, PIECE))
        self.base = self._base()
        self.pieces: list[_Piece] = []

    def load(self, offset: Scalar, step: Scalar, tap: Scalar) -> None:
        """The tile of the terms from `step` on at tap `tap`, to byte `offset` of the shared memory."""
        words, math = self.words, self.words.math
        moved, conditions, most = self._move(step, tap)
        target = math.add(offset, self.place)
        starts: dict[ir.Value, ir.Value] = {}
        for number, piece in enumerate(self.pieces):
            if piece.pointer not in starts:
                starts[piece.pointer] = self._shifted(piece.pointer, moved)
            where = self._shifted(starts[piece.pointer], piece.offset)
            size = self._size([*piece.conditions, *conditions, *self._own_conditions(number, piece, step, tap)], most)
            line = number * self.step
            permuted = words.xor(target, line % PIECES * PIECE) if line % PIECES else target  # of a single warp's
            to = words.place(math.add(permuted, line * ROW))
            nvvm.CpAsyncOp(to, where, PIECE, ir.Attribute.parse("#nvvm<load_cache_modifier cg>"), cpSize=size)

    @abstractmethod
    def _move(self, step: Scalar, tap: Scalar) -> tuple[Scalar, list[ir.Value], ir.Value | None]:
        """How many elements all pieces move to the terms from `step` on, what must hold, and the bytes there are where
        those can be fewer than a piece's."""

    def _own_conditions(self, number: int, piece: _Piece, step: Scalar, tap: Scalar) -> list[ir.Value]:
        """What must hold for one piece, beside that."""
        return []

    def _size(self, conditions: Sequence[ir.Value], most: ir.Value | None) -> ir.Value | None:
        """Bytes to be read; None for all."""
        if not conditions:
            return most
        holds = conditions[0]
        for other in conditions[1:]:
            holds = arith.andi(holds, other)
        whole = self.words.value(PIECE) if most is None else most
        return arith.select(holds, whole, self.words.value(0))

    def _inside(self, at: Scalar, extent: Scalar, unit: int) -> list[ir.Value]:
        """That a coordinate is below the extent; nothing where tiles of `unit` have no part outside."""
        if isinstance(extent, int) and extent % unit == 0:
            return []
        return [self.words.is_below(at, self.words.narrow(extent))]

    def _rest(self, at: Scalar, extent: Product) -> ir.Value | None:
        """Bytes from a contiguous coordinate to its end, up to a piece; None where pieces are whole or outside."""
        if extent.factor % self.lanes == 0:
            return None
        words, math = self.words, self.words.math
        left = math.maximum(math.sub(words.narrow(self._value(extent)), at), 0)
        return words.value(math.mul(math.minimum(left, self.lanes), self.tile.bytes_each))

    def _value(self, size: Product) -> Scalar:
        """A size as an index."""
        tensors = self.source.tensors
        words = [self.frame.buffers[t].shape[i] for t, i in self.source.run_time_extents]
        return self.frame.math.product([size.factor, *(words[w - len(tensors)] for w in size.words)])

    def _base(self) -> ir.Value:
        """The tensor's address."""
        address = memref.ExtractAlignedPointerAsIndexOp(self.frame.buffers[self.value].memory).result
        return llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr<1>"), arith.index_cast(self.words.i64, address)).res

    def _shifted(self, pointer: ir.Value, elements: Scalar) -> ir.Value:
        """The pointer to an element behind `pointer`, or in front of it; `elements` are of type index."""
        if isinstance(elements, int) and elements == 0:
            return pointer
        count = self.frame.constants.index(self.frame.math.mul(elements, self.tile.bytes_each))
        offset = arith.index_cast(self.words.i64, count)
        byte = ir.TypeAttr.get(ir.IntegerType.get_signless(8))
        dynamic = ir.DenseI32ArrayAttr.get([-(1 << 31)])
        none = ir.IntegerAttr.get(self.words.i32, 0)
        return llvm.GEPOp(pointer.type, pointer, [offset], dynamic, byte, none).result


class PlainCopier(Copier):
    """Copies of an operand without windows."""

    def __init__(
        self, words: Words, source: KernelSource, operand: Operand, tile: Tile, threads: int, row: Scalar,
        outer: Mapping[int, Scalar],
    ) -> None:  # fmt: skip
        super().__init__(words, source, operand.value, tile, threads)
        self.operand = operand
        axes = {d.role: d.axis for d in operand.dims}
        one = Product(1)
        self.extents = {role: axes[role].extent if role in axes else one for role in (ROWS, SUM)}
        self.strides = {role: self._value(axes[role].stride) if role in axes else 0 for role in (ROWS, SUM, TAPS)}
        self.row = row
        start = self._shifted(self._shifted(self.base, self._start(outer)), self._first())
        self.pieces = [self._piece(start, number) for number in range(self.count)]

    def _start(self, outer: Mapping[int, Scalar]) -> Scalar:
        """Elements to the matrix of the outer coordinates."""
        math, words = self.frame.math, self.words
        found: Scalar = 0
        for dim in self.operand.dims:
            if dim.role not in (ROWS, SUM, TAPS):
                place = dim.place(words.math, {}, outer)
                found = math.add(found, math.mul(words.widen(place), self._value(dim.axis.stride)))
        return found

    def _first(self) -> Scalar:
        """Elements to the first piece of this thread."""
        math, wide, words = self.words.math, self.frame.math, self.words
        along = math.mul(self.column, self.lanes)
        if self.operand.across:
            return wide.add(words.widen(math.add(self.row, along)), wide.mul(words.widen(self.line), self.strides[SUM]))
        rows = words.widen(math.add(self.row, self.line))
        return wide.add(wide.mul(rows, self.strides[ROWS]), words.widen(along))

    def _piece(self, start: ir.Value, number: int) -> _Piece:
        """Pieces are behind the first by what is mostly known: addresses need no registers of their own then."""
        math, wide, tile = self.words.math, self.frame.math, self.tile
        extent, lines = self._value(self.extents[ROWS]), number * self.step
        if self.operand.across:
            block = lines // tile.depth * (ROW // tile.bytes_each)
            at = math.add(math.add(self.row, math.mul(self.column, self.lanes)), block)
            offset = wide.add(block, wide.mul(lines % tile.depth, self.strides[SUM]))
        else:
            at = math.add(math.add(self.row, self.line), lines)
            offset = wide.mul(lines, self.strides[ROWS])
        return _Piece(start, offset, tuple(self._inside(at, extent, tile.rows)))

    def _move(self, step: Scalar, tap: Scalar) -> tuple[Scalar, list[ir.Value], ir.Value | None]:
        words, math, wide = self.words, self.words.math, self.frame.math
        moved = wide.add(
            wide.mul(words.widen(step), 1 if not self.operand.across else self.strides[SUM]),
            wide.mul(words.widen(tap), self.strides[TAPS]),
        )
        if self.operand.across:
            return moved, [], None
        at = math.add(step, math.mul(self.column, self.lanes))
        depth = self.extents[SUM]
        return moved, self._inside(at, self._value(depth), self.tile.depth), self._rest(at, depth)

    def _own_conditions(self, number: int, piece: _Piece, step: Scalar, tap: Scalar) -> list[ir.Value]:
        if not self.operand.across:
            return []
        line = self.words.math.add(self.line, number * self.step % self.tile.depth)
        depth = self._value(self.extents[SUM])
        return self._inside(self.words.math.add(step, line), depth, self.tile.depth)


class PixelCopier(Copier):
    """Copies of a convolution's input: a row is a pixel of the result, and the padding is nowhere stored. Joined pixels
    are neighbours in memory."""

    def __init__(
        self, words: Words, source: KernelSource, pixels: Pixels, tile: Tile, threads: int, row: Scalar
    ) -> None:
        super().__init__(words, source, pixels.value, tile, threads)
        self.pixels = pixels
        self.window = [e.factor for e in pixels.extents[1:-1]]
        self.channels = pixels.extents[-1].factor
        self.pieces = [self._piece(number, row) for number in range(self.count)]

    def _piece(self, number: int, row: Scalar) -> _Piece:
        words, math, wide, pixels = self.words, self.words.math, self.frame.math, self.pixels
        at = math.add(row, math.add(self.line, number * self.step))
        image, *pixel = math.delinearize(at, [0, *pixels.out])
        begins = [
            math.sub(math.mul(place, window.stride), low)
            for place, window, low in zip(pixel, pixels.roles.windows, pixels.low, strict=True)
        ]
        shift = words.widen(image)
        for begin, extent in zip(begins, self.window, strict=True):
            shift = wide.add(wide.mul(shift, extent), words.widen(begin))
        along = words.widen(math.mul(self.column, self.lanes))
        shift = wide.add(wide.mul(shift, self.channels), along)
        rows = wide.product([self._value(pixels.extents[0]), *pixels.out])
        inside = tuple(self._inside(at, rows, self.tile.rows))
        return _Piece(self._shifted(self.base, shift), 0, inside, tuple(begins))

    def _shifts(self, tap: Scalar) -> list[Scalar]:
        """How far a tap is from where the window begins, in each of its dimensions."""
        math = self.words.math
        taps = math.delinearize(tap, list(self.pixels.taps))
        return [math.mul(t, window.dilation) for t, window in zip(taps, self.pixels.roles.windows, strict=True)]

    def _move(self, step: Scalar, tap: Scalar) -> tuple[Scalar, list[ir.Value], ir.Value | None]:
        words, math, wide = self.words, self.words.math, self.frame.math
        moved: Scalar = 0
        for shift, extent in zip(self._shifts(tap), self.window, strict=True):
            moved = wide.add(wide.mul(moved, extent), words.widen(shift))
        moved = wide.add(wide.mul(moved, self.channels), words.widen(step))
        at = math.add(step, math.mul(self.column, self.lanes))
        return moved, self._inside(at, self.pixels.depth, self.tile.depth), None

    def _own_conditions(self, number: int, piece: _Piece, step: Scalar, tap: Scalar) -> list[ir.Value]:
        """Whether the pixel lies in the image: coordinates in front of it are large without a sign."""
        pixels, math = self.pixels, self.words.math
        own = []
        for n, (begin, shift) in enumerate(zip(piece.begins, self._shifts(tap), strict=True)):
            window, extent = pixels.roles.windows[n], self.window[n]
            last = (pixels.out[n] - 1) * window.stride - pixels.low[n] + window.dilation * (pixels.taps[n] - 1)
            if pixels.low[n] > 0 or last >= extent:
                own.append(self.words.is_below(math.add(begin, shift), extent))
        return own


def wait_for_copies(left: int) -> None:
    """Waits until at most `left` groups of copies of this thread are under way, the last ones."""
    nvvm.CpAsyncWaitGroupOp(ir.IntegerAttr.get(ir.IntegerType.get_signless(32), left))


def end_group() -> None:
    """The copies since the last call are a group."""
    nvvm.CpAsyncCommitGroupOp()
