"""Reductions, contractions, shapes and gathers lowered, run, and compared with the interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from linalg_runner import check_lowering

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def function(arguments: str, result: str, *lines: str) -> str:
    return f"func.func @f({arguments}) -> {result} {{\n" + "\n".join(lines) + f"\nreturn %r : {result}\n}}"


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize(("keepdims", "result"), [("false", "2x?"), ("true", "2x1x?")])
def test_reduce(kind: str, keepdims: str, result: str) -> None:
    text = function(
        "%x: tensor<2x3x?xf32>",
        f"tensor<{result}xf32>",
        f"%r = mlc.reduce {kind} %x {{axes = array<i64: 1>, keepdims = {keepdims}}}"
        f" : tensor<2x3x?xf32> -> tensor<{result}xf32>",
    )
    check_lowering(text, floats(2, 3, 5))


def test_reduce_of_unit_dimensions_is_a_view() -> None:
    text = function(
        "%x: tensor<3x1x1xf32>",
        "tensor<3xf32>",
        "%a = mlc.reduce sum %x {axes = array<i64: 1>, keepdims = true} : tensor<3x1x1xf32> -> tensor<3x1x1xf32>",
        "%r = mlc.reduce max %a {axes = array<i64: 1, 2>, keepdims = false} : tensor<3x1x1xf32> -> tensor<3xf32>",
    )
    assert "linalg.generic" not in check_lowering(text, floats(3, 1, 1))


def test_reductions_of_views_keep_their_extents() -> None:
    text = function(
        "%x: tensor<3xf32>",
        "tensor<3xi64>",
        "%a = mlc.reshape %x [3, 1] : tensor<3xf32> -> tensor<3x1xf32>",
        "%r = mlc.arg_reduce max %a {axis = 1 : i64, keepdims = false} : tensor<3x1xf32> -> tensor<3xi64>",
    )
    check_lowering(text, floats(3))


def test_reduce_of_everything_and_of_nothing() -> None:
    text = function(
        "%x: tensor<2x3xf32>",
        "tensor<1x1xf32>",
        "%r = mlc.reduce sum %x {axes = array<i64: 0, 1>, keepdims = true} : tensor<2x3xf32> -> tensor<1x1xf32>",
    )
    check_lowering(text, floats(2, 3))
    text = function(
        "%x: tensor<2x0xf32>",
        "tensor<2xf32>",
        "%r = mlc.reduce max %x {axes = array<i64: 1>, keepdims = false} : tensor<2x0xf32> -> tensor<2xf32>",
    )
    check_lowering(text, floats(2, 0))


def test_reduce_accumulates_bf16_in_f32() -> None:
    text = function(
        "%x: tensor<400xbf16>",
        "tensor<bf16>",
        "%r = mlc.reduce sum %x {axes = array<i64: 0>, keepdims = false} : tensor<400xbf16> -> tensor<bf16>",
    )
    assert "-> tensor<f32>" in check_lowering(text, np.full(400, 1.0, ml_dtypes.bfloat16))


@pytest.mark.parametrize("kind", ["and", "or"])
def test_reduce_bools(kind: str) -> None:
    text = function(
        "%x: tensor<3x2xi1>",
        "tensor<3xi1>",
        f"%r = mlc.reduce {kind} %x {{axes = array<i64: 1>, keepdims = false}} : tensor<3x2xi1> -> tensor<3xi1>",
    )
    check_lowering(text, np.array([[True, False], [True, True], [False, False]]))


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("last", ["true", "false"])
def test_arg_reduce(kind: str, last: str) -> None:
    text = function(
        "%x: tensor<4x5xf32>",
        "tensor<4xi64>",
        f"%r = mlc.arg_reduce {kind} %x {{axis = 1 : i64, keepdims = false, select_last = {last}}}"
        " : tensor<4x5xf32> -> tensor<4xi64>",
    )
    x = np.array([[1, 3, 3, 0, 0], [np.nan, 5, np.nan, 1, 1], [-np.inf] * 5, [2, 1, 2, 1, 2]], np.float32)
    check_lowering(text, x)


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attrs"),
    [
        ((3, 4), (4, 5), "3x5", ""),
        ((4, 3), (4, 5), "3x5", "{transpose_lhs}"),
        ((3, 4), (5, 4), "3x5", "{transpose_rhs}"),
        ((2, 3, 4), (4, 5), "2x3x5", ""),
        ((2, 1, 3, 4), (6, 4, 5), "2x6x3x5", ""),
        ((2, 3, 4), (2, 5, 4), "2x3x5", "{transpose_rhs}"),
    ],
)
def test_matmul(lhs: tuple[int, ...], rhs: tuple[int, ...], result: str, attrs: str) -> None:
    a, b = ("x".join(map(str, s)) for s in (lhs, rhs))
    text = function(
        f"%a: tensor<{a}xf32>, %b: tensor<{b}xf32>",
        f"tensor<{result}xf32>",
        f"%r = mlc.matmul %a, %b {attrs} : tensor<{a}xf32>, tensor<{b}xf32> -> tensor<{result}xf32>",
    )
    assert "mlc.contraction" in check_lowering(text, floats(*lhs), floats(*rhs))


def test_matmul_with_batch_that_may_broadcast() -> None:
    text = function(
        "%a: tensor<?x2x3xf32>, %b: tensor<?x3x2xf32>",
        "tensor<?x2x2xf32>",
        "%r = mlc.matmul %a, %b : tensor<?x2x3xf32>, tensor<?x3x2xf32> -> tensor<?x2x2xf32>",
    )
    check_lowering(text, floats(1, 2, 3), floats(4, 3, 2))
    check_lowering(text, floats(4, 2, 3), floats(4, 3, 2))


def test_contractions_and_reductions_of_constants() -> None:
    text = function(
        "%a: tensor<2x3xf32>",
        "tensor<2x2xf32>",
        "%c = mlc.constant dense<2.0> : tensor<3x2xf32>",
        "%r = mlc.matmul %a, %c : tensor<2x3xf32>, tensor<3x2xf32> -> tensor<2x2xf32>",
    )
    check_lowering(text, floats(2, 3))
    text = function(
        "%a: tensor<2xf32>",
        "tensor<2xf32>",
        "%c = mlc.constant dense<2.0> : tensor<2x3xf32>",
        "%s = mlc.reduce sum %c {axes = array<i64: 1>, keepdims = false} : tensor<2x3xf32> -> tensor<2xf32>",
        "%r = mlc.binary add %a, %s : tensor<2xf32>",
    )
    check_lowering(text, floats(2))


def test_matmul_of_i8_gives_i32() -> None:
    text = function(
        "%a: tensor<2x3xi8>, %b: tensor<3x2xi8>",
        "tensor<2x2xi32>",
        "%r = mlc.matmul %a, %b : tensor<2x3xi8>, tensor<3x2xi8> -> tensor<2x2xi32>",
    )
    check_lowering(text, np.full((2, 3), 127, np.int8), np.full((3, 2), -128, np.int8))


def test_matmul_of_bf16_accumulates_in_f32() -> None:
    text = function(
        "%a: tensor<2x300xbf16>, %b: tensor<300x2xbf16>",
        "tensor<2x2xbf16>",
        "%r = mlc.matmul %a, %b : tensor<2x300xbf16>, tensor<300x2xbf16> -> tensor<2x2xbf16>",
    )
    ones = np.ones((2, 300), ml_dtypes.bfloat16)
    check_lowering(text, ones, ones.T.copy())


RESHAPES = [
    ("2x3x4", "6x4"),
    ("2x3x4", "24"),
    ("2x3x4", "4x6"),
    ("6x4", "2x3x2x2"),
    ("1x6x1", "6"),
    ("6", "1x1x6"),
    ("2x3", "3x2"),
    ("1x1", ""),
    ("", "1x1x1"),
    ("2x1x3", "1x2x3x1"),
    ("4x0x2", "0x3"),
]


@pytest.mark.parametrize(("source", "result"), RESHAPES)
def test_static_reshape(source: str, result: str) -> None:
    src, dst = (f"tensor<{s}x f32>".replace("x f32", "xf32") if s else "tensor<f32>" for s in (source, result))
    sizes = ", ".join(result.split("x")) if result else ""
    text = function(f"%x: {src}", dst, f"%r = mlc.reshape %x [{sizes}] : {src} -> {dst}")
    shape = [int(d) for d in source.split("x")] if source else []
    lowered = check_lowering(text, np.asarray(floats(*shape), np.float32))
    assert "linalg.generic" not in lowered


DYNAMIC_RESHAPES = [
    ("?x12x64", "?x12x64", "%n, 12, 64"),
    ("?x?x12", "?x?x3x4", "%n, %m, 3, 4"),
    ("?x?x12", "?x12", "%nm, 12"),
    ("?x?x12", "?x?x12", "%m, %n, 12"),
    ("?x?x12", "2x?", "2, %half"),
]


@pytest.mark.parametrize(("source", "result", "sizes"), DYNAMIC_RESHAPES)
def test_dynamic_reshape(source: str, result: str, sizes: str) -> None:
    second = "tensor.dim %x, %c1" if source.count("?") == 2 else "arith.addi %c1, %c0"
    kind = f"tensor<{source}xf32>"
    lines = [
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        "%c6 = arith.constant 6 : index",
        f"%n = tensor.dim %x, %c0 : {kind}",
        f"%m = {second} : {kind if 'dim' in second else 'index'}",
        "%nm = arith.muli %n, %m : index",
        "%half = arith.muli %nm, %c6 : index",
        f"%r = mlc.reshape %x [{sizes}] : {kind} -> tensor<{result}xf32>",
    ]
    shape = {"?x12x64": (2, 12, 64), "?x?x12": (2, 5, 12)}[source]
    lowered = check_lowering(function(f"%x: {kind}", f"tensor<{result}xf32>", *lines), floats(*shape))
    assert "linalg.generic" not in lowered
    assert "mlc.check" not in lowered  # the counts are known to be equal


def test_reshape_of_an_unknown_extent_to_a_scalar() -> None:
    """A view may only leave out dimensions of 1, and that there is one element is checked."""
    text = function("%x: tensor<?xf32>", "tensor<f32>", "%r = mlc.reshape %x [] : tensor<?xf32> -> tensor<f32>")
    lowered = check_lowering(text, floats(1))
    assert "mlc.check" in lowered and "tensor.collapse_shape %cast [] : tensor<1xf32>" in lowered


def test_reshape_to_unknown_sizes_checks_the_count() -> None:
    kind = "tensor<?x6xf32>"
    lines = [
        "%c0 = arith.constant 0 : index",
        "%n = tensor.dim %y, %c0 : tensor<?xf32>",
        f"%r = mlc.reshape %x [%n, 3] : {kind} -> tensor<?x3xf32>",
    ]
    text = function(f"%x: {kind}, %y: tensor<?xf32>", "tensor<?x3xf32>", *lines)
    assert "the element count of the new shape is wrong" in check_lowering(text, floats(2, 6), floats(4))


@pytest.mark.parametrize("permutation", [(0, 2, 1, 3), (3, 2, 1, 0), (0, 1, 2, 3), (1, 0, 2, 3)])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 3, 1, 5)])
def test_transpose(permutation: tuple[int, ...], shape: tuple[int, ...]) -> None:
    source, result = "x".join(map(str, shape)), "x".join(str(shape[p]) for p in permutation)
    text = function(
        f"%x: tensor<{source}xf32>",
        f"tensor<{result}xf32>",
        f"%r = mlc.transpose %x {{permutation = array<i64: {', '.join(map(str, permutation))}>}}"
        f" : tensor<{source}xf32> -> tensor<{result}xf32>",
    )
    check_lowering(text, floats(*shape))


def test_broadcast() -> None:
    lines = [
        "%c1 = arith.constant 1 : index",
        "%n = tensor.dim %y, %c1 : tensor<2x?xf32>",
        "%r = mlc.broadcast %x [2, %n] : tensor<?xf32> -> tensor<2x?xf32>",
    ]
    text = function("%x: tensor<?xf32>, %y: tensor<2x?xf32>", "tensor<2x?xf32>", *lines)
    check_lowering(text, floats(1), floats(2, 4))
    check_lowering(text, floats(4), floats(2, 4))


def test_concat_with_an_empty_input() -> None:
    text = function(
        "%x: tensor<2x?xf32>, %y: tensor<2x3xf32>, %z: tensor<2x?xf32>",
        "tensor<2x?xf32>",
        "%r = mlc.concat %x, %y, %z {axis = 1 : i64}"
        " : tensor<2x?xf32>, tensor<2x3xf32>, tensor<2x?xf32> -> tensor<2x?xf32>",
    )
    check_lowering(text, floats(2, 0), floats(2, 3), floats(2, 2))
    check_lowering(text, floats(2, 4), floats(2, 3), floats(2, 0))


SLICES = [
    ("[1, 0]", "[3, 6]", "[1, 1]", "3x6"),
    ("[0, 0]", "[2, 6]", "[1, 1]", "2x6"),
    ("[0, 1]", "[4, 3]", "[1, 2]", "4x3"),
    ("[3, 5]", "[4, 3]", "[-1, -2]", "4x3"),
    ("[0, 0]", "[4, 6]", "[1, 1]", "4x6"),
    ("[2, 0]", "[1, 1]", "[1, 1]", "1x1"),
    ("[4, 0]", "[0, 6]", "[1, 1]", "0x6"),
]


@pytest.mark.parametrize(("offsets", "sizes", "strides", "result"), SLICES)
def test_slice(offsets: str, sizes: str, strides: str, result: str) -> None:
    text = function(
        "%x: tensor<4x6xf32>",
        f"tensor<{result}xf32>",
        f"%r = mlc.slice %x {offsets} {sizes} {strides} : tensor<4x6xf32> -> tensor<{result}xf32>",
    )
    check_lowering(text, floats(4, 6))


def test_slice_with_run_time_bounds() -> None:
    lines = [
        "%c0 = arith.constant 0 : index",
        "%c2 = arith.constant 2 : index",
        "%n = tensor.dim %x, %c0 : tensor<?x6xf32>",
        "%m = arith.subi %n, %c2 : index",
        "%r = mlc.slice %x [%c2, 0] [%m, 6] [1, 1] : tensor<?x6xf32> -> tensor<?x6xf32>",
    ]
    check_lowering(function("%x: tensor<?x6xf32>", "tensor<?x6xf32>", *lines), floats(5, 6))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize(
    ("low", "high", "result"),
    [("[1, 2]", "[0, 3]", "4x9"), ("[-1, 0]", "[0, 2]", "2x6"), ("[0, -1]", "[0, -2]", "3x1")],
)
def test_pad(mode: str, low: str, high: str, result: str) -> None:
    value = " value(%v : tensor<f32>)" if mode == "constant" else ""
    text = function(
        "%x: tensor<3x4xf32>, %v: tensor<f32>",
        f"tensor<{result}xf32>",
        f"%r = mlc.pad {mode} %x low {low} high {high}{value} : tensor<3x4xf32> -> tensor<{result}xf32>",
    )
    check_lowering(text, floats(3, 4), np.array(9.0, np.float32))


def test_shape_of_and_iota() -> None:
    text = function("%x: tensor<2x?xf32>", "tensor<2xi64>", "%r = mlc.shape_of %x : tensor<2x?xf32> -> tensor<2xi64>")
    check_lowering(text, floats(2, 5))
    text = function("%x: tensor<1xf32>", "tensor<2x3xf32>", "%r = mlc.iota [2, 3] {axis = 1 : i64} : tensor<2x3xf32>")
    check_lowering(text, floats(1))


@pytest.mark.parametrize(("axis", "result"), [(0, "2x2x4"), (1, "3x2x2")])
def test_gather(axis: int, result: str) -> None:
    text = function(
        "%x: tensor<3x4xf32>, %i: tensor<2x2xi64>",
        f"tensor<{result}xf32>",
        f"%r = mlc.gather %x, %i {{axis = {axis} : i64}} : tensor<3x4xf32>, tensor<2x2xi64> -> tensor<{result}xf32>",
    )
    assert "index out of range in node" in check_lowering(text, floats(3, 4), np.array([[0, -1], [2, -3]]))


def test_gather_elements() -> None:
    text = function(
        "%x: tensor<3x4xf32>, %i: tensor<2x4xi32>",
        "tensor<2x4xf32>",
        "%r = mlc.gather_elements %x, %i {axis = 0 : i64} : tensor<3x4xf32>, tensor<2x4xi32> -> tensor<2x4xf32>",
    )
    check_lowering(text, floats(3, 4), np.array([[0, 1, 2, -1], [-3, 0, 0, 1]], np.int32))


def test_gather_nd() -> None:
    text = function(
        "%x: tensor<2x3x4xf32>, %i: tensor<2x5x1xi64>",
        "tensor<2x5x4xf32>",
        "%r = mlc.gather_nd %x, %i {batch_dims = 1 : i64} : tensor<2x3x4xf32>, tensor<2x5x1xi64> -> tensor<2x5x4xf32>",
    )
    check_lowering(text, floats(2, 3, 4), RNG.integers(-3, 3, (2, 5, 1)))
    text = function(
        "%x: tensor<2x3x4xf32>, %i: tensor<3x2xi64>",
        "tensor<3x4xf32>",
        "%r = mlc.gather_nd %x, %i : tensor<2x3x4xf32>, tensor<3x2xi64> -> tensor<3x4xf32>",
    )
    check_lowering(text, floats(2, 3, 4), np.array([[0, 0], [1, -1], [-2, 2]]))
