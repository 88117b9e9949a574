"""Give every kernel its GPU template and parameters: the attribute `mlc.schedule`.

```mlir
module @k1 attributes {mlc.kernel} …
  →  module @k1 attributes {mlc.kernel, mlc.schedule = [{template = "rows", group = 32, …}]} …
```
The attribute has the form that `mlc-assign-schedules` gives it; `threads` of a block is part of every GPU schedule.
`early` says that a launch may be on the chip before the one in front of it is done. Kernels of the host are left to
`mlc-assign-schedules`.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.frame import kernel_source
from mlc.passes.base import Pass
from mlc.passes.schedule.add_architectures import target_of
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.assign_schedules import schedule_attribute
from mlc.passes.schedule.gpu_cost import Schedule, choose
from mlc.targets.nvidia import NvidiaTarget


class AssignGpuSchedules(Pass):
    """Give every kernel its GPU template and parameters."""

    precision: str = "fp32"
    "What contractions of f32 may round their operands to: fp32 (nothing) or tf32"

    def run(self, root: ir.OpView) -> None:
        for view in root.operation.regions[0].blocks[0].operations:
            op = view.operation
            if "mlc.kernel" not in op.attributes or "mlc.schedule" in op.attributes or is_host_kernel(op):
                continue
            with op.context, op.location:
                target = target_of(root.operation, op)
                schedule = _held(choose(kernel_source(op), target, self.precision), target)
                if target.overlaps:
                    schedule.setdefault("early", 1)
                op.attributes["mlc.schedule"] = ir.ArrayAttr.get([schedule_attribute(schedule)])


def _held(schedule: Schedule, target: NvidiaTarget) -> Schedule:
    """`schedule` with no more blocks than a multiprocessor of the target holds."""
    if "blocks" not in schedule:
        return schedule
    return {**schedule, "blocks": min(int(schedule["blocks"]), target.blocks_held(int(schedule["threads"])))}
