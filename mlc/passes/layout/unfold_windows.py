"""Pass `mlc-unfold-windows`: pixels of a convolution's windows become channels where there are few of those.

    %0 = mlc.conv %x, %w {strides = [2, 2], layout = "nhwc"} : tensor<1x224x224x3xbf16>, tensor<7x7x3x64xbf16>
becomes
    %p = mlc.reshape (mlc.transpose (mlc.pad %x)) : tensor<1x112x115x16xbf16>   (four pixels of four channels)
    %0 = mlc.conv %p, (mlc.reshape %w) {strides = [1, 1], …} : tensor<1x112x115x16xbf16>, tensor<4x4x16x64xbf16>

Then the four pixels of a line of a window lie together, and the copy engine brings them at once. Pixels of lines alone
become one (`tensor<1x224x115x8xbf16>`, seven lines a window) where an image has no whole number of squares. Where
windows are dilated, lines are copied one by one:

    %g = mlc.reshape (mlc.gather (mlc.pad %x)) : tensor<1x218x109x32xbf16>
    %0 = mlc.conv %g, (mlc.reshape %w) {strides = [2, 1], …} : tensor<1x218x109x32xbf16>, tensor<4x1x32x64xbf16>

Windows that touch each other without overlapping, as those that cut an image into patches, become channels as a whole:
the convolution is a product then, of any type. An image that was channels-first is cut as it was. So do windows whose
lines are further apart than the copy engine counts; their pixels are copied one by one.

The copy engine takes as long for a pixel of few channels as for one of many. Lines are taken of convolutions in one
group of 16-bit floats (with `f32`, of `f32` too) that have at most 128 bytes; zeros make them multiples of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from mlir import ir

from mlc.dialects import mlc as m
from mlc.passes.adaptor import OpAdaptor, defining_op, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.layout.pad_channels import MULTIPLE, has_known_size, is_for_tensor_cores
from mlc.passes.walk import functions, operations

MOST_STRIDE = 8  # of a dimension that the copy engine goes through
OVERLAP = 4  # times the pixels that windows may have together
LINE = 128  # bytes that a step of the sum takes of a pixel


class UnfoldWindows(Pass):
    """Makes channels of the lines of a convolution's windows."""

    dialects = ("mlc",)
    statistics = {"unfolded": "convolutions of fewer taps"}

    f32: bool = False
    "Convolutions of f32 too: they are rounded to tf32"

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            patches = [op for op in operations(function) if _is_patches(op)]
            for op in patches:
                _cut(op)
            self.count("unfolded", len(patches))
            small = [op for op in operations(function) if is_for_tensor_cores(op, self.f32) and _shared(op) is not None]
            for op in small:
                _join_squares(op) if _squares(op) is not None else _join(op)
            self.count("unfolded", len(small))
            found = [op for op in operations(function) if self._is_unfolded(op)]
            for op in found:
                _unfold(op)
            self.count("unfolded", len(found))

    def _is_unfolded(self, op: ir.Operation) -> bool:
        if not is_for_tensor_cores(op, self.f32) or _lies_together(op):
            return False
        return shape_of(op.operands[1])[-3] > 1 and _channels(op) is not None


def _is_patches(op: ir.Operation) -> bool:
    """A convolution whose windows of more than one pixel touch each other, or are far apart and overlap a little?"""
    if op.name != "mlc.conv":
        return False
    conv = OpAdaptor(op)
    plain = conv.text("layout", "nchw") == "nhwc" and conv.int("groups", 1) == 1
    if not plain or not has_known_size(op) or any(d != 1 for d in conv.ints("dilations")):
        return False
    window, strides = shape_of(op.operands[1])[:-2], conv.ints("strides")
    is_far = any(s > MOST_STRIDE for s in strides[:-1]) and prod(window) <= OVERLAP * prod(strides)
    return prod(window) > 1 and (strides == window or is_far)


def _covered(op: ir.Operation, x: ir.Value, first: int) -> ir.Value:
    """Of an image whose pixels are dimensions from `first` on, those that windows see, and zeros: side by side, or of
    windows that overlap one window behind the other."""
    conv, window, out = OpAdaptor(op), shape_of(op.operands[1])[:-2], shape_of(op.results[0])[1:-1]
    spatial, outside, behind = len(window), [0] * first, [0] * (x.type.rank - first - len(window))
    strides, low = conv.ints("strides"), conv.ints("padding")[:spatial]
    ends = [(n - 1) * s + t - p for n, s, t, p in zip(out, strides, window, low, strict=True)]
    pixels = shape_of(x)[first : first + spatial]
    for place, (end, extent) in enumerate(zip(ends, pixels, strict=True)):
        x = b.slice_dim(x, first + place, 0, end) if end < extent else x
    high = [max(0, end - extent) for end, extent in zip(ends, pixels, strict=True)]
    if any(low) or any(high):
        x = b.pad(x, [*outside, *low, *behind], [*outside, *high, *behind])
    for place, (taps, count, stride) in enumerate(zip(window, out, strides, strict=True)):
        if stride != taps:
            places = (np.arange(count)[:, None] * stride + np.arange(taps)).reshape(-1)
            x = b.gather(x, _table(places), first + place, in_range=True)
    return x


def _cut(op: ir.Operation) -> None:
    """The pixels of a window become channels: of an image that was channels-first, channel by channel."""
    x, w = list(op.operands)[:2]
    window, spatial, channels = shape_of(w)[:-2], x.type.rank - 2, shape_of(x)[-1]
    split = [e for pair in zip(shape_of(op.results[0])[1:-1], window, strict=True) for e in pair]
    source = _channels_first(x)
    with ir.InsertionPoint(op), op.location:
        images = b.size(x, 0)
        if source is not None:
            shape, first = [images, channels, *split], 2
            order, filters = [1, *range(3, 2 + 2 * spatial, 2)], b.transpose(w, [spatial, *range(spatial), spatial + 1])
        else:
            shape, first = [images, *split, channels], 1
            order, filters = [*range(2, 1 + 2 * spatial, 2), 1 + 2 * spatial], w
        outer = [0, *range(first, first + 2 * spatial, 2)]
        seen = _covered(op, x if source is None else source, first)
        patches = b.transpose(b.reshape(seen, shape), [*outer, *order])
        patches, terms = b.cast(patches, element(x)), prod(window) * channels
        op.operands[0] = b.reshape(patches, [*(shape[d] for d in outer), terms])
        op.operands[1] = b.reshape(filters, [*[1] * spatial, terms, shape_of(w)[-1]])
    op.attributes["strides"] = b.integers([1] * spatial)
    op.attributes["padding"] = b.integers([0] * (2 * spatial))


def _channels_first(x: ir.Value) -> ir.Value | None:
    """What `x` is a transposition of, channels last, for this layout's sake, before it was rounded; None for anything
    else."""
    op = defining_op(x)
    if op is None or op.name != "mlc.transpose":
        return None
    if OpAdaptor(op).ints("permutation") != [0, *range(2, x.type.rank), 1]:
        return None
    rounded = defining_op(op.operands[0])
    is_rounding = rounded is not None and rounded.name == "mlc.cast" and _is_narrower(rounded)
    return rounded.operands[0] if rounded is not None and is_rounding else op.operands[0]


def _is_narrower(cast: ir.Operation) -> bool:
    types = [element(cast.results[0]), element(cast.operands[0])]
    return all(isinstance(t, ir.FloatType) for t in types) and types[0].width < types[1].width


def _shared(op: ir.Operation) -> int | None:
    """Channels with which as many pixels as windows are apart are a multiple of 16 bytes, in a convolution whose
    windows overlap and have lines of at most `LINE` bytes of such pixels; None for others."""
    conv, (taps, channels) = OpAdaptor(op), shape_of(op.operands[1])[-3:-1]
    stride, width = conv.ints("strides")[-1], element(op.operands[0]).width // 8
    if conv.ints("dilations")[-1] != 1 or taps <= stride:
        return None
    most = LINE // (-(-taps // stride) * stride * width)
    found = next((c for c in range(channels, most + 1) if c * stride * width % MULTIPLE == 0), None)
    return None if channels * width % MULTIPLE == 0 and stride == 1 else found


def _lies_together(op: ir.Operation) -> bool:
    """Is a line of a window one piece of memory that is copied at once?"""
    conv, (taps, channels) = OpAdaptor(op), shape_of(op.operands[1])[-3:-1]
    padding, size = conv.ints("padding"), channels * (element(op.operands[0]).width // 8)
    plain = conv.ints("strides")[-1] == conv.ints("dilations")[-1] == 1
    return plain and padding[len(padding) // 2 - 1] == padding[-1] == 0 and size % MULTIPLE == 0 and taps * size <= LINE


def _join(op: ir.Operation) -> None:
    """As many pixels as windows are apart become one, which windows share."""
    conv, (x, w), channels = OpAdaptor(op), list(op.operands)[:2], _shared(op)
    rank, spatial, strides, padding = x.type.rank, x.type.rank - 2, conv.ints("strides"), conv.ints("padding")
    assert channels is not None
    *outer, taps, few, filters = shape_of(w)
    stride, pixels, out = strides[-1], shape_of(x)[-2], shape_of(op.results[0])[-2]
    pieces, low, more = -(-taps // stride), padding[spatial - 1], channels - few
    high = (out + pieces - 1) * stride - pixels - low
    source = _channels_first(x)
    with ir.InsertionPoint(op), op.location:
        if source is None:
            padded = b.pad(x, [*[0] * (rank - 2), low, 0], [*[0] * (rank - 2), high, more])
        else:
            padded = b.pad(source, [*[0] * (rank - 1), low], [0, more, *[0] * (spatial - 1), high])
            padded = b.cast(b.transpose(padded, [0, *range(2, rank), 1]), element(x))
        joined = [*b.sizes(x)[:-2], out + pieces - 1, stride * channels]
        op.operands[0] = b.reshape(padded, joined)
        filled = b.pad(w, [0] * rank, [*[0] * (rank - 3), pieces * stride - taps, more, 0])
        op.operands[1] = b.reshape(filled, [*outer, pieces, stride * channels, filters])
    padding[spatial - 1] = padding[-1] = 0
    strides[-1] = 1
    for name, values in (("strides", strides), ("padding", padding)):
        op.attributes[name] = b.integers(values)


def _squares(op: ir.Operation) -> tuple[list[int], list[int]] | None:
    """Where windows of an image are as far apart along both of its dimensions, of which each is cut into whole pieces
    of that length, and a line of a window still lies together: the pieces that a window has of each dimension, and by
    how many pixels it begins behind its first piece; None elsewhere."""
    conv, (x, w), channels = OpAdaptor(op), list(op.operands)[:2], _shared(op)
    strides, padding, taps = conv.ints("strides"), conv.ints("padding"), shape_of(w)[:-2]
    if channels is None or len(taps) != 2 or strides[0] < 2 or conv.ints("dilations")[0] != 1 or taps[0] <= strides[0]:
        return None
    behind = [-low % s for low, s in zip(padding[:2], strides, strict=True)]
    pieces = [-(-(t + more) // s) for t, more, s in zip(taps, behind, strides, strict=True)]
    line = pieces[1] * prod(strides) * channels * (element(x).width // 8)
    cut_evenly = all(p % s == 0 for p, s in zip(shape_of(x)[1:3], strides, strict=True))
    return (pieces, behind) if line <= LINE and cut_evenly and min(_high(op, pieces)) >= 0 else None


def _high(op: ir.Operation, pieces: Sequence[int]) -> list[int]:
    """Pieces behind the image that windows have."""
    conv, image, out = OpAdaptor(op), shape_of(op.operands[0])[1:3], shape_of(op.results[0])[1:3]
    each = zip(image, out, pieces, conv.ints("strides"), conv.ints("padding")[:2], strict=True)
    return [o + n - 1 - p // s - -(-low // s) for p, o, n, s, low in each]


def _join_squares(op: ir.Operation) -> None:
    """Squares of pixels become one, which windows share: windows have fewer lines then, too."""
    conv, (x, w), channels, found = OpAdaptor(op), list(op.operands)[:2], _shared(op), _squares(op)
    assert channels is not None and found is not None
    pieces, behind = found
    (down, across), padding, high = conv.ints("strides"), conv.ints("padding"), _high(op, found[0])
    (_, height, width, few), (*taps, _, filters) = shape_of(x), shape_of(w)
    low, more, size = [-(-padding[0] // down), -(-padding[1] // across)], channels - few, down * across * channels
    source = _channels_first(x)
    with ir.InsertionPoint(op), op.location:
        images, split = b.size(x, 0), [height // down, down, width // across, across]
        if source is None:
            cut = b.pad(b.reshape(x, [images, *split, few]), [0, 0, 0, low[1], 0, 0], [0, 0, 0, high[1], 0, more])
            cut = b.transpose(cut, [0, 1, 3, 2, 4, 5])
        else:
            cut = b.pad(b.reshape(source, [images, few, *split]), [0, 0, 0, 0, low[1], 0], [0, more, 0, 0, high[1], 0])
            cut = b.cast(b.transpose(cut, [0, 2, 4, 3, 5, 1]), element(x))
        op.operands[0] = b.reshape(cut, [images, height // down, width // across + low[1] + high[1], size])
        ends = [n * s - t - first for n, s, t, first in zip(pieces, (down, across), taps, behind, strict=True)]
        filled = b.reshape(
            b.pad(w, [*behind, 0, 0], [*ends, more, 0]), [pieces[0], down, pieces[1], across, channels, filters]
        )
        op.operands[1] = b.reshape(b.transpose(filled, [0, 2, 1, 3, 4, 5]), [*pieces, size, filters])
    op.attributes["strides"] = b.integers([1, 1])
    op.attributes["padding"] = b.integers([low[0], 0, high[0], 0])


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
        op.operands[0] = b.reshape(lines, [*b.sizes(x)[:-2], pixels, taps * wanted])
        op.operands[1] = b.reshape(filled, [*outer, 1, taps * wanted, filters])
    padding[spatial - 1] = padding[-1] = 0
    strides[-1] = dilations[-1] = 1
    for name, values in (("strides", strides), ("dilations", dilations), ("padding", padding)):
        op.attributes[name] = b.integers(values)


def _table(places: np.ndarray) -> ir.Value:
    type_ = ir.RankedTensorType.get([places.size], ir.IntegerType.get_signless(64))
    return m.constant(ir.DenseElementsAttr.get(np.ascontiguousarray(places, np.int64), type=type_))
