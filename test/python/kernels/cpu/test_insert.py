"""Insertions into a tensor of the caller: results, what lies outside, and the memory that both may share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_templates import check, draw

import mlc
from mlc.runtime import InputError

CPUS = ["native", "x86-64-v2"]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "i64", "i1"])
@pytest.mark.parametrize("depth", [1, 5, 16, 37])
def test_lines(tmp_path: Path, dtype: str, depth: int, cpu: str) -> None:
    """Lines shorter and longer than vectors, in front of the input, across its ends and behind it."""
    t, u = f"tensor<3x2x?x{depth}x{dtype}>", f"tensor<3x2x?x{depth}x{dtype}>"
    body = f"""
      %r = mlc.insert %a0, %a1, %a2 {{axis = 2 : i64}} : {t}, {u}, tensor<3xi64> -> {t}
      return %r : {t}"""
    runs = [
        (draw((3, 2, length, depth), dtype), draw((3, 2, count, depth), dtype, seed=1), np.array(starts))
        for length, count in ((9, 1), (9, 4), (2, 4), (9, 0))
        for starts in ([0, 3, 8], [-2, 7, 20])
    ]
    check(tmp_path, body, [t, u, "tensor<3xi64>"], [t], runs, cpu=cpu)


def test_along_lines(tmp_path: Path) -> None:
    t, u = "tensor<2x3x?xf32>", "tensor<2x3x4xf32>"
    body = f"""
      %r = mlc.insert %a0, %a1, %a2 {{axis = 2 : i64}} : {t}, {u}, tensor<2xi64> -> {t}
      return %r : {t}"""
    runs = [(draw((2, 3, 11)), draw((2, 3, 4), seed=1), np.array(starts)) for starts in ([0, 7], [-3, 9], [11, -4])]
    check(tmp_path, body, [t, u, "tensor<2xi64>"], [t], runs)


def test_in_a_computed_tensor(tmp_path: Path) -> None:
    """What another kernel has made is updated itself, unless it is read again."""
    t, u = "tensor<2x6x8xf32>", "tensor<2x2x8xf32>"
    insert = f"mlc.insert %s, %a1, %a2 {{axis = 1 : i64}} : {t}, {u}, tensor<2xi64> -> {t}"
    body = f"""
      %s = mlc.unary exp %a0 : {t}
      %r = {insert}
      %n = mlc.unary neg %s : {t}
      return %r, %n : {t}, {t}"""
    run = (draw((2, 6, 8)), draw((2, 2, 8), seed=1), np.array([1, 5]))
    check(tmp_path, body, [t, u, "tensor<2xi64>"], [t, t], [run])


def _model(tmp_path: Path, again: str) -> tuple[mlc.Model, list[np.ndarray]]:
    """A cache and what is inserted into it, and the negative of `again`; with the inputs that it has been run on."""
    t, u = "tensor<2x6x8xf32>", "tensor<2x2x8xf32>"
    body = f"""
      %r = mlc.insert %a0, %a1, %a2 {{axis = 1 : i64}} : {t}, {u}, tensor<2xi64> -> {t}
      %n = mlc.unary neg {again} : {t}
      return %r, %n : {t}, {t}"""
    given = [draw((2, 6, 8)), draw((2, 2, 8), seed=1), np.array([1, 3])]
    return check(tmp_path, body, [t, u, "tensor<2xi64>"], [t, t], [given]), given


def test_in_the_memory_of_the_input(tmp_path: Path) -> None:
    """Given back to the caller's buffer, the input's: only what is new is written there."""
    model, given = _model(tmp_path, "%r")
    first, second = model.entry(None).outputs
    cache_name = model.entry(None).inputs[0].name
    assert first.shares == cache_name and str(first).endswith(f", may share {cache_name}") and not second.shares
    want, negated = model(*given)
    got = model.run(given, out=[given[0], None])
    assert next(iter(got.values())) is given[0]
    np.testing.assert_array_equal(given[0], want)
    np.testing.assert_array_equal(list(got.values())[1], negated)


def test_an_input_that_is_read_again_stays(tmp_path: Path) -> None:
    model, given = _model(tmp_path, "%a0")
    assert not any(output.shares for output in model.entry(None).outputs)
    with pytest.raises(InputError, match="its buffer overlaps that of"):
        model.run(given, out=[given[0], None])


def test_in_a_loop(tmp_path: Path) -> None:
    """What a loop carries is updated in every iteration."""
    t, u = "tensor<2x6x8xf32>", "tensor<2x2x8xf32>"
    body = f"""
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %two = mlc.constant dense<2> : tensor<i64>
      %r, %n = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %a0, %m = %a2) -> ({t}, tensor<2xi64>) {{
        %v = mlc.insert %s, %a1, %m {{axis = 1 : i64}} : {t}, {u}, tensor<2xi64> -> {t}
        %next = mlc.binary add %m, %two : tensor<2xi64>, tensor<i64> -> tensor<2xi64>
        scf.yield %v, %next : {t}, tensor<2xi64>
      }}
      return %r : {t}"""
    run = (draw((2, 6, 8)), draw((2, 2, 8), seed=1), np.array([0, -1]))
    model = check(tmp_path, body, [t, u, "tensor<2xi64>"], [t], [run])
    assert sum(kernel["template"] == "insert" for kernel in model.metadata["kernels"]) == 1


def test_in_a_number(tmp_path: Path) -> None:
    """A new cache: the kernel makes what it updates, or another one does."""
    t, u = "tensor<2x6x8xf32>", "tensor<2x2x8xf32>"
    body = f"""
      %s = mlc.constant dense<3.0> : {t}
      %r = mlc.insert %s, %a0, %a1 {{axis = 1 : i64}} : {t}, {u}, tensor<2xi64> -> {t}
      return %r : {t}"""
    check(tmp_path, body, [u, "tensor<2xi64>"], [t], [(draw((2, 2, 8)), np.array([1, 5]))])


def test_of_itself(tmp_path: Path) -> None:
    """The update is the input: what has been written is not read again."""
    t = "tensor<2x6x8xf32>"
    body = f"""
      %s = mlc.unary exp %a0 : {t}
      %r = mlc.insert %a0, %a0, %a1 {{axis = 1 : i64}} : {t}, {t}, tensor<2xi64> -> {t}
      %q = mlc.insert %s, %s, %a1 {{axis = 1 : i64}} : {t}, {t}, tensor<2xi64> -> {t}
      return %r, %q : {t}, {t}"""
    model = check(tmp_path, body, [t, "tensor<2xi64>"], [t, t], [(draw((2, 6, 8)), np.array([1, -2]))])
    assert not any(output.shares for output in model.entry(None).outputs)
