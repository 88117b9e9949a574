"""Pass `mlc-split-softmax`: shares of all columns but one, which only counts, are computed without putting it there.

    %c = mlc.concat %scores, %sink {axis = 2 : i64} : tensor<8x64x64xf32>, tensor<8x64x1xf32> -> tensor<8x64x65xf32>
    %s = mlc.softmax %c {axis = 2 : i64} : tensor<8x64x65xf32>
    %y = mlc.slice %s [0, 0, 0] [8, 64, 64] [1, 1, 1] : tensor<8x64x65xf32> -> tensor<8x64x64xf32>
becomes
    %top = max(the largest of %scores, %sink)
    %p = exp(%scores - %top)
    %y = %p / (the sum of %p + exp(%sink - %top))

Exporters of PyTorch write attention with a sink so: a key that has a score and no value. Between two products it is
attention then (`mlc/kernels/common/attention.py`), and no copy of the scores is made. The largest element may have been
subtracted before, which changes nothing.
"""

from __future__ import annotations

from mlir import ir

from mlc.dims import DimAnalysis
from mlc.passes.adaptor import OpAdaptor, defining_op, element
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import replace
from mlc.passes.walk import functions, operations


class SplitSoftmax(Pass):
    """Computes a softmax of which one column is not wanted without that column."""

    dialects = ("mlc", "arith", "tensor")
    statistics = {"split": "softmaxes with a column that is only counted"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            slices = [op for op in operations(function) if op.name == "mlc.slice" and _reads_softmax(op)]
            if not slices:
                continue
            analysis = DimAnalysis(function)
            found = [(op, parts) for op in slices if (parts := _parts(op, analysis)) is not None]
            for op, (scores, sink) in reversed(found):  # what later ones read is still there
                with ir.InsertionPoint(op), op.location:
                    replace(op, [_shares(scores, sink, element(op.results[0]))])
                self.count("split")


def _reads_softmax(op: ir.Operation) -> bool:
    """Does a slice alone read a softmax over the last dimension?"""
    source = defining_op(op.operands[0])
    if source is None or source.name != "mlc.softmax" or len(list(source.results[0].uses)) != 1:
        return False
    view = OpAdaptor(source)
    return not view.flag("log") and view.int("axis") == op.operands[0].type.rank - 1


def _parts(op: ir.Operation, analysis: DimAnalysis) -> tuple[ir.Value, ir.Value] | None:
    """The columns that the slice takes, and the one that it leaves out: the operands of a concatenation."""
    softmax = defining_op(op.operands[0])
    assert softmax is not None
    joined = defining_op(_before_shift(softmax.operands[0]))
    axis = op.operands[0].type.rank - 1
    if joined is None or joined.name != "mlc.concat" or len(joined.operands) != 2:
        return None
    if OpAdaptor(joined).int("axis") != axis:
        return None
    view = OpAdaptor(op)
    offsets = view.mixed("offsets", view.segments()[1])
    if any(o != 0 for o in offsets[:-1]) or any(s != 1 for s in view.mixed("strides", view.segments()[3])):
        return None
    kept, other = joined.operands if offsets[-1] == 0 else reversed(list(joined.operands))
    if offsets[-1] not in (0, 1) or other.type.shape[axis] != 1:
        return None
    same = zip(analysis.dims(op.results[0]), analysis.dims(kept), strict=True)
    return (kept, other) if all(analysis.equal(mine, its) for mine, its in same) else None


def _before_shift(x: ir.Value) -> ir.Value:
    """`x` before its largest elements along the last dimension were subtracted, if they were."""
    op = defining_op(x)
    if op is None or op.name != "mlc.binary" or OpAdaptor(op).text() != "sub":
        return x
    largest = defining_op(op.operands[1])
    if largest is None or largest.name != "mlc.reduce" or largest.operands[0] != op.operands[0]:
        return x
    view = OpAdaptor(largest)
    of_rows = view.text() == "max" and view.ints("axes") == [x.type.rank - 1] and view.flag("keepdims")
    return op.operands[0] if of_rows else x


def _shares(scores: ir.Value, sink: ir.Value, result: ir.Type) -> ir.Value:
    """The softmax of `scores`, with `sink` in its sum."""
    scores, sink = b.cast(scores, b.f32()), b.cast(sink, b.f32())
    last = [scores.type.rank - 1]
    top = b.maximum(b.reduce("max", scores, last), sink)
    powers = b.unary("exp", b.sub(scores, top))
    total = b.add(b.reduce("sum", powers, last), b.unary("exp", b.sub(sink, top)))
    return b.cast(b.div(powers, total), result)
