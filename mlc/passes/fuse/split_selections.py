"""Select the best elements of lines in two steps, of parts first, where `mlc.part` says so.

```mlir
%v, %i = mlc.topk %x, %c50 {axis = 1 : i64, mlc.part = 32064 : i64} : tensor<32x128256xf32> -> tensor<32x50xf32>, …
// becomes
%w, %j = mlc.topk %x, %c50 {axis = 1 : i64, part = 32064 : i64} : tensor<32x128256xf32> -> tensor<32x200xf32>, …
%v, %i = mlc.topk %w, %c50 places(%j : tensor<32x200xi64>) {axis = 1 : i64} : tensor<32x200xf32> -> tensor<32x50xf32>, …
```
`mlc-plan-parts` decides. What is best of each part comes in the order of the parts, and of equal elements the first one
first within each: the second step finds what one selection would, equal elements in their order, too.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.base import Pass
from mlc.passes.fuse.graph import host_blocks
from mlc.passes.fuse.plan_parts import PART


class SplitSelections(Pass):
    """Select the best elements of lines in two steps, of parts first, where mlc.part says so."""

    statistics = {"split": "selections done in two steps"}

    def run(self, root: ir.OpView) -> None:
        for block in host_blocks(root.operation):
            for op in [view.operation for view in block.operations]:
                if op.name == "mlc.topk" and PART in op.attributes:
                    with ir.InsertionPoint(op), op.location:
                        _split(op)
                    self.count("split", 1)


def _split(op: ir.Operation) -> None:
    tensor, k = op.operands[0], op.operands[1]
    axis, part = (ir.IntegerAttr(op.attributes[name]).value for name in ("axis", PART))
    shape = list(tensor.type.shape)
    shape[axis] = -(-shape[axis] // part) * op.results[0].type.shape[axis]
    given = {name: op.attributes[name] for name in op.attributes if name != PART}
    of_parts = [ir.RankedTensorType.get(shape, result.type.element_type) for result in op.results]
    best = ir.Operation.create("mlc.topk", of_parts, [tensor, k], {**given, "part": op.attributes[PART]})
    made = ir.Operation.create("mlc.topk", [r.type for r in op.results], [best.results[0], k, best.results[1]], given)
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
