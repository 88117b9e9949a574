"""Matrix products of run-time operands whose panels are copied: tails in every dimension, batches, fused operands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models.processors import runs_here
from test_templates import check, draw

from mlc.passes.schedule import contraction_cost, copies_ahead


@pytest.mark.parametrize("m, n, k", [(512, 512, 256), (403, 333, 131), (192, 1000, 128), (300, 256, 1024), (35, 101, 19), (64, 77, 1801)])
def test_products(tmp_path: Path, m: int, n: int, k: int) -> None:
    a, b, o = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""
      %r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}
      %e = mlc.unary neg %r : {o}
      return %e : {o}"""
    check(tmp_path, body, [a, b], [o], [(draw((m, k)), draw((k, n), seed=1))], 2e-5)


@pytest.mark.parametrize("batch", ["3", "?"])
def test_batches_with_a_broadcast_right_side(tmp_path: Path, batch: str) -> None:
    a, b, o = f"tensor<{batch}x200x128xf32>", "tensor<128x300xf32>", f"tensor<{batch}x200x300xf32>"
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    check(tmp_path, body, [a, b], [o], [(draw((n, 200, 128)), draw((128, 300), seed=1)) for n in (3,)], 2e-5)


@pytest.mark.parametrize(
    ("left", "right"),
    [("3x700x128", "3x128x300"), ("700x128", "3x128x300"), ("3x700x128", "128x300"), ("2x3x500x150", "3x150x260")],
)
def test_blocks_of_rows_share_a_copy_and_nothing_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, right: str
) -> None:
    """One thread goes through all panels of all products in one call."""
    from mlc.runtime import load

    monkeypatch.setattr(copies_ahead, "DISTANT_COLUMNS", copies_ahead.LEAST_COLUMNS)  # Xeons copy narrow ones ahead
    shapes = [tuple(map(int, text.split("x"))) for text in (left, right)]
    inputs = [draw(shape, seed=i) for i, shape in enumerate(shapes)]
    expected = inputs[0] @ inputs[1]
    a, b, o = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (*shapes, expected.shape))
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    model = check(tmp_path, body, [a, b], [o], [inputs], 2e-5)
    assert [kernel["template"] for kernel in model.metadata["kernels"]] == ["panel_copy"]
    alone = load(tmp_path / "kernel.so", threads=1)(*inputs)[0]
    np.testing.assert_allclose(alone, expected, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("n", [17, 120, 191])
def test_columns_that_only_the_run_counts(tmp_path: Path, n: int) -> None:
    """The last panel is copied vector by vector, each time anew."""
    a, b, o = "tensor<200x33xf32>", "tensor<?x33xf32>", "tensor<200x?xf32>"
    body = f"%r = mlc.matmul %a0, %a1 {{transpose_rhs}} : {a}, {b} -> {o}\nreturn %r : {o}"
    model = check(tmp_path, body, [a, b], [o], [(draw((200, 33)), draw((n, 33), seed=1))], 2e-5)
    assert [kernel["template"] for kernel in model.metadata["kernels"]] == ["panel_copy"]


def test_result_does_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    from mlc.runtime import load

    a, b, o = "tensor<512x256xf32>", "tensor<256x512xf32>", "tensor<512x512xf32>"
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    inputs = (draw((512, 256)), draw((256, 512), seed=1))
    check(tmp_path, body, [a, b], [o], [inputs], 2e-5)
    results = {load(tmp_path / "kernel.so", threads=n)(*inputs)[0].tobytes() for n in (1, 2, 3)}
    assert len(results) == 1


NARROW = "x86-64-v3"  # vectors of half a line of the cache
CASES = (
    (319, 49, 36), (100, 50, 64), (61, 19, 40), (50, 54, 490), (40, 31, 900), (200, 17, 33), (70, 9, 16), (70, 55, 30),
    (70, 56, 300), (40, 7, 300), (70, 25, 5),
)  # fmt: skip


@pytest.mark.skipif(not runs_here(NARROW), reason=f"this machine does not run code for {NARROW}")
@pytest.mark.parametrize("m, n, k", CASES)
@pytest.mark.parametrize("across", [False, True])
def test_last_columns(tmp_path: Path, m: int, n: int, k: int, across: bool) -> None:
    """What follows each row in memory stays as it is: every result is compared. An addend of each column is read."""
    kind, side = ("{transpose_rhs}", (n, k)) if across else ("", (k, n))
    a, b, c, o = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in ((m, k), side, (n,), (m, n)))
    body = f"""
      %p = mlc.matmul %a0, %a1 {kind} : {a}, {b} -> {o}
      %s = mlc.binary add %p, %a2 : {o}, {c} -> {o}
      %r = mlc.unary neg %s : {o}
      return %r : {o}"""
    check(tmp_path, body, [a, b, c], [o], [(draw((m, k)), draw(side, seed=1), draw((n,), seed=2))], 2e-5, cpu=NARROW)


@pytest.mark.skipif(not runs_here(NARROW), reason=f"this machine does not run code for {NARROW}")
@pytest.mark.parametrize("rows", ["83", "?"])
def test_last_columns_of_batches(tmp_path: Path, rows: str) -> None:
    """The right side's lines are copied for each product; rows that only a run counts are in tiles of any height."""
    a, b, o = f"tensor<3x{rows}x72xf32>", "tensor<3x72x58xf32>", f"tensor<3x{rows}x58xf32>"
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    counts = (83,) if rows != "?" else (83, 5, 1)
    runs = [(draw((3, n, 72)), draw((3, 72, 58), seed=1)) for n in counts]
    check(tmp_path, body, [a, b], [o], runs, 2e-5, cpu=NARROW)


@pytest.mark.skipif(not runs_here(NARROW), reason=f"this machine does not run code for {NARROW}")
def test_last_columns_on_several_threads(tmp_path: Path) -> None:
    """Whichever threads have the last panel copy these columns, and the results are the same."""
    from mlc.runtime import load

    a, b, o = "tensor<512x256xf32>", "tensor<256x115xf32>", "tensor<512x115xf32>"
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    inputs = (draw((512, 256)), draw((256, 115), seed=1))
    check(tmp_path, body, [a, b], [o], [inputs], 2e-5, cpu=NARROW)
    results = {load(tmp_path / "kernel.so", threads=n)(*inputs)[0].tobytes() for n in (1, 2, 3)}
    assert len(results) == 1


@pytest.mark.skipif(not runs_here(NARROW), reason=f"this machine does not run code for {NARROW}")
@pytest.mark.parametrize("batch", ["", "3x"])
@pytest.mark.parametrize("n", [240, 264, 270, 286, 1000])
@pytest.mark.parametrize("farther", [0, 1 << 30], ids=["joined", "alone"])
def test_lines_that_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, batch: str, farther: int
) -> None:
    """Up to the last lines of the matrix, behind which nothing is read: every result is compared."""
    monkeypatch.setattr(contraction_cost, "FAR_MATRIX", 0)
    monkeypatch.setattr(contraction_cost, "FARTHER_MATRIX", farther)
    from mlc.runtime import load

    m, k, lead = 97, 75, (3,) * bool(batch)
    a, b, o = f"tensor<{batch}{m}x{k}xf32>", f"tensor<{batch}{k}x{n}xf32>", f"tensor<{batch}{m}x{n}xf32>"
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    inputs = (draw((*lead, m, k)), draw((*lead, k, n), seed=1))
    model = check(tmp_path, body, [a, b], [o], [inputs], 2e-5, cpu=NARROW)
    assert [kernel["template"] for kernel in model.metadata["kernels"]] == ["panel_copy"]
    results = {load(tmp_path / "kernel.so", threads=count)(*inputs)[0].tobytes() for count in (1, 2, 3)}
    assert len(results) == 1  # wherever among panels that are joined a thread begins


@pytest.mark.skipif(not runs_here(NARROW), reason=f"this machine does not run code for {NARROW}")
def test_what_is_computed_on_the_way_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right side that is fused into the product has no memory of its own."""
    monkeypatch.setattr(contraction_cost, "FAR_MATRIX", 0)
    a, b, o = "tensor<97x75xf32>", "tensor<75x270xf32>", "tensor<97x270xf32>"
    body = f"""
      %s = mlc.unary neg %a1 : {b}
      %r = mlc.matmul %a0, %s : {a}, {b} -> {o}
      return %r : {o}"""
    check(tmp_path, body, [a, b], [o], [(draw((97, 75)), draw((75, 270), seed=1))], 2e-5, cpu=NARROW)
