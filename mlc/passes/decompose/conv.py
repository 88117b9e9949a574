"""`conv_transpose`: a convolution for each phase of the stride, all of them at once, whose results are interleaved; or,
where that gains nothing, a convolution of the input spread out with zeros, with the filter turned around.
"""

from __future__ import annotations

import math

from mlir import ir
from mlir.dialects import arith

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, shape_of
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition


@decomposition("mlc.conv_transpose")
def conv_transpose(op: OpAdaptor) -> ir.Value:
    """Chooses: depthwise ones are bound by memory, which zeros in registers do not change."""
    filter_ = op.operand(1)
    strides, dilations, groups = op.ints("strides"), op.ints("dilations"), op.int("groups", 1)
    inputs, _, *taps = shape_of(filter_)
    if DYNAMIC in taps:
        raise ValueError(f"{op.node}: ConvTranspose needs a kernel size that is known when compiling")
    if DYNAMIC in shape_of(filter_):
        raise ValueError(f"{op.node}: ConvTranspose needs a filter of known shape")
    apart = any(stride > 1 and dilation > 1 for stride, dilation in zip(strides, dilations, strict=True))
    if max(strides) == 1 or apart or inputs == groups:
        return _by_spreading(op)
    return _by_phases(op)


def _by_phases(op: OpAdaptor) -> ir.Value:
    """The result at `stride * q + p` sums the input at `q - j` times tap `stride * j + p` over all `j`: for each phase
    `p` a convolution of the input with every `stride`-th tap, turned around. The phases of all dimensions are channels
    of one convolution until its result is put together: `[N, g, phases, O/g, Q…]` to `[N, O, Q * stride…]`.

    (Shi et al., "Is the deconvolution layer the same as a convolutional layer?", arXiv:1609.07009.)
    """
    x, filter_, bias = op.operand(0), op.operand(1), op.trailing(2)
    strides, dilations, groups = op.ints("strides"), op.ints("dilations"), op.int("groups", 1)
    padding, extra, spatial = op.ints("padding"), op.ints("output_padding"), len(strides)
    outputs, taps = shape_of(filter_)[1], shape_of(filter_)[2:]
    steps = [-(-tap // stride) for tap, stride in zip(taps, strides, strict=True)]
    low, high, crop = [], [], [[0, 0], [0, 0]]
    for i, stride in enumerate(strides):
        reach = (steps[i] - 1) * dilations[i]
        end = taps[i] - steps[i] * stride - padding[spatial + i] + extra[i]  # what is wanted beyond the last position
        low.append(reach - padding[i] // stride)
        high.append(reach + -(-end // stride))
        crop[0].append(-(padding[i] % stride))
        crop[1].append(-(-end % stride))
    if any(low) or any(high):
        x = b.pad(x, [0, 0, *low], [0, 0, *high])
    biases = [] if bias is None else [_for_each_phase(bias, groups, outputs, strides)]
    y = _dense([x, _phases_of(filter_, groups, strides, steps), *biases], dilations, groups)
    batch, _, *positions = b.sizes(y)
    y = b.reshape(y, [batch, groups, *strides, outputs, *positions])
    order = [0, 1, 2 + spatial]
    for i in range(spatial):
        order += [3 + spatial + i, 2 + i]
    y = b.transpose(y, order)
    wide = [_times(size, stride) for size, stride in zip(positions, strides, strict=True)]
    y = b.reshape(y, [batch, groups * outputs, *wide])
    return b.pad(y, crop[0], crop[1]) if any(map(any, crop)) else y


def _dense(operands: list[ir.Value], dilations: list[int], groups: int) -> ir.Value:
    """The convolution of an input, a filter and, perhaps, a bias: every position, without padding."""
    spatial = len(dilations)
    attributes = {
        "strides": b.integers([1] * spatial),
        "padding": b.integers([0] * 2 * spatial),
        "dilations": b.integers(dilations),
        "groups": b.integer(groups),
        "layout": b.text("nchw"),
    }
    return b.operation("conv", operands, attributes)[0]


def _phases_of(filter_: ir.Value, groups: int, strides: list[int], steps: list[int]) -> ir.Value:
    """`[I, O/g, k…]` as `[g * phases * O/g, I/g, steps…]` with the taps of each phase in reverse order."""
    inputs, outputs, *taps = shape_of(filter_)
    spatial = len(taps)
    full = [step * stride for step, stride in zip(steps, strides, strict=True)]
    if full != taps:
        filter_ = b.pad(filter_, [0] * (2 + spatial), [0, 0, *(f - t for f, t in zip(full, taps, strict=True))])
    apart = [extent for pair in zip(steps, strides, strict=True) for extent in pair]
    shape = [groups, inputs // groups, outputs, *apart]
    filter_ = b.reshape(filter_, shape)
    turned = [3 + 2 * i for i in range(spatial)]
    starts = [extent - 1 if i in turned else 0 for i, extent in enumerate(shape)]
    filter_ = b.slice_(filter_, starts, shape, [-1 if i in turned else 1 for i in range(len(shape))])
    filter_ = b.transpose(filter_, [0, *(4 + 2 * i for i in range(spatial)), 2, 1, *turned])
    phases = math.prod(strides)
    return b.reshape(filter_, [groups * phases * outputs, inputs // groups, *steps])


def _for_each_phase(bias: ir.Value, groups: int, outputs: int, strides: list[int]) -> ir.Value:
    """A bias of `g * O/g` elements as one of `g * phases * O/g`."""
    phases = math.prod(strides)
    parts = b.reshape(bias, [groups, 1, outputs])
    return b.reshape(b.broadcast(parts, [groups, phases, outputs]), [groups * phases * outputs])


def _by_spreading(op: OpAdaptor) -> ir.Value:
    """`stride - 1` zeros go behind each element; the padding of the convolution is what is left of the kernel's reach
    (negative padding crops).
    """
    x, filter_ = op.operand(0), op.operand(1)
    strides, dilations, groups = op.ints("strides"), op.ints("dilations"), op.int("groups", 1)
    spatial = len(strides)
    padding, extra = op.ints("padding"), op.ints("output_padding")
    taps = shape_of(filter_)[2:]
    low, high = [0, 0], [0, 0]
    for i in range(spatial):
        reach = (taps[i] - 1) * dilations[i]
        low.append(reach - padding[i])
        high.append(reach - padding[spatial + i] + extra[i] - (strides[i] - 1))
    x = _spread(x, strides)
    if any(low) or any(high):
        x = b.pad(x, low, high)
    bias = op.trailing(2)
    biases = [] if bias is None else [bias]
    return _dense([x, _turned(filter_, groups), *biases], dilations, groups)


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


def _turned(filter_: ir.Value, groups: int) -> ir.Value:
    """`[I, O/g, k…]` as `[O, I/g, k…]` with the taps in reverse order."""
    shape = shape_of(filter_)
    inputs, outputs, *taps = shape
    if any(t > 1 for t in taps):
        filter_ = b.slice_(filter_, [0, 0, *(t - 1 for t in taps)], shape, [1, 1, *(-1 for _ in taps)])
    if groups == 1:
        return b.transpose(filter_, [1, 0, *range(2, len(shape))])
    split = b.reshape(filter_, [groups, inputs // groups, outputs, *taps])
    swapped = b.transpose(split, [0, 2, 1, *range(3, len(shape) + 1)])
    return b.reshape(swapped, [groups * outputs, inputs // groups, *taps])
