"""Gathers, scatters, sorting and other data-dependent addressing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir

from mlc.frontends.common import control_flow, reduction, shape
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common.builder import Builder, Size, Tensor, unit


def as_indices(b: Builder, x: Tensor) -> Tensor:
    """`x` as a tensor that the indexing operations accept, `int32` or `int64`."""
    return x if x.dtype in ("int32", "int64") else ew.cast(b, x, "int64")


def gather(b: Builder, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """`numpy.take` along a normalised axis."""
    folded = None
    positions = indices.constant
    if x.known is not None and positions is not None and _inside(positions, x.known.shape[axis]):
        folded = np.asarray(np.take(x.known, positions, axis), x.known.dtype)
    return b.op("gather", [x, as_indices(b, indices)], axis=axis, unsigned=x.unsigned, known=folded)


def _inside(positions: np.ndarray, extent: int) -> bool:
    return bool(np.all((positions >= -extent) & (positions < extent)))


def topk(
    b: Builder, x: Tensor, k: Size, axis: int, largest: bool = True, sorted_: bool = True
) -> tuple[Tensor, Tensor]:
    """`mlc.topk`: values and `i64` positions."""
    operation = b.emit(
        "topk",
        [x, b.as_index(k)],
        axis=axis,
        largest=largest,
        sorted=sorted_,
        is_unsigned=unit(x.unsigned),
    )
    values = Tensor(operation.results[0], x.unsigned)
    extents = x.shape
    extents[axis] = k if isinstance(k, int) else None
    return b.refined(values, extents), b.refined(Tensor(operation.results[1]), extents)


def gather_elements(b: Builder, x: Tensor, places: Tensor, axis: int) -> Tensor:
    """`numpy.take_along_axis` along a normalised axis."""
    return b.op("gather_elements", [x, as_indices(b, places)], axis=axis, unsigned=x.unsigned)


def scatter(b: Builder, x: Tensor, places: Tensor, updates: Tensor, axis: int, kind: str = "none") -> Tensor:
    """`x` with each of `updates` at its place along `axis`, or combined with what is there: `kind` is `none`, `add`,
    `mul`, `max` or `min`. A sum of truth values is whether one of them holds."""
    return _scattered(b, "scatter_elements", x, places, updates, kind, axis=axis)


def scatter_nd(b: Builder, x: Tensor, points: Tensor, updates: Tensor, kind: str = "none") -> Tensor:
    """The same with slices, at the coordinates that the last dimension of `points` holds."""
    return _scattered(b, "scatter_nd", x, points, updates, kind)


def _scattered(b: Builder, name: str, x: Tensor, places: Tensor, updates: Tensor, kind: str, **options: Any) -> Tensor:
    if x.is_bool and kind != "none":
        x, updates = (ew.cast(b, tensor, "uint8") for tensor in (x, updates))
        kind = {"add": "max", "mul": "min"}.get(kind, kind)
        return ew.cast(b, _scattered(b, name, x, places, updates, kind, **options), "bool")
    sign = unit(x.unsigned and kind in ("max", "min"))
    return b.op(name, [x, places, updates], reduction=kind, unsigned=x.unsigned, is_unsigned=sign, **options)


def insert(b: Builder, x: Tensor, update: Tensor, starts: Tensor, axis: int, *, open_end: bool = False) -> Tensor:
    """`mlc.insert` of `update` into `x` along `axis`, not 0: each entry of the batch from `starts [batch]` (i64) on."""
    return b.op("insert", [x, update, starts], axis=axis, unsigned=x.unsigned, open_end=unit(open_end))


def insert_slices(b: Builder, x: Tensor, update: Tensor, start: Tensor, axis: int) -> Tensor:
    """`x` with `update` along any `axis` from `start [1] i64` on, which counts from the end where it is negative and
    the update known to be one slice. A run ends with an error where the update would not lie inside of `x`: one that
    reads a place that is not there.
    """
    room = b.arith("addi", b.arith("subi", b.dim(x, axis), b.dim(update, axis)), 1)
    places = shape.iota(b, [b.arith("maxsi", room, 0)], 0, "int64")
    if b.dim(update, axis) != 1:  # several slices in front of the end are no stretch if some of them are behind it
        before = ew.binary(b, "sub", start, shape.size_scalar(b, b.dim(x, axis)))
        start = ew.select(b, ew.compare(b, "lt", start, b.like(0, start)), before, start)
    return _insert_slices(b, x, update, gather(b, places, start, 0), axis)


def _insert_slices(b: Builder, x: Tensor, update: Tensor, start: Tensor, axis: int) -> Tensor:
    if axis == 0:
        grown = _insert_slices(b, shape.unsqueeze(b, x, [0]), shape.unsqueeze(b, update, [0]), start, 1)
        return shape.squeeze(b, grown, [0])
    return insert(b, x, update, shape.broadcast(b, start, [b.dim(x, 0)]), axis)


def stretch_start(b: Builder, index: Tensor) -> Tensor | None:
    """The first of the positions `index [n]`, as `[1] i64`, where the graph says that each is one more than the one
    before it; None where it does not say so.
    """
    positions = index.constant
    if positions is not None:
        if positions.size and np.all(np.diff(positions) == 1):
            return b.constant(positions[:1].astype(np.int64), "int64")
        return None
    if index.shape == [1]:
        return ew.cast(b, index, "int64")
    if _is_ramp(index.value):
        return b.constant(np.zeros(1, np.int64), "int64")
    op = _made_by(index.value, "mlc.binary")
    if op is None or ir.StringAttr(op.attributes["kind"]).value != "add":
        return None
    for ramp, offset in (op.operands, reversed(list(op.operands))):
        type_ = ir.RankedTensorType(offset.type)
        if _is_ramp(ramp) and type_.has_static_shape and all(extent == 1 for extent in type_.shape):
            return ew.cast(b, shape.reshape_codes(b, Tensor(offset, index.unsigned), [1]), "int64")
    return None


def _made_by(value: ir.Value, name: str) -> ir.Operation | None:
    """The operation that makes `value`, if it has that name."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    return op if op is not None and op.name == name else None


def _is_ramp(value: ir.Value) -> bool:
    """Is that 0, 1, 2, …?"""
    return _made_by(value, "mlc.iota") is not None and ir.RankedTensorType(value.type).rank == 1


def compress(b: Builder, x: Tensor, condition: Tensor, axis: int) -> Tensor:
    """The slices of `x` along `axis` where the rank-1 condition holds (it may be shorter than the dimension)."""
    extent, length = b.dim(x, axis), b.dim(condition, 0)
    if not (isinstance(extent, int) and isinstance(length, int)):
        shape.require(b, "sge", extent, length, f"the condition is longer than dimension {axis}")
    places = b.op("nonzero", [condition])
    return gather(b, x, shape.reshape_codes(b, places, [-1]), axis)


def sort(b: Builder, x: Tensor, axis: int = 0, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The elements in order along a normalised axis, NaN as the largest, and where they came from, `i64`."""
    operation = b.emit("sort", [x], axis=axis, descending=descending, is_unsigned=unit(x.unsigned))
    return Tensor(operation.results[0], x.unsigned), Tensor(operation.results[1])


def unique(b: Builder, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The distinct elements of a vector in ascending order, and `i64` where each is first, the number of the value of
    each element, and how often each occurs. Each element that is not a number is one of its own.
    """
    if x.is_float:
        ordered, places = sort(b, x)
        starts, numbers, counts = stretches(b, shape.unsqueeze(b, ordered, [1]))
        inverse = scatter(b, numbers, places, numbers, 0)
        return gather(b, ordered, starts, 0), gather(b, places, starts, 0), inverse, counts
    operation = b.emit("unique", [x], sorted=True, is_unsigned=unit(x.unsigned))
    values, first, inverse, counts = operation.results
    return Tensor(values, x.unsigned), Tensor(first), Tensor(inverse), Tensor(counts)


def rows(b: Builder, x: Tensor, axis: int) -> Tensor:
    """The slices of `x` along a normalised axis as the rows of a matrix."""
    turned = shape.transpose(b, x, [axis, *(dim for dim in range(x.rank) if dim != axis)])
    return shape.reshape(b, turned, [b.dim(turned, 0), b.product(b.dims(turned)[1:])])


def stretches(b: Builder, matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of rows that are equal to the one before them: where each stretch begins, the number of the stretch of each row,
    and how long each is; vectors of `i64`.
    """
    count = b.dim(matrix, 0)
    line = shape.iota(b, [count], 0, "int64")
    first = ew.compare(b, "eq", line, b.like(0, line))
    differs = ew.compare(b, "ne", matrix, gather(b, matrix, before(b, line), 0))
    differs = reduction.reduce(b, "max", differs, [1], False)
    begins = ew.binary(b, "or", differs, first)
    starts = shape.reshape_codes(b, b.op("nonzero", [begins]), [-1])
    numbers = reduction.scan(b, "sum", ew.cast(b, begins, "int64"), 0, False, False)
    ends = shape.concat(b, [starts, shape.reshape(b, shape.size_scalar(b, count), [1])], 0)
    lengths = ew.binary(b, "sub", shape.window(b, ends, 0, 1, b.dim(starts, 0)), starts)
    return starts, ew.binary(b, "sub", numbers, b.like(1, numbers)), lengths


def before(b: Builder, places: Tensor) -> Tensor:
    """The place before each, 0 before the first."""
    return ew.binary(b, "max", ew.binary(b, "sub", places, b.like(1, places)), b.like(0, places))


def ranks(b: Builder, rows: Tensor) -> Tensor:
    """The place of each row of a matrix among the distinct rows, in lexicographic order: `i64 [rows]`.

    Stable sorts by one column after the other, the last one first.
    """
    count = b.dim(rows, 0)
    start = shape.iota(b, [count], 0, "int64")

    def by_column(iteration: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        [order] = carried
        column = control_flow.take(b, rows, 1, iteration, True)
        _, places = sort(b, gather(b, column, order, 0))
        return [gather(b, order, places, 0)], []

    [order] = control_flow.for_(b, b.dim(rows, 1), [start], by_column)
    ordered = gather(b, rows, order, 0)
    before = ew.binary(b, "max", ew.binary(b, "sub", start, b.like(1, start)), b.like(0, start))
    differs = ew.compare(b, "ne", ordered, gather(b, ordered, before, 0))
    steps = ew.cast(b, reduction.reduce(b, "max", differs, [1], False), "int64")
    numbers = reduction.scan(b, "sum", steps, 0, False, False)
    return scatter(b, numbers, order, numbers, 0)
