"""Steps on integers and truth values, into them and out of them: exact, or not right."""

from __future__ import annotations

import math

import numpy as np

from models.drawn_graphs.graph import (
    BOOL,
    EVERY_TYPE,
    F16,
    F32,
    I8,
    I32,
    I64,
    INTEGERS,
    MOST,
    U8,
    Graph,
    Steps,
    Value,
    fit,
)

step = Steps()


@step(times=3, dtypes=EVERY_TYPE)
def cast(g: Graph, x: Value) -> None:
    """To any type; integers only of what is exact."""
    to = g.one_of(EVERY_TYPE)
    if to in (F32, F16):
        exact = x.moved and (to == F32 or x.dtype in (F32, F16))
        g.add("Cast", [x.name], x.shape, exact, dtype=to, to=to)
    elif x.moved and to != x.dtype:
        name = x.name
        if to == U8 and x.dtype in (F32, F16):  # a negative number is no uint8: what it becomes depends on the machine
            name = g.intermediate("Abs", [name])
        if x.dtype in (F32, F16) and to != BOOL:
            name = g.intermediate("Clip", [name, g.number(-100, x.dtype), g.number(100, x.dtype)])
        g.add("Cast", [name], x.shape, True, dtype=to, to=to)


@step(times=3, dtypes=INTEGERS)
def arithmetic(g: Graph, x: Value) -> None:
    other = g.companion(x)
    op = g.one_of(["Add", "Sub", "Mul", "Max", "Min", "Add", "Div", "Mod"])
    shape = np.broadcast_shapes(x.shape, other.shape)
    if op in ("Div", "Mod"):
        divisor = g.number(g.one_of([-7, -2, 2, 3, 5, 8]), x.dtype)
        options = {"fmod": int(g.often(0.5))} if op == "Mod" else {}
        g.add(op, [x.name, divisor], x.shape, True, dtype=x.dtype, **options)
    else:
        g.add(op, [x.name, other.name][:: g.one_of([1, -1])], shape, True, dtype=x.dtype)


@step(times=2, dtypes=(I64, I32, I8, U8))
def bits(g: Graph, x: Value) -> None:
    other = g.companion(x)
    op = g.one_of(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "Sign", "Clip"])
    if op in ("BitwiseNot", "Sign"):
        g.move(x, op, [], x.shape)
    elif op == "Clip":
        g.move(x, op, [g.number(1, x.dtype), g.number(6, x.dtype)], x.shape)
    else:
        g.add(op, [x.name, other.name], np.broadcast_shapes(x.shape, other.shape), True, dtype=x.dtype)


@step(dtypes=INTEGERS)
def function(g: Graph, x: Value) -> None:
    g.move(x, g.one_of(["Abs", "Neg"]), [], x.shape)


@step(dtypes=(U8,))
def shift(g: Graph, x: Value) -> None:
    g.move(x, "BitShift", [g.number(g.one_of([1, 3]), U8)], x.shape, direction=g.one_of(["LEFT", "RIGHT"]))


@step(times=2, dtypes=(*INTEGERS, F32))
def comparison(g: Graph, x: Value) -> None:
    if x.moved:
        other = g.companion(x)
        if other.moved:
            op = g.one_of(["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
            g.add(op, [x.name, other.name], np.broadcast_shapes(x.shape, other.shape), True, dtype=BOOL)


@step(times=2, dtypes=(BOOL,))
def logic(g: Graph, x: Value) -> None:
    op = g.one_of(["And", "Or", "Xor", "Not", "Equal"])
    if op == "Not":
        g.move(x, op, [], x.shape)
    else:
        other = g.companion(x)
        g.add(op, [x.name, other.name], np.broadcast_shapes(x.shape, other.shape), True, dtype=BOOL)


@step(times=3, dtypes=(BOOL,))
def choice(g: Graph, x: Value) -> None:
    """Where, of any type that there is."""
    y = g.pick(lambda v: fit(x, v), g.one_of([F32, F32, I64, I32, U8]))
    if y is not None:
        shape = np.broadcast_shapes(x.shape, y.shape)
        z = g.pick(lambda v: v.shape == y.shape, y.dtype) if g.often(0.5) else None
        other, moved = (z.name, z.moved) if z else (g.constant_like(y, ()), True)
        if math.prod(shape) <= MOST:
            names = [y.name, other][:: g.one_of([1, -1])]
            g.add("Where", [x.name, *names], shape, y.moved and moved, dtype=y.dtype)


@step(times=2, ranks=range(1, 6), dtypes=INTEGERS)
def reduction(g: Graph, x: Value) -> None:
    op = g.one_of(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"])
    axes, shape, options = g.reduced(x)
    if op != "ReduceProd":
        g.move(x, op, [axes], shape, **options)
    elif x.size <= 24 * math.prod(shape):  # onnxruntime's does not wrap around
        small = g.intermediate("Clip", [x.name, g.number(-2, x.dtype), g.number(2, x.dtype)])
        g.add(op, [small, axes], shape, True, dtype=x.dtype, **options)


@step(ranks=range(1, 6), dtypes=INTEGERS)
def along_an_axis(g: Graph, x: Value) -> None:
    axis, op = g.axis(x), g.one_of(["CumSum", "TopK", "ArgMax"])
    shape = list(x.shape)
    if op == "CumSum":
        g.move(x, op, [g.constant(axis)], x.shape, **{name: int(g.often(0.5)) for name in ("exclusive", "reverse")})
    elif op == "TopK":
        shape[axis] = int(g.rng.integers(1, x.shape[axis] + 1))
        options = {"axis": axis, "largest": int(g.often(0.5))}
        y = g.move(x, op, [g.constant([shape[axis]])], shape, unread=1, **options)
        g.values.append(Value(f"{y.name}_0", tuple(shape), True, I64))
    elif x.dtype == I32:
        shape[axis] = 1
        options = {"axis": axis, "select_last_index": int(g.often(0.5))}
        g.add(g.one_of(["ArgMax", "ArgMin"]), [x.name], shape, True, dtype=I64, **options)


@step(times=3, dtypes=INTEGERS)
def places(g: Graph, x: Value) -> None:
    """Where something lies, computed: read there, written there, or counted."""
    y = g.pick(lambda v: v.rank > 0, g.one_of([F32, F32, I64, I32, U8, BOOL]))
    if y is None or x.rank > 3 or x.size > 400:
        return
    axis = g.axis(y)
    extent = y.shape[axis]
    where = g.intermediate("Mod", [x.name, g.number(extent, x.dtype)])
    kind = g.one_of(["Gather", "OneHot", "ScatterND", "GatherElements"])
    shape = [*y.shape[:axis], *x.shape, *y.shape[axis + 1 :]]
    if kind == "Gather" and math.prod(shape) <= MOST and len(shape) <= 5:
        g.move(y, kind, [where], shape, axis=axis)
    elif kind == "OneHot" and x.dtype == I64 and x.rank and x.size * extent <= MOST:
        pair = g.constant(g.data(F32, (2,)), np.float32)
        g.add(kind, [where, g.constant([extent]), pair], [*x.shape, extent], True)
    elif kind == "ScatterND" and x.dtype == I64 and x.rank == 1 and y.dtype in (I64, I32) and axis == 0:
        lines = g.intermediate("Unsqueeze", [where, g.constant([-1])])
        shape = [x.shape[0], *y.shape[1:]]
        if math.prod(shape) <= MOST:
            g.move(y, kind, [lines, g.constant_like(y, shape)], y.shape, reduction=g.one_of(["add", "max", "min"]))
    elif kind == "GatherElements" and x.rank == y.rank:
        pairs = [pair for i, pair in enumerate(zip(x.shape, y.shape, strict=True)) if i != axis]
        if all(a <= b for a, b in pairs):
            g.move(y, kind, [where], x.shape, axis=axis)
