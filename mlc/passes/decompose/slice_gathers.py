"""Pass `mlc-slice-gathers`: a gather of one place that is known is a slice.

    %0 = mlc.gather %x, %two {axis = 0} : tensor<3x4x5xf32>, tensor<i64> -> tensor<4x5xf32>
becomes
    %s = mlc.slice %x [2, 0, 0] [1, 4, 5] [1, 1, 1] : tensor<3x4x5xf32> -> tensor<1x4x5xf32>
    %0 = mlc.reshape %s [4, 5]

So that what is asked of operations that only move elements need not be asked of gathers. Takes tensors of known shape
and places inside of them.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import constant_array, replace
from mlc.passes.walk import functions, operations


class SliceGathers(Pass):
    """Makes slices of gathers of one known place."""

    dialects = ("mlc",)
    statistics = {"sliced": "gathers that are slices"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            found = [op for op in operations(function) if op.name == "mlc.gather"]
            self.count("sliced", sum(_slice(op) for op in found))


def _slice(op: ir.Operation) -> bool:
    x, indices = op.operands
    places = constant_array(indices)
    if places is None or places.size != 1 or not x.type.has_static_shape:
        return False
    axis = OpAdaptor(op).int("axis")
    extent, place = shape_of(x)[axis], int(places.reshape(-1)[0])
    place += extent if place < 0 else 0
    if not 0 <= place < extent:
        return False
    with ir.InsertionPoint(op), op.location:
        replace(op, [b.reshape(b.slice_dim(x, axis, place, 1), shape_of(op.results[0]))])
    return True
