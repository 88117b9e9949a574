"""Products and convolutions that onnxruntime's optimizer fuses or lays out anew (domain `com.microsoft`).

(onnxruntime, docs/ContribOperators.md.)
"""

from __future__ import annotations

from mlc.frontends.common import conv as convs
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import linalg, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx.contrib_elementwise import DOMAIN
from mlc.frontends.onnx.conv import filter_kernel, window_of
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.linalg import gemm
from mlc.frontends.onnx.pool import max_pool
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

# An activation's kind, and the defaults of its parameters where it has some.
_ACTIVATIONS: dict[str, tuple[str, list[float]]] = {
    "Elu": ("elu", [1.0]),
    "Gelu": ("gelu", []),
    "HardSigmoid": ("hard_sigmoid", [0.2, 0.5]),
    "HardSwish": ("hard_swish", []),
    "LeakyRelu": ("leaky_relu", [0.01]),
    "Relu": ("relu", []),
    "Selu": ("selu", [1.6732632423543772, 1.0507009873554805]),
    "Softplus": ("softplus", []),
    "Softsign": ("softsign", []),
    "ThresholdedRelu": ("thresholded_relu", [1.0]),
}


def activated(b: Builder, y: Tensor, name: str, parameters: list[float]) -> Tensor:
    """The activation that a fused node names, `y` itself for an empty name."""
    if name in ("Tanh", "Sigmoid"):
        return ew.unary(b, name.lower(), y)
    if name == "Clip":
        low, high = [*parameters, float("-inf"), float("inf")][:2]
        return ew.clamp(b, y, b.like(low, y), b.like(high, y))
    if not name:
        return y
    if name not in _ACTIVATIONS:
        raise NodeError(f"the activation {name} is not supported", f"use one of {', '.join(sorted(_ACTIVATIONS))}")
    kind, defaults = _ACTIVATIONS[name]
    values = [*parameters, *defaults[len(parameters) :]][: len(defaults)]
    return ew.activation(b, kind, y, *values)


def _given(node: Node) -> list[float]:
    """The parameters of an activation that are attributes of their own."""
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    return [float(node.attr(name)) for name in names if name in node.attributes]


def _batches_first(b: Builder, x: Tensor) -> Tensor:
    """Rows moved from before the batch dimensions to behind them."""
    return shape.transpose(b, x, [*range(1, x.rank - 1), 0, x.rank - 1])


@onnx_op("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=DOMAIN)
def fused_matmul(g: GraphImporter, node: Node) -> Tensor:
    """alpha * A * B, either one transposed, either one with its rows before the batch dimensions."""
    b = g.b
    lhs = _batches_first(b, node[0]) if node.attr("transBatchA", 0) else node[0]
    rhs = _batches_first(b, node[1]) if node.attr("transBatchB", 0) else node[1]
    y = linalg.matmul(b, lhs, rhs, bool(node.attr("transA", 0)), bool(node.attr("transB", 0)))
    return activated(b, ew.scaled(b, y, float(node.attr("alpha", 1.0))), node.attr("activation", ""), _given(node))


@onnx_op("FusedGemm", domain=DOMAIN)
def fused_gemm(g: GraphImporter, node: Node) -> Tensor:
    """Gemm and an activation."""
    return activated(g.b, gemm(g, node), node.attr("activation", ""), _given(node))


@onnx_op("GemmFastGelu", domain=DOMAIN)
def gemm_fast_gelu(g: GraphImporter, node: Node) -> Tensor:
    """Gelu, by its approximation with tanh, of X * W + bias."""
    y = linalg.matmul(g.b, node[0], node[1])
    bias = node.optional(2)
    return ew.activation(g.b, "gelu_tanh", y if bias is None else ew.binary(g.b, "add", y, bias))


@onnx_op("FusedConv", domain=DOMAIN)
def fused_conv(g: GraphImporter, node: Node) -> Tensor:
    """A convolution, the sum with a tensor of its result's shape, and an activation."""
    b, x, filter_ = g.b, node[0], node[1]
    window = window_of(g, node, x, filter_kernel(filter_))
    y = convs.conv(b, x, filter_, node.optional(2), window, int(node.attr("group", 1)))
    if node.optional(3) is not None:
        y = ew.binary(b, "add", y, node[3])
    return activated(b, y, node.attr("activation", ""), [float(p) for p in node.attr("activation_params", [])])


def channels_first(b: Builder, x: Tensor) -> Tensor:
    """`[N, spatial…, C]` as `[N, C, spatial…]`."""
    return shape.transpose(b, x, [0, x.rank - 1, *range(1, x.rank - 1)])


def channels_last(b: Builder, x: Tensor) -> Tensor:
    """`[N, C, spatial…]` as `[N, spatial…, C]`."""
    return shape.transpose(b, x, [0, *range(2, x.rank), 1])


@onnx_op("NhwcConv", "NhwcFusedConv", domain=DOMAIN)
def nhwc_conv(g: GraphImporter, node: Node) -> Tensor:
    """A convolution of `[N, spatial…, C]` with a filter `[O, spatial…, C / group]`, and what FusedConv adds to it."""
    b = g.b
    x, filter_ = channels_first(b, node[0]), channels_first(b, node[1])
    window = window_of(g, node, x, filter_kernel(filter_))
    y = channels_last(b, convs.conv(b, x, filter_, node.optional(2), window, int(node.attr("group", 1))))
    if node.optional(3) is not None:
        y = ew.binary(b, "add", y, node[3])
    return activated(b, y, node.attr("activation", ""), [float(p) for p in node.attr("activation_params", [])])


@onnx_op("NhwcMaxPool", domain=DOMAIN)
def nhwc_max_pool(g: GraphImporter, node: Node) -> Tensor:
    """Max pooling of `[N, spatial…, C]`."""
    x = channels_first(g.b, node[0])
    plain = Node("MaxPool", "", node.name, 12, [x], node.outputs[:1], node.attributes)
    return channels_last(g.b, max_pool(g, plain)[0])


@onnx_op("CDist", domain=DOMAIN)
def pairwise_distances(g: GraphImporter, node: Node) -> Tensor:
    """(Squared) distances of every row of A from every row of B."""
    b = g.b
    lhs, rhs = shape.unsqueeze(b, node[0], [1]), shape.unsqueeze(b, node[1], [0])
    square = reduction.statistic(b, "sum_square", ew.binary(b, "sub", lhs, rhs), [2], False)
    metric = node.attr("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        raise NodeError(f"the metric {metric} is not supported", "use euclidean or sqeuclidean")
    return square if metric == "sqeuclidean" else ew.unary(b, "sqrt", square)
