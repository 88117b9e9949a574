"""A block's groups of four warps: the first one copies, the others compute (warp specialisation)."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import nvvm, scf

from mlc.kernels.common.frame import if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.hopper.clusters import meet
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly

WARP = 32  # threads of a warp
GROUP = 128  # threads of a group


def specialise(
    words: Words,
    set_up: Callable[[], None],
    copy: Callable[[ir.Value], None],
    compute: Callable[[ir.Value, ir.Value], None],
    *,
    in_cluster: bool = False,
) -> None:
    """`set_up` by one thread, for all; then `copy` (of the warp's number) by the first group, and `compute` (of the
    group's number among those that compute, and the thread's) by the others. `in_cluster`: blocks of a cluster begin
    and end together, as they copy to each other.
    """
    thread = words.thread()
    group = _of_warp(words, words.math.div(thread, GROUP))

    def prepare() -> None:
        set_up()
        nvvm.FenceMbarrierInitOp()
        nvvm.FenceProxyOp(nvvm.ProxyKind.async_shared, space=nvvm.SharedSpace.shared_cta)

    if_then(words.is_equal(thread, 0), prepare)
    nvvm.Barrier0Op()
    if in_cluster:
        meet()
    branch = scf.IfOp(words.is_equal(group, 0), has_else=True)
    with ir.InsertionPoint(branch.then_block):
        copy(_of_warp(words, words.math.div(thread, WARP)))
        scf.YieldOp([])
    with ir.InsertionPoint(branch.else_block):
        compute(words.math.sub(group, 1), thread)
        scf.YieldOp([])
    if in_cluster:
        meet()


def by_one_thread(body: Callable[[], None]) -> None:
    """`body` by one thread of a warp, whose threads are all here; always the same one.

    Copies take addresses from registers that a warp has once. Who is known to be alone (PTX ISA, `elect.sync`) puts
    them there; where a thread's number is compared, ptxas makes a loop over the threads of every copy.
    """
    if_then(nvvm.ElectSyncOp(ir.IntegerType.get_signless(1)).results[0], body)


def _of_warp(words: Words, number: Scalar) -> ir.Value:
    """`number`, known to be the same in all threads of a warp: a branch on it is then no divergence."""
    text = "shfl.sync.idx.b32 $0, $1, 0, 31, 0xffffffff;"
    result = assembly(words.i32, [words.value(number)], text, "=r,r")
    assert result is not None
    return result
