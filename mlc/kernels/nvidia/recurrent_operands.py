"""What a step of a recurrent layer multiplies on a GPU: weights in registers, and states in shared memory.

The layout of `recurrence`: weights are the left operand of `mma.sync`, and states its columns (PTX ISA, "Warp Level
Matrix Instructions"). Both are read 16 bytes at a time; elements of the sum are in the order which that makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, llvm, vector

from mlc.kernels.common import memory
from mlc.kernels.common.frame import Frame
from mlc.kernels.common.index import Idx, IdxMath, Scalar
from mlc.kernels.common.recurrent_cell import Layer
from mlc.kernels.nvidia.ampere.fragments import to_tf32
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly
from mlc.kernels.nvidia.threads import WARP

COLUMNS = 8  # rows of the batch in an instruction
PIECE = 64  # bytes of a row that the four threads of a fragment's row read at a time
EIGHT = 8  # rows of half an instruction
_BANKS = 128  # bytes
_WORD = 4


@dataclass(frozen=True)
class Division:
    """How the warps of blocks of so many `threads`, of which a `cluster` has rows together, divide the hidden elements
    of a layer among them."""

    layer: Layer
    threads: int
    cluster: int = 1

    @property
    def warps(self) -> int:
        """Those of a block."""
        return self.threads // WARP

    @property
    def hidden(self) -> int:
        return self.layer.hidden

    @property
    def bytes_each(self) -> int:
        """The size of an element that is multiplied."""
        return int(self.layer.recurrence.type.element_type.width) // 8

    @property
    def is_paired(self) -> bool:
        """Are the halves of a product's rows two gates, rather than two times eight hidden elements?"""
        return self.layer.kind == "lstm"

    @property
    def units(self) -> int:
        """Hidden elements that a warp has at a time."""
        return EIGHT if self.is_paired else 2 * EIGHT

    @property
    def halves(self) -> int:
        """Hidden elements that a thread has at a time, of each of its rows of the batch."""
        return self.units // EIGHT

    @property
    def tiles(self) -> int:
        """Products of 16 rows that are all gates of these."""
        return self.layer.gates // 2 if self.is_paired else self.layer.gates

    @property
    def shares(self) -> int:
        """So many hidden elements in all of a block."""
        return self.hidden // (self.units * self.cluster)

    @property
    def times(self) -> int:
        """How often a warp has so many; the last one repeats some of others where they do not come out even."""
        return -(-self.shares // self.warps)

    @property
    def row_bytes(self) -> int:
        return self.hidden * self.bytes_each

    @property
    def whole(self) -> int:
        """Pieces of a row that are whole."""
        return self.row_bytes // PIECE

    @property
    def pieces(self) -> int:
        """All of them; the last one may be a half, an instruction's."""
        return -(-self.row_bytes // PIECE)

    @property
    def stride(self) -> int:
        """Bytes of two states in shared memory. The second one lies half of all banks behind the first, and the next
        two an eighth or more further: neither reading whole pieces nor writing elements do threads meet in a bank."""
        return 2 * self.second + _BANKS // 4

    @property
    def second(self) -> int:
        return self.row_bytes + (_BANKS // 2 - self.row_bytes) % _BANKS

    @property
    def piece_bytes(self) -> int:
        """Bytes of a piece of all rows of a block."""
        return self.warps * self.times * self.tiles * 2 * EIGHT * PIECE

    @property
    def copy_bytes(self) -> int:
        """Bytes of the states of all rows of a block."""
        return COLUMNS // 2 * self.stride


class Weights:
    """A warp's part of the recurrent weights, from hidden element `first` on: thread 4r + t has 16 bytes of each piece
    of its rows, or 8 of a half. Shared memory from byte `shared` on is theirs."""

    def __init__(self, frame: Frame, words: Words, parts: Division, direction: Scalar, shared: int) -> None:
        self.frame, self.words, self.math, self.parts, self.shared = frame, words, frame.math, parts, shared
        self.memory = frame.buffers[parts.layer.recurrence].flat
        self.begin = self.math.mul(direction, parts.layer.gates * parts.hidden)
        self.is_rounded = isinstance(self.memory.element, ir.F32Type)

    def of_warp(self, first: Scalar, line: Scalar, place: Scalar) -> None:
        """What there is for the thread with so many lines in front of it, at that `place` of each."""
        self.row, self.place = self.math.add(self.math.add(self.begin, first), line), place

    def load(self, piece: Scalar, away: Scalar = 0) -> list[ir.Value]:
        """A piece of all of the thread's rows, as it is multiplied, each tile's two behind each other; `away` is 0."""
        parts, math = self.parts, self.math
        lanes = (_WORD if isinstance(piece, ir.Value) or piece < parts.whole else 2) * _WORD // parts.bytes_each
        column = math.add(math.mul(piece, PIECE // parts.bytes_each), math.mul(self.place, lanes))
        column = math.add(column, math.mul(away, lanes))
        idx, found = IdxMath(math, lanes), []
        type_ = ir.VectorType.get([lanes * parts.bytes_each // _WORD], self.words.i32)
        base = math.add(math.mul(self.row, parts.hidden), column)
        for rows in self._rows():
            at = Idx(math.add(base, rows * parts.hidden), 1)
            value = vector.bitcast(type_, memory.load(self.frame, idx, self.memory, [at], None))
            found.append(self._rounded(value) if self.is_rounded else value)
        return found

    def _rounded(self, value: ir.Value) -> ir.Value:
        numbers = [to_tf32(self.words, vector.extract(value, [], [k])) for k in range(value.type.shape[0])]
        return vector.from_elements(value.type, numbers)

    def bring_near(self, first: int, count: int) -> None:
        """Puts so many pieces from one on into shared memory."""

        def bring(piece: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            places = self._near(self.words.widen(piece), first)
            for value, place in zip(self.load(self.words.widen(piece)), places, strict=True):
                llvm.StoreOp(value, place, alignment=4 * _WORD)
            return []

        if count:
            self.words.loop(first, first + count, 1, [], bring)

    def near(self, piece: Scalar, first: int, away: Scalar) -> list[ir.Value]:
        """What `load` gives of a piece that is in shared memory, where the pieces from `first` on are."""
        type_ = ir.VectorType.get([_WORD], self.words.i32)
        return [llvm.LoadOp(type_, place, alignment=4 * _WORD).res for place in self._near(piece, first, away)]

    def _near(self, piece: Scalar, first: int, away: Scalar = 0) -> list[ir.Value]:
        """Where a thread has its parts of a piece in shared memory: beside those of its neighbours."""
        words, math = self.words, self.words.math
        begin = math.mul(math.sub(words.narrow(piece), first), self.parts.piece_bytes)
        begin = math.add(math.add(begin, words.narrow(away)), math.mul(words.thread(), 4 * _WORD))
        apart = self.parts.warps * WARP * 4 * _WORD
        return [words.place(math.add(begin, self.shared + number * apart)) for number in range(len(self._rows()))]

    def _rows(self) -> list[int]:
        """How far each of the thread's rows is from that of its first gate and hidden element."""
        parts = self.parts
        gates = [(2 * tile + half, 0) if parts.is_paired else (tile, half * EIGHT)
                 for tile in range(parts.tiles) for half in range(2)]  # fmt: skip
        return [gate * parts.hidden + time * parts.units + unit for time in range(parts.times) for gate, unit in gates]

    def fragments(self, loaded: Sequence[ir.Value]) -> list[list[list[ir.Value]]]:
        """Of what `load` gave, the operands of each tile's instructions."""
        both = [[vector.extract(value, [], [k]) for k in range(value.type.shape[0])] for value in loaded]
        found = []
        for upper, lower in zip(both[::2], both[1::2], strict=True):
            steps = range(0, len(upper), 2)
            found.append([[upper[k], lower[k], upper[k + 1], lower[k + 1]] for k in steps])
        return found


class States:
    """States of a block's rows in shared memory, two copies of them, as they are multiplied."""

    def __init__(self, words: Words, parts: Division, element: ir.Type) -> None:
        self.words, self.parts, self.element = words, parts, element

    def _row(self, column: Scalar) -> Scalar:
        math = self.words.math
        return math.add(
            math.mul(math.div(column, 2), self.parts.stride), math.mul(math.rem(column, 2), self.parts.second)
        )

    def of_warp(self, first: Scalar, line: Scalar, place: Scalar) -> None:
        """What there is for a thread: it reads from column `line`, and has hidden element `line` of its warp's, from
        `first` on, of the columns 2 · `place` and the next."""
        math, each = self.words.math, self.parts.bytes_each
        self.line, self.place = self._row(line), place
        self.begin = math.add(math.mul(place, self.parts.stride), math.mul(math.add(first, line), each))

    def copy(self, number: Scalar) -> Scalar:
        """Where copy 0 or 1 begins."""
        return self.words.math.mul(number, self.parts.copy_bytes)

    def load(self, copy: Scalar, piece: Scalar) -> list[list[ir.Value]]:
        """The operands of a piece's instructions."""
        words, math = self.words, self.words.math
        count = _WORD if isinstance(piece, ir.Value) or piece < self.parts.whole else 2
        type_ = ir.VectorType.get([count], words.i32)
        at = math.add(math.add(copy, self.line), math.mul(self.place, count * _WORD))
        value = llvm.LoadOp(type_, words.place(math.add(at, math.mul(piece, PIECE))), alignment=count * _WORD).res
        numbers = [vector.extract(value, [], [k]) for k in range(count)]
        return [numbers[k : k + 2] for k in range(0, count, 2)]

    def store(self, copy: Scalar, unit: int, column: int, h: ir.Value) -> None:
        """Hidden element number `unit` of the thread's warp, of the first or second of its rows, for all blocks that
        have them. (Two elements in one access, for which threads exchange halves, took longer on an H200.)"""
        words, math, parts = self.words, self.words.math, self.parts
        is_word = parts.bytes_each == _WORD
        bits = to_tf32(words, arith.bitcast(words.i32, h)) if is_word else arith.truncf(self.element, h)
        place = column * parts.second + unit * parts.bytes_each
        at = math.add(math.add(copy, self.begin), place)
        if parts.cluster == 1:
            llvm.StoreOp(bits, words.place(at))
            return
        bits = bits if is_word else arith.bitcast(ir.IntegerType.get_signless(16), bits)
        address, size = words.value(math.add(words.shared_address, at)), 8 * parts.bytes_each
        text = f"{{ .reg .b32 a; mapa.shared::cluster.u32 a, $0, $1; st.shared::cluster.b{size} [a], $2; }}"
        for block in range(parts.cluster):
            assembly(None, [address, words.value(block), bits], text, f"r,r,{'r' if is_word else 'h'}")
