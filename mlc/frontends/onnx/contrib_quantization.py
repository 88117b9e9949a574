"""Quantized operators of onnxruntime (domain `com.microsoft`), as its quantizer writes them.

Codes become floats, the operator works on floats, and its result becomes codes; passes make integer arithmetic of it.
(onnxruntime, docs/ContribOperators.md.)
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import linalg, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.quantization import dequantized, dynamically_quantized, requantized
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

DOMAIN = "com.microsoft"


def _codes(b: Builder, node: Node, first: int) -> Tensor:
    """The floats that operands `first` (codes), and the two behind it (scale, zero point) stand for."""
    return dequantized(b, node[first], node[first + 1], node.optional(first + 2), 0)


def _result(b: Builder, node: Node, y: Tensor, first: int) -> Tensor:
    """`y` as codes with the scale and zero point that are operands `first` and `first + 1`."""
    zero = node.optional(first + 1)
    if zero is None:
        zero = b.constant(0, node[0].dtype)
    return requantized(b, y, node[first], zero, 0)


@onnx_op("QLinearAdd", "QLinearMul", domain=DOMAIN)
def binary(g: GraphImporter, node: Node) -> Tensor:
    """Sums and products of codes."""
    kind = "add" if node.op == "QLinearAdd" else "mul"
    y = ew.binary(g.b, kind, _codes(g.b, node, 0), _codes(g.b, node, 3))
    return _result(g.b, node, y, 6)


def _pointwise(kind: str) -> Callable[[GraphImporter, Node], Tensor]:
    def importer(g: GraphImporter, node: Node) -> Tensor:
        x = _codes(g.b, node, 0)
        if kind == "sigmoid":
            y = ew.unary(g.b, "sigmoid", x)
        else:
            y = g.b.op("activation", [x], kind="leaky_relu", alpha=float(node.attr("alpha", 0.01)))
        return _result(g.b, node, y, 3)

    return importer


onnx_op("QLinearSigmoid", domain=DOMAIN)(_pointwise("sigmoid"))
onnx_op("QLinearLeakyRelu", domain=DOMAIN)(_pointwise("leaky_relu"))


@onnx_op("QLinearGlobalAveragePool", domain=DOMAIN)
def global_average_pool(g: GraphImporter, node: Node) -> Tensor:
    """Means over all positions of a channel."""
    x = _codes(g.b, node, 0)
    last = bool(node.attr("channels_last", 0))
    axes = list(range(1, x.rank - 1)) if last else list(range(2, x.rank))
    return _result(g.b, node, reduction.statistic(g.b, "mean", x, axes, True), 3)


@onnx_op("QLinearConcat", domain=DOMAIN)
def concat(g: GraphImporter, node: Node) -> Tensor:
    """Concatenation; every input has a scale and zero point of its own."""
    parts = [_codes(g.b, node, first) for first in range(2, len(node.inputs), 3)]
    y = shape.concat(g.b, parts, int(node.required("axis")))
    return requantized(g.b, y, node[0], node[1], 0)


@onnx_op("QGemm", domain=DOMAIN)
def gemm(g: GraphImporter, node: Node) -> Tensor:
    """`alpha * A * B + C`, as codes or (without a scale of the result) floats; C has the scale of products of codes."""
    b, alpha = g.b, float(node.attr("alpha", 1.0))
    across, turned = bool(node.attr("transA", 0)), bool(node.attr("transB", 0))
    lhs = dequantized(b, node[0], node[1], node[2], 0)
    rhs = dequantized(b, node[3], node[4], node[5], 0 if turned else 1)
    y = ew.scaled(b, linalg.matmul(b, lhs, rhs, across, turned), alpha)
    bias = node.optional(6)
    if bias is not None:
        scale = ew.scaled(b, ew.binary(b, "mul", node[1], node[4]), alpha)
        y = ew.binary(b, "add", y, ew.binary(b, "mul", ew.cast(b, bias, scale.dtype), scale))
    return y if node.optional(7) is None else _result(b, node, y, 7)


@onnx_op("MatMulIntegerToFloat", domain=DOMAIN)
def matmul_integer_to_float(g: GraphImporter, node: Node) -> Tensor:
    """A product of codes as floats."""
    b = g.b
    lhs = dequantized(b, node[0], node[2], node.optional(4), 0)
    rhs = dequantized(b, node[1], node[3], node.optional(5), node[1].rank - 1)
    return _with_bias(b, linalg.matmul(b, lhs, rhs), node.optional(6))


@onnx_op("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_matmul(g: GraphImporter, node: Node) -> Tensor:
    """A product of a float, quantized by its own range, and codes."""
    b = g.b
    codes, scale, zero = dynamically_quantized(b, node[0])
    lhs = dequantized(b, codes, scale, zero, 0)
    rhs = dequantized(b, node[1], node[2], node.optional(3), node[1].rank - 1)
    return _with_bias(b, linalg.matmul(b, lhs, rhs), node.optional(4))


def _with_bias(b: Builder, y: Tensor, bias: Tensor | None) -> Tensor:
    return y if bias is None else ew.binary(b, "add", y, bias)


@onnx_op("QuantizeLinear", domain=DOMAIN)
def quantize(g: GraphImporter, node: Node) -> Tensor:
    """As the operator of ONNX."""
    zero = node.optional(2)
    if zero is None:
        raise NodeError("the zero point is missing", "give one: it says what type the codes have")
    return requantized(g.b, node[0], node[1], zero, int(node.attr("axis", 1)))


@onnx_op("DequantizeLinear", domain=DOMAIN)
def dequantize(g: GraphImporter, node: Node) -> Tensor:
    """As the operator of ONNX."""
    return dequantized(g.b, node[0], node[1], node.optional(2), int(node.attr("axis", 1)))


# -- weights in blocks -------------------------------------------------------------------------------------------------


@onnx_op("MatMulNBits", domain=DOMAIN)
def matmul_n_bits(g: GraphImporter, node: Node) -> Tensor:
    """A product with a weight of 2, 4 or 8 bits, `[N, blocks, bytes of a block]`, that has a scale for every block of a
    column's elements. The zero point is that of each block, or half of the range."""
    b, bits, block = g.b, int(node.attr("bits", 4)), int(node.required("block_size"))
    depth, columns = int(node.required("K")), int(node.required("N"))
    blocks = -(-depth // block)
    if node.optional(4) is not None:
        raise NodeError("an order of the columns (g_idx) is not supported", "export the weight in its own order")
    if bits not in (2, 4, 8):
        raise NodeError(f"weights of {bits} bits are not supported", "use 2, 4 or 8 bits")
    codes = _unpacked(b, node[1], bits, [columns, blocks * block], [columns, depth])
    scale = shape.reshape(b, node[2], [columns, blocks])
    zero = node.optional(3)
    if zero is None:
        zero = ew.cast(b, b.constant(1 << (bits - 1)), "uint8")
    elif not zero.is_float:
        stride = -(-blocks * bits // 8) * 8 // bits
        zero = _unpacked(b, zero, bits, [columns, stride], [columns, blocks])
    else:
        raise NodeError("zero points that are floats are not supported", "export integers")
    weight = b.op(
        "dequantize", [codes, scale, zero], axis=1, block_size=block, is_unsigned=ir.UnitAttr.get(), unsigned=False
    )
    y = linalg.matmul(b, ew.cast(b, node[0], weight.dtype), weight, False, True)
    return _with_bias(b, ew.cast(b, y, node[0].dtype), node.optional(5))


def _unpacked(b: Builder, packed: Tensor, bits: int, full: list[int], kept: list[int]) -> Tensor:
    """Bytes as a matrix of numbers of `bits` bits, the lowest ones first: `full`, of which `kept` is used."""
    each = 8 // bits
    flat = shape.reshape(b, packed, [full[0], full[1] // each, 1])
    parts = [
        ew.binary(b, "and", ew.binary(b, "shr", flat, b.like(bits * i, flat)), b.like((1 << bits) - 1, flat))
        for i in range(each)
    ]
    joined = shape.reshape(b, shape.concat(b, parts, 2), full)
    return joined if kept == full else shape.slice_(b, joined, [0, 0], list(kept), [1, 1])
