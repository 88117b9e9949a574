"""Give products, attention and reductions whose rows only a run counts copies for few rows.

```mlir
module @k1 attributes {mlc.kernel, …} { func.func @k1(%x: tensor<?x768xbf16>, …) … }
  →  module @k1 attributes {mlc.kernel, mlc.rows = 2048, …} …
     module @k1_64 attributes {mlc.kernel, mlc.rows = 64, mlc.most = 64, mlc.variant_of = "k1", …} …
```
Launches name the kernel itself; host code takes the first copy whose `mlc.most` the product of the result's dynamic
extents does not exceed. `mlc.rows` is what the schedule is chosen for: the tiles of 2,048 rows leave most of the chip
idle when there are 16. Copies that would get the schedule of one for more rows are not made. Rows that come by
hundreds, as the pixels of images do, are those of one image, of four and of sixteen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from mlc.kernels.common.analysis import is_contraction, root_operation
from mlc.kernels.common.attention import Attention, find_attention
from mlc.kernels.common.frame import KernelSource, kernel_source
from mlc.kernels.common.roles import roles_of
from mlc.passes.base import Pass
from mlc.passes.schedule.add_architectures import target_of
from mlc.passes.schedule.assign_placement import is_host_kernel
from mlc.passes.schedule.copies import MOST, VARIANT_OF, copy_kernel
from mlc.passes.schedule.gpu_cost import Schedule, choose
from mlc.passes.schedule.matrices import ROWS, matrices_of, reduction_shape
from mlc.targets.nvidia import NvidiaTarget

HUNDREDS = 256
"""Rows of which a few times as many are more than 1,024."""


@dataclass(frozen=True)
class _Rows:
    """Rows that copies of a kernel are for, and what it is for itself then (None: as many as keep the chip busy); the
    rows are `known` times the dynamic extents of the result."""

    few: tuple[int, ...]
    many: int | None
    known: int


class AddVariants(Pass):
    """Give products, attention and reductions whose rows only a run counts copies for few rows."""

    precision: str = "fp32"
    "What contractions of f32 may round their operands to: fp32 (nothing) or tf32"

    statistics = {"copied": "kernels for few rows"}

    def run(self, root: ir.OpView) -> None:
        for view in list(root.operation.regions[0].blocks[0].operations):
            op = view.operation
            if "mlc.kernel" not in op.attributes or is_host_kernel(op):
                continue
            with op.context, op.location:
                found = _rows(kernel_source(op), target_of(root.operation, op), self.precision)
                if found is not None:
                    self._add(root.operation, op, found)

    def _add(self, module: ir.Operation, kernel: ir.Operation, rows: _Rows) -> None:
        """Copies of `kernel` for few rows."""
        target = target_of(module, kernel)

        def scheduled(count: int | None) -> object:
            _note(kernel, count)
            return choose(kernel_source(kernel), target, self.precision)

        name = ir.StringAttr(kernel.attributes["sym_name"]).value
        found: list[int] = []
        larger = scheduled(rows.many)
        for count in reversed(rows.few):
            if count < rows.known or (schedule := scheduled(count)) == larger:
                continue
            found, larger = [*found, count], schedule
        _note(kernel, rows.many)
        for count in found:
            copy = copy_kernel(kernel, f"{name}_{count}", ir.InsertionPoint.after(kernel))
            _note(copy, count)
            copy.attributes[MOST] = _number(count // rows.known)
            copy.attributes[VARIANT_OF] = ir.StringAttr.get(name)
            self.count("copied", 1)


def _number(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _note(kernel: ir.Operation, rows: int | None) -> None:
    """Says how many rows the schedule of `kernel` is for."""
    if rows is not None:
        kernel.attributes[ROWS] = _number(rows)
    elif ROWS in kernel.attributes:
        del kernel.attributes[ROWS]


def _rows(source: KernelSource, target: NvidiaTarget, precision: str) -> _Rows | None:
    """The rows of a kernel of which nothing but some of their extents is dynamic; None for others."""
    attention = find_attention(source)
    if attention is not None:
        return _attended(attention)
    root = root_operation(source)
    if not is_contraction(root):
        return _reduced(source, choose(source, target, precision))
    roles, type_ = roles_of(root, source.results), root.results[0].type
    if matrices_of(source, root, precision) is None or roles is None or None in reduction_shape(root):
        return None
    known = _known(type_, roles.positions(roles.rows))
    if known is not None and known >= HUNDREDS:
        return _Rows((known, 4 * known), 16 * known, known)
    return None if known is None else _Rows((64, 128, 256, 512, 1024), 2048, known)


def _attended(attention: Attention) -> _Rows | None:
    """Tokens of self-attention, whose heads are known: as many keys as queries, and one text, are assumed."""
    out = attention.output
    order, type_ = out.order, out.op.results[0].type
    row = order.index(out.row)
    known = _known(type_, [row, *(order.index(d) for d in out.batch)])
    return _Rows((64, 128, 256), None, 1) if known is not None and type_.is_dynamic_dim(row) else None


def _reduced(source: KernelSource, schedule: Schedule) -> _Rows | None:
    """Rows that are reduced by groups of threads: more of them for each where there are few."""
    if schedule["template"] != "rows":
        return None
    known = _known(source.results[0].type, range(int(schedule["first"])))
    return None if known is None else _Rows((512,), None, known)


def _known(type_: ir.RankedTensorType, rows: Sequence[int]) -> int | None:
    """The product of the known extents `rows`, when all dynamic ones are among them; else None."""
    dynamic = [i for i in range(type_.rank) if type_.is_dynamic_dim(i)]
    if not dynamic or any(i not in rows for i in dynamic):
        return None
    return prod(type_.get_dim_size(i) for i in rows if i not in dynamic)
