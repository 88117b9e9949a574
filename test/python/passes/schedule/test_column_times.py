"""How threads share columns that they keep: choices against times that were measured on an H200, and what the template
can carry out."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from mlc.kernels.nvidia.column_parts import refusal
from mlc.kernels.nvidia.column_shares import ColumnShares, all_shares, some_shares
from mlc.passes.schedule.column_times import ColumnWork, microseconds

MULTIPROCESSORS = 132
# (matrices, elements of a column, extents of its neighbours, bytes of an element): microseconds by (lanes, width,
# split, kept, threads) of the fastest of 2 to 18 that were measured, and of some others (bench/results).
MEASURED: dict[tuple[int, int, tuple[int, ...], int], dict[tuple[int, ...], float]] = {
    (512, 200, (300,), 4): {
        (4, 2, 32, 7, 64): 125.3, (4, 4, 56, 4, 224): 73.4, (4, 8, 12, 17, 96): 85.6, (4, 8, 16, 13, 128):
        83.7, (4, 8, 28, 8, 224): 72.8, (4, 8, 32, 7, 256): 78.9, (4, 8, 64, 4, 512): 73.0},
    (64, 1000, (512,), 4): {
        (4, 2, 48, 21, 96): 92.7, (4, 4, 48, 21, 192): 68.6, (4, 4, 64, 16, 256): 69.1, (4, 8, 44, 23, 352):
        69.6, (4, 8, 64, 16, 512): 68.7},
    (2048, 64, (256,), 4): {
        (2, 16, 2, 32, 128): 68.7, (4, 2, 16, 4, 128): 78.8, (4, 8, 4, 16, 128): 67.9, (4, 8, 8, 8, 64): 67.7,
        (4, 8, 16, 4, 128): 67.4},
    (8, 21, (512, 512), 4): {
        (2, 131072, 1, 21, 128): 86.7, (2, 131072, 1, 21, 256): 87.1, (4, 2, 16, 2, 128): 103.2, (4, 65536, 1,
        21, 128): 86.8, (4, 65536, 1, 21, 256): 87.2},
    (32, 3136, (64,), 4): {(4, 2, 144, 22, 288): 24.0, (4, 2, 208, 16, 416): 24.6, (4, 2, 256, 13, 512): 23.4},
    (32, 196, (512,), 4): {
        (4, 4, 32, 7, 128): 8.05, (4, 8, 16, 13, 128): 8.72, (4, 8, 28, 7, 224): 8.38, (4, 8, 32, 7, 256):
        7.79, (4, 8, 52, 4, 416): 11.2},
    (8, 64, (56, 56), 4): {
        (1, 3136, 1, 64, 128): 7.36, (4, 2, 16, 4, 128): 5.98, (4, 4, 16, 4, 64): 5.12, (4, 8, 4, 16, 128):
        7.25, (4, 8, 8, 8, 64): 5.48, (4, 8, 16, 4, 128): 4.93},
    (32, 768, (196,), 4): {
        (4, 4, 64, 12, 256): 14.8, (4, 4, 128, 6, 512): 15.0, (4, 4, 192, 4, 768): 28.0, (4, 8, 32, 24, 256):
        15.3, (4, 8, 48, 16, 384): 16.8, (4, 8, 64, 12, 512): 16.2},
    (4096, 32, (512,), 4): {
        (1, 512, 1, 32, 256): 132.7, (2, 256, 1, 32, 128): 130.8, (4, 2, 16, 2, 128): 145.9, (4, 4, 8, 4,
        128): 129.0, (4, 8, 4, 8, 128): 131.3, (4, 8, 8, 4, 64): 129.7},
    (1024, 128, (512,), 4): {
        (1, 16, 2, 64, 128): 129.8, (4, 2, 32, 4, 64): 182.8, (4, 8, 8, 16, 64): 128.9, (4, 8, 16, 8, 128):
        128.5, (4, 8, 32, 4, 256): 128.0},
    (32, 2000, (1024,), 4): {
        (4, 2, 128, 16, 256): 177.6, (4, 2, 256, 8, 512): 180.2, (4, 2, 512, 4, 1024): 187.0, (4, 4, 88, 23,
        352): 140.6, (4, 4, 128, 16, 512): 138.3},
    (16, 4000, (512,), 4): {(4, 2, 176, 23, 352): 96.8, (4, 2, 256, 16, 512): 96.1},
    (512, 200, (300,), 2): {
        (4, 8, 32, 7, 256): 41.4, (4, 16, 10, 20, 160): 42.6, (4, 16, 14, 15, 224): 43.1, (4, 16, 16, 13,
        256): 41.6, (4, 16, 32, 7, 512): 43.1, (4, 16, 50, 4, 800): 114.7},
    (64, 1000, (512,), 2): {
        (8, 2, 96, 11, 192): 50.4, (8, 2, 128, 8, 256): 48.0, (8, 2, 256, 4, 512): 50.8, (8, 2, 512, 2, 1024):
        80.4, (8, 4, 128, 8, 512): 50.2},
    (2048, 64, (256,), 2): {
        (2, 16, 2, 32, 128): 33.8, (8, 2, 32, 2, 64): 51.7, (8, 4, 8, 8, 128): 33.8, (8, 4, 16, 4, 64): 35.2,
        (8, 8, 8, 8, 64): 34.2},
    (8, 21, (512, 512), 2): {
        (2, 131072, 1, 21, 128): 44.7, (2, 131072, 1, 21, 256): 45.0, (4, 16, 2, 11, 128): 44.2, (4, 65536, 1,
        21, 128): 43.9, (4, 65536, 1, 21, 256): 44.3, (8, 8, 4, 6, 128): 44.7, (8, 8, 16, 2, 128): 111.7},
    (8, 64, (56, 56), 2): {
        (2, 16, 2, 32, 128): 6.26, (8, 2, 16, 4, 128): 7.14, (8, 2, 32, 2, 64): 5.39, (8, 4, 32, 2, 128):
        6.27, (8, 8, 32, 2, 256): 6.52},
    (32, 768, (196,), 2): {
        (4, 4, 64, 12, 256): 12.4, (4, 4, 128, 6, 512): 12.7, (4, 4, 192, 4, 768): 26.2, (4, 8, 32, 24, 256):
        11.7, (4, 8, 48, 16, 384): 14.3, (4, 16, 32, 24, 512): 11.1},
    (4096, 32, (512,), 2): {
        (1, 512, 1, 32, 256): 70.7, (4, 16, 2, 16, 128): 66.6, (8, 4, 8, 4, 128): 65.6, (8, 8, 4, 8, 128):
        66.6, (8, 8, 8, 4, 64): 66.4, (8, 8, 16, 2, 128): 114.9},
    (1024, 128, (512,), 2): {
        (1, 16, 2, 64, 128): 73.6, (8, 4, 16, 8, 64): 67.1, (8, 8, 12, 11, 96): 64.8, (8, 8, 16, 8, 128):
        68.4, (8, 8, 32, 4, 256): 69.6, (8, 8, 64, 2, 512): 111.0},
    (32, 2000, (1024,), 2): {(8, 2, 176, 12, 352): 120.7, (8, 2, 256, 8, 512): 106.5},
}  # fmt: skip


def _chosen(outer: int, depth: int, inner: tuple[int, ...], size: int) -> ColumnShares:
    work = ColumnWork(outer, depth, prod(inner), size, 1)
    return min(all_shares(depth, inner, size), key=lambda shares: microseconds(work, shares, MULTIPROCESSORS))


@pytest.mark.parametrize("case", MEASURED)
def test_what_is_chosen_is_nearly_the_fastest(case: tuple[int, int, tuple[int, ...], int]) -> None:
    found, times = _chosen(*case), MEASURED[case]
    numbers = (found.lanes, found.width, found.split, found.kept, found.threads)
    assert times.get(numbers, float("inf")) <= 1.18 * min(times.values())


def test_few_columns_have_many_threads() -> None:
    """Eight matrices cannot fill the machine with threads that keep all they can; two thousand can."""
    few, many = _chosen(8, 64, (3136,), 4), _chosen(2048, 64, (256,), 4)
    assert few.split > many.split and few.kept < many.kept


EXTENTS = ((1,), (3,), (8,), (36,), (56, 56), (7, 9), (512,), (1023,), (4096,))
DEPTHS = (1, 2, 21, 33, 64, 196, 700, 1000, 1003, 2000, 3136, 4000, 8191)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("tensors", [1, 2, 5])
def test_the_template_carries_out_all_of_them(size: int, tensors: int) -> None:
    """Lanes divide what lies side by side, whole columns are kept, and their parts can meet."""
    for depth, inner in product(DEPTHS, EXTENTS):
        for s in all_shares(depth, inner, size, tensors):
            assert inner[-1] % s.lanes == 0 and s.split * s.kept >= depth and s.threads <= 512
            assert refusal(s.width, s.split, s.threads) == ""
        rest = some_shares(inner, size, tensors)
        assert inner[-1] % rest.lanes == 0 and refusal(rest.width, rest.split, rest.threads) == ""
