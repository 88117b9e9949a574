"""The data-flow graph of one block at the `linalg` phase, as the fusion planner sees it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.blocks import ancestor_in, blocks_of
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_identity, is_reduction

OPAQUE = {
    "mlc.sort", "mlc.topk", "mlc.scan", "mlc.nonzero", "mlc.suppress", "mlc.scatter_elements",
    "mlc.scatter_nd", "mlc.insert", "mlc.recurrence",
}  # fmt: skip
"""Roots that stay whole operations until their template expands them (docs/ir.md §4)."""

LEAVES = {"arith.constant", "tensor.empty", "linalg.fill", "mlc.constant"}
"""Cloned into each kernel that uses them (constants: splats only)."""

_WHOLE = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast", "tensor.reshape")  # views of all elements
_VIEWS = (*_WHOLE, "tensor.extract_slice")


def host_blocks(op: ir.Operation) -> list[ir.Block]:
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
                blocks.extend(host_blocks(inner_op))
    return blocks


def captured(op: ir.Operation) -> list[ir.Value]:
    """Operands of `op` and the values that its regions take from outside."""
    return [*op.operands, *taken_inside(op)]


def taken_inside(op: ir.Operation) -> list[ir.Value]:
    """The values that the regions of `op` take from outside."""
    used: list[ir.Value] = []
    made: set[ir.Value] = set()
    _look_inside(op, used, made)
    return [value for value in used if value not in made]


def _look_inside(op: ir.Operation, used: list[ir.Value], made: set[ir.Value]) -> None:
    """Collects what the regions of `op` use, and what they define."""
    for block in blocks_of(op):
        made.update(block.arguments)
        for view in block.operations:
            inner = view.operation
            used.extend(inner.operands)
            made.update(inner.results)
            _look_inside(inner, used, made)


def inputs_of(op: ir.Operation) -> list[ir.Value]:
    """The tensors that a generic or a slice reads as operands."""
    if op.name == "tensor.extract_slice":
        return [op.operands[0]]
    return list(op.operands)[: len(op.operands) - len(op.results)]


def whole_of(value: ir.Value) -> ir.Value:
    """What `value` is a view of all elements of."""
    while (op := defining_op(value)) is not None and op.name in _WHOLE:
        value = op.operands[0]
    return value


def readers_through_views(value: ir.Value) -> Iterator[ir.Operation]:
    """Who uses `value` or a view of it, once for every use."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in _VIEWS and user.operands[0] == value:
            yield from readers_through_views(user.results[0])
        else:
            yield user


def is_splat(op: ir.Operation) -> bool:
    """Is a constant the same everywhere (or no tensor at all)?"""
    if not isinstance(op.results[0].type, ir.RankedTensorType):
        return True
    value = op.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and value.is_splat


def _is_scalar_arithmetic(op: ir.Operation) -> bool:
    """Arithmetic with a result that is no size: kernels take sizes, and compute such values from them."""
    plain = not any(isinstance(r.type, ir.RankedTensorType | ir.IndexType) for r in op.results)
    return op.name.startswith("arith.") and plain


def is_elementwise(op: ir.Operation) -> bool:
    """A generic without reductions, or a slice that is read as a copy."""
    if op.name == "tensor.extract_slice":
        return op.operands[0].type.rank == op.results[0].type.rank
    return op.name == "linalg.generic" and not is_reduction(op)


def has_identity_output(op: ir.Operation) -> bool:
    """Are all output maps the identity over the parallel dimensions?"""
    if op.name == "tensor.extract_slice":
        return True
    count = len(op.operands) - len(op.results)
    return all(is_identity(op, count + i) for i in range(len(op.results)))


def is_leaf(op: ir.Operation) -> bool:
    """Is `op`, of this block or one around it, cloned into the kernels that use it?"""
    if op.name in LEAVES:
        return op.name in ("tensor.empty", "linalg.fill") or is_splat(op)
    return _is_scalar_arithmetic(op)


def leaf_of(value: ir.Value) -> ir.Operation | None:
    """The leaf that defines `value`, if one does."""
    op = defining_op(value)
    return op if op is not None and is_leaf(op) else None


@dataclass(frozen=True)
class Refusal:
    """An operation that stayed outside of a kernel: its role, its node, and the reason."""

    role: str
    node: str
    reason: str


class BlockGraph:
    """Clusters over the operations of a block, with users, producers and reachability between clusters.

    Operations are named by their position in `ops` at the time the graph was made: an `ir.Operation`'s hash changes
    when its operands do.
    """

    def __init__(self, block: ir.Block) -> None:
        self.ops = [o.operation for o in block.operations]
        self._defined = {r: n for n, op in enumerate(self.ops) for r in op.results}
        self.producers: list[list[int]] = []
        self.users: list[list[int]] = [[] for _ in self.ops]
        for n, op in enumerate(self.ops):
            inputs = [p for v in captured(op) if (p := self._defined.get(v)) is not None]
            self.producers.append(list(dict.fromkeys(inputs)))
            for producer in self.producers[n]:
                self.users[producer].append(n)
        self._order_overwriting()
        self._order_effects()
        self.cluster: dict[int, int] = {}
        self.members: dict[int, list[int]] = {}
        self.kinds: dict[int, str] = {}
        self.inlined: set[int] = set()  # operations whose results are not over their kernel's domain
        self.refusals: dict[int, list[Refusal]] = {}
        self._next = 0

    def _order_overwriting(self) -> None:
        """A launch that writes over what one of its operands holds comes behind all that read it before."""
        numbers = {op: n for n, op in enumerate(self.ops)}
        for n, op in enumerate(self.ops):
            if "mlc.in_place" not in op.attributes:
                continue
            first = len(op.operands) - len(op.results)
            for number in ir.DenseI64ArrayAttr(op.attributes["mlc.inout"]):
                for reader in readers_through_views(whole_of(op.operands[first + number])):
                    before = numbers.get(ancestor_in(op.block, reader), n)
                    if before < n:
                        self._follow(before, n)

    def _order_effects(self) -> None:
        """What has effects keeps its place among others that have: joining around it must know."""
        effects = [n for n, op in enumerate(self.ops) if _has_effect(op)]
        for before, n in zip(effects, effects[1:], strict=False):
            self._follow(before, n)

    def _follow(self, before: int, n: int) -> None:
        """Operation `n` comes behind `before`."""
        if before not in self.producers[n]:
            self.producers[n].append(before)
            self.users[before].append(n)

    def producer(self, value: ir.Value) -> int | None:
        """The operation of the block that defines `value`."""
        return self._defined.get(value)

    def is_leaf(self, n: int) -> bool:
        """Is operation `n` cloned into its users' kernels?"""
        return is_leaf(self.ops[n])

    def new_cluster(self, ops: Iterable[int], kind: str) -> int:
        """A cluster of `ops`; `kind` is `attention`, `contraction`, `reduction`, `rows`, `columns`, `elementwise` or
        `opaque`."""
        number = self._next
        self._next += 1
        self.members[number] = []
        self.kinds[number] = kind
        for n in ops:
            self.add(n, number)
        return number

    def add(self, n: int, number: int) -> None:
        self.cluster[n] = number
        self.members[number].append(n)

    def remove(self, n: int) -> None:
        """Take operation `n` out of its cluster, which has others."""
        self.members[self.cluster.pop(n)].remove(n)

    def merge(self, source: int, target: int) -> None:
        """Move all operations of cluster `source` to `target`."""
        for n in self.members.pop(source):
            self.add(n, target)
        del self.kinds[source]
        for refusal in self.refusals.pop(source, []):
            self.refuse(target, refusal)

    def refuse(self, number: int, refusal: Refusal) -> None:
        """Keep for the report why an operation is not in cluster `number`."""
        kept = self.refusals.setdefault(number, [])
        if refusal not in kept:
            kept.append(refusal)

    def _node(self, n: int) -> list[int]:
        number = self.cluster.get(n)
        return [n] if number is None else self.members[number]

    def reaches(self, sources: Iterable[int], targets: Iterable[int]) -> bool:
        """Is there a path from one of `sources` to one of `targets` through at least one operation outside `sources`?

        Clusters are walked as units, so that joining what this function separates can never make a cycle.
        """
        inside = set(sources)
        wanted = {member for t in targets for member in self._node(t)} - inside
        if not wanted:
            return False
        last = max(wanted)
        stack = [u for s in inside for u in self.users[s] if u not in inside]
        seen: set[int] = set()
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            for member in self._node(n):
                seen.add(member)
                if member in wanted:
                    return True
                stack.extend(u for u in self.users[member] if u not in seen and (u <= last or u in self.cluster))
        return False

    def external_producers(self, ops: Iterable[int]) -> list[int]:
        """Operations outside `ops` that feed them, leaves left out."""
        inside = set(ops)
        return [p for n in sorted(inside) for p in self.producers[n] if p not in inside and not self.is_leaf(p)]

    def legal(self, ops: Iterable[int]) -> bool:
        """May `ops` be one kernel: does no path leave and come back?"""
        group = list(ops)
        return not self.reaches(group, self.external_producers(group))


def topological(graph: BlockGraph) -> list[tuple[bool, int]]:
    """(is a cluster, its number or the operation's) in an order that respects all uses and keeps program order where
    it can."""

    def node(n: int) -> tuple[bool, int]:
        cluster = graph.cluster.get(n)
        return (False, n) if cluster is None else (True, cluster)

    def rank(key: tuple[bool, int]) -> int:
        return max(graph.members[key[1]]) if key[0] else key[1]

    waiting: dict[tuple[bool, int], set[tuple[bool, int]]] = {}
    users: dict[tuple[bool, int], list[tuple[bool, int]]] = {}
    for n in range(len(graph.ops)):
        me = node(n)
        producers = {node(p) for p in graph.producers[n]} - {me}
        waiting.setdefault(me, set()).update(producers)
        for producer in producers:
            users.setdefault(producer, []).append(me)
    ready = [(rank(n), n) for n in waiting if not waiting[n]]
    heapq.heapify(ready)
    result: list[tuple[bool, int]] = []
    while ready:
        _, current = heapq.heappop(ready)
        result.append(current)
        for user in users.get(current, ()):
            if current in waiting[user]:
                waiting[user].discard(current)
                if not waiting[user]:
                    heapq.heappush(ready, (rank(user), user))
    if len(result) != len(waiting):
        raise ValueError("the clusters depend on each other in a circle")
    return result


def _has_effect(op: ir.Operation) -> bool:
    """Must `op` keep its place among the others of its kind?"""
    return op.name in ("mlc.check", "mlc.extern", "cf.assert", "func.call") or op.name.startswith("scf.")


__all__ = [
    "OPAQUE",
    "BlockGraph",
    "Refusal",
    "captured",
    "has_identity_output",
    "host_blocks",
    "inputs_of",
    "is_contraction",
    "is_elementwise",
    "topological",
]
