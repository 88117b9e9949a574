"""Elementwise operators and activations."""

from __future__ import annotations

import numpy as np
import onnx

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import reduction, shape, text
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.onnx.values import elem_dtype
from mlc.frontends.report import NodeError

_UNARY = {
    "Abs": "abs",
    "Neg": "neg",
    "Sign": "sign",
    "Floor": "floor",
    "Ceil": "ceil",
    "Round": "round",
    "Sqrt": "sqrt",
    "Reciprocal": "reciprocal",
    "Exp": "exp",
    "Log": "log",
    "Sin": "sin",
    "Cos": "cos",
    "Tan": "tan",
    "Asin": "asin",
    "Acos": "acos",
    "Atan": "atan",
    "Sinh": "sinh",
    "Cosh": "cosh",
    "Tanh": "tanh",
    "Asinh": "asinh",
    "Acosh": "acosh",
    "Atanh": "atanh",
    "Erf": "erf",
    "Sigmoid": "sigmoid",
    "Not": "not",
    "BitwiseNot": "not",
}
_BINARY = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Div": "div",
    "Pow": "pow",
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "BitwiseAnd": "and",
    "BitwiseOr": "or",
    "BitwiseXor": "xor",
}
_COMPARE = {
    "Equal": "eq",
    "Less": "lt",
    "LessOrEqual": "le",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
}
# Activation kind, then the parameters as (attribute, default): the operator's defaults.
_ACTIVATIONS: dict[str, tuple[str, list[tuple[str, float]]]] = {
    "LeakyRelu": ("leaky_relu", [("alpha", 0.01)]),
    "Elu": ("elu", [("alpha", 1.0)]),
    "Selu": ("selu", [("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875)]),
    "Celu": ("celu", [("alpha", 1.0)]),
    "HardSigmoid": ("hard_sigmoid", [("alpha", 0.2), ("beta", 0.5)]),
    "HardSwish": ("hard_swish", []),
    "Softplus": ("softplus", []),
    "Softsign": ("softsign", []),
    "Mish": ("mish", []),
    "ThresholdedRelu": ("thresholded_relu", [("alpha", 1.0)]),
    "Shrink": ("shrink", [("bias", 0.0), ("lambd", 0.5)]),
}


@onnx_op("IsNaN")
def is_nan(g: GraphImporter, node: Node) -> Tensor:
    """Floats of eight bits have no arithmetic of their own."""
    x = node[0]
    return ew.unary(g.b, "isnan", ew.cast(g.b, x, "float32") if "float8" in x.dtype else x)


@onnx_op(*_UNARY)
def unary(g: GraphImporter, node: Node) -> Tensor:
    """Functions of one tensor."""
    return ew.unary(g.b, _UNARY[node.op], node[0])


@onnx_op(*_BINARY)
def binary(g: GraphImporter, node: Node) -> Tensor:
    """Functions of two tensors with NumPy broadcasting."""
    return ew.binary(g.b, _BINARY[node.op], node[0], _right(g.b, node))


def _right(b: Builder, node: Node) -> Tensor:
    """The second operand; before opset 7 its dimensions may line up with those of the first from `axis` on."""
    rhs = node[1]
    if node.version >= 7 or not node.attr("broadcast", 0) or node.attr("axis") is None:
        return rhs
    axis = shape.normalize_axis(int(node.attr("axis")), node[0].rank)
    trailing = node[0].rank - axis - rhs.rank
    return shape.reshape(b, rhs, [*b.dims(rhs), *([1] * trailing)]) if trailing > 0 else rhs


@onnx_op("Mod")
def mod(g: GraphImporter, node: Node) -> Tensor:
    """`fmod` chooses the sign of the dividend."""
    return ew.binary(g.b, "fmod" if node.attr("fmod", 0) else "mod", node[0], node[1])


@onnx_op("BitShift")
def bit_shift(g: GraphImporter, node: Node) -> Tensor:
    """Shifts of unsigned integers."""
    kinds = {"LEFT": "shl", "RIGHT": "shr"}
    direction = node.required("direction")
    if direction not in kinds:
        raise NodeError(f'direction "{direction}"', "use LEFT or RIGHT")
    if node[0].unsigned:
        return ew.binary(g.b, kinds[direction], node[0], node[1])
    return ew.shift(g.b, kinds[direction], node[0], node[1])


@onnx_op(*_COMPARE)
def compare(g: GraphImporter, node: Node) -> Tensor:
    """Comparisons; strings can be equal."""
    if node.op == "Equal" and node[0].dtype == "string" == node[1].dtype:
        return text.equal(g.b, node[0], node[1])
    return ew.compare(g.b, _COMPARE[node.op], node[0], _right(g.b, node))


@onnx_op("Max", "Min", "Sum", "Mean")
def variadic(g: GraphImporter, node: Node) -> Tensor:
    """Reductions over the list of inputs, which broadcast."""
    kind = {"Max": "max", "Min": "min"}.get(node.op, "add")
    if not node.present():
        raise NodeError("it has no inputs")
    total = ew.fold(g.b, kind, node.present())
    if node.op != "Mean" or len(node.present()) == 1:
        return total
    return ew.binary(g.b, "div", total, g.b.like(len(node.present()), total))


@onnx_op("Where")
def where(g: GraphImporter, node: Node) -> Tensor:
    """Elementwise choice."""
    return ew.select(g.b, node[0], node[1], node[2])


@onnx_op("IsInf")
def is_inf(g: GraphImporter, node: Node) -> Tensor:
    """Infinities of chosen signs."""
    positive, negative = bool(node.attr("detect_positive", 1)), bool(node.attr("detect_negative", 1))
    return ew.unary(g.b, "isinf", node[0], positive=positive, negative=negative)


@onnx_op("Cast")
def cast(g: GraphImporter, node: Node) -> Tensor:
    """Conversion of the element type, which opset 1 named by a string."""
    to = node.required("to")
    dtype = elem_dtype(onnx.TensorProto.DataType.Value(to.upper()) if isinstance(to, str) else to)
    return converted(g.b, node[0], dtype, bool(node.attr("saturate", 1)))


@onnx_op("CastLike")
def cast_like(g: GraphImporter, node: Node) -> Tensor:
    """Conversion to the element type of the second input."""
    return converted(g.b, node[0], node[1].dtype, bool(node.attr("saturate", 1)))


def converted(b: Builder, x: Tensor, dtype: str, saturate: bool = True) -> Tensor:
    """`x` as another type, also from and to strings."""
    if x.dtype == "string" != dtype:
        x = text.parsed(b, x, dtype)
    elif dtype == "string" != x.dtype:
        wide = x.dtype if x.dtype in ("float64", "uint64") else "float32" if x.is_float else "int64"
        return text.printed(b, ew.cast(b, x, wide))
    narrow = dtype.startswith(("float8", "float4"))
    return ew.cast(b, x, dtype, saturate and narrow)


@onnx_op("BitCast")
def bit_cast(g: GraphImporter, node: Node) -> Tensor:
    """The same bits as another type."""
    x, dtype = node[0], elem_dtype(node.required("to"))
    # A bool is a byte in memory: casts keep its 0 and 1.
    if x.is_bool or dtype == "bool":
        return ew.cast(g.b, x, dtype)
    return ew.bitcast(g.b, x, dtype)


@onnx_op("Relu")
def relu(g: GraphImporter, node: Node) -> Tensor:
    """max(x, 0)."""
    return ew.relu(g.b, node[0])


@onnx_op(*_ACTIVATIONS)
def activation(g: GraphImporter, node: Node) -> Tensor:
    """Activations with up to two parameters."""
    kind, parameters = _ACTIVATIONS[node.op]
    x = node[0]
    values = [float(node.attr(name, default)) for name, default in parameters] + [None, None]
    if not x.is_float:
        # Shrink is defined on integers too.
        wide = ew.activation(g.b, kind, ew.cast(g.b, x, "float64"), values[0], values[1])
        return ew.cast(g.b, wide, x.dtype)
    return ew.activation(g.b, kind, x, values[0], values[1])


@onnx_op("Gelu")
def gelu(g: GraphImporter, node: Node) -> Tensor:
    """GELU, exact or through tanh."""
    approximate = node.attr("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise NodeError(f'approximate "{approximate}"', "use none or tanh")
    return ew.activation(g.b, "gelu" if approximate == "none" else "gelu_tanh", node[0])


@onnx_op("Swish")
def swish(g: GraphImporter, node: Node) -> Tensor:
    """x * sigmoid(alpha * x)."""
    alpha = float(node.attr("alpha", 1.0))
    if alpha == 1.0:
        return ew.activation(g.b, "silu", node[0])
    gate = ew.unary(g.b, "sigmoid", ew.scaled(g.b, node[0], alpha))
    return ew.binary(g.b, "mul", node[0], gate)


@onnx_op("PRelu")
def prelu(g: GraphImporter, node: Node) -> Tensor:
    """x where positive, else slope * x."""
    x, slope = node[0], node[1]
    if node.version < 7 and slope.rank == 1 and x.rank > 2:
        # A slope for each channel.
        slope = shape.reshape(g.b, slope, [g.b.dim(slope, 0), *([1] * (x.rank - 2))])
    if x.is_float:
        return g.b.op("prelu", [x, slope])
    negative = ew.compare(g.b, "lt", x, g.b.like(0, x))
    return ew.select(g.b, negative, ew.binary(g.b, "mul", slope, x), x)


@onnx_op("Clip")
def clip(g: GraphImporter, node: Node) -> Tensor:
    """Bounds as attributes."""
    x = node[0]
    low, high = node.attr("min"), node.attr("max")
    bounds = [None if bound is None else g.b.like(float(bound), x) for bound in (low, high)]
    return ew.clamp(g.b, x, bounds[0], bounds[1])


@onnx_op("Clip", since=11)
def clip_inputs(g: GraphImporter, node: Node) -> Tensor:
    """Bounds as scalar inputs; a one-element tensor counts as a scalar."""
    bounds = []
    for position in (1, 2):
        bound = node.optional(position)
        bounds.append(None if bound is None else shape.reshape(g.b, bound, []))
    return ew.clamp(g.b, node[0], bounds[0], bounds[1])


@onnx_op("Identity")
def identity(g: GraphImporter, node: Node) -> Tensor:
    """The input."""
    return node[0]


@onnx_op("Dropout")
def dropout(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """The input and a mask of ones: inference keeps everything."""
    x = node[0]
    mode = node.optional(2)
    if mode is not None and (mode.constant is None or bool(mode.constant.reshape(-1)[0])):
        return _training_dropout(g, node, mode)
    if not node.wants(1):
        return [x, None]
    ones = g.b.constant(np.array(True)) if node.version >= 10 else g.b.like(1, x)
    return [x, shape.full(g.b, g.b.dims(x), ones)]


def _training_dropout(g: GraphImporter, node: Node, mode: Tensor) -> list[Tensor | None]:
    """Elements dropped with the probability `ratio`, the others scaled up; everything kept where `mode` is false."""
    from mlc.frontends.onnx.random import random, seed_of

    b, x = g.b, node[0]
    given = node.optional(1)
    ratio = b.like(0.5, x) if given is None else ew.cast(b, shape.reshape(b, given, []), x.dtype)
    training = shape.reshape(b, mode, [])
    noise = random(b, "uniform", seed_of(b, node), b.dims(x), x.dtype)
    drawn = ew.compare(b, "ge", noise, ratio)
    mask = ew.binary(b, "or", drawn, ew.unary(b, "not", training))
    one, zero = b.like(1, x), b.like(0, x)
    scale = ew.select(b, training, ew.binary(b, "div", one, ew.binary(b, "sub", one, ratio)), one)
    return [ew.select(b, mask, ew.binary(b, "mul", x, scale), zero), mask]


@onnx_op("Hardmax")
def hardmax(g: GraphImporter, node: Node) -> Tensor:
    """1 at the first maximum along the axis, else 0."""
    b, x = g.b, node[0]
    axis = shape.normalize_axis(node.attr("axis", -1 if node.version >= 13 else 1), x.rank)
    source = x if node.version >= 13 or axis == x.rank - 1 else shape.flatten(b, x, axis)
    line = axis if source is x else 1
    position = reduction.arg_reduce(b, "max", source, line, True, False)
    places = shape.iota(b, b.dims(source), line, "int64")
    hit = ew.cast(b, ew.compare(b, "eq", places, position), x.dtype)
    return shape.reshape(b, hit, b.dims(x))
