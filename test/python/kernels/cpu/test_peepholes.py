"""Patterns with shorter code: right where they match, at special values too, and left alone where they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models.processors import skip_unless_it_runs
from test_templates import check, draw

SPECIAL = np.array([0.0, -0.0, 1e-20, -5.5, 9.0, -40.0, 200.0, -3e38, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("function", ["erf", "tanh"])
@pytest.mark.parametrize("addend", [1.0, 2.0])
def test_function_plus_one(tmp_path: Path, function: str, addend: float) -> None:
    t = "tensor<?xf32>"
    body = f"""
      %one = mlc.constant dense<{addend}> : tensor<f32>
      %f = mlc.unary {function} %a0 : {t}
      %s = mlc.binary add %one, %f : tensor<f32>, {t} -> {t}
      %h = mlc.binary mul %s, %a0 : {t}, {t} -> {t}
      return %s, %h : {t}, {t}"""
    check(tmp_path, body, [t], [t, t], [(draw((n,)) * 3,) for n in (1, 37, 4096)])


@pytest.mark.parametrize("function", ["erf", "tanh"])
def test_special_values_of_a_function_plus_one(tmp_path: Path, function: str) -> None:
    t = f"tensor<{SPECIAL.size}xf32>"
    body = f"""
      %one = mlc.constant dense<1.0> : tensor<f32>
      %f = mlc.unary {function} %a0 : {t}
      %s = mlc.binary add %f, %one : {t}, tensor<f32> -> {t}
      return %s : {t}"""
    model = check(tmp_path, body, [t], [t], [(draw((SPECIAL.size,)),)])
    [result] = model(SPECIAL)
    small = 1 + np.tanh(-5.5) if function == "tanh" else 0
    np.testing.assert_allclose(result, [1, 1, 1, small, 2, 0, 2, 0, 2, 0, np.nan], rtol=1e-6, atol=1e-13)
    assert result[7] == result[9] == 0  # times a huge number it has to vanish


@pytest.mark.parametrize("function", ["erf", "tanh"])
def test_a_function_that_is_read_elsewhere_keeps_its_accuracy(tmp_path: Path, function: str) -> None:
    t = "tensor<64xf32>"
    body = f"""
      %one = mlc.constant dense<1.0> : tensor<f32>
      %f = mlc.unary {function} %a0 : {t}
      %s = mlc.binary add %f, %one : {t}, tensor<f32> -> {t}
      return %f, %s : {t}, {t}"""
    tiny = draw((64,)) * np.float32(1e-6)
    model = check(tmp_path, body, [t], [t, t], [(tiny,)])
    slope = 2 / np.sqrt(np.pi) if function == "erf" else 1.0
    np.testing.assert_allclose(model(tiny)[0], slope * tiny.astype(np.float64), rtol=3e-7)


def test_sigmoid(tmp_path: Path) -> None:
    """Results that are subnormal are right to a few units, and special values what they should be."""
    x = np.concatenate([SPECIAL, np.linspace(-110, 30, 1000), [-88.8, -103.9]]).astype(np.float32)
    t = f"tensor<{x.size}xf32>"
    model = check(tmp_path, f"%s = mlc.unary sigmoid %a0 : {t}\nreturn %s : {t}", [t], [t], [(x,)])
    with np.errstate(over="ignore"):
        expected = 1 / (1 + np.exp(-x.astype(np.float64)))
    [result] = model(x)
    np.testing.assert_allclose(result, expected, rtol=3e-7, atol=2e-45)


def test_a_sigmoid_of_parts_that_are_read_elsewhere(tmp_path: Path) -> None:
    t = "tensor<100xf32>"
    body = f"""
      %one = mlc.constant dense<1.0> : tensor<f32>
      %n = mlc.unary neg %a0 : {t}
      %e = mlc.unary exp %n : {t}
      %d = mlc.binary add %one, %e : tensor<f32>, {t} -> {t}
      %r = mlc.binary div %one, %d : tensor<f32>, {t} -> {t}
      %s = mlc.unary sigmoid %a0 : {t}
      %p = mlc.binary mul %s, %e : {t}, {t} -> {t}
      return %p, %r : {t}, {t}"""
    check(tmp_path, body, [t], [t, t], [(draw((100,)),)])


def _softmax_rows() -> np.ndarray:
    rows = draw((11, 200)) * 20
    rows[1, 7] = np.nan
    rows[2, :] = -np.inf
    rows[3, ::2] = -np.inf
    rows[4, 3] = np.inf
    rows[5, :] = 3e38
    rows[6, :] = np.nan
    rows[7, 0] = 500
    rows[8, ::3] = np.finfo(np.float32).min
    rows[9, ::3] = -1e30
    rows[10, 1:] = -np.inf
    return np.concatenate([rows, _large_rows()])


def _large_rows() -> np.ndarray:
    """Sums of them are in order, but products with 1 / ln(2) are rounded by much or overflow."""
    most = np.array([1e4, -1e6, -1e9, 1.07e9, 3e20, np.finfo(np.float32).min, np.finfo(np.float32).max])
    rows = np.repeat(most[:, None], 200, axis=1).astype(np.float32)
    rows[:, ::3] -= np.spacing(np.abs(rows[:, ::3])) * 3
    rows[np.isinf(rows)] = np.finfo(np.float32).min
    return rows


@pytest.mark.parametrize("shape", ["18x200", "?x200", "18x?"])
def test_softmax_of_special_rows(tmp_path: Path, shape: str) -> None:
    t = f"tensor<{shape}xf32>"
    body = f"%s = mlc.softmax %a0 {{axis = 1 : i64, log = false}} : {t}\nreturn %s : {t}"
    with np.errstate(invalid="ignore"):
        model = check(tmp_path, body, [t], [t], [(draw((18, 200)) * 5,)])
        rows = _softmax_rows()
        wide = rows.astype(np.float64)
        power = np.exp(wide - wide.max(axis=1, keepdims=True))
        expected = power / power.sum(axis=1, keepdims=True)
    [result] = model(rows)
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-31)
    assert (result[8:10, ::3] == 0).all() and (result[10] == expected[10]).all()


@pytest.mark.parametrize("shape", ["40x49", "?x49"])
@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
def test_softmax_of_masked_rows_has_no_subnormal_numbers(tmp_path: Path, shape: str, cpu: str) -> None:
    """Processors take a hundred times as long to multiply those: a mask of -100 gives many."""
    skip_unless_it_runs(cpu)
    t = f"tensor<{shape}xf32>"
    body = f"%s = mlc.softmax %a0 {{axis = 1 : i64, log = false}} : {t}\nreturn %s : {t}"
    model = check(tmp_path, body, [t], [t], [], cpu=cpu)
    rows = draw((40, 49)) * 4
    rows[:, ::2] -= np.linspace(60, 110, 40, dtype=np.float32)[:, None]
    [result] = model(rows)
    assert not ((result > 0) & (result < np.finfo(np.float32).tiny)).any() and (result == 0).any()
    wide = rows.astype(np.float64)
    power = np.exp(wide - wide.max(axis=1, keepdims=True))
    np.testing.assert_allclose(result, power / power.sum(axis=1, keepdims=True), rtol=2e-5, atol=1e-31)


@pytest.mark.parametrize("shape", ["11x40", "?x83", "7x?"])
def test_probabilities_that_are_normalized_again(tmp_path: Path, shape: str) -> None:
    """Exponentials wait in the result while two sums are made of them; the second one reads another matrix as well."""
    t, r = f"tensor<{shape}xf32>", f"tensor<{shape.split('x')[0]}x1xf32>"
    body = f"""
      %h = mlc.constant dense<2.500000e-01> : tensor<f32>
      %s = mlc.softmax %a0 {{axis = 1 : i64, log = false}} : {t}
      %m = mlc.binary mul %s, %h : {t}, tensor<f32> -> {t}
      %a = mlc.binary add %m, %a1 : {t}, {t} -> {t}
      %n = mlc.reduce sum %a {{axes = array<i64: 1>, keepdims = true}} : {t} -> {r}
      %q = mlc.binary div %a, %n : {t}, {r} -> {t}
      return %q : {t}"""
    rows, columns = (11 if e == "?" else int(e) for e in shape.split("x"))
    columns = 51 if shape.endswith("?") else columns
    check(tmp_path, body, [t, t], [t], [(draw((rows, columns)) * 5, np.abs(draw((rows, columns), seed=1)))])


@pytest.mark.parametrize("factor", ["log %n : tensor<18x1xf32>", "reciprocal %n : tensor<18x1xf32>"])
def test_sums_of_exponentials_that_are_read_elsewhere(tmp_path: Path, factor: str) -> None:
    """They are those of exponentials that are shifted by the maximum itself, also where that is large."""
    t, r = "tensor<18x200xf32>", "tensor<18x1xf32>"
    body = f"""
      %m = mlc.reduce max %a0 {{axes = array<i64: 1>, keepdims = true}} : {t} -> {r}
      %d = mlc.binary sub %a0, %m : {t}, {r} -> {t}
      %e = mlc.unary exp %d : {t}
      %n = mlc.reduce sum %e {{axes = array<i64: 1>, keepdims = true}} : {t} -> {r}
      %q = mlc.binary div %e, %n : {t}, {r} -> {t}
      %l = mlc.unary {factor}
      %p = mlc.binary mul %q, %l : {t}, {r} -> {t}
      return %p : {t}"""
    rows = draw((18, 200)) + np.linspace(-3e5, 3e5, 18, dtype=np.float32)[:, None]
    check(tmp_path, body, [t], [t], [(rows,)])


def test_exponentials_of_shifted_rows_keep_the_maximum_exact(tmp_path: Path) -> None:
    """Without the division a NaN of the row has to reach every result through the maximum."""
    t, r = "tensor<18x200xf32>", "tensor<18x1xf32>"
    body = f"""
      %m = mlc.reduce max %a0 {{axes = array<i64: 1>, keepdims = true}} : {t} -> {r}
      %d = mlc.binary sub %a0, %m : {t}, {r} -> {t}
      %e = mlc.unary exp %d : {t}
      return %e : {t}"""
    with np.errstate(invalid="ignore"):
        model = check(tmp_path, body, [t], [t], [(draw((18, 200)) * 5,)])
        rows = _softmax_rows()
        expected = np.exp(rows.astype(np.float64) - rows.max(axis=1, keepdims=True))
    np.testing.assert_allclose(model(rows)[0], expected, rtol=2e-5, atol=1e-31)


@pytest.mark.parametrize("kind", ["max", "min"])
def test_extrema_see_every_nan(tmp_path: Path, kind: str) -> None:
    t, o = "tensor<5x100xf32>", "tensor<5xf32>"
    body = f"%r = mlc.reduce {kind} %a0 {{axes = array<i64: 1>, keepdims = false}} : {t} -> {o}\nreturn %r : {o}"
    rows = draw((5, 100))
    rows[0, 0] = rows[1, 99] = rows[2, 50] = np.nan
    rows[3, 10] = np.inf if kind == "max" else -np.inf
    model = check(tmp_path, body, [t], [o], [(draw((5, 100)),)])
    np.testing.assert_array_equal(model(rows)[0], getattr(rows, kind)(axis=1))


@pytest.mark.parametrize("zero", [None, 0, 128, 113, 255])
@pytest.mark.parametrize("sign", ["unsigned", "signed"])
def test_rounding_to_codes(tmp_path: Path, zero: int | None, sign: str) -> None:
    """Ties, both bounds and what lies beyond, NaN, and everything in between, with even and odd zero points."""
    steps = np.arange(-300, 301, dtype=np.float32)
    near = [np.nextafter(steps + 0.5, direction, dtype=np.float32) for direction in (-np.inf, np.inf)]
    x = np.concatenate([steps, steps + 0.5, *near, SPECIAL, draw((333,)) * 100]).astype(np.float32)
    t, q = f"tensor<{x.size}xf32>", f"tensor<{x.size}xi8>"
    kind, shift = ("", 128) if sign == "signed" else ("unsigned, ", 0)
    value = "%r" if zero is None else "%s"
    body = f"""
      %zero = mlc.constant dense<{float((zero or 0) - shift)}> : tensor<f32>
      %r = mlc.unary round %a0 : {t}
      %s = mlc.binary add %r, %zero : {t}, tensor<f32> -> {t}
      %q = mlc.cast {value} {{{kind.replace("unsigned", "unsigned_out")}saturate}} : {t} -> {q}
      return %q : {q}"""
    model = check(tmp_path, body, [t], [q], [(x,)])
    [result] = model(x)
    offset = 0 if zero is None else zero - shift
    low, high = (-128, 127) if shift else (0, 255)
    expected = np.where(np.isnan(x), 0, np.clip(np.rint(np.nan_to_num(x, posinf=1e9, neginf=-1e9)) + offset, low, high))
    np.testing.assert_array_equal(result.view(np.int8 if shift else np.uint8), expected)


@pytest.mark.parametrize("zero", [None, 0, 128, 113])
@pytest.mark.parametrize("other", [0, 5])
@pytest.mark.parametrize("sign", ["unsigned", "signed"])
def test_numbers_of_codes(tmp_path: Path, zero: int | None, other: int, sign: str) -> None:
    """Codes that the same kernel goes on with, and stores: with its own zero point or another one subtracted."""
    steps = np.arange(-300, 301, dtype=np.float32)
    x = np.concatenate([steps, steps + 0.5, SPECIAL, draw((333,)) * 100]).astype(np.float32)
    t, w, q = (f"tensor<{x.size}x{kind}>" for kind in ("f32", "i32", "i8"))
    is_signed = sign == "signed"
    offset = 0 if zero is None else zero - (128 if is_signed else 0)
    less = offset + other
    plain = zero is None and other == 0
    out, back = ("", "") if is_signed else ("unsigned_out, ", " {unsigned_in}")
    body = f"""
      %zero = mlc.constant dense<{float(offset)}> : tensor<f32>
      %less = mlc.constant dense<{less}> : tensor<i32>
      %r = mlc.unary round %a0 : {t}
      %s = mlc.binary add %r, %zero : {t}, tensor<f32> -> {t}
      %q = mlc.cast {"%r" if zero is None else "%s"} {{{out}saturate}} : {t} -> {q}
      %i = mlc.cast %q{back} : {q} -> {w}
      %d = mlc.binary sub %i, %less : {w}, tensor<i32> -> {w}
      %f = mlc.cast {f"%q{back} : {q}" if plain else f"%d : {w}"} -> {t}
      %y = mlc.binary mul %f, %f : {t}
      return %q, %y : {q}, {t}"""
    model = check(tmp_path, body, [t], [q, t], [(x,)])
    codes, squares = model(x)
    codes = codes.view(np.int8 if is_signed else np.uint8)
    np.testing.assert_array_equal(squares, (codes.astype(np.float32) - (0 if plain else less)) ** 2)
    assert len(model.metadata["kernels"]) == 1
    low, high = (-128, 127) if is_signed else (0, 255)
    expected = np.where(np.isnan(x), 0, np.clip(np.rint(np.nan_to_num(x, posinf=1e9, neginf=-1e9)) + offset, low, high))
    np.testing.assert_array_equal(codes, expected)


def test_a_rounded_number_that_is_read_elsewhere_stays_one(tmp_path: Path) -> None:
    t, q = "tensor<100xf32>", "tensor<100xi8>"
    body = f"""
      %zero = mlc.constant dense<3.0> : tensor<f32>
      %r = mlc.unary round %a0 : {t}
      %s = mlc.binary add %r, %zero : {t}, tensor<f32> -> {t}
      %q = mlc.cast %s {{saturate}} : {t} -> {q}
      return %r, %q : {t}, {q}"""
    check(tmp_path, body, [t], [t, q], [(draw((100,)) * 90,)])
