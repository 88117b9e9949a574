"""Pass `mlc-unfold-windows`: the lines of a convolution's windows become channels where there are few of those.

    %0 = mlc.conv %x, %w {strides = [2, 2], layout = "nhwc"} : tensor<1x224x224x3xbf16>, tensor<7x7x3x64xbf16>
becomes
    %g = mlc.reshape (mlc.gather (mlc.pad %x)) : tensor<1x224x112x56xbf16>      (a line of seven pixels for each)
    %0 = mlc.conv %g, (mlc.reshape %w) {strides = [2, 1], …} : tensor<1x224x112x56xbf16>, tensor<7x1x56x64xbf16>

The copy engine takes as long for a pixel of few channels as for one of many. Takes convolutions in one group of 16-bit
floats (with `f32`, of `f32` too) whose lines have at most 128 bytes; zeros make them multiples of 16 bytes.
"""

from __future__ import annotations

import numpy as np
from mlir import ir

from mlc.dialects import mlc as m
from mlc.passes.adaptor import OpAdaptor, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.layout.pad_channels import MULTIPLE, is_for_tensor_cores
from mlc.passes.walk import functions, operations

LINE = 128  # bytes that a step of the sum takes of a pixel


class UnfoldWindows(Pass):
    """Makes channels of the lines of a convolution's windows."""

    dialects = ("mlc",)
    statistics = {"unfolded": "convolutions of fewer taps"}

    f32: bool = False
    "Convolutions of f32 too: they are rounded to tf32"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            found = [op for op in operations(function) if self._is_unfolded(op)]
            for op in found:
                _unfold(op)
            self.count("unfolded", len(found))

    def _is_unfolded(self, op: ir.Operation) -> bool:
        if not is_for_tensor_cores(op, self.f32):
            return False
        return shape_of(op.operands[1])[-3] > 1 and _channels(op) is not None


def _channels(op: ir.Operation) -> int | None:
    """Channels with which a line is a multiple of 16 bytes; None when it would be too long."""
    taps, channels = shape_of(op.operands[1])[-3:-1]
    width = element(op.operands[0]).width // 8
    fitting = range(channels, LINE // (taps * width) + 1)
    return next((c for c in fitting if c * taps * width % MULTIPLE == 0), None)


def _unfold(op: ir.Operation) -> None:
    conv = OpAdaptor(op)
    x, w = list(op.operands)[:2]
    rank, spatial = x.type.rank, x.type.rank - 2
    strides, dilations, padding = (conv.ints(name) for name in ("strides", "dilations", "padding"))
    stride, dilation = strides[-1], dilations[-1]
    low, high = padding[spatial - 1], padding[-1]
    *outer, taps, channels, filters = shape_of(w)
    pixels, wanted = shape_of(op.results[0])[-2], _channels(op)
    assert wanted is not None
    more = wanted - channels
    with ir.InsertionPoint(op), op.location:
        outside = [0] * (rank - 2)
        padded = b.pad(x, [*outside, low, 0], [*outside, high, more]) if low or high or more else x
        filled = b.pad(w, [0] * rank, [*outside, more, 0]) if more else w
        places = (np.arange(pixels)[:, None] * stride + np.arange(taps) * dilation).reshape(-1)
        lines = b.gather(padded, _table(places), rank - 2, in_range=True)
        op.operands[0] = b.reshape(lines, [*shape_of(x)[:-2], pixels, taps * wanted])
        op.operands[1] = b.reshape(filled, [*outer, 1, taps * wanted, filters])
    padding[spatial - 1] = padding[-1] = 0
    strides[-1] = dilations[-1] = 1
    for name, values in (("strides", strides), ("dilations", dilations), ("padding", padding)):
        op.attributes[name] = b.integers(values)


def _table(places: np.ndarray) -> ir.Value:
    type_ = ir.RankedTensorType.get([places.size], ir.IntegerType.get_signless(64))
    return m.constant(ir.DenseElementsAttr.get(np.ascontiguousarray(places, np.int64), type=type_))
