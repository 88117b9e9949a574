"""Normalizations and softmax."""

from __future__ import annotations

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import normalization as common
from mlc.frontends.common import reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError


@onnx_op("Softmax", "LogSoftmax")
def softmax_flattened(g: GraphImporter, node: Node) -> Tensor:
    """Before opset 13: over all dimensions from `axis` on."""
    axis = shape.normalize_axis(node.attr("axis", 1), node[0].rank)
    return common.softmax_flattened(g.b, node[0], axis, node.op == "LogSoftmax")


@onnx_op("Softmax", "LogSoftmax", since=13)
def softmax(g: GraphImporter, node: Node) -> Tensor:
    """Along one axis."""
    axis = shape.normalize_axis(node.attr("axis", -1), node[0].rank)
    return common.softmax(g.b, node[0], axis, node.op == "LogSoftmax")


@onnx_op("BatchNormalization")
def batch_norm(g: GraphImporter, node: Node) -> list[Tensor]:
    """With given statistics, or (training_mode) with those of the batch, and then their running means."""
    b, x = g.b, node[0]
    scale, bias, mean, variance = node[1], node[2], node[3], node[4]
    epsilon = float(node.attr("epsilon", 1e-5))
    if not node.attr("training_mode", 0):
        if not node.attr("spatial", 1) and mean.rank != 1:
            raise NodeError("spatial=0 is not supported", "export the model with opset 9 or newer")
        parameters = [ew.cast(b, vector, x.dtype) for vector in (scale, bias, mean, variance)]
        return [common.batch_norm(b, x, parameters[0], parameters[1], parameters[2], parameters[3], epsilon)]
    axes = [axis for axis in range(x.rank) if axis != 1]
    now = [reduction.statistic(b, kind, x, axes, False) for kind in ("mean", "variance")]
    y = common.batch_norm(b, x, scale, bias, now[0], now[1], epsilon)
    keep = float(node.attr("momentum", 0.9))
    running = [
        ew.binary(b, "add", ew.scaled(b, old, keep), ew.scaled(b, ew.cast(b, new, old.dtype), 1 - keep))
        for old, new in ((mean, now[0]), (variance, now[1]))
    ]
    return [y, *running]


@onnx_op("InstanceNormalization")
def instance_norm(g: GraphImporter, node: Node) -> Tensor:
    """Group norm with a group for each channel."""
    groups = common.channel_count(node[0], node[1])
    return common.group_norm(g.b, node[0], node[1], node[2], groups, float(node.attr("epsilon", 1e-5)))


@onnx_op("GroupNormalization")
def group_norm(g: GraphImporter, node: Node) -> Tensor:
    """Opset 18 has a scale for each group, opset 21 one for each channel."""
    b, x, scale, bias = g.b, node[0], node[1], node[2]
    groups = int(node.required("num_groups"))
    if node.version < 21:
        times = common.channel_count(x) // groups
        scale, bias = (_repeated(b, vector, times) for vector in (scale, bias))
    return common.group_norm(b, x, scale, bias, groups, float(node.attr("epsilon", 1e-5)))


def _repeated(b: Builder, vector: Tensor, times: int) -> Tensor:
    extent = b.dim(vector, 0)
    spread = shape.broadcast(b, shape.unsqueeze(b, vector, [1]), [extent, times])
    return shape.reshape(b, spread, [b.arith("muli", extent, times)])


@onnx_op("LayerNormalization")
def layer_norm(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """The result, and on demand the mean and the inverse deviation."""
    b, x = g.b, node[0]
    axis = shape.normalize_axis(node.attr("axis", -1), x.rank)
    epsilon = float(node.attr("epsilon", 1e-5))
    y = common.layer_norm(b, x, node.optional(1), node.optional(2), axis, epsilon)
    if not (node.wants(1) or node.wants(2)):
        return [y]
    wide = ew.cast(b, x, "float32") if x.dtype != "float64" and node.attr("stash_type", 1) == 1 else x
    mean, variance = common.moments(b, wide, list(range(axis, x.rank)))
    return [y, mean, common.inverse_deviation(b, variance, epsilon)]


@onnx_op("RMSNormalization")
def rms_norm(g: GraphImporter, node: Node) -> Tensor:
    """Layer norm without the mean."""
    axis = shape.normalize_axis(node.attr("axis", -1), node[0].rank)
    return common.layer_norm(g.b, node[0], node[1], None, axis, float(node.attr("epsilon", 1e-5)), rms=True)


@onnx_op("LRN")
def lrn(g: GraphImporter, node: Node) -> Tensor:
    """Local response normalization across channels."""
    alpha, beta = float(node.attr("alpha", 1e-4)), float(node.attr("beta", 0.75))
    size, bias = int(node.required("size")), float(node.attr("bias", 1.0))
    return g.b.op("lrn", [node[0]], size=size, alpha=alpha, beta=beta, bias=bias)


@onnx_op("LpNormalization")
def lp_normalize(g: GraphImporter, node: Node) -> Tensor:
    """Division by the 1- or 2-norm along an axis."""
    axis = shape.normalize_axis(node.attr("axis", -1), node[0].rank)
    return g.b.op("lp_normalize", [node[0]], axis=axis, p=int(node.attr("p", 2)))


@onnx_op("MeanVarianceNormalization")
def mean_variance(g: GraphImporter, node: Node) -> Tensor:
    """(x - mean) / (deviation + 1e-9) over `axes`, the deviation from the raw moments as ONNX has it."""
    b, x = g.b, node[0]
    axes = shape.normalize_axes(node.attr("axes", [0, 2, 3]), x.rank)
    mean = reduction.statistic(b, "mean", x, axes, True)
    square = reduction.statistic(b, "mean", ew.binary(b, "mul", x, x), axes, True)
    variance = ew.binary(b, "sub", square, ew.binary(b, "mul", mean, mean))
    deviation = ew.binary(b, "add", ew.unary(b, "sqrt", variance), b.like(1e-9, x))
    return ew.binary(b, "div", ew.binary(b, "sub", x, mean), deviation)


def heads_first(b: Builder, x: Tensor, heads: int) -> Tensor:
    """`[batch, seq, heads * dim]` as `[batch, heads, seq, dim]`."""
    hidden = b.dim(x, 2)
    sizes: list[Size] = [b.dim(x, 0), b.dim(x, 1), heads, b.arith("divsi", hidden, heads)]
    return shape.transpose(b, shape.reshape(b, x, sizes), [0, 2, 1, 3])
