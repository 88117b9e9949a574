"""Matrix products of run-time operands whose panels are copied ahead: tails in every dimension, blocks, batches, threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models.processors import runs_here
from test_templates import check, draw

from mlc.passes.schedule import copies_ahead
from mlc.runtime import load

WIDE = "x86-64-v4"  # vectors of a line of the cache
pytestmark = pytest.mark.skipif(not runs_here(WIDE), reason=f"this machine does not run code for {WIDE}")

CASES = (
    (200, 391, 131), (163, 448, 128), (512, 400, 256), (161, 1000, 515), (160, 389, 768),
    (97, 390, 1091),  # far away: two blocks of the sum, the second one shorter
    (100, 400, 1000), (385, 385, 1801),  # and more lines and rows than one item has
)  # fmt: skip


def _body(left: str, right: str, result: str) -> str:
    return f"%r = mlc.matmul %a0, %a1 : {left}, {right} -> {result}\nreturn %r : {result}"


@pytest.mark.parametrize("m, n, k", CASES)
def test_products(tmp_path: Path, m: int, n: int, k: int) -> None:
    """The same results on any number of threads, wherever a thread begins; an addend of each column is read."""
    a, b, c, o = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in ((m, k), (k, n), (n,), (m, n)))
    body = f"""
      %p = mlc.matmul %a0, %a1 : {a}, {b} -> {o}
      %s = mlc.binary add %p, %a2 : {o}, {c} -> {o}
      return %s : {o}"""
    inputs = (draw((m, k)), draw((k, n), seed=1), draw((n,), seed=2))
    model = check(tmp_path, body, [a, b, c], [o], [inputs], 2e-5, cpu=WIDE)
    assert [kernel["template"] for kernel in model.metadata["kernels"]] == ["copy_ahead"]
    results = {load(tmp_path / "kernel.so", threads=count)(*inputs)[0].tobytes() for count in (1, 2, 3, 5)}
    assert len(results) == 1


@pytest.mark.parametrize("m, n, k", [(163, 129, 50), (200, 161, 64), (385, 250, 1801)])
def test_narrow_matrices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, m: int, n: int, k: int) -> None:
    """Where memory is far away matrices of fewer lines and columns are copied ahead, too."""
    monkeypatch.setattr(copies_ahead, "LEAST_STEPS", copies_ahead.DISTANT_STEPS)
    monkeypatch.setattr(copies_ahead, "LEAST_COLUMNS", copies_ahead.DISTANT_COLUMNS)
    test_products(tmp_path, m, n, k)


@pytest.mark.parametrize(
    ("left", "right"),
    [("3x170x128", "3x128x400"), ("170x130", "3x130x400"), ("3x170x128", "128x400"), ("2x3x170x150", "3x150x391")],
)
def test_batches(tmp_path: Path, left: str, right: str) -> None:
    """Behind the last panel of a product comes the first one of the next product, or of the same matrix again."""
    shapes = [tuple(map(int, text.split("x"))) for text in (left, right)]
    inputs = [draw(shape, seed=i) for i, shape in enumerate(shapes)]
    expected = inputs[0] @ inputs[1]
    a, b, o = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (*shapes, expected.shape))
    model = check(tmp_path, _body(a, b, o), [a, b], [o], [inputs], 2e-5, cpu=WIDE)
    assert [kernel["template"] for kernel in model.metadata["kernels"]] == ["copy_ahead"]
    for count in (1, 2, 5):
        found = load(tmp_path / "kernel.so", threads=count)(*inputs)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-4)


def test_blocks_of_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block of one product is behind the next one's first block, and the rows are one work item."""
    monkeypatch.setattr(copies_ahead, "MOST_DEPTH", 50)
    a, b, o = "tensor<3x170x130xf32>", "tensor<3x130x391xf32>", "tensor<3x170x391xf32>"
    inputs = [draw((3, 170, 130)), draw((3, 130, 391), seed=1)]
    model = check(tmp_path, _body(a, b, o), [a, b], [o], [inputs], 2e-5, cpu=WIDE)
    assert [kernel["template"] for kernel in model.metadata["kernels"]] == ["copy_ahead"]
    results = {load(tmp_path / "kernel.so", threads=count)(*inputs)[0].tobytes() for count in (1, 2, 3)}
    assert len(results) == 1


def test_what_is_beside_the_matrix_does_not_count(tmp_path: Path) -> None:
    """Nothing behind the last line is read into the sums: NaNs there are in no result."""
    m, n, k = 161, 391, 131
    a, b, o = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    inputs = (draw((m, k)), draw((k, n), seed=1))
    check(tmp_path, _body(a, b, o), [a, b], [o], [inputs], 2e-5, cpu=WIDE)
    room = np.full(k * n + 4096, np.nan, np.float32)
    room[1 : 1 + k * n] = inputs[1].ravel()  # which begins anywhere in a line of the cache
    found = load(tmp_path / "kernel.so", threads=2)(inputs[0], room[1 : 1 + k * n].reshape(k, n))[0]
    np.testing.assert_allclose(found, inputs[0] @ inputs[1], rtol=1e-4, atol=2e-4)
