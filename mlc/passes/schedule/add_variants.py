"""Give every contraction on tensor cores whose rows only a run counts a copy for few rows, or several.

```mlir
module @k1 attributes {mlc.kernel, …} { func.func @k1(%x: tensor<?x768xbf16>, …) … }
  →  module @k1 attributes {mlc.kernel, mlc.rows = 2048, …} …
     module @k1_64 attributes {mlc.kernel, mlc.rows = 64, mlc.most = 64, mlc.variant_of = "k1", …} …
```
Launches name the kernel itself; host code takes the first copy whose `mlc.most` the product of the result's dynamic
extents does not exceed. `mlc.rows` is what the schedule is chosen for: the tiles of 2,048 rows leave most of the chip
idle when there are 16. Copies that would get the schedule of one for more rows are not made.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from mlc.kernels.common.analysis import is_contraction, root_operation
from mlc.kernels.common.attention import find_attention
from mlc.kernels.common.frame import KernelSource, kernel_source
from mlc.kernels.common.roles import roles_of
from mlc.passes.base import Pass
from mlc.passes.schedule.add_architectures import target_of
from mlc.passes.schedule.assign_placement import copy_kernel, is_host_kernel
from mlc.passes.schedule.gpu_cost import choose
from mlc.passes.schedule.matrices import ROWS, matrices_of, reduction_shape

FEW = (64, 128, 256, 512, 1024)  # rows that copies are for
MANY = 2048  # rows that the kernel itself is for, then
VARIANT_OF, MOST = "mlc.variant_of", "mlc.most"


class AddVariants(Pass):
    """Give every contraction on tensor cores whose rows only a run counts copies for few rows."""

    precision: str = "fp32"
    "What contractions of f32 may round their operands to: fp32 (nothing) or tf32"

    statistics = {"copied": "kernels for few rows"}

    def run(self, root: ir.OpView) -> None:
        for view in list(root.operation.regions[0].blocks[0].operations):
            op = view.operation
            if "mlc.kernel" not in op.attributes or is_host_kernel(op):
                continue
            with op.context, op.location:
                known = _rows(kernel_source(op), self.precision)
                if known is not None:
                    self._add(root.operation, op, known)

    def _add(self, module: ir.Operation, kernel: ir.Operation, known: int) -> None:
        """Copies of `kernel`, whose rows are `known` times the dynamic extents."""
        target = target_of(module, kernel)

        def scheduled(rows: int) -> object:
            kernel.attributes[ROWS] = _number(rows)
            return choose(kernel_source(kernel), target, self.precision)

        name = ir.StringAttr(kernel.attributes["sym_name"]).value
        found: list[int] = []
        larger = scheduled(MANY)
        for rows in reversed(FEW):
            if rows < known or (schedule := scheduled(rows)) == larger:
                continue
            found, larger = [*found, rows], schedule
        kernel.attributes[ROWS] = _number(MANY)
        for rows in found:
            copy = copy_kernel(kernel, f"{name}_{rows}", ir.InsertionPoint.after(kernel))
            copy.attributes[ROWS], copy.attributes[MOST] = _number(rows), _number(rows // known)
            copy.attributes[VARIANT_OF] = ir.StringAttr.get(name)
            self.count("copied", 1)


def _number(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _rows(source: KernelSource, precision: str) -> int | None:
    """The product of the known extents of the rows, where nothing but some of them is dynamic; else None."""
    if find_attention(source) is not None:
        return None
    root = root_operation(source)
    if not is_contraction(root) or matrices_of(source, root, precision) is None:
        return None
    roles, type_ = roles_of(root, source.results), root.results[0].type
    assert roles is not None
    rows = roles.positions(roles.rows)
    dynamic = [i for i in range(type_.rank) if type_.is_dynamic_dim(i)]
    if not dynamic or any(i not in rows for i in dynamic) or None in reduction_shape(root):
        return None
    return prod(type_.get_dim_size(i) for i in rows if i not in dynamic)
