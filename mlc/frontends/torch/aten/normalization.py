"""Softmax and normalizations."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise, normalization, reduction, shape
from mlc.frontends.common.builder import Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import dtype_given
from mlc.frontends.torch.registry import Call, aten


@aten("softmax", "log_softmax", "_softmax", "_log_softmax")
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
    """Batch normalization with stored statistics."""
    x = call.tensor(0)
    if call.get("training") is True:
        raise NodeError("batch normalization in training mode", "call model.eval() before tracing")
    scale, bias = _affine(call, x, x.shape[1])
    mean, variance = call.get("running_mean"), call.get("running_var")
    return normalization.batch_norm(call.b, x, scale, bias, mean, variance, float(call.get("eps")))


@aten("_native_batch_norm_legit_no_training")
def native_batch_norm(call: Call) -> list[Tensor | None]:
    """Batch normalization of core ATen, whose results beside the first are for training."""
    return [batch_norm(call), None, None]


@aten("layer_norm")
def layer_norm(call: Call) -> Tensor:
    """Layer normalization over the trailing dimensions."""
    x = call.tensor(0)
    axis = x.rank - len(call.ints(1))
    return normalization.layer_norm(call.b, x, call.get("weight"), call.get("bias"), axis, float(call.get("eps")))


@aten("native_layer_norm")
def native_layer_norm(call: Call) -> list[Tensor | None]:
    """Layer normalization of core ATen, whose results beside the first are for training."""
    return [layer_norm(call), None, None]


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
    """Group normalization; instance normalization has a group per channel."""
    x = call.tensor(0)
    channels = x.shape[1]
    if call.op == "aten::instance_norm" and call.get("use_input_stats") is False:
        raise NodeError("instance normalization with stored statistics is not supported", "use batch normalization")
    scale, bias = _affine(call, x, channels)
    groups = call.int(1) if call.op == "aten::group_norm" else channels
    assert groups is not None
    return normalization.group_norm(call.b, x, scale, bias, groups, float(call.get("eps")))


@aten("native_group_norm")
def native_group_norm(call: Call) -> list[Tensor | None]:
    """Group normalization of core ATen, whose results beside the first are for training."""
    x = call.tensor(0)
    for extent in ("N", "C", "HxW"):  # those of the tensor
        call.get(extent)
    scale, bias = _affine(call, x, x.shape[1])
    groups, epsilon = int(call.get("group")), float(call.get("eps"))
    return [normalization.group_norm(call.b, x, scale, bias, groups, epsilon), None, None]
