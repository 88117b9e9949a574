"""Reductions, positions of extreme values, running sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlc.frontends.common import elementwise, indexing, linalg, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import dtype_of
from mlc.frontends.torch.aten.shape import as_vectors
from mlc.frontends.torch.registry import Call, Value, aten, like, promoted


def _axes(call: Call, x: Tensor, name: str = "dim") -> list[int]:
    given = call.get(name)
    if given is None or given == []:
        return list(range(x.rank))
    return shape.normalize_axes(call.ints(call.names.index(name)), x.rank)


def _input(call: Call) -> Tensor:
    """The input, in the dtype that the sum is asked for."""
    x, wanted = call.tensor(0), call.get("dtype")
    if wanted is not None:
        return elementwise.cast(call.b, x, dtype_of(wanted))
    if call.op in ("aten::sum", "aten::prod", "aten::cumsum", "aten::cumprod") and not x.is_float:
        return elementwise.cast(call.b, x, "int64")
    return x


@aten("sum", "prod", "amax", "amin")
@as_vectors
def reduce(call: Call) -> Tensor:
    """Sums, products and extreme values."""
    x = _input(call)
    kind = {"aten::amax": "max", "aten::amin": "min"}.get(call.op, call.op.removeprefix("aten::"))
    return reduction.reduce(call.b, kind, x, _axes(call, x), bool(call.get("keepdim", False)))


@aten("mean", "logsumexp")
@as_vectors
def mean(call: Call) -> Tensor:
    """Means, and the logarithm of a sum of exponentials."""
    x = _input(call)
    kind = "mean" if call.op == "aten::mean" else "log_sum_exp"
    x = elementwise.floating(call.b, x)
    return reduction.statistic(call.b, kind, x, _axes(call, x), bool(call.get("keepdim", False)))


@aten("cov", "corrcoef")
@as_vectors
def covariance(call: Call) -> Tensor:
    """Covariances of rows of observations, with the divisor n − correction, or what they are to the rows' own ones."""
    b, x = call.b, elementwise.floating(call.b, call.tensor(0))
    if call.get("fweights") is not None or call.get("aweights") is not None:
        raise NodeError("it weighs its observations", "weigh them before")
    rows = shape.unsqueeze(b, x, [0]) if x.rank == 1 else x
    deviation = elementwise.binary(b, "sub", rows, reduction.statistic(b, "mean", rows, [1], True))
    products = linalg.matmul(b, deviation, deviation, transpose_rhs=True)
    if call.op == "aten::corrcoef":
        norms = reduction.statistic(b, "l2", deviation, [1], True)
        both = elementwise.binary(b, "mul", norms, shape.transpose(b, norms, [1, 0]))
        result = elementwise.binary(b, "div", products, both)
        result = elementwise.clamp(b, result, b.like(-1, x), b.like(1, x))
    else:
        result = elementwise.binary(b, "div", products, _observations(b, rows, [1], call.get("correction", 1)))
    return shape.reshape(b, result, []) if x.rank == 1 else result


def _observations(b: Builder, x: Tensor, axes: Sequence[int], correction: Value) -> Tensor:
    """How many elements `axes` have, less a correction; at least 0."""
    count = elementwise.cast(b, shape.size_scalar(b, b.product([b.dim(x, a) for a in axes])), x.dtype)
    return elementwise.binary(b, "max", elementwise.binary(b, "sub", count, like(b, correction, x)), b.like(0, x))


@aten("var", "std", "var_mean", "std_mean")
@as_vectors
def variance(call: Call) -> Tensor | list[Tensor]:
    """Variance with the divisor n − correction (1 unless `unbiased` or `correction` say otherwise), at least 0."""
    b, x = call.b, call.tensor(0)
    axes, keep = _axes(call, x), bool(call.get("keepdim", False))
    correction = call.get("correction")
    if correction is None:
        correction = 0 if call.get("unbiased", True) is False else 1
    mean_ = reduction.statistic(b, "mean", x, axes, True)
    deviation = elementwise.binary(b, "sub", x, mean_)
    total = reduction.reduce(b, "sum", elementwise.binary(b, "mul", deviation, deviation), axes, keep)
    result = elementwise.binary(b, "div", total, _observations(b, x, axes, correction))
    if call.op == "aten::std":
        return elementwise.unary(b, "sqrt", result)
    if call.op == "aten::var":
        return result
    if call.op == "aten::std_mean":
        result = elementwise.unary(b, "sqrt", result)
    return [result, mean_ if keep else reduction.statistic(b, "mean", x, axes, False)]


@aten("max", "min")
def extreme(call: Call) -> Tensor | list[Tensor]:
    """The extreme value of all; of an axis, with its position; or the larger of two tensors."""
    b, x, kind = call.b, call.tensor(0), call.op.removeprefix("aten::")
    if len(call.arguments) == 1:
        return reduction.reduce(b, kind, x, list(range(x.rank)), False)
    if isinstance(call[1], Tensor):
        return elementwise.binary(b, kind, *promoted(b, call.arguments[:2]))
    return _extreme_of_axis(call)


@as_vectors
def _extreme_of_axis(call: Call) -> list[Tensor]:
    b, x, kind = call.b, call.tensor(0), call.op.removeprefix("aten::")
    axis, keep = shape.normalize_axis(call.int(1), x.rank), bool(call[2])
    values = reduction.reduce(b, kind, x, [axis], keep)
    return [values, reduction.arg_reduce(b, kind, x, axis, keep, False)]


@aten("argmax", "argmin")
@as_vectors
def arg_extreme(call: Call) -> Tensor:
    """Positions of extreme values, in the flattened tensor without `dim`."""
    b, x = call.b, call.tensor(0)
    kind = call.op.removeprefix("aten::arg")
    if call.get("dim") is None:
        return reduction.arg_reduce(b, kind, shape.reshape_codes(b, x, [-1]), 0, False, False)
    axis = shape.normalize_axis(call.int(1), x.rank)
    return reduction.arg_reduce(b, kind, x, axis, bool(call.get("keepdim", False)), False)


@aten("cumsum", "cumprod")
@as_vectors
def cumulative(call: Call) -> Tensor:
    """Running sums and products."""
    x = _input(call)
    axis = shape.normalize_axis(call.int(1), x.rank)
    return reduction.scan(call.b, "sum" if "sum" in call.op else "prod", x, axis, False, False)


@aten("any", "all")
@as_vectors
def truth(call: Call) -> Tensor:
    """Is any, or every, element non-zero?"""
    x = elementwise.cast(call.b, call.tensor(0), "bool")
    kind = "or" if call.op == "aten::any" else "and"
    result = reduction.reduce(call.b, kind, x, _axes(call, x), bool(call.get("keepdim", False)))
    return elementwise.cast(call.b, result, "uint8") if call.tensor(0).dtype == "uint8" else result


@aten("linalg_vector_norm", "norm", "linalg_norm")
@as_vectors
def norm(call: Call) -> Tensor:
    """Norms of vectors, of any order; of all elements where there are no dimensions."""
    b, x, order = call.b, _input(call), call.get("ord", call.get("p", 2))
    axes, keep = _axes(call, x), bool(call.get("keepdim", False))
    if call.op == "aten::linalg_norm" and len(axes) == 2 and order not in (None, "fro"):
        raise NodeError(f"the norm of matrices of order {order}", "use torch.linalg.vector_norm, or another order")
    return vector_norm(b, x, 2 if order in (None, "fro") else order, axes, keep)


def vector_norm(b: Builder, x: Tensor, order: Value, axes: Sequence[int], keep: bool) -> Tensor:
    """The norm of order `order`, a number, of vectors along `axes`. Raises NodeError for others."""
    if order in (1, 2):
        return reduction.statistic(b, "l1" if order == 1 else "l2", x, axes, keep)
    if not isinstance(order, int | float):
        raise NodeError(f"norms of order {order} are not supported", "use a number for the order")
    if order == 0:
        some = elementwise.compare(b, "ne", x, b.like(0, x))
        return reduction.reduce(b, "sum", elementwise.cast(b, some, x.dtype), axes, keep)
    size = elementwise.unary(b, "abs", x)
    if math.isinf(order):
        return reduction.reduce(b, "max" if order > 0 else "min", size, axes, keep)
    total = reduction.reduce(b, "sum", elementwise.binary(b, "pow", size, b.like(float(order), x)), axes, keep)
    return elementwise.binary(b, "pow", total, b.like(1 / order, x))


@aten("count_nonzero")
@as_vectors
def count_nonzero(call: Call) -> Tensor:
    """How many elements are not zero."""
    x = call.tensor(0)
    ones = elementwise.cast(call.b, elementwise.cast(call.b, x, "bool"), "int64")
    return reduction.reduce(call.b, "sum", ones, _axes(call, x), False)


@aten("aminmax")
@as_vectors
def aminmax(call: Call) -> list[Tensor]:
    """The least and the largest."""
    x, keep = call.tensor(0), bool(call.get("keepdim", False))
    axes = list(range(x.rank)) if call.get("dim") is None else _axes(call, x)
    return [reduction.reduce(call.b, kind, x, axes, keep) for kind in ("min", "max")]


@aten("cosine_similarity")
def cosine_similarity(call: Call) -> Tensor:
    """The product of two vectors over that of their lengths, none of which counts less than epsilon."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    product = elementwise.binary(b, "mul", x, y)
    if product.rank == 0:
        x, y, product = (shape.unsqueeze(b, value, [0]) for value in (x, y, product))
    axis = [shape.normalize_axis(int(call.get("dim", 1)), product.rank)]
    floor = b.like(float(call.get("eps", 1e-8)), product)
    lengths = []
    for value in (x, y):
        wide = shape.broadcast(b, value, b.dims(product))
        lengths.append(elementwise.binary(b, "max", reduction.statistic(b, "l2", wide, axis, False), floor))
    total = reduction.reduce(b, "sum", product, axis, False)
    return elementwise.binary(b, "div", total, elementwise.binary(b, "mul", *lengths))


@aten("nansum", "nanmean")
@as_vectors
def without_nan(call: Call) -> Tensor:
    """Sums and means of the elements that are numbers."""
    b, x = call.b, _input(call)
    axes, keep = _axes(call, x), bool(call.get("keepdim", False))
    if not x.is_float:
        return reduction.reduce(b, "sum", elementwise.cast(b, x, "int64"), axes, keep)
    missing = elementwise.unary(b, "isnan", x)
    total = reduction.reduce(b, "sum", elementwise.select(b, missing, b.like(0, x), x), axes, keep)
    if call.op == "aten::nansum":
        return total
    present = elementwise.cast(b, elementwise.unary(b, "not", missing), x.dtype)
    return elementwise.binary(b, "div", total, reduction.reduce(b, "sum", present, axes, keep))


@aten("kthvalue")
@as_vectors
def kth_value(call: Call) -> list[Tensor]:
    """The k-th smallest element of each row, and where it is."""
    b, x = call.b, call.tensor(0)
    axis, keep = shape.normalize_axis(int(call.get("dim", -1)), x.rank), bool(call.get("keepdim", False))
    found = [shape.window(b, value, axis, call.int(1) - 1, 1) for value in indexing.sort(b, x, axis)]
    return found if keep else [shape.squeeze(b, value, [axis]) for value in found]


@aten("histc")
def histogram(call: Call) -> Tensor:
    """How many elements lie in each of equal intervals; what lies outside all does not count.

    An interval without extent stands for that between the extremes, one around them where those are equal.
    """
    b, x, bins = call.b, call.tensor(0), call.int(1)
    flat = shape.reshape_codes(b, x, [-1])
    low, high = (b.like(float(call[place]), x) for place in (2, 3))
    if call[2] > call[3]:
        raise NodeError(f"an interval from {call[2]} to {call[3]}", "give its lower end first")
    if call[2] == call[3]:
        low, high = (reduction.reduce(b, kind, flat, [0], False) for kind in ("min", "max"))
        margin = elementwise.cast(b, elementwise.compare(b, "eq", low, high), x.dtype)
        low, high = elementwise.binary(b, "sub", low, margin), elementwise.binary(b, "add", high, margin)
    width = elementwise.binary(b, "sub", high, low)
    share = elementwise.binary(b, "div", b.like(bins, x), width)
    place = elementwise.binary(b, "mul", elementwise.binary(b, "sub", flat, low), share)
    place = elementwise.binary(b, "min", elementwise.unary(b, "floor", place), b.like(bins - 1, x))
    inside = [elementwise.compare(b, kind, flat, edge) for kind, edge in (("ge", low), ("le", high))]
    place = elementwise.select(b, elementwise.binary(b, "and", *inside), place, b.like(-1, x))
    lines = elementwise.cast(b, shape.iota(b, [bins], 0, "int64"), x.dtype)
    equal = elementwise.compare(b, "eq", shape.unsqueeze(b, place, [1]), lines)
    return reduction.reduce(b, "sum", elementwise.cast(b, equal, x.dtype), [0], False)


@aten("mse_loss", "l1_loss")
def loss(call: Call) -> Tensor:
    """Squares or absolute values of differences: each one, their mean or their sum."""
    b, (x, y) = call.b, promoted(call.b, [call[0], call[1]])
    difference = elementwise.binary(b, "sub", x, y)
    if call.op == "aten::mse_loss":
        each = elementwise.binary(b, "mul", difference, difference)
    else:
        each = elementwise.unary(b, "abs", difference)
    kind, axes = (None, "mean", "sum")[call.int(2)], list(range(each.rank))
    if kind == "mean":
        return reduction.statistic(b, kind, each, axes, False)
    return each if kind is None else reduction.reduce(b, kind, each, axes, False)
