"""Steps of operators that models have less often: recurrences, einsum, sequences, rearranged images, data-sized results."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from models.drawn_graphs.graph import BOOL, EVERY_TYPE, F32, I64, MOST, Graph, Steps, Value

step = Steps()


@step(times=2)
def function(g: Graph, x: Value) -> None:
    op = g.one_of(
        ["Selu", "Celu", "ThresholdedRelu", "Shrink", "Sin", "Atan", "Reciprocal", "Pow", "PRelu", "Sum", "Mean"]
    )
    if op == "Reciprocal":
        g.add(op, [g.intermediate("Add", [g.intermediate("Abs", [x.name]), g.number(0.5)])], x.shape)
    elif op == "Pow":
        g.add(
            op,
            [g.intermediate("Clip", [x.name, g.number(0.1), g.number(3)]), g.number(g.one_of([0.5, 2, -1.5]))],
            x.shape,
        )
    elif op == "PRelu":
        g.add(op, [x.name, g.weight(*x.shape[-1:])], x.shape)
    elif op in ("Sum", "Mean"):
        others = [g.pick(lambda v: v.shape == x.shape) or x for _ in range(2)]
        g.add(op, [x.name, *(v.name for v in others)], x.shape)
    elif op in ("ThresholdedRelu", "Shrink"):
        if x.moved:
            g.add(op, [x.name], x.shape, **({"lambd": 0.4, "bias": 0.2} if op == "Shrink" else {"alpha": 0.3}))
    else:
        g.add(op, [x.name], x.shape)


@step(times=2)
def rounding(g: Graph, x: Value) -> None:
    if x.moved:
        g.move(x, g.one_of(["Round", "Floor", "Ceil", "Sign"]), [], x.shape)


@step(ranks=(3,))
def recurrence(g: Graph, x: Value) -> None:
    """GRU, LSTM and RNN over `[length, batch, width]`: what every step gives, and what is left."""
    length, batch, width = x.shape
    op, hidden = g.one_of(["GRU", "LSTM", "RNN"]), g.one_of([3, 8])
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op]
    direction = g.one_of(["forward", "reverse", "bidirectional"])
    count = 2 if direction == "bidirectional" else 1
    weights = [
        g.weight(count, gates * hidden, width, scale=width**-0.5),
        g.weight(count, gates * hidden, hidden, scale=hidden**-0.5),
    ]
    if g.often(0.5):
        weights.append(g.weight(count, 2 * gates * hidden))
    if length * batch * count * hidden <= MOST:
        shape = (length, count, batch, hidden)
        y = g.add(op, [x.name, *weights], shape, unread=1, hidden_size=hidden, direction=direction)
        g.values.append(Value(f"{y.name}_0", (count, batch, hidden), False))


@step(times=2, ranks=(2, 3, 4))
def einsum(g: Graph, x: Value) -> None:
    letters = "abcd"[: x.rank]
    kind = g.one_of(["weight", "transpose", "sum", "outer", "square"])
    depth = x.shape[-1]
    if kind == "weight":
        columns = g.one_of([1, 3, 8, 17])
        out = [*letters[:-1], "z"]
        g.rng.shuffle(out)
        sizes = {**dict(zip(letters, x.shape, strict=True)), "z": columns}
        equation = f"{letters},{letters[-1]}z->{''.join(out)}"
        g.add(
            "Einsum", [x.name, g.weight(depth, columns, scale=depth**-0.5)], [sizes[c] for c in out], equation=equation
        )
    elif kind == "transpose":
        out = [str(c) for c in g.rng.permutation(list(letters))]
        sizes = dict(zip(letters, x.shape, strict=True))
        g.add("Einsum", [x.name], [sizes[c] for c in out], x.moved, equation=f"{letters}->{''.join(out)}")
    elif kind == "sum":
        y = g.add("Einsum", [x.name], x.shape[:-1], equation=f"{letters}->{letters[:-1]}")
        g.add("Mul", [y.name, g.number(depth**-0.5)], y.shape)
    elif kind == "outer" and x.size * 5 <= MOST:
        g.add("Einsum", [x.name, g.weight(5)], [*x.shape, 5], equation=f"{letters},z->{letters}z")
    elif kind == "square" and x.rank == 2:
        y = g.add("Einsum", [x.name, x.name], (x.shape[0], x.shape[0]), equation="ab,cb->ac")
        g.add("Mul", [y.name, g.number(depth**-0.5)], y.shape)


@step(times=2, ranks=(4,), dtypes=(F32,))
def rearranged(g: Graph, x: Value) -> None:
    """Depth to space and back, and windows cut out of the middle."""
    batch, channels, height, width = x.shape
    if channels % 4 == 0 and g.often(0.5):
        shape = (batch, channels // 4, height * 2, width * 2)
        g.move(x, "DepthToSpace", [], shape, blocksize=2, mode=g.one_of(["DCR", "CRD"]))
    elif height % 2 == 0 and width % 2 == 0:
        g.move(x, "SpaceToDepth", [], (batch, channels * 4, height // 2, width // 2), blocksize=2)
    else:
        sizes = [g.one_of([2, 5, 8]) for _ in range(2)]
        if batch * channels * math.prod(sizes) <= MOST:
            g.move(x, "CenterCropPad", [g.constant(sizes)], (batch, channels, *sizes), axes=[2, 3])


@step(ranks=(3, 4))
def normalization(g: Graph, x: Value) -> None:
    channels = x.shape[1]
    kind = g.one_of(["GroupNormalization", "MeanVarianceNormalization", "LpNormalization", "LRN"])
    if kind == "GroupNormalization":
        groups = g.one_of([n for n in (1, 2, 4, channels) if channels % n == 0])
        g.add(kind, [x.name, g.weight(channels), g.weight(channels)], x.shape, num_groups=groups)
    elif kind == "MeanVarianceNormalization":
        g.add(kind, [x.name], x.shape, axes=[0, *range(2, x.rank)])
    elif kind == "LpNormalization":
        y = g.intermediate("Add", [x.name, g.number(0.1)])
        g.add(kind, [y], x.shape, axis=g.axis(x), p=g.one_of([1, 2]))
    elif x.rank == 4:
        g.add(kind, [x.name], x.shape, size=3)


@step(ranks=(4,))
def sampled(g: Graph, x: Value) -> None:
    """GridSample at places that are drawn."""
    batch, channels, *_ = x.shape
    grid = g.constant(g.rng.uniform(-1.1, 1.1, (batch, 4, 5, 2)), np.float32)
    mode = {"mode": g.one_of(["linear", "nearest"]), "padding_mode": g.one_of(["zeros", "border", "reflection"])}
    g.add("GridSample", [x.name, grid], (batch, channels, 4, 5), **mode, align_corners=int(g.often(0.5)))


@step(times=2, ranks=range(1, 5), dtypes=(F32, I64))
def sequence(g: Graph, x: Value) -> None:
    """Taken apart into a sequence, and put together again or read at a place."""
    axis = g.axis(x)
    parts = g.intermediate("SplitToSequence", [x.name], axis=axis, keepdims=1)
    if g.often(0.5):
        g.add("ConcatFromSequence", [parts], x.shape, x.moved, dtype=x.dtype, axis=axis)
    else:
        place = g.constant(int(g.rng.integers(-x.shape[axis], x.shape[axis])))
        shape = [1 if i == axis else n for i, n in enumerate(x.shape)]
        g.add("SequenceAt", [parts, place], shape, x.moved, dtype=x.dtype)


@step(ranks=(2, 3), dtypes=(F32, I64))
def reversed_lines(g: Graph, x: Value) -> None:
    """ReverseSequence: the first so many of each line."""
    lengths = g.rng.integers(1, x.shape[0] + 1, x.shape[1])
    g.move(x, "ReverseSequence", [g.constant(lengths)], x.shape, time_axis=0, batch_axis=1)


@step(times=2, ranks=range(1, 4), dtypes=EVERY_TYPE)
def chosen(g: Graph, x: Value) -> None:
    """Compress by constants; where elements are not zero, counted."""
    if g.often(0.5):
        axis = g.axis(x)
        kept = g.rng.random(x.shape[axis]) < 0.6
        shape = [int(kept.sum()) if i == axis else n for i, n in enumerate(x.shape)]
        if kept.any():
            g.move(x, "Compress", [g.constant(kept, np.bool_)], shape, axis=axis)
    elif x.moved and x.dtype in (F32, I64, BOOL):
        places = g.intermediate("NonZero", [x.name])
        g.add("ReduceSum", [places, g.constant([1])], (x.rank,), True, dtype=I64, keepdims=0)


@step(ranks=(1, 2), dtypes=(I64,))
def unique(g: Graph, x: Value) -> None:
    """Which numbers there are, and where each of them stands: as many as there are only the run tells."""
    if x.size > 300:
        return
    y = g.add("Unique", [x.name], (x.size,), True, dtype=I64, unread=3, sorted=1)
    g.values.pop()
    g.values.append(Value(f"{y.name}_1", (x.size,), True, I64))
    flat = g.intermediate("Gather", [y.name, f"{y.name}_1"], axis=0)
    g.add("Reshape", [flat, g.constant(x.shape)], x.shape, True, dtype=I64)


@step(ranks=(4,))
def attention(g: Graph, x: Value) -> None:
    """With heads beside each other, of queries and keys of their own, and a mask of what is later."""
    batch, heads, length, depth = x.shape
    y = g.pick(lambda v: v.rank == 4 and v.shape[:2] == (batch, heads) and v.shape[3] == depth) or x
    keys = g.intermediate("Transpose", [y.name], perm=[0, 1, 3, 2])
    scores = g.intermediate("Mul", [g.intermediate("MatMul", [x.name, keys]), g.number(depth**-0.5)])
    if g.often(0.5):
        later = np.triu(np.full((length, y.shape[2]), -np.inf), 1) if g.often(0.5) else np.zeros((length, 1))
        scores = g.intermediate("Add", [scores, g.constant(later, np.float32)])
    weights = g.intermediate("Softmax", [scores], axis=-1)
    out = g.intermediate("MatMul", [weights, y.name])
    merged = g.intermediate("Transpose", [out], perm=[0, 2, 1, 3])
    g.add("Reshape", [merged, g.constant([batch, length, heads * depth])], (batch, length, heads * depth))


@step(ranks=range(1, 5))
def casts(g: Graph, x: Value) -> None:
    """Through other floats and back: bf16, f64, eight bits."""
    to = g.one_of([TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.FLOAT8E4M3FN])
    if to == TensorProto.DOUBLE or x.moved:
        y = g.intermediate("Cast", [g.intermediate("Clip", [x.name, g.number(-100), g.number(100)])], to=to)
        g.add("Cast", [y], x.shape, x.moved, to=TensorProto.FLOAT)
