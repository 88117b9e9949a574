"""Attention of one row of each head, whose keys and values are read where they lie, against softmax(q k) v in float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models.processors import skip_unless_it_runs
from test_attention import _reference, compiled, draw, write_attention
from test_templates import check

CPUS = ["x86-64", "x86-64-v3", "x86-64-v4"]
# Keys in whole blocks, in part of one and of a vector; heads in whole vectors, in part of one, and wider than a tile.
SIZES = [(64, 64, 64), (17, 64, 40), (131, 80, 72), (1000, 3, 130), (333, 24, 200), (19, 128, 128)]


def _close(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=4e-6)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("keys, depth, width", SIZES)
def test_known_keys(tmp_path: Path, keys: int, depth: int, width: int, cpu: str) -> None:
    skip_unless_it_runs(cpu)
    q, k, v = (2, 3, 1, depth), (2, 3, keys, depth), (2, 3, keys, width)
    model = compiled(write_attention(tmp_path, q, k, v), cpu=cpu)
    a, b, c = draw(*q), draw(*k, seed=1), draw(*v, seed=2)
    _close(model(a, b, c)[0], _reference(a, b, c, None, False, 0))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("heads, groups", [(6, 6), (8, 2)], ids=["own keys", "shared keys"])
def test_keys_that_only_a_run_counts(tmp_path: Path, heads: int, groups: int, cpu: str) -> None:
    """And rows: one goes another way than several, of which a last one may be left."""
    skip_unless_it_runs(cpu)
    q, k = ("?", heads, "?", 40), ("?", groups, "?", 40)
    model = compiled(write_attention(tmp_path, q, k, k), cpu=cpu)
    for batch, rows, keys in [(1, 1, 1), (2, 1, 64), (1, 1, 77), (3, 1, 200), (1, 2, 77), (1, 769, 30)]:
        a, b = draw(batch, heads, rows, 40), draw(batch, groups, keys, 40, seed=1)
        c = draw(batch, groups, keys, 40, seed=2)
        _close(model(a, b, c)[0], _reference(a, b, c, None, False, 0))


@pytest.mark.parametrize("dtype", ["i1", "f32"])
def test_masks(tmp_path: Path, dtype: str) -> None:
    """That hide single keys, whole blocks of them, all of them; another one for each head of a group."""
    keys, shape = 300, (1, 4, 1, 300)
    rng = np.random.default_rng(3)
    seen = rng.random(shape) < 0.5
    seen[0, 0, :, 64:256] = False
    seen[0, 1, :, :290] = False
    seen[0, 2] = False
    mask = seen if dtype == "i1" else np.where(seen, rng.standard_normal(shape), -np.inf).astype(np.float32)
    q, k = (1, 4, 1, 24), (1, 2, keys, 24)
    source = write_attention(tmp_path, q, k, k, mask=f"tensor<1x4x1x{keys}x{dtype}>")
    a, b, c = draw(*q), draw(*k, seed=1), draw(*k, seed=2)
    [got] = compiled(source)(a, b, c, mask)
    rows = [0, 1, 3]
    _close(got[0, rows], _reference(a, b, c, mask, False, 0)[0, rows])
    assert dtype == "f32" or (got[0, 2] == 0).all()


@pytest.mark.parametrize("step", [3.0, 15.0, 17.0, 80.0, 120.0, -20.0])
def test_logits_that_grow(tmp_path: Path, step: float) -> None:
    """From key to key, beyond what exponentials of the first block leave room for."""
    q, k = (1, 2, 1, 16), (1, 2, 200, 16)
    a = np.zeros(q, np.float32)
    a[..., 0] = 4
    b, c = draw(*k, seed=1) * 0.1, draw(*k, seed=2)
    b[..., 0] = step * (np.arange(200) // 8)
    _close(compiled(write_attention(tmp_path, q, k, k))(a, b, c)[0], _reference(a, b, c, None, False, 0))


@pytest.mark.parametrize("keys", ["50", "?"])
@pytest.mark.parametrize("scaled", [False, True], ids=["as it is", "computed"])
def test_keys_that_are_adjacent(tmp_path: Path, keys: str, scaled: bool) -> None:
    """Keys as columns, for which the sum goes step by step; and ones that are computed where they are read."""
    q, t, v = "tensor<2x3x1x24xf32>", f"tensor<2x3x24x{keys}xf32>", f"tensor<2x3x{keys}x24xf32>"
    s = f"tensor<2x3x1x{keys}xf32>"
    factor = f"%k = mlc.binary mul %a1, %c : {t}, tensor<f32> -> {t}" if scaled else ""
    body = f"""
      %c = mlc.constant dense<4.000000e-01> : tensor<f32>
      {factor}
      %s = mlc.matmul %a0, {"%k" if scaled else "%a1"} : {q}, {t} -> {s}
      %p = mlc.softmax %s {{axis = 3 : i64, log = false}} : {s} -> {s}
      %r = mlc.matmul %p, %a2 : {s}, {v} -> {q}
      return %r : {q}"""
    counts = [50] if keys == "50" else [1, 16, 70, 150]
    runs = [(draw(2, 3, 1, 24), draw(2, 3, 24, n, seed=1), draw(2, 3, n, 24, seed=2)) for n in counts]
    model = check(tmp_path, body, [q, t, v], [q], runs)
    assert [kernel["template"] for kernel in model.metadata["kernels"]] == ["attention"]


def test_what_is_no_number(tmp_path: Path) -> None:
    """A key of NaN makes the row NaN; an infinite score hides the others."""
    q, k = (1, 3, 1, 16), (1, 3, 100, 16)
    a, b, c = np.abs(draw(*q)), draw(*k, seed=1), draw(*k, seed=2)
    b[0, 0, 70, 3], b[0, 1, 70, 3] = np.nan, np.finfo(np.float32).max
    [got] = compiled(write_attention(tmp_path, q, k, k))(a, b, c)
    assert np.isnan(got[0, 0]).all()
    np.testing.assert_allclose(got[0, 1, 0], c[0, 1, 70], rtol=1e-6)
    _close(got[0, 2], _reference(a, b, c, None, False, 0)[0, 2])
