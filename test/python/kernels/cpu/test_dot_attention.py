"""Attention of bf16 whose products are sums of pairs, against softmax(q k) v of the rounded operands in float64.

Errors are those of `narrow_attention`, the same on every number of threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.processors import skip_unless_it_runs
from narrow_attention import MASKS, SIZES, check, masks
from test_attention import Shape, compiled, draw, type_of, write_attention

import mlc

CPU = "znver4"


@pytest.fixture(autouse=True)
def runs() -> None:
    skip_unless_it_runs(CPU)


def _compiled(path: Path, q: Shape, k: Shape, v: Shape, template: str = "dot_attention", **options: Any) -> mlc.Model:
    return compiled(write_attention(path, q, k, v, **options), template, precision="bf16", cpu=CPU)


@pytest.mark.parametrize("rows, keys, depth, width, causal", SIZES)
def test_sizes(tmp_path: Path, rows: int, keys: int, depth: int, width: int, causal: bool) -> None:
    shapes = (2, 3, rows, depth), (2, 3, keys, depth), (2, 3, keys, width)
    q, k, v = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
    [got] = _compiled(tmp_path, *shapes, causal=causal)(q, k, v)
    check(got, q, k, v, causal=causal)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("heads, groups", [(4, 4), (8, 2)], ids=["own keys", "shared keys"])
def test_run_time_sizes(tmp_path: Path, heads: int, groups: int, causal: bool) -> None:
    """A single row of each head reads keys and values as they are."""
    model = _compiled(tmp_path, ("?", heads, "?", 24), ("?", groups, "?", 24), ("?", groups, "?", 40), causal=causal)
    for batch, rows, keys in ((1, 1, 1), (2, 6, 16), (1, 13, 64), (2, 64, 13), (1, 200, 129), (3, 1, 270), (1, 7, 65)):
        q = draw(batch, heads, rows, 24)
        k, v = draw(batch, groups, keys, 24, seed=1), draw(batch, groups, keys, 40, seed=2)
        [got] = model(q, k, v)
        check(got, q, k, v, causal=causal)


@pytest.mark.parametrize("keys", [20, "?"])
def test_single_rows(tmp_path: Path, keys: int | str) -> None:
    """Known ones have no products of pairs; what is narrow is widened as it is read."""
    q, k = (2, 3, 1, 72), (2, 3, keys, 72)
    model = _compiled(tmp_path, q, k, k, template="attention")
    for count in [20] if keys == 20 else [1, 64, 300]:
        a, b, c = draw(*q), draw(2, 3, count, 72, seed=1), draw(2, 3, count, 72, seed=2)
        check(model(a, b, c)[0], a, b, c)


@pytest.mark.parametrize("dtype, shape", MASKS, ids=str)
def test_masks(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    """Padding, windows, hidden rows (zeros), whole hidden blocks at either end; with soft cap and grouped heads."""
    shapes = (2, 4, 70, 32), (2, 2, 150, 32), (2, 2, 150, 32)
    model = _compiled(tmp_path, *shapes, mask=type_of(shape, dtype), softcap=3.0)
    q, k, v = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
    for mask in masks(dtype, shape):
        [got] = model(q, k, v, mask)
        check(got, q, k, v, mask=mask, softcap=3.0)


def test_large_scores_and_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits in the hundreds, growing from block to block; bits do not depend on threads."""
    shapes = (1, 2, 100, 64), (1, 2, 300, 64), (1, 2, 300, 64)
    model = _compiled(tmp_path, *shapes, causal=True)
    q, k, v = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
    q, k = 20 * q, 20 * k * np.linspace(0.1, 3, 300, dtype=np.float32)[:, None]
    [got] = model(q, k, v)
    check(got, q, k, v, precise=2e-3, causal=True)
    for threads in (1, 2, 3):
        monkeypatch.setenv("MLC_NUM_THREADS", str(threads))
        [again] = mlc.load(tmp_path / "attention.so")(q, k, v)
        np.testing.assert_array_equal(again, got)


@pytest.mark.parametrize("keys", [51, 64])
def test_what_is_no_number(tmp_path: Path, keys: int) -> None:
    """Rows with NaN are NaN, others are not; nothing behind the last key counts, whose pair may be half empty."""
    shapes = (1, 1, 40, 17), (1, 1, keys, 17), (1, 1, keys, 17)
    model = _compiled(tmp_path, *shapes)
    q, k, v = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
    q[0, 0, 7, 3] = np.nan
    [got] = model(q, k, v)
    assert np.isnan(got[0, 0, 7]).all()
    rest = np.arange(40) != 7
    check(got[:, :, rest], q[:, :, rest], k, v)


@pytest.mark.parametrize("depth", [9, 80])
def test_keys_across_memory(tmp_path: Path, depth: int) -> None:
    """Keys that lie along the keys, and an epilogue."""
    q, k, v, o, s = (f"tensor<{e}xf32>" for e in (f"2x40x{depth}", f"2x{depth}x90", "2x90x48", "2x40x48", "2x40x90"))
    body = f"""
      %s = mlc.matmul %a0, %a1 : {q}, {k} -> {s}
      %p = mlc.softmax %s {{axis = 2 : i64, log = false}} : {s} -> {s}
      %y = mlc.matmul %p, %a2 : {s}, {v} -> {o}
      %r = mlc.unary neg %y : {o} -> {o}
      return %r : {o}"""
    declared = ", ".join(
        f'%a{i}: {t} {{mlc.name = "a{i}", mlc.dtype = "float32", mlc.dims = ["", "", ""]}}'
        for i, t in enumerate((q, k, v))
    )
    source = tmp_path / "operations.mlir"
    named = f'({o} {{mlc.name = "r", mlc.dtype = "float32"}})'
    source.write_text(f"module {{ func.func @forward({declared}) -> {named} {{\n{body}\n}} }}")
    model = compiled(source, "dot_attention", precision="bf16", cpu=CPU)
    a, b, c = draw(2, 40, depth) / np.float32(4), draw(2, depth, 90, seed=1), draw(2, 90, 48, seed=2)
    [got] = model(a, b, c)
    check(-got[None], a[None], np.swapaxes(b, 1, 2)[None], c[None], scale=1)
