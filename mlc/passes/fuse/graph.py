"""The data-flow graph of one block at the `linalg` phase, as the fusion planner sees it."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.evaluate import is_reduction, operand_map
from mlc.kernels.common.frame import defining_op

OPAQUE = {
    "mlc.sort", "mlc.topk", "mlc.scan", "mlc.nonzero", "mlc.unique", "mlc.nms", "mlc.scatter_elements",
    "mlc.scatter_nd", "mlc.random",
}  # fmt: skip
"""Roots that stay whole operations until their template expands them (docs/ir.md §4)."""

LEAVES = {"arith.constant", "tensor.empty", "linalg.fill", "mlc.constant"}
"""Cloned into each kernel that uses them (constants: splats only)."""


def captured(op: ir.Operation) -> list[ir.Value]:
    """Operands of `op` and the values that its regions take from outside."""
    values = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                for value in captured(inner.operation):
                    if not _inside(value, op):
                        values.append(value)
    return values


def _inside(value: ir.Value, op: ir.Operation) -> bool:
    owner: ir.Operation | None
    owner = value.owner.owner.operation if isinstance(value.owner, ir.Block) else value.owner.operation.parent
    while owner is not None:
        owner = owner.operation
        if owner == op:
            return True
        owner = owner.parent
    return False


def is_splat(op: ir.Operation) -> bool:
    """Is a constant the same everywhere (or no tensor at all)?"""
    if not isinstance(op.results[0].type, ir.RankedTensorType):
        return True
    value = op.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and value.is_splat


def is_elementwise(op: ir.Operation) -> bool:
    """A generic without reductions, or a slice that is read as a copy."""
    if op.name == "tensor.extract_slice":
        return op.operands[0].type.rank == op.results[0].type.rank
    return op.name == "linalg.generic" and not is_reduction(op)


def is_identity(op: ir.Operation, operand: int) -> bool:
    """Is the map of a generic's operand the identity over the iteration space?"""
    if op.name != "linalg.generic":
        return False
    exprs = list(operand_map(op, operand).results)
    rank = len(op.attributes["iterator_types"])
    return len(exprs) == rank and all(
        isinstance(e, ir.AffineDimExpr) and e.position == i for i, e in enumerate(exprs)
    )


def has_identity_output(op: ir.Operation) -> bool:
    """Are all output maps the identity over the parallel dimensions?"""
    if op.name == "tensor.extract_slice":
        return True
    count = len(op.operands) - len(op.results)
    return all(is_identity(op, count + i) for i in range(len(op.results)))


class BlockGraph:
    """Clusters over the operations of a block, with users, producers and reachability between clusters."""

    def __init__(self, block: ir.Block) -> None:
        self.ops = [o.operation for o in block.operations]
        self.order = {op: i for i, op in enumerate(self.ops)}
        self.producers: dict[ir.Operation, list[ir.Operation]] = {}
        self.users: dict[ir.Operation, list[ir.Operation]] = {op: [] for op in self.ops}
        for op in self.ops:
            inputs = []
            for value in captured(op):
                producer = defining_op(value)
                if producer is not None and producer in self.order:
                    inputs.append(producer)
            self.producers[op] = list(dict.fromkeys(inputs))
            for producer in self.producers[op]:
                self.users[producer].append(op)
        self.cluster: dict[ir.Operation, int] = {}
        self.members: dict[int, list[ir.Operation]] = {}
        self.kinds: dict[int, str] = {}
        self._next = 0

    def is_leaf(self, op: ir.Operation) -> bool:
        """Is `op` cloned into its users' kernels?"""
        return op.name in LEAVES and (op.name in ("tensor.empty", "linalg.fill") or is_splat(op))

    def new_cluster(self, ops: Iterable[ir.Operation], kind: str) -> int:
        """A cluster of `ops`; `kind` is `contraction`, `reduction`, `rows`, `elementwise` or `opaque`."""
        number = self._next
        self._next += 1
        self.members[number] = []
        self.kinds[number] = kind
        for op in ops:
            self.add(op, number)
        return number

    def add(self, op: ir.Operation, number: int) -> None:
        self.cluster[op] = number
        self.members[number].append(op)

    def merge(self, source: int, target: int) -> None:
        """Move all operations of cluster `source` to `target`."""
        for op in self.members.pop(source):
            self.add(op, target)
        del self.kinds[source]

    def _node(self, op: ir.Operation) -> list[ir.Operation]:
        number = self.cluster.get(op)
        return [op] if number is None else self.members[number]

    def reaches(self, sources: Iterable[ir.Operation], targets: Iterable[ir.Operation]) -> bool:
        """Is there a path from one of `sources` to one of `targets` through at least one operation outside `sources`?

        Clusters are walked as units, so that joining what this function separates can never make a cycle.
        """
        inside = set(sources)
        wanted = {member for t in targets for member in self._node(t)} - inside
        if not wanted:
            return False
        stack = [u for s in inside for u in self.users[s] if u not in inside]
        seen: set[ir.Operation] = set()
        while stack:
            op = stack.pop()
            if op in seen:
                continue
            for member in self._node(op):
                seen.add(member)
                if member in wanted:
                    return True
                stack.extend(u for u in self.users[member] if u not in seen)
        return False

    def external_producers(self, ops: Iterable[ir.Operation]) -> list[ir.Operation]:
        """Operations outside `ops` that feed them, leaves left out."""
        inside = set(ops)
        return [p for op in inside for p in self.producers[op] if p not in inside and not self.is_leaf(p)]

    def legal(self, ops: Iterable[ir.Operation]) -> bool:
        """May `ops` be one kernel: does no path leave and come back?"""
        group = list(ops)
        return not self.reaches(group, self.external_producers(group))


__all__ = ["OPAQUE", "BlockGraph", "captured", "has_identity_output", "is_contraction", "is_elementwise", "is_identity"]
