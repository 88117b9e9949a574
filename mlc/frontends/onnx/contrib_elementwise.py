"""Elementwise operators of onnxruntime (domain `com.microsoft`), and those that are ONNX's under another name.

(onnxruntime, docs/ContribOperators.md.)
"""

from __future__ import annotations

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import normalization, shape
from mlc.frontends.common.builder import Builder, Tensor, unit
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Handler, Node, Result, find, onnx_op
from mlc.frontends.report import NodeError

DOMAIN = "com.microsoft"


def with_bias(b: Builder, y: Tensor, bias: Tensor | None) -> Tensor:
    """`y` plus what broadcasts to it, if there is any."""
    return y if bias is None else ew.binary(b, "add", y, bias)


@onnx_op("Gelu", domain=DOMAIN)
def gelu(g: GraphImporter, node: Node) -> Tensor:
    """x / 2 * (1 + erf(x / sqrt(2)))."""
    return ew.activation(g.b, "gelu", node[0])


@onnx_op("BiasGelu", domain=DOMAIN)
def bias_gelu(g: GraphImporter, node: Node) -> Tensor:
    """Gelu of a sum."""
    return ew.activation(g.b, "gelu", ew.binary(g.b, "add", node[0], node[1]))


@onnx_op("FastGelu", domain=DOMAIN)
def fast_gelu(g: GraphImporter, node: Node) -> Tensor:
    """Gelu by its approximation with tanh, of a sum where there is a bias."""
    return ew.activation(g.b, "gelu_tanh", with_bias(g.b, node[0], node.optional(1)))


@onnx_op("QuickGelu", domain=DOMAIN)
def quick_gelu(g: GraphImporter, node: Node) -> Tensor:
    """x * sigmoid(alpha * x)."""
    x = node[0]
    return ew.binary(g.b, "mul", x, ew.unary(g.b, "sigmoid", ew.scaled(g.b, x, float(node.attr("alpha", 1.702)))))


@onnx_op("BiasSplitGelu", domain=DOMAIN)
def bias_split_gelu(g: GraphImporter, node: Node) -> Tensor:
    """The sum with a bias in two halves of the last dimension: the left one times gelu of the right one."""
    b = g.b
    y = ew.binary(b, "add", node[0], node[1])
    half = b.arith("divsi", b.dim(y, y.rank - 1), 2)
    left, right = (shape.window(b, y, y.rank - 1, start, half) for start in (0, half))
    return ew.binary(b, "mul", left, ew.activation(b, "gelu", right))


@onnx_op("BiasAdd", domain=DOMAIN)
def bias_add(g: GraphImporter, node: Node) -> Tensor:
    """x + bias + skip."""
    return ew.fold(g.b, "add", node.present())


@onnx_op("BiasSoftmax", domain=DOMAIN)
def bias_softmax(g: GraphImporter, node: Node) -> Tensor:
    """Softmax of `data + bias` over all dimensions from `axis` on. The bias lacks dimensions before `axis`: the first
    ones (outer broadcast), or, with `is_inner_broadcast`, the ones next to it."""
    b, x, bias = g.b, node[0], node[1]
    axis = shape.normalize_axis(node.attr("axis", 1), x.rank)
    if node.required("is_inner_broadcast") and bias.rank < x.rank:
        kept = axis - (x.rank - bias.rank)
        extents = b.dims(bias)
        bias = shape.reshape(b, bias, [*extents[:kept], *[1] * (x.rank - bias.rank), *extents[kept:]])
    return normalization.softmax_flattened(b, ew.binary(b, "add", x, bias), axis)


@onnx_op("BiasDropout", "BitmaskBiasDropout", domain=DOMAIN)
def bias_dropout(g: GraphImporter, node: Node) -> Tensor:
    """For inference: data + bias + residual."""
    training = node.optional(4)
    if training is not None and (training.constant is None or training.constant.any()):
        raise NodeError("dropout in training mode is not supported", "export the model for inference")
    return ew.fold(g.b, "add", [value for value in node.inputs[:3] if value is not None])


@onnx_op("ExpandDims", domain=DOMAIN)
def expand_dims(g: GraphImporter, node: Node) -> Tensor:
    """A new dimension of extent 1 at a constant position."""
    axis = node[1].constant
    if axis is None:
        raise NodeError("the axis is known only at run time", "make it a constant")
    return shape.unsqueeze(g.b, node[0], [int(axis.ravel()[0])])


def _same_as(op: str, version: int) -> Handler:
    """The importer of ONNX's own operator of the same name."""

    def importer(g: GraphImporter, node: Node) -> Result:
        handler = find("", op, version)
        assert handler is not None
        given = Node(op, "", node.name, version, node.inputs, node.outputs, node.attributes)
        return handler(g, given)

    return importer


onnx_op("Trilu", domain=DOMAIN)(_same_as("Trilu", 14))
onnx_op("GatherND", domain=DOMAIN)(_same_as("GatherND", 13))
onnx_op("GridSample", domain=DOMAIN)(_same_as("GridSample", 16))
onnx_op("Pad", domain=DOMAIN)(_same_as("Pad", 13))
onnx_op("Range", domain=DOMAIN)(_same_as("Range", 11))


@onnx_op("Unique", domain=DOMAIN)
def unique(g: GraphImporter, node: Node) -> list[Tensor]:
    """The values of a vector as they first appear, where each element is among them, and how often they occur."""
    operation = g.b.emit("unique", [node[0]], sorted=False, is_unsigned=unit(node[0].unsigned))
    values, _, inverse, counts = operation.results
    return [Tensor(values, node[0].unsigned), Tensor(inverse), Tensor(counts)]
