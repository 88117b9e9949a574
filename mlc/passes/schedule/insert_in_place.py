"""Let insertions find what they update in their destination.

```mlir
%r = mlc.launch @k(%x, %u, %n) outs(%e) …
// becomes
%r = mlc.launch @k(%u, %n) outs(%x) {mlc.in_place, mlc.inout = array<i64: 0>} …     where nobody else reads x
```
Where somebody does, or x is an argument, a launch of its own copies it before: `@k_copy`.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import func

from mlc.dialects import mlc as m
from mlc.kernels.common.frame import defining_op, kernel_source
from mlc.passes.base import Pass
from mlc.passes.lower.to_linalg.builder import Source, generic
from mlc.passes.schedule.assign_schedules import collect_launches
from mlc.passes.schedule.plan_in_place import is_last_use
from mlc.passes.schedule.write_in_place import launch_on, read_destination

_INPUT = 0  # that of an insertion, whose operands are its kernel's


class InsertInPlace(Pass):
    """Let insertions find what they update in their destination."""

    dialects = ("mlc", "func", "linalg", "tensor", "arith")
    statistics = {"in place": "insertions that copy nothing"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        launches = collect_launches(module)
        for view in list(module.regions[0].blocks[0].operations):
            kernel = view.operation
            if "mlc.kernel" not in kernel.attributes or "mlc.inout" in kernel.attributes:
                continue
            op = defining_op(kernel_source(kernel).results[0])
            if op is not None and op.name == "mlc.insert":
                name = ir.StringAttr(kernel.attributes["sym_name"]).value
                self._move(kernel, name, launches.get(name, []))

    def _move(self, kernel: ir.Operation, name: str, launches: list[ir.Operation]) -> None:
        copied = False
        for launch in launches:
            if is_last_use(launch, _INPUT):
                self.count("in place")
            else:
                copied = copied or _copy_kernel(kernel, f"{name}_copy", launch.operands[_INPUT].type)
                _copy(launch, f"{name}_copy")
            launch_on(launch, name, _INPUT, is_in_place=True)
        read_destination(kernel, _INPUT)


def _copy_kernel(kernel: ir.Operation, name: str, type_: ir.Type) -> bool:
    """Adds the kernel `name` that copies a tensor of that type."""
    attributes = {"sym_name": ir.StringAttr.get(name), "mlc.kernel": ir.UnitAttr.get()}
    with ir.InsertionPoint(kernel), kernel.location:
        module = ir.Operation.create("builtin.module", regions=1, attributes=attributes)
        with ir.InsertionPoint(module.regions[0].blocks.append()):
            function = func.FuncOp(name, ir.FunctionType.get([type_, type_], [type_]))
        source, destination = function.add_entry_block().arguments
        with ir.InsertionPoint(function.entry_block):
            exprs = [ir.AffineExpr.get_dim(i) for i in range(type_.rank)]
            copied = generic([destination], [exprs], "p" * type_.rank, [Source(source, exprs)], lambda given: given[0])
            func.ReturnOp(copied)
    return True


def _copy(launch: ir.Operation, name: str) -> None:
    """Gives `launch` a copy of its input; where that goes is as large as the result."""
    with ir.InsertionPoint(launch), launch.location:
        empty = launch.operands[len(launch.operands) - 1]
        [launch.operands[_INPUT]] = m.launch(name, [launch.operands[_INPUT]], [empty])
