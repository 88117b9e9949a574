"""Move every cluster into a kernel module of its own and call it: the host keeps launches, views and sizes.

```mlir
%m = linalg.generic … ins(%x, %w) {mlc.cluster = 0}        %o = tensor.empty(%n) : tensor<?x64xf32>
%r = linalg.generic … ins(%m) {mlc.cluster = 0}        →   %r = mlc.launch @k0(%x, %w) outs(%o) : …
                                                           module @k0 attributes {mlc.kernel} { func.func @k0(…) … }
```
Obeys `mlc.cluster`. Leaves (constants, fills, empties) are cloned into every kernel that uses them.
"""

from __future__ import annotations

import heapq

from mlir import ir
from mlir.dialects import func, tensor

from mlc import _native
from mlc.dialects import mlc as m
from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.evaluate import is_reduction
from mlc.kernels.common.frame import defining_op
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import OPAQUE, BlockGraph, captured
from mlc.passes.fuse.plan_fusion import _blocks


class OutlineKernels(Pass):
    """Move every cluster into a kernel module of its own and call it."""

    name = "mlc-outline-kernels"
    anchor = "builtin.module"
    dialects = ("func", "tensor", "mlc")

    def run(self, module: ir.Operation) -> None:
        self.module_block = module.regions[0].blocks[0]
        taken = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in self.module_block.operations
            if "sym_name" in op.attributes
        }
        self.names = (name for i in range(1 << 30) if (name := f"k{i}") not in taken)
        for block in _blocks(module):
            self._block(block)

    def _block(self, block: ir.Block) -> None:
        graph = BlockGraph(block)
        for op in graph.ops:
            if "mlc.cluster" in op.attributes:
                number = ir.IntegerAttr(op.attributes["mlc.cluster"]).value
                if number not in graph.members:
                    graph.members[number], graph.kinds[number] = [], ""
                graph.add(op, number)
        if not graph.members:
            return
        terminator = graph.ops[-1]
        for node in _topological(graph):
            if isinstance(node, int):
                with ir.InsertionPoint(terminator):
                    self._outline(graph, graph.members[node])
            elif node != terminator:
                node.move_before(terminator)
        for op in reversed([o.operation for o in block.operations]):
            unused = not any(True for r in op.results for _ in r.uses)
            if op.name in ("tensor.empty", "linalg.fill") and unused:
                op.erase()

    def _outline(self, graph: BlockGraph, ops: list[ir.Operation]) -> None:
        ops = sorted(ops, key=lambda o: graph.order[o])
        inside = set(ops)
        outputs = [r for op in ops for r in op.results if _used_outside(r, inside)]
        if not outputs:  # dead code: nothing reads it
            for op in reversed(ops):
                op.erase()
            return
        inputs = _inputs(graph, ops)
        location = _root(ops).location
        with location:
            destinations = [_destination(r) for r in outputs]
            name = next(self.names)
            self._kernel(name, graph, ops, inputs, outputs)
            launch = m.LaunchOp(
                [r.type for r in outputs], ir.FlatSymbolRefAttr.get(name), inputs, destinations, loc=location
            )
        if _root(ops).name.startswith("mlc.scatter"):
            launch.operation.attributes["mlc.root"] = ir.StringAttr.get(_root(ops).name)
        for old, new in zip(outputs, launch.operation.results, strict=True):
            old.replace_all_uses_with(new)
        for op in reversed(ops):
            op.erase()

    def _kernel(
        self,
        name: str,
        graph: BlockGraph,
        ops: list[ir.Operation],
        inputs: list[ir.Value],
        outputs: list[ir.Value],
    ) -> None:
        """The kernel module: a function on tensors with the operations of the cluster."""
        attributes = {"sym_name": ir.StringAttr.get(name), "mlc.kernel": ir.UnitAttr.get()}
        with ir.InsertionPoint(self.module_block):
            module = ir.Operation.create("builtin.module", regions=1, attributes=attributes)
        body = module.regions[0].blocks.append()
        types = [v.type for v in inputs] + [v.type for v in outputs]
        with ir.InsertionPoint(body):
            function = func.FuncOp(name, ir.FunctionType.get(types, [v.type for v in outputs]))
        entry = function.add_entry_block()
        arguments = list(entry.arguments)
        mapping = dict(zip(inputs, arguments, strict=False))
        targets = dict(zip(outputs, arguments[len(inputs) :], strict=True))
        with ir.InsertionPoint(entry):
            for op in ops:
                _clone(op, mapping, targets, graph)
            func.ReturnOp([mapping[v] for v in outputs])


def _topological(graph: BlockGraph) -> list[ir.Operation | int]:
    """Operations and cluster numbers in an order that respects all uses and keeps program order where it can."""

    def node(op: ir.Operation) -> ir.Operation | int:
        return graph.cluster.get(op, op)

    def rank(n: ir.Operation | int) -> int:
        return max(graph.order[o] for o in graph.members[n]) if isinstance(n, int) else graph.order[n]

    waiting: dict[ir.Operation | int, set[ir.Operation | int]] = {}
    users: dict[ir.Operation | int, set[ir.Operation | int]] = {}
    effect: ir.Operation | None = None
    for op in graph.ops:
        me = node(op)
        producers = {node(p) for p in graph.producers[op]} - {me}
        if isinstance(me, ir.Operation) and _has_effect(op):
            if effect is not None:
                producers.add(effect)
            effect = me
        waiting.setdefault(me, set()).update(producers)
        for producer in producers:
            users.setdefault(producer, set()).add(me)
    ready = [(rank(n), i, n) for i, n in enumerate(waiting) if not waiting[n]]
    heapq.heapify(ready)
    count = len(ready)
    result: list[ir.Operation | int] = []
    while ready:
        _, _, current = heapq.heappop(ready)
        result.append(current)
        for user in users.get(current, ()):
            waiting[user].discard(current)
            if not waiting[user]:
                count += 1
                heapq.heappush(ready, (rank(user), count + len(waiting), user))
    if len(result) != len(waiting):
        raise ValueError("the clusters depend on each other in a circle")
    return result


def _has_effect(op: ir.Operation) -> bool:
    """Must `op` keep its place among the others of its kind?"""
    return op.name in ("mlc.check", "mlc.extern", "cf.assert", "func.call") or op.name.startswith("scf.")


def _used_outside(value: ir.Value, inside: set[ir.Operation]) -> bool:
    for use in value.uses:
        owner: ir.Operation | None = use.owner.operation
        while owner is not None and owner not in inside:
            parent = owner.parent
            owner = None if parent is None else parent.operation
        if owner is None:
            return True
    return False


def _inputs(graph: BlockGraph, ops: list[ir.Operation]) -> list[ir.Value]:
    """Values that the cluster takes from outside, tensors first; leaves are looked through."""
    inside = set(ops)
    seen: dict[ir.Value, None] = {}

    def visit(op: ir.Operation) -> None:
        for value in captured(op):
            producer = defining_op(value)
            if producer is not None and producer in inside:
                continue
            if producer is not None and graph.is_leaf(producer):
                visit(producer)
            else:
                seen[value] = None

    for op in ops:
        visit(op)
    tensors = [v for v in seen if isinstance(v.type, ir.RankedTensorType)]
    scalars = [v for v in seen if not isinstance(v.type, ir.RankedTensorType)]
    for value in scalars:
        if not isinstance(value.type, ir.IndexType):
            raise ValueError(f"a kernel cannot take a {value.type} from the host; {value}")
    return tensors + scalars


def _root(ops: list[ir.Operation]) -> ir.Operation:
    for test in (is_contraction, lambda o: o.name in OPAQUE, lambda o: o.name == "linalg.generic" and is_reduction(o)):
        for op in ops:
            if test(op):
                return op
    return ops[0]


def _clone(
    op: ir.Operation, mapping: dict[ir.Value, ir.Value], targets: dict[ir.Value, ir.Value], graph: BlockGraph
) -> None:
    """Clone `op` at the insertion point with its operands mapped; results in `targets` are written there."""
    for value in captured(op):
        producer = defining_op(value)
        if value not in mapping and producer is not None and graph.is_leaf(producer):
            _clone(producer, mapping, {}, graph)
    clone = op.clone()
    _remap(clone, mapping)
    for name in ("mlc.cluster", "mlc.inlined"):
        if name in clone.attributes:
            del clone.attributes[name]
    for number, (old, new) in enumerate(zip(op.results, clone.results, strict=True)):
        mapping[old] = new
        if old in targets and op.name.startswith("linalg."):
            _write_to(clone, len(clone.operands) - len(clone.results) + number, targets[old])


def _remap(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
    for i, value in enumerate(op.operands):
        if value in mapping:
            op.operands[i] = mapping[value]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _remap(inner.operation, mapping)


def _write_to(clone: ir.Operation, operand: int, target: ir.Value) -> None:
    """Let an output operand of a cloned linalg operation be the destination instead of an empty tensor."""
    producer = defining_op(clone.operands[operand])
    if producer is not None and producer.name == "tensor.empty":
        clone.operands[operand] = target
    elif producer is not None and producer.name == "linalg.fill":
        filled = producer.clone(ir.InsertionPoint(clone))
        filled.operands[1] = target
        clone.operands[operand] = filled.results[0]


def _destination(value: ir.Value) -> ir.Value:
    """A fresh tensor with the shape of `value`, a result of a cluster."""
    sizes = _sizes(value)
    return tensor.empty(sizes, value.type.element_type)


def _sizes(value: ir.Value) -> list[int | ir.Value]:
    type_ = value.type
    if type_.has_static_shape:
        return list(type_.shape)
    op = defining_op(value)
    assert op is not None
    if op.name == "tensor.empty":
        dynamic = iter(op.operands)
        return [next(dynamic) if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]
    if op.name.startswith("linalg."):
        return _sizes(op.operands[len(op.operands) - len(op.results) + ir.OpResult(value).result_number])
    if op.name == "tensor.extract_slice":
        segments = list(op.attributes["operandSegmentSizes"])
        dynamic = iter(list(op.operands)[1 + segments[1] : 1 + segments[1] + segments[2]])
        return [next(dynamic) if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]
    if op.name.startswith("mlc."):
        return _native.reify(op)[ir.OpResult(value).result_number]
    raise ValueError(f"no size for the result of {op.name}")
