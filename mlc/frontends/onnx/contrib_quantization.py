"""Quantized operators of onnxruntime (domain `com.microsoft`), as its quantizer writes them.

Codes become floats, the operator works on floats, and its result becomes codes; passes make integer arithmetic of it.
(onnxruntime, docs/ContribOperators.md.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, linalg, normalization, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx import pool
from mlc.frontends.onnx.contrib_elementwise import DOMAIN
from mlc.frontends.onnx.contrib_linalg import channels_first, channels_last
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.quantization import dequantized, dynamically_quantized, requantized
from mlc.frontends.onnx.registry import Node, find, onnx_op
from mlc.frontends.report import NodeError

IN_BYTES = 4  # the accuracy level of `MatMulNBits` that lets floats be quantized to eight bits


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


@onnx_op("QLinearSoftmax", domain=DOMAIN)
def softmax(g: GraphImporter, node: Node) -> Tensor:
    """Shares, as codes; before opset 13 over all dimensions from `axis` on."""
    b, axis = g.b, shape.normalize_axis(node.attr("axis", -1), node[0].rank)
    x = _codes(b, node, 0)
    flattened = int(node.required("opset")) < 13
    y = normalization.softmax_flattened(b, x, axis) if flattened else normalization.softmax(b, x, axis)
    return _result(b, node, y, 3)


@onnx_op("QLinearWhere", domain=DOMAIN)
def where(g: GraphImporter, node: Node) -> Tensor:
    """A choice between codes of two scales."""
    y = ew.select(g.b, node[0], _codes(g.b, node, 1), _codes(g.b, node, 4))
    return requantized(g.b, y, node[7], node[8], 0)


@onnx_op("QLinearReduceMean", domain=DOMAIN)
def reduce_mean(g: GraphImporter, node: Node) -> Tensor:
    """Means along constant axes."""
    axes = shape.normalize_axes(node.required("axes"), node[0].rank)
    y = reduction.statistic(g.b, "mean", _codes(g.b, node, 0), axes, bool(node.required("keepdims")))
    return _result(g.b, node, y, 3)


@onnx_op("QLinearAveragePool", domain=DOMAIN)
def average_pool(g: GraphImporter, node: Node) -> Tensor:
    """Means of windows."""
    b, last = g.b, bool(node.attr("channels_last", 0))
    x = _codes(b, node, 0)
    x = channels_first(b, x) if last else x
    y = pool.average_pool(g, Node("AveragePool", "", node.name, 11, [x], node.outputs, node.attributes))
    return _result(b, node, channels_last(b, y) if last else y, 3)


@onnx_op("QLinearConv", domain=DOMAIN)
def conv(g: GraphImporter, node: Node) -> Tensor:
    """As the operator of ONNX, with channels in the last dimension where the node says so."""
    handler = find("", "QLinearConv", 10)
    assert handler is not None
    last = bool(node.attr("channels_last", 0))
    inputs = [channels_first(g.b, node[0]) if last else node[0], *node.inputs[1:]]
    y = handler(g, Node("QLinearConv", "", node.name, 10, inputs, node.outputs, node.attributes))
    assert isinstance(y, Tensor)
    return channels_last(g.b, y) if last else y


# -- weights in blocks -------------------------------------------------------------------------------------------------


@onnx_op("MatMulNBits", domain=DOMAIN)
def matmul_n_bits(g: GraphImporter, node: Node) -> Tensor:
    """A product with a weight of 2, 4 or 8 bits, `[N, blocks, bytes of a block]`, that has a scale for every block of a
    column's elements. The zero point is that of each block, or half of the range."""
    b, bits, block = g.b, int(node.attr("bits", 4)), int(node.required("block_size"))
    depth, columns = int(node.required("K")), int(node.required("N"))
    blocks = -(-depth // block)
    if bits not in (2, 4, 8):
        raise NodeError(f"weights of {bits} bits are not supported", "use 2, 4 or 8 bits")
    codes = unpacked(b, node[1], bits, [columns, blocks * block], [columns, depth])
    scale = shape.reshape(b, node[2], [columns, blocks])
    zero, order = node.optional(3), node.optional(4)
    if order is not None or (zero is not None and zero.is_float):
        return _product_by_groups(b, node, codes, scale, [columns, depth])
    if zero is None:
        zero = ew.cast(b, b.constant(1 << (bits - 1)), "uint8")
    else:
        zero = _zero_points(b, zero, bits, columns, blocks)
    attributes = {"axis": 1, "block_size": block, "bits": bits, "is_unsigned": ir.UnitAttr.get()}
    weight = b.op("dequantize", [codes, scale, zero], unsigned=False, **attributes)
    lhs_bits = 8 if int(node.attr("accuracy_level", 0)) == IN_BYTES else None
    y = linalg.matmul(b, ew.cast(b, node[0], weight.dtype), weight, False, True, lhs_bits)
    return _with_bias(b, ew.cast(b, y, node[0].dtype), node.optional(5))


def _zero_points(b: Builder, zero: Tensor, bits: int, columns: int, blocks: int) -> Tensor:
    """The zero points of all blocks, packed like the codes, as `[columns, blocks]`."""
    stride = -(-blocks * bits // 8) * 8 // bits
    return unpacked(b, zero, bits, [columns, stride], [columns, blocks])


def _product_by_groups(b: Builder, node: Node, codes: Tensor, scale: Tensor, extents: list[int]) -> Tensor:
    """The product where elements of a column say (`g_idx`) which block they belong to, or zero points are floats."""
    bits, block = int(node.attr("bits", 4)), int(node.required("block_size"))
    columns, depth = extents
    blocks = -(-depth // block)
    order, zero = node.optional(4), node.optional(3)
    if order is None:
        order = b.constant(np.arange(depth) // block, "int32")
    if zero is None:
        zero = b.like(1 << (bits - 1), scale)
    elif zero.is_float:
        zero = shape.reshape(b, zero, [columns, blocks])
    else:
        zero = ew.cast(b, _zero_points(b, zero, bits, columns, blocks), scale.dtype)
    if zero.rank:
        zero = indexing.gather(b, zero, order, 1)
    floats = ew.binary(b, "sub", ew.cast(b, codes, scale.dtype), zero)
    weight = ew.binary(b, "mul", floats, indexing.gather(b, scale, order, 1))
    y = linalg.matmul(b, ew.cast(b, node[0], weight.dtype), weight, False, True)
    return _with_bias(b, ew.cast(b, y, node[0].dtype), node.optional(5))


@onnx_op("GatherBlockQuantized", domain=DOMAIN)
def gather_block_quantized(g: GraphImporter, node: Node) -> Tensor:
    """Rows of a table of 4 or 8 bits whose last dimension has a scale for every block: looked up, then dequantized."""
    b, data, indices, scale = g.b, node[0], node[1], node[2]
    bits, block = int(node.attr("bits", 4)), int(node.attr("block_size", 128))
    rank = data.rank
    axis = shape.normalize_axis(node.attr("gather_axis", 0), rank)
    if axis != 0 or shape.normalize_axis(node.attr("quantize_axis", 1), rank) != rank - 1:
        raise NodeError("only tables that are gathered along the first axis, with blocks in the last, are supported")
    zero = node.optional(3)
    packed = data.dtype == "uint8" and bits < 8
    parts = [indexing.gather(b, x, indices, 0) for x in (data, scale)]
    codes = _spread(b, parts[0], bits) if packed else parts[0]
    if zero is not None:
        zero = indexing.gather(b, zero, indices, 0)
        zero = _spread(b, zero, bits) if packed else zero
        blocks = parts[1].shape[-1]
        if packed and blocks is not None and zero.shape[-1] != blocks:
            zero = shape.window(b, zero, zero.rank - 1, 0, blocks)
    elif data.dtype == "uint8":
        zero = b.constant(1 << (bits - 1), "uint8")
    return dequantized(b, codes, parts[1], zero, codes.rank - 1, block)


def _spread(b: Builder, packed: Tensor, bits: int) -> Tensor:
    """Bytes as numbers of `bits` bits in the last dimension, the lowest ones first."""
    each = 8 // bits
    flat = shape.unsqueeze(b, packed, [packed.rank])
    parts = [
        ew.binary(b, "and", ew.binary(b, "shr", flat, b.like(bits * i, flat)), b.like((1 << bits) - 1, flat))
        for i in range(each)
    ]
    extents = b.dims(packed)
    extents[-1] = b.arith("muli", extents[-1], each)
    return shape.reshape(b, shape.concat(b, parts, packed.rank), extents)


def unpacked(b: Builder, packed: Tensor, bits: int, full: list[int], kept: list[int]) -> Tensor:
    """Bytes as a matrix of numbers of `bits` bits, the lowest ones first: `full`, of which `kept` is used."""
    each = 8 // bits
    flat = shape.reshape(b, packed, [full[0], full[1] // each, 1])
    parts = [
        ew.binary(b, "and", ew.binary(b, "shr", flat, b.like(bits * i, flat)), b.like((1 << bits) - 1, flat))
        for i in range(each)
    ]
    joined = shape.reshape(b, shape.concat(b, parts, 2), full)
    return joined if kept == full else shape.slice_(b, joined, [0, 0], list(kept), [1, 1])
