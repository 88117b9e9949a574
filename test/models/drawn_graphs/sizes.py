"""Steps that compute with extents, as exported models do: shapes taken apart, put together, and obeyed."""

from __future__ import annotations

import math

from models.drawn_graphs.graph import EVERY_TYPE, F32, I32, I64, MOST, Graph, Steps, Value

step = Steps()


def _extent(g: Graph, x: Value, axis: int) -> str:
    """One extent, of rank 1."""
    shape = g.intermediate("Shape", [x.name])
    return g.intermediate("Gather", [shape, g.constant([axis])], axis=0)


@step(times=2, ranks=range(2, 5), dtypes=EVERY_TYPE)
def flattened(g: Graph, x: Value) -> None:
    """Two neighbours become one, by a product of extents or by -1."""
    axis = int(g.rng.integers(x.rank - 1))
    extents = [_extent(g, x, i) for i in range(x.rank)]
    pair = g.constant([-1]) if g.often(0.4) else g.intermediate("Mul", extents[axis : axis + 2])
    parts = [*extents[:axis], pair, *extents[axis + 2 :]]
    shape = [*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]]
    target = g.intermediate("Concat", parts, axis=0) if len(parts) > 1 else parts[0]
    g.move(x, "Reshape", [target], shape)


@step(times=2, ranks=range(1, 4), dtypes=EVERY_TYPE)
def parted(g: Graph, x: Value) -> None:
    """One extent becomes two: heads of a known number."""
    axis = g.axis(x)
    heads = [n for n in (2, 4, 8) if x.shape[axis] % n == 0]
    if not heads:
        return
    n = g.one_of(heads)
    rest = g.intermediate("Div", [_extent(g, x, axis), g.constant([n])])
    pair, sizes = [g.constant([n]), rest], [n, x.shape[axis] // n]
    if g.often(0.5):
        pair, sizes = pair[::-1], sizes[::-1]
    parts = [_extent(g, x, i) for i in range(axis)] + pair + [_extent(g, x, i) for i in range(axis + 1, x.rank)]
    g.move(x, "Reshape", [g.intermediate("Concat", parts, axis=0)], [*x.shape[:axis], *sizes, *x.shape[axis + 1 :]])


@step(ranks=range(1, 4), dtypes=EVERY_TYPE)
def expanded(g: Graph, x: Value) -> None:
    """To the shape of another value."""
    y = g.pick(lambda v: v.rank > 0 and v.rank + x.rank <= 4 and v.size * x.size <= MOST, None)
    if y is not None:
        shape = g.intermediate("Concat", [g.intermediate("Shape", [v.name]) for v in (y, x)], axis=0)
        g.move(x, "Expand", [shape], [*y.shape, *x.shape])


@step(times=2, ranks=range(1, 5))
def positions(g: Graph, x: Value) -> None:
    """Numbers counted along an axis, added to its elements or looked up in a table."""
    axis = g.axis(x)
    extent = g.intermediate("Squeeze", [_extent(g, x, axis)])
    counted = g.intermediate("Range", [g.constant(0), extent, g.constant(1)])
    if g.often(0.5) and x.rank > 1 and axis == x.rank - 2:
        rows = (
            g.intermediate("Gather", [g.weight(64 * 6, x.shape[-1]), counted], axis=0) if x.shape[axis] <= 384 else ""
        )
        if rows:
            g.add("Add", [x.name, rows], x.shape)
        return
    numbers = g.intermediate("Cast", [counted], to=F32)
    behind = g.constant([-1 if i == axis else 1 for i in range(x.rank)])
    numbers = g.intermediate("Reshape", [numbers, behind])
    g.add(g.one_of(["Add", "Mul"]), [x.name, numbers], x.shape)


@step(times=2, ranks=range(1, 5), dtypes=EVERY_TYPE)
def half_of_it(g: Graph, x: Value) -> None:
    """Bounds of a slice are computed of an extent."""
    axis = g.axis(x)
    if x.shape[axis] < 2:
        return
    middle = g.intermediate("Div", [_extent(g, x, axis), g.constant([2])])
    half = x.shape[axis] // 2
    first = g.often(0.5)
    bounds = [g.constant([0]), middle] if first else [middle, g.constant([2**31 - 1])]
    shape = list(x.shape)
    shape[axis] = half if first else x.shape[axis] - half
    g.move(x, "Slice", [*bounds, g.constant([axis])], shape)


@step(ranks=range(1, 4), dtypes=(F32, I64, I32))
def filled(g: Graph, x: Value) -> None:
    """Zeros of a computed shape before or behind a value: a cache that is empty, a padding."""
    shape = g.intermediate("Shape", [x.name])
    zeros = g.intermediate("ConstantOfShape", [shape])
    if x.dtype != F32:
        zeros = g.intermediate("Cast", [zeros], to=x.dtype)
    axis = g.axis(x)
    sizes = [2 * n if i == axis else n for i, n in enumerate(x.shape)]
    if math.prod(sizes) <= MOST:
        names = [zeros, x.name][:: g.one_of([1, -1])]
        g.add("Concat", names, sizes, x.moved, dtype=x.dtype, axis=axis)


@step(ranks=range(1, 4), dtypes=(F32, I64, I32))
def padded(g: Graph, x: Value) -> None:
    """To a multiple of four."""
    axis = g.axis(x)
    missing = g.intermediate("Mod", [g.intermediate("Neg", [_extent(g, x, axis)]), g.constant([4])])
    zeros = g.constant([0] * x.rank)
    behind = [g.constant([0]) if i != axis else missing for i in range(x.rank)]
    pads = g.intermediate("Concat", [zeros, *behind], axis=0)
    sizes = [n + -n % 4 if i == axis else n for i, n in enumerate(x.shape)]
    if math.prod(sizes) <= MOST:
        g.move(x, "Pad", [pads], sizes)


@step(ranks=range(1, 5))
def by_its_size(g: Graph, x: Value) -> None:
    """A sum by a number of elements, computed."""
    axis = g.axis(x)
    count = g.intermediate("Cast", [_extent(g, x, axis)], to=F32)
    total = g.intermediate("ReduceSum", [x.name, g.constant([axis])], keepdims=1)
    g.add("Div", [total, count], [1 if i == axis else n for i, n in enumerate(x.shape)])


@step(ranks=range(1, 4), dtypes=(F32, I64, I32))
def tiled(g: Graph, x: Value) -> None:
    """As often as another value has lines."""
    y = g.pick(lambda v: v.rank > 0, None)
    axis = g.axis(x)
    if y is None or x.size * y.shape[0] > MOST:
        return
    times = [g.constant([1]) if i != axis else _extent(g, y, 0) for i in range(x.rank)]
    repeats = g.intermediate("Concat", times, axis=0) if x.rank > 1 else times[0]
    g.move(x, "Tile", [repeats], [n * y.shape[0] if i == axis else n for i, n in enumerate(x.shape)])
