"""Combine lines of running sums in parts, which begin with what comes before them, where `mlc.part` says so.

```mlir
%s = mlc.scan sum %x {axis = 0 : i64, mlc.part = 5000 : i64} : tensor<1000000xf32>
// becomes
%a = tensor.expand_shape %x [[0, 1]] output_shape [200, 5000] : tensor<1000000xf32> into tensor<200x5000xf32>
%t = linalg.generic … sum over %a : tensor<200xf32>
%b = mlc.scan sum %t {axis = 0 : i64} : tensor<200xf32>
%s = mlc.scan sum %x before(%b : tensor<200xf32>) {axis = 0 : i64, part = 5000 : i64} : tensor<1000000xf32>
```
`mlc-plan-parts` decides. Nobody asks what the last part in the order of the scan comes to: where it has fewer elements
than the others, only these are summed up. What parts come to has the type that elements are combined in, so that
results of 16 bits are rounded once.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import tensor

from mlc.passes.adaptor import element
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import host_blocks
from mlc.passes.fuse.plan_parts import PART
from mlc.passes.lower.to_linalg.builder import Source, dim, pointwise
from mlc.passes.lower.to_linalg.reduction import reduce_axes


class SplitScans(Pass):
    """Combine lines of running sums in parts, which begin with what comes before them, where mlc.part says so."""

    dialects = ("linalg", "tensor", "arith")
    statistics = {"split": "scans done in parts"}

    def run(self, root: ir.OpView) -> None:
        for block in host_blocks(root.operation):
            for op in [view.operation for view in block.operations]:
                if op.name == "mlc.scan" and PART in op.attributes:
                    with ir.InsertionPoint(op), op.location:
                        _split(op)
                    self.count("split", 1)


def _split(op: ir.Operation) -> None:
    value, kind = op.operands[0], ir.StringAttr(op.attributes["kind"]).value
    axis, part = (ir.IntegerAttr(op.attributes[name]).value for name in ("axis", PART))
    count = -(-value.type.shape[axis] // part)
    if count < 2:
        raise ValueError(f"mlc-split-scans: a line with {PART} = {part} has no parts: {op}")
    rest = value.type.shape[axis] - (count - 1) * part
    is_equal, is_reverse = rest == part, ir.BoolAttr(op.attributes["reverse"]).value
    first = rest if is_reverse and not is_equal else 0
    parts = _in_parts(value, axis, first, count if is_equal else count - 1, part)
    totals = reduce_axes(parts, [axis + 1], kind)
    given = {name: op.attributes[name] for name in op.attributes if name not in (PART, "exclusive")}
    inclusive = {**given, "exclusive": ir.BoolAttr.get(False)}
    before = ir.Operation.create("mlc.scan", [totals.type], [totals], inclusive).results[0]
    attributes = {**given, "exclusive": op.attributes["exclusive"], "part": op.attributes[PART]}
    made = ir.Operation.create("mlc.scan", [value.type], [value, before], attributes)
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()


def _in_parts(value: ir.Value, axis: int, first: int, count: int, part: int) -> ir.Value:
    """`count` times `part` elements of `axis`, from element `first` on, in two dimensions: a view of all, or a copy of
    some that is made where they are read."""
    shape = list(value.type.shape)
    cut = [*shape[:axis], count, part, *shape[axis + 1 :]]
    if shape[axis] == count * part:
        apart = [[i if i <= axis else i + 1] for i in range(len(shape))]
        apart[axis].append(axis + 1)
        return tensor.expand_shape(ir.RankedTensorType.get(cut, element(value)), value, apart, [], cut)
    exprs = [dim(i if i <= axis else i + 1) for i in range(len(shape))]
    exprs[axis] = dim(axis) * part + dim(axis + 1) + first
    return pointwise(cut, element(value), [Source(value, exprs)], lambda args: args[0])
