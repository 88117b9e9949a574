"""Pass `mlc-group-channels`: a normalization of channels that are groups of others is one of groups.

    %s = mlc.reshape %x [2, 32, 6272]                 : tensor<2x64x14x14xf32> -> tensor<2x32x…xf32>
    %n = mlc.group_norm %s, %scale, %bias {groups = 32} : tensor<2x32x…xf32>, tensor<32xf32>, tensor<32xf32>
    %y = mlc.reshape %n [2, 64, 14, 14]
becomes
    %y = mlc.group_norm %x, (%scale, each element twice), (%bias, each twice) {groups = 32} : tensor<2x64x14x14xf32>

Exporters write it for ONNX, which had no normalization of groups before opset 21. The image keeps its dimensions, and
with them the layout of the convolutions around it.
"""

from __future__ import annotations

from mlir import ir

from mlc.dims import DimAnalysis
from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op, readers
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import replace
from mlc.passes.walk import functions, operations


class GroupChannels(Pass):
    """Makes normalizations of channels that are groups of others normalizations of groups."""

    dialects = ("mlc", "arith", "tensor")
    statistics = {"grouped": "normalizations whose input is no reshape any more"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            analysis = DimAnalysis(function)
            found = [op for op in operations(function) if op.name == "mlc.group_norm" and _is_of_groups(op, analysis)]
            for op in found:
                _rewrite(op)
                self.count("grouped")


def _is_of_groups(op: ir.Operation, analysis: DimAnalysis) -> bool:
    """Is each channel of what `op` normalizes a group of channels of a tensor that is reshaped, and is the result
    reshaped back and nothing else?"""
    split, back = defining_op(op.operands[0]), readers(op.results[0])
    if split is None or split.name != "mlc.reshape" or not back or any(r.name != "mlc.reshape" for r in back):
        return False
    x, number = split.operands[0], OpAdaptor(op).int("groups")
    channels, groups = (v.type.shape[1] if v.type.rank > 1 else DYNAMIC for v in (x, op.operands[0]))
    if DYNAMIC in (channels, groups) or number != groups or channels % groups:
        return False
    own, between = analysis.dims(x), analysis.dims(op.operands[0])
    return own[0] == between[0] and all(analysis.dims(r.results[0]) == own for r in back)


def _rewrite(op: ir.Operation) -> None:
    """Normalizes what was reshaped, and drops the reshapes back."""
    view, split, back = OpAdaptor(op), defining_op(op.operands[0]), readers(op.results[0])
    assert split is not None
    x = split.operands[0]
    times = x.type.shape[1] // view.int("groups")
    attributes = {name: op.attributes[name] for name in op.attributes}
    with ir.InsertionPoint(op), op.location:
        vectors = [_each(vector, times) for vector in view.operands[1:]]
        whole = b.operation("group_norm", [x, *vectors], attributes, types=[x.type])
    for reshape in back:
        replace(reshape, whole)
    op.erase()


def _each(vector: ir.Value, times: int) -> ir.Value:
    """Every element of `vector`, `times` times."""
    count = vector.type.shape[0]
    return b.reshape(b.broadcast(b.expand_dims(vector, [1]), [count, times]), [count * times])
