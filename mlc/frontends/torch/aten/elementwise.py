"""Pointwise operators: arithmetic, comparisons, activations, conversions."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.frontends.common import control_flow, elementwise, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, Quotient, Value, as_tensor, aten, like, operands, promoted

_OF_FLOATS = {
    "sqrt", "rsqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh", "erf",
    "sigmoid", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "isnan", "isinf",
}  # fmt: skip
"""Functions of floats, which PyTorch makes of integers first."""
_UNARY = {
    "bitwise_not": "not", "absolute": "abs", "negative": "neg",
} | {
    name: name for name in {"abs", "neg", "sign", "floor", "ceil", "round", "trunc"} | _OF_FLOATS
}  # fmt: skip
_BINARY = {
    "mul": "mul", "maximum": "max", "minimum": "min", "pow": "pow", "atan2": "atan2", "remainder": "mod",
    "fmod": "fmod", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "__and__": "and", "__or__": "or",
    "multiply": "mul",
}  # fmt: skip
_COMPARE = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_ACTIVATIONS = {
    "relu": "relu", "silu": "silu", "softsign": "softsign", "mish": "mish", "hardswish": "hard_swish", "selu": "selu",
}  # fmt: skip


@aten(*_UNARY)
def unary(call: Call) -> Tensor:
    """Functions of one element."""
    name = call.op.removeprefix("aten::").removesuffix("_")
    x = call.tensor(0)
    decimals = int(call.get("decimals", 0))
    if name in ("floor", "ceil", "round", "trunc") and not x.is_float:
        return x
    if decimals:
        return _rounded(call.b, x, decimals)
    return elementwise.unary(call.b, _UNARY[name], elementwise.floating(call.b, x) if name in _OF_FLOATS else x)


def _rounded(b: Builder, x: Tensor, decimals: int) -> Tensor:
    """To so many places behind the decimal point, or in front of it; multiplied and divided as PyTorch does."""
    power = b.like(10.0 ** abs(decimals), x)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return elementwise.binary(b, back, elementwise.unary(b, "round", elementwise.binary(b, there, x, power)), power)


@aten(*_BINARY)
def binary(call: Call) -> Value:
    """Functions of two elements, with PyTorch's type promotion; on two numbers, arithmetic on sizes."""
    name = call.op.removeprefix("aten::")
    name = name if name in _BINARY else name.removesuffix("_")
    if name == "mul" and not any(isinstance(v, Tensor) for v in call.arguments[:2]):
        return numbers(call, "mul", call[0], call[1])
    pair = call.arguments[:2]
    lhs, rhs = operands(call.b, *pair) if _BINARY[name] == "mul" else promoted(call.b, pair)
    if name == "atan2":
        lhs, rhs = elementwise.floating(call.b, lhs), elementwise.floating(call.b, rhs)
    return elementwise.binary(call.b, _BINARY[name], lhs, rhs)


@aten("add", "sub", "rsub", "add_relu", "subtract")
def add(call: Call) -> Value:
    """`a ± alpha * b`."""
    lhs, rhs = call.arguments[:2]
    alpha = call.get("alpha", 1)
    kind = "add" if "add" in call.op else "sub"
    if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
        return numbers(call, kind, lhs, rhs)
    a, b = operands(call.b, lhs, rhs)
    if "rsub" in call.op:
        a, b = b, a
    if alpha != 1:
        b = elementwise.binary(call.b, "mul", b, like(call.b, alpha, b))
    return elementwise.binary(call.b, kind, a, b)


@aten("div", "divide", "floor_divide", "floordiv", "true_divide")
def div(call: Call) -> Value:
    """True division, or rounded towards zero or minus infinity."""
    lhs, rhs = call.arguments[:2]
    mode = "floor" if "floor" in call.op else call.get("rounding_mode")
    if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
        if mode == "trunc":
            return whole(call.b, numbers(call, "div", lhs, rhs))
        return numbers(call, "floordiv" if mode == "floor" else "div", lhs, rhs)
    a, b = operands(call.b, lhs, rhs)
    if mode is None:
        a, b = elementwise.floating(call.b, a), elementwise.floating(call.b, b)
        return elementwise.binary(call.b, "div", a, b)
    if a.is_float:
        quotient = elementwise.binary(call.b, "div", a, b)
        return elementwise.unary(call.b, "floor" if mode == "floor" else "trunc", quotient)
    if mode == "trunc":
        return elementwise.binary(call.b, "div", a, b)
    rest = elementwise.binary(call.b, "mod", a, b)  # the remainder of the divisor's sign makes the quotient exact
    return elementwise.binary(call.b, "div", elementwise.binary(call.b, "sub", a, rest), b)


@aten(*_COMPARE)
def compare(call: Call) -> Value:
    """Comparisons; of two numbers known at import, a bool."""
    lhs, rhs = call.arguments[:2]
    name = call.op.removeprefix("aten::")
    if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
        return _compare_numbers(name, lhs, rhs)
    a, b = promoted(call.b, [lhs, rhs])
    return elementwise.compare(call.b, _COMPARE[name.removesuffix("_")], a, b)


def numbers(call: Call, kind: str, lhs: Value, rhs: Value) -> Value:
    """Arithmetic on two numbers: Python's when both are known, on sizes otherwise."""
    if isinstance(lhs, int | float) and isinstance(rhs, int | float):
        return (
            {"add": lhs + rhs, "sub": lhs - rhs, "mul": lhs * rhs}[kind]
            if kind in ("add", "sub", "mul")
            else (lhs // rhs if kind == "floordiv" else lhs / rhs)
        )
    if any(isinstance(value, float | Quotient) for value in (lhs, rhs)):
        a, b = promoted(call.b, [lhs, rhs])
        quotient = elementwise.binary(call.b, "div" if kind == "floordiv" else kind, a, b)
        return elementwise.unary(call.b, "floor", quotient) if kind == "floordiv" else quotient
    if kind == "div":
        return Quotient(lhs, rhs)
    return call.b.arith({"add": "addi", "sub": "subi", "mul": "muli", "floordiv": "floordivsi"}[kind], lhs, rhs)


def whole(b: Builder, value: Value) -> Value:
    """A number, quotient or scalar tensor towards zero, as a number or size."""
    if isinstance(value, Tensor):
        return elementwise.cast(b, value, "int64")
    if isinstance(value, Quotient):
        return value.truncated(b)
    return int(value) if isinstance(value, int | float) else value


def _compare_numbers(name: str, lhs: Value, rhs: Value) -> bool:
    if not all(isinstance(v, bool | int | float | str | list) for v in (lhs, rhs)):
        raise NodeError("it compares sizes that are known at run time only", "trace the model instead of scripting it")
    return {
        "eq": lhs == rhs, "ne": lhs != rhs, "lt": lhs < rhs, "le": lhs <= rhs, "gt": lhs > rhs, "ge": lhs >= rhs,
    }[name]  # fmt: skip


@aten("logical_and", "logical_or", "logical_xor")
def logical(call: Call) -> Tensor:
    """Logic on truth values."""
    a, b = (elementwise.cast(call.b, call.tensor(i), "bool") for i in range(2))
    return elementwise.binary(call.b, call.op.removesuffix("_").rsplit("_", 1)[-1], a, b)


@aten("logical_not")
def logical_not(call: Call) -> Tensor:
    """The opposite truth value."""
    return elementwise.unary(call.b, "not", elementwise.cast(call.b, call.tensor(0), "bool"))


def coordinates(b: Builder, x: Tensor) -> list[Tensor]:
    """The positions of the non-zero elements, a vector for each dimension."""
    found = b.op("nonzero", [x])
    return [shape.reshape_codes(b, shape.window(b, found, 0, axis, 1), [-1]) for axis in range(x.rank)]


@aten("where")
def where(call: Call) -> Value:
    """Element by element from one of two tensors; of a condition alone, where it holds."""
    if len(call.arguments) == 1:
        return coordinates(call.b, call.tensor(0))
    a, b = promoted(call.b, call.arguments[1:3])
    return elementwise.select(call.b, elementwise.cast(call.b, call.tensor(0), "bool"), a, b)


@aten("masked_fill")
def masked_fill(call: Call) -> Tensor:
    """`value` where the mask is set."""
    x, mask = call.tensor(0), elementwise.cast(call.b, call.tensor(1), "bool")
    return elementwise.select(call.b, mask, like(call.b, call[2], x), x)


@aten(*_ACTIVATIONS)
def activation(call: Call) -> Tensor:
    """Activations without parameters."""
    kind = _ACTIVATIONS[call.op.removeprefix("aten::").removesuffix("_")]
    if kind == "relu":
        return elementwise.relu(call.b, call.tensor(0))
    return elementwise.activation(call.b, kind, call.tensor(0))


@aten("gelu")
def gelu(call: Call) -> Tensor:
    """Exact, or with `tanh`."""
    kind = "gelu_tanh" if call.get("approximate", "none") == "tanh" else "gelu"
    return elementwise.activation(call.b, kind, call.tensor(0))


@aten(
    "leaky_relu", "elu", "celu", "softplus", "threshold", "hardtanh", "hardsigmoid", "relu6", "softshrink", "hardshrink"
)
def parametric(call: Call) -> Tensor:
    """Activations with parameters."""
    b, x, name = call.b, call.tensor(0), call.op.removeprefix("aten::").removesuffix("_")
    if name in ("hardtanh", "relu6"):
        low, high = (call[1], call[2]) if name == "hardtanh" else (0.0, 6.0)
        return elementwise.clamp(b, x, b.like(low, x), b.like(high, x))
    if name == "hardsigmoid":
        return elementwise.activation(b, "hard_sigmoid", x, 1.0 / 6.0, 0.5)
    if name == "threshold":
        above = elementwise.compare(b, "gt", x, b.like(call[1], x))
        return elementwise.select(b, above, x, b.like(call[2], x))
    if name == "softplus":
        return _softplus(call, x)
    if name in ("softshrink", "hardshrink"):
        limit = float(call[1])
        return elementwise.activation(b, "shrink", x, limit if name == "softshrink" else 0.0, limit)
    return elementwise.activation(b, name, x, float(call[1]))


def _softplus(call: Call, x: Tensor) -> Tensor:
    """`log(1 + exp(beta x)) / beta`, linear above the threshold."""
    b, beta, limit = call.b, float(call[1]), float(call[2])
    scaled = x if beta == 1.0 else elementwise.binary(b, "mul", x, b.like(beta, x))
    soft = elementwise.activation(b, "softplus", scaled)
    soft = soft if beta == 1.0 else elementwise.binary(b, "div", soft, b.like(beta, x))
    return elementwise.select(b, elementwise.compare(b, "gt", scaled, b.like(limit, x)), x, soft)


@aten("clamp", "clip", "clamp_min", "clamp_max")
def clamp(call: Call) -> Tensor:
    """Limits on both or one side."""
    b, x = call.b, call.tensor(0)
    low = None if "max" in call.op else call[1]
    high = call[1] if "max" in call.op else (call[2] if len(call.arguments) > 2 else None)
    x = promoted(b, [x, *(value for value in (low, high) if value is not None)])[0]
    for kind, value in (("max", low), ("min", high)):
        if value is not None:
            x = elementwise.binary(b, kind, x, like(b, value, x))
    return x


@aten("prelu")
def prelu(call: Call) -> Tensor:
    """Leaky with a learned slope per channel."""
    from mlc.frontends.common import normalization

    x, slope = call.tensor(0), call.tensor(1)
    if slope.rank == 1 and slope.shape != [1] and x.rank > 2:
        slope = normalization.per_channel(call.b, slope, x.rank)
    return call.b.op("prelu", [x, slope])


@aten("to", "type_as", "_to_copy")
def to(call: Call) -> Tensor:
    """Conversion to another dtype; devices and memory formats change nothing here."""
    x, wanted = call.tensor(0), dtype_asked(call)
    return x if wanted is None else elementwise.cast(call.b, x, wanted)


def dtype_asked(call: Call) -> str | None:
    """The dtype that a conversion is asked for, by name or by another tensor; None: as it is."""
    wanted, other = call.get("dtype"), call.get("other")
    if other is not None:
        return str(other.dtype)
    if wanted is None:
        names = [a for a in call.arguments[1:] if isinstance(a, str) and a.split(":")[0] not in ("cpu", "cuda")]
        wanted = names[0] if names else None
    return None if wanted is None else dtype_of(wanted)


@aten("float", "int", "long", "bool", "half", "double")
def convert(call: Call) -> Tensor:
    """Conversion to the dtype that the operator is called after."""
    names = {"float": "float32", "int": "int32", "long": "int64", "half": "float16", "double": "float64"}
    kind = call.op.removeprefix("aten::")
    return elementwise.cast(call.b, call.tensor(0), names.get(kind, kind))


_CODES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 11: "bool",
    8: "complex32", 9: "complex64", 10: "complex128", 15: "bfloat16",
}  # fmt: skip


def dtype_of(value: Value) -> str:
    """The name of a dtype, which TorchScript writes as a number (c10/core/ScalarType.h)."""
    if isinstance(value, int):
        if value not in _CODES:
            raise NodeError(f"the dtype with code {value} is not supported")
        return _CODES[value]
    if value == "complex32":
        raise NodeError("complex numbers of two float16 (complex32)", "use complex64")
    return str(value)


def dtype_given(call: Call, default: str) -> str:
    """What the argument `dtype` names, or `default` where it is left out."""
    wanted = call.get("dtype")
    return default if wanted is None else dtype_of(wanted)


@aten(
    "dropout", "feature_dropout", "alpha_dropout", "contiguous", "detach", "clone", "alias", "lift_fresh",
    "lift_fresh_copy", "identity",
)  # fmt: skip
def same(call: Call) -> Tensor:
    """What does nothing at inference."""
    call.get("p")  # how much dropout leaves out when it trains
    if "dropout" in call.op and call.get("train") is True:
        raise NodeError("dropout in training mode", "call model.eval() before tracing")
    return call.tensor(0)


@aten("addcmul", "addcdiv")
def fused_pointwise(call: Call) -> Tensor:
    """`x + value * a * b` and `x + value * a / b`."""
    b, (x, first, second) = call.b, promoted(call.b, call.arguments[:3])
    value = call.get("value", 1)
    product = elementwise.binary(b, "mul" if "mul" in call.op else "div", first, second)
    if value != 1:
        product = elementwise.binary(b, "mul", product, b.like(value, product))
    return elementwise.binary(b, "add", x, product)


@aten("fill", "zero", "copy")
def replaced(call: Call) -> Tensor:
    """Other elements in a tensor of the same extents: one value, zeros, or those of another tensor."""
    b, x = call.b, call.tensor(0)
    value = as_tensor(b, 0 if call.op == "aten::zero" else call[1])
    return shape.broadcast(b, elementwise.cast(b, value, x.dtype), b.dims(x))


@aten("gcd", "lcm")
def common_divisor(call: Call) -> Tensor:
    """The greatest common divisor of integers, by Euclid's algorithm, or the least common multiple."""
    b, pair = call.b, promoted(call.b, call.arguments[:2])
    x, y = (elementwise.unary(b, "abs", value) for value in shape.broadcast_together(b, pair))

    def is_left(rest: Tensor) -> Tensor:
        rows = shape.reshape_codes(b, elementwise.compare(b, "ne", rest, b.like(0, rest)), [-1])
        return reduction.reduce(b, "or", rows, [0], False)

    def step(_: Tensor, __: Tensor, values: Sequence[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        larger, smaller = values
        is_zero = elementwise.compare(b, "eq", smaller, b.like(0, smaller))
        rest = elementwise.binary(b, "mod", larger, elementwise.select(b, is_zero, b.like(1, smaller), smaller))
        following = [elementwise.select(b, is_zero, *each) for each in ((larger, smaller), (smaller, rest))]
        return is_left(following[1]), following, []

    divisor, _ = control_flow.while_(b, None, is_left(y), [x, y], step)
    if call.op.startswith("aten::gcd"):
        return divisor
    some = elementwise.binary(b, "max", divisor, b.like(1, divisor))
    return elementwise.binary(b, "mul", elementwise.binary(b, "div", x, some), y)


@aten("square")
def square(call: Call) -> Tensor:
    """x * x."""
    x = as_tensor(call.b, call[0])
    x = elementwise.cast(call.b, x, "int64") if x.is_bool else x
    return elementwise.binary(call.b, "mul", x, x)
