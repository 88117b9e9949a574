"""Elementwise operators on drawn shapes, with broadcasting, empty and one-element dimensions, NaN, infinities and
overflow, against ONNX's reference evaluator."""

from __future__ import annotations

import math

import numpy as np
import properties as p
import pytest
from hypothesis import strategies as st

RANKS = [(2, 2), (1, 3), (0, 2), (3, 1)]
ARITHMETIC = ["Add", "Sub", "Mul", "Div", "Max", "Min"]
COMPARISONS = ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]
EXACT = ["Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Relu"]
SMOOTH = [
    "Exp", "Log", "Sqrt", "Reciprocal", "Tanh", "Sigmoid", "Sin", "Cos", "Atan", "Asinh", "Softplus", "Softsign",
]  # fmt: skip
PARTIAL = ["Tan", "Asin", "Acos", "Acosh", "Atanh", "Sinh", "Cosh"]


def _pair(op: str, dtype: str, ranks: tuple[int, int], **attributes: object) -> bytes:
    return p.graph([p.node(op, ["a", "b"], **attributes)], {"a": (dtype, ranks[0]), "b": (dtype, ranks[1])})


@pytest.mark.parametrize("op", ARITHMETIC)
@p.drawn
def test_arithmetic(op: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "float64", "int8", "int32", "int64", "uint8", "uint16", "float16"]))
    ranks = data.draw(st.sampled_from(RANKS))
    left, right = data.draw(p.broadcasting(ranks))
    a, b = p.array(dtype, left, data.draw(p.seeds)), p.array(dtype, right, data.draw(p.seeds))
    if op == "Div" and a.dtype.kind in "iu":
        b = np.where((b == 0) | (b == -1), np.array(1, b.dtype), b).astype(b.dtype)
    p.check(_pair(op, dtype, ranks), {"a": a, "b": b})


@pytest.mark.parametrize("op", COMPARISONS)
@p.drawn
def test_comparisons(op: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "float16", "int8", "uint8", "uint64", "int64"]))
    ranks = data.draw(st.sampled_from(RANKS))
    left, right = data.draw(p.broadcasting(ranks))
    seed = data.draw(p.seeds)
    p.check(_pair(op, dtype, ranks), {"a": p.array(dtype, left, seed), "b": p.array(dtype, right, seed + 1)})


@p.drawn
def test_integer_division_by_zero_is_refused(data: st.DataObject) -> None:
    """The reference gives what the processor happens to give."""
    dtype = data.draw(st.sampled_from(["int32", "uint8", "int64"]))
    a = p.array(dtype, data.draw(p.shapes(2, 1)), data.draw(p.seeds))
    b = np.ones(a.shape, a.dtype)
    b[tuple(data.draw(st.integers(0, extent - 1)) for extent in a.shape)] = 0
    assert "zero" in p.refused(_pair("Div", dtype, (2, 2)), {"a": a, "b": b})


@p.drawn
def test_mod(data: st.DataObject) -> None:
    dtype, fmod = data.draw(st.sampled_from([("int32", 0), ("int8", 1), ("uint8", 0), ("int64", 0), ("float32", 1)]))
    ranks = data.draw(st.sampled_from(RANKS))
    left, right = data.draw(p.broadcasting(ranks))
    a, b = p.array(dtype, left, data.draw(p.seeds)), p.array(dtype, right, data.draw(p.seeds))
    if a.dtype.kind in "iu":
        b = np.where(b == 0, np.array(3, b.dtype), b).astype(b.dtype)
    p.check(_pair("Mod", dtype, ranks, fmod=fmod), {"a": a, "b": b})


@p.drawn
def test_pow(data: st.DataObject) -> None:
    base, power = data.draw(st.sampled_from([("float32", "float32"), ("float32", "int64"), ("float64", "float64")]))
    ranks = data.draw(st.sampled_from(RANKS[:2]))
    left, right = data.draw(p.broadcasting(ranks))
    a, b = p.array(base, left, data.draw(p.seeds)), p.array(power, right, data.draw(p.seeds), power != "int64")
    model = p.graph([p.node("Pow", ["a", "b"])], {"a": (base, ranks[0]), "b": (power, ranks[1])})
    p.check(model, {"a": a, "b": b}, rtol=1e-4)


@pytest.mark.parametrize("op", ["And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@p.drawn
def test_logic(op: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["int8", "uint16", "int64"])) if op.startswith("Bitwise") else "bool"
    ranks = data.draw(st.sampled_from(RANKS))
    left, right = data.draw(p.broadcasting(ranks))
    seed = data.draw(p.seeds)
    p.check(_pair(op, dtype, ranks), {"a": p.array(dtype, left, seed), "b": p.array(dtype, right, seed + 1)})


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@p.drawn
def test_shifts(direction: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["uint8", "uint32", "uint64"]))
    ranks = data.draw(st.sampled_from(RANKS[:2]))
    left, right = data.draw(p.broadcasting(ranks))
    a, b = p.array(dtype, left, data.draw(p.seeds)), p.array(dtype, right, data.draw(p.seeds), special=False)
    bits = np.array(8 * a.dtype.itemsize, a.dtype)
    p.check(_pair("BitShift", dtype, ranks, direction=direction), {"a": a, "b": (b % bits).astype(b.dtype)})


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@p.drawn
def test_exact_functions(dtype: str, data: st.DataObject) -> None:
    """All in one model: NaN goes through, zeros keep their signs or not as the reference has it."""
    nodes = [p.node(op, ["x"], [op]) for op in EXACT]
    model = p.graph(nodes, {"x": (dtype, 2)}, EXACT)
    p.check(model, {"x": p.array(dtype, data.draw(p.shapes(2)), data.draw(p.seeds))}, rtol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@p.drawn
def test_smooth_functions(dtype: str, data: st.DataObject) -> None:
    model = p.graph([p.node(op, ["x"], [op]) for op in SMOOTH], {"x": (dtype, 2)}, SMOOTH)
    x = p.array(dtype, data.draw(p.shapes(2)), data.draw(p.seeds))
    x = np.where(np.abs(x) > 1e4, np.array(np.inf, x.dtype), x)  # the sine of 1e38 is nobody's
    p.check(model, {"x": x})


@p.drawn
def test_error_function(data: st.DataObject) -> None:
    """The reference computes that of float64 in float32."""
    x = p.array("float64", data.draw(p.shapes(2)), data.draw(p.seeds))
    [y] = p.run(p.graph([p.node("Erf", ["x"])], {"x": ("float64", 2)}), {"x": x})
    p.same(y, np.vectorize(math.erf, otypes=[float])(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@p.drawn
def test_functions_that_are_not_everywhere(dtype: str, data: st.DataObject) -> None:
    """Outside of their domain the result is NaN."""
    model = p.graph([p.node(op, ["x"], [op]) for op in PARTIAL], {"x": (dtype, 2)}, PARTIAL)
    x = p.array(dtype, data.draw(p.shapes(2)), data.draw(p.seeds))
    p.check(model, {"x": np.where(np.abs(x) > 1e4, np.array(np.inf, x.dtype), x)}, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@p.drawn
def test_signs_of_integers(dtype: str, data: st.DataObject) -> None:
    """The least integer has no opposite: it stays what it is."""
    names = ["Abs", "Neg", "Sign"]
    model = p.graph([p.node(op, ["x"], [op]) for op in names], {"x": (dtype, 2)}, names)
    p.check(model, {"x": p.array(dtype, data.draw(p.shapes(2)), data.draw(p.seeds))})


@pytest.mark.parametrize("source", ["float32", "int64", "uint8", "int8", "bool", "float16", "int32", "bfloat16"])
@p.drawn
def test_casts(source: str, data: st.DataObject) -> None:
    """Integers wrap around, floats round to nearest even; a float that no integer is near to is left out."""
    targets = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "uint32", "bool"]
    x = p.array(source, data.draw(p.shapes(2)), data.draw(p.seeds))
    if x.dtype.kind not in "biu":
        x = np.abs(x)
        with np.errstate(invalid="ignore"):
            x = np.where(x < 100, x, np.array(1, x.dtype)).astype(x.dtype)
    nodes = [p.node("Cast", ["x"], [f"to_{name}"], to=p.elem_type(name)) for name in targets]
    p.check(p.graph(nodes, {"x": (source, 2)}, [f"to_{name}" for name in targets]), {"x": x}, rtol=0)


@p.drawn
def test_where(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "int64", "bool"]))
    ranks = data.draw(st.sampled_from([(2, 2, 2), (1, 3, 0), (3, 1, 2)]))
    three = data.draw(p.broadcasting(ranks))
    names = ["c", "a", "b"]
    kinds = dict(zip(names, ["bool", dtype, dtype], strict=True))
    model = p.graph([p.node("Where", names)], {n: (kinds[n], r) for n, r in zip(names, ranks, strict=True)})
    seed = data.draw(p.seeds)
    p.check(model, {n: p.array(kinds[n], s, seed + i) for i, (n, s) in enumerate(zip(names, three, strict=True))})


@p.drawn
def test_clip(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "int8", "uint8", "int64", "float16"]))
    low, high = data.draw(st.booleans()), data.draw(st.booleans())
    names = ["x", "low" if low else "", "high" if high else ""]
    inputs: dict[str, tuple[str, int]] = {"x": (dtype, 2)} | {name: (dtype, 0) for name in names[1:] if name}
    x = p.array(dtype, data.draw(p.shapes(2)), data.draw(p.seeds))
    x = np.where(x != x, np.array(0, x.dtype), x)
    bounds = {"low": np.array(2, x.dtype), "high": np.array(data.draw(st.sampled_from([1, 5])), x.dtype)}
    feeds = {"x": x} | {name: bounds[name] for name in names[1:] if name}
    p.check(p.graph([p.node("Clip", names)], inputs), feeds)


@p.drawn
def test_is_nan_and_is_infinite(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "float64", "float16"]))
    nodes = [
        p.node("IsNaN", ["x"], ["nan"]),
        p.node("IsInf", ["x"], ["inf"]),
        p.node("IsInf", ["x"], ["positive"], detect_negative=0),
        p.node("IsInf", ["x"], ["negative"], detect_positive=0),
    ]
    model = p.graph(nodes, {"x": (dtype, 2)}, ["nan", "inf", "positive", "negative"])
    p.check(model, {"x": p.array(dtype, data.draw(p.shapes(2)), data.draw(p.seeds))})


@p.drawn
def test_activations(data: st.DataObject) -> None:
    """What models carry, in one model, with and without their parameters."""
    nodes = [
        p.node("Elu", ["x"], ["elu"], alpha=0.7),
        p.node("LeakyRelu", ["x"], ["leaky"], alpha=0.2),
        p.node("Selu", ["x"], ["selu"]),
        p.node("HardSigmoid", ["x"], ["hard"]),
        p.node("HardSwish", ["x"], ["swish"]),
        p.node("Mish", ["x"], ["mish"]),
        p.node("Gelu", ["x"], ["gelu"]),
        p.node("Gelu", ["x"], ["tanh"], approximate="tanh"),
        p.node("ThresholdedRelu", ["x"], ["above"], alpha=0.5),
        p.node("Shrink", ["x"], ["shrink"], bias=0.3, lambd=0.8),
    ]
    names = [n.output[0] for n in nodes]
    x = p.array("float32", data.draw(p.shapes(2)), data.draw(p.seeds))
    x = np.where(np.abs(x) < 50, x, np.array(0.5, x.dtype))  # the reference's own treatment of NaN varies
    p.check(p.graph(nodes, {"x": ("float32", 2)}, names), {"x": x})
