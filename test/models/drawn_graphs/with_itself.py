"""Steps that combine a value with itself, moved: what a kernel computes is read at more than one point."""

from __future__ import annotations

from models.drawn_graphs.graph import F16, F32, I32, I64, Graph, Steps, Value

step = Steps()
NUMBERS = (F32, F16, I64, I32)


def _moved(g: Graph, x: Value) -> str | None:
    """A value of the same shape whose elements lie elsewhere."""
    axis = g.axis(x)
    extent, place = x.shape[axis], g.constant([axis])
    kind = g.one_of(["turned", "reversed", "rolled", "gathered", "shifted", "first", "last"])
    if kind == "turned":
        others = [i for i in range(x.rank) if i != axis and x.shape[i] == extent]
        if not others:
            return None
        order = list(range(x.rank))
        order[axis], order[others[0]] = order[others[0]], order[axis]
        return g.intermediate("Transpose", [x.name], perm=order)
    if kind == "gathered":
        return g.intermediate("Gather", [x.name, g.constant(g.rng.permutation(extent))], axis=axis)
    if kind == "reversed":
        bounds = [g.constant([n]) for n in (-1, -extent - 1)]
        return g.intermediate("Slice", [x.name, *bounds, place, g.constant([-1])])
    if kind in ("first", "last"):
        bounds = [g.constant([n]) for n in ((0, 1) if kind == "first" else (extent - 1, extent))]
        return g.intermediate("Slice", [x.name, *bounds, place])
    by = int(g.rng.integers(extent))
    low, high = (
        g.intermediate("Slice", [x.name, g.constant([a]), g.constant([b]), place]) for a, b in ((0, by), (by, extent))
    )
    if kind == "rolled":
        return g.intermediate("Concat", [high, low], axis=axis)
    pads = [by if i == axis else 0 for i in range(2 * x.rank)]
    return g.intermediate("Pad", [high, g.constant(pads), g.constant_like(x, ())])


@step(times=3, ranks=range(1, 5), dtypes=NUMBERS)
def with_itself_moved(g: Graph, x: Value) -> None:
    other = _moved(g, x)
    if other is not None:
        op = g.one_of(["Add", "Sub", "Mul"] if x.dtype == F16 else ["Add", "Sub", "Mul", "Max"])
        g.add(op, [x.name, other][:: g.one_of([1, -1])], x.shape, x.moved and x.dtype in (I64, I32), dtype=x.dtype)


@step(times=2, ranks=range(1, 5))
def with_itself_reduced(g: Graph, x: Value) -> None:
    """Less its mean, by its sum, beside its largest."""
    op = g.one_of(["ReduceMean", "ReduceMax", "ReduceL2", "ReduceSum"])
    axes = [axis for axis in range(x.rank) if g.often(0.5)] or [g.axis(x)]
    y = g.intermediate(op, [x.name, g.constant(axes)], keepdims=1)
    if op in ("ReduceL2", "ReduceSum"):
        y = g.intermediate("Add", [g.intermediate("Abs", [y]), g.number(1)])
        g.add("Div", [x.name, y], x.shape)
    else:
        g.add(g.one_of(["Sub", "Mul"]), [x.name, y], x.shape)


@step(ranks=(2, 3, 4))
def residual(g: Graph, x: Value) -> None:
    """Behind a product, a norm or a gate."""
    kind, depth = g.one_of(["product", "norm", "gate", "attention"]), x.shape[-1]
    if kind == "product":
        y = g.intermediate("MatMul", [x.name, g.weight(depth, depth, scale=depth**-0.5)])
    elif kind == "norm":
        y = g.intermediate("LayerNormalization", [x.name, g.weight(depth)], axis=-1)
    elif kind == "gate":
        gate = g.intermediate("Sigmoid", [g.intermediate("MatMul", [x.name, g.weight(depth, 1, scale=depth**-0.5)])])
        y = g.intermediate("Mul", [gate, x.name])
    else:
        order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        keys = g.intermediate("Transpose", [x.name], perm=order)
        scores = g.intermediate("Mul", [g.intermediate("MatMul", [x.name, keys]), g.number(depth**-0.5)])
        y = g.intermediate("MatMul", [g.intermediate("Softmax", [scores], axis=-1), x.name])
    g.add("Add", [y, x.name][:: g.one_of([1, -1])], x.shape)


@step(ranks=range(1, 5))
def on_both_sides(g: Graph, x: Value) -> None:
    """The value of a half beside that of the other half: rotated, or gated."""
    axis = g.axis(x)
    half = x.shape[axis] // 2
    if x.shape[axis] % 2:
        return
    a, b = (
        g.intermediate("Slice", [x.name, g.constant([n * half]), g.constant([(n + 1) * half]), g.constant([axis])])
        for n in range(2)
    )
    if g.often(0.5):
        turned = g.intermediate("Concat", [g.intermediate("Neg", [b]), a], axis=axis)
        g.add("Add", [g.intermediate("Mul", [x.name, g.weight(*x.shape)]), turned], x.shape)
    else:
        shape = [half if i == axis else n for i, n in enumerate(x.shape)]
        g.add("Mul", [g.intermediate("Sigmoid", [a]), b], shape)
