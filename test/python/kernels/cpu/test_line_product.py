"""Products of few rows with matrices of the run that are read line by line: tails in every dimension, pieces that begin
anywhere, batches, sizes that only the run knows, fused operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models.processors import runs_here
from test_templates import check, draw

from mlc.passes.schedule.contraction_cost import _in_lines
from mlc.runtime import load

CPU = "x86-64-v3"


def check_lines(
    folder: Path,
    body: str,
    arguments: list[str],
    result: str,
    inputs: list[np.ndarray],
    threads: tuple[int, ...],
    cpu: str = CPU,
) -> None:
    """Compares with the interpreter; every number of threads gives the same bytes, by lines."""
    model = check(folder, body, arguments, [result], [inputs], 2e-5, cpu=cpu)
    assert [kernel["template"] for kernel in model.metadata["kernels"]] == ["line_product"]
    results = {load(folder / "kernel.so", threads=n)(*inputs)[0].tobytes() for n in threads}
    assert results == {model(*inputs)[0].tobytes()}


@pytest.mark.parametrize("m, n, k", [(1, 200, 8), (1, 129, 17), (1, 5000, 9), (3, 333, 30), (7, 700, 5), (15, 260, 33)])
def test_products_with_what_follows(tmp_path: Path, m: int, n: int, k: int) -> None:
    a, b, o = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""
      %r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}
      %e = mlc.unary neg %r : {o}
      return %e : {o}"""
    check_lines(tmp_path, body, [a, b], o, [draw((m, k)), draw((k, n), seed=1)], (1, 2, 5))


@pytest.mark.skipif(not runs_here("x86-64-v4"), reason="this machine has no AVX-512")
@pytest.mark.parametrize("m, n, k", [(1, 2050, 200), (15, 1000, 401), (7, 1300, 310)])
def test_large_matrices_with_avx512(tmp_path: Path, m: int, n: int, k: int) -> None:
    a, b, o = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    check_lines(tmp_path, body, [a, b], o, [draw((m, k)), draw((k, n), seed=1)], (1, 2, 5), "x86-64-v4")


@pytest.mark.parametrize("right", ["3x40x300", "40x300"])
def test_batches(tmp_path: Path, right: str) -> None:
    """Ranges of items begin and end in the middle of a product."""
    a, b, o = "tensor<3x2x40xf32>", f"tensor<{right}xf32>", "tensor<3x2x300xf32>"
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    inputs = [draw((3, 2, 40)), draw(tuple(map(int, right.split("x"))), seed=1)]
    check_lines(tmp_path, body, [a, b], o, inputs, (1, 2, 3))


def test_sizes_that_only_the_run_knows(tmp_path: Path) -> None:
    a, b, o = "tensor<?x3x?xf32>", "tensor<?x?x?xf32>", "tensor<?x3x?xf32>"
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    sizes = [(2, 300, 64), (1, 1, 1), (3, 16, 17), (2, 5000, 15), (1, 33, 100)]
    inputs = [(draw((batch, 3, k)), draw((batch, k, n), seed=1)) for batch, n, k in sizes]
    check(tmp_path, body, [a, b], [o], inputs, 2e-5, cpu=CPU)


@pytest.mark.parametrize("columns, rows", [(129, 1), (1000, 31), (5000, 7), (1 << 20, 2), (None, 1)])
def test_pieces_consist_of_items(columns: int | None, rows: int) -> None:
    schedule = _in_lines(columns, rows)
    line, item = int(schedule["line"]), int(schedule["item"])
    assert line % item == 0 and item % 16 == 0 and line * rows <= 4096
