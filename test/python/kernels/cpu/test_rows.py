"""Row kernels against the NumPy interpreter: several reductions, flattened groups of dimensions, several results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_templates import check, draw


@pytest.mark.parametrize("shape", ["4x33", "?x768", "2x?x48"])
@pytest.mark.parametrize("rms", ["false", "true"])
def test_normalisation_of_a_sum_that_is_a_result_too(tmp_path: Path, shape: str, rms: str) -> None:
    t, width = f"tensor<{shape}xf32>", int(shape.split("x")[-1])
    w, axis = f"tensor<{width}xf32>", shape.count("x")
    body = f"""
      %r = mlc.binary add %a0, %a1 : {t}, {t} -> {t}
      %n = mlc.layer_norm %r scale(%a2 : {w}) bias(%a3 : {w}) {{axis = {axis} : i64, epsilon = 1.0e-5 : f64, rms = {rms}}} : {t}
      return %r, %n : {t}, {t}"""
    runs = []
    for n in (1, 7):
        extents = [n if d == "?" else int(d) for d in shape.split("x")]
        runs.append((draw(extents), draw(extents, seed=1), draw((width,), seed=2), draw((width,), seed=3)))
    check(tmp_path, body, [t, t, w, w], [t, t], runs, 5e-6)


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("height, width", [("5", "7"), ("16", "16"), ("?", "3"), ("3", "?")])
def test_groups_are_walked_as_one_dimension(tmp_path: Path, groups: int, height: str, width: str) -> None:
    t, w = f"tensor<2x8x{height}x{width}xf32>", "tensor<8xf32>"
    body = f"""
      %n = mlc.group_norm %a0, %a1, %a2 {{epsilon = 1.0e-5 : f64, groups = {groups} : i64}} : {t}, {w}, {w} -> {t}
      return %n : {t}"""
    extents = [2, 8, *(11 if d == "?" else int(d) for d in (height, width))]
    runs = [(draw(extents), draw((8,), seed=1), draw((8,), seed=2))]
    check(tmp_path, body, [t, w, w], [t], runs, 5e-6)


@pytest.mark.parametrize("shape", ["2x3x5x17", "1x2x?x64"])
def test_softmax_with_scale_and_mask(tmp_path: Path, shape: str) -> None:
    t, mask = f"tensor<{shape}xf32>", f"tensor<1x1x{shape.split('x', 2)[2]}xf32>"
    body = f"""
      %a = mlc.binary mul %a0, %a1 : {t}, tensor<f32> -> {t}
      %b = mlc.binary add %a, %a2 : {t}, {mask} -> {t}
      %s = mlc.softmax %b {{axis = 3 : i64, log = false}} : {t}
      return %s : {t}"""
    extents = [6 if d == "?" else int(d) for d in shape.split("x")]
    scores, scale, bias = draw(extents) * 4, np.float32(0.125).reshape(()), draw([1, 1, *extents[2:]], seed=1)
    bias[..., -3:] = -np.inf
    check(tmp_path, body, [t, "tensor<f32>", mask], [t], [(scores, scale, bias)], 5e-6)


@pytest.mark.parametrize("kind", ["sum", "max"])
@pytest.mark.parametrize("extents", [(3, 5, 7, 11), (2, 1, 30, 2), (1, 4, 4, 4)])
def test_trailing_dimensions_are_reduced_as_one(tmp_path: Path, kind: str, extents: tuple[int, ...]) -> None:
    t, o = f"tensor<{'x'.join(map(str, extents))}xf32>", f"tensor<{extents[0]}xf32>"
    body = f"""
      %n = mlc.unary abs %a0 : {t}
      %r = mlc.reduce {kind} %n {{axes = array<i64: 1, 2, 3>, keepdims = false}} : {t} -> {o}
      return %r : {o}"""
    check(tmp_path, body, [t], [o], [(draw(extents),)], 1e-5)


@pytest.mark.parametrize("shape", ["5x3", "5x16", "4x100", "?x37", "2x5x257"])
def test_exponentials_wait_in_the_destination(tmp_path: Path, shape: str) -> None:
    """Softmax stores them; a second reader at other points and a second result do not."""
    t, axis = f"tensor<{shape}xf32>", shape.count("x")
    body = f"""
      %s = mlc.softmax %a0 {{axis = {axis} : i64, log = false}} : {t}
      %l = mlc.softmax %a0 {{axis = {axis} : i64, log = true}} : {t}
      %w = mlc.softmax %a0 {{axis = 0 : i64, log = false}} : {t}
      return %s, %l, %w : {t}, {t}, {t}"""
    data = draw([9 if d == "?" else int(d) for d in shape.split("x")]) * 5
    data[0, ..., -1] = -np.inf
    check(tmp_path, body, [t], [t, t, t], [(data,)], 5e-6)


@pytest.mark.parametrize("kind", ["sum", "max", "prod"])
@pytest.mark.parametrize("extents", ["100x300", "37x1000", "3x64x130", "?x512", "16x16", "20x5"])
def test_columns(tmp_path: Path, kind: str, extents: str) -> None:
    """Several registers of columns at a time, and what is left of them."""
    sizes = extents.split("x")
    kept = [*sizes[:-2], sizes[-1]]
    t, o = f"tensor<{extents}xf32>", f"tensor<{'x'.join(kept)}xf32>"
    body = f"""
      %r = mlc.reduce {kind} %a0 {{axes = array<i64: {len(sizes) - 2}>, keepdims = false}} : {t} -> {o}
      %n = mlc.unary neg %r : {o}
      return %n : {o}"""
    runs = [(draw([n if d == "?" else int(d) for d in sizes]),) for n in ((1, 40) if "?" in sizes else (0,))]
    check(tmp_path, body, [t], [o], runs, 1e-5)
