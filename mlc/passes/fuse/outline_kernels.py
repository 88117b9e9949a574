"""Move every cluster into a kernel module of its own and call it: the host keeps launches, views and sizes.

```mlir
%m = linalg.generic … ins(%x, %w) {mlc.cluster = 0}        %o = tensor.empty(%n) : tensor<?x64xf32>
%r = linalg.generic … ins(%m) {mlc.cluster = 0}        →   %r = mlc.launch @k0(%x, %w) outs(%o) : …
                                                           module @k0 attributes {mlc.kernel} { func.func @k0(…) … }
```
Obeys `mlc.cluster`; `mlc.refused` moves to the launch. A scatter into what a loop carries, and what nothing else reads,
gets it as its destination: `mlc.inout` and `mlc.overwrite`. Leaves (constants, fills, empties) are cloned into every
kernel that uses them.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, func, tensor

from mlc import _native
from mlc.dialects import mlc as m
from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.clone import remap
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_reduction
from mlc.kernels.common.padding import limits_of, padding_of
from mlc.passes.adaptor import readers
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import OPAQUE, BlockGraph, captured, host_blocks, leaf_of, topological


class OutlineKernels(Pass):
    """Move every cluster into a kernel module of its own and call it."""

    dialects = ("arith", "func", "tensor", "mlc")

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        self.module_block = module.regions[0].blocks[0]
        taken = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in self.module_block.operations
            if "sym_name" in op.attributes
        }
        self.names = (name for i in range(1 << 30) if (name := f"k{i}") not in taken)
        for block in host_blocks(module):
            self._block(block)

    def _block(self, block: ir.Block) -> None:
        graph = BlockGraph(block)
        for n, op in enumerate(graph.ops):
            if "mlc.cluster" in op.attributes:
                number = ir.IntegerAttr(op.attributes["mlc.cluster"]).value
                if number not in graph.members:
                    graph.members[number], graph.kinds[number] = [], ""
                graph.add(n, number)
        if not graph.members:
            return
        terminator = graph.ops[-1]
        # Clustered operations are erased last: new ones must not get their addresses while the graph is in use.
        for is_cluster, node in topological(graph):
            if is_cluster:
                for n in sorted(graph.members[node]):
                    graph.ops[n].move_before(terminator)
                with ir.InsertionPoint(terminator):
                    self._outline(graph, sorted(graph.members[node]))
            elif node != len(graph.ops) - 1:
                graph.ops[node].move_before(terminator)
        for n in sorted(graph.cluster, reverse=True):
            graph.ops[n].erase()
        for op in reversed([o.operation for o in block.operations]):
            unused = not any(True for r in op.results for _ in r.uses)
            if op.name in ("tensor.empty", "linalg.fill") and unused:
                op.erase()

    def _outline(self, graph: BlockGraph, numbers: list[int]) -> None:
        inside = set(numbers)
        ops = [graph.ops[n] for n in numbers]
        outputs = [r for n in numbers if _escapes(graph, n, inside) for r in _escaping(graph, n, inside)]
        if outputs and ops[0].name in OPAQUE:
            outputs = list(ops[0].results)  # their templates use every destination
        if not outputs:  # dead code: nothing reads it
            return
        updated = _updated_in_place(ops[0])
        inputs = [v for v in _inputs(graph, numbers) if updated is None or v != updated]
        with _root(ops).location:
            destinations = [_destination(r) for r in outputs] if updated is None else [updated]
            name = next(self.names)
            used = self._kernel(name, ops, inputs, outputs, updated)
            results = m.launch(name, [_passed(v) for v in used], destinations)
            if updated is not None:
                results[0].owner.attributes["mlc.inout"] = ir.DenseI64ArrayAttr.get([0])
                results[0].owner.attributes["mlc.overwrite"] = ir.UnitAttr.get()
            for op in ops:
                if "mlc.refused" in op.attributes:
                    results[0].owner.attributes["mlc.refused"] = op.attributes["mlc.refused"]
        for old, new in zip(outputs, results, strict=True):
            old.replace_all_uses_with(new)

    def _kernel(
        self,
        name: str,
        ops: list[ir.Operation],
        inputs: list[ir.Value],
        outputs: list[ir.Value],
        updated: ir.Value | None,
    ) -> list[ir.Value]:
        """The kernel module: a function on tensors with the operations of the cluster. The destination has the old
        contents of `updated`, if there is such a value. Gives the `inputs` that the function takes: all but sizes that
        nothing uses."""
        attributes = {"sym_name": ir.StringAttr.get(name), "mlc.kernel": ir.UnitAttr.get()}
        if updated is not None:
            attributes["mlc.inout"] = ir.DenseI64ArrayAttr.get([0])
        with ir.InsertionPoint(self.module_block):
            module = ir.Operation.create("builtin.module", regions=1, attributes=attributes)
        body = module.regions[0].blocks.append()
        types = [_passed_type(v.type) for v in inputs] + [v.type for v in outputs]
        with ir.InsertionPoint(body):
            function = func.FuncOp(name, ir.FunctionType.get(types, [v.type for v in outputs]))
        entry = function.add_entry_block()
        arguments = list(entry.arguments)
        mapping = dict(zip(inputs, arguments, strict=False))
        targets = dict(zip(outputs, arguments[len(inputs) :], strict=True))
        if updated is not None:
            mapping[updated] = arguments[len(inputs)]
        with ir.InsertionPoint(entry):
            for value in inputs:
                if _is_host_scalar(value.type):
                    mapping[value] = tensor.extract(mapping[value], [])
            for op in ops:
                _clone(op, mapping, targets)
            func.ReturnOp([mapping[v] for v in outputs])
        return _drop_unused_sizes(function, inputs)


def _drop_unused_sizes(function: func.FuncOp, inputs: list[ir.Value]) -> list[ir.Value]:
    """Take arguments of `function` away that are sizes and have no use; gives those of `inputs` that are left."""
    block, kept = function.entry_block, list(inputs)
    for number in reversed(range(len(inputs))):
        argument = block.arguments[number]
        if isinstance(argument.type, ir.IndexType) and not any(True for _ in argument.uses):
            block.erase_argument(number)
            del kept[number]
    types = [a.type for a in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, function.type.results))
    return kept


def _updated_in_place(op: ir.Operation) -> ir.Value | None:
    """What a scatter updates where a loop carries it and nothing else reads it: one step of a sequence is written
    without a copy of the others."""
    if op.name not in ("mlc.scatter_nd", "mlc.scatter_elements", "mlc.insert"):
        return None
    data = op.operands[0]
    if not isinstance(data.owner, ir.Block) or data.owner.owner.operation.name not in ("scf.for", "scf.while"):
        return None
    return data if readers(data) == [op] and data.type == op.results[0].type else None


def _escapes(graph: BlockGraph, n: int, inside: set[int]) -> bool:
    return any(u not in inside for u in graph.users[n])


def _escaping(graph: BlockGraph, n: int, inside: set[int]) -> list[ir.Value]:
    """Results of operation `n` that an operation outside the cluster uses."""
    outside = {v for u in graph.users[n] if u not in inside for v in captured(graph.ops[u])}
    return [r for r in graph.ops[n].results if r in outside]


def _inputs(graph: BlockGraph, numbers: list[int]) -> list[ir.Value]:
    """Values that the cluster takes from outside, sizes last; leaves are looked through."""
    inside = set(numbers)
    seen: dict[ir.Value, None] = {}

    def visit(op: ir.Operation) -> None:
        for value in captured(op):
            producer = graph.producer(value)
            if producer is not None and producer in inside:
                continue
            leaf = leaf_of(value)
            if leaf is not None:
                visit(leaf)
            else:
                seen[value] = None

    for n in numbers:
        visit(graph.ops[n])
    tensors = [v for v in seen if not isinstance(v.type, ir.IndexType)]
    return tensors + [v for v in seen if isinstance(v.type, ir.IndexType)]


def _is_host_scalar(type_: ir.Type) -> bool:
    """A number that the host has read from a tensor: kernels take it in a tensor of rank 0."""
    return not isinstance(type_, ir.RankedTensorType | ir.IndexType)


def _passed_type(type_: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get([], type_) if _is_host_scalar(type_) else type_


def _passed(value: ir.Value) -> ir.Value:
    if not _is_host_scalar(value.type):
        return value
    return tensor.FromElementsOp(_passed_type(value.type), [value]).result


def _root(ops: list[ir.Operation]) -> ir.Operation:
    for test in (is_contraction, lambda o: o.name in OPAQUE, lambda o: o.name == "linalg.generic" and is_reduction(o)):
        for op in ops:
            if test(op):
                return op
    return ops[0]


def _clone(op: ir.Operation, mapping: dict[ir.Value, ir.Value], targets: dict[ir.Value, ir.Value]) -> None:
    """Clone `op` at the insertion point with its operands mapped; results in `targets` are written there."""
    for value in captured(op):
        leaf = leaf_of(value)
        if value not in mapping and leaf is not None:
            _clone(leaf, mapping, {})
    clone = op.clone()
    remap(clone, mapping)
    if padding_of(op) is not None:
        _name_limits(clone)
    for name in ("mlc.cluster", "mlc.refused"):
        if name in clone.attributes:
            del clone.attributes[name]
    for number, (old, new) in enumerate(zip(op.results, clone.results, strict=True)):
        mapping[old] = new
        if old in targets and op.name.startswith("linalg."):
            _write_to(clone, len(clone.operands) - len(clone.results) + number, targets[old])


def _name_limits(padding: ir.Operation) -> None:
    """The limits of a padding are extents of the tensor that it reads, and say so: templates look for that."""
    source, limits = limits_of(padding)
    for limit, dim in limits:
        if source.type.is_dynamic_dim(dim):
            with ir.InsertionPoint(padding), padding.location:
                limit.operands[1] = tensor.dim(source, arith.ConstantOp(ir.IndexType.get(), dim).result)


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
    if op.name == "mlc.launch":  # what this cluster's operation is initialised with, or gets its size from
        first = list(op.attributes["operandSegmentSizes"])[0]
        return _sizes(op.operands[first + ir.OpResult(value).result_number])
    if op.name.startswith("mlc."):
        return _native.reify(op)[ir.OpResult(value).result_number]
    raise ValueError(f"no size for the result of {op.name}")
