"""`conv_transpose`: a convolution of the input spread out with zeros, with the filter turned around."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, shape_of
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition


@decomposition("mlc.conv_transpose")
def conv_transpose(op: OpAdaptor) -> ir.Value:
    """`stride - 1` zeros go behind each element; the padding of the convolution is what is left of the kernel's reach
    (negative padding crops)."""
    x, filter_ = op.operand(0), op.operand(1)
    strides, dilations, groups = op.ints("strides"), op.ints("dilations"), op.int("groups", 1)
    spatial = len(strides)
    padding, extra = op.ints("padding"), op.ints("output_padding")
    taps = shape_of(filter_)[2:]
    if DYNAMIC in taps:
        raise ValueError(f"{op.node}: ConvTranspose needs a kernel size that is known when compiling")
    low, high = [0, 0], [0, 0]
    for i in range(spatial):
        reach = (taps[i] - 1) * dilations[i]
        low.append(reach - padding[i])
        high.append(reach - padding[spatial + i] + extra[i] - (strides[i] - 1))
    x = _spread(x, strides)
    if any(low) or any(high):
        x = b.pad(x, low, high)
    bias = op.trailing(2)
    attributes = {
        "strides": b.integers([1] * spatial),
        "padding": b.integers([0] * 2 * spatial),
        "dilations": b.integers(dilations),
        "groups": b.integer(groups),
        "layout": b.text("nchw"),
    }
    operands = [x, _turned(op, filter_, groups), *([] if bias is None else [bias])]
    return b.operation("conv", operands, attributes)[0]


def _spread(x: ir.Value, strides: list[int]) -> ir.Value:
    """`stride - 1` zeros behind each element, one dimension after the other."""
    for i, stride in enumerate(strides):
        if stride == 1:
            continue
        axis = i + 2
        own = b.sizes(x)
        apart = b.reshape(x, [*own[: axis + 1], 1, *own[axis + 1 :]])
        high = [stride - 1 if p == axis + 1 else 0 for p in range(apart.type.rank)]
        wide = b.pad(apart, [0] * apart.type.rank, high)
        x = b.reshape(wide, [*own[:axis], _times(own[axis], stride), *own[axis + 1 :]])
    return x


def _times(size: Size, factor: int) -> Size:
    return size * factor if isinstance(size, int) else arith.muli(size, b.index(factor))


def _turned(op: OpAdaptor, filter_: ir.Value, groups: int) -> ir.Value:
    """`[I, O/g, k…]` as `[O, I/g, k…]` with the taps in reverse order."""
    shape = shape_of(filter_)
    if DYNAMIC in shape:
        raise ValueError(f"{op.node}: ConvTranspose needs a filter of known shape")
    inputs, outputs, *taps = shape
    if any(t > 1 for t in taps):
        filter_ = b.slice_(filter_, [0, 0, *(t - 1 for t in taps)], shape, [1, 1, *(-1 for _ in taps)])
    if groups == 1:
        return b.transpose(filter_, [1, 0, *range(2, len(shape))])
    split = b.reshape(filter_, [groups, inputs // groups, outputs, *taps])
    swapped = b.transpose(split, [0, 2, 1, *range(3, len(shape) + 1)])
    return b.reshape(swapped, [groups * outputs, inputs // groups, *taps])
