"""Products of few rows with matrices that are stored by columns: tails in every dimension, batches, sizes that only the
run knows, fused operations, and the sums of lanes by themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_templates import check, draw

from mlc.runtime import load


def templates(folder: Path) -> list[str]:
    """The templates of the kernels that `check` has compiled."""
    return [kernel["template"] for kernel in load(folder / "kernel.so").metadata["kernels"]]


def check_product(folder: Path, m: int, n: int, k: int, follows: str) -> None:
    """Compiles m rows times n columns that lie along their k terms, with what `follows`, and compares."""
    a, b, o = f"tensor<{m}x{k}xf32>", f"tensor<{n}x{k}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""
      %r = mlc.matmul %a0, %a1 {{transpose_rhs}} : {a}, {b} -> {o}
      %e = mlc.{follows} %r : {o}
      return %e : {o}"""
    check(folder, body, [a, b], [o], [(draw((m, k)), draw((n, k), seed=1))], 2e-5)


@pytest.mark.parametrize(
    "m, n, k",
    [(1, 50, 64), (1, 16, 100), (2, 16, 16), (2, 33, 40), (3, 17, 100), (4, 64, 32), (5, 100, 64), (7, 31, 129), (8, 512, 128), (13, 48, 107)],
)
def test_products(tmp_path: Path, m: int, n: int, k: int) -> None:
    check_product(tmp_path, m, n, k, "activation relu")
    assert templates(tmp_path) == ["inner_product"]


@pytest.mark.parametrize(
    "m, n, k", [(12, 100, 40), (33, 64, 16), (100, 48, 64), (77, 70, 33), (300, 200, 100), (51, 13, 7)]
)
def test_panels_are_transposed_for_many_rows(tmp_path: Path, m: int, n: int, k: int) -> None:
    check_product(tmp_path, m, n, k, "unary neg")
    assert templates(tmp_path) == ["panel_copy"]


@pytest.mark.parametrize("m, k", [("?", "64"), ("400", "1600")])
def test_what_neither_takes_is_transposed_first(tmp_path: Path, m: str, k: str) -> None:
    a, b, o = f"tensor<{m}x{k}xf32>", f"tensor<24x{k}xf32>", f"tensor<{m}x24xf32>"
    body = f"%r = mlc.matmul %a0, %a1 {{transpose_rhs}} : {a}, {b} -> {o}\nreturn %r : {o}"
    check(tmp_path, body, [a, b], [o], [(draw((400, int(k))), draw((24, int(k)), seed=1))], 2e-5)
    assert templates(tmp_path) == ["transpose", "contraction"]


def test_sizes_that_only_the_run_knows(tmp_path: Path) -> None:
    a, b, o = "tensor<?x3x?xf32>", "tensor<?x?x?xf32>", "tensor<?x3x?xf32>"
    body = f"%r = mlc.matmul %a0, %a1 {{transpose_rhs}} : {a}, {b} -> {o}\nreturn %r : {o}"
    sizes = [(2, 40, 64), (1, 1, 1), (3, 16, 17), (2, 5, 15), (1, 33, 100)]
    inputs = [(draw((batch, 3, k)), draw((batch, n, k), seed=1)) for batch, n, k in sizes]
    check(tmp_path, body, [a, b], [o], inputs, 2e-5)
    assert templates(tmp_path)[-1] == "inner_product"  # behind what broadcasts batches that may differ


@pytest.mark.parametrize("m", [1, 3, 5, 40])
def test_sums_of_one_product(tmp_path: Path, m: int) -> None:
    a, b, o = f"tensor<2x{m}x1xf32>", "tensor<2x20x1xf32>", f"tensor<2x{m}x20xf32>"
    body = f"%r = mlc.matmul %a0, %a1 {{transpose_rhs}} : {a}, {b} -> {o}\nreturn %r : {o}"
    check(tmp_path, body, [a, b], [o], [(draw((2, m, 1)), draw((2, 20, 1), seed=1))], 2e-5)


@pytest.mark.parametrize("right", ["4x50x72", "50x72"])
def test_batches(tmp_path: Path, right: str) -> None:
    a, b, o = "tensor<4x6x72xf32>", f"tensor<{right}xf32>", "tensor<4x6x50xf32>"
    body = f"%r = mlc.matmul %a0, %a1 {{transpose_rhs}} : {a}, {b} -> {o}\nreturn %r : {o}"
    shape = tuple(map(int, right.split("x")))
    check(tmp_path, body, [a, b], [o], [(draw((4, 6, 72)), draw(shape, seed=1))], 2e-5)


def test_doubles(tmp_path: Path) -> None:
    a, b, o = "tensor<5x90xf64>", "tensor<37x90xf64>", "tensor<5x37xf64>"
    body = f"%r = mlc.matmul %a0, %a1 {{transpose_rhs}} : {a}, {b} -> {o}\nreturn %r : {o}"
    inputs = (draw((5, 90)).astype(np.float64), draw((37, 90), seed=1).astype(np.float64))
    check(tmp_path, body, [a, b], [o], [inputs], 1e-13)
    assert templates(tmp_path) == ["inner_product"]


def test_every_element_has_a_sum_of_its_own(tmp_path: Path) -> None:
    """Whole numbers: no sum is rounded, whatever its order."""
    a, b, o = "tensor<7x64xf32>", "tensor<35x64xf32>", "tensor<7x35xf32>"
    body = f"%r = mlc.matmul %a0, %a1 {{transpose_rhs}} : {a}, {b} -> {o}\nreturn %r : {o}"
    generator = np.random.default_rng(3)
    left, right = (generator.integers(-9, 9, shape).astype(np.float32) for shape in ((7, 64), (35, 64)))
    check(tmp_path, body, [a, b], [o], [(left, right)], 0.0)
    [got] = load(tmp_path / "kernel.so", threads=2)(left, right)
    assert np.array_equal(got, left @ right.T)


def test_result_does_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    a, b, o = "tensor<3x8x512xf32>", "tensor<3x200x512xf32>", "tensor<3x8x200xf32>"
    body = f"%r = mlc.matmul %a0, %a1 {{transpose_rhs}} : {a}, {b} -> {o}\nreturn %r : {o}"
    inputs = (draw((3, 8, 512)), draw((3, 200, 512), seed=1))
    check(tmp_path, body, [a, b], [o], [inputs], 2e-5)
    results = {load(tmp_path / "kernel.so", threads=n)(*inputs)[0].tobytes() for n in (1, 2, 3)}
    assert len(results) == 1
