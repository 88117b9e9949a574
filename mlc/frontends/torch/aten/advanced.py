"""Indexing with tensors, any number of them at once: reads, writes and sums.

Source: NumPy's documentation, "Advanced indexing", which PyTorch follows: the index tensors are broadcast, and their
dimensions stand where the first one was when they are next to each other, else in front. A mask of n dimensions is n
vectors of coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlc.frontends.common import elementwise, indexing, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import coordinates
from mlc.frontends.torch.aten.shape import as_vectors
from mlc.frontends.torch.registry import Call, Value, aten


@dataclass(frozen=True)
class _Places:
    """Where index tensors point: the dimensions of the indexed tensor, and one tensor of coordinates each."""

    axes: list[int]
    coordinates: list[Tensor]
    lead: int  # dimensions of the result in front of those of the coordinates

    def order(self, rank: int) -> list[int]:
        """The dimensions of the indexed tensor, those with coordinates first."""
        return [*self.axes, *(axis for axis in range(rank) if axis not in self.axes)]

    def points(self, b: Builder) -> Tensor:
        """The coordinates of each point in the last dimension."""
        rank = self.coordinates[0].rank
        return shape.concat(b, [shape.unsqueeze(b, line, [rank]) for line in self.coordinates], rank)


def _is_mask(index: Tensor) -> bool:
    return index.is_bool or index.dtype == "uint8"


def _places(b: Builder, x: Tensor, wanted: Sequence[Tensor | None]) -> _Places:
    axes: list[int] = []
    lines: list[Tensor] = []
    axis = 0
    for index in wanted:
        if index is None:
            axis += 1
        elif _is_mask(index):
            columns = coordinates(b, elementwise.cast(b, index, "bool"))
            for place in range(index.rank):
                axes.append(axis)
                lines.append(columns[place])
                axis += 1
        else:
            axes.append(axis)
            lines.append(elementwise.cast(b, indexing.as_indices(b, index), "int64"))
            axis += 1
    if axis > x.rank:
        raise NodeError(f"{axis} indices for {x}")
    given = [place for place, index in enumerate(wanted) if index is not None]
    together = given == list(range(given[0], given[-1] + 1))
    return _Places(axes, shape.broadcast_together(b, lines), axes[0] if together else 0)


def _front_to(rank: int, count: int, lead: int) -> list[int]:
    """The permutation that puts the first `count` of `rank` dimensions behind the `lead` that follow them."""
    return [*range(count, count + lead), *range(count), *range(count + lead, rank)]


@aten("index")
def index(call: Call) -> Tensor:
    """`x[i, j, …]`; full dimensions are None."""
    b, x, wanted = call.b, call.tensor(0), call[1]
    used = [place for place, tensor in enumerate(wanted) if tensor is not None]
    if not used:
        return x
    first = wanted[used[0]]
    if len(used) == 1 and not _is_mask(first):
        return indexing.gather(b, x, first, used[0])
    if len(used) == 1 and first.rank == 1:
        return indexing.compress(b, x, elementwise.cast(b, first, "bool"), used[0])
    places = _places(b, x, wanted)
    picked = b.op(
        "gather_nd",
        [shape.transpose(b, x, places.order(x.rank)), places.points(b)],
        batch_dims=0,
        unsigned=x.unsigned,
    )
    return shape.transpose(b, picked, _front_to(picked.rank, places.coordinates[0].rank, places.lead))


def _updated(b: Builder, x: Tensor, wanted: Sequence[Tensor | None], values: Tensor, add: bool) -> Tensor:
    """`x` with `values` at the places that `wanted` names; added to what is there if `add`."""
    if x.is_bool and add:
        counts = [elementwise.cast(b, tensor, "int64") for tensor in (x, values)]
        return elementwise.cast(b, _updated(b, counts[0], wanted, counts[1], add), "bool")
    places = _places(b, x, wanted)
    order, coordinates = places.order(x.rank), b.dims(places.coordinates[0])
    rest = [b.dim(x, axis) for axis in order[len(places.axes) :]]
    target = [*rest[: places.lead], *coordinates, *rest[places.lead :]]
    if values.rank > len(target):
        values = shape.squeeze(b, values, list(range(values.rank - len(target))))
    spread = shape.broadcast(b, values, target)
    back = [0] * len(target)
    for place, axis in enumerate(_front_to(len(target), len(coordinates), places.lead)):
        back[axis] = place
    turned, updates = shape.transpose(b, x, order), shape.transpose(b, spread, back)
    result = indexing.scatter_nd(b, turned, places.points(b), updates, "add" if add else "none")
    home = [0] * x.rank
    for place, axis in enumerate(order):
        home[axis] = place
    return shape.transpose(b, result, home)


@aten("index_put", "_unsafe_index_put")
def index_put(call: Call) -> Tensor:
    """`x[i, j, …] = values`, or `+=` with `accumulate`."""
    b, x, wanted = call.b, call.tensor(0), call[1]
    values, add = elementwise.cast(b, call.tensor(2), x.dtype), bool(call.get("accumulate", False))
    used = [place for place, tensor in enumerate(wanted) if tensor is not None]
    if len(used) == 1 and _is_mask(wanted[used[0]]) and all(extent == 1 for extent in values.shape):
        mask = elementwise.cast(b, wanted[used[0]], "bool")
        behind = x.rank - used[0] - mask.rank
        mask = shape.unsqueeze(b, mask, list(range(mask.rank, mask.rank + behind))) if behind else mask
        one = shape.reshape(b, values, [])
        return elementwise.select(b, mask, elementwise.binary(b, "add", x, one) if add else one, x)
    if len(used) == 1 and not add and wanted[used[0]].shape == [1]:
        return _one_slice(b, x, used[0], wanted[used[0]], values)
    return _updated(b, x, wanted, values, add)


def _one_slice(b: Builder, x: Tensor, axis: int, index: Tensor, values: Tensor) -> Tensor:
    """`x` with `values` at `index [1]` along `axis`."""
    extents = b.dims(x)
    extents[axis] = 1
    start = elementwise.cast(b, index, "int64")
    return indexing.insert_slices(b, x, shape.broadcast(b, values, extents), start, axis)


@aten("index_add", "index_copy", "index_fill")
@as_vectors
def along(call: Call) -> Tensor:
    """Slices of one dimension that are added to, copied to or filled."""
    b, x = call.b, call.tensor(0)
    axis = shape.normalize_axis(call.int(1), x.rank)
    values = elementwise.cast(b, call.tensor(3), x.dtype)
    alpha: Value = call.get("alpha", 1)
    if alpha != 1:
        factor = elementwise.cast(b, alpha, x.dtype) if isinstance(alpha, Tensor) else b.like(alpha, x)
        values = elementwise.binary(b, "mul", values, factor)
    index = shape.reshape_codes(b, call.tensor(2), [-1])
    start = indexing.stretch_start(b, index) if call.op == "aten::index_copy" else None
    if start is not None:
        return indexing.insert_slices(b, x, shape.reshape(b, values, _with_extent(b, x, axis, index)), start, axis)
    wanted = [None] * axis + [index]
    return _updated(b, x, wanted, values, call.op == "aten::index_add")


def _with_extent(b: Builder, x: Tensor, axis: int, index: Tensor) -> list[Size]:
    """The extents of the slices of `x` that `index` names along `axis`."""
    extents = b.dims(x)
    extents[axis] = b.dim(index, 0)
    return extents
