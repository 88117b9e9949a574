"""What a launch may do before the launches in front of it are done (CUDA C++ Programming Guide, "Programmatic Dependent
Launch and Synchronization").

A kernel of an early launch waits before it touches what other launches write. Templates that say nothing wait first of
all (`mlc-lower-to-nvvm`); one that calls `wait_for_launches` does so itself, and may read before that what no launch
writes: weights, which `mlc-note-constants` notes on the kernel. Every block of such a kernel waits, at the latest
before it ends, so that a launch that is done has seen all others done.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import llvm, nvvm

from mlc.kernels.common.frame import KernelSource
from mlc.kernels.nvidia.tensor_cores.words import assembly

WAITS = "mlc.waits"
"""The attribute of a kernel module whose code waits where its template has put it."""

LINE = 128  # bytes of a cache line


def wait_for_launches(source: KernelSource) -> None:
    """Waits until the launches in front are done and what they wrote is seen; nothing where this one is not early."""
    source.module.attributes[WAITS] = ir.UnitAttr.get()
    nvvm.GriddepcontrolOp(nvvm.GridDepActionKind.wait)


def fetch_map(pointer: ir.Value) -> None:
    """Brings a tensor map near: the first copy by it need not wait for it."""
    assembly(None, [pointer], "prefetch.tensormap [$0];", "l")


def fetch_lines(pointer: ir.Value, size: int) -> None:
    """Brings `size` bytes from `pointer` on into the L2 cache: each thread of the first block a line. With all blocks
    at it norms of 512 rows took a microsecond longer."""
    text = (
        "{ .reg .pred p, q; .reg .b32 t, o; .reg .b64 a; mov.u32 t, %ctaid.x; setp.eq.u32 q, t, 0; "
        "mov.u32 t, %tid.x; shl.b32 o, t, 7; setp.lt.and.u32 p, o, $1, q; "
        "cvt.u64.u32 a, o; add.s64 a, a, $0; @p prefetch.L2 [a]; }"
    )
    i32 = ir.IntegerType.get_signless(32)
    count = llvm.ConstantOp(i32, ir.IntegerAttr.get(i32, size)).result
    assembly(None, [pointer, count], text, "l,r")
