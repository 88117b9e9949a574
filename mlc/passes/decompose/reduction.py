"""`statistic`."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, element
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition


@decomposition("mlc.statistic")
def statistic(op: OpAdaptor) -> ir.Value:
    """Narrow floats compute in `f32`, integers in `f64`. `variance` takes two passes (the population variance),
    `log_sum_exp` shifts by the maximum."""
    x, result = op.operand(0), op.types[0].element_type
    compute = b.wide_type(element(x)) if b.is_float(element(x)) else ir.F64Type.get()
    value = _KINDS[op.text()](b.cast(x, compute), op.ints("axes"), op.flag("keepdims"))
    return b.cast(value, result)


def variance(x: ir.Value, axes: list[int], keepdims: bool) -> ir.Value:
    """The mean of the squared distances from the mean."""
    centered = b.sub(x, b.mean(x, axes))
    return b.mean(b.mul(centered, centered), axes, keepdims)


def _log_sum_exp(x: ir.Value, axes: list[int], keepdims: bool) -> ir.Value:
    """An infinite maximum is no shift: `inf - inf` would be NaN."""
    top = b.reduce("max", x, axes)
    shift = b.select(b.compare("lt", b.unary("abs", top), float("inf")), top, b.like(x, 0))
    total = b.unary("log", b.reduce("sum", b.unary("exp", b.sub(x, shift)), axes, keepdims))
    if keepdims:
        return b.add(total, shift)
    rest = [s for i, s in enumerate(b.sizes(shift)) if i not in axes]
    return b.add(total, b.reshape(shift, rest))


def _sum_of_squares(x: ir.Value, axes: list[int], keepdims: bool) -> ir.Value:
    return b.reduce("sum", b.mul(x, x), axes, keepdims)


_KINDS: dict[str, Callable[[ir.Value, list[int], bool], ir.Value]] = {
    "mean": b.mean,
    "variance": variance,
    "l1": lambda x, axes, keepdims: b.reduce("sum", b.unary("abs", x), axes, keepdims),
    "l2": lambda x, axes, keepdims: b.unary("sqrt", _sum_of_squares(x, axes, keepdims)),
    "log_sum": lambda x, axes, keepdims: b.unary("log", b.reduce("sum", x, axes, keepdims)),
    "log_sum_exp": _log_sum_exp,
    "sum_square": _sum_of_squares,
}
