"""Concatenation and padding along the vector loop against the NumPy interpreter: loops split where an input begins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_templates import check, draw


@pytest.mark.parametrize("sizes", [(64, 32), (1, 1), (5, 16, 40), (17, 3, 33, 2), (32, 0, 7)])
@pytest.mark.parametrize("rows", ["3", "?"])
def test_concatenation_of_the_innermost_dimension(tmp_path: Path, sizes: tuple[int, ...], rows: str) -> None:
    types = [f"tensor<{rows}x{s}xf32>" for s in sizes]
    o, w = f"tensor<{rows}x{sum(sizes)}xf32>", f"tensor<{sum(sizes)}xf32>"
    names = ", ".join(f"%a{i}" for i in range(len(sizes)))
    body = f"""
      %c = mlc.concat {names} {{axis = 1 : i64}} : {", ".join(types)} -> {o}
      %m = mlc.binary mul %c, %a{len(sizes)} : {o}, {w} -> {o}
      %r = mlc.activation relu %m : {o}
      return %c, %r : {o}, {o}"""
    inputs = [draw((3, s), seed=i) for i, s in enumerate(sizes)]
    check(tmp_path, body, [*types, w], [o, o], [(*inputs, draw((sum(sizes),), seed=9))])


@pytest.mark.parametrize("extents", ["?, 20", "4, ?"])
def test_concatenation_of_unknown_extents(tmp_path: Path, extents: str) -> None:
    a, b = (f"tensor<6x{e}xf32>" for e in extents.split(", "))
    body = f"%c = mlc.concat %a0, %a1 {{axis = 1 : i64}} : {a}, {b} -> tensor<6x?xf32>\nreturn %c : tensor<6x?xf32>"
    shapes = [(6, 18 if e == "?" else int(e)) for e in extents.split(", ")]
    check(tmp_path, body, [a, b], ["tensor<6x?xf32>"], [(draw(shapes[0]), draw(shapes[1], seed=1))])


def test_concatenation_of_concatenations(tmp_path: Path) -> None:
    t, m, o = "tensor<4x10xf32>", "tensor<4x20xf32>", "tensor<4x40xf32>"
    body = f"""
      %m = mlc.concat %a0, %a1 {{axis = 1 : i64}} : {t}, {t} -> {m}
      %n = mlc.unary neg %m : {m}
      %o = mlc.concat %n, %m {{axis = 1 : i64}} : {m}, {m} -> {o}
      return %o : {o}"""
    check(tmp_path, body, [t, t], [o], [(draw((4, 10)), draw((4, 10), seed=1))])


@pytest.mark.parametrize("low, high", [(1, 1), (0, 20), (17, 0), (-3, 5), (-2, -7)])
def test_padding_of_the_innermost_dimension(tmp_path: Path, low: int, high: int) -> None:
    t, o = "tensor<3x30xf32>", f"tensor<3x{30 + low + high}xf32>"
    body = f"""
      %v = mlc.constant dense<-2.5> : tensor<f32>
      %r = mlc.pad constant %a0 low [0, {low}] high [0, {high}] value(%v : tensor<f32>) : {t} -> {o}
      return %r : {o}"""
    check(tmp_path, body, [t], [o], [(draw((3, 30)),)])


def test_many_inputs(tmp_path: Path) -> None:
    sizes = [1 + i % 3 for i in range(80)]
    types = [f"tensor<2x{s}xf32>" for s in sizes]
    o = f"tensor<2x{sum(sizes)}xf32>"
    names = ", ".join(f"%a{i}" for i in range(len(sizes)))
    body = f"%c = mlc.concat {names} {{axis = 1 : i64}} : {', '.join(types)} -> {o}\nreturn %c : {o}"
    inputs = [np.full((2, s), i, np.float32) for i, s in enumerate(sizes)]
    check(tmp_path, body, types, [o], [inputs])
