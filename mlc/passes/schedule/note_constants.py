"""Note on GPU kernels which of their arguments are weights in every launch.

```mlir
mlc.launch @k0(%x, %w)     module @k0 attributes {mlc.kernel}      with %w = mlc.weight "w"
  →  module @k0 attributes {mlc.kernel, mlc.constants = array<i64: 0, 3538944>}
```
The attribute has their bytes, and 0 for tensors that are no weights. No launch writes weights: an early launch reads
them before the launches in front of it are done. Copies of a kernel, for few rows or other chips, have its launches.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from mlc.kernels.common.constants import CONSTANTS
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.assign_schedules import collect_launches, constant_inputs
from mlc.passes.schedule.copies import KERNEL_OF, VARIANT_OF


class NoteConstants(Pass):
    """Note on GPU kernels which of their arguments are weights in every launch."""

    statistics = {"constant": "arguments of kernels that are weights in every launch"}

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        launches = collect_launches(module)
        kernels = {
            ir.StringAttr(view.operation.attributes["sym_name"]).value: view.operation
            for view in module.regions[0].blocks[0].operations
            if "mlc.kernel" in view.operation.attributes and not is_host_kernel(view.operation)
        }
        for name, op in kernels.items():
            found = _constant_tensors(launches.get(_launched(kernels, name), []))
            if found:
                op.attributes[CONSTANTS] = ir.DenseI64ArrayAttr.get(found)
            self.count("constant", sum(map(bool, found)))


def _constant_tensors(launches: list[ir.Operation]) -> list[int]:
    """For every tensor up to the last weight, how many bytes it has if it is a weight in every launch, else 0."""
    numbers = constant_inputs(launches)
    operands = list(launches[0].operands)[: max(numbers) + 1] if numbers else []
    return [
        _bytes(value.type) if number in numbers else 0
        for number, value in enumerate(operands)
        if isinstance(value.type, ir.RankedTensorType)
    ]


def _bytes(type_: ir.RankedTensorType) -> int:
    return prod(type_.shape) * max(1, type_.element_type.width // 8)


def _launched(kernels: dict[str, ir.Operation], name: str) -> str:
    """The kernel that launches name and `name` is a copy of, perhaps of a copy; or itself."""
    while name in kernels:
        attributes = kernels[name].attributes
        copied = next((a for a in (KERNEL_OF, VARIANT_OF) if a in attributes), None)
        if copied is None:
            return name
        name = ir.StringAttr(attributes[copied]).value
    return name
