"""Expand every kernel by the template that its schedule names.

```mlir
module @k0 { func.func @k0(%a0: tensor<…>, %o0: tensor<…>) -> tensor<…> { linalg… } }
  →  module @k0 { func.func @k0(%a0: memref<f32>, %o0: memref<f32>, …, %begin, %end)   func.func @k0_grid(…) -> index }
```
Obeys `mlc.schedule`; see `docs/ir.md` §6 for the form. A kernel module without a function is left alone: its object is
known already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

from mlir import ir

from mlc.kernels.common.frame import Frame, KernelSource, kernel_source
from mlc.kernels.cpu import (
    attention,
    contraction,
    copy_ahead,
    deep_contraction,
    depthwise_quads,
    dot_attention,
    dot_floats,
    dot_product,
    dot_quads,
    dot_words,
    inner_product,
    insert,
    interleave,
    line_product,
    loops,
    nonzero,
    panel_copy,
    planes,
    radix_sort,
    recurrence,
    scaled_blocks,
    scan,
    scatter,
    select,
    staged_transpose,
    suppress,
    tile_attention,
    tile_product,
    tile_recurrence,
    transpose,
)
from mlc.kernels.cpu.attention_grid import AttentionSchedule
from mlc.kernels.cpu.recurrent_rows import RecurrenceSchedule
from mlc.passes.base import Pass
from mlc.passes.schedule.assign_schedules import read_schedule


class Template(NamedTuple):
    """A template: the class of its parameters, and what expands a kernel. With `laid_out` its code has loops, registers
    and addresses as they should be, so that LLVM need not look for better ones (`mlc.laid_out` of the kernel): that was
    measured, compilation and speed, for those that say so.
    """

    schedule: type
    expand: Callable[[KernelSource, Any], list[Frame]]
    laid_out: bool = False



TEMPLATES: dict[str, Template] = {
    "attention": Template(AttentionSchedule, attention.expand, laid_out=True),
    "loops": Template(loops.LoopSchedule, loops.expand),
    "contraction": Template(contraction.ContractionSchedule, contraction.expand, laid_out=True),
    "copy_ahead": Template(copy_ahead.CopyAheadSchedule, copy_ahead.expand),
    "deep_contraction": Template(deep_contraction.DeepContractionSchedule, deep_contraction.expand, laid_out=True),
    "depthwise_quads": Template(depthwise_quads.DepthwiseQuadsSchedule, depthwise_quads.expand),
    "dot_floats": Template(dot_floats.DotFloatsSchedule, dot_floats.expand),
    "dot_product": Template(dot_product.DotProductSchedule, dot_product.expand),
    "dot_quads": Template(dot_quads.DotQuadsSchedule, dot_quads.expand),
    "dot_words": Template(dot_words.DotWordsSchedule, dot_words.expand),
    "inner_product": Template(inner_product.InnerProductSchedule, inner_product.expand, laid_out=True),
    "insert": Template(insert.InsertSchedule, insert.expand),
    "interleave": Template(interleave.InterleaveSchedule, interleave.expand),
    "line_product": Template(line_product.LineProductSchedule, line_product.expand, laid_out=True),
    "panel_copy": Template(panel_copy.PanelCopySchedule, panel_copy.expand),
    "nonzero": Template(nonzero.NonzeroSchedule, nonzero.expand),
    "planes": Template(planes.PlanesSchedule, planes.expand),
    "radix_sort": Template(radix_sort.RadixSortSchedule, radix_sort.expand, laid_out=True),
    "recurrence": Template(RecurrenceSchedule, recurrence.expand, laid_out=True),
    "scaled_blocks": Template(scaled_blocks.ScaledBlocksSchedule, scaled_blocks.expand, laid_out=True),
    "scan": Template(scan.ScanSchedule, scan.expand),
    "scatter_elements": Template(scatter.ScatterSchedule, scatter.expand),
    "scatter_nd": Template(scatter.ScatterSchedule, scatter.expand),
    "sort": Template(select.SelectSchedule, select.expand),
    "staged_transpose": Template(transpose.TransposeSchedule, staged_transpose.expand),
    "suppress": Template(suppress.SuppressSchedule, suppress.expand),
    "dot_attention": Template(AttentionSchedule, dot_attention.expand, laid_out=True),
    "tile_attention": Template(AttentionSchedule, tile_attention.expand, laid_out=True),
    "tile_product": Template(tile_product.TileProductSchedule, tile_product.expand, laid_out=True),
    "tile_recurrence": Template(RecurrenceSchedule, tile_recurrence.expand, laid_out=True),
    "topk": Template(select.SelectSchedule, select.expand),
    "transpose": Template(transpose.TransposeSchedule, transpose.expand),
}


# What is told of every expanded kernel, by thread.
_watching = threading.local()


@contextmanager
def watched(watcher: Callable[[ir.Operation], None]) -> Iterator[None]:
    """While the block runs, `watcher` gets every kernel module that this thread has expanded, at once: its code can be
    generated while the next one is being expanded. It may take the kernel's functions away.
    """
    _watching.watcher = watcher
    try:
        yield
    finally:
        _watching.watcher = None


class ExpandKernels(Pass):
    """Expand every kernel by the template that its schedule names."""

    dialects = ("func", "memref", "vector", "scf", "arith", "math", "cf", "llvm")

    def run(self, root: ir.OpView) -> None:
        module = root.operation
        for view in list(module.regions[0].blocks[0].operations):
            op = view.operation
            scheduled = "mlc.kernel" in op.attributes and "mlc.schedule" in op.attributes
            if scheduled and len(op.regions[0].blocks[0].operations):
                expand_kernel(op)
                if watcher := getattr(_watching, "watcher", None):
                    watcher(op)


def expand_kernel(kernel: ir.Operation, templates: Mapping[str, Template] = TEMPLATES) -> None:
    """Replace the tensor function of a kernel module by its memref and grid functions.

    Raises ValueError when the schedule names an unknown template or lacks a parameter.
    """
    schedule = read_schedule(kernel)
    name = str(schedule.pop("template"))
    if name not in templates:
        raise ValueError(f"kernel {kernel.attributes['sym_name']}: no template '{name}'; there are {sorted(templates)}")
    template = templates[name]
    parameters = fields(template.schedule)
    known = {f.name for f in parameters}
    missing = {f.name for f in parameters if f.default is MISSING} - set(schedule)
    if missing:
        raise ValueError(f"kernel {kernel.attributes['sym_name']}: schedule lacks {sorted(missing)}")
    source = kernel_source(kernel)
    with kernel.location:
        frames = template.expand(source, template.schedule(**{k: v for k, v in schedule.items() if k in known}))
        if template.laid_out:
            kernel.attributes["mlc.laid_out"] = ir.UnitAttr.get()
    source.func.operation.erase()
    for frame in frames:
        frame.finish()
