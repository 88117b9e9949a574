"""Sliding blocks of images as columns, and back."""

from __future__ import annotations

from mlc.frontends.common import indexing, shape, vision
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.torch.registry import Call, aten


def _four(call: Call) -> tuple[list[int], list[int], list[int], list[int]]:
    """Kernel, dilation, padding and stride, of which each has one number for both dimensions, or two."""
    names = ("kernel_size", "dilation", "padding", "stride")
    given = (call.ints(call.names.index(name)) for name in names)
    kernel, dilation, padding, stride = (values * 2 if len(values) == 1 else values for values in given)
    return kernel, dilation, padding, stride


@aten("im2col")
def im2col(call: Call) -> Tensor:
    """`[batch, channels * block, positions]` of `[batch, channels, height, width]`; the batch may be missing."""
    b, x = call.b, call.tensor(0)
    kernel, dilation, padding, stride = _four(call)
    images = x if x.rank == 4 else shape.unsqueeze(b, x, [0])
    none: list[Size] = [0, 0, *padding]
    images = shape.pad(b, images, none, none)
    batch, channels, *extents = b.dims(images)
    places = vision.block_places(b, extents, kernel, stride, dilation)
    flat = shape.reshape(b, images, [batch, channels, b.product(extents)])
    blocks = indexing.gather(b, flat, places, 2)
    rows = b.arith("muli", channels, kernel[0] * kernel[1])
    columns = shape.reshape(b, blocks, [batch, rows, b.dim(places, 1)])
    return columns if x.rank == 4 else shape.squeeze(b, columns, [0])


@aten("col2im")
def col2im(call: Call) -> Tensor:
    """The sums of blocks that overlap, as images of a given size."""
    b, x, size = call.b, call.tensor(0), call.sizes(1)
    kernel, dilation, padding, stride = _four(call)
    columns = x if x.rank == 3 else shape.unsqueeze(b, x, [0])
    images = vision.col2im(b, columns, size * 2 if len(size) == 1 else size, kernel, stride, dilation, padding * 2)
    return images if x.rank == 3 else shape.squeeze(b, images, [0])
