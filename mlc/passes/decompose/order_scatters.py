"""Pass `mlc-order-scatters`: updates that replace elements, of which the last one stays, are found by their numbers.

```mlir
%0 = mlc.scatter_elements %x, %i, %u {axis = 0 : i64, reduction = "none"} : tensor<9xf32>, tensor<500xi64>, …
// becomes
%n = mlc.scatter_elements %none, %i, %numbers {axis = 0 : i64, reduction = "max"} : tensor<9xi32>, …    -1: no update
%v = mlc.gather %u, max(%n, 0) {axis = 0 : i64, mlc.in_range}
%0 = mlc.select %n >= 0, %v, %x
```
For GPUs: the largest number does not depend on the order in which threads come, so that every thread may have an
update, and the result is that of one update after the other. Scatters of few updates one after the other
(`nvidia/scatter.py`), and those into what a loop carries, stay.
"""

from __future__ import annotations

import math
from functools import reduce

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.nvidia.scatter import SCATTERS, in_order
from mlc.passes.adaptor import Size, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.walk import functions, operations


class OrderScatters(Pass):
    """Updates that replace elements, of which the last one stays, are found by their numbers."""

    dialects = ("mlc", "arith", "tensor")
    statistics = {"ordered": "scatters whose last updates are found first"}

    longest: int = 64
    "The most updates that a thread takes one after the other"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in operations(function):
                if op.name in SCATTERS and self._is_long(op):
                    _order(op)
                    self.count("ordered", 1)

    def _is_long(self, op: ir.Operation) -> bool:
        is_number = isinstance(element(op.operands[0]), ir.IntegerType | ir.FloatType)
        if ir.StringAttr(op.attributes["reduction"]).value != "none" or not is_number:
            return False
        if op.name == "mlc.scatter_nd" and not shape_of(op.operands[1])[-1] > 0:
            return False
        line, _ = in_order(op.operands[2].type, op)
        return (line is None or line > self.longest) and not _is_carried(op)


def _is_carried(op: ir.Operation) -> bool:
    """Does a loop carry what is updated? One step is written without a copy of the others."""
    owner = op.operands[0].owner
    return isinstance(owner, ir.Block) and owner.owner.operation.name != "func.func"


def _order(op: ir.Operation) -> None:
    x, indices, updates = op.operands
    with ir.InsertionPoint(op), op.location:
        if op.name == "mlc.scatter_elements":
            slices, depth = b.sizes(updates), len(b.sizes(x))
        else:
            slices, depth = b.sizes(indices)[:-1], shape_of(indices)[-1]
        tail = b.sizes(x)[depth:]
        count = _product(slices)
        is_short = isinstance(count, int) and count < 1 << 31
        type_ = ir.IntegerType.get_signless(32) if is_short else b.i64()
        numbers = b.reshape(b.arange(count, type_), slices)
        none = b.broadcast(b.scalar(-1, type_), b.sizes(x)[:depth])
        attributes = {name: op.attributes[name] for name in op.attributes} | {"reduction": b.text("max")}
        [last] = b.operation(op.name.removeprefix("mlc."), [none, indices, numbers], attributes)
        found = b.gather(b.reshape(updates, [count, *tail]), b.maximum(last, 0), 0, in_range=True)
        is_updated = b.compare("ge", last, 0)
        if tail:
            is_updated = b.expand_dims(is_updated, list(range(depth, depth + len(tail))))
        op.results[0].replace_all_uses_with(b.select(is_updated, found, x))
    op.erase()


def _product(extents: list[Size]) -> Size:
    known = [e for e in extents if isinstance(e, int)]
    if len(known) == len(extents):
        return math.prod(known)
    return reduce(lambda total, extent: arith.muli(total, b.index(extent)), extents[1:], b.index(extents[0]))
