"""Decide which operations become one kernel: `mlc.cluster` numbers on the operations of every block.

```mlir
%m = linalg.generic … {mlc.contraction}          →  {mlc.cluster = 0}
%r = linalg.generic … relu of %m                 →  {mlc.cluster = 0}   (epilogue)
%s = linalg.generic … sum over rows of %x        →  {mlc.cluster = 1}
```
Greedy and root-centred: attention, row and column patterns first, then in program order every elementwise operation
joins the kernel that computes what it reads (a contraction before a reduction before another elementwise one), and
producers with a single consumer join the kernel that reads them. The template of the kernel's root is asked before an
operation joins (`mlc/kernels/common/fusion.py`), and a join is legal when no path leaves the kernel and comes back.
What was refused is kept as `mlc.refused` on the cluster's first operation.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from mlc.kernels.accepts import Keeps, accepts_of, is_cpu, keeps_of
from mlc.kernels.common.fusion import Accepts, Dims, Role, is_expensive
from mlc.kernels.common.generics import is_identity, is_reduction
from mlc.kernels.common.padding import padding_of
from mlc.kernels.common.streamed import is_streamed
from mlc.passes.base import Pass
from mlc.passes.fuse.attention import Owns, find_attention, own_positions, owns_windows
from mlc.passes.fuse.graph import (
    OPAQUE,
    BlockGraph,
    Refusal,
    has_identity_output,
    host_blocks,
    inputs_of,
    is_contraction,
    is_elementwise,
    taken_inside,
)
from mlc.passes.fuse.rows import find_rows
from mlc.passes.fuse.widenings import find_widenings
from mlc.passes.host.nodes import node_name

_PREFERENCE = {"attention": 0, "contraction": 0, "rows": 1, "columns": 1, "reduction": 2, "elementwise": 3}
_LINES = ("rows", "columns")  # kernels of reductions and of what reads them over all of their domain


class PlanFusion(Pass):
    """Decide which operations become one kernel."""

    target: str = "cpu"
    "Whose templates: cpu, cuda (Hopper's), cuda-mma (other chips'), -tf32 where f32 is rounded"
    fuse_padding: bool = True
    "Let contractions read tensors that are padded on the way"

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        accepts = accepts_of(self.target)
        first = 0
        for block in host_blocks(module):
            if self.fuse_padding:
                _duplicate(block, accepts["contraction"])
            on_gpu = not is_cpu(self.target)
            own_positions(block, accepts["attention"], _owns(on_gpu))
            graph = BlockGraph(block)
            _Planner(graph, accepts, self.fuse_padding, keeps_of(self.target), positions=on_gpu).plan()
            first += _write(graph, first)


def _owns(on_gpu: bool) -> Owns:
    return (lambda _: True) if on_gpu else owns_windows


def _write(graph: BlockGraph, first: int) -> int:
    """Put the plan onto the operations; gives the number of clusters."""
    i64 = ir.IntegerType.get_signless(64)
    for i, cluster in enumerate(sorted(graph.members)):
        for n in graph.members[cluster]:
            graph.ops[n].attributes["mlc.cluster"] = ir.IntegerAttr.get(i64, first + i)
        refusals = graph.refusals.get(cluster)
        if refusals:
            entries = [
                ir.DictAttr.get({name: ir.StringAttr.get(getattr(r, name)) for name in ("role", "node", "reason")})
                for r in refusals
            ]
            graph.ops[min(graph.members[cluster])].attributes["mlc.refused"] = ir.ArrayAttr.get(entries)
    return len(graph.members)


def _duplicate(block: ir.Block, accepts: Accepts) -> None:
    """Give every contraction that shares a padded tensor with others one of its own, if all of them take it, and so
    with operands that are computed where they are read."""
    for view in list(block.operations):
        op = view.operation
        if padding_of(op) is None and not is_streamed(op):
            continue
        uses = [(u.owner.operation, u.operand_number) for u in op.results[0].uses]
        if len(uses) < 2 or not all(is_contraction(user) and user.block == block for user, _ in uses):
            continue
        if any(accepts("producer", op, Dims(user, user, number)) is not None for user, number in uses):
            continue
        for user, number in uses[:-1]:  # uses are listed last first
            user.operands[number] = op.clone(ir.InsertionPoint(user)).results[0]


class _Planner:
    """Puts every tensor operation of a block into a cluster."""

    def __init__(
        self,
        graph: BlockGraph,
        accepts: Mapping[str, Accepts],
        fuse_padding: bool,
        keeps: Keeps | None,
        *,
        positions: bool,
    ) -> None:
        self.graph = graph
        self.keeps = keeps
        self.positions = positions
        self.accepts = accepts
        self.fuse_padding = fuse_padding
        self.roots: dict[int, int] = {}

    def plan(self) -> None:
        graph = self.graph
        attentions, refused = find_attention(graph, self.accepts["attention"], _owns(self.positions))
        self.roots.update(attentions)
        find_rows(graph, self.keeps)
        if self.positions:
            for cluster in [c for c, kind in graph.kinds.items() if kind in _LINES]:
                self._absorb_functions(cluster)
        for n, op in enumerate(graph.ops):
            if n in graph.cluster:
                continue
            if op.name in OPAQUE:
                graph.new_cluster([n], "opaque")
            elif is_contraction(op):
                self._inline_producers(n, self._root(n, "contraction"))
            elif op.name == "linalg.generic" and is_reduction(op):
                self._inline_producers(n, self._root(n, "reduction"))
            elif is_elementwise(op):
                self._place_elementwise(n)
            elif op.name == "linalg.fill" and any(self._needs_memory(u) for u in graph.users[n]):
                graph.new_cluster([n], "elementwise")
        for cluster in [c for c, kind in graph.kinds.items() if kind not in (*_LINES, "attention")]:
            self._part_ranks(cluster)
        for cluster in [c for c, kind in graph.kinds.items() if kind in _LINES]:
            self._lengthen_rows(cluster)
        if not self.positions:  # GPUs take no functions of other tensors behind a contraction
            for chain, cluster in find_widenings(graph):
                self._move(chain, cluster)
        for cluster in attentions:
            for n in [m for m in graph.members[cluster] if is_contraction(graph.ops[m])]:
                self._inline_producers(n, cluster)
        for n, refusal in refused.items():
            graph.refuse(graph.cluster[n], refusal)

    def _part_ranks(self, cluster: int) -> None:
        """Give results with a dimension of one element more or less than the root's a kernel of their own, where other
        readers want the root's: the results of one kernel have one domain."""
        graph, members = self.graph, sorted(self.graph.members[cluster])
        root = self.roots.get(cluster, members[0])
        escaping = [n for n in members if any(u not in members for u in graph.users[n])]
        if len({_result_rank(graph.ops[n]) for n in escaping}) < 2:
            return
        behind, apart, rank = {root}, set[int](), _result_rank(graph.ops[root])
        for n in members:
            if behind.intersection(graph.producers[n]):
                behind.add(n)
                if _result_rank(graph.ops[n]) != rank or apart.intersection(graph.producers[n]):
                    apart.add(n)
        if not apart:
            return
        other = graph.new_cluster([], "elementwise")
        self.roots[other] = min(apart)
        for n in reversed(members):
            if n not in apart and n != root and graph.users[n] and apart.issuperset(graph.users[n]):
                apart.add(n)  # which is computed for them only
        for n in sorted(apart):
            graph.remove(n)
            graph.add(n, other)
        self._part_ranks(other)

    def _root(self, n: int, kind: str) -> int:
        cluster = self.graph.new_cluster([n], kind)
        self.roots[cluster] = n
        return cluster

    def _needs_memory(self, user: int) -> bool:
        """Does `user` want the filled tensor itself?"""
        return user not in self.graph.cluster and self.graph.ops[user].name != "linalg.generic"

    def _ask(self, cluster: int, role: Role, n: int, reader: int, operand: int, *, behind: bool = False) -> bool:
        """Does the template of `cluster` take operation `n`? A refusal is kept. `behind`: see `Dims`."""
        graph = self.graph
        root = graph.ops[self.roots.get(cluster, min(graph.members[cluster]))]
        op = graph.ops[n]
        reason = self.accepts[graph.kinds[cluster]](role, op, Dims(root, graph.ops[reader], operand, behind=behind))
        if reason is not None:
            self._refuse(cluster, role, n, reason)
        return reason is None

    def _refuse(self, cluster: int, role: Role, n: int, reason: str) -> None:
        self.graph.refuse(cluster, Refusal(role, node_name(self.graph.ops[n].location), reason))

    # -- consumers --------------------------------------------------------------------------------------------------

    def _place_elementwise(self, n: int) -> None:
        """Join the best producer's cluster, or start a new one; then inline single-use producers."""
        graph, joined = self.graph, None
        for cluster, operand in self._read_clusters(n):
            if not has_identity_output(graph.ops[n]):
                self._refuse(cluster, "consumer", n, "its own result is written in another order")
            elif not self._takes_consumer(cluster, n, operand):
                continue
            elif graph.legal([*graph.members[cluster], n]):
                graph.add(n, cluster)
                joined = cluster
                break
            else:
                self._refuse(cluster, "consumer", n, "it also reads what another kernel makes of the result")
        if joined is None:
            joined = self._root(n, "elementwise")
        self._inline_producers(n, joined)

    def _takes_consumer(self, cluster: int, n: int, operand: int) -> bool:
        """Does the template of `cluster` take operation `n`, which reads its results: as this operand, and as others?
        What is elementwise is computed again wherever it is read."""
        graph, op = self.graph, self.graph.ops[n]
        if graph.kinds[cluster] == "elementwise":
            return self._ask(cluster, "consumer", n, n, operand)
        own = {value for m in graph.members[cluster] for value in graph.ops[m].results}
        if any(value in own for value in taken_inside(op)):
            self._refuse(cluster, "consumer", n, "it reads the result at another point than its own")
            return False
        read = [operand, *(i for i, value in enumerate(inputs_of(op)) if value in own and i != operand)]
        return all(self._ask(cluster, "consumer", n, n, i) for i in read)

    def _read_clusters(self, n: int) -> list[tuple[int, int]]:
        """Clusters with a result that operation `n` reads, and the operand; the best first."""
        graph, op = self.graph, self.graph.ops[n]
        found: dict[int, int] = {}
        for i, value in enumerate(inputs_of(op)):
            producer = graph.producer(value)
            if producer is None or producer not in graph.cluster:
                continue
            cluster = graph.cluster[producer]
            if graph.kinds[cluster] not in _PREFERENCE or not self._is_domain_level(producer):
                continue
            if cluster not in found or is_identity(op, i) and not is_identity(op, found[cluster]):
                found[cluster] = i
        return sorted(found.items(), key=lambda item: _PREFERENCE[graph.kinds[item[0]]])

    def _is_domain_level(self, n: int) -> bool:
        """Is the result over its kernel's domain, rather than an inlined producer's with another shape or order?"""
        graph = self.graph
        if n in graph.inlined:
            return False
        escapes = any(graph.cluster.get(u) != graph.cluster[n] for u in graph.users[n])
        return graph.kinds[graph.cluster[n]] not in _LINES or escapes

    # -- producers --------------------------------------------------------------------------------------------------

    def _inline_producers(self, n: int, cluster: int) -> None:
        """Merge elementwise clusters whose only consumer is operation `n`, where the template takes them."""
        graph, op = self.graph, self.graph.ops[n]
        for i, value in enumerate(inputs_of(op)):
            producer = graph.producer(value)
            if producer is None or producer not in graph.cluster:
                continue
            other = graph.cluster[producer]
            if other == cluster or graph.kinds[other] != "elementwise":
                continue
            members = graph.members[other]
            if any(u != n and u not in members for m in members for u in graph.users[m]):
                self._refuse(cluster, "producer", producer, "other kernels read its result too")
                continue
            if not self.fuse_padding and is_contraction(op) and padding_of(graph.ops[producer]) is not None:
                self._refuse(cluster, "producer", producer, "padding on the way is switched off")
                continue
            readers, behind = {n, *members}, self._is_behind(n, cluster)
            if not all(self._ask(cluster, "producer", m, *self._reader(m, readers), behind=behind) for m in members):
                continue
            if not graph.legal([*members, *graph.members[cluster]]):
                self._refuse(cluster, "producer", producer, "the kernel also feeds what it reads")
                continue
            if not is_identity(op, i) or is_reduction(op):
                graph.inlined.update(members)
            graph.merge(other, cluster)

    def _is_behind(self, n: int, cluster: int) -> bool:
        """Is operation `n` computed from the result of its cluster's root?"""
        graph, work, seen = self.graph, [self.roots.get(cluster, n)], set[int]()
        while work:
            new = [u for u in graph.users[work.pop()] if graph.cluster.get(u) == cluster and u not in seen]
            seen.update(new)
            work.extend(new)
        return n in seen

    def _move(self, chain: list[int], cluster: int) -> None:
        """Let `cluster`, which alone reads the last one of the operations `chain`, compute them, if its template does
        that once for an element."""
        if self.graph.kinds[cluster] in (*_LINES, "opaque"):
            return
        graph, readers = self.graph, {*chain, *self.graph.users[chain[-1]]}
        behind = all(self._is_behind(u, cluster) for u in graph.users[chain[-1]])
        for n in chain:
            if not self._ask(cluster, "producer", n, *self._reader(n, readers), behind=behind):
                return
        for n in chain:
            graph.remove(n)
            graph.add(n, cluster)

    def _absorb_functions(self, cluster: int) -> None:
        """Take in cheap functions of one tensor of no larger elements that the row kernel alone reads: rows read that
        tensor instead, and its producer writes no other. GPUs, whose rows stay in registers, compute them once."""
        graph = self.graph
        for n in range(max(graph.members[cluster]), -1, -1):
            op = graph.ops[n]
            if n in graph.cluster or op.name != "linalg.generic" or not _is_function(op):
                continue
            users = graph.users[n]
            if not users or any(graph.cluster.get(u) != cluster for u in users):
                continue
            if self._ask(cluster, "producer", n, *self._reader(n, set(users))):
                graph.add(n, cluster)

    def _lengthen_rows(self, cluster: int) -> None:
        """Take in the elementwise kernels that compute what a row kernel reads, whoever else reads it too."""
        graph = self.graph
        work = list(graph.members[cluster])
        while work:
            n = work.pop()
            for i, value in enumerate(inputs_of(graph.ops[n])):
                producer = graph.producer(value)
                other = None if producer is None else graph.cluster.get(producer)
                if producer is None or other is None or other == cluster or graph.kinds[other] != "elementwise":
                    continue
                members = list(graph.members[other])
                readers = {n, *members}
                if not is_identity(graph.ops[n], i) or not self._is_domain_level(producer):
                    self._refuse(cluster, "producer", producer, "its elements are not read along the rows")
                elif not all(self._accepts_part(cluster, m, readers) for m in members):
                    continue
                elif not graph.legal([*members, *graph.members[cluster]]):
                    self._refuse(cluster, "producer", producer, "the kernel also feeds what it reads")
                else:
                    graph.merge(other, cluster)
                    work.extend(members)

    def _accepts_part(self, cluster: int, n: int, readers: set[int]) -> bool:
        """Does the template take operation `n` of a kernel that is to join: asked, unless it is inlined in there?"""
        if n in self.graph.inlined and not is_expensive(self.graph.ops[n]):
            return True
        if not any(u in readers for u in self.graph.users[n]):
            return True  # another result, at the points of the domain
        return self._ask(cluster, "producer", n, *self._reader(n, readers))

    def _reader(self, n: int, among: set[int]) -> tuple[int, int]:
        """A user of operation `n` among `among`, and its operand; -1 when its body reads the result."""
        results = list(self.graph.ops[n].results)
        user = min(u for u in self.graph.users[n] if u in among)
        numbers = [i for i, v in enumerate(inputs_of(self.graph.ops[user])) if v in results]
        return user, numbers[0] if numbers else -1


def _result_rank(op: ir.Operation) -> int:
    return int(op.results[0].type.rank)


def _is_function(op: ir.Operation) -> bool:
    """Does a generic compute its elements from those of one tensor, of no larger type, at the same points?"""
    inputs, result = inputs_of(op), op.results[0].type
    if is_reduction(op) or len(op.results) != 1 or len(set(inputs)) != 1 or inputs[0].type.shape != result.shape:
        return False
    if is_expensive(op) or not all(is_identity(op, i) for i in range(len(op.operands))):
        return False
    read, made = inputs[0].type.element_type, result.element_type
    return hasattr(read, "width") and hasattr(made, "width") and bool(read.width <= made.width)
