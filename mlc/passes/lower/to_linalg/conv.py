"""`conv`: explicit padding, one contraction over channels and window taps, then bias as an elementwise operation."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.generics import NEVER_NEGATIVE
from mlc.passes.adaptor import Size, element, shape_of
from mlc.passes.lower.to_linalg import lowers, scalar, winograd
from mlc.passes.lower.to_linalg.builder import Source, dim, dims, pointwise
from mlc.passes.lower.to_linalg.context import Lowering
from mlc.passes.lower.to_linalg.linalg import Signs, contraction
from mlc.passes.lower.to_linalg.sizes import divide, sizes_of
from mlc.passes.lower.to_linalg.views import collapse, expand
from mlc.passes.lower.to_linalg.windows import Layout, padded, window


@lowers("mlc.conv")
def conv(op: Lowering) -> ir.Value:
    """Ungrouped, depthwise (one channel a group and one filter a channel) and grouped convolutions."""
    value, filter_ = op.operand(0), op.operand(1)
    layout = Layout(value.type.rank, op.text("layout", "nchw") == "nhwc")
    groups = op.int("groups", 1)
    sizes = op.sizes()
    result = op.types[0].element_type
    if op.has("mlc.winograd"):
        bias = op.trailing(2)
        convolved = winograd.convolve(value, filter_, op.int("mlc.winograd", 0), op.ints("padding"), sizes)
        return convolved if bias is None else _add_bias(convolved, bias, layout.channel)
    outputs = sizes[layout.channel]
    if op.has("mlc.joined"):
        value = padded(value, layout.spatial, op.ints("padding"), 0)
        convolved = _joined(op, layout, value, filter_, sizes, result)
        bias = op.trailing(2)
        return convolved if bias is None else _add_bias(convolved, bias, layout.channel)
    depthwise = groups > 1 and groups == outputs and shape_of(value)[layout.channel] == groups
    if groups > 1 and not depthwise and layout.channels_last:
        value = _split_channels(value, [groups, shape_of(filter_)[-2]])
        filter_ = _split_channels(filter_, [groups, shape_of(filter_)[-1] // groups])
    value = padded(value, layout.spatial, op.ints("padding"), 0)
    build = _depthwise if depthwise else _plain if groups == 1 else _grouped
    convolved = build(op, layout, value, filter_, sizes, result)
    bias = op.trailing(2)
    return convolved if bias is None else _add_bias(convolved, bias, layout.channel)


def _add_bias(value: ir.Value, bias: ir.Value, channel: int) -> ir.Value:
    rank, result = value.type.rank, element(value)
    return pointwise(
        sizes_of(value),
        result,
        [Source(value, dims(rank)), Source(bias, [dim(channel)])],
        lambda args: scalar.narrow(scalar.add(scalar.widen(args[0]), scalar.widen(args[1])), result),
    )


def _windows(op: Lowering, positions: list[int], first_tap: int) -> list[ir.AffineExpr]:
    strides, dilations = op.ints("strides"), op.ints("dilations")
    return [window(p, first_tap + i, strides[i], dilations[i]) for i, p in enumerate(positions)]


def _signs(op: Lowering) -> Signs:
    return Signs((op.flag("unsigned_input"), op.flag("unsigned_filter")), op.flag(NEVER_NEGATIVE))


def _is_pointwise(op: Lowering, layout: Layout, filter_: ir.Value) -> bool:
    """Has the window one tap and no padding? Then there is nothing to sum over it."""
    extents = shape_of(filter_)[:-2] if layout.channels_last else shape_of(filter_)[2:]
    return all(e == 1 for e in extents) and not any(op.ints("padding"))


def _activation(layout: Layout, spatial: list[ir.AffineExpr], channel: list[ir.AffineExpr]) -> list[ir.AffineExpr]:
    """Exprs of an activation tensor from those of its parts."""
    return [dim(0), *spatial, *channel] if layout.channels_last else [dim(0), *channel, *spatial]


def _plain(
    op: Lowering, layout: Layout, value: ir.Value, filter_: ir.Value, sizes: list[Size], result: ir.Type
) -> ir.Value:
    """Iteration space: the result's dimensions, then taps and input channels (innermost when channels are last)."""
    rank, spatial = layout.rank, len(layout.spatial)
    out = dim(layout.channel)
    if _is_pointwise(op, layout, filter_):
        strided = [dim(p) * s for p, s in zip(layout.spatial, op.ints("strides"), strict=True)]
        first = [ir.AffineExpr.get_constant(0)] * spatial
        weights = [*first, dim(rank), out] if layout.channels_last else [out, dim(rank), *first]
        source = _activation(layout, strided, [dim(rank)])
        operands = Source(value, source), Source(filter_, weights)
        return contraction(sizes, dims(rank), "p" * rank + "r", *operands, result, _signs(op))
    first_tap = rank if layout.channels_last else rank + 1
    channel = dim(rank + spatial if layout.channels_last else rank)
    taps = [dim(first_tap + i) for i in range(spatial)]
    source = _activation(layout, _windows(op, layout.spatial, first_tap), [channel])
    weights = [*taps, channel, out] if layout.channels_last else [out, channel, *taps]
    iterators = "p" * rank + "r" * (spatial + 1)
    operands = Source(value, source), Source(filter_, weights)
    return contraction(sizes, dims(rank), iterators, *operands, result, _signs(op))


def _joined(
    op: Lowering, layout: Layout, value: ir.Value, filter_: ir.Value, sizes: list[Size], result: ir.Type
) -> ir.Value:
    """Groups whose number a filter's place says (`mlc-join-groups`): the channels are not split, so that padding and
    what reads the result are as in other convolutions."""
    rank, spatial = layout.rank, len(layout.spatial)
    *_, channels, filters = shape_of(filter_)
    out, channel = dim(layout.channel), dim(rank + spatial)
    group = ir.AffineExpr.get_floor_div(out, filters // op.int("groups", 1))
    source = _activation(layout, _windows(op, layout.spatial, rank), [group * channels + channel])
    weights = [*(dim(rank + i) for i in range(spatial)), channel, out]
    iterators = "p" * rank + "r" * (spatial + 1)
    operands = Source(value, source), Source(filter_, weights)
    return contraction(sizes, dims(rank), iterators, *operands, result, _signs(op))


def _depthwise(
    op: Lowering, layout: Layout, value: ir.Value, filter_: ir.Value, sizes: list[Size], result: ir.Type
) -> ir.Value:
    """Only the taps are summed; the filter's unit dimension is dropped by a view."""
    rank, spatial = layout.rank, len(layout.spatial)
    taps = [dim(rank + i) for i in range(spatial)]
    channel = dim(layout.channel)
    source = _activation(layout, _windows(op, layout.spatial, rank), [channel])
    if layout.channels_last:
        groups = [[i] for i in range(spatial - 1)] + [[spatial - 1, spatial], [spatial + 1]]
    else:
        groups = [[0, 1]] + [[i + 2] for i in range(spatial)]
    weights = [*taps, channel] if layout.channels_last else [channel, *taps]
    filter_ = collapse(filter_, groups)
    iterators = "p" * rank + "r" * spatial
    operands = Source(value, source), Source(filter_, weights)
    return contraction(sizes, dims(rank), iterators, *operands, result, _signs(op))


def _split_channels(value: ir.Value, extents: list[int]) -> ir.Value:
    """The last dimension as (group, channel of the group): a view."""
    rank = value.type.rank
    return expand(value, [*sizes_of(value)[:-1], *extents], [*([i] for i in range(rank - 1)), [rank - 1, rank]])


def _grouped(
    op: Lowering, layout: Layout, value: ir.Value, filter_: ir.Value, sizes: list[Size], result: ir.Type
) -> ir.Value:
    """The result has its channels split into (group, channel of the group) until a view joins them. Channels that are
    last are split in the operands too, so that each is one dimension of a plain indexing map."""
    groups, spatial = op.int("groups", 1), len(layout.spatial)
    rank, at = layout.rank + 1, layout.channel
    inputs = shape_of(filter_)[1]
    outputs = divide(sizes[at], groups)
    assert isinstance(outputs, int), "the filter's extents are static"
    first_tap = rank if layout.channels_last else rank + 1
    channel = dim(rank + spatial if layout.channels_last else rank)
    taps = [dim(first_tap + i) for i in range(spatial)]
    positions = [p if p < at else p + 1 for p in layout.spatial]
    group, out = dim(at), dim(at + 1)
    windows = _windows(op, positions, first_tap)
    if layout.channels_last:
        source, weights = _activation(layout, windows, [group, channel]), [*taps, channel, group, out]
    else:
        source = _activation(layout, windows, [group * inputs + channel])
        weights = [group * outputs + out, channel, *taps]
    split = [*sizes[:at], groups, outputs, *sizes[at + 1 :]]
    iterators = "p" * rank + "r" * (spatial + 1)
    operands = Source(value, source), Source(filter_, weights)
    value = contraction(split, dims(rank), iterators, *operands, result, _signs(op))
    return collapse(value, [[i] for i in range(at)] + [[at, at + 1]] + [[i] for i in range(at + 2, rank)])
