"""Normalizations that onnxruntime's transformer optimizer writes (domain `com.microsoft`; the simplified layer
normalization stands in ONNX's own).

(onnxruntime, docs/ContribOperators.md.)
"""

from __future__ import annotations

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, normalization, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx.contrib_elementwise import DOMAIN, with_bias
from mlc.frontends.onnx.contrib_linalg import channels_first, channels_last
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.quantization import dequantized
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError


def _statistics(b: Builder, node: Node, x: Tensor, axis: int, epsilon: float, rms: bool) -> list[Tensor | None]:
    """Mean and inverse deviation in float32, outputs 1 and 2, where they are used; without a mean that is absent."""
    if not (node.wants(1) or node.wants(2)):
        return [None, None]
    wide = ew.cast(b, x, "float32")
    axes = list(range(axis, x.rank))
    if rms:
        square = reduction.statistic(b, "mean", ew.binary(b, "mul", wide, wide), axes, True)
        return [None, normalization.inverse_deviation(b, square, epsilon)]
    mean, variance = normalization.moments(b, wide, axes)
    return [mean, normalization.inverse_deviation(b, variance, epsilon)]


@onnx_op("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip_layer_norm(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """Layer norm (simplified: without mean and shift) of input + skip + bias, and that sum."""
    b, rms = g.b, node.op == "SkipSimplifiedLayerNormalization"
    epsilon = float(node.attr("epsilon", 1e-12))
    total = ew.binary(b, "add", node[0], node[1])
    total = with_bias(b, total, node.optional(3 if rms else 4))
    shift = None if rms else node.optional(3)
    y = normalization.layer_norm(b, total, node[2], shift, total.rank - 1, epsilon, rms)
    return [y, *_statistics(b, node, total, total.rank - 1, epsilon, rms), total]


@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_norm(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """Layer norm without the mean: an operator of onnxruntime in ONNX's domain. Its second output is the inverse
    deviation."""
    x = node[0]
    axis = shape.normalize_axis(node.attr("axis", -1), x.rank)
    epsilon = float(node.attr("epsilon", 1e-5))
    y = normalization.layer_norm(g.b, x, ew.cast(g.b, node[1], x.dtype), None, axis, epsilon, rms=True)
    return [y, _statistics(g.b, node, x, axis, epsilon, True)[1]]


def _embedded(
    g: GraphImporter, node: Node, tables: list[Tensor | None], mask: Tensor | None, places: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The sum of the embeddings of words, positions and segments, and how many words of each row count."""
    b, ids = g.b, node[0]
    words, positions, segments = tables
    if words is None or positions is None:
        raise NodeError("a table of embeddings is missing", "the operator requires those of words and positions")
    total = indexing.gather(b, words, ids, 0)
    if places is not None:
        total = ew.binary(b, "add", total, indexing.gather(b, positions, places, 0))
    else:
        total = ew.binary(b, "add", total, shape.window(b, positions, 0, 0, b.dim(ids, 1)))
    if segments is not None:
        total = ew.binary(b, "add", total, indexing.gather(b, segments, node[1], 0))
    if mask is None:
        return total, shape.full(b, [b.dim(ids, 0)], b.constant(0, "int32"))
    counted = ew.cast(b, ew.compare(b, "ne", mask, b.like(0, mask)), "int32")
    return total, reduction.reduce(b, "sum", counted, [1], False)


@onnx_op("EmbedLayerNormalization", domain=DOMAIN)
def embed_layer_norm(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """Layer norm of summed embeddings, the lengths that the mask gives, and the sum."""
    segments = node.optional(4) if node.optional(1) is not None else None
    tables = [node[2], node[3], segments]
    total, lengths = _embedded(g, node, tables, node.optional(7), node.optional(8))
    epsilon = float(node.attr("epsilon", 1e-12))
    return [normalization.layer_norm(g.b, total, node[5], node[6], 2, epsilon), lengths, total]


@onnx_op("QEmbedLayerNormalization", domain=DOMAIN)
def quantized_embed_layer_norm(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """The same with tables, scale and shift that are codes."""
    b = g.b
    floats: list[Tensor | None] = []
    for number, place in enumerate((2, 3, 4, 5, 6)):
        codes = node.optional(place)
        if codes is None or (place == 4 and node.optional(1) is None):
            floats.append(None)
        else:
            floats.append(dequantized(b, codes, node[8 + number], node.optional(13 + number), 0))
    total, lengths = _embedded(g, node, floats[:3], node.optional(7), None)
    y = normalization.layer_norm(b, total, floats[3], floats[4], 2, float(node.attr("epsilon", 1e-12)))
    return [y, lengths]


@onnx_op("GroupNorm", "SkipGroupNorm", domain=DOMAIN)
def group_norm(g: GraphImporter, node: Node) -> list[Tensor]:
    """Group norm of channels in the last dimension (`channels_last` 0: the second), after the sum with `skip` and a
    bias, and SiLU behind it where `activation` is 1; the sum is the second result."""
    b, x = g.b, node[0]
    last = bool(node.attr("channels_last", 1))
    if node.op == "SkipGroupNorm":
        skip = node[3]
        if skip.rank == 2:  # a value a channel
            places = [1, 2] if last else [2, 3]
            skip = shape.unsqueeze(b, skip, places)
        x = ew.binary(b, "add", x, skip)
        bias = node.optional(4)
        if bias is not None:
            x = ew.binary(b, "add", x, bias if last else normalization.per_channel(b, bias, x.rank))
    total = x
    x = channels_first(b, x) if last else x
    scale, shift = (ew.cast(b, vector, x.dtype) for vector in (node[1], node[2]))
    y = normalization.group_norm(b, x, scale, shift, int(node.required("groups")), float(node.attr("epsilon", 1e-5)))
    if node.required("activation"):
        y = ew.activation(b, "silu", y)
    return [channels_last(b, y) if last else y, total]
