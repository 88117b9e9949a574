"""Rows of tables, one by one or combined in bags."""

from __future__ import annotations

import math

from mlc.frontends.common import elementwise, indexing, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, Value, aten


@aten("embedding")
def embedding(call: Call) -> Tensor:
    """Rows of a table."""
    call.get("padding_idx")  # of training
    return indexing.gather(call.b, call.tensor(0), call.tensor(1), 0)


@aten("embedding_renorm")
def embedding_renorm(call: Call) -> Tensor:
    """A lookup with `max_norm` changes its table."""
    raise NodeError(
        "an embedding with max_norm changes the rows of its table that it looks up",
        "limit the norms of the rows before the export, and leave max_norm out",
    )


@aten("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(call: Call) -> list[Value]:
    """Sums, means or maxima of the rows of each bag, which begins at its offset; and the bag of each row.

    (What else PyTorch returns serves the backward pass.)
    """
    b, table = call.b, call.tensor(0)
    indices, offsets = (elementwise.cast(b, call.tensor(i), "int64") for i in (1, 2))
    if call.get("include_last_offset"):
        offsets = shape.window(b, offsets, 0, 0, b.arith("subi", b.dim(offsets, 0), 1))
    bags = _bags(b, indices, offsets)
    rows = indexing.gather(b, table, indices, 0)
    weights, padding, mode = call.get("per_sample_weights"), call.get("padding_idx"), ("sum", "mean", "max")[call[4]]
    if weights is not None:
        rows = elementwise.binary(b, "mul", rows, shape.unsqueeze(b, weights, [1]))
    used = shape.full(b, b.dims(indices), b.like(True, elementwise.compare(b, "eq", bags, bags)))
    if padding is not None and padding != -1:
        used = elementwise.compare(b, "ne", indices, b.like(int(padding), indices))
    neutral = b.like(-math.inf if mode == "max" else 0.0, table)
    rows = elementwise.select(b, shape.unsqueeze(b, used, [1]), rows, neutral)
    points = shape.unsqueeze(b, bags, [1])
    count, width = b.dim(offsets, 0), b.dim(table, 1)
    members = shape.full(b, [count], b.like(0, indices))
    members = indexing.scatter_nd(b, members, points, elementwise.cast(b, used, "int64"), "add")
    start = shape.full(b, [count, width], neutral)
    total = indexing.scatter_nd(b, start, points, rows, "max" if mode == "max" else "add")
    divisor = shape.unsqueeze(b, elementwise.binary(b, "max", members, b.like(1, members)), [1])
    if mode == "mean":
        total = elementwise.binary(b, "div", total, elementwise.cast(b, divisor, table.dtype))
    elif mode == "max":
        empty = elementwise.compare(b, "eq", shape.unsqueeze(b, members, [1]), b.like(0, members))
        total = elementwise.select(b, empty, b.like(0.0, table), total)
    return [total, bags, members, None]


def _bags(b: Builder, indices: Tensor, offsets: Tensor) -> Tensor:
    """The number of the bag of each index: how many offsets are not behind it, less one."""
    places = shape.unsqueeze(b, shape.iota(b, b.dims(indices), 0, "int64"), [1])
    begun = elementwise.cast(b, elementwise.compare(b, "le", offsets, places), "int64")
    count = reduction.reduce(b, "sum", begun, [1], False)
    return elementwise.binary(b, "sub", count, b.like(1, count))
