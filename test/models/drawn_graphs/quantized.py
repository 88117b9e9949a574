"""Steps of quantized models: pairs of QuantizeLinear and DequantizeLinear around operators, and the operators on codes.

What is quantized is clipped to what its scale can hold. A code may differ by one where a computed number lies half way.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from models.drawn_graphs.graph import EXTENTS, F32, I8, U8, Graph, Steps, Value

step = Steps()


def _scale(g: Graph, *shape: int) -> str:
    return g.constant(g.rng.uniform(0.01, 0.05, shape), np.float32)


def _zero(g: Graph, dtype: int) -> str:
    return g.number(int(g.rng.integers(100, 150)) if dtype == U8 else g.one_of([0, 0, -3]), dtype)


def _codes(g: Graph, name: str) -> tuple[list[str], int]:
    """The operands of a dequantization: codes, scale, zero point; and their type."""
    dtype = g.one_of([U8, I8])
    parameters = [_scale(g), _zero(g, dtype)]
    return [g.intermediate("QuantizeLinear", [name, *parameters]), *parameters], dtype


def _pair(g: Graph, name: str) -> str:
    return g.intermediate("DequantizeLinear", _codes(g, name)[0])


def _weight(g: Graph, shape: tuple[int, ...], axis: int) -> str:
    """A dequantized constant of int8, with one scale for each of an axis or one for all."""
    codes = g.constant(g.rng.integers(-127, 128, shape), np.int8)
    depth = math.prod(shape) / shape[axis]
    if g.often(0.3):
        return g.intermediate("DequantizeLinear", [codes, g.constant(0.02 * depth**-0.5, np.float32)])
    scales = g.constant(g.rng.uniform(0.01, 0.02, shape[axis]) * depth**-0.5, np.float32)
    return g.intermediate("DequantizeLinear", [codes, scales, g.constant(np.zeros(shape[axis]), np.int8)], axis=axis)


def _finish(g: Graph, y: str, shape: tuple[int, ...]) -> None:
    """What follows a quantized operator: an activation perhaps, and the pair of its result."""
    if g.often(0.4):
        y = g.intermediate(g.one_of(["Relu", "Clip", "HardSwish", "Sigmoid"]), [y])
    operands, _ = _codes(g, y)
    g.add("DequantizeLinear", operands, shape)


@step(times=2, ranks=range(1, 5))
def pair(g: Graph, x: Value) -> None:
    operands, _ = _codes(g, x.name)
    g.add("DequantizeLinear", operands, x.shape, x.moved)


@step(ranks=range(2, 5))
def pair_of_channels(g: Graph, x: Value) -> None:
    axis = g.axis(x)
    dtype = g.one_of([U8, I8])
    zeros = g.rng.integers(100, 150, x.shape[axis]) if dtype == U8 else np.zeros(x.shape[axis])
    parameters = [_scale(g, x.shape[axis]), g.constant(zeros, np.uint8 if dtype == U8 else np.int8)]
    codes = g.intermediate("QuantizeLinear", [x.name, *parameters], axis=axis)
    g.add("DequantizeLinear", [codes, *parameters], x.shape, x.moved, axis=axis)


@step(times=3, ranks=range(2, 5))
def product(g: Graph, x: Value) -> None:
    """MatMul of two dequantized operands; with a bias perhaps."""
    depth, columns = x.shape[-1], g.one_of(EXTENTS)
    y = g.intermediate("MatMul", [_pair(g, x.name), _weight(g, (depth, columns), 1)])
    if g.often(0.5):
        y = g.intermediate("Add", [y, g.weight(columns)])
    _finish(g, y, (*x.shape[:-1], columns))


@step(times=2, ranks=(3, 4))
def convolution(g: Graph, x: Value) -> None:
    channels, spatial = x.shape[1], x.shape[2:]
    groups = g.one_of([1, 1, channels])
    features = g.one_of([3, 8, 16, 17]) if groups == 1 else channels
    kernel, strides = [min(g.one_of([1, 3]), n) for n in spatial], [g.one_of([1, 1, 2]) for _ in spatial]
    pads = [k // 2 for k in kernel]
    sizes = [(n + 2 * p - k) // s + 1 for n, p, k, s in zip(spatial, pads, kernel, strides, strict=True)]
    operands = [_pair(g, x.name), _weight(g, (features, channels // groups, *kernel), 0)]
    if g.often(0.6):
        operands.append(g.weight(features))
    options = {"group": groups, "strides": strides, "pads": pads * 2, "kernel_shape": kernel}
    _finish(g, g.intermediate("Conv", operands, **options), (x.shape[0], features, *sizes))


@step(times=2, ranks=range(1, 5))
def function(g: Graph, x: Value) -> None:
    """What is computed between the pairs of its operand and of its result."""
    op = g.one_of(["Sigmoid", "Tanh", "Softmax", "Relu", "Add", "Mul", "Gelu", "Concat", "Transpose"])
    a, shape = _pair(g, x.name), x.shape
    if op in ("Add", "Mul", "Concat"):
        other = g.pick(lambda v: v.shape == x.shape) or x
        options = {"axis": 0} if op == "Concat" else {}
        shape = (2 * x.shape[0], *x.shape[1:]) if op == "Concat" else x.shape
        y = g.intermediate(op, [a, _pair(g, other.name)], **options)
    elif op == "Transpose":
        order = [int(axis) for axis in g.rng.permutation(x.rank)]
        y, shape = g.intermediate(op, [a], perm=order), tuple(x.shape[axis] for axis in order)
    else:
        y = g.intermediate(op, [a])
    _finish(g, y, shape)


@step(ranks=(4,))
def pooling(g: Graph, x: Value) -> None:
    kernel = [min(2, n) for n in x.shape[2:]]
    sizes = [n - k + 1 for n, k in zip(x.shape[2:], kernel, strict=True)]
    y = g.intermediate(g.one_of(["MaxPool", "AveragePool"]), [_pair(g, x.name)], kernel_shape=kernel)
    _finish(g, y, (*x.shape[:2], *sizes))


@step(ranks=range(2, 5))
def matmul_of_codes(g: Graph, x: Value) -> None:
    """QLinearMatMul, or MatMulInteger of what is quantized when it is known."""
    depth, columns = x.shape[-1], g.one_of(EXTENTS)
    shape = (*x.shape[:-1], columns)
    weight = g.constant(g.rng.integers(-127, 128, (depth, columns)), np.int8)
    if g.often(0.5):
        y = g.add("DynamicQuantizeLinear", [x.name], x.shape, dtype=U8, unread=2)
        g.values.pop()
        codes, scale, zero = y.name, f"{y.name}_0", f"{y.name}_1"
        z = g.intermediate("MatMulInteger", [codes, weight, zero])
        z = g.intermediate("Cast", [z], to=TensorProto.FLOAT)
        factor = g.intermediate("Mul", [scale, g.number(0.02 * depth**-0.5)])
        g.add("Mul", [z, factor], shape)
    else:
        (codes, *of_x), dtype = _codes(g, x.name)
        of_w = [g.number(0.02 * depth**-0.5), g.number(0, I8)]
        of_y = [_scale(g), _zero(g, dtype)]
        z = g.intermediate("QLinearMatMul", [codes, *of_x, weight, *of_w, *of_y])
        g.add("DequantizeLinear", [z, *of_y], shape)


@step(ranks=(4,))
def convolution_of_codes(g: Graph, x: Value) -> None:
    """QLinearConv, or ConvInteger."""
    channels, features = x.shape[1], g.one_of([3, 8, 16])
    kernel = [min(3, n) for n in x.shape[2:]]
    pads = [k // 2 for k in kernel] * 2
    sizes = [n + 2 * (k // 2) - k + 1 for n, k in zip(x.shape[2:], kernel, strict=True)]
    shape = (x.shape[0], features, *sizes)
    weight = g.constant(g.rng.integers(-127, 128, (features, channels, *kernel)), np.int8)
    depth = channels * math.prod(kernel)
    dtype, of_x = U8, [_scale(g), _zero(g, U8)]
    codes = g.intermediate("QuantizeLinear", [x.name, *of_x])
    if g.often(0.5):
        z = g.intermediate("ConvInteger", [codes, weight, of_x[1]], kernel_shape=kernel, pads=pads)
        g.add("Mul", [g.intermediate("Cast", [z], to=F32), g.number(0.001 * depth**-0.5)], shape)
    else:
        of_w = [
            g.constant(g.rng.uniform(0.01, 0.02, features) * depth**-0.5, np.float32),
            g.constant(np.zeros(features), np.int8),
        ]
        of_y = [_scale(g), _zero(g, dtype)]
        bias = g.constant(g.rng.integers(-500, 500, features), np.int32)
        z = g.intermediate("QLinearConv", [codes, *of_x, weight, *of_w, *of_y, bias], kernel_shape=kernel, pads=pads)
        g.add("DequantizeLinear", [z, *of_y], shape)


@step(ranks=range(1, 5))
def product_of_few_bits(g: Graph, x: Value) -> None:
    """A weight of four or eight bits with one scale for every block of sixteen rows."""
    depth, columns = x.shape[-1], g.one_of(EXTENTS)
    if depth % 16:
        return
    dtype = g.one_of([TensorProto.INT4, TensorProto.UINT4, I8])
    drawn = g.rng.integers(0 if dtype == TensorProto.UINT4 else -8, 8, (depth, columns))
    codes = g.intermediate("Cast", [g.constant(drawn, np.int32)], to=dtype)
    scales = g.constant(g.rng.uniform(0.1, 0.2, (depth // 16, columns)) * depth**-0.5, np.float32)
    w = g.intermediate("DequantizeLinear", [codes, scales], axis=0, block_size=16)
    g.add("MatMul", [x.name, w], (*x.shape[:-1], columns))
