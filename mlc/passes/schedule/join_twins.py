"""Make one launch of two products of one left operand: obeys `mlc.twins`.

```mlir
%u = mlc.launch @k0(%x, %w0) outs(%e) {mlc.twins = 0} …            %g = mlc.launch @k0_k1(%x, %w0, %w1) outs(%f) …
%g = mlc.launch @k1(%x, %w1, %u) outs(%f) {mlc.twins = 0} …   →    module @k0_k1 attributes {mlc.kernel} …
```
The kernel has the operations of both; what the first stored is a tensor inside of it (`tensor_cores/twins.py`). Kernels
that nobody launches any more go.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, func, tensor

from mlc.dialects import mlc as m
from mlc.kernels.common.frame import KernelSource, kernel_source
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import host_blocks
from mlc.passes.schedule.assign_placement import DEVICE
from mlc.passes.schedule.assign_schedules import collect_launches
from mlc.passes.schedule.join_launches import copied, fresh_name, merge_reports, operands_of_launch
from mlc.passes.schedule.plan_twins import TWINS
from mlc.passes.walk import called_kernel

Key = tuple[str, str, tuple[int, ...]]


class JoinTwins(Pass):
    """Make one launch of two products of one left operand."""

    dialects = ("arith", "func", "mlc", "tensor")

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
            pairs: dict[int, list[ir.Operation]] = {}
            for view in block.operations:
                if TWINS in view.operation.attributes:
                    number = ir.IntegerAttr(view.operation.attributes[TWINS]).value
                    pairs.setdefault(number, []).append(view.operation)
            for first, second in pairs.values():
                self._join(first, second)
        for name in before - set(collect_launches(self.module)):
            self.kernels[name].erase()

    def _join(self, first: ir.Operation, second: ir.Operation) -> None:
        """One launch in place of the second."""
        inputs, outs = operands_of_launch(second)
        seen = list(dict.fromkeys([*operands_of_launch(first)[0], *(v for v in inputs if v != first.results[0])]))
        tensors = [v for v in seen if not isinstance(v.type, ir.IndexType)]
        passed = tensors + [v for v in seen if isinstance(v.type, ir.IndexType)]
        names = [called_kernel(launch) for launch in (first, second)]
        numbers = tuple(
            -1 if v == first.results[0] else passed.index(v) for v in [*operands_of_launch(first)[0], *inputs]
        )
        key = (names[0], names[1], numbers)
        if key not in self.made:
            self.made[key] = self._kernel(names, [v.type for v in passed], numbers)
        with ir.InsertionPoint(second), ir.Location.fused([first.location, second.location]):
            results = m.launch(self.made[key], passed, outs)
        joined = results[0].owner
        joined.attributes["mlc.placement"] = ir.StringAttr.get(DEVICE)
        merge_reports([first, second], joined)
        for old, new in zip(second.results, results, strict=True):
            old.replace_all_uses_with(new)
        second.erase()
        first.erase()

    def _kernel(self, names: Sequence[str], types: Sequence[ir.Type], numbers: Sequence[int]) -> str:
        """The module of a kernel with the operations of the kernels `names`; gives its name. `types` are those of its
        inputs, `numbers` say which of them each input of both is, -1 what the first makes."""
        first, second = (kernel_source(self.kernels[name]) for name in names)
        name = fresh_name(names, self.kernels)
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "mlc.kernel": ir.UnitAttr.get(),
            "mlc.placement": ir.StringAttr.get(DEVICE),
        }
        with ir.Location.fused([first.module.location, second.module.location]):
            with ir.InsertionPoint.after(self.kernels[names[-1]]):
                module = ir.Operation.create("builtin.module", regions=1, attributes=attributes)
            made = [value.type for value in second.results]
            with ir.InsertionPoint(module.regions[0].blocks.append()):
                function = func.FuncOp(name, ir.FunctionType.get([*types, *made], made))
            entry, given = function.add_entry_block(), iter(numbers)
            with ir.InsertionPoint(entry):
                mapping = {old: entry.arguments[next(given)] for old in _inputs(first)}
                result = entry.arguments[len(types)]
                mapping |= {old: _empty(old.type, result) for old in first.destinations}
                (between,) = copied(first.block, mapping)
                mapping = {
                    old: between if number < 0 else entry.arguments[number]
                    for old, number in zip(_inputs(second), given, strict=True)
                }
                mapping |= dict(zip(second.destinations, list(entry.arguments)[len(types) :], strict=True))
                func.ReturnOp(copied(second.block, mapping))
        self.kernels[name] = module
        return name


def _inputs(source: KernelSource) -> list[ir.Value]:
    """The arguments of a kernel but for those that it writes."""
    arguments = list(source.block.arguments)
    return arguments[: len(arguments) - len(source.destinations)]


def _empty(type_: ir.RankedTensorType, like: ir.Value) -> ir.Value:
    """A tensor of a type, of the shape of another."""
    index = ir.IndexType.get()
    sizes = [
        tensor.dim(like, arith.ConstantOp(index, ir.IntegerAttr.get(index, d)).result)
        if type_.is_dynamic_dim(d)
        else type_.get_dim_size(d)
        for d in range(type_.rank)
    ]
    return tensor.empty(sizes, type_.element_type)
