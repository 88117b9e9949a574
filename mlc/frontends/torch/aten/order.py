"""Extremes so far, medians and modes."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.frontends.common import control_flow, elementwise, indexing, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.torch.aten.shape import as_vectors
from mlc.frontends.torch.registry import Call, aten


@aten("cummax", "cummin")
@as_vectors
def running_extreme(call: Call) -> list[Tensor]:
    """The largest or smallest element up to each, and where its last copy up to there is, int64. NaN is the extreme."""
    b, x = call.b, call.tensor(0)
    axis = shape.normalize_axis(call.int(1), x.rank)
    ordered = elementwise.cast(b, x, "int8") if x.is_bool else x
    values = reduction.scan(b, call.op.removeprefix("aten::cum").removesuffix("_"), ordered, axis, False, False)
    is_it = elementwise.compare(b, "eq", ordered, values)
    if x.is_float:
        is_it = elementwise.binary(b, "or", is_it, elementwise.unary(b, "isnan", x))
    return [elementwise.cast(b, values, x.dtype), _last_place(b, is_it, axis)]


def _last_place(b: Builder, holds: Tensor, axis: int) -> Tensor:
    """Up to each element, where along the axis the condition held last, 0 for nowhere; int64."""
    places = shape.iota(b, b.dims(holds), axis, "int64")
    marked = elementwise.select(b, holds, places, b.like(0, places))
    return reduction.scan(b, "max", marked, axis, False, False)


@aten("logcumsumexp")
@as_vectors
def running_log_sum_exp(call: Call) -> Tensor:
    """The logarithm of the running sum of exponentials, none of which overflows: one slice after the other."""
    b, x = call.b, call.tensor(0)
    axis = shape.normalize_axis(call.int(1), x.rank)
    sizes = [size for place, size in enumerate(b.dims(x)) if place != axis]

    def step(iteration: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        total = elementwise.log_add_exp(b, carried[0], control_flow.take(b, x, axis, iteration, False))
        return [total], [total]

    start = shape.full(b, sizes, b.like(float("-inf"), x))
    stacked = control_flow.for_(b, b.dim(x, axis), [start], step)[1]
    order = [*range(1, axis + 1), 0, *range(axis + 1, x.rank)]
    return shape.transpose(b, stacked, order)


@aten("median", "nanmedian")
@as_vectors
def median(call: Call) -> Tensor | list[Tensor]:
    """The lower one of the two in the middle, of all elements or along an axis, then with where it is, int64.

    NaN where there is one, or, for `nanmedian`, of the other elements.
    """
    b, x = call.b, call.tensor(0)
    if len(call.arguments) == 1:
        return _median(call, shape.reshape_codes(b, x, [-1]), 0)[0]
    found = _median(call, x, shape.normalize_axis(call.int(1), x.rank))
    axis = shape.normalize_axis(call.int(1), x.rank)
    return [shape.unsqueeze(b, value, [axis]) for value in found] if call[2] else found


def _median(call: Call, x: Tensor, axis: int) -> list[Tensor]:
    """Value and place, without the axis."""
    b = call.b
    results = indexing.sort(b, x, axis)
    count = b.dim(x, axis)
    if not x.is_float or call.op == "aten::median":
        middle = b.arith("divsi", b.arith("subi", count, 1), 2)
        found = [shape.squeeze(b, shape.window(b, value, axis, middle, 1), [axis]) for value in results]
        if not x.is_float:
            return found
        largest = reduction.reduce(b, "max", x, [axis], False)
        is_missing = elementwise.unary(b, "isnan", largest)
        where = reduction.arg_reduce(b, "max", x, axis, False, False)
        return [elementwise.select(b, is_missing, *pair) for pair in zip((largest, where), found, strict=True)]
    numbers = elementwise.cast(b, elementwise.unary(b, "not", elementwise.unary(b, "isnan", x)), "int64")
    last = reduction.reduce(b, "sum", numbers, [axis], True)
    last = elementwise.binary(b, "max", elementwise.binary(b, "sub", last, b.like(1, last)), b.like(0, last))
    return _at(b, results, elementwise.binary(b, "div", last, b.like(2, last)), axis)


def _at(b: Builder, values: Sequence[Tensor], places: Tensor, axis: int) -> list[Tensor]:
    """The elements at `places`, of extent 1 along the axis, without it."""
    found = [indexing.gather_elements(b, value, places, axis) for value in values]
    return [shape.squeeze(b, value, [axis]) for value in found]


@aten("mode")
@as_vectors
def mode(call: Call) -> list[Tensor]:
    """The smallest of the most frequent elements of a row, and where its last copy is (PyTorch: any), int64."""
    b, x = call.b, call.tensor(0)
    axis, keep = shape.normalize_axis(int(call.get("dim", -1)), x.rank), bool(call.get("keepdim", False))
    values, places = indexing.sort(b, x, axis)
    line = shape.iota(b, b.dims(x), axis, "int64")
    at = indexing.gather_elements(b, values, indexing.before(b, line), axis)
    is_new = elementwise.compare(b, "ne", values, at)
    length = elementwise.binary(b, "sub", line, _last_place(b, is_new, axis))
    longest = reduction.arg_reduce(b, "max", length, axis, True, False)
    found = _at(b, [values, places], longest, axis)
    return [shape.unsqueeze(b, value, [axis]) for value in found] if keep else found
