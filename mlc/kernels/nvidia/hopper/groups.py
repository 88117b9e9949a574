"""A block's groups of four warps: the first one copies, the others compute (warp specialisation)."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import nvvm, scf

from mlc.kernels.common.frame import if_then
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly

GROUP = 128  # threads of a group


def specialise(
    words: Words,
    set_up: Callable[[], None],
    copy: Callable[[ir.Value], None],
    compute: Callable[[ir.Value, ir.Value], None],
) -> None:
    """`set_up` by one thread, for all; then `copy` (of the thread's number) by the first group, and `compute` (of the
    group's number among those that compute, and the thread's) by the others.
    """
    thread = words.thread()
    # The group's number, known to be the same in all threads of a warp: the branch is then no divergence.
    group = assembly(words.i32, [words.value(words.math.div(thread, GROUP))],
                     "shfl.sync.idx.b32 $0, $1, 0, 31, 0xffffffff;", "=r,r")  # fmt: skip
    assert group is not None

    def prepare() -> None:
        set_up()
        nvvm.FenceMbarrierInitOp()
        nvvm.FenceProxyOp(nvvm.ProxyKind.async_shared, space=nvvm.SharedSpace.shared_cta)

    if_then(words.is_equal(thread, 0), prepare)
    nvvm.Barrier0Op()
    branch = scf.IfOp(words.is_equal(group, 0), has_else=True)
    with ir.InsertionPoint(branch.then_block):
        copy(thread)
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        compute(words.math.sub(group, 1), thread)
        scf.YieldOp([])
