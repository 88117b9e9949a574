"""Blocks of a cluster that share a row: each has the result of its part, and they exchange these.

The blocks of a cluster reach each other's shared memory (PTX ISA, "Cluster of Cooperative Thread Arrays"). Each writes
what it has into the memory of all, so that nobody reads from a block that may have ended: behind the last exchange
nothing is left to be read elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith, memref, nvvm, vector

from mlc.kernels.common.frame import Frame, if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.tensor_cores.words import assembly
from mlc.kernels.nvidia.threads import (
    WARP,
    Combine,
    Values,
    combine_pairs,
    from_bits,
    from_shared,
    shared_array,
    to_bits,
)

_TOGETHER = 16  # bytes of a read of shared memory


class Blocks:
    """The `count` blocks of a cluster, of which this is number `rank`; `thread` is that of a thread in its block."""

    def __init__(self, frame: Frame, count: int, rank: Scalar, thread: ir.Value) -> None:
        self.frame, self.count, self.rank, self.thread = frame, count, rank, thread
        self._all_are_here = False
        nvvm.ClusterArriveRelaxedOp(aligned=True)

    def combine(self, values: Values, combine: Combine, number: int) -> Values:
        """`combine` over the `values` of all blocks, which all threads of a block have, in every thread of all.

        The order is fixed by `count`. Each `number` may be combined once: it has a place of its own.
        """
        frame, bits = self.frame, [to_bits(value) for value in values]
        names = [f"blocks_{number}_{part}" if part else f"blocks_{number}" for part in range(len(values))]
        shared = [shared_array(frame, self.count, raw.type, name) for raw, name in zip(bits, names, strict=True)]
        if not self._all_are_here:  # the memory of a block that has not begun is not there to be written
            nvvm.ClusterWaitOp(aligned=True)
            self._all_are_here = True

        def send() -> None:
            for array, raw in zip(shared, bits, strict=True):
                self._send(array, raw)

        self._meet(send)
        found = [self._received(array, value.type) for array, value in zip(shared, values, strict=True)]
        return combine_pairs(list(zip(*found, strict=True)), combine)

    def _received(self, shared: ir.Value, type_: ir.Type) -> list[ir.Value]:
        """What every block has sent, values of `type_`."""
        raw = shared.type.element_type
        together = min(self.count, _TOGETHER * 8 // raw.width)
        found: list[ir.Value] = []
        for first in range(0, self.count, together):
            loaded = from_shared(self.frame, shared, first, ir.VectorType.get([together], raw))
            found += [from_bits(vector.extract(loaded, [], [lane]), type_) for lane in range(together)]
        return found

    def _meet(self, send: Callable[[], None]) -> None:
        """All threads of the cluster meet, once the first warp has sent. Only that one has written something that
        others see: arriving with what was written is a fence of the whole GPU."""
        index = self.frame.constants.index

        def first_warp() -> None:
            if_then(arith.cmpi(arith.CmpIPredicate.ult, self.thread, index(self.count)), send)
            nvvm.ClusterArriveOp(aligned=True)

        is_first = arith.cmpi(arith.CmpIPredicate.ult, self.thread, index(WARP))
        if_then(is_first, first_warp, lambda: nvvm.ClusterArriveRelaxedOp(aligned=True))
        nvvm.ClusterWaitOp(aligned=True)

    def _send(self, shared: ir.Value, bits: ir.Value) -> None:
        """Thread t writes to block t."""
        i32, size = ir.IntegerType.get_signless(32), bits.type.width // 8
        base = arith.index_cast(i32, memref.ExtractAlignedPointerAsIndexOp(shared).result)
        offset = self.frame.constants.index(self.frame.math.mul(self.rank, size))
        address = arith.addi(base, arith.index_cast(i32, offset))
        text = f"{{ .reg .b32 a; mapa.shared::cluster.u32 a, $0, $1; st.shared::cluster.b{size * 8} [a], $2; }}"
        assembly(None, [address, arith.index_cast(i32, self.thread), bits], text, "r,r,r" if size == 4 else "r,r,l")
