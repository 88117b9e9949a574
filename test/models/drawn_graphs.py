"""ONNX graphs of operators that are drawn by a seed: what fuses with what is not chosen by who wrote the compiler.

Every step takes a value that is there already and adds an operator, or a few, that fit it: elementwise functions,
broadcasts, reductions, movements, products, convolutions, normalizations, scatters. What decides by comparison (ArgMax,
casts to integers, Where) reads only values that were moved, not computed: two right programs may round differently.
Source of the idea: Liu et al., "NNSmith: Generating Diverse and Valid Test Cases for Deep Learning Compilers", 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64)
MOST = 60_000
"""The largest number of elements of a value."""


@dataclass(frozen=True)
class Value:
    """A tensor of float32 in a graph; `moved` when its elements are those of an input or of a constant."""

    name: str
    shape: tuple[int, ...]
    moved: bool

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Graph:
    """A graph that grows by steps."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[Value] = []
        self.values: list[Value] = []

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def axis(self, x: Value) -> int:
        return int(self.rng.integers(x.rank))

    def often(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(value, np.float32)

    def weight(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant(self.rng.standard_normal(shape) * scale, np.float32)

    def pick(self, fits: Callable[[Value], bool] = lambda _: True) -> Value | None:
        """One of the youngest values that fit."""
        found = [v for v in self.values[-8:] if fits(v)] or [v for v in self.values if fits(v)]
        return self.one_of(found) if found else None

    def intermediate(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """A node whose result is no value for other steps."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        shape: Sequence[int],
        moved: bool = False,
        *,
        unread: int = 0,
        **attributes: Any,
    ) -> Value:
        """A node, and its result; it has so many more that nobody reads."""
        value = Value(f"v{len(self.nodes)}", tuple(int(n) for n in shape), moved)
        others = [f"{value.name}_{number}" for number in range(unread)]
        self.nodes.append(helper.make_node(op, list(inputs), [value.name, *others], **attributes))
        self.values.append(value)
        return value

    def add_input(self) -> None:
        shape = (MOST + 1,)
        while math.prod(shape) > MOST:
            shape = tuple(self.one_of(EXTENTS) for _ in range(int(self.rng.integers(1, 5))))
        value = Value(f"x{len(self.inputs)}", shape, True)
        self.inputs.append(value)
        self.values.append(value)


Step = Callable[[Graph, Value], None]
STEPS: list[Step] = []


def step(times: int = 1, ranks: Sequence[int] = range(6)) -> Callable[[Step], Step]:
    """Registers a step for values of some ranks, to be drawn so many times as often as others."""

    def register(function: Step) -> Step:
        def guarded(g: Graph, x: Value) -> None:
            if x.rank in ranks:
                function(g, x)

        STEPS.extend([guarded] * times)
        return function

    return register


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

    def fits(y: Value) -> bool:
        pairs = zip(x.shape[::-1], y.shape[::-1], strict=False)
        return all(1 in pair or pair[0] == pair[1] for pair in pairs)

    other = g.pick(fits) if g.often(0.7) else None
    if other is None or math.prod(np.broadcast_shapes(x.shape, other.shape)) > MOST:
        kept = [n if g.often(0.6) else 1 for n in x.shape][int(g.rng.integers(x.rank + 1)) :]
        other = Value(g.weight(*kept), tuple(kept), True)
    op = g.one_of(["Add", "Sub", "Mul", "Max", "Min"])
    operands = [x.name, other.name][:: g.one_of([1, -1])]
    moved = x.moved and other.moved and op in ("Max", "Min")
    g.add(op, operands, np.broadcast_shapes(x.shape, other.shape), moved)


@step(ranks=range(1, 6))
def reduction(g: Graph, x: Value) -> None:
    op = g.one_of(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp"])
    axes, keep = [axis for axis in range(x.rank) if g.often(0.5)] or [g.axis(x)], g.often(0.5)
    shape = [1 if axis in axes else n for axis, n in enumerate(x.shape) if keep or axis not in axes]
    y = g.add(op, [x.name, g.constant(axes)], shape, x.moved and op in ("ReduceMax", "ReduceMin"), keepdims=int(keep))
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


@step(times=2)
def reshaped(g: Graph, x: Value) -> None:
    kind = g.one_of(["Transpose", "Reshape", "Unsqueeze", "Squeeze"])
    ones = [axis for axis, n in enumerate(x.shape) if n == 1]
    if kind == "Transpose" and x.rank:
        order = [int(axis) for axis in g.rng.permutation(x.rank)]
        g.add(kind, [x.name], [x.shape[axis] for axis in order], x.moved, perm=order)
    elif kind == "Reshape":
        rest, shape = x.size, []
        while rest > 1 and len(shape) < 3:
            shape.append(g.one_of([n for n in range(1, rest + 1) if rest % n == 0]))
            rest //= shape[-1]
        shape += [rest] if rest > 1 else []
        g.add(kind, [x.name, g.constant(shape)], shape, x.moved)
    elif kind == "Unsqueeze" and x.rank < 4:
        axis = int(g.rng.integers(x.rank + 1))
        g.add(kind, [x.name, g.constant([axis])], [*x.shape[:axis], 1, *x.shape[axis:]], x.moved)
    elif kind == "Squeeze" and ones:
        g.add(kind, [x.name, g.constant(ones)], [n for n in x.shape if n != 1], x.moved)


@step(ranks=range(1, 6))
def joined(g: Graph, x: Value) -> None:
    axis = g.axis(x)

    def fits(y: Value) -> bool:
        return y.rank == x.rank and all(
            a == b for i, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if i != axis
        )

    other = g.pick(fits) or x
    shape = list(x.shape)
    shape[axis] += other.shape[axis]
    names = [x.name, other.name][:: g.one_of([1, -1])]
    g.add("Concat", names, shape, x.moved and other.moved, axis=axis)


@step(ranks=range(1, 6))
def cut(g: Graph, x: Value) -> None:
    """A slice, with steps forwards or backwards."""
    axis, pace = g.axis(x), g.one_of([1, 1, 1, 2, 3, -1, -2])
    extent = x.shape[axis]
    first, last = sorted(int(n) for n in g.rng.integers(0, extent, 2))
    start, end = (first, last + 1) if pace > 0 else (last, first - 1 if first else -extent - 1)
    shape = list(x.shape)
    shape[axis] = -(-(last + 1 - first) // abs(pace))
    bounds = [g.constant([n]) for n in (start, end, axis, pace)]
    g.add("Slice", [x.name, *bounds], shape, x.moved)


@step(ranks=range(1, 5))
def grown(g: Graph, x: Value) -> None:
    kind = g.one_of(["Pad", "Tile", "Expand"])
    if kind == "Pad":
        mode = g.one_of(["constant", "edge", "reflect"])
        limits = [min(3, n) if mode == "reflect" else 3 for n in x.shape] * 2
        pads = [int(g.rng.integers(limit)) for limit in limits]
        shape = [n + low + high for n, low, high in zip(x.shape, pads, pads[x.rank :], strict=False)]
        operands, options = [g.constant(pads), *([g.number(0.5)] if mode == "constant" else [])], {"mode": mode}
    elif kind == "Tile":
        times = [g.one_of([1, 1, 2, 3]) for _ in x.shape]
        shape, operands, options = [n * t for n, t in zip(x.shape, times, strict=True)], [g.constant(times)], {}
    else:
        shape = [
            *([2] if x.rank < 4 and g.often(0.5) else []),
            *(g.one_of([1, 2, 5]) if n == 1 else n for n in x.shape),
        ]
        operands, options = [g.constant(shape)], {}
    if math.prod(shape) <= MOST:
        g.add(kind, [x.name, *operands], shape, x.moved, **options)


@step(ranks=range(1, 5))
def gathered(g: Graph, x: Value) -> None:
    axis, form = g.axis(x), g.one_of([(3,), (2, 2), (), (5,)])
    places = g.rng.integers(-x.shape[axis], x.shape[axis], form)
    g.add("Gather", [x.name, g.constant(places)], [*x.shape[:axis], *form, *x.shape[axis + 1 :]], x.moved, axis=axis)


@step(ranks=range(1, 6))
def scattered(g: Graph, x: Value) -> None:
    axis = g.axis(x)
    shape = list(x.shape)
    shape[axis] = min(3, x.shape[axis])
    line = g.rng.permutation(x.shape[axis])[: shape[axis]]
    places = np.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(x.rank)]), shape)
    g.add("ScatterElements", [x.name, g.constant(places), g.weight(*shape)], x.shape, x.moved, axis=axis)


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


def drawn_graph(seed: int, dynamic: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of 4 to 26 nodes and inputs for it; if `dynamic` about half of the inputs' extents have names."""
    g = Graph(seed)
    for _ in range(g.one_of([1, 2, 3])):
        g.add_input()
    while len(g.nodes) < 4 + seed % 23:
        x = g.pick()
        assert x is not None
        g.one_of(STEPS)(g, x)
    read = {name for node in g.nodes for name in node.input}
    results = [v for v in g.values if v not in g.inputs and (v.name not in read or g.often(0.08))][:8]
    inputs = [helper.make_tensor_value_info(x.name, TensorProto.FLOAT, x.shape) for x in g.inputs]
    outputs = [helper.make_tensor_value_info(v.name, TensorProto.FLOAT, None) for v in results]
    if dynamic:
        for value in inputs:
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if g.often(0.6):
                    dim.dim_param = f"{value.name}_{axis}"
    graph = helper.make_graph(g.nodes, f"drawn_{seed}", inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return model, {x.name: g.rng.standard_normal(x.shape).astype(np.float32) for x in g.inputs}
