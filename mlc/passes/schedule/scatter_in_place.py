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

from mlc.kernels.common.frame import KernelSource, defining_op, kernel_source
from mlc.kernels.nvidia.scatter import SCATTERS, is_in_place
from mlc.passes.adaptor import readers
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.assign_schedules import collect_launches
from mlc.passes.schedule.plan_in_place import is_last_use
from mlc.passes.schedule.starts import filled_with, number_of, start, start_kernel, started_by, update
from mlc.passes.schedule.write_in_place import launch_on, read_destination
from mlc.passes.walk import all_kernel_modules


class ScatterInPlace(Pass):
    """Let scatters on the GPU find what they update in their destination."""

    dialects = ("mlc", "func", "arith", "linalg")
    statistics = {"in place": "kernels that update their destination"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        launches = collect_launches(module)
        for called, kernel in all_kernel_modules(module).items():
            if is_host_kernel(kernel):
                continue
            source = kernel_source(kernel)
            op = defining_op(source.results[0])
            if op is None or op.name not in SCATTERS or is_in_place(source):
                continue
            if self._moves(kernel, source, op, launches.get(called, []), called):
                self.count("in place", 1)

    def _moves(
        self, kernel: ir.Operation, source: KernelSource, op: ir.Operation, launches: list[ir.Operation], called: str
    ) -> bool:
        """Does the kernel update its destination afterwards?"""
        data = op.operands[0]
        if isinstance(data.owner, ir.Block):
            number = ir.BlockArgument(data).arg_number
            if len(readers(data)) > 1:
                return False  # its updates, too
            for launch in launches:
                launch_on(launch, called, number, is_in_place=is_last_use(launch, number))
            read_destination(kernel, number)
            return True
        value = number_of(data)
        if value is None:
            return False
        start_kernel(kernel, started_by(called), [], data.type, filled_with(value))
        for launch in launches:
            update(launch, start(launch, started_by(called), []))
        op.operands[0] = source.destinations[0]
        kernel.attributes["mlc.inout"] = ir.DenseI64ArrayAttr.get([0])
        return True
