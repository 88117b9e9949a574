"""Attention in one kernel against softmax(q k) v in float64: masks, grouped heads, odd and run-time sizes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from models.processors import runs_here
from test_templates import check

import mlc

Shape = tuple[int | str, ...]


def type_of(extents: Shape, dtype: str = "f32") -> str:
    return f"tensor<{''.join(f'{e}x' for e in extents)}{dtype}>"


def weights(
    q: np.ndarray, k: np.ndarray, mask: np.ndarray | None = None, causal: bool = False, softcap: float = 0
) -> np.ndarray:
    """The softmax of the scores of queries, which are scaled, and keys, in float64."""
    q, k = (x.astype(np.float64) for x in (q, k))
    scores = q @ np.swapaxes(np.repeat(k, q.shape[1] // k.shape[1], axis=1), 2, 3)
    if softcap:
        scores = np.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    if causal:
        rows, columns = scores.shape[2:]
        scores = np.where(np.arange(columns) <= np.arange(rows)[:, None], scores, -np.inf)
    top = scores.max(axis=3, keepdims=True)
    powers = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = powers.sum(axis=3, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def _reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, causal: bool, softcap: float
) -> np.ndarray:
    groups = q.shape[1] // k.shape[1]
    scaled = q.astype(np.float64) / np.sqrt(q.shape[3])
    return weights(scaled, k, mask, causal, softcap) @ np.repeat(v.astype(np.float64), groups, axis=1)


def write_attention(
    path: Path, q: Shape, k: Shape, v: Shape, mask: str | None = None, causal: bool = False, softcap: float = 0
) -> Path:
    """A file with a module of one `mlc.attention`."""
    result: Shape = (*q[:3], v[3])
    types = [type_of(q), type_of(k), type_of(v), *([mask] if mask else [])]
    dims = ['"b", "", "s", ""', '"b", "", "t", ""', '"b", "", "t", ""', ", ".join(['""'] * (mask or "").count("x"))]
    arguments = ", ".join(
        f'%a{i}: {t} {{mlc.name = "a{i}", mlc.dtype = "{"bool" if t.endswith("i1>") else "float32"}", mlc.dims = [{d}]}}'
        for i, (t, d) in enumerate(zip(types, dims, strict=False))
    )
    attributes = [*(["causal = true"] if causal else []), *([f"softcap = {softcap} : f64"] if softcap else [])]
    options = f" {{{', '.join(attributes)}}}" if attributes else ""
    masked = f" mask(%a3 : {mask})" if mask else ""
    text = f"""
module {{ func.func @forward({arguments}) -> ({type_of(result)} {{mlc.name = "r", mlc.dtype = "float32"}}) {{
  %r = mlc.attention %a0, %a1, %a2{masked}{options} : {", ".join(types[:3])} -> {type_of(result)}
  return %r : {type_of(result)}
}} }}"""
    source = path / "attention.mlir"
    source.write_text(text)
    return source


def compiled(source: Path, template: str = "attention", **options: Any) -> mlc.Model:
    """The model of a module with one attention; checks that it became one kernel of `template`."""
    scheduled = source.with_name("scheduled.mlir")
    mlc.compile(source, output=scheduled, from_phase="import", emit="schedule", **options)
    assert scheduled.read_text().count(f'template = "{template}"') == 1
    return mlc.compile(source, output=source.with_suffix(".so"), from_phase="import", cache=False, **options)


def _compile(path: Path, q: Shape, k: Shape, v: Shape, **options: Any) -> mlc.Model:
    return compiled(write_attention(path, q, k, v, **options))


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(
    "rows, keys, depth, width",
    [(32, 64, 32, 32), (7, 16, 8, 5), (197, 197, 64, 64), (64, 333, 80, 72), (250, 100, 16, 33), (5, 1000, 3, 130)],
)
def test_sizes(tmp_path: Path, rows: int, keys: int, depth: int, width: int, causal: bool) -> None:
    model = _compile(tmp_path, (2, 3, rows, depth), (2, 3, keys, depth), (2, 3, keys, width), causal=causal)
    q, k, v = draw(2, 3, rows, depth), draw(2, 3, keys, depth, seed=1), draw(2, 3, keys, width, seed=2)
    [got] = model(q, k, v)
    np.testing.assert_allclose(got, _reference(q, k, v, None, causal, 0), rtol=2e-5, atol=4e-6)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_run_time_sizes(tmp_path: Path, causal: bool) -> None:
    """Also grouped heads, and few rows and keys."""
    model = _compile(tmp_path, ("?", 4, "?", 24), ("?", 2, "?", 24), ("?", 2, "?", 40), causal=causal)
    for batch, rows, keys in ((1, 1, 1), (2, 6, 16), (1, 13, 64), (2, 64, 13), (1, 200, 129), (3, 1, 70)):
        q, k, v = draw(batch, 4, rows, 24), draw(batch, 2, keys, 24, seed=1), draw(batch, 2, keys, 40, seed=2)
        [got] = model(q, k, v)
        np.testing.assert_allclose(got, _reference(q, k, v, None, causal, 0), rtol=2e-5, atol=4e-6)


@pytest.mark.parametrize("shape", [(70, 150), (2, 1, 70, 150), (2, 1, 1, 150), (1, 4, 70, 150)], ids=str)
@pytest.mark.parametrize("dtype", ["i1", "f32"])
def test_masks(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    """Padding, windows, hidden rows (zeros), whole hidden blocks at either end; with soft cap and grouped heads."""
    model = _compile(
        tmp_path, (2, 4, 70, 32), (2, 2, 150, 32), (2, 2, 150, 32), mask=type_of(shape, dtype), softcap=3.0
    )
    q, k, v = draw(2, 4, 70, 32), draw(2, 2, 150, 32, seed=1), draw(2, 2, 150, 32, seed=2)
    rows, keys = np.arange(70)[:, None], np.arange(150)
    patterns = [
        keys < 60 + 0 * rows,
        keys >= 100 + 0 * rows,
        np.abs(keys - 2 * rows) < 9,
        (keys + rows) % 7 != 0,
        (rows % 10 != 3) & (keys > rows),
    ]
    for pattern in patterns:
        visible = np.broadcast_to(pattern[: shape[-2]] if len(shape) > 1 else pattern, shape)
        low = [visible] if dtype == "i1" else [np.where(visible, 0.25, x) for x in (-np.inf, -3.4028235e38, -30.0)]
        for mask in low:
            mask = np.ascontiguousarray(mask, dtype=np.bool_ if dtype == "i1" else np.float32)
            [got] = model(q, k, v, mask)
            np.testing.assert_allclose(got, _reference(q, k, v, mask, False, 3.0), rtol=2e-5, atol=4e-6)


@pytest.mark.parametrize("rows", [1, 70])
def test_hidden_keys_in_front_are_not_read(tmp_path: Path, rows: int) -> None:
    """What lies before a window shows as little as what lies behind it, for one row and for many; a row that sees
    nothing takes all keys."""
    shape = (1, 4, rows, 300)
    model = _compile(tmp_path, (1, 4, rows, 32), (1, 2, 300, 32), (1, 2, 300, 32), mask=type_of(shape, "f32"))
    q, k, v = draw(1, 4, rows, 32), draw(1, 2, 300, 32, seed=1), draw(1, 2, 300, 32, seed=2)
    window = (np.arange(300) >= 200) & (np.arange(300) < 220 + np.arange(rows)[:, None] // 3)
    mask = np.ascontiguousarray(np.broadcast_to(np.where(window, 0.0, -3.4e38), shape), np.float32)
    bad = v.copy()
    bad[:, :, :140] = np.nan
    bad[:, :, 280:] = np.inf
    [got] = model(q, k, bad, mask)
    np.testing.assert_allclose(got, _reference(q, k, v, mask, False, 0), rtol=2e-5, atol=4e-6)
    mask[0, :, -1] = -3.4e38
    [got] = model(q, k, v, mask)
    np.testing.assert_allclose(got, _reference(q, k, v, mask, False, 0), rtol=2e-5, atol=4e-6)


def write_sink(path: Path, rows: int | str, keys: int | str) -> Path:
    """Attention of heads in groups whose softmax has a column more, as exporters of PyTorch write it."""
    q, k = f"tensor<1x4x{rows}x32xf32>", f"tensor<1x4x{keys}x32xf32>"
    s, m, c = f"tensor<1x4x{rows}x{keys}xf32>", f"tensor<{rows}x{keys}xf32>", "tensor<1x4x1x1xf32>"
    wide, one = f"tensor<1x4x{rows}x{'?' if keys == '?' else int(keys) + 1}xf32>", f"tensor<1x4x{rows}x1xf32>"
    dims = ['"", "", "s", ""', '"", "", "t", ""', '"", "", "t", ""', '"s", "t"', '"", "", "", ""']
    arguments = ", ".join(
        f'%a{i}: {t} {{mlc.name = "a{i}", mlc.dtype = "float32", mlc.dims = [{d}]}}'
        for i, (t, d) in enumerate(zip((q, k, k, m, c), dims, strict=True))
    )
    known = rows != "?"
    source = path / "sink.mlir"
    source.write_text(f"""
module {{ func.func @forward({arguments}) -> ({q} {{mlc.name = "r", mlc.dtype = "float32"}}) {{
  %i2 = arith.constant 2 : index
  {"" if known else f"%n = tensor.dim %a0, %i2 : {q}"}
  {"" if known else f"%t = tensor.dim %a1, %i2 : {k}"}
  %s = mlc.matmul %a0, %a1 {{transpose_rhs}} : {q}, {k} -> {s}
  %x = mlc.binary add %s, %a3 : {s}, {m} -> {s}
  %b = mlc.broadcast %a4 [1, 4, {rows if known else "%n"}, 1] : {c} -> {one}
  %c = mlc.concat %x, %b {{axis = 3 : i64}} : {s}, {one} -> {wide}
  %top = mlc.reduce max %c {{axes = array<i64: 3>, keepdims = true}} : {wide} -> {one}
  %l = mlc.binary sub %c, %top : {wide}, {one} -> {wide}
  %p = mlc.softmax %l {{axis = 3 : i64, log = false}} : {wide} -> {wide}
  %y = mlc.slice %p [0, 0, 0, 0] [1, 4, {rows if known else "%n"}, {keys if known else "%t"}] [1, 1, 1, 1] : {wide} -> {s}
  %r = mlc.matmul %y, %a2 : {s}, {k} -> {q}
  return %r : {q}
}} }}""")
    return source


@pytest.mark.parametrize("known", [True, False], ids=["known", "any"])
def test_sinks(tmp_path: Path, known: bool) -> None:
    """A logit that no key belongs to: small, large, larger than exponentials of the others can say, and without any."""
    model = compiled(write_sink(tmp_path, *((50, 150) if known else ("?", "?"))))
    for rows, keys in [(50, 150)] if known else [(50, 150), (1, 300), (13, 70), (130, 20)]:
        q, k, v = draw(1, 4, rows, 32) / 4, draw(1, 4, keys, 32, seed=1), draw(1, 4, keys, 32, seed=2)
        mask = np.where(np.arange(keys) <= np.arange(rows)[:, None] + keys - rows, 0, -np.inf).astype(np.float32)
        mask[rows // 2] = -np.inf  # only the sink is left
        for sink in ([0, 3, -8, 1], [200, 0, -200, 90], [-np.inf, -np.inf, 0, 0]):
            extra = np.array(sink, np.float32).reshape(1, 4, 1, 1)
            if sink[0] == -np.inf:
                mask[rows // 2] = 0  # a row of nothing at all is no number
            scores = np.concatenate(
                [q.astype(np.float64) @ k.swapaxes(2, 3) + mask, np.broadcast_to(extra, (1, 4, rows, 1))], 3
            )
            powers = np.exp(scores - scores.max(3, keepdims=True))
            expected = (powers / powers.sum(3, keepdims=True))[..., :-1] @ v
            [got] = model(q, k, v, mask, extra)
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=4e-6)


def declared(types: Sequence[str], name: str = "float32") -> str:
    """The arguments `%a0`, `%a1`, … of a function, of fixed extents."""
    dims = [", ".join(['""'] * (t.count("x"))) for t in types]
    pairs = enumerate(zip(types, dims, strict=True))
    return ", ".join(f'%a{i}: {t} {{mlc.name = "a{i}", mlc.dtype = "{name}", mlc.dims = [{d}]}}' for i, (t, d) in pairs)


def write_sum(path: Path, divisor: str) -> Path:
    """Attention of plain operations, of which `divisor` makes `%v` of the sum `%u` and the largest logit `%t`."""
    q, k, s, r = (f"tensor<1x2x{e}xf32>" for e in ("50x16", "300x16", "50x300", "50x1"))
    source = path / "sum.mlir"
    source.write_text(f"""
module {{ func.func @forward({declared((q, k, k))}) -> ({q} {{mlc.name = "r", mlc.dtype = "float32"}}) {{
  %one = mlc.constant dense<1.0> : tensor<f32>
  %s = mlc.matmul %a0, %a1 {{transpose_rhs}} : {q}, {k} -> {s}
  %t = mlc.reduce max %s {{axes = array<i64: 3>, keepdims = true}} : {s} -> {r}
  %d = mlc.binary sub %s, %t : {s}, {r} -> {s}
  %p = mlc.unary exp %d : {s}
  %u = mlc.reduce sum %p {{axes = array<i64: 3>, keepdims = true}} : {s} -> {r}
  {divisor.format(r=r)}
  %y = mlc.binary div %p, %v : {s}, {r} -> {s}
  %r = mlc.matmul %y, %a2 : {s}, {k} -> {q}
  return %r : {q}
}} }}""")
    return source


SUMS = {
    "one more": ("%v = mlc.binary add %u, %one : {r}, tensor<f32> -> {r}", False),
    "softmax1": ("%n = mlc.unary neg %t : {r} %e = mlc.unary exp %n : {r} %v = mlc.binary add %u, %e : {r}", True),
    "two sinks": (
        "%n = mlc.unary neg %t : {r} %e = mlc.unary exp %n : {r} %w = mlc.binary add %u, %one : {r}, tensor<f32> -> {r}"
        " %v = mlc.binary add %w, %e : {r}",
        False,
    ),
}


@pytest.mark.parametrize("kind", SUMS)
def test_sums_that_more_is_added_to(tmp_path: Path, kind: str) -> None:
    """A number that is added to the sum is relative to the largest logit, which the template does not know before the
    end: those are three kernels. `exp(-top)` is 1 relative to nothing, and taken. Logits grow from block to block, by
    less than what moves a row's shift."""
    text, is_one_kernel = SUMS[kind]
    source = write_sum(tmp_path, text)
    model = mlc.compile(source, output=tmp_path / "sum.so", from_phase="import", cache=False)
    assert ("attention" in [kernel["template"] for kernel in model.metadata["kernels"]]) == is_one_kernel
    q, k, v = draw(1, 2, 50, 16) / 4, draw(1, 2, 300, 16, seed=1), draw(1, 2, 300, 16, seed=2)
    q[..., 0], k[..., 0] = 1, 3 * (np.arange(300) // 64) - 12
    scores = q.astype(np.float64) @ k.swapaxes(2, 3)
    top = scores.max(3, keepdims=True)
    powers = np.exp(scores - top)
    more = {"one more": 1, "softmax1": np.exp(-top), "two sinks": 1 + np.exp(-top)}[kind]
    expected = powers / (powers.sum(3, keepdims=True) + more) @ v
    np.testing.assert_allclose(model(q, k, v)[0], expected, rtol=2e-5, atol=4e-6)


def test_large_scores_and_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits in the hundreds, growing from block to block, need the running maximum; bits do not depend on threads."""
    model = _compile(tmp_path, (1, 2, 100, 64), (1, 2, 300, 64), (1, 2, 300, 64), causal=True)
    q, k, v = 20 * draw(1, 2, 100, 64), 20 * draw(1, 2, 300, 64, seed=1), draw(1, 2, 300, 64, seed=2)
    k *= np.linspace(0.1, 3, 300, dtype=np.float32)[:, None]
    [got] = model(q, k, v)
    np.testing.assert_allclose(got, _reference(q, k, v, None, True, 0), rtol=2e-3, atol=2e-4)
    for threads in (1, 2, 3):
        monkeypatch.setenv("MLC_NUM_THREADS", str(threads))
        [again] = mlc.load(tmp_path / "attention.so")(q, k, v)
        np.testing.assert_array_equal(again, got)


@pytest.mark.parametrize("step", [3.0, 15.0, 17.0, 80.0, 120.0, -20.0])
def test_logits_that_grow_by_steps(tmp_path: Path, step: float) -> None:
    """Every block of 32 keys has logits larger by `step`: a row's shift stays for small ones, moves for large ones."""
    model = _compile(tmp_path, (1, 2, 50, 16), (1, 2, 300, 16), (1, 2, 300, 16))
    q, k, v = draw(1, 2, 50, 16), draw(1, 2, 300, 16, seed=1), draw(1, 2, 300, 16, seed=2)
    q[..., 0], k[..., 0] = 1, 4 * step * (np.arange(300) // 32)  # scores are divided by 4
    q[0, :, ::7, 0] = 0.25  # in some rows of a tile only
    [got] = model(q, k, v)
    np.testing.assert_allclose(got, _reference(q, k, v, None, False, 0), rtol=2e-3, atol=2e-4)


def test_rows_do_not_depend_on_each_other(tmp_path: Path) -> None:
    """A row has the same bits whatever the other rows of its tile are, whose shifts may move."""
    model = _compile(tmp_path, (1, 1, 24, 16), (1, 1, 300, 16), (1, 1, 300, 16))
    q, k, v = draw(1, 1, 24, 16), draw(1, 1, 300, 16, seed=1), draw(1, 1, 300, 16, seed=2)
    k[..., 0] = np.arange(300) // 32
    q[..., 0] = 1
    [first] = model(q, k, v)
    q[0, 0, 1::2, 0] = 400  # every second row moves with each block
    [second] = model(q, k, v)
    np.testing.assert_array_equal(first[0, 0, ::2], second[0, 0, ::2])
    assert not np.array_equal(first[0, 0, 1::2], second[0, 0, 1::2])


def test_what_is_no_number(tmp_path: Path) -> None:
    """Rows with NaN are NaN, others are not."""
    model = _compile(tmp_path, (1, 1, 40, 16), (1, 1, 90, 16), (1, 1, 90, 16))
    q, k, v = draw(1, 1, 40, 16), draw(1, 1, 90, 16, seed=1), draw(1, 1, 90, 16, seed=2)
    q[0, 0, 7, 3] = np.nan
    [got] = model(q, k, v)
    assert np.isnan(got[0, 0, 7]).all()
    rest = np.arange(40) != 7
    np.testing.assert_allclose(got[0, 0, rest], _reference(q, k, v, None, False, 0)[0, 0, rest], rtol=2e-5, atol=4e-6)


def test_products_and_softmax(tmp_path: Path) -> None:
    """The same from plain operations: scaled operands, a mask with rows of -inf (NaN), an epilogue, other layouts."""
    q, m, o = "tensor<1x50x2x24xf32>", "tensor<50x50xf32>", "tensor<1x2x50x24xf32>"
    t, s = "tensor<1x2x24x50xf32>", "tensor<1x2x50x50xf32>"
    body = f"""
      %c = mlc.constant dense<4.000000e-01> : tensor<f32>
      %q = mlc.transpose %a0 {{permutation = array<i64: 0, 2, 1, 3>}} : {q} -> {o}
      %k = mlc.transpose %a1 {{permutation = array<i64: 0, 2, 3, 1>}} : {q} -> {t}
      %v = mlc.transpose %a2 {{permutation = array<i64: 0, 2, 1, 3>}} : {q} -> {o}
      %qs = mlc.binary mul %q, %c : {o}, tensor<f32> -> {o}
      %ks = mlc.binary mul %k, %c : {t}, tensor<f32> -> {t}
      %s = mlc.matmul %qs, %ks : {o}, {t} -> {s}
      %x = mlc.binary add %s, %a3 : {s}, {m} -> {s}
      %p = mlc.softmax %x {{axis = 3 : i64, log = false}} : {s} -> {s}
      %y = mlc.matmul %p, %v : {s}, {o} -> {o}
      %r = mlc.unary neg %y : {o} -> {o}
      return %r : {o}"""
    mask = np.where(np.arange(50) <= np.arange(50)[:, None], 0, -np.inf).astype(np.float32)
    mask[[0, 20, 49]] = -np.inf
    runs = [(draw(1, 50, 2, 24), draw(1, 50, 2, 24, seed=1), draw(1, 50, 2, 24, seed=2), mask)]
    check(tmp_path, body, [q, q, q, m], [o], runs)
    mlc.compile(tmp_path / "kernel.mlir", output=tmp_path / "scheduled.mlir", from_phase="import", emit="schedule")
    assert (tmp_path / "scheduled.mlir").read_text().count("mlc.launch") == 1


@pytest.mark.parametrize(("heads", "groups", "together"), [(8, 2, 2), (12, 1, 3), (16, 4, 4), (14, 2, 1)])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_heads_that_share_keys(tmp_path: Path, heads: int, groups: int, together: int, causal: bool) -> None:
    """Several heads of a work item, for few rows and for several blocks of them; `test_masks` has some with masks."""
    q, k = ("?", heads, "?", 32), ("?", groups, "?", 32)
    model = compiled(write_attention(tmp_path, q, k, k, causal=causal), report=str(tmp_path / "report.json"))
    assert _heads_together(tmp_path / "report.json") == together
    for batch, rows, keys in [(1, 1, 40), (2, 1, 131), (1, 3, 64), (1, 75, 75), (2, 300, 260)]:
        a, b, c = (
            draw(batch, heads, rows, 32),
            draw(batch, groups, keys, 32, seed=1),
            draw(batch, groups, keys, 32, seed=2),
        )
        [got] = model(a, b, c)
        np.testing.assert_allclose(got, _reference(a, b, c, None, causal, 0), rtol=0, atol=3e-6)


def _heads_together(report: Path) -> int:
    [kernel] = [k for k in json.loads(report.read_text())["kernels"] if k["template"] == "attention"]
    return int(kernel["schedule"].get("together", 1))


def test_known_heads_that_share_keys(tmp_path: Path) -> None:
    q, k = (1, 16, 40, 64), (1, 4, 200, 64)
    model = compiled(write_attention(tmp_path, q, k, k), report=str(tmp_path / "report.json"))
    assert _heads_together(tmp_path / "report.json") == 4
    a, b, c = draw(*q), draw(*k, seed=1), draw(*k, seed=2)
    np.testing.assert_allclose(model(a, b, c)[0], _reference(a, b, c, None, False, 0), rtol=0, atol=3e-6)


@pytest.mark.parametrize("rows", [1, 30])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_floats_of_sixteen_bits(tmp_path: Path, dtype: str, rows: int) -> None:
    """Products and softmax of half precision are one kernel, too, which rounds scores and results, as the model says."""
    name, element = ("float16", np.dtype(np.float16)) if dtype == "f16" else ("bfloat16", np.dtype(ml_dtypes.bfloat16))
    q, k, s = (f"tensor<{e}x{dtype}>" for e in (f"2x3x{rows}x40", "2x3x70x40", f"2x3x{rows}x70"))
    source = tmp_path / "operations.mlir"
    source.write_text(f"""
module {{ func.func @forward({declared((q, k, k), name)}) -> ({q} {{mlc.name = "r", mlc.dtype = "{name}"}}) {{
  %s = mlc.matmul %a0, %a1 {{transpose_rhs}} : {q}, {k} -> {s}
  %p = mlc.softmax %s {{axis = 3 : i64, log = false}} : {s} -> {s}
  %r = mlc.matmul %p, %a2 : {s}, {k} -> {q}
  return %r : {q}
}} }}""")
    model = compiled(source, cpu="x86-64-v3" if runs_here("x86-64-v3") else "native")
    a, b, c = (x.astype(element) for x in (draw(2, 3, rows, 40) / 8, draw(2, 3, 70, 40, seed=1), draw(2, 3, 70, 40)))
    [got] = model(a, b, c)
    shares, values = weights(a, b), c.astype(np.float64)
    unit = 2.0**-11 if dtype == "f16" else 2.0**-8  # half a step: of a score, of a probability, of the result
    allowed = unit * (4 * shares @ np.abs(values) + np.abs(shares @ values))
    assert (np.abs(got.astype(np.float64) - shares @ values) <= allowed).all()
