"""Softmax and normalizations."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise, normalization, reduction, shape
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import dtype_given
from mlc.frontends.torch.aten.shape import as_vectors
from mlc.frontends.torch.registry import Call, aten


@aten("softmax", "log_softmax", "_softmax", "_log_softmax")
@as_vectors
def softmax(call: Call) -> Tensor:
    """Softmax and its logarithm along `dim`."""
    x = call.tensor(0)
    x = elementwise.cast(call.b, x, dtype_given(call, "float32" if call.get("half_to_float") else x.dtype))
    return normalization.softmax(call.b, x, shape.normalize_axis(call.int(1), x.rank), "log" in call.op)


def _constant(call: Call, value: float, count: int, x: Tensor) -> Tensor:
    return call.b.constant(np.full([count], value, np.float32), x.dtype)


def _affine(call: Call, x: Tensor, channels: int | None) -> tuple[Tensor, Tensor]:
    """Scale and bias; ones and zeros where the module has none."""
    if channels is None:
        raise NodeError("the number of channels is known at run time only", "fix it with --dim")
    weight, bias = call.get("weight"), call.get("bias")
    weight = _constant(call, 1.0, channels, x) if weight is None else weight
    bias = _constant(call, 0.0, channels, x) if bias is None else bias
    return weight, bias


@aten("batch_norm")
def batch_norm(call: Call) -> Tensor:
    """Batch normalization with stored statistics, or with those of the batch where none are stored."""
    x = call.tensor(0)
    mean, variance = call.get("running_mean"), call.get("running_var")
    if call.get("training") is True and mean is not None:
        raise NodeError("batch normalization in training mode", "call model.eval() before tracing")
    if x.rank < 2:
        raise NodeError(f"batch normalization of {x}, which has no channels", "use [batch, channels, …]")
    scale, bias = _affine(call, x, x.shape[1])
    if mean is None:  # of a module that keeps none
        axes = [axis for axis in range(x.rank) if axis != 1]
        found = normalization.moments(call.b, x, axes)
        mean, variance = (shape.squeeze(call.b, value, axes) for value in found)
    return normalization.batch_norm(call.b, x, scale, bias, mean, variance, float(call.get("eps")))


@aten("_native_batch_norm_legit_no_training")
def native_batch_norm(call: Call) -> list[Tensor]:
    """Batch normalization of core ATen, whose results beside the first are for training, and empty."""
    none = call.b.constant(np.zeros([0], np.float32))
    return [batch_norm(call), none, none]


@aten("layer_norm")
def layer_norm(call: Call) -> Tensor:
    """Layer normalization over the trailing dimensions."""
    x = call.tensor(0)
    axis = x.rank - len(call.ints(1))
    return normalization.layer_norm(call.b, x, call.get("weight"), call.get("bias"), axis, float(call.get("eps")))


@aten("native_layer_norm")
def native_layer_norm(call: Call) -> list[Tensor]:
    """Layer normalization of core ATen, and the mean and inverse deviation of each row, `[…, 1, …]`."""
    x = call.tensor(0)
    axes = list(range(x.rank - len(call.ints(1)), x.rank))
    mean, variance = normalization.moments(call.b, x, axes)
    return [layer_norm(call), mean, normalization.inverse_deviation(call.b, variance, float(call.get("eps")))]


@aten("_weight_norm")
def weight_norm(call: Call) -> Tensor:
    """A direction, scaled to a length for each slice of a dimension."""
    b, direction, length = call.b, call.tensor(0), call.tensor(1)
    axis = call.int(2)
    axes = [i for i in range(direction.rank) if axis == -1 or i != shape.normalize_axis(axis, direction.rank)]
    norm = reduction.statistic(b, "l2", direction, axes, True)
    return elementwise.binary(b, "mul", direction, elementwise.binary(b, "div", length, norm))


@aten("rms_norm")
def rms_norm(call: Call) -> Tensor:
    """Root-mean-square normalization; the epsilon defaults to that of float32."""
    x = call.tensor(0)
    epsilon = call.get("eps")
    epsilon = float(np.finfo(np.float32).eps) if epsilon is None else float(epsilon)
    return normalization.layer_norm(call.b, x, call.get("weight"), None, x.rank - len(call.ints(1)), epsilon, rms=True)


@aten("group_norm", "instance_norm")
def group_norm(call: Call) -> Tensor:
    """Group normalization; instance normalization has a group per channel, or uses stored statistics.

    (With its own statistics it changes the stored ones in training, which a compiled model does not.)
    """
    b, x = call.b, call.tensor(0)
    channels = x.shape[1]
    scale, bias = _affine(call, x, channels)
    if call.op == "aten::instance_norm":
        mean, variance = call.get("running_mean"), call.get("running_var")
        if call.get("use_input_stats") is False:
            return normalization.batch_norm(b, x, scale, bias, mean, variance, float(call.get("eps")))
    groups = call.int(1) if call.op == "aten::group_norm" else channels
    assert groups is not None
    return normalization.group_norm(b, x, scale, bias, groups, float(call.get("eps")))


@aten("native_group_norm")
def native_group_norm(call: Call) -> list[Tensor]:
    """Group normalization of core ATen, and the mean and inverse deviation of each group, `[N, groups]`."""
    b, x = call.b, call.tensor(0)
    for extent in ("N", "C", "HxW"):  # those of the tensor
        call.get(extent)
    scale, bias = _affine(call, x, x.shape[1])
    groups, epsilon = int(call.get("group")), float(call.get("eps"))
    sizes = b.dims(x)
    rows: list[Size] = [sizes[0], groups, b.product([b.arith("divsi", sizes[1], groups), *sizes[2:]])]
    found = normalization.moments(b, shape.reshape(b, x, rows), [2])
    mean, variance = (shape.squeeze(b, value, [2]) for value in found)
    deviation = normalization.inverse_deviation(b, variance, epsilon)
    return [normalization.group_norm(b, x, scale, bias, groups, epsilon), mean, deviation]
