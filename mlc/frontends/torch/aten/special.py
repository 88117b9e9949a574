"""Less common functions of elements."""

from __future__ import annotations

import math

import numpy as np

from mlc.frontends.common import elementwise, shape, types
from mlc.frontends.common.builder import Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, aten, promoted


@aten("isfinite", "isneginf", "isposinf")
def finite(call: Call) -> Tensor:
    """Neither infinite nor NaN; or one of the infinities."""
    b, x = call.b, elementwise.floating(call.b, call.tensor(0))
    if call.op == "aten::isfinite":
        return elementwise.compare(b, "lt", elementwise.unary(b, "abs", x), b.like(math.inf, x))
    return elementwise.compare(b, "eq", x, b.like(math.inf if "pos" in call.op else -math.inf, x))


@aten("nan_to_num")
def nan_to_num(call: Call) -> Tensor:
    """Numbers for NaN and the infinities."""
    b, x = call.b, call.tensor(0)
    if not x.is_float:
        return x
    limits = types.numpy_dtype(x.dtype)
    largest = float(np.finfo(np.float32 if x.dtype == "bfloat16" else limits).max)
    nan, high, low = (call[i] for i in (1, 2, 3))
    result = elementwise.select(b, elementwise.unary(b, "isnan", x), b.like(nan or 0.0, x), x)
    finite_ones = (largest if high is None else high, -largest if low is None else low)
    for value, infinity in zip(finite_ones, (math.inf, -math.inf), strict=True):
        found = elementwise.compare(b, "eq", x, b.like(infinity, x))
        result = elementwise.select(b, found, b.like(value, x), result)
    return result


@aten("log10", "frac", "sinc", "deg2rad", "rad2deg")
def derived(call: Call) -> Tensor:
    """Functions made of others."""
    b, x = call.b, elementwise.floating(call.b, call.tensor(0))
    name = call.op.removeprefix("aten::").removesuffix("_")
    if name == "log10":
        return elementwise.binary(b, "mul", elementwise.unary(b, "log", x), b.like(1 / math.log(10), x))
    if name == "frac":
        return elementwise.binary(b, "sub", x, elementwise.unary(b, "trunc", x))
    if "2" in name:
        return elementwise.binary(b, "mul", x, b.like(math.pi / 180 if name == "deg2rad" else 180 / math.pi, x))
    angle = elementwise.binary(b, "mul", x, b.like(math.pi, x))
    wave = elementwise.binary(b, "div", elementwise.unary(b, "sin", angle), angle)
    return elementwise.select(b, elementwise.compare(b, "eq", x, b.like(0, x)), b.like(1, x), wave)


@aten("logit")
def logit(call: Call) -> Tensor:
    """The logarithm of x / (1 - x), with x kept that far from 0 and 1."""
    b, x = call.b, elementwise.floating(call.b, call.tensor(0))
    if call[1] is not None:
        x = elementwise.clamp(b, x, b.like(float(call[1]), x), b.like(1 - float(call[1]), x))
    rest = elementwise.binary(b, "sub", b.like(1, x), x)
    return elementwise.unary(b, "log", elementwise.binary(b, "div", x, rest))


@aten("log_sigmoid")
def log_sigmoid(call: Call) -> Tensor:
    """The logarithm of the sigmoid: minus softplus of minus x."""
    b, x = call.b, call.tensor(0)
    return elementwise.unary(b, "neg", elementwise.activation(b, "softplus", elementwise.unary(b, "neg", x)))


@aten("glu")
def glu(call: Call) -> Tensor:
    """The first half of a dimension, gated by the sigmoid of the second."""
    b, x = call.b, call.tensor(0)
    axis = shape.normalize_axis(int(call.get("dim", -1)), x.rank)
    half = b.arith("divsi", b.dim(x, axis), 2)
    value, gate = shape.split(b, x, axis, [half, half])
    return elementwise.binary(b, "mul", value, elementwise.unary(b, "sigmoid", gate))


@aten("lerp")
def lerp(call: Call) -> Tensor:
    """Between two tensors, a share of the way."""
    b, (start, end, weight) = call.b, promoted(call.b, call.arguments[:3])
    way = elementwise.binary(b, "mul", weight, elementwise.binary(b, "sub", end, start))
    return elementwise.binary(b, "add", start, way)


@aten("logaddexp", "logaddexp2", "hypot")
def pairs(call: Call) -> Tensor:
    """The logarithm of a sum of two exponentials, to base e or 2, and the length of a hypotenuse."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    if call.op.startswith("aten::hypot"):
        squares = [elementwise.binary(b, "mul", value, value) for value in (x, y)]
        return elementwise.unary(b, "sqrt", elementwise.binary(b, "add", *squares))
    return elementwise.log_add_exp(b, x, y, call.op.startswith("aten::logaddexp2"))


@aten("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__")
def shifts(call: Call) -> Tensor:
    """Bits moved up or down."""
    b, (x, count) = call.b, promoted(call.b, call.arguments[:2])
    if x.is_float:
        raise NodeError(f"shifts of {x}", "shift integers")
    return elementwise.shift(b, "shl" if "left" in call.op or "lshift" in call.op else "shr", x, count)


@aten("isin")
def isin(call: Call) -> Tensor:
    """Whether elements are among those of another tensor."""
    from mlc.frontends.common import reduction

    b, (x, among) = call.b, promoted(call.b, call.arguments[:2])
    flat = shape.reshape_codes(b, among, [-1])
    equal = elementwise.compare(b, "eq", shape.unsqueeze(b, x, [x.rank]), flat)
    found = reduction.reduce(b, "or", equal, [x.rank], False)
    return elementwise.unary(b, "not", found) if call.get("invert") else found


@aten("fmax", "fmin")
def number_extreme(call: Call) -> Tensor:
    """The larger or smaller of two elements, of which one may be NaN."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    result = elementwise.binary(b, call.op.removeprefix("aten::f"), x, y)
    if not x.is_float:
        return result
    result = elementwise.select(b, elementwise.unary(b, "isnan", x), y, result)
    return elementwise.select(b, elementwise.unary(b, "isnan", y), x, result)


@aten("sgn")
def sgn(call: Call) -> Tensor:
    """The sign of real numbers."""
    return elementwise.unary(call.b, "sign", call.tensor(0))


@aten("isclose")
def isclose(call: Call) -> Tensor:
    """Whether elements are equal, or differ by little."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    equal = elementwise.compare(b, "eq", x, y)
    x, y = elementwise.floating(b, x), elementwise.floating(b, y)
    allowed = elementwise.binary(b, "mul", elementwise.unary(b, "abs", y), b.like(float(call.get("rtol", 1e-5)), y))
    allowed = elementwise.binary(b, "add", allowed, b.like(float(call.get("atol", 1e-8)), y))
    distance = elementwise.unary(b, "abs", elementwise.binary(b, "sub", x, y))
    bounded = elementwise.compare(b, "lt", distance, b.like(math.inf, y))
    near = elementwise.binary(b, "and", elementwise.compare(b, "le", distance, allowed), bounded)
    result = elementwise.binary(b, "or", equal, near)
    if not call.get("equal_nan"):
        return result
    missing = [elementwise.unary(b, "isnan", value) for value in (x, y)]
    return elementwise.binary(b, "or", result, elementwise.binary(b, "and", *missing))
