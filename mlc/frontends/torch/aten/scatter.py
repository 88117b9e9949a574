"""Elements and slices that are written to places of a tensor, or combined with what is there."""

from __future__ import annotations

from mlc.frontends.common import elementwise, indexing, shape
from mlc.frontends.common.builder import Builder, Tensor, unit
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, as_size, aten

_KINDS = {
    "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min", "mean": "add",
}  # fmt: skip


def _scattered(b: Builder, x: Tensor, places: Tensor, updates: Tensor, axis: int, kind: str = "none") -> Tensor:
    """`updates` at `places` along `axis`; there may be more updates than places, at the ends of dimensions."""
    if updates.shape != places.shape or None in places.shape:
        updates = shape.slice_(b, updates, [0] * updates.rank, b.dims(places), [1] * updates.rank)
    is_unsigned = unit(x.unsigned and kind in ("max", "min"))
    return b.op(
        "scatter_elements", [x, places, updates], axis=axis, reduction=kind, unsigned=x.unsigned,
        is_unsigned=is_unsigned,
    )  # fmt: skip


def _kind(name: str) -> str:
    if name not in _KINDS:
        raise NodeError(f"the reduction {name!r}", f"known are {', '.join(sorted(_KINDS))}")
    return _KINDS[name]


@aten("scatter", "scatter_add")
def scatter(call: Call) -> Tensor:
    """Updates along one dimension: written, added or multiplied."""
    b, x = call.b, call.tensor(0)
    axis = shape.normalize_axis(call.int(1), x.rank)
    places, updates, reduction = indexing.as_indices(b, call.tensor(2)), call[3], call.get("reduce")
    if not isinstance(updates, Tensor) or updates.rank == 0 < places.rank:
        value = b.like(updates, x) if not isinstance(updates, Tensor) else updates
        updates = shape.expand(b, value, b.dims(places))
    kind = "add" if call.op == "aten::scatter_add" else "none" if reduction is None else _kind(reduction)
    return _scattered(b, x, places, elementwise.cast(b, updates, x.dtype), axis, kind)


@aten("scatter_reduce")
def scatter_reduce(call: Call) -> Tensor:
    """Sums, products, extreme values or means of what goes to the same place, with or without what is there."""
    b, x, updates = call.b, call.tensor(0), call.tensor(3)
    axis, name = shape.normalize_axis(call.int(1), x.rank), str(call[4])
    places, kind, with_self = indexing.as_indices(b, call.tensor(2)), _kind(name), bool(call.get("include_self", True))
    base = x
    if not with_self:
        start = updates if kind in ("max", "min") else shape.full(b, b.dims(places), b.like(int(kind == "mul"), x))
        base = _scattered(b, x, places, start, axis)
    total = _scattered(b, base, places, updates, axis, kind)
    if name != "mean":
        return total
    ones, each = (shape.full(b, b.dims(t), b.like(1, x)) for t in (x, places))
    if not with_self:
        ones = _scattered(b, ones, places, shape.full(b, b.dims(places), b.like(0, x)), axis)
    count = _scattered(b, ones, places, each, axis, "add")
    quotient = elementwise.binary(b, "div", total, count)
    if x.is_float:
        return quotient
    rest = elementwise.binary(b, "mod", total, count)  # integers are rounded down
    return elementwise.binary(b, "div", elementwise.binary(b, "sub", total, rest), count)


@aten("select_scatter", "slice_scatter")
def slices(call: Call) -> Tensor:
    """A copy with one slice, or several, of a dimension replaced."""
    b, x, updates = call.b, call.tensor(0), elementwise.cast(call.b, call.tensor(1), call.tensor(0).dtype)
    axis = shape.normalize_axis(int(call.get("dim", 0)), x.rank)
    line = shape.iota(b, [b.dim(x, axis)], 0, "int64")
    if call.op == "aten::select_scatter":
        places = shape.slice_axes(b, line, [0], [as_size(b, call[3])], [shape.INT64_MAX], [1])
        places = shape.window(b, places, 0, 0, 1)
        updates = shape.unsqueeze(b, updates, [axis])
    else:
        start = 0 if call[3] is None else as_size(b, call[3])
        end = shape.INT64_MAX if call[4] is None else as_size(b, call[4])
        places = shape.slice_axes(b, line, [0], [start], [end], [int(call.get("step", 1))])
    column = shape.unsqueeze(b, places, [i for i in range(x.rank) if i != axis])
    return _scattered(b, x, shape.expand(b, column, b.dims(updates)), updates, axis)
