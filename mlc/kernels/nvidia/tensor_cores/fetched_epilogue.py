"""The epilogue of 16-bit results to which a matrix is added that comes while the products are computed.

The matrix has room in shared memory for a whole tile. Each warp begins to copy what it will add of the next tile
(`cp.async`, PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy") as soon as it has stored a tile, so
that nobody waits for memory between the products and the stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlir import ir
from mlir.dialects import arith, llvm, memref, nvvm

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.tensor_cores.epilogue import WARP_ROWS, Domain
from mlc.kernels.nvidia.tensor_cores.packed_epilogue import LANES, PackedEpilogue
from mlc.kernels.nvidia.tensor_cores.words import Words

_PIECE = 16  # bytes of a copy
_SIZE = _PIECE // LANES
_AT_ONCE = 8  # copies of a thread whose addresses are computed together


def fetched_bytes(rows: int, columns: int) -> int:
    """Shared memory that the epilogue of a tile takes."""
    return rows * columns * _SIZE


class FetchedEpilogue(PackedEpilogue):
    """Stores the one result of `source`, whose contraction `root` is followed by an addend. Each warp has `blocks`
    blocks of 16 rows of a tile. Raises ValueError where nothing is added."""

    def __init__(
        self,
        words: Words,
        source: KernelSource,
        root: ir.Operation,
        domain: Domain,
        offset: int,
        tile: tuple[int, int],
        shares: int,
        blocks: int,
    ) -> None:
        super().__init__(words, source, root, domain, offset, tile, shares)
        if self._addend is None or domain.lanes != LANES:
            raise ValueError(f"kernel {source.func.name.value}: it adds no matrix of 16 bits to a result of 16 bits")
        self.blocks, self.addend = blocks, self._addend

    def fetch(
        self, warp: ir.Value, lane: ir.Value, origins: Sequence[tuple[Scalar, Scalar]], outer: Sequence[Scalar]
    ) -> None:
        """Begins to copy what a warp will add of a tile, whose blocks of 16 rows begin at `origins`. The warp has read
        what it staged of the tile before."""
        math = self.words.math
        self._synchronize()
        for block, (row, column) in enumerate(origins):
            area = self._area(warp, block)
            for first in range(0, self.columns, self.chunk):
                base, place = math.add(area, self._beside(first)), (row, math.add(column, first))
                address = partial(self._address, outer)
                self._each_vector(lane, place, _AT_ONCE, address, partial(self._copy, base))
        nvvm.CpAsyncCommitGroupOp()

    def _address(self, outer: Sequence[Scalar], _: Scalar, at: tuple[Scalar, Scalar]) -> list[ir.Value]:
        """Where a vector of the addend lies in memory."""
        buffer, math = self.frame.buffers[self.addend], self.frame.math
        element = memory.address(buffer, self._point(at, outer), Evaluator(self.frame, LANES).idx).base
        base = memref.ExtractAlignedPointerAsIndexOp(buffer.memory).result
        byte = self.frame.constants.index(math.add(base, math.mul(element, _SIZE)))
        return [llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr<1>"), arith.index_cast(self.words.i64, byte)).res]

    def _copy(self, base: Scalar, found: list[ir.Value], where: Scalar, _: tuple[Scalar, Scalar]) -> None:
        place = self.words.place(self.words.math.add(base, where))
        nvvm.CpAsyncOp(place, found[0], _PIECE, ir.Attribute.parse("#nvvm<load_cache_modifier cg>"))

    def store(
        self,
        accumulators: Sequence[ir.Value],
        warp: ir.Value,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
        block: int = 0,
    ) -> None:
        """As ever; waits for the copies before the first block."""
        if block == 0:
            nvvm.CpAsyncWaitGroupOp(ir.IntegerAttr.get(self.words.i32, 0))
        super().store(accumulators, warp, lane, origin, outer, block)

    def _area(self, warp: ir.Value, block: int) -> Scalar:
        math, size = self.words.math, WARP_ROWS * self.columns * _SIZE
        return math.add(math.mul(math.add(math.mul(warp, self.blocks), block), size), self.offset)

    def _beside(self, first: int) -> int:
        return WARP_ROWS * first * _SIZE

    def _fetch(self, *_: object) -> None:
        """Nothing: it is here."""
