"""Quantized operators; QLinear ones are imported as dequantize, float operator, quantize."""

from __future__ import annotations

import numpy as np
from mlir import ir

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import linalg, reduction, shape, types
from mlc.frontends.common.builder import Builder, Tensor, unit
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.onnx.values import elem_dtype


def _parameter(b: Builder, tensor: Tensor, x: Tensor) -> Tensor:
    """A scale or zero point; a single element counts as per-tensor."""
    if tensor.rank == 1 and tensor.shape[0] == 1:
        return shape.reshape(b, tensor, [])
    return tensor


_ZERO_POINTS = 1 << 16  # elements of a zero point that are looked at


def _zero_point(b: Builder, zero: Tensor | None, x: Tensor) -> Tensor | None:
    """A zero point; constant ones that are all equal are one scalar, and none when they are zero, so that the compiler
    need not look at them to know."""
    if zero is None:
        return None
    values = b.values(zero, _ZERO_POINTS)
    if values is None or not values.size or types.is_float(zero.element):
        return _parameter(b, zero, x)
    first = values.ravel()[0]
    if not (values == first).all():
        return _parameter(b, zero, x)
    return b.constant(np.asarray(first), zero.dtype) if first != 0 else None


def dequantized(b: Builder, x: Tensor, scale: Tensor, zero: Tensor | None, axis: int, block_size: int = 0) -> Tensor:
    """(x - zero) * scale, in the type of the scale."""
    return b.op(
        "dequantize",
        [x, _parameter(b, scale, x), _zero_point(b, zero, x)],
        axis=axis,
        block_size=block_size,
        is_unsigned=unit(x.unsigned),
    )


def quantized(
    b: Builder, x: Tensor, scale: Tensor, zero: Tensor | None, dtype: str, axis: int, block_size: int = 0
) -> Tensor:
    """saturate(round(x / scale) + zero) as `dtype`."""
    if not scale.is_float:  # integers over an integer
        x, scale = ew.cast(b, x, "float32"), ew.cast(b, scale, "float32")
    result = ir.RankedTensorType.get(x.type.shape, types.element_type(dtype))
    return b.op(
        "quantize",
        [x, _parameter(b, scale, x), _zero_point(b, zero, x)],
        [result],
        axis=axis,
        block_size=block_size,
        is_unsigned=unit(types.is_unsigned(dtype)),
        unsigned=types.is_unsigned(dtype),
    )


def requantized(b: Builder, y: Tensor, scale: Tensor, zero: Tensor, axis: int) -> Tensor:
    """A float result in the type of its zero point."""
    return quantized(b, y, scale, zero, zero.dtype, axis)


@onnx_op("QuantizeLinear")
def quantize(g: GraphImporter, node: Node) -> Tensor:
    """The type comes from the zero point, or `output_dtype`, or is uint8."""
    zero = node.optional(2)
    given = int(node.attr("output_dtype", 0))
    dtype = zero.dtype if zero is not None else elem_dtype(given) if given else "uint8"
    axis, block = _placement(node)
    return quantized(g.b, node[0], node[1], zero, dtype, axis, block)


@onnx_op("DequantizeLinear")
def dequantize(g: GraphImporter, node: Node) -> Tensor:
    """The type is the scale's, or `output_dtype`."""
    axis, block = _placement(node)
    y = dequantized(g.b, node[0], node[1], node.optional(2), axis, block)
    given = int(node.attr("output_dtype", 0))
    return ew.cast(g.b, y, elem_dtype(given)) if given else y


def _placement(node: Node) -> tuple[int, int]:
    rank = node[0].rank
    scale = node[1]
    axis = int(node.attr("axis", 1))
    if scale.rank == 0 or rank == 0 or (scale.rank == 1 and scale.shape[0] == 1):
        return 0, 0
    return shape.normalize_axis(axis, rank), int(node.attr("block_size", 0))


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize(g: GraphImporter, node: Node) -> list[Tensor]:
    """uint8 with the scale and zero point that the range of the input gives."""
    return list(dynamically_quantized(g.b, node[0]))


def dynamically_quantized(b: Builder, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The codes, scale and zero point of `x` in uint8, from the range of `x` and zero."""
    axes = list(range(x.rank))
    zero = b.like(0, x)
    high = ew.binary(b, "max", reduction.reduce(b, "max", x, axes, False), zero)
    low = ew.binary(b, "min", reduction.reduce(b, "min", x, axes, False), zero)
    scale = ew.binary(b, "div", ew.binary(b, "sub", high, low), b.like(255, x))
    point = ew.binary(b, "div", ew.unary(b, "neg", low), scale)
    point = ew.unary(b, "round", ew.clamp(b, point, zero, b.like(255, x)))
    zero_point = ew.cast(b, point, "uint8")
    return quantized(b, x, scale, zero_point, "uint8", 0), scale, zero_point


@onnx_op("QLinearMatMul")
def qlinear_matmul(g: GraphImporter, node: Node) -> Tensor:
    """A product of quantized matrices; rank-1 parameters run along rows on the left and columns on the right."""
    b = g.b
    lhs = dequantized(b, node[0], node[1], node[2], max(node[0].rank - 2, 0))
    rhs = dequantized(b, node[3], node[4], node[5], max(node[3].rank - 1, 0))
    y = linalg.matmul(b, lhs, rhs)
    return requantized(b, y, node[6], node[7], max(y.rank - 2, 0))
