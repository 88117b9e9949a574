"""Rows in shared memory: what many rows have under way is not bounded by registers.

Each thread copies the accesses that it will read itself (`cp.async`, PTX ISA, "Data Movement and Conversion
Instructions: Non-bulk copy"), so that it waits for nobody. Reductions and results read them from there, and compute
again what several of them need, such as the exponentials of a softmax.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, llvm, memref, nvvm

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, Hook
from mlc.kernels.common.frame import Buffer, Frame, storage_type
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.nvidia.tensor_cores.words import Words

PIECE = 16  # bytes of a copy


class StagedRows:
    """The parts of row `row` of `tensors` that this block has in shared memory: `numbers` accesses of `lanes` elements
    for each of its `threads`; `rows` are the extents of the rows, `extent` the elements of one."""

    def __init__(
        self,
        frame: Frame,
        tensors: Sequence[ir.Value],
        row: Sequence[Idx],
        rows: Sequence[Scalar],
        extent: int,
        lanes: int,
        shape: tuple[int, int],
    ) -> None:
        self.frame, self.tensors, self.row, self.rows = frame, list(tensors), list(row), list(rows)
        self.extent, self.lanes, (self.numbers, self.threads) = extent, lanes, shape
        self.words = Words(frame)
        self.thread = self.words.thread()
        self.slots: dict[object, Scalar] = {}
        self._is_here = False

    def copy(self, number: int, column: Scalar, ends: bool) -> None:
        """Begins to copy access `number`, which begins with element `column`; may it have the row's end, or lie behind
        it?"""
        math, index = self.frame.math, self.frame.constants.index
        start: Scalar = 0
        for coord, size in zip(self.row, self.rows, strict=True):
            start = math.add(math.mul(start, size), coord.base)
        start = math.add(math.mul(start, self.extent), column)
        for which, tensor in enumerate(self.tensors):
            each = (storage_type(self.frame.buffers[tensor].element).width + 7) // 8
            size = None
            if ends:
                total = math.mul(math.product(self.rows), self.extent)
                left = math.maximum(math.minimum(math.sub(total, start), self.lanes), 0)
                is_in_row = arith.cmpi(arith.CmpIPredicate.slt, index(column), index(self.extent))
                size = arith.select(is_in_row, index(math.mul(left, each)), index(0))
                size = arith.index_cast(self.words.i32, size)
            source = self._pointer(self.frame.buffers[tensor], math.mul(start, each))
            place = self.words.place(self._offset(which, number))
            nvvm.CpAsyncOp(place, source, PIECE, ir.Attribute.parse("#nvvm<load_cache_modifier cg>"), cpSize=size)

    def _pointer(self, buffer: Buffer, offset: Scalar) -> ir.Value:
        base = memref.ExtractAlignedPointerAsIndexOp(buffer.memory).result
        address = self.frame.math.add(base, offset)
        return llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr<1>"), arith.index_cast(self.words.i64, address)).res

    def _offset(self, which: int, number: Scalar) -> Scalar:
        math = self.words.math
        line = math.add(self.words.narrow(number), which * self.numbers)
        return math.mul(math.add(math.mul(line, self.threads), self.thread), PIECE)

    def wait(self) -> None:
        """Waits for what this thread copies, once."""
        if not self._is_here:
            nvvm.CpAsyncWaitGroupOp(ir.IntegerAttr.get(self.words.i32, 0))
            self._is_here = True

    def begin(self) -> None:
        """All copies have begun."""
        nvvm.CpAsyncCommitGroupOp()

    def note(self, column: Idx, number: Scalar) -> None:
        """Access `number` is read at `column`."""
        self.slots[column.key()] = number

    def hooks(self, others: dict[ir.Value, Hook]) -> dict[ir.Value, Hook]:
        """How the tensors are read, where it is at an access; elsewhere by the `others`."""

        def hook(tensor: ir.Value, which: int) -> Hook:
            def read(ev: Evaluator, coords: Sequence[Idx]) -> ir.Value:
                number = self.slots.get(coords[-1].key())
                is_row = [c.key() for c in coords[:-1]] == [c.key() for c in self.row]
                if number is not None and is_row:
                    return self._read(tensor, which, number)
                return others[tensor](ev, coords) if tensor in others else ev.compute(tensor, coords)

            return read

        return {**others, **{t: hook(t, which) for which, t in enumerate(self.tensors)}}

    def _read(self, tensor: ir.Value, which: int, number: Scalar) -> ir.Value:
        element = self.frame.buffers[tensor].element
        type_ = ir.VectorType.get([self.lanes], storage_type(element))
        value = llvm.LoadOp(type_, self.words.place(self._offset(which, number)), alignment=PIECE).result
        return memory.from_memory(self.frame, value, element)
