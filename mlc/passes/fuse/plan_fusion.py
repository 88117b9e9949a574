"""Decide which operations become one kernel: `mlc.cluster` numbers on the operations of every block.

```mlir
%m = linalg.generic … {mlc.contraction}          →  {mlc.cluster = 0}
%r = linalg.generic … relu of %m                 →  {mlc.cluster = 0}   (epilogue)
%s = linalg.generic … sum over rows of %x        →  {mlc.cluster = 1}
```
Greedy and root-centred: row patterns first, then in program order every elementwise operation joins the kernel that
computes what it reads at the same point (a contraction before a reduction before another elementwise one), and
elementwise producers with a single consumer are inlined into reductions and elementwise kernels. A join is legal when
no path leaves the kernel and comes back.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.evaluate import is_reduction, operand_map
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import (
    OPAQUE,
    BlockGraph,
    has_identity_output,
    is_contraction,
    is_elementwise,
    is_identity,
)
from mlc.passes.fuse.rows import find_rows

_PREFERENCE = {"contraction": 0, "rows": 1, "reduction": 2, "elementwise": 3}


class PlanFusion(Pass):
    """Decide which operations become one kernel."""

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        i64 = ir.IntegerType.get_signless(64)
        first = 0
        for block in _blocks(module):
            graph = BlockGraph(block)
            plan(graph)
            numbers = {c: first + i for i, c in enumerate(sorted(graph.members))}
            for n, cluster in graph.cluster.items():
                graph.ops[n].attributes["mlc.cluster"] = ir.IntegerAttr.get(i64, numbers[cluster])
            first += len(numbers)


def _blocks(op: ir.Operation) -> list[ir.Block]:
    """Blocks of host code: functions and control flow, but not the bodies of generics or kernels."""
    blocks = []
    for region in op.regions:
        for block in region.blocks:
            if op.name != "builtin.module":
                blocks.append(block)
            for inner in block.operations:
                inner_op = inner.operation
                if inner_op.name.startswith("linalg.") or "mlc.kernel" in inner_op.attributes:
                    continue
                blocks.extend(_blocks(inner_op))
    return blocks


def plan(graph: BlockGraph) -> None:
    """Put every tensor operation of the block into a cluster."""
    find_rows(graph)
    for n, op in enumerate(graph.ops):
        if n in graph.cluster:
            continue
        if op.name in OPAQUE:
            graph.new_cluster([n], "opaque")
        elif is_contraction(op):
            graph.new_cluster([n], "contraction")
        elif op.name == "linalg.generic" and is_reduction(op):
            cluster = graph.new_cluster([n], "reduction")
            _inline_producers(graph, n, cluster)
        elif is_elementwise(op):
            _place_elementwise(graph, n)
        elif op.name == "linalg.fill" and any(_needs_memory(graph, u) for u in graph.users[n]):
            graph.new_cluster([n], "elementwise")


def _needs_memory(graph: BlockGraph, user: int) -> bool:
    """Does `user` want the filled tensor itself?"""
    return user not in graph.cluster and graph.ops[user].name != "linalg.generic"


def _place_elementwise(graph: BlockGraph, n: int) -> None:
    """Join the best producer's cluster, or start a new one; then inline single-use producers."""
    joined = None
    if has_identity_output(graph.ops[n]):
        for cluster in sorted(_same_point_clusters(graph, n), key=lambda c: _PREFERENCE[graph.kinds[c]]):
            if graph.legal([*graph.members[cluster], n]):
                graph.add(n, cluster)
                joined = cluster
                break
    if joined is None:
        joined = graph.new_cluster([n], "elementwise")
    _inline_producers(graph, n, joined)


def _same_point_clusters(graph: BlockGraph, n: int) -> list[int]:
    """Clusters with a result that operation `n` reads at its own iteration point."""
    found: list[int] = []
    op = graph.ops[n]
    for i, value in enumerate(list(op.operands)[: len(op.operands) - len(op.results)]):
        producer = graph.producer(value)
        if producer is None or producer not in graph.cluster or not is_identity(op, i):
            continue
        cluster = graph.cluster[producer]
        if graph.kinds[cluster] in _PREFERENCE and cluster not in found and _is_domain_level(graph, producer):
            found.append(cluster)
    return found


def _is_domain_level(graph: BlockGraph, n: int) -> bool:
    """Is the result over the domain of its kernel, rather than an inlined producer's with another shape or order?"""
    if n in graph.inlined:
        return False
    return graph.kinds[graph.cluster[n]] != "rows" or _escapes(graph, n)


def _escapes(graph: BlockGraph, n: int) -> bool:
    return any(graph.cluster.get(u) != graph.cluster[n] for u in graph.users[n])


def _inline_producers(graph: BlockGraph, n: int, cluster: int) -> None:
    """Merge elementwise clusters whose only consumer is operation `n` and that it reads element by element."""
    op = graph.ops[n]
    for i, value in enumerate(list(op.operands)[: len(op.operands) - len(op.results)]):
        producer = graph.producer(value)
        if producer is None or producer not in graph.cluster:
            continue
        other = graph.cluster[producer]
        if other == cluster or graph.kinds[other] != "elementwise" or not _reads_each_once(op, i):
            continue
        members = graph.members[other]
        if any(u != n and u not in members for m in members for u in graph.users[m]):
            continue
        if not graph.legal([*members, *graph.members[cluster]]):
            continue
        if not is_identity(op, i) or is_reduction(op):
            graph.inlined.update(members)
        graph.merge(other, cluster)


def _reads_each_once(op: ir.Operation, operand: int) -> bool:
    """Does `op` read every element of the operand once: is its map a permutation of the iteration space?"""
    if op.name != "linalg.generic":
        return False
    exprs = list(operand_map(op, operand).results)
    positions = [e.position for e in exprs if isinstance(e, ir.AffineDimExpr)]
    return len(exprs) == len(positions) == len(op.attributes["iterator_types"])
