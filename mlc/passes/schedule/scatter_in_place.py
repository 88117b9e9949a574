"""Let scatters on the GPU find what they update in their destination, which many threads write to then.

```mlir
%r = mlc.launch @k(%x, %i, %u) outs(%e) {mlc.placement = "device"} …
// becomes
%r = mlc.launch @k(%i, %u) outs(%x) {mlc.inout = array<i64: 0>, …} …          the host copies x; or
%r = mlc.launch @k(%i, %u) outs(%x) {mlc.in_place, mlc.inout = array<i64: 0>, …} …  where nobody else reads x
```
What a kernel would fill its destination with before, a launch of its own does: `@k_start`.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, func, linalg

from mlc.dialects import mlc as m
from mlc.kernels.common.frame import KernelSource, defining_op, kernel_source
from mlc.kernels.nvidia.scatter import SCATTERS, is_in_place
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_placement import DEVICE, is_host_kernel
from mlc.passes.schedule.assign_schedules import collect_launches
from mlc.passes.schedule.plan_in_place import is_last_use
from mlc.passes.schedule.write_in_place import launch_on, read_destination


class ScatterInPlace(Pass):
    """Let scatters on the GPU find what they update in their destination."""

    dialects = ("mlc", "func", "arith", "linalg")
    statistics = {"in place": "kernels that update their destination"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        launches = collect_launches(module)
        for view in list(module.regions[0].blocks[0].operations):
            kernel = view.operation
            if "mlc.kernel" not in kernel.attributes or is_host_kernel(kernel):
                continue
            source = kernel_source(kernel)
            op = defining_op(source.results[0])
            if op is None or op.name not in SCATTERS or is_in_place(source):
                continue
            called = ir.StringAttr(kernel.attributes["sym_name"]).value
            if self._moves(kernel, source, op, launches.get(called, []), called):
                self.count("in place", 1)

    def _moves(
        self, kernel: ir.Operation, source: KernelSource, op: ir.Operation, launches: list[ir.Operation], called: str
    ) -> bool:
        """Does the kernel update its destination afterwards?"""
        data = op.operands[0]
        if isinstance(data.owner, ir.Block):
            number = ir.BlockArgument(data).arg_number
            if len([u for u in data.uses if u.owner.operation.name != "tensor.dim"]) > 1:
                return False  # its updates, too
            for launch in launches:
                launch_on(launch, called, number, is_in_place=is_last_use(launch, number))
            read_destination(kernel, number)
            return True
        value = _number_of(data)
        if value is None:
            return False
        started = f"{called}_start"
        _start_kernel(kernel, started, data.type, value)
        for launch in launches:
            _start(launch, started)
        op.operands[0] = source.destinations[0]
        kernel.attributes["mlc.inout"] = ir.DenseI64ArrayAttr.get([0])
        return True


def _number_of(data: ir.Value) -> ir.Attribute | None:
    """The number that all elements are, if a kernel fills a tensor with one."""
    op = defining_op(data)
    assert op is not None
    if op.name == "linalg.fill":
        filled = defining_op(op.operands[0])
        return filled.attributes["value"] if filled is not None and filled.name == "arith.constant" else None
    if op.name in ("arith.constant", "mlc.constant"):
        dense = op.attributes["value"]
        is_splat = isinstance(dense, ir.DenseElementsAttr) and dense.is_splat
        return dense.get_splat_value() if is_splat else None
    return None


def _start_kernel(kernel: ir.Operation, name: str, type_: ir.Type, value: ir.Attribute) -> None:
    """A kernel that fills its destination."""
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "mlc.kernel": ir.UnitAttr.get(),
        "mlc.placement": ir.StringAttr.get(DEVICE),
    }
    with ir.InsertionPoint(kernel), kernel.location:
        module = ir.Operation.create("builtin.module", regions=1, attributes=attributes)
        with ir.InsertionPoint(module.regions[0].blocks.append()):
            function = func.FuncOp(name, ir.FunctionType.get([type_], [type_]))
        with ir.InsertionPoint(function.add_entry_block()):
            number = arith.ConstantOp(type_.element_type, value).result
            filled = linalg.fill(number, outs=[function.arguments[0]])
            func.ReturnOp([filled])


def _start(launch: ir.Operation, started: str) -> None:
    """Launches `started` into the destination of `launch` before that."""
    number = len(launch.operands) - 1
    with ir.InsertionPoint(launch), launch.location:
        [filled] = m.launch(started, [], [launch.operands[number]])
    filled.owner.attributes["mlc.placement"] = ir.StringAttr.get(DEVICE)
    launch.operands[number] = filled
    launch.attributes["mlc.inout"] = ir.DenseI64ArrayAttr.get([0])
    launch.attributes["mlc.in_place"] = ir.UnitAttr.get()
