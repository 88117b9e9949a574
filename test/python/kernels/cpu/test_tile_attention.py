"""Attention of bf16 on matrix tiles, which are emulated, against softmax(q k) v of the rounded operands in float64."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from narrow_attention import MASKS, SIZES, check, masks
from test_attention import Shape, compiled, draw, type_of, write_attention
from tiles.emulated import Tiles

import mlc


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a pool block all signals, also the one by which instructions are emulated."""
    monkeypatch.setenv("MLC_NUM_THREADS", "1")


def _compiled(tiles: Tiles, path: Path, q: Shape, k: Shape, v: Shape, opt_level: int = 1, **options: Any) -> mlc.Model:
    """The model of one attention. LLVM's full optimisation takes six times as long, without bf16 on vectors."""
    source = write_attention(path, q, k, v, **options)
    return compiled(source, "tile_attention", precision="bf16", cpu=tiles.cpu, opt_level=opt_level)


@pytest.mark.parametrize("rows, keys, depth, width, causal", SIZES)
def test_sizes(tiles: Tiles, tmp_path: Path, rows: int, keys: int, depth: int, width: int, causal: bool) -> None:
    shapes = (2, 3, rows, depth), (2, 3, keys, depth), (2, 3, keys, width)
    level = 3 if rows in (197, 250) else 1  # these as users have them
    model = _compiled(tiles, tmp_path, *shapes, opt_level=level, causal=causal)
    q, k, v = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
    [got] = model(q, k, v)
    check(got, q, k, v, causal=causal)
    tall, units = -(-rows // 16), -(-keys // 32)
    most = 6 * tall * units * (2 * -(-depth // 32) + -(-width // 16))
    products = tiles.count("tdpbf16ps")
    assert 0 < products <= most and (causal or products == most)


def test_a_mask_leaves_out_blocks(tiles: Tiles, tmp_path: Path) -> None:
    """Of four blocks of 128 keys the first 128 rows, in tiles of 32, see one, the next ones two, and so on."""
    shape = (1, 1, 512, 32)
    model = _compiled(tiles, tmp_path, shape, shape, shape, causal=True)
    q, k, v = (draw(*shape, seed=seed) for seed in range(3))
    [got] = model(q, k, v)
    check(got, q, k, v, causal=True)
    assert tiles.count("tdpbf16ps") == 4 * (1 + 2 + 3 + 4) * 2 * 4 * (2 + 2)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_run_time_sizes(tiles: Tiles, tmp_path: Path, causal: bool) -> None:
    """Also grouped heads, and few rows and keys."""
    model = _compiled(tiles, tmp_path, ("?", 4, "?", 24), ("?", 2, "?", 24), ("?", 2, "?", 40), causal=causal)
    for batch, rows, keys in (
        (1, 1, 1),
        (2, 6, 16),
        (1, 13, 64),
        (2, 64, 13),
        (1, 200, 129),
        (3, 1, 270),
        (1, 18, 128),
    ):
        q, k, v = draw(batch, 4, rows, 24), draw(batch, 2, keys, 24, seed=1), draw(batch, 2, keys, 40, seed=2)
        [got] = model(q, k, v)
        check(got, q, k, v, causal=causal)
    assert tiles.count("tdpbf16ps") > 0


@pytest.mark.parametrize("dtype, shape", MASKS, ids=str)
def test_masks(tiles: Tiles, tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    """Padding, windows, hidden rows (zeros), whole hidden blocks at either end; with soft cap and grouped heads."""
    shapes = (2, 4, 70, 32), (2, 2, 150, 32), (2, 2, 150, 32)
    model = _compiled(tiles, tmp_path, *shapes, mask=type_of(shape, dtype), softcap=3.0)
    q, k, v = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
    for mask in masks(dtype, shape):
        [got] = model(q, k, v, mask)
        check(got, q, k, v, mask=mask, softcap=3.0)


def test_large_scores(tiles: Tiles, tmp_path: Path) -> None:
    """Logits in the hundreds, growing from block to block, need the running maximum."""
    shapes = (1, 2, 100, 64), (1, 2, 300, 64), (1, 2, 300, 64)
    model = _compiled(tiles, tmp_path, *shapes, causal=True)
    q, k, v = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
    q, k = 20 * q, 20 * k * np.linspace(0.1, 3, 300, dtype=np.float32)[:, None]
    [got] = model(q, k, v)
    check(got, q, k, v, precise=2e-3, causal=True)


def test_what_is_no_number(tiles: Tiles, tmp_path: Path) -> None:
    """Rows with NaN are NaN, others are not."""
    shapes = (1, 1, 40, 17), (1, 1, 50, 17), (1, 1, 50, 17)
    model = _compiled(tiles, tmp_path, *shapes)
    q, k, v = (draw(*shape, seed=seed) for seed, shape in enumerate(shapes))
    q[0, 0, 7, 3] = np.nan
    [got] = model(q, k, v)
    assert np.isnan(got[0, 0, 7]).all()
    rest = np.arange(40) != 7
    check(got[:, :, rest], q[:, :, rest], k, v)


def _of_operations(
    tiles: Tiles, path: Path, body: str, arguments: list[str], result: str, before: int = 0
) -> mlc.Model:
    """The model of operations with operands `%a0`, …; checks that they became one kernel, with `before` in front."""
    declared = ", ".join(
        f'%a{i}: {t} {{mlc.name = "a{i}", mlc.dtype = "float32", mlc.dims = [{", ".join([chr(34) * 2] * t.count("x"))}]}}'
        for i, t in enumerate(arguments)
    )
    named = f'({result} {{mlc.name = "r", mlc.dtype = "float32"}})'
    source = path / "operations.mlir"
    source.write_text(f"module {{ func.func @forward({declared}) -> {named} {{\n{body}\n}} }}")
    model = compiled(source, "tile_attention", precision="bf16", cpu=tiles.cpu)
    assert (path / "scheduled.mlir").read_text().count("mlc.launch") == 1 + before
    return model


@pytest.mark.parametrize("depth", [9, 80])
def test_keys_across_memory(tiles: Tiles, tmp_path: Path, depth: int) -> None:
    """Keys that lie along the keys, a mask with rows of -inf, which are NaN without a guard, and an epilogue."""
    q, k, v, m, o = f"2x40x{depth}", f"2x{depth}x90", "2x90x48", "40x90", "2x40x48"
    q, k, v, m, o, s = (f"tensor<{extents}xf32>" for extents in (q, k, v, m, o, "2x40x90"))
    body = f"""
      %s = mlc.matmul %a0, %a1 : {q}, {k} -> {s}
      %x = mlc.binary add %s, %a3 : {s}, {m} -> {s}
      %p = mlc.softmax %x {{axis = 2 : i64, log = false}} : {s} -> {s}
      %y = mlc.matmul %p, %a2 : {s}, {v} -> {o}
      %r = mlc.unary neg %y : {o} -> {o}
      return %r : {o}"""
    model = _of_operations(tiles, tmp_path, body, [q, k, v, m], o)
    a, b, c = draw(2, 40, depth) / np.float32(4), draw(2, depth, 90, seed=1), draw(2, 90, 48, seed=2)
    mask = np.where(np.arange(90) <= 2 * np.arange(40)[:, None], 0, -np.inf).astype(np.float32)
    mask[13] = -np.inf
    [got] = model(a, b, c, mask)
    assert np.isnan(got[:, 13]).all()
    rest = np.arange(40) != 13
    check(-got[None, :, rest], a[None, :, rest], np.swapaxes(b, 1, 2)[None], c[None], scale=1, mask=mask[rest])


def test_heads_beside_each_other(tiles: Tiles, tmp_path: Path) -> None:
    """Parts of one tensor, which is rounded once, with a second head of NaN: nothing of it gets into the first one."""
    x, part, split, heads = "1x50x138", "1x50x46", "1x50x2x23", "1x2x50x23"
    x, part, split, heads, s, t = (f"tensor<{e}xf32>" for e in (x, part, split, heads, "1x2x50x50", "1x2x23x50"))
    cuts = "".join(
        f"""
      %c{i} = mlc.slice %a0 [0, 0, {46 * i}] [1, 50, 46] [1, 1, 1] : {x} -> {part}
      %s{i} = mlc.reshape %c{i} [1, 50, 2, 23] : {part} -> {split}
      %h{i} = mlc.transpose %s{i} {{permutation = array<i64: {order}>}} : {split} -> {t if i == 1 else heads}"""
        for i, order in enumerate(("0, 2, 1, 3", "0, 2, 3, 1", "0, 2, 1, 3"))
    )
    body = f"""{cuts}
      %s = mlc.matmul %h0, %h1 : {heads}, {t} -> {s}
      %p = mlc.softmax %s {{axis = 3 : i64, log = false}} : {s} -> {s}
      %r = mlc.matmul %p, %h2 : {s}, {heads} -> {heads}
      return %r : {heads}"""
    model = _of_operations(tiles, tmp_path, body, [x], heads, before=1)
    values = draw(1, 50, 3, 2, 23) / np.float32(2)
    values[:, :, :, 1] = np.nan
    [got] = model(values.reshape(1, 50, 138))
    assert np.isnan(got[:, 1]).all()
    q, k, v = (np.swapaxes(values[:, :, i, :1], 1, 2) for i in range(3))
    check(got[:, :1], q, k, v, scale=1)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_tiles_are_configured_once(tiles: Tiles, tmp_path: Path, causal: bool) -> None:
    """For a CPU that rounds vectors to bf16 the kernel calls nothing, after which it would have to configure again."""
    del tiles  # skips where code is not x86's
    shape = (1, 2, 100, 64)
    source, library = write_attention(tmp_path, shape, shape, shape, causal=causal), tmp_path / "attention.so"
    options: dict[str, Any] = {"from_phase": "import", "precision": "bf16", "cache": False, "load": False}
    mlc.compile(source, output=library, cpu="sapphirerapids", **options)
    code = library.read_bytes()
    assert len(re.findall(rb"\xc4[\xc2\xe2]\x78\x49[^\xc0]", code)) == 1, "ldtilecfg with an operand in memory"
    assert code.count(b"\xc4\xe2\x78\x49\xc0") == 1, "tilerelease"
