"""Steps on numbers of 32 bits: functions, reductions, products, convolutions, normalizations, images.

What decides by comparison (ArgMax, casts to integers, Where) reads only values that were moved, not computed: two right
programs may round differently.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from models.drawn_graphs.graph import EXTENTS, MOST, Graph, Steps, Value

step = Steps()


@step(times=3)
def elementwise(g: Graph, x: Value) -> None:
    op = g.one_of(
        ["Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Erf", "Gelu", "LeakyRelu", "HardSwish", "Softplus", "Cos", "Elu"]
        + ["HardSigmoid", "Mish", "Softsign", "Sqrt", "Exp", "Clip"]
    )
    if op == "Sqrt":
        g.add(op, [g.intermediate("Abs", [x.name])], x.shape)
    elif op == "Exp":
        g.add(op, [g.intermediate("Clip", [x.name, g.number(-3), g.number(2)])], x.shape)
    elif op == "Clip":
        g.add(op, [x.name, g.number(-1), g.number(1)], x.shape, x.moved)
    else:
        g.add(op, [x.name], x.shape, x.moved and op in ("Relu", "Abs", "Neg"))


@step(times=3)
def broadcast(g: Graph, x: Value) -> None:
    """With another value that fits, or with a constant of fewer dimensions or extents of 1."""
    other = g.companion(x)
    op = g.one_of(["Add", "Sub", "Mul", "Max", "Min"])
    operands = [x.name, other.name][:: g.one_of([1, -1])]
    moved = x.moved and other.moved and op in ("Max", "Min")
    g.add(op, operands, np.broadcast_shapes(x.shape, other.shape), moved)


@step(ranks=range(1, 6))
def reduction(g: Graph, x: Value) -> None:
    op = g.one_of(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp"])
    axes, shape, options = g.reduced(x)
    y = g.add(op, [x.name, axes], shape, x.moved and op in ("ReduceMax", "ReduceMin"), **options)
    if op == "ReduceSum":
        g.add("Mul", [y.name, g.number((math.prod(shape) / x.size) ** 0.5)], shape)


@step(ranks=range(1, 6))
def along_an_axis(g: Graph, x: Value) -> None:
    op = g.one_of(["Softmax", "LogSoftmax", "CumSum", "LayerNormalization"])
    axis = g.axis(x)
    if op == "CumSum":
        options = {name: int(g.often(0.5)) for name in ("exclusive", "reverse")}
        g.add(op, [x.name, g.constant(axis)], x.shape, **options)
    elif op == "LayerNormalization":
        g.add(op, [x.name, g.weight(*x.shape[axis:]), g.weight(*x.shape[axis:])], x.shape, axis=axis)
    else:
        g.add(op, [x.name], x.shape, axis=axis)


@step(ranks=(2, 3, 4))
def per_channel(g: Graph, x: Value) -> None:
    channels = x.shape[1]
    if g.often(0.5):
        spread = g.constant(np.abs(g.rng.standard_normal(channels)) + 0.5, np.float32)
        vectors = [g.weight(channels) for _ in range(3)]
        g.add("BatchNormalization", [x.name, *vectors, spread], x.shape)
    elif x.rank > 2:
        g.add("InstanceNormalization", [x.name, g.weight(channels), g.weight(channels)], x.shape)


@step(ranks=range(1, 5))
def product(g: Graph, x: Value) -> None:
    """With a constant, or with itself transposed."""
    depth = x.shape[-1]
    if x.rank < 2 or g.often(0.6):
        columns = g.one_of(EXTENTS)
        g.add("MatMul", [x.name, g.weight(depth, columns, scale=depth**-0.5)], [*x.shape[:-1], columns])
        return
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    turned = g.add("Transpose", [x.name], [x.shape[axis] for axis in order], x.moved, perm=order)
    y = g.add("MatMul", [x.name, turned.name], [*x.shape[:-1], x.shape[-2]])
    g.add("Mul", [y.name, g.number(depth**-0.5)], y.shape)


@step(ranks=(2,))
def gemm(g: Graph, x: Value) -> None:
    turned, other = int(g.often(0.5)), int(g.often(0.5))
    rows, depth = x.shape[::-1] if turned else x.shape
    columns = g.one_of(EXTENTS)
    sizes = (columns, depth) if other else (depth, columns)
    operands = [x.name, g.weight(*sizes, scale=depth**-0.5), g.weight(columns)]
    g.add("Gemm", operands, [rows, columns], transA=turned, transB=other, alpha=1.5)


@step(ranks=(4,))
def attention(g: Graph, x: Value) -> None:
    *_, length, depth = x.shape
    keys, values = (g.intermediate("MatMul", [x.name, g.weight(depth, depth, scale=depth**-0.5)]) for _ in range(2))
    scores = g.intermediate("MatMul", [x.name, g.intermediate("Transpose", [keys], perm=[0, 1, 3, 2])])
    scores = g.intermediate("Mul", [scores, g.number(depth**-0.5)])
    if g.often(0.5):
        scores = g.intermediate("Add", [scores, g.weight(length)])
    g.add("MatMul", [g.intermediate("Softmax", [scores], axis=-1), values], x.shape)


@step(times=2, ranks=(3, 4))
def convolution(g: Graph, x: Value) -> None:
    channels, spatial = x.shape[1], x.shape[2:]
    groups = g.one_of([1, 1, channels])
    features = g.one_of([1, 3, 8, 16, 17]) if groups == 1 else channels * g.one_of([1, 2])
    kernel, strides = [min(g.one_of([1, 3, 5]), n) for n in spatial], [g.one_of([1, 1, 2]) for _ in spatial]
    pads = [k // 2 for k in kernel]
    sizes = [(n + 2 * p - k) // s + 1 for n, p, k, s in zip(spatial, pads, kernel, strides, strict=True)]
    depth = channels // groups
    filters = g.weight(features, depth, *kernel, scale=(depth * math.prod(kernel)) ** -0.5)
    bias = [g.weight(features)] if g.often(0.6) else []
    options = {"group": groups, "strides": strides, "pads": pads * 2, "kernel_shape": kernel}
    g.add("Conv", [x.name, filters, *bias], [x.shape[0], features, *sizes], **options)


@step(ranks=(4,))
def image(g: Graph, x: Value) -> None:
    """Pooling and resizing, and a transposed convolution."""
    batch, channels, *spatial = x.shape
    kind = g.one_of(["MaxPool", "AveragePool", "GlobalAveragePool", "Resize", "ConvTranspose"])
    if kind == "GlobalAveragePool":
        g.add(kind, [x.name], [batch, channels, 1, 1])
    elif kind == "Resize":
        factor, mode = g.one_of([2, 3]), g.one_of(["nearest", "linear"])
        if x.size * factor**2 <= MOST:
            scales = g.constant([1, 1, factor, factor], np.float32)
            g.add(kind, [x.name, "", scales], [batch, channels, *(n * factor for n in spatial)], mode=mode)
    elif kind == "ConvTranspose":
        features, size, stride = g.one_of([1, 3, 8]), g.one_of([2, 3]), g.one_of([1, 2])
        sizes = [(n - 1) * stride + size for n in spatial]
        if batch * features * math.prod(sizes) <= MOST:
            filters = g.weight(channels, features, size, size, scale=(channels * size * size) ** -0.5)
            g.add(kind, [x.name, filters], [batch, features, *sizes], strides=[stride] * 2)
    else:
        kernel, stride = [min(g.one_of([2, 3]), n) for n in spatial], g.one_of([1, 2])
        pads = [int(k > 2) for k in kernel]
        sizes = [(n + 2 * p - k) // stride + 1 for n, p, k in zip(spatial, pads, kernel, strict=True)]
        options = {"kernel_shape": kernel, "strides": [stride] * 2, "pads": pads * 2}
        g.add(kind, [x.name], [batch, channels, *sizes], x.moved and kind == "MaxPool", **options)


@step(ranks=range(1, 6))
def decided(g: Graph, x: Value) -> None:
    """What compares numbers, or cuts them."""
    if not x.moved:
        return
    kind, axis = g.one_of(["ArgMax", "ArgMin", "TopK", "Cast", "Where"]), g.axis(x)
    if kind == "TopK":
        shape = list(x.shape)
        shape[axis] = int(g.rng.integers(1, x.shape[axis] + 1))
        g.add(kind, [x.name, g.constant([shape[axis]])], shape, True, unread=1, axis=axis)
    elif kind == "Cast":
        g.add(kind, [g.intermediate(kind, [x.name], to=TensorProto.INT32)], x.shape, True, to=TensorProto.FLOAT)
    elif kind == "Where":
        mask = g.intermediate(g.one_of(["Greater", "Less", "GreaterOrEqual"]), [x.name, g.number(0.1)])
        other = g.pick(lambda v: v.shape == x.shape) or x
        g.add(kind, [mask, other.name, g.number(g.one_of([0, 1, -0.5]))], x.shape, other.moved)
    else:
        keep = g.often(0.5)
        shape = [1 if i == axis else n for i, n in enumerate(x.shape) if keep or i != axis]
        places = g.intermediate(kind, [x.name], axis=axis, keepdims=int(keep))
        g.add("Cast", [places], shape, True, to=TensorProto.FLOAT)
