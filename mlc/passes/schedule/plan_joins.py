"""Decide which launches become one: `mlc.joined` numbers on launches of the GPU.

```mlir
%q = mlc.launch @k0(%a, …) …     →  {mlc.joined = 0}     neither reads what the other makes
%k = mlc.launch @k1(%b, …) …     →  {mlc.joined = 0}
```
A launch takes a microsecond or two however little it does, and small elementwise kernels, as rotations of queries and
of keys or two caches that are written, leave most of the chip idle. Those that do not depend on each other go together
as long as all of them fit on the chip at a time. `mlc-join-launches` obeys.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from mlc.kernels.common.analysis import is_contraction, reachable
from mlc.kernels.common.frame import KernelSource, kernel_source
from mlc.kernels.common.generics import is_reduction
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import BlockGraph, host_blocks
from mlc.passes.schedule.add_architectures import targets_of
from mlc.passes.schedule.assign_placement import DEVICE
from mlc.passes.schedule.gpu_cost import choose
from mlc.passes.walk import called_kernel
from mlc.targets.nvidia import NvidiaTarget

JOINED = "mlc.joined"

MOST_THREADS = 132 * 2048  # that a chip holds: more of them wait for each other anyway
MOST_PARTS = 8
LOOKED_AT = 8  # joined launches in front of one that it may become part of


class PlanJoins(Pass):
    """Decide which launches become one."""

    statistics = {"joined": "launches that are no more"}

    def run(self, root: ir.OpView) -> None:
        module, first = root.operation, 0
        target = targets_of(module)[0]
        threads = {
            ir.StringAttr(view.operation.attributes["sym_name"]).value: _threads(kernel_source(view.operation), target)
            for view in module.regions[0].blocks[0].operations
            if "mlc.kernel" in view.operation.attributes
        }
        for block in host_blocks(module):
            if sum(_needed(view.operation, threads) is not None for view in block.operations) < 2:
                continue
            graph = BlockGraph(block)
            _plan(graph, threads)
            for members in graph.members.values():
                if len(members) > 1:
                    for n in members:
                        graph.ops[n].attributes[JOINED] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), first)
                    first += 1
                    self.count("joined", len(members) - 1)


def _plan(graph: BlockGraph, threads: dict[str, int | None]) -> None:
    """Puts launches into clusters, each into the last of those in front of it that it may be part of."""
    taken: dict[int, int] = {}
    for n, op in enumerate(graph.ops):
        needed = _needed(op, threads)
        if needed is None:
            continue
        for cluster in reversed(list(taken)[-LOOKED_AT:]):
            members = graph.members[cluster]
            fits = taken[cluster] + needed <= MOST_THREADS and len(members) < MOST_PARTS
            if fits and not set(members) & set(graph.producers[n]) and graph.legal([*members, n]):
                graph.add(n, cluster)
                taken[cluster] += needed
                break
        else:
            taken[graph.new_cluster([n], "elementwise")] = needed


def _needed(op: ir.Operation, threads: dict[str, int | None]) -> int | None:
    """Threads of a launch that may be joined with others; None for all other operations."""
    if op.name != "mlc.launch" or "mlc.inout" in op.attributes or not len(op.results):
        return None
    if ir.StringAttr(op.attributes["mlc.placement"]).value != DEVICE:
        return None
    return threads[called_kernel(op)]


def _threads(source: KernelSource, target: NvidiaTarget) -> int | None:
    """Threads of an elementwise kernel, extents that only a run knows not counted; None for other kernels."""
    for op in reachable(source.results):
        is_plain = op.name.startswith(("linalg.", "tensor.", "arith.")) or op.name == "mlc.constant"
        if not is_plain or op.name == "linalg.generic" and (is_contraction(op) or is_reduction(op)):
            return None
    schedule = choose(source, target, "fp32") if source.results else {"template": ""}
    if schedule["template"] != "elementwise":
        return None
    type_ = source.results[0].type
    elements = prod(type_.get_dim_size(i) for i in range(type_.rank) if not type_.is_dynamic_dim(i))
    return -(-elements // int(schedule["lanes"]))
