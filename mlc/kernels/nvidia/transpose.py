"""Transpositions through shared memory: both the reads and the writes of a warp are whole cache lines.

Takes kernels that reduce nothing and read one of their inputs along a dimension that is not the results' contiguous
one. A block does a square of `tile` x `tile` elements: it reads that input's elements along the input's contiguous
dimension into shared memory, and then evaluates the results along theirs, with the elements in shared memory in place
of the input. Rows of the square are one bank longer than `tile`, so that a column lies in different banks (Ruetsch
and Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009). Narrow elements are read and written `lanes` at a time.

Threads at the edge repeat the last row or column instead of leaving. Schedule parameters: `argument`: number of that
input among the function's arguments; `read_dim`: the result dimension that the input is contiguous along; `write_dim`:
the results' contiguous dimension; `tile`; `threads` of a block; `lanes`, which divide both extents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import memref, nvvm, vector

from mlc.kernels.common import memory
from mlc.kernels.common.alignment import access_alignment
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, storage_type
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.threads import shared_array

BANK = 4  # bytes of shared memory's banks


@dataclass(frozen=True)
class TransposeSchedule:
    """Parameters of the template; see the module's description."""

    argument: int
    read_dim: int
    write_dim: int
    tile: int
    threads: int
    lanes: int = 1

    @property
    def width(self) -> int:
        """Threads along a row of the square."""
        return self.tile // self.lanes

    @property
    def rows(self) -> int:
        """Rows of the square that the threads of a block are on at a time."""
        return self.threads // self.width


def expand(source: KernelSource, schedule: TransposeSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a thread's part of a square."""
    s = schedule

    def items(frame: Frame) -> list[Scalar]:
        shape = frame.buffers[source.destinations[0]].shape
        outer = [e for d, e in enumerate(shape) if d not in (s.read_dim, s.write_dim)]
        squares = [frame.math.ceildiv(shape[d], s.tile) for d in (s.read_dim, s.write_dim)]
        return [*outer, *squares, s.rows, s.width]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Square(source, s, frame, coords).emit()

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _Square:
    """What one thread does."""

    def __init__(self, source: KernelSource, schedule: TransposeSchedule, frame: Frame, coords: list[Scalar]) -> None:
        self.source, self.s, self.frame = source, schedule, frame
        self.shape = frame.buffers[source.destinations[0]].shape
        self.input = list(source.block.arguments)[schedule.argument]
        *outer, read_square, write_square, self.row, column = coords
        self.column = frame.math.mul(column, schedule.lanes)
        self.base = {
            schedule.read_dim: frame.math.mul(read_square, schedule.tile),
            schedule.write_dim: frame.math.mul(write_square, schedule.tile),
        }
        free = iter(outer)
        self.origin = [Idx(0) if d in self.base else Idx(next(free), level=1) for d in range(len(self.shape))]
        element = storage_type(self.input.type.element_type)
        self.pitch = schedule.tile + max(1, BANK // ((element.width + 7) // 8))
        self.shared = shared_array(frame, schedule.tile * self.pitch, element)

    def _place(self, dim: int, offset: Scalar, lanes: int) -> tuple[Scalar, Scalar]:
        """The coordinate of the first of `lanes` elements at `offset` of the square, moved so that all are in the
        domain, and its offset."""
        math = self.frame.math
        last = math.sub(math.sub(self.shape[dim], lanes), self.base[dim])
        inside = math.minimum(offset, last)
        return math.add(self.base[dim], inside), inside

    def _steps(self) -> list[Scalar]:
        s, math = self.s, self.frame.math
        return [math.add(self.row, step) for step in range(0, s.tile, s.rows)]

    def _at(self, read: Scalar, write: Scalar, lanes: int) -> list[Idx]:
        """A point of the domain; the `lanes` of a vector lie along what is written."""
        point = list(self.origin)
        point[self.s.read_dim] = Idx(read, level=1)
        point[self.s.write_dim] = Idx(write, 1 if lanes > 1 else 0, level=1)
        return point

    def emit(self) -> None:
        s, math = self.s, self.frame.math
        read, column = self._place(s.read_dim, self.column, s.lanes)
        loaded = []
        for step in self._steps():
            write, row = self._place(s.write_dim, step, 1)
            loaded.append((row, self._read(self._at(read, write, 1))))
        for row, values in loaded:  # all loads are in flight before the first is waited for
            for lane, value in enumerate(values):
                memref.store(value, self.shared, [self._shared_index(row, math.add(column, lane))])
        nvvm.Barrier0Op()
        write, row = self._place(s.write_dim, self.column, s.lanes)
        for step in self._steps():
            read, column = self._place(s.read_dim, step, 1)
            self._write(self._at(read, write, s.lanes), row, column)

    def _shared_index(self, row: Scalar, column: Scalar) -> ir.Value:
        return self.frame.constants.index(self.frame.math.add(self.frame.math.mul(row, self.pitch), column))

    def _read(self, point: Sequence[Idx]) -> list[ir.Value]:
        """The input's elements, as they are in memory, from the one on that the results at `point` need."""
        found: list[ir.Value] = []
        buffer, lanes = self.frame.buffers[self.input], self.s.lanes

        def catch(coords: Sequence[Idx]) -> ir.Value:
            if found:  # another operation reads the same element
                return memory.from_memory(self.frame, found[0], buffer.element)
            where = memory.address(buffer, coords, ev.idx)
            base, element = [self.frame.constants.index(where.base)], storage_type(buffer.element)
            if lanes == 1:
                found.append(memref.load(buffer.memory, base))
            else:
                aligned = access_alignment(self.frame, where.base, element)
                loaded = vector.LoadOp(ir.VectorType.get([lanes], element), buffer.memory, base, alignment=aligned)
                found.extend(vector.extract(loaded.result, [], [lane]) for lane in range(lanes))
            return memory.from_memory(self.frame, found[0], buffer.element)

        ev = Evaluator(self.frame, 1, overrides={self.input: catch})
        for value in self.source.results:
            if not found:
                ev.tensor(value, point)
        return found

    def _write(self, point: Sequence[Idx], row: Scalar, column: Scalar) -> None:
        """The results at `point`, with the input's elements from shared memory: `column`, from `row` on."""
        s, math = self.s, self.frame.math
        raw = [memref.load(self.shared, [self._shared_index(math.add(row, lane), column)]) for lane in range(s.lanes)]
        value = raw[0] if s.lanes == 1 else vector.from_elements(ir.VectorType.get([s.lanes], raw[0].type), raw)
        element = memory.from_memory(self.frame, value, self.input.type.element_type)
        override: Callable[[Sequence[Idx]], ir.Value] = lambda _: element  # noqa: E731
        ev = Evaluator(self.frame, s.lanes, overrides={self.input: override})
        for value, destination in zip(self.source.results, self.source.destinations, strict=True):
            memory.store(self.frame, ev.idx, self.frame.buffers[destination], point, ev.tensor(value, point), None)
