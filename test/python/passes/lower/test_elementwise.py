"""`unary binary compare select cast bitcast` lowered, run, and compared with the interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from linalg_runner import check_lowering

FLOATS = np.array([-3.7, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.5, 7.25, np.inf, -np.inf, np.nan], np.float32)
UNIT = np.array([-0.99, -0.5, 0.0, 0.25, 0.75, 0.99], np.float32)
POSITIVE = np.array([1.0, 1.5, 2.0, 10.0, 1e-3, 1e5], np.float32)
INTS = np.array([-128, -7, -2, -1, 0, 1, 3, 5, 127], np.int8)


def unary(kind: str, x: np.ndarray, type_: str, result: str = "", attrs: str = "") -> str:
    arrow = f" -> tensor<{len(x)}x{result}>" if result else ""
    return check_lowering(
        f"""func.func @f(%x: tensor<{len(x)}x{type_}>) -> tensor<{len(x)}x{result or type_}> {{
        %0 = mlc.unary {kind} %x {attrs} : tensor<{len(x)}x{type_}>{arrow}
        return %0 : tensor<{len(x)}x{result or type_}> }}""",
        x,
    )


@pytest.mark.parametrize(
    "kind",
    [
        "abs",
        "neg",
        "sign",
        "floor",
        "ceil",
        "round",
        "trunc",
        "exp",
        "exp2",
        "expm1",
        "sin",
        "cos",
        "tan",
        "atan",
        "tanh",
        "erf",
        "sigmoid",
        "reciprocal",
    ],
)
def test_unary_everywhere(kind: str) -> None:
    unary(kind, FLOATS, "f32")


@pytest.mark.parametrize("kind", ["asin", "acos", "atanh", "sinh", "cosh", "asinh"])
def test_unary_around_zero(kind: str) -> None:
    unary(kind, UNIT, "f32")


@pytest.mark.parametrize("kind", ["sqrt", "rsqrt", "log", "log2", "log1p", "acosh"])
def test_unary_positive(kind: str) -> None:
    unary(kind, POSITIVE, "f32")


@pytest.mark.parametrize("kind", ["abs", "neg", "sign", "not", "popcount"])
def test_unary_ints(kind: str) -> None:
    unary(kind, INTS, "i8")


def test_not_of_bools_is_logical() -> None:
    unary("not", np.array([True, False]), "i1")


@pytest.mark.parametrize(
    "attrs", ["", "{negative = false}", "{positive = false}", "{negative = false, positive = false}"]
)
def test_isinf(attrs: str) -> None:
    unary("isinf", FLOATS, "f32", "i1", attrs)


def test_isnan() -> None:
    unary("isnan", FLOATS, "f32", "i1")


def test_bf16_computes_in_f32() -> None:
    x = np.array([0.1, 1.7, -3.3], ml_dtypes.bfloat16)
    lowered = unary("exp", x, "bf16")
    assert "arith.extf" in lowered and "math.exp" in lowered and "arith.truncf" in lowered


def binary(kind: str, a: np.ndarray, b: np.ndarray, type_: str, rhs: str = "", attrs: str = "") -> str:
    shapes = ["x".join(map(str, v.shape)) for v in (a, b)]
    result = "x".join(map(str, np.broadcast_shapes(a.shape, b.shape)))
    left, right, out = (
        f"tensor<{shapes[0]}x{type_}>",
        f"tensor<{shapes[1]}x{rhs or type_}>",
        f"tensor<{result}x{type_}>",
    )
    return check_lowering(
        f"""func.func @f(%a: {left}, %b: {right}) -> {out} {{
        %0 = mlc.binary {kind} %a, %b {attrs} : {left}, {right} -> {out}
        return %0 : {out} }}""",
        a,
        b,
    )


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div", "mod", "fmod", "max", "min"])
def test_float_binary(kind: str) -> None:
    a = np.array([[-7.5], [-0.5], [0.0], [3.25]], np.float32)
    b = np.array([[-2.0, -0.5, 0.75, 3.0]], np.float32)
    binary(kind, a, b, "f32")


def test_max_propagates_nan() -> None:
    binary("max", FLOATS[-4:], np.zeros(4, np.float32), "f32")


def test_atan2() -> None:
    binary("atan2", UNIT, POSITIVE - 2, "f32")


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div", "mod", "fmod", "max", "min", "and", "or", "xor"])
def test_int_binary(kind: str) -> None:
    a = np.array([[-(2**31)], [-7], [0], [5]], np.int32)
    binary(kind, a, np.array([[-3, -1, 1, 4]], np.int32), "i32")


@pytest.mark.parametrize("kind", ["div", "mod", "fmod", "max", "min", "shr"])
def test_unsigned_binary(kind: str) -> None:
    binary(kind, np.array([-1, 200 - 256, 7], np.int8), np.array([3, -2, 2], np.int8), "i8", attrs="{unsigned}")


@pytest.mark.parametrize("kind", ["shl", "shr"])
def test_shift(kind: str) -> None:
    binary(kind, np.array([-5, 100, 7], np.int32), np.array([1, 3, 5], np.int32), "i32")


@pytest.mark.parametrize("exponent", [np.array([2, 0, 3], np.int64), np.array([0.5, 2.0, -1.0], np.float32)])
def test_pow(exponent: np.ndarray) -> None:
    base = np.array([1.5, 2.0, 4.0], np.float32)
    binary("pow", base, exponent, "f32", rhs="i64" if exponent.dtype == np.int64 else "f32")


def test_pow_of_ints() -> None:
    binary("pow", np.array([-3, 2, 7], np.int32), np.array([3, 10, 0], np.int32), "i32")


def test_constant_divisor_needs_no_check() -> None:
    text = """func.func @f(%a: tensor<3xi64>) -> tensor<3xi64> {
      %c = mlc.constant dense<2> : tensor<i64>
      %0 = mlc.binary div %a, %c : tensor<3xi64>, tensor<i64> -> tensor<3xi64>
      return %0 : tensor<3xi64> }"""
    assert "cf.assert" not in check_lowering(text, np.array([-5, 4, 3]))


def test_division_names_the_node() -> None:
    lowered = binary("div", np.array([4, 5], np.int64), np.array([2, 2], np.int64), "i64")
    assert "division by zero in node" in lowered


def test_broadcast_decided_at_run_time() -> None:
    text = """func.func @f(%a: tensor<?x3xf32>, %b: tensor<?x3xf32>) -> tensor<?x3xf32> {
      %0 = mlc.binary add %a, %b : tensor<?x3xf32>, tensor<?x3xf32> -> tensor<?x3xf32>
      return %0 : tensor<?x3xf32> }"""
    a, b = np.ones((4, 3), np.float32), np.arange(3, dtype=np.float32).reshape(1, 3)
    check_lowering(text, a, b)
    check_lowering(text, b, a)
    lowered = check_lowering(text, a, a)
    assert "mlc.check" in lowered and "tensor.extract" in lowered


@pytest.mark.parametrize("predicate", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("type_", ["f32", "i8", "bf16"])
def test_compare(predicate: str, type_: str) -> None:
    values = {"f32": FLOATS[-6:], "i8": INTS[:6], "bf16": FLOATS[-6:].astype(ml_dtypes.bfloat16)}[type_]
    check_lowering(
        f"""func.func @f(%a: tensor<6x1x{type_}>, %b: tensor<6x{type_}>) -> tensor<6x6xi1> {{
        %0 = mlc.compare {predicate} %a, %b : tensor<6x1x{type_}>, tensor<6x{type_}> -> tensor<6x6xi1>
        return %0 : tensor<6x6xi1> }}""",
        values.reshape(6, 1),
        values,
    )


def test_select_broadcasts_all_three() -> None:
    check_lowering(
        """func.func @f(%c: tensor<2x1xi1>, %a: tensor<3xf32>, %b: tensor<f32>) -> tensor<2x3xf32> {
        %0 = mlc.select %c, %a, %b : tensor<2x1xi1>, tensor<3xf32>, tensor<f32> -> tensor<2x3xf32>
        return %0 : tensor<2x3xf32> }""",
        np.array([[True], [False]]),
        np.arange(3, dtype=np.float32),
        np.array(7.0, np.float32),
    )


CASTS = [
    ("f32", "i32", "", np.array([-2.7, 2.7, 0.0, 1e9], np.float32)),
    ("f32", "i8", "{unsigned_out}", np.array([0.5, 200.9, 255.0, 3.0], np.float32)),
    ("f32", "i8", "{saturate}", np.array([-1e9, 1e9, 127.4, -128.6], np.float32)),
    ("f32", "i8", "{saturate, unsigned_out}", np.array([-5.0, 300.0, 254.7, 0.2], np.float32)),
    ("f32", "i1", "", np.array([0.0, 0.1, -0.0, np.nan], np.float32)),
    ("i8", "i32", "{unsigned_in}", np.array([-1, 127, -128, 0], np.int8)),
    ("i8", "f32", "{unsigned_in}", np.array([-1, 127, -128, 0], np.int8)),
    ("i32", "i8", "{saturate}", np.array([-1000, 1000, 5, -5], np.int32)),
    ("i32", "i1", "", np.array([-1000, 0, 5, 256], np.int32)),
    ("i1", "f32", "", np.array([True, False, True, True])),
    ("i1", "i64", "", np.array([True, False, True, True])),
    ("f64", "f16", "", np.array([1.1, -65504.0, 1e-7, 3.0])),
    ("f32", "bf16", "", np.array([1.1, -65504.0, 1e-7, 3.0], np.float32)),
    ("i64", "f32", "", np.array([2**53 + 1, -5, 0, 7], np.int64)),
]


@pytest.mark.parametrize(("source", "to", "attrs", "values"), CASTS)
def test_cast(source: str, to: str, attrs: str, values: np.ndarray) -> None:
    check_lowering(
        f"""func.func @f(%a: tensor<4x{source}>) -> tensor<4x{to}> {{
        %0 = mlc.cast %a {attrs} : tensor<4x{source}> -> tensor<4x{to}>
        return %0 : tensor<4x{to}> }}""",
        values,
    )


def test_bitcast() -> None:
    check_lowering(
        """func.func @f(%a: tensor<4xf32>) -> tensor<4xi32> {
        %0 = mlc.bitcast %a : tensor<4xf32> -> tensor<4xi32>
        return %0 : tensor<4xi32> }""",
        FLOATS[:4],
    )
