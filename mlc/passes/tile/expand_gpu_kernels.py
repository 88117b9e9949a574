"""Expand every kernel by the GPU template that its schedule names.

```mlir
module @k0 { func.func @k0(%a0: tensor<…>, %o0: tensor<…>) -> tensor<…> { linalg… } }
  →  module @k0 { func.func @k0(%a0: memref<f32>, %o0: memref<f32>, …, %begin, %end)   func.func @k0_grid(…) -> index }
```
Obeys `mlc.schedule`; see `docs/ir.md` §8 for the form.
Kernels of the host get the CPU's templates. Templates whose items are independent loops are the CPU's: a
thread runs an item.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import func

from mlc.kernels.common.frame import kernel_source
from mlc.kernels.nvidia import (
    block_select,
    columns,
    contraction,
    depthwise,
    elementwise,
    joined,
    recurrence,
    rows,
    scan,
    scatter,
    transpose,
    whole_columns,
)
from mlc.kernels.nvidia.ampere import attention as ampere_attention
from mlc.kernels.nvidia.ampere import contraction as ampere_contraction
from mlc.kernels.nvidia.hopper import attention as hopper_attention
from mlc.kernels.nvidia.hopper import contraction as hopper_contraction
from mlc.kernels.nvidia.limits import missing_functions
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.assign_schedules import read_schedule
from mlc.passes.tile.expand_kernels import TEMPLATES as CPU_TEMPLATES
from mlc.passes.tile.expand_kernels import Template, expand_kernel

_SEQUENTIAL = ("nonzero", "scatter_elements", "scatter_nd", "sort", "topk")
TEMPLATES: dict[str, Template] = {
    "ampere_attention": Template(ampere_attention.AmpereAttentionSchedule, ampere_attention.expand),
    "ampere_contraction": Template(ampere_contraction.AmpereSchedule, ampere_contraction.expand),
    "elementwise": Template(elementwise.ElementwiseSchedule, elementwise.expand),
    "block_select": Template(block_select.BlockSelectSchedule, block_select.expand),
    "columns": Template(columns.ColumnSchedule, columns.expand),
    "contraction": Template(contraction.ContractionSchedule, contraction.expand),
    "depthwise": Template(depthwise.DepthwiseSchedule, depthwise.expand),
    "hopper_attention": Template(hopper_attention.HopperAttentionSchedule, hopper_attention.expand),
    "hopper_contraction": Template(hopper_contraction.HopperSchedule, hopper_contraction.expand),
    "joined": Template(joined.JoinedSchedule, joined.expand),
    "recurrence": Template(recurrence.RecurrenceSchedule, recurrence.expand),
    "rows": Template(rows.RowSchedule, rows.expand),
    "scan": Template(scan.BlockScanSchedule, scan.expand),
    "scatter": Template(scatter.ScatterSchedule, scatter.expand),
    "transpose": Template(transpose.TransposeSchedule, transpose.expand),
    "whole_columns": Template(whole_columns.WholeColumnSchedule, whole_columns.expand),
    **{name: CPU_TEMPLATES[name] for name in _SEQUENTIAL},
}


class ExpandGpuKernels(Pass):
    """Expand every kernel by the GPU template that its schedule names."""

    dialects = ("func", "memref", "vector", "scf", "arith", "math", "cf", "llvm", "nvvm")

    def run(self, root: ir.OpView) -> None:
        for view in list(root.operation.regions[0].blocks[0].operations):
            op = view.operation
            if "mlc.kernel" not in op.attributes or "mlc.schedule" not in op.attributes:
                continue
            if is_host_kernel(op):
                expand_kernel(op)
                continue
            source = kernel_source(op)
            for node, function in missing_functions(source):
                raise ValueError(f"node '{node}': {function} of float64 has no GPU kernel")
            is_early = bool(read_schedule(op).get("early", 0))
            inputs = {n: source.is_constant(t) for n, t in enumerate(source.tensors) if t not in source.destinations}
            expand_kernel(op, TEMPLATES)
            if is_early:
                _set_inputs(op, inputs)


def _set_inputs(kernel: ir.Operation, inputs: dict[int, bool]) -> None:
    """Says what is known of an early launch's inputs by their numbers, constant or not. Other launches write those that
    are not: they may still do so while this one begins, and ptxas moves loads (`ld.global.nc`) of what nobody writes in
    front of the waiting, so these are no more the kernel's alone. That destinations are tells all accesses apart."""
    name, unit = ir.StringAttr(kernel.attributes["sym_name"]).value, ir.UnitAttr.get()
    for view in kernel.regions[0].blocks[0].operations:
        if isinstance(view, func.FuncOp) and view.name.value == name:
            attributes = list(view.arg_attrs)
            for number, is_constant in inputs.items():
                known = {"llvm.noalias": unit, "llvm.readonly": unit} if is_constant else {}
                attributes[number] = ir.DictAttr.get(known)
            view.arg_attrs = ir.ArrayAttr.get(attributes)
