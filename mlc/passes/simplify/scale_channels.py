"""Pass `mlc-scale-channels`: a depthwise convolution of one tap is a multiplication.

    %y = mlc.conv %x, %w bias(%b) {groups = 48, …} : tensor<1x48x16x16xf32>, tensor<48x1x1x1xf32> -> …
becomes
    %y = %x * (%w as 1x48x1x1) + (%b as 1x48x1x1)

which any kernel takes in. Networks that are trained with branches have them (MobileOne, FastViT).
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, element
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import replace
from mlc.passes.walk import functions, operations


class ScaleChannels(Pass):
    """Makes depthwise convolutions of one tap multiplications."""

    dialects = ("mlc", "arith", "tensor")
    statistics = {"scaled": "convolutions that are multiplications"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in operations(function):
                if op.name == "mlc.conv" and _is_scale(OpAdaptor(op)):
                    _scale(OpAdaptor(op))
                    self.count("scaled")


def _is_scale(op: OpAdaptor) -> bool:
    """Has every channel one tap, and a result at each of its points?"""
    x, filter_ = op.operands[:2]
    channels, *taps = filter_.type.shape
    is_plain = op.text("layout", "nchw") == "nchw" and element(x) == element(filter_) == op.types[0].element_type
    is_everywhere = not any(op.ints("padding")) and all(stride == 1 for stride in op.ints("strides"))
    return is_plain and is_everywhere and set(taps) == {1} and op.int("groups", 1) == channels == x.type.shape[1]


def _scale(op: OpAdaptor) -> None:
    x, filter_, bias = op.operands[0], op.operands[1], op.trailing(2)
    rank = x.type.rank
    with ir.InsertionPoint(op.op), op.op.location:
        result = b.mul(x, b.reshape(filter_, [1, filter_.type.shape[0], *[1] * (rank - 2)]))
        if bias is not None:
            result = b.add(result, b.channelwise(b.cast(bias, element(x)), rank))
    replace(op.op, [result])
