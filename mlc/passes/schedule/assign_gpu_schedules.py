"""Give every kernel its GPU template and parameters: the attribute `mlc.schedule`.

```mlir
module @k1 attributes {mlc.kernel} …
  →  module @k1 attributes {mlc.kernel, mlc.schedule = [{template = "rows", group = 32, …}]} …
```
The attribute has the form that `mlc-assign-schedules` gives it; `threads` of a block is part of every GPU schedule.
`early` says that a launch may be on the chip before the one in front of it is done. Kernels of the host are left to
`mlc-assign-schedules`.

What has been measured comes before the cost model: first the file `tuned`, where there is one, then what is packaged
for the architecture (`mlc/tuning/data`). The module's attribute `mlc.tuning` is a hash of what `tuned` has decided.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mlir import ir

from mlc.kernels.common.frame import kernel_source
from mlc.passes.base import Pass, PipelineError
from mlc.passes.schedule.add_architectures import target_of
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.assign_schedules import gpu_target_text, measured, schedule_attribute
from mlc.passes.schedule.gpu_cost import Schedule, choose
from mlc.targets.nvidia import NvidiaTarget
from mlc.tuning.cache import EXPLORED_ON_GPUS, PACKAGED, Entry, TuningError, digest, read


class AssignGpuSchedules(Pass):
    """Give every kernel its GPU template and parameters."""

    precision: str = "fp32"
    "What contractions of f32 may round their operands to: fp32 (nothing) or tf32"
    tuned: str = ""
    "a file of measured schedules"
    packaged: bool = True
    "use what has been measured before the compiler was packaged"

    statistics = {"tuned": "kernels whose schedule was measured"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        try:
            table = read(Path(self.tuned)) if self.tuned else {}
        except TuningError as error:
            raise PipelineError([str(error)]) from error
        used: dict[str, Schedule] = {}
        for view in module.regions[0].blocks[0].operations:
            op = view.operation
            if "mlc.kernel" not in op.attributes or "mlc.schedule" in op.attributes or is_host_kernel(op):
                continue
            with op.context, op.location:
                target = target_of(module, op)
                schedule = self._measured(op, choose(kernel_source(op), target, self.precision), target, table, used)
                op.attributes["mlc.schedule"] = ir.ArrayAttr.get([schedule_attribute(finished(schedule, target))])
        if used:
            module.attributes["mlc.tuning"] = ir.StringAttr.get(digest(used))

    def _measured(
        self,
        op: ir.Operation,
        default: Schedule,
        target: NvidiaTarget,
        table: dict[str, Entry],
        used: dict[str, Schedule],
    ) -> Schedule:
        """The schedule of a kernel from the file or the package; `default` where neither has one."""
        if default["template"] not in EXPLORED_ON_GPUS:
            return default
        said, before = gpu_target_text(target, self.precision), len(used)
        schedule = measured(op, default, said, table, used)
        if len(used) == before and self.packaged:
            from_package: dict[str, Schedule] = {}
            schedule = measured(op, default, said, packaged_entries(target.arch), from_package)
            self.count("tuned", len(from_package))
        self.count("tuned", len(used) - before)
        return schedule


@cache
def packaged_entries(arch: str) -> dict[str, Entry]:
    """What has been measured on an architecture before the compiler was packaged; nothing of most."""
    path = PACKAGED / f"{arch}.json"
    return read(path) if path.is_file() else {}


def finished(schedule: Schedule, target: NvidiaTarget) -> Schedule:
    """`schedule` with no more blocks than a multiprocessor of the target holds, early where nothing else is said."""
    result = {"early": 1, **schedule} if target.overlaps else {**schedule}
    if "blocks" in schedule:
        result["blocks"] = min(int(schedule["blocks"]), target.blocks_held(int(schedule["threads"])))
    return result
