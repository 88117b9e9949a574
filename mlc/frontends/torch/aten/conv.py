"""Convolutions."""

from __future__ import annotations

from mlc.frontends.common import conv, shape
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.common.conv import Window
from mlc.frontends.torch.registry import Call, Handler, aten, called


def spread(values: list[int], rank: int) -> list[int]:
    """One value for every spatial dimension."""
    return values * rank if len(values) == 1 else values


def _of_one(call: Call, handler: Handler) -> Tensor:
    """A convolution of an input without a batch dimension."""
    batch = shape.unsqueeze(call.b, call.tensor(0), [0])
    result: Tensor = called(call, handler, [batch, *call.given()[1:]])
    return shape.squeeze(call.b, result, [0])


@aten("_convolution", "_convolution_mode", "convolution", "conv1d", "conv2d", "conv3d")
def convolution(call: Call) -> Tensor:
    """Convolutions with padding as numbers, "same" or "valid"; transposed ones through `_convolution`."""
    x, filter_ = call.tensor(0), call.tensor(1)
    if x.rank == filter_.rank - 1:
        return _of_one(call, convolution)
    spatial = x.rank - 2
    kernel = [extent or 0 for extent in filter_.shape[2:]]
    strides, dilations = (spread(call.ints(call.names.index(n)), spatial) for n in ("stride", "dilation"))
    groups = int(call.get("groups", 1))
    padding = call.get("padding")
    low: list[Size]
    high: list[Size]
    if isinstance(padding, str):
        spans = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
        low = [s // 2 if padding == "same" else 0 for s in spans]
        high = [s - s // 2 if padding == "same" else 0 for s in spans]
    else:
        low = list(spread(call.ints(call.names.index("padding")), spatial))
        high = list(low)
    window = Window(kernel, strides, dilations, low, high)
    bias = call.get("bias")
    if call.get("transposed", False):
        extra = spread(call.ints(call.names.index("output_padding")), spatial)
        return conv.conv_transpose(call.b, x, filter_, bias, window, groups, extra)
    call.get("output_padding")  # of transposed ones
    return conv.conv(call.b, x, filter_, bias, window, groups)


@aten("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed(call: Call) -> Tensor:
    """Transposed convolutions."""
    x, filter_ = call.tensor(0), call.tensor(1)
    if x.rank == filter_.rank - 1:
        return _of_one(call, transposed)
    spatial = x.rank - 2
    names = ("stride", "padding", "output_padding", "dilation")
    strides, padding, extra, dilations = (spread(call.ints(call.names.index(n)), spatial) for n in names)
    kernel = [extent or 0 for extent in filter_.shape[2:]]
    window = Window(kernel, strides, dilations, list(padding), list(padding))
    return conv.conv_transpose(call.b, x, filter_, call.get("bias"), window, int(call.get("groups", 1)), extra)
