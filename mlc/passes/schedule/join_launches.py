"""Make one launch of those that belong together: obeys `mlc.joined`.

```mlir
%q = mlc.launch @k0(%a, %c) outs(%e) {mlc.joined = 0} …       %q, %k = mlc.launch @k0_k1(%a, %c, %b) outs(%e, %f) …
%k = mlc.launch @k1(%b, %c) outs(%f) {mlc.joined = 0} …   →   module @k0_k1 attributes {mlc.kernel, mlc.parts =
                                                                                        array<i64: 1, 1>} …
```
The kernel has the parts beside each other (`mlc/kernels/nvidia/joined.py`); what several of them read is one argument.
Kernels that nobody launches any more go.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from mlir import ir
from mlir.dialects import func

from mlc.dialects import mlc as m
from mlc.kernels.common.clone import remap
from mlc.kernels.common.frame import kernel_source
from mlc.kernels.nvidia.joined import PARTS
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import BlockGraph, host_blocks, topological
from mlc.passes.schedule.assign_placement import DEVICE
from mlc.passes.schedule.assign_schedules import collect_launches
from mlc.passes.schedule.plan_joins import JOINED
from mlc.passes.walk import called_kernel

Key = tuple[tuple[str, ...], tuple[int, ...]]


class JoinLaunches(Pass):
    """Make one launch of those that belong together."""

    dialects = ("func", "mlc")

    def run(self, root: ir.OpView) -> None:
        self.module = root.operation
        self.made: dict[Key, str] = {}
        self.kernels = {
            ir.StringAttr(view.operation.attributes["sym_name"]).value: view.operation
            for view in self.module.regions[0].blocks[0].operations
            if "sym_name" in view.operation.attributes
        }
        before = set(collect_launches(self.module))
        for block in host_blocks(self.module):
            self._block(block)
        for name in before - set(collect_launches(self.module)):
            self.kernels[name].erase()

    def _block(self, block: ir.Block) -> None:
        if not any(JOINED in view.operation.attributes for view in block.operations):
            return
        graph = BlockGraph(block)
        for n, op in enumerate(graph.ops):
            if JOINED in op.attributes:
                number = ir.IntegerAttr(op.attributes[JOINED]).value
                if number not in graph.members:
                    graph.members[number], graph.kinds[number] = [], "elementwise"
                graph.add(n, number)
        terminator = graph.ops[-1]
        for is_cluster, node in topological(graph):
            if is_cluster:
                launches = [graph.ops[n] for n in sorted(graph.members[node])]
                for launch in launches:
                    launch.move_before(terminator)
                with ir.InsertionPoint(terminator):
                    self._join(launches)
            elif node != len(graph.ops) - 1:
                graph.ops[node].move_before(terminator)
        for n in sorted(graph.cluster, reverse=True):
            graph.ops[n].erase()

    def _join(self, launches: Sequence[ir.Operation]) -> None:
        """The launch of all, in front of the insertion point."""
        inputs, outs = zip(*map(operands_of_launch, launches), strict=True)
        seen = list(dict.fromkeys(v for part in inputs for v in part))
        tensors = [v for v in seen if not isinstance(v.type, ir.IndexType)]
        passed = tensors + [v for v in seen if isinstance(v.type, ir.IndexType)]
        names = tuple(called_kernel(launch) for launch in launches)
        numbers = tuple(passed.index(v) for part in inputs for v in part)
        if (names, numbers) not in self.made:
            self.made[names, numbers] = self._kernel(names, [v.type for v in passed], numbers)
        with ir.Location.fused([launch.location for launch in launches]):
            results = m.launch(self.made[names, numbers], passed, [v for part in outs for v in part])
        joined = results[0].owner
        joined.attributes["mlc.placement"] = ir.StringAttr.get(DEVICE)
        merge_reports(launches, joined)
        found = iter(results)
        for launch in launches:
            for result in launch.results:
                result.replace_all_uses_with(next(found))

    def _kernel(self, names: Sequence[str], types: Sequence[ir.Type], numbers: Sequence[int]) -> str:
        """The module of a kernel with the kernels `names` beside each other; gives its name. `types` are those of its
        inputs, `numbers` say which of them each input of each part is, one after the other."""
        sources = [kernel_source(self.kernels[name]) for name in names]
        name = fresh_name(names, self.kernels)
        counts = [len(source.results) for source in sources]
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "mlc.kernel": ir.UnitAttr.get(),
            "mlc.placement": ir.StringAttr.get(DEVICE),
            PARTS: ir.DenseI64ArrayAttr.get(counts),
        }
        with ir.Location.fused([source.module.location for source in sources]):
            with ir.InsertionPoint.after(self.kernels[names[-1]]):
                module = ir.Operation.create("builtin.module", regions=1, attributes=attributes)
            made = [value.type for source in sources for value in source.results]
            with ir.InsertionPoint(module.regions[0].blocks.append()):
                function = func.FuncOp(name, ir.FunctionType.get([*types, *made], made))
            entry, given, results = function.add_entry_block(), iter(numbers), []
            destinations = iter(list(entry.arguments)[len(types) :])
            with ir.InsertionPoint(entry):
                for source in sources:
                    arguments = list(source.block.arguments)
                    inputs = arguments[: len(arguments) - len(source.destinations)]
                    mapping = {old: entry.arguments[next(given)] for old in inputs}
                    mapping |= {old: next(destinations) for old in source.destinations}
                    results += copied(source.block, mapping)
                func.ReturnOp(results)
        self.kernels[name] = module
        return name


def fresh_name(names: Sequence[str], taken: Container[str]) -> str:
    """A name that no kernel has yet, of a kernel made of those of `names`."""
    first = "_".join(dict.fromkeys(names))
    tries = (first if n == 0 else f"{first}_{n}" for n in range(1 << 30))
    return next(name for name in tries if name not in taken)


def merge_reports(launches: Sequence[ir.Operation], joined: ir.Operation) -> None:
    """Notes on `joined` what the fusion plan refused to `launches`."""
    reports = [launch.attributes["mlc.refused"] for launch in launches if "mlc.refused" in launch.attributes]
    refused = list(dict.fromkeys(entry for report in reports for entry in report))
    if refused:
        joined.attributes["mlc.refused"] = ir.ArrayAttr.get(refused)


def operands_of_launch(launch: ir.Operation) -> tuple[list[ir.Value], list[ir.Value]]:
    """What a launch reads, and where it writes."""
    values = list(launch.operands)
    count = len(values) - len(launch.results)
    return values[:count], values[count:]


def copied(block: ir.Block, mapping: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """Copies a kernel's operations to the insertion point; gives what it returns there."""
    *ops, end = [view.operation for view in block.operations]
    for op in ops:
        clone = op.clone()
        remap(clone, mapping)
        mapping |= dict(zip(op.results, clone.results, strict=True))
    return [mapping[v] for v in end.operands]
