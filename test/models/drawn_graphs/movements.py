"""Steps that move elements of any type, and compute none."""

from __future__ import annotations

import math

import numpy as np

from models.drawn_graphs.graph import EVERY_TYPE, F32, I64, MOST, Graph, Steps, Value

step = Steps()


@step(times=2, dtypes=EVERY_TYPE)
def reshaped(g: Graph, x: Value) -> None:
    kind = g.one_of(["Transpose", "Reshape", "Unsqueeze", "Squeeze"])
    ones = [axis for axis, n in enumerate(x.shape) if n == 1]
    if kind == "Transpose" and x.rank:
        order = [int(axis) for axis in g.rng.permutation(x.rank)]
        g.move(x, kind, [], [x.shape[axis] for axis in order], perm=order)
    elif kind == "Reshape":
        rest, shape = x.size, []
        while rest > 1 and len(shape) < 3:
            shape.append(g.one_of([n for n in range(1, rest + 1) if rest % n == 0]))
            rest //= shape[-1]
        shape += [rest] if rest > 1 else []
        g.move(x, kind, [g.constant(shape)], shape)
    elif kind == "Unsqueeze" and x.rank < 4:
        axis = int(g.rng.integers(x.rank + 1))
        g.move(x, kind, [g.constant([axis])], [*x.shape[:axis], 1, *x.shape[axis:]])
    elif kind == "Squeeze" and ones:
        g.move(x, kind, [g.constant(ones)], [n for n in x.shape if n != 1])


@step(ranks=range(1, 6), dtypes=EVERY_TYPE)
def joined(g: Graph, x: Value) -> None:
    axis = g.axis(x)

    def fits(y: Value) -> bool:
        return y.rank == x.rank and all(
            a == b for i, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if i != axis
        )

    other = g.pick(fits, x.dtype) or x
    shape = list(x.shape)
    shape[axis] += other.shape[axis]
    names = [x.name, other.name][:: g.one_of([1, -1])]
    g.add("Concat", names, shape, x.moved and other.moved, dtype=x.dtype, axis=axis)


@step(ranks=range(1, 6), dtypes=EVERY_TYPE)
def cut(g: Graph, x: Value) -> None:
    """A slice, with steps forwards or backwards."""
    axis, pace = g.axis(x), g.one_of([1, 1, 1, 2, 3, -1, -2])
    extent = x.shape[axis]
    first, last = sorted(int(n) for n in g.rng.integers(0, extent, 2))
    start, end = (first, last + 1) if pace > 0 else (last, first - 1 if first else -extent - 1)
    shape = list(x.shape)
    shape[axis] = -(-(last + 1 - first) // abs(pace))
    bounds = [g.constant([n]) for n in (start, end, axis, pace)]
    g.move(x, "Slice", bounds, shape)


@step(ranks=range(1, 5), dtypes=EVERY_TYPE)
def grown(g: Graph, x: Value) -> None:
    kind = g.one_of(["Pad", "Tile", "Expand"])
    if kind == "Pad":
        mode = g.one_of(["constant", "edge", "reflect"])
        limits = [min(3, n) if mode == "reflect" else 3 for n in x.shape] * 2
        pads = [int(g.rng.integers(limit)) for limit in limits]
        shape = [n + low + high for n, low, high in zip(x.shape, pads, pads[x.rank :], strict=False)]
        operands, options = (
            [g.constant(pads), *([g.constant_like(x, ())] if mode == "constant" else [])],
            {"mode": mode},
        )
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
        g.move(x, kind, operands, shape, **options)


@step(ranks=range(1, 5), dtypes=EVERY_TYPE)
def gathered(g: Graph, x: Value) -> None:
    axis, form = g.axis(x), g.one_of([(3,), (2, 2), (), (5,)])
    places = g.rng.integers(-x.shape[axis], x.shape[axis], form)
    g.move(x, "Gather", [g.constant(places)], [*x.shape[:axis], *form, *x.shape[axis + 1 :]], axis=axis)


@step(ranks=range(1, 6), dtypes=EVERY_TYPE)
def scattered(g: Graph, x: Value) -> None:
    axis = g.axis(x)
    shape = list(x.shape)
    shape[axis] = min(3, x.shape[axis])
    line = g.rng.permutation(x.shape[axis])[: shape[axis]]
    places = np.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(x.rank)]), shape)
    g.move(x, "ScatterElements", [g.constant(places), g.constant_like(x, shape)], x.shape, axis=axis)


@step(times=2, ranks=range(1, 6), dtypes=EVERY_TYPE)
def split(g: Graph, x: Value) -> None:
    """Two parts of a line; both are values."""
    axis = g.axis(x)
    if x.shape[axis] < 2:
        return
    first = int(g.rng.integers(1, x.shape[axis]))
    shapes = [[n if i == axis else extent for i, extent in enumerate(x.shape)] for n in (first, x.shape[axis] - first)]
    y = g.move(x, "Split", [g.constant([first, x.shape[axis] - first])], shapes[0], unread=1, axis=axis)
    g.values.append(Value(f"{y.name}_0", tuple(shapes[1]), x.moved, x.dtype))


@step(ranks=range(1, 6), dtypes=EVERY_TYPE)
def by_element(g: Graph, x: Value) -> None:
    axis = g.axis(x)
    shape = [int(g.rng.integers(1, n + 1)) if i != axis else g.one_of([1, 2, 5]) for i, n in enumerate(x.shape)]
    places = g.rng.integers(-x.shape[axis], x.shape[axis], shape)
    g.move(x, "GatherElements", [g.constant(places)], shape, axis=axis)


@step(ranks=range(2, 6), dtypes=EVERY_TYPE)
def by_tuples(g: Graph, x: Value) -> None:
    """GatherND, and ScatterND at different places."""
    if g.often(0.5):
        places = np.stack([g.rng.integers(0, n, 5) for n in x.shape[:2]], -1)
        g.move(x, "GatherND", [g.constant(places)], (5, *x.shape[2:]))
    else:
        lines = g.rng.permutation(x.shape[0])[:3]
        g.move(x, "ScatterND", [g.constant(lines[:, None]), g.constant_like(x, (len(lines), *x.shape[1:]))], x.shape)


@step(ranks=range(2, 6), dtypes=(F32, I64))
def triangle(g: Graph, x: Value) -> None:
    g.move(x, "Trilu", [g.constant(int(g.rng.integers(-2, 3)))], x.shape, upper=int(g.often(0.5)))
