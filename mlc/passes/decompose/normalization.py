"""Normalizations: means and variances in two passes, narrow floats in `f32`."""

from __future__ import annotations

from math import prod

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op, element, is_constant
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition

BY_CHANNEL = "mlc.by_channel"  # of a normalization of groups whose statistics are those of channels first,
IN_ROWS = "mlc.in_rows"  # and of one whose groups are made rows in memory


@decomposition("mlc.softmax")
@b.widened
def softmax(op: OpAdaptor, x: ir.Value) -> ir.Value:
    """`exp(x - max) / sum`, or `x - max - log(sum)`."""
    axes = [op.int("axis")]
    shifted = b.sub(x, b.reduce("max", x, axes))
    exponential = b.unary("exp", shifted)
    total = b.reduce("sum", exponential, axes)
    if op.flag("log"):
        return b.sub(shifted, b.unary("log", total))
    return b.div(exponential, total)


@decomposition("mlc.batch_norm")
@b.widened
def batch_norm(op: OpAdaptor, x: ir.Value) -> ir.Value:
    """`x * factor + shift` with `factor = scale / sqrt(variance + epsilon)` and `shift = bias - mean * factor`, both
    weights in inference. Behind a convolution with a constant filter they become part of it."""
    scale, bias, mean, variance = (b.cast(v, element(x)) for v in op.operands[1:])
    rank = x.type.rank
    factor = b.div(scale, b.unary("sqrt", b.add(variance, op.float("epsilon"))))
    shift = b.sub(bias, b.mul(mean, factor))
    if all(is_constant(v) for v in (factor, shift)):
        folded = _folded(x, factor, shift)
        if folded is not None:
            return folded
    if rank < 2:
        return b.add(b.mul(x, factor), shift)
    return b.add(b.mul(x, b.channelwise(factor, rank)), b.channelwise(shift, rank))


def _folded(x: ir.Value, factor: ir.Value, shift: ir.Value) -> ir.Value | None:
    """The convolution that computes `x`, with `factor` in its filter and `shift` in its bias; None where `x` is
    something else or has other uses."""
    op = defining_op(x)
    if op is None or op.name != "mlc.conv" or len(list(x.uses)) != 1:
        return None
    conv, filter_ = OpAdaptor(op), op.operands[1]
    if not is_constant(filter_) or conv.text("layout", "nchw") != "nchw":
        return None
    bias = conv.trailing(2)
    if bias is not None:
        shift = b.add(b.mul(bias, factor), shift)
    filter_ = b.mul(filter_, b.channelwise(factor, filter_.type.rank, 0))
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, [x.type], [op.operands[0], filter_, shift], attributes).results[0]


def normalized(x: ir.Value, axes: list[int], epsilon: float, *, subtract_mean: bool = True) -> ir.Value:
    """`(x - mean) / sqrt(variance + epsilon)` over `axes`."""
    centered = b.sub(x, b.mean(x, axes)) if subtract_mean else x
    square = b.mean(b.mul(centered, centered), axes)
    return b.mul(centered, b.unary("rsqrt", b.add(square, epsilon)))


@decomposition("mlc.layer_norm")
@b.widened
def layer_norm(op: OpAdaptor, x: ir.Value) -> ir.Value:
    """Over the dimensions from `axis` on; scale and bias broadcast from the right."""
    axes = list(range(op.int("axis"), x.type.rank))
    result = normalized(x, axes, op.float("epsilon"), subtract_mean=not op.flag("rms"))
    scale, bias = op.optional(1), op.optional(2)
    if scale is not None:
        result = b.mul(result, b.cast(scale, element(x)))
    return result if bias is None else b.add(result, b.cast(bias, element(x)))


@decomposition("mlc.group_norm")
@b.widened
def group_norm(op: OpAdaptor, x: ir.Value) -> ir.Value:
    """Over each group of channels of each sample; scale and bias are applied before the groups are joined again, so
    that the whole of it is one kernel over rows. With one channel a group no reshape is needed. `mlc-plan-norms` says
    where groups are no rows (`_by_channel`), or become some: then what follows is applied behind that."""
    groups, rank = op.int("groups"), x.type.rank
    scale, bias = (b.cast(v, element(x)) for v in op.operands[1:3])
    channels = x.type.shape[1]
    if channels == DYNAMIC:
        raise ValueError(f"{op.node}: group_norm needs a channel count that is known when compiling")
    if op.has(BY_CHANNEL):
        return _by_channel(x, groups, scale, bias, op.float("epsilon"))
    if channels == groups:
        result = normalized(x, list(range(2, rank)), op.float("epsilon"))
        return b.add(b.mul(result, b.channelwise(scale, rank)), b.channelwise(bias, rank))
    own = b.sizes(x)
    if op.has(IN_ROWS):
        rows = b.reshape(x, [own[0], groups, prod(x.type.shape[1:]) // groups])
        result = b.reshape(normalized(rows, [2], op.float("epsilon")), own)
        return b.add(b.mul(result, b.channelwise(scale, rank)), b.channelwise(bias, rank))
    split = b.reshape(x, [own[0], groups, channels // groups, *own[2:]])
    result = normalized(split, list(range(2, rank + 1)), op.float("epsilon"))
    scale, bias = (b.reshape(v, [1, groups, channels // groups] + [1] * (rank - 2)) for v in (scale, bias))
    return b.reshape(b.add(b.mul(result, scale), bias), own)


def _by_channel(x: ir.Value, groups: int, scale: ir.Value, bias: ir.Value, epsilon: float) -> ir.Value:
    """`x * factor + shift`, both for each channel of each sample: `x` is read three times, and nothing of its size is
    written but the result. The variance of a group is what its channels have, and what their means have (Chan, Golub
    and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979)."""
    positions = list(range(2, x.type.rank))
    mean = b.mean(x, positions, keepdims=False)
    centered = b.sub(x, b.expand_dims(mean, positions))
    variance = b.mean(b.mul(centered, centered), positions, keepdims=False)
    own, channels = b.sizes(x), x.type.shape[1]
    if channels != groups:
        each = [groups, channels // groups] if groups > 1 else [channels]
        scale, bias = (b.reshape(v, [1, *each]) for v in (scale, bias))
        mean, variance = (b.reshape(v, [own[0], *each]) for v in (mean, variance))
        apart = b.sub(mean, total := _along(mean))
        mean, variance = total, _along(b.add(variance, b.mul(apart, apart)))
    factor = b.mul(b.unary("rsqrt", b.add(variance, epsilon)), scale)
    shift = b.sub(bias, b.mul(mean, factor))
    factor, shift = (b.reshape(v, [*own[:2], *[1] * len(positions)]) for v in (factor, shift))
    return b.add(b.mul(x, factor), shift)


def _along(x: ir.Value) -> ir.Value:
    """The mean along the last dimension, which stays; the division has no dimension more than the sum, whose kernel it
    is part of then."""
    last = [x.type.rank - 1]
    return b.expand_dims(b.mean(x, last, keepdims=False), last)


@decomposition("mlc.lrn")
@b.widened
def lrn(op: OpAdaptor, x: ir.Value) -> ir.Value:
    """A sum of shifted slices of the channel-padded squares."""
    size, rank = op.int("size"), x.type.rank
    low = (size - 1) // 2
    before, after = [0] * rank, [0] * rank
    before[1], after[1] = low, size - 1 - low
    square = b.pad(b.mul(x, x), before, after)
    total = None
    for shift in range(size):
        part = b.slice_dim(square, 1, shift, b.size(x, 1))
        total = part if total is None else b.add(total, part)
    assert total is not None
    base = b.add(b.mul(total, op.float("alpha") / size), op.float("bias"))
    return b.div(x, b.binary("pow", base, op.float("beta")))


@decomposition("mlc.lp_normalize")
@b.widened
def lp_normalize(op: OpAdaptor, x: ir.Value) -> ir.Value:
    """`x / norm`, and 0 where the norm is 0."""
    axes = [op.int("axis")]
    if op.int("p") == 1:
        norm = b.reduce("sum", b.unary("abs", x), axes)
    else:
        norm = b.unary("sqrt", b.reduce("sum", b.mul(x, x), axes))
    return b.select(b.compare("eq", norm, 0), b.like(x, 0), b.div(x, norm))
