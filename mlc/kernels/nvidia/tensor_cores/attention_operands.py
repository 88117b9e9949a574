"""Queries, keys and values of attention: how they lie in memory and in shared memory, and the copies between.

Each is a matrix whose rows are contiguous in memory, and lies in shared memory as chunks of 64 columns behind each
other, a swizzled line of 128 bytes for every row. Queries and keys are multiplied along their rows, values across.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, nvvm

from mlc.kernels.common.attention import Attention, Product
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.tensor_cores.operands import ROWS, SUM, Operand, emit_copy, plain_operand
from mlc.kernels.nvidia.tensor_cores.tiles import ROW
from mlc.kernels.nvidia.tensor_cores.words import Words
from mlc.kernels.nvidia.tensor_maps import TensorMap

CHUNK = 64  # columns of 16 bits in a line of shared memory
BYTES = 2
INSTRUCTION = 16  # elements of a sum that one instruction takes
_SWIZZLED = 1 << 62  # of 128 bytes, in a descriptor
_GROUP = 8 * ROW >> 4  # from eight lines to the next eight


@dataclass(frozen=True)
class Matrix:
    """One of the three: `columns` of a row, in lines of which a copy takes `rows`; `across` when the sum goes over its
    rows."""

    operand: Operand
    columns: int
    rows: int
    across: bool

    @property
    def chunks(self) -> int:
        """Chunks of columns; the last one may reach over the end of the rows."""
        return -(-self.columns // CHUNK)

    @property
    def chunk_bytes(self) -> int:
        """Shared memory of a chunk."""
        return self.rows * ROW

    @property
    def size(self) -> int:
        """Shared memory of a copy's rows."""
        return self.chunks * self.chunk_bytes

    @property
    def bytes(self) -> int:
        """What the copies bring: all of it, unless the matrix has a single row."""
        has_rows = any(d.role == self._lines for d in self.operand.dims)
        return self.size if has_rows else self.chunks * ROW

    @property
    def _lines(self) -> str:
        """The role of the dimension that counts the rows."""
        return SUM if self.across else ROWS

    def map(self, number: int, element: str) -> TensorMap:
        """The tensor map for its copies; `number` is that of the kernel's argument."""
        boxes: dict[str | int, int] = {SUM if not self.across else ROWS: CHUNK, self._lines: self.rows}
        dims = self.operand.dims
        box = tuple(boxes.get(d.role, 1) for d in dims)
        return TensorMap(number, element, BYTES, tuple(d.axis for d in dims), box, ROW)

    def load(
        self,
        words: Words,
        pointer: ir.Value,
        barrier: ir.Value,
        offset: Scalar,
        row: Scalar,
        outer: Mapping[int, Scalar],
    ) -> None:
        """Copies the rows from `row` on to byte `offset` of the shared memory. What lies outside is zero."""
        for chunk in range(self.chunks):
            places: dict[str, Scalar] = {self._lines: row, ROWS if self.across else SUM: chunk * CHUNK}
            where = [d.place(words.math, places, outer) for d in self.operand.dims]
            emit_copy(words, pointer, barrier, words.math.add(offset, chunk * self.chunk_bytes), where)

    def store(self, words: Words, pointer: ir.Value, offset: Scalar, row: Scalar, outer: Mapping[int, Scalar]) -> None:
        """Copies from byte `offset` of the shared memory to the rows from `row` on. What lies outside is left out."""
        for chunk in range(self.chunks):
            places: dict[str, Scalar] = {self._lines: row, ROWS if self.across else SUM: chunk * CHUNK}
            where = [words.value(d.place(words.math, places, outer)) for d in self.operand.dims]
            source = words.place(words.math.add(offset, chunk * self.chunk_bytes))
            nvvm.CpAsyncBulkTensorSharedCTAToGlobalOp(pointer, source, where)

    def descriptor(self, words: Words, offset: Scalar) -> ir.Value:
        """The matrix descriptor of the rows at byte `offset` of the shared memory."""
        address = words.math.add(words.shared_address, offset)
        masked = arith.andi(words.value(address), words.value(0x3FFFF))
        low = arith.extui(words.i64, arith.shrui(masked, words.value(4)))
        leading = self.chunk_bytes >> 4 if self.across else 1
        return arith.ori(low, words.frame.constants.get(words.i64, _SWIZZLED | _GROUP << 32 | leading << 16))

    def step(self, number: int) -> int:
        """Bytes from the descriptor to the data of instruction `number` of a product along the rows."""
        chunk, inside = divmod(number * INSTRUCTION, CHUNK)
        return chunk * self.chunk_bytes + inside * BYTES


def matrices(source: KernelSource, attention: Attention, keys: int) -> tuple[Matrix, Matrix, Matrix] | None:
    """Queries, keys and values of a kernel, for blocks of `keys` keys; None when one is no argument of the kernel that
    the copy engine reads."""
    scores, output = attention.scores, attention.output
    found = [
        (scores, 0, _roles(scores, scores.row)),
        (scores, 1, _roles(scores, scores.column)),
        (output, 1, _roles(output, output.column)),
    ]
    operands = [plain_operand(source, product.op, number, role) for product, number, role in found]
    size = scores.element.width // 8
    depth, width = head_dims(attention)
    result = []
    for (_, number, _), operand, across in zip(found, operands, (False, False, True), strict=True):
        if operand is None or operand.problem(size) is not None or operand.across != across:
            return None
        rows = CHUNK if number == 0 else keys
        result.append(Matrix(operand, width if across else depth, rows, across))
    return result[0], result[1], result[2]


def head_dims(attention: Attention) -> tuple[int, int]:
    """Columns of queries and keys, and of values; less than 1 when they are known at run time only."""
    return extent(attention.scores, 0, attention.scores.inner), extent(attention.output, 1, attention.output.column)


def extent(product: Product, operand: int, dim: int) -> int:
    """The extent of iteration dimension `dim` in an operand of a product; 0 when it is not known."""
    exprs = list(ir.AffineMapAttr(product.op.attributes["indexing_maps"][operand]).value.results)
    type_ = product.op.operands[operand].type
    for position, expr in enumerate(exprs):
        if isinstance(expr, ir.AffineDimExpr) and expr.position == dim and not type_.is_dynamic_dim(position):
            return int(type_.get_dim_size(position))
    return 0


def _roles(product: Product, rows: int) -> Callable[[int], str | int]:
    def role(dim: int) -> str | int:
        if dim == product.inner:
            return SUM
        return ROWS if dim == rows else dim

    return role
