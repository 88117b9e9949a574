"""Activations, statistics and normalizations: decomposed, run, and compared with the interpreter's composites."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from linalg_runner import check_decomposition

RNG = np.random.default_rng(5)
VALUES = np.array([-1e4, -90.0, -3.5, -0.6, -0.0, 0.0, 0.4, 1.0, 3.1, 20.0, 90.0, 1e4], np.float32)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def kind_of(array: np.ndarray, dynamic: tuple[int, ...] = ()) -> str:
    names = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int32": "i32", "int64": "i64"}
    shape = ["?" if i in dynamic else str(n) for i, n in enumerate(array.shape)]
    return f"tensor<{'x'.join([*shape, names[str(array.dtype)]])}>"


def check(operation: str, *arrays: np.ndarray, result: str = "", tolerance: float = 1e-5) -> str:
    """`operation` uses `%0`, `%1`, … and `{0}`, `{1}`, … for the types of the arguments, `{r}` for the result's."""
    types = [kind_of(a) for a in arrays]
    result = result or types[0]
    arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(types))
    for i, type_ in enumerate(types):
        operation = operation.replace(f"<{i}>", type_)
    operation = operation.replace("<r>", result)
    text = f"func.func @f({arguments}) -> {result} {{\n%r = {operation}\nreturn %r : {result} }}"
    return check_decomposition(text, *arrays, tolerance=tolerance)


@pytest.mark.parametrize(
    "kind",
    ["relu", "leaky_relu", "elu", "selu", "celu", "gelu", "gelu_tanh", "hard_sigmoid", "hard_swish", "softplus"]
    + ["softsign", "silu", "mish", "thresholded_relu", "shrink"],
)
def test_activation(kind: str) -> None:
    check(f"mlc.activation {kind} %0 : <0>", VALUES)


@pytest.mark.parametrize("kind", ["leaky_relu", "elu", "celu", "hard_sigmoid", "silu", "thresholded_relu", "shrink"])
def test_activation_parameters(kind: str) -> None:
    check(f"mlc.activation {kind} %0 {{alpha = 0.3 : f64, beta = 0.7 : f64}} : <0>", VALUES)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mish_of_huge_numbers(dtype: type) -> None:
    """The square of the exponential does not overflow, and 20 is far enough for the fraction to be 1."""
    check("mlc.activation mish %0 : <0>", np.array([-1e30, -90, -5, 0, 5, 19, 21, 50, 90, 1e30, np.inf, np.nan], dtype))


def test_relu_propagates_nan() -> None:
    check("mlc.activation relu %0 : <0>", np.array([np.nan, -1.0, 1.0], np.float32))


def test_narrow_activation_rounds_once() -> None:
    decomposed = check("mlc.activation mish %0 : <0>", floats(64).astype(ml_dtypes.bfloat16), tolerance=1e-2)
    assert decomposed.count("mlc.cast") == 2


@pytest.mark.parametrize("bounds", ["low(%1 : <1>)", "high(%1 : <1>)", "low(%1 : <1>) high(%2 : <2>)"])
def test_clamp(bounds: str) -> None:
    check(f"mlc.clamp %0 {bounds} : <0>", VALUES, np.array(-1, np.float32), np.array(2, np.float32))


def test_prelu() -> None:
    check("mlc.prelu %0, %1 : <0>, <1> -> <r>", floats(2, 3, 4), floats(3, 1))


STATISTICS = ["mean", "variance", "l1", "l2", "log_sum", "log_sum_exp", "sum_square"]


@pytest.mark.parametrize("kind", STATISTICS)
@pytest.mark.parametrize(("keepdims", "result"), [("true", "tensor<2x1x4xf32>"), ("false", "tensor<2x4xf32>")])
def test_statistic(kind: str, keepdims: str, result: str) -> None:
    attrs = f"{{axes = array<i64: 1>, keepdims = {keepdims}}}"
    check(f"mlc.statistic {kind} %0 {attrs} : <0> -> <r>", np.abs(floats(2, 3, 4)) + 0.1, result=result)


def test_log_sum_exp_of_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 1.0], [1e4, 1e4]], np.float32)
    attrs = "{axes = array<i64: 1>, keepdims = false}"
    check(f"mlc.statistic log_sum_exp %0 {attrs} : <0> -> <r>", x, result="tensor<3xf32>")


def test_mean_over_an_unknown_extent() -> None:
    text = """func.func @f(%x: tensor<2x?xf32>) -> tensor<2xf32> {
      %r = mlc.statistic mean %x {axes = array<i64: 1>, keepdims = false} : tensor<2x?xf32> -> tensor<2xf32>
      return %r : tensor<2xf32> }"""
    check_decomposition(text, floats(2, 7))


@pytest.mark.parametrize("log", ["true", "false"])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax(log: str, axis: int) -> None:
    check(f"mlc.softmax %0 {{axis = {axis} : i64, log = {log}}} : <0>", floats(3, 5) * 100, tolerance=1e-4)


def test_batch_norm() -> None:
    arrays = [floats(2, 3, 4), floats(3), floats(3), floats(3), np.abs(floats(3)) + 0.1]
    types = ", ".join(f"<{i}>" for i in range(5))
    operation = f"mlc.batch_norm %0, %1, %2, %3, %4 {{epsilon = 1.0e-5 : f64}} : {types} -> <r>"
    check(operation, *arrays)


def test_batch_norm_becomes_part_of_a_convolution() -> None:
    filter_, vector = "tensor<4x3x1xf32>", "tensor<4xf32>"
    constants = ", ".join(f"[[{i}.5], [-1.0], [0.25]]" for i in range(4))
    attrs = "{strides = array<i64: 1>, padding = array<i64: 0, 0>, dilations = array<i64: 1>}"
    vectors = [f"%c{i} = mlc.constant dense<[{i}.1, 0.7, 1.3, 2.0]> : {vector}" for i in range(5)]
    result = "tensor<2x4x6xf32>"
    lines = [
        f"%w = mlc.constant dense<[{constants}]> : {filter_}",
        *vectors,
        f"%y = mlc.conv %x, %w bias(%c4 : {vector}) {attrs} : tensor<2x3x6xf32>, {filter_} -> {result}",
        "%r = mlc.batch_norm %y, %c0, %c1, %c2, %c3 {epsilon = 1.0e-5 : f64}"
        f" : {result}, {vector}, {vector}, {vector}, {vector} -> {result}",
    ]
    text = f"func.func @f(%x: tensor<2x3x6xf32>) -> {result} {{\n" + "\n".join(lines) + f"\nreturn %r : {result} }}"
    decomposed = check_decomposition(text, floats(2, 3, 6), tolerance=1e-4)
    assert decomposed.count("mlc.conv ") == 1
    assert decomposed.index("mlc.conv ") > decomposed.rindex("mlc.binary")


@pytest.mark.parametrize("rms", ["true", "false"])
def test_layer_norm(rms: str) -> None:
    attrs = f"{{axis = 1 : i64, epsilon = 1.0e-5 : f64, rms = {rms}}}"
    operation = f"mlc.layer_norm %0 scale(%1 : <1>) bias(%2 : <2>) {attrs} : <0>"
    check(operation, floats(2, 3, 4) + 30, floats(3, 4), floats(4), tolerance=1e-4)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm(groups: int) -> None:
    operation = f"mlc.group_norm %0, %1, %2 {{groups = {groups} : i64, epsilon = 1.0e-5 : f64}} : <0>, <1>, <2> -> <r>"
    check(operation, floats(2, 4, 3, 2), floats(4), floats(4), tolerance=1e-4)


@pytest.mark.parametrize("how", ["by_channel", "in_rows"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm_beside_a_convolution(groups: int, how: str) -> None:
    attributes = f"groups = {groups} : i64, epsilon = 1.0e-5 : f64, mlc.{how}"
    operation = f"mlc.group_norm %0, %1, %2 {{{attributes}}} : <0>, <1>, <2> -> <r>"
    apart = np.arange(4, dtype=np.float32).reshape(4, 1, 1) * 5  # a group's variance is more than its channels'
    check(operation, floats(2, 4, 3, 2) + apart, floats(4), floats(4), tolerance=1e-4)


@pytest.mark.parametrize("size", [3, 4])
def test_lrn(size: int) -> None:
    attrs = f"{{size = {size} : i64, alpha = 0.02 : f64, beta = 0.6 : f64, bias = 1.5 : f64}}"
    check(f"mlc.lrn %0 {attrs} : <0>", floats(2, 5, 3))


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalize(p: int) -> None:
    x = floats(3, 4)
    x[1] = 0
    check(f"mlc.lp_normalize %0 {{axis = 1 : i64, p = {p} : i64}} : <0>", x)
