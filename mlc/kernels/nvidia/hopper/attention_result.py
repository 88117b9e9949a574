"""Results of attention that are only rounded: through shared memory by the copy engine.

A warp has 16 rows. It writes them, rounded, as swizzled lines of 64 columns, and asks for their copy; what lies beyond
the result's end is left out. It goes on at once: the copy must have read the lines only before the next ones are
written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir
from mlir.dialects import nvvm

from mlc.kernels.common.attention import Attention
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import input_number, is_identity, only_operation
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.hopper.groups import by_one_thread
from mlc.kernels.nvidia.tensor_cores.attention_operands import BYTES, CHUNK, INSTRUCTION, Matrix
from mlc.kernels.nvidia.tensor_cores.attention_softmax import rounded
from mlc.kernels.nvidia.tensor_cores.epilogue import WARP_ROWS
from mlc.kernels.nvidia.tensor_cores.operands import ROWS, SUM, result_operand
from mlc.kernels.nvidia.tensor_cores.tiles import ROW
from mlc.kernels.nvidia.tensor_cores.words import Words

_PIECE = 16  # bytes that the swizzle moves as one
_ELEMENTS = ("bf16", "f16")


def rounded_result(source: KernelSource, attention: Attention) -> str:
    """The type of the kernel's result when that is the rounded last product and nothing else, and the copy engine can
    write it; otherwise nothing."""
    product, results = attention.output.op.results[0], source.results
    rounding = defining_op(results[0])
    inner = only_operation(rounding, "arith.truncf")
    if len(results) != 1 or rounding is None or inner is None or input_number(rounding, inner.operands[0]) != 0:
        return ""
    if rounding.operands[0] != product or not is_identity(rounding, 0) or not is_identity(rounding, 1):
        return ""
    element = str(results[0].type.element_type)
    operand = result_matrix(source, attention, 0).operand
    takes = operand.problem(BYTES) is None and operand.dims[0].role == SUM
    takes = takes and any(d.role == ROWS for d in operand.dims)  # warps without rows would write the only one
    return element if element in _ELEMENTS and takes else ""


def result_matrix(source: KernelSource, attention: Attention, columns: int) -> Matrix:
    """The kernel's result, a warp's rows at a time."""
    output = attention.output
    names: dict[int, str | int] = {output.column: SUM, output.row: ROWS}
    roles = [names.get(d, d) for d in output.order]
    return Matrix(result_operand(source, source.destinations[0], roles), columns, WARP_ROWS, False)


def staging_bytes(columns: int, warps: int) -> int:
    """Shared memory for the results of `warps` warps."""
    return warps * -(-columns // CHUNK) * WARP_ROWS * ROW


class CopiedResult:
    """Stores the accumulators of a warp, whose lines begin at byte `offset` of the shared memory, by the map
    `pointer`."""

    def __init__(self, words: Words, matrix: Matrix, element: str, pointer: ir.Value, offset: Scalar) -> None:
        self.words, self.matrix, self.element = words, matrix, element
        self.pointer, self.offset = pointer, offset

    def store(self, sums: Sequence[ir.Value], lane: ir.Value, row: Scalar, outer: Mapping[int, Scalar]) -> None:
        """The warp's rows from `row` on."""
        by_one_thread(lambda: nvvm.CpAsyncBulkWaitGroupOp(0, read=True))
        nvvm.SyncWarpOp(self.words.value(-1))
        pairs = rounded(self.words, sums, self.element)
        for step in range(len(pairs) // 4):
            self._write(step, pairs[4 * step : 4 * step + 4], lane)
        nvvm.FenceProxyOp(nvvm.ProxyKind.async_shared, space=nvvm.SharedSpace.shared_cta)
        nvvm.SyncWarpOp(self.words.value(-1))

        def copy() -> None:
            self.matrix.store(self.words, self.pointer, self.offset, row, outer)
            nvvm.CpAsyncBulkCommitGroupOp()

        by_one_thread(copy)

    def finish(self) -> None:
        """Waits for all copies: shared memory goes with the block."""
        by_one_thread(lambda: nvvm.CpAsyncBulkWaitGroupOp(0))

    def _write(self, step: int, pairs: Sequence[ir.Value], lane: ir.Value) -> None:
        """16 columns: four squares of eight rows, a thread naming a row of one."""
        words, math = self.words, self.words.math
        chunk, inside = divmod(step * INSTRUCTION, CHUNK)
        piece = words.xor(math.add(math.div(lane, 16), inside * BYTES // _PIECE), math.rem(lane, 8))
        place = math.add(math.mul(math.rem(lane, 16), ROW), math.mul(piece, _PIECE))
        target = words.place(math.add(math.add(self.offset, place), chunk * self.matrix.chunk_bytes))
        nvvm.StMatrixOp(
            target,
            list(pairs),
            ir.Attribute.parse("#nvvm.mma_layout<row>"),
            ir.Attribute.parse("#nvvm.ld_st_matrix_shape<m = 8, n = 8>"),
            ir.Attribute.parse("#nvvm.ld_st_matrix_elt_type<b16>"),
        )
