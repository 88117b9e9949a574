"""Mixtures of experts: rows that go to some of many layers, as products of the rows that each of them got.

The rows are put in the order of their experts, so that every expert has a stretch of them: one product of as many rows
as chose it, none where nobody did.
"""

from __future__ import annotations

from collections.abc import Callable

from mlc.frontends.common import control_flow, indexing, normalization, reduction, shape
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common.builder import Builder, Size, Tensor

Layer = Callable[[Tensor, Size], Tensor]
"""Rows `[n, in]` and the number of the group that they are, to rows `[n, out]`."""


def by_groups(b: Builder, rows: Tensor, begins: Tensor, ends: Tensor, width: Size, layer: Layer) -> Tensor:
    """What `layer` makes of stretches of `rows [n, in]`, `[n, width]`: of stretch g the rows from `begins[g]` to in
    front of `ends[g]` (i64, inside of the rows). A loop over those that have rows; rows in none become 0.
    """
    some = b.op("nonzero", [ew.compare(b, "lt", begins, ends)])
    some = shape.reshape_codes(b, some, [-1])

    def fill(number: Size, carried: Tensor) -> Tensor:
        group = b.element(some, number)
        begin, end = b.element(begins, group), b.element(ends, group)
        part = layer(shape.window(b, rows, 0, begin, b.arith("subi", end, begin)), group)
        start = shape.window(b, begins, 0, group, 1)
        return indexing.insert(b, carried, shape.unsqueeze(b, part, [0]), start, 1)

    nothing = shape.full(b, [1, b.dim(rows, 0), width], b.like(0, rows))
    return shape.squeeze(b, control_flow.repeat(b, b.dim(some, 0), nothing, fill), [0])


def shares_of_all(b: Builder, scores: Tensor, k: int, normalize: bool) -> tuple[Tensor, Tensor]:
    """The `k` largest of the softmax of `scores [tokens, experts]` and whose they are, f32 and i64 `[tokens, k]`; made
    to sum up to 1 if `normalize` says so.
    """
    probabilities = normalization.softmax(b, ew.cast(b, scores, "float32"), 1)
    shares, chosen = indexing.topk(b, probabilities, k, 1)
    return (_whole(b, shares) if normalize else shares), chosen


def shares_of_chosen(b: Builder, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The softmax of the `k` largest `scores`."""
    largest, chosen = indexing.topk(b, ew.cast(b, scores, "float32"), k, 1)
    return normalization.softmax(b, largest, 1), chosen


def shares_given(b: Builder, scores: Tensor, weights: Tensor, k: int, normalize: bool) -> tuple[Tensor, Tensor]:
    """The `weights` of the `k` largest `scores`: another table of the same shape."""
    _, chosen = indexing.topk(b, ew.cast(b, scores, "float32"), k, 1)
    shares = indexing.gather_elements(b, ew.cast(b, weights, "float32"), chosen, 1)
    return (_whole(b, shares) if normalize else shares), chosen


def _whole(b: Builder, shares: Tensor) -> Tensor:
    """Rows divided by their sums; a row whose sum is 0 stays as it is."""
    total = reduction.reduce(b, "sum", shares, [1], True)
    nothing = ew.compare(b, "eq", total, b.like(0, total))
    return ew.binary(b, "div", shares, ew.select(b, nothing, b.like(1, total), total))


def mixture(b: Builder, x: Tensor, shares: Tensor, chosen: Tensor, experts: int, width: Size, layer: Layer) -> Tensor:
    """For each row of `x [tokens, in]` the sum of what its experts `chosen [tokens, k]` make of it, times their
    `shares [tokens, k]` (f32): `[tokens, width]` of the dtype of `x`.
    """
    tokens, k = b.dim(x, 0), chosen.type.shape[1]
    count = b.product([tokens, k])
    flat = shape.reshape(b, chosen, [count])
    _, order = indexing.sort(b, flat)
    numbers, line = shape.iota(b, [experts, 1], 0, "int64"), shape.unsqueeze(b, flat, [0])
    begins, ends = (
        reduction.reduce(b, "sum", ew.cast(b, ew.compare(b, kind, line, numbers), "int64"), [1], False)
        for kind in ("lt", "le")
    )
    rows = indexing.gather(b, x, ew.binary(b, "div", order, b.like(k, order)), 0)
    made = by_groups(b, rows, begins, ends, width, layer)
    places = indexing.scatter(b, order, order, shape.iota(b, [count], 0, "int64"), 0)
    spread = shape.reshape(b, indexing.gather(b, made, places, 0), [tokens, k, width])
    weighted = ew.binary(b, "mul", ew.cast(b, spread, "float32"), shape.unsqueeze(b, shares, [2]))
    return ew.cast(b, reduction.reduce(b, "sum", weighted, [1], False), x.dtype)
