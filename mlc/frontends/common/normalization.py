"""Normalizations."""

from __future__ import annotations

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError


def softmax(b: Builder, x: Tensor, axis: int, log: bool = False) -> Tensor:
    """`mlc.softmax` along a normalised axis."""
    return b.op("softmax", [x], axis=axis, log=log)


def softmax_flattened(b: Builder, x: Tensor, axis: int, log: bool = False) -> Tensor:
    """Softmax over all dimensions from `axis` on together (ONNX before opset 13)."""
    if all(extent == 1 for extent in x.shape[axis + 1 :]):
        return softmax(b, x, axis, log)
    flat = softmax(b, shape.flatten(b, x, axis), 1, log)
    return shape.reshape(b, flat, b.dims(x))


def batch_norm(
    b: Builder, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, epsilon: float
) -> Tensor:
    """`mlc.batch_norm` with channels on axis 1 of an input of rank 2 or more."""
    return b.op("batch_norm", [x, scale, bias, mean, variance], epsilon=epsilon)


def layer_norm(
    b: Builder, x: Tensor, scale: Tensor | None, bias: Tensor | None, axis: int, epsilon: float, rms: bool = False
) -> Tensor:
    """`mlc.layer_norm` over the dimensions from `axis` on."""
    return b.op("layer_norm", [x, scale, bias], axis=axis, epsilon=epsilon, rms=rms)


def channel_count(x: Tensor, scale: Tensor | None = None) -> int:
    """The extent of dimension 1, which a scale with an element a channel says, too. Raises NodeError where neither is
    known."""
    count = x.shape[1]
    if count is None and scale is not None:
        count = scale.shape[0]
    if count is None:
        raise NodeError("the number of channels is known only at run time", "fix the input's shape")
    return count


def group_norm(b: Builder, x: Tensor, scale: Tensor, bias: Tensor, groups: int, epsilon: float) -> Tensor:
    """`mlc.group_norm`; `scale` and `bias` have an element a channel."""
    channels = channel_count(x, scale)
    if x.shape[1] is None:
        message = "a tensor and the scale of its normalization have different numbers of channels"
        shape.require_same(b, b.dim(x, 1), channels, message)
        x = shape.reshape(b, x, [b.dim(x, 0), channels, *b.dims(x)[2:]])
    return b.op("group_norm", [x, scale, bias], groups=groups, epsilon=epsilon)


def per_channel(b: Builder, vector: Tensor, rank: int) -> Tensor:
    """A rank-1 tensor shaped to broadcast along axis 1 of a tensor of `rank`."""
    sizes: list[Size] = [b.dim(vector, 0), *([1] * (rank - 2))]
    return shape.reshape(b, vector, sizes)


def moments(b: Builder, x: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
    """Mean and (biased) variance over `axes`, kept with extent 1."""
    mean = reduction.statistic(b, "mean", x, axes, True)
    return mean, reduction.statistic(b, "variance", x, axes, True)


def inverse_deviation(b: Builder, variance: Tensor, epsilon: float) -> Tensor:
    """1 / sqrt(variance + epsilon)."""
    return ew.unary(b, "rsqrt", ew.binary(b, "add", variance, b.like(epsilon, variance)))
