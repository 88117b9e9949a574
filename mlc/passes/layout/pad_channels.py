"""Pass `mlc-pad-channels`: convolutions for tensor cores get zeros as channels: theirs must be a multiple of 16 bytes.

    %0 = mlc.conv %x, %w {layout = "nhwc"} : tensor<1x224x224x3xbf16>, tensor<7x7x3x64xbf16>
becomes
    %1 = mlc.conv (mlc.pad %x), (mlc.pad %w) {layout = "nhwc"} : tensor<1x224x224x8xbf16>, tensor<7x7x8x64xbf16>

Tensor cores read pixels that are multiples of 16 bytes apart. Zeros add nothing to the sums; the padding of a weight is
a recipe of the weight store, that of an activation joins the kernel that computes it. Takes convolutions in one group
of 16-bit floats (with `f32`, of `f32` too), of images of known size.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.walk import functions, operations

MULTIPLE = 16  # bytes


class PadChannels(Pass):
    """Pads the channels of convolutions to what tensor cores read."""

    dialects = ("mlc",)
    statistics = {"padded": "convolutions that got more channels"}

    f32: bool = False
    "Convolutions of f32 too: they are rounded to tf32"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            found = [op for op in operations(function) if self._is_padded(op)]
            for op in found:
                _pad(op)
            self.count("padded", len(found))

    def _is_padded(self, op: ir.Operation) -> bool:
        return is_for_tensor_cores(op, self.f32) and missing(op.operands[0]) != 0


def is_for_tensor_cores(op: ir.Operation, f32: bool) -> bool:
    """Is `op` a convolution in one group, channels last, of images of known size (if not number) and of a type that
    tensor cores multiply?"""
    if op.name != "mlc.conv":
        return False
    conv = OpAdaptor(op)
    if conv.text("layout", "nchw") != "nhwc" or conv.int("groups", 1) != 1:
        return False
    return has_types_of_tensor_cores(op, f32)


def has_types_of_tensor_cores(op: ir.Operation, f32: bool) -> bool:
    """Are the operands of a convolution of known shape, but for the number of images, and of a type that tensor cores
    multiply?"""
    x, w = list(op.operands)[:2]
    types = (ir.BF16Type, ir.F16Type, ir.F32Type) if f32 else (ir.BF16Type, ir.F16Type)
    return isinstance(element(x), types) and isinstance(element(w), types) and has_known_size(op)


def has_known_size(op: ir.Operation) -> bool:
    """Has a convolution with channels last a filter and images of known size? How many images there are may be known
    when it runs only."""
    x, w = list(op.operands)[:2]
    return w.type.has_static_shape and DYNAMIC not in [*shape_of(x)[1:], *shape_of(op.results[0])[1:]]


def missing(x: ir.Value) -> int:
    """Elements of the last dimension, channels or filters, up to the next multiple."""
    return -shape_of(x)[-1] % (MULTIPLE * 8 // element(x).width)


def _pad(op: ir.Operation) -> None:
    x, w = list(op.operands)[:2]
    more = missing(x)
    with ir.InsertionPoint(op), op.location:
        rank = x.type.rank
        op.operands[0] = b.pad(x, [0] * rank, [0] * (rank - 1) + [more])
        rank = w.type.rank
        op.operands[1] = b.pad(w, [0] * rank, [*[0] * (rank - 2), more, 0])
