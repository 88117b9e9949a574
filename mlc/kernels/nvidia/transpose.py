"""Transpositions through shared memory: both the reads and the writes of a warp are whole cache lines.

Takes kernels that reduce nothing and read one of their inputs along a dimension that is not the results' contiguous
one. A block does a square of `tile` x `tile` elements: it reads that input's elements along the input's contiguous
dimension into shared memory, and then evaluates the results along theirs, with the elements in shared memory in place
of the input. Rows of the square are one element longer than `tile`, so that a column lies in different banks (Ruetsch
and Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009).

Threads at the edge repeat the last row or column instead of leaving. Schedule parameters: `argument`: number of that
input among the function's arguments; `read_dim`: the result dimension that the input is contiguous along; `write_dim`:
the results' contiguous dimension; `tile`; `threads` of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import memref, nvvm

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, storage_type
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.threads import shared_array


@dataclass(frozen=True)
class TransposeSchedule:
    """Parameters of the template; see the module's description."""

    argument: int
    read_dim: int
    write_dim: int
    tile: int
    threads: int

    @property
    def rows(self) -> int:
        """Rows of the square that the threads of a block are on at a time."""
        return self.threads // self.tile


def expand(source: KernelSource, schedule: TransposeSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a thread's part of a square."""
    s = schedule

    def items(frame: Frame) -> list[Scalar]:
        shape = frame.buffers[source.destinations[0]].shape
        outer = [e for d, e in enumerate(shape) if d not in (s.read_dim, s.write_dim)]
        squares = [frame.math.ceildiv(shape[d], s.tile) for d in (s.read_dim, s.write_dim)]
        return [*outer, *squares, s.rows, s.tile]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Square(source, s, frame, coords).emit()

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _Square:
    """What one thread does."""

    def __init__(self, source: KernelSource, schedule: TransposeSchedule, frame: Frame, coords: list[Scalar]) -> None:
        self.source, self.s, self.frame = source, schedule, frame
        self.shape = frame.buffers[source.destinations[0]].shape
        self.input = list(source.block.arguments)[schedule.argument]
        *outer, read_square, write_square, self.row, self.column = coords
        self.base = {
            schedule.read_dim: frame.math.mul(read_square, schedule.tile),
            schedule.write_dim: frame.math.mul(write_square, schedule.tile),
        }
        free = iter(outer)
        self.origin = [Idx(0) if d in self.base else Idx(next(free), level=1) for d in range(len(self.shape))]
        element = storage_type(self.input.type.element_type)
        self.shared = shared_array(frame, schedule.tile * (schedule.tile + 1), element)

    def _place(self, dim: int, offset: Scalar) -> tuple[Scalar, Scalar]:
        """The coordinate that is `offset` behind the square's start, but within the domain, and its offset."""
        math = self.frame.math
        last = math.sub(math.sub(self.shape[dim], 1), self.base[dim])
        inside = math.minimum(offset, last)
        return math.add(self.base[dim], inside), inside

    def _steps(self) -> list[Scalar]:
        s, math = self.s, self.frame.math
        return [math.add(self.row, step) for step in range(0, s.tile, s.rows)]

    def _at(self, read: Scalar, write: Scalar) -> list[Idx]:
        point = list(self.origin)
        point[self.s.read_dim], point[self.s.write_dim] = Idx(read, level=1), Idx(write, level=1)
        return point

    def emit(self) -> None:
        s, frame = self.s, self.frame
        read, column = self._place(s.read_dim, self.column)
        loaded = []
        for step in self._steps():
            write, row = self._place(s.write_dim, step)
            loaded.append((row, self._read(self._at(read, write))))
        for row, value in loaded:  # all loads are in flight before the first is waited for
            memref.store(value, self.shared, [frame.constants.index(self._shared_index(row, column))])
        nvvm.Barrier0Op()
        write, row = self._place(s.write_dim, self.column)
        for step in self._steps():
            read, column = self._place(s.read_dim, step)
            self._write(self._at(read, write), self._shared_index(row, column))

    def _shared_index(self, row: Scalar, column: Scalar) -> Scalar:
        return self.frame.math.add(self.frame.math.mul(row, self.s.tile + 1), column)

    def _read(self, point: Sequence[Idx]) -> ir.Value:
        """The input's element that the results at `point` need, as it is in memory."""
        found: list[ir.Value] = []
        buffer = self.frame.buffers[self.input]

        def catch(coords: Sequence[Idx]) -> ir.Value:
            where = memory.address(buffer, coords, ev.idx)
            found.append(memref.load(buffer.memory, [self.frame.constants.index(where.base)]))
            return memory.from_memory(self.frame, found[0], buffer.element)

        ev = Evaluator(self.frame, 1, overrides={self.input: catch})
        for value in self.source.results:
            if not found:
                ev.tensor(value, point)
        return found[0]

    def _write(self, point: Sequence[Idx], index: Scalar) -> None:
        """The results at `point`, with the input's element from shared memory."""
        raw = memref.load(self.shared, [self.frame.constants.index(index)])
        element = memory.from_memory(self.frame, raw, self.input.type.element_type)
        override: Callable[[Sequence[Idx]], ir.Value] = lambda _: element  # noqa: E731
        ev = Evaluator(self.frame, 1, overrides={self.input: override})
        for value, destination in zip(self.source.results, self.source.destinations, strict=True):
            memory.store(self.frame, ev.idx, self.frame.buffers[destination], point, ev.tensor(value, point), None)
