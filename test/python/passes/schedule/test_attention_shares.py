"""What blocks share the keys of few queries: choices against times that were measured on an H200."""

from __future__ import annotations

import pytest

from mlc.passes.schedule.attention_shares import Shares, Work, nanoseconds, ranked_shares

MULTIPROCESSORS = 132
# (tiles, rows, keys, columns): microseconds by (blocks of a cluster, clusters) of the fastest of 8 to 34 that were
# measured, and of some others (bench/results/2026-11-24-h200.md).
MEASURED: dict[tuple[int, int, int, int], dict[tuple[int, int], float]] = {
    (8, 4, 1024, 128): {(1, 8): 4.59, (1, 10): 4.75, (1, 12): 4.82, (1, 14): 4.96, (1, 16): 4.51, (8, 1): 4.60},
    (8, 4, 2048, 128): {(1, 8): 5.89, (1, 10): 6.37, (1, 12): 5.93, (1, 14): 5.95, (1, 16): 5.60, (2, 8): 6.26,
        (8, 1): 6.56},
    (8, 4, 4096, 128): {(1, 8): 8.99, (1, 12): 9.48, (1, 14): 9.49, (1, 16): 8.74, (2, 8): 9.41, (8, 1): 9.05},
    (8, 4, 8192, 128): {(1, 8): 12.89, (1, 14): 13.02, (1, 16): 12.50, (2, 8): 13.12, (4, 2): 13.68, (8, 1): 13.00},
    (8, 4, 32768, 128): {(1, 8): 36.91, (1, 14): 36.99, (1, 16): 35.33, (2, 8): 35.66, (4, 2): 37.21, (8, 1): 36.93},
    (2, 16, 4096, 128): {(4, 8): 7.29, (4, 10): 7.56, (8, 1): 7.96, (8, 4): 7.10, (8, 5): 7.46, (8, 6): 7.55,
        (8, 7): 7.58},
    (2, 16, 16384, 128): {(4, 8): 11.54, (4, 10): 12.17, (4, 12): 12.23, (8, 1): 20.49, (8, 4): 11.36,
        (8, 6): 11.84, (8, 7): 11.96},
    (32, 1, 1024, 128): {(1, 2): 8.58, (1, 3): 8.80, (1, 4): 8.01, (2, 1): 9.03, (2, 2): 8.85, (8, 1): 11.30},
    (32, 1, 4096, 128): {(1, 2): 21.07, (1, 3): 22.32, (1, 4): 20.01, (2, 1): 21.34, (2, 2): 20.62, (8, 1): 25.46},
    (8, 4, 1024, 64): {(1, 8): 3.70, (1, 10): 3.70, (1, 12): 3.77, (1, 14): 3.81, (1, 16): 3.46, (8, 1): 3.65},
    (64, 4, 4096, 128): {(1, 1): 36.38, (1, 2): 34.78, (2, 1): 34.29, (4, 1): 45.22},
    (32, 4, 2048, 128): {(1, 2): 12.78, (1, 3): 13.64, (1, 4): 12.46, (2, 1): 13.04, (2, 2): 12.94, (8, 1): 16.00},
    (12, 1, 1024, 64): {(1, 4): 4.34, (1, 6): 4.17, (1, 7): 4.21, (1, 8): 3.78, (1, 10): 3.90, (8, 1): 3.80},
    (12, 32, 2048, 64): {(1, 6): 6.90, (1, 7): 7.02, (1, 8): 6.33, (1, 10): 6.64, (4, 1): 6.82, (8, 1): 5.75},
    (4, 8, 32768, 128): {(1, 16): 21.67, (1, 32): 21.69, (2, 8): 22.42, (2, 16): 22.04, (4, 4): 22.03,
        (8, 1): 35.92, (8, 2): 22.14},
    (4, 8, 8192, 128): {(1, 16): 9.75, (1, 32): 10.03, (2, 16): 10.16, (4, 4): 10.11, (8, 1): 12.29, (8, 2): 10.12,
        (8, 3): 10.36},
    (4, 8, 2048, 128): {(1, 8): 5.80, (1, 12): 5.57, (1, 16): 5.39, (1, 20): 5.75, (1, 24): 5.95, (8, 1): 5.62},
    (2, 16, 65536, 128): {(1, 28): 27.42, (1, 32): 25.38, (2, 16): 25.36, (2, 24): 26.86, (2, 32): 25.29,
        (8, 1): 68.79, (8, 4): 23.63},
    (2, 16, 32768, 128): {(4, 8): 15.73, (4, 10): 16.02, (4, 14): 16.21, (8, 1): 36.26, (8, 4): 15.52,
        (8, 5): 16.48, (8, 7): 15.61},
    (2, 16, 8192, 128): {(4, 10): 8.77, (4, 12): 8.64, (8, 1): 11.80, (8, 4): 8.56, (8, 5): 8.60, (8, 6): 8.53,
        (8, 7): 8.60},
    (2, 16, 2048, 128): {(1, 8): 6.52, (1, 12): 6.42, (1, 16): 6.36, (1, 20): 6.77, (8, 1): 5.72, (8, 4): 6.05},
    (1, 32, 65536, 128): {(4, 16): 18.88, (8, 1): 68.40, (8, 7): 19.28, (8, 8): 17.83, (8, 10): 18.72,
        (8, 12): 19.15, (8, 14): 18.50},
    (1, 32, 32768, 128): {(4, 16): 14.42, (8, 1): 36.57, (8, 7): 14.03, (8, 8): 13.42, (8, 10): 14.53,
        (8, 12): 14.27, (8, 14): 14.52},
    (1, 32, 16384, 128): {(1, 28): 14.24, (2, 16): 12.83, (2, 24): 13.64, (4, 16): 11.49, (8, 1): 20.14,
        (8, 4): 10.95, (8, 8): 10.67},
    (1, 32, 8192, 128): {(8, 1): 12.07, (8, 3): 9.63, (8, 4): 9.08, (8, 6): 9.48, (8, 7): 9.59, (8, 8): 9.12,
        (8, 10): 9.60},
    (1, 32, 4096, 128): {(1, 12): 9.21, (1, 16): 8.79, (4, 16): 8.90, (8, 1): 7.96, (8, 4): 7.48, (8, 8): 8.14},
    (1, 32, 2048, 128): {(4, 3): 7.22, (4, 4): 7.00, (8, 1): 5.67, (8, 2): 6.73, (8, 3): 7.03, (8, 4): 6.64},
    (1, 32, 1024, 128): {(1, 8): 6.32, (4, 1): 5.38, (4, 2): 6.47, (4, 4): 6.32, (8, 1): 4.65, (8, 2): 6.22},
    (2, 4, 4096, 64): {(1, 16): 4.42, (1, 24): 4.38, (1, 28): 4.48, (1, 32): 4.14, (2, 32): 4.56, (8, 1): 5.90,
        (8, 4): 4.50},
    (16, 8, 8192, 128): {(1, 8): 13.04, (1, 12): 14.47, (1, 16): 13.82, (1, 24): 17.40, (1, 28): 16.78,
        (1, 32): 16.89, (8, 1): 23.43},
}


@pytest.mark.parametrize("case", MEASURED)
def test_what_is_chosen_is_nearly_the_fastest(case: tuple[int, int, int, int]) -> None:
    tiles, rows, keys, columns = case
    best = ranked_shares(Work(tiles, rows, keys, columns, columns), MULTIPROCESSORS, in_groups=True)[0]
    times = MEASURED[case]
    assert times.get((best.split, best.groups), float("inf")) <= 1.13 * min(times.values())


@pytest.mark.parametrize(("tiles", "split", "groups"), [(1, 8, 8), (16, 1, 8), (33, 2, 2), (66, 2, 1), (67, 1, 1)])
def test_all_blocks_find_room(tiles: int, split: int, groups: int) -> None:
    found = ranked_shares(Work(tiles, 1, 1 << 20, 128, 128), MULTIPROCESSORS, in_groups=True)
    assert Shares(split, groups) in found
    assert all(tiles * one.split * one.groups <= MULTIPROCESSORS for one in found)
    assert all(tiles * one.split * one.groups <= 0.75 * MULTIPROCESSORS for one in found if one.split > 2)


def test_tiles_that_fill_the_chip_share_nothing() -> None:
    assert ranked_shares(Work(133, 1, 1 << 20, 128, 128), MULTIPROCESSORS, in_groups=True) == [Shares(1, 1)]


def test_one_cluster_where_tiles_are_not_counted() -> None:
    found = ranked_shares(Work(1, 1, 1 << 20, 128, 128), MULTIPROCESSORS, in_groups=False)
    assert found[0] == Shares(8, 1)
    assert {one.groups for one in found} == {1}


def test_a_part_has_keys() -> None:
    found = ranked_shares(Work(1, 1, 600, 128, 128), MULTIPROCESSORS, in_groups=True)
    assert all(one.split * one.groups <= 16 for one in found)


def test_more_queries_take_longer_to_put_together() -> None:
    few, many = (Work(8, rows, 4096, 128, 128) for rows in (4, 64))
    assert nanoseconds(many, Shares(1, 8)) > nanoseconds(few, Shares(1, 8))
    assert nanoseconds(many, Shares(8, 1)) == nanoseconds(few, Shares(8, 1))
