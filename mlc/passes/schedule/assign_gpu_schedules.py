"""Give every kernel its GPU template and parameters: the attribute `mlc.schedule`.

```mlir
module @k1 attributes {mlc.kernel} …
  →  module @k1 attributes {mlc.kernel, mlc.schedule = [{template = "rows", group = 32, …}]} …
```
The attribute has the form that `mlc-assign-schedules` gives it; `threads` of a block is part of every GPU schedule.
Kernels of the host are left to `mlc-assign-schedules`.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.frame import kernel_source
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.assign_schedules import schedule_attribute
from mlc.passes.schedule.gpu_cost import choose
from mlc.targets.nvidia import H200, NvidiaTarget, resolve


class AssignGpuSchedules(Pass):
    """Give every kernel its GPU template and parameters."""

    precision: str = "fp32"
    "What contractions of f32 may round their operands to: fp32 (nothing) or tf32"

    def run(self, root: ir.OpView) -> None:
        target = _target(root.operation)
        for view in root.operation.regions[0].blocks[0].operations:
            op = view.operation
            if "mlc.kernel" not in op.attributes or "mlc.schedule" in op.attributes or is_host_kernel(op):
                continue
            with op.context, op.location:
                schedule = choose(kernel_source(op), target, self.precision)
                op.attributes["mlc.schedule"] = ir.ArrayAttr.get([schedule_attribute(schedule)])


def _target(module: ir.Operation) -> NvidiaTarget:
    """The chip that `mlc.target` names; without one, the default."""
    said = ir.StringAttr(module.attributes["mlc.target"]).value if "mlc.target" in module.attributes else ""
    return resolve(said.partition(":")[2]) if said.startswith("nvidia:") else H200
