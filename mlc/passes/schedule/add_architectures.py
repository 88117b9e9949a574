"""Give every kernel of the GPU a copy for each further architecture that `mlc.target` names.

```mlir
module attributes {mlc.target = "nvidia:sm_90a,sm_80"} { module @k1 attributes {mlc.kernel, …} … }
  →  module @k1 attributes {mlc.kernel, …} …
     module @k1_sm_80 attributes {mlc.kernel, mlc.kernel_of = "k1", mlc.architecture = "sm_80", …} …
```
The kernels themselves are those of the first architecture, and the only ones that launches name: the runtime takes the
copies where the GPU is another. Copies are scheduled and expanded on their own.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.base import Pass
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.copies import KERNEL_OF, copy_kernel
from mlc.targets.nvidia import H200, NvidiaTarget, resolve_all

ARCHITECTURE = "mlc.architecture"


class AddArchitectures(Pass):
    """Give every kernel of the GPU a copy for each further architecture that `mlc.target` names."""

    statistics = {"copied": "kernels of further architectures"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        for view in list(module.regions[0].blocks[0].operations):
            op = view.operation
            if "mlc.kernel" not in op.attributes or is_host_kernel(op) or KERNEL_OF in op.attributes:
                continue
            name, place = _text(op, "sym_name"), op
            for target in targets_of(module)[1:]:
                place = copy_kernel(op, f"{name}_{target.name}", ir.InsertionPoint.after(place))
                place.attributes[KERNEL_OF] = ir.StringAttr.get(name)
                place.attributes[ARCHITECTURE] = ir.StringAttr.get(target.name)
                self.count("copied", 1)


def targets_of(module: ir.Operation) -> tuple[NvidiaTarget, ...]:
    """The chips that `mlc.target` names; without one, the default."""
    said = _text(module, "mlc.target")
    return resolve_all(said.partition(":")[2]) if said.startswith("nvidia:") else (H200,)


def target_of(module: ir.Operation, kernel: ir.Operation) -> NvidiaTarget:
    """The one of them that a kernel module is for."""
    targets, name = targets_of(module), _text(kernel, ARCHITECTURE)
    return next(t for t in targets if t.name == name) if name else targets[0]


def _text(op: ir.Operation, name: str) -> str:
    return ir.StringAttr(op.attributes[name]).value if name in op.attributes else ""
