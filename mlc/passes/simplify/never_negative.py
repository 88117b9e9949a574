"""Values that are never negative: what a ReLU gives, and codes with a sign and without a zero point of that."""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, splat_number

_ACTIVATIONS = ("relu", "sigmoid", "hard_sigmoid")
_VIEWS = ("mlc.reshape", "mlc.transpose", "mlc.slice", "mlc.broadcast")
_DEEPEST = 16  # operations that are looked through


def is_never_negative(value: ir.Value, depth: int = 0) -> bool:
    """Is every element of `value` known to be at least zero (or NaN)?"""
    op = defining_op(value)
    if op is None or depth > _DEEPEST:
        return False
    view = OpAdaptor(op)

    def known(*numbers: int) -> bool:
        return all(is_never_negative(op.operands[n], depth + 1) for n in numbers)

    if op.name in ("mlc.quantize", "mlc.dequantize"):
        zero = view.trailing(2)
        if zero is not None and splat_number(zero) != 0 or not _is_at_least_zero(view.operand(1)):
            return False
        return known(0) or op.name == "mlc.dequantize" and view.flag("unsigned")
    if op.name == "mlc.activation":
        return view.text() in _ACTIVATIONS
    if op.name == "mlc.clamp":
        low, high = (view.optional(n) for n in (1, 2))
        return (known(0) or _is_at_least_zero(low)) and (high is None or _is_at_least_zero(high))
    if op.name == "mlc.binary":
        return view.text() in ("add", "mul") and known(0, 1)
    if op.name == "mlc.concat":
        return known(*range(len(op.operands)))
    if op.name == "mlc.pool":
        return has_elements(view) and known(0)
    return op.name in _VIEWS and known(0)


def _is_at_least_zero(bound: ir.Value | None) -> bool:
    number = None if bound is None else splat_number(bound)
    return number is not None and number >= 0


def has_elements(pool: OpAdaptor) -> bool:
    """Does no window of a pooling lie in the padding as a whole? A maximum of nothing is negative."""
    padding, kernel, dilations = (pool.ints(name) for name in ("padding", "kernel", "dilations"))
    reach = [(taps - 1) * step + 1 for taps, step in zip(kernel, dilations, strict=True)]
    return all(amount < extent for amount, extent in zip(padding, [*reach, *reach], strict=True))
