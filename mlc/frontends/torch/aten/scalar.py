"""Operators on numbers, lists and sizes: the shape arithmetic that tracing records."""

from __future__ import annotations

import functools

from mlc.frontends.common import elementwise, shape
from mlc.frontends.common.builder import Tensor
from mlc.frontends.torch.registry import Call, Value, as_size, as_tensor, aten


@aten("size", "sym_size")
def size(call: Call) -> Value:
    """All extents, or one of them."""
    x = call.tensor(0)
    if len(call.arguments) == 1:
        return list(call.b.dims(x))
    return call.b.dim(x, shape.normalize_axis(call.int(1), x.rank))


@aten("dim")
def rank(call: Call) -> int:
    """Number of dimensions."""
    return call.tensor(0).rank


@aten("len")
def length(call: Call) -> Value:
    """Number of elements of a list, or the first extent of a tensor."""
    return call.b.dim(call[0], 0) if isinstance(call[0], Tensor) else len(call[0])


@aten("numel", "sym_numel")
def count(call: Call) -> Value:
    """Number of elements."""
    return call.b.product(call.b.dims(call.tensor(0)))


@aten("__getitem__")
def item(call: Call) -> Value:
    """An element of a list."""
    return call[0][call.int(1)]


@aten("append")
def append(call: Call) -> Value:
    """One element more in a list, which all of its names show."""
    call[0].append(call[1])
    return call[0]


def known(value: Value) -> Value:
    """The number that a scalar tensor is known to be, or the value as it is."""
    if isinstance(value, Tensor) and value.constant is not None and value.constant.size == 1:
        return value.constant.reshape(-1)[0].item()
    return value


@aten("__is__", "__isnot__", "__not__")
def identity(call: Call) -> Value:
    """`is`, `is not` and `not` on values known at import."""
    if call.op == "aten::__not__":
        value = known(call[0])
        if isinstance(value, Tensor):
            return elementwise.unary(call.b, "not", elementwise.cast(call.b, value, "bool"))
        return not value
    same = call[0] is call[1]
    return same if call.op == "aten::__is__" else not same


@aten("prim::dtype", "prim::device", "prim::min", "prim::max")
def property_of(call: Call) -> Value:
    """Properties of tensors, and `min` and `max` of numbers."""
    if call.op == "prim::dtype":
        return call.tensor(0).dtype
    if call.op == "prim::device":
        return "cpu"
    items = [as_size(call.b, item) for item in (call[0] if isinstance(call[0], list) else call.arguments)]
    if all(isinstance(item, int | float) for item in items):
        return (min if call.op == "prim::min" else max)(items)
    return functools.reduce(lambda a, b: call.b.arith("minsi" if call.op == "prim::min" else "maxsi", a, b), items)


@aten("item", "_local_scalar_dense")
def element(call: Call) -> Value:
    """The element of a tensor: a size where it is an integer, else it stays a scalar tensor."""
    x = shape.reshape(call.b, call.tensor(0), [])
    value = known(x)
    return call.b.scalar(x) if isinstance(value, Tensor) and not x.is_float and not x.is_bool else value


@aten("Float", "Bool")
def number(call: Call) -> Value:
    """A number from a number or a known scalar; what only the run knows stays a scalar tensor."""
    value, kind = known(call[0]), call.op.removeprefix("aten::").lower()
    if isinstance(value, bool | int | float):
        return (float if kind == "float" else bool)(value)
    return elementwise.cast(call.b, as_tensor(call.b, value), "bool" if kind == "bool" else "float32")
