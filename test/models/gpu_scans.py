"""GPU cases of running sums and products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.gpu_cases import Arrays, Case, integers, normal


def _scan(
    name: str,
    x: np.ndarray,
    axis: int = -1,
    dims: Sequence[int | str] | None = None,
    tolerance: float = 1e-6,
    kind: str = "CumSum",
    **flags: int,
) -> Case:
    """Integers wrap around; floats are compared with sums in float64."""

    def expected(a: Arrays) -> list[np.ndarray]:
        line = np.moveaxis(a["x"], axis, 0)
        line = line[::-1] if flags.get("reverse") else line
        wide = line.astype(np.float64) if line.dtype.kind == "f" else line
        find, start = (np.cumsum, 0) if kind == "CumSum" else (np.cumprod, 1)
        found = find(wide, axis=0, dtype=wide.dtype)
        if flags.get("exclusive"):
            found = np.concatenate([np.full_like(found[:1], start), found[:-1]])
        found = found[::-1] if flags.get("reverse") else found
        return [np.moveaxis(found, 0, axis)]

    return Case(
        name, [(kind, ["x", "axis"], ["y"], dict(flags))], lambda: {"x": x}, expected,
        {"y": x.dtype.name}, {"x": dims} if dims else None, {"axis": np.array(axis, np.int64)},
        tolerance=0 if x.dtype.kind != "f" else tolerance, opset=26 if kind == "CumProd" else 17,
    )  # fmt: skip


def scan_cases() -> list[Case]:
    """Parts of warps, warps and blocks along lines, one chunk and many, of vectors and of those that end within them;
    columns that fill lines of memory and that do not; all kinds of elements; both flags."""
    both = {"exclusive": 1, "reverse": 1}
    near = (1 + normal(3, 700) / 50).astype(np.float32)
    wide = integers(0, 1 << 62, 3, 5000) - (1 << 61)
    return [
        _scan("scan_few", normal(300, 7)),
        _scan("scan_short", normal(70, 24), exclusive=1),
        _scan("scan_short_reverse", normal(70, 100), reverse=1),
        _scan("scan_warp", normal(20, 384)),
        _scan("scan_warp_odd", normal(21, 201), **both),
        _scan("scan_rows", normal(300, 1024)),
        _scan("scan_rows_odd", normal(5, 1003)),
        _scan("scan_rows_odd_reverse", normal(5, 1003), reverse=1),
        _scan("scan_long", normal(2, 20000), exclusive=1),
        _scan("scan_long_reverse", normal(2, 20000), reverse=1),
        _scan("scan_long_odd", normal(3, 9001), **both),
        _scan("scan_half", normal(4, 2048, dtype="float16"), tolerance=1e-3),
        _scan("scan_half_odd", normal(3, 20003, dtype="float16"), tolerance=1e-3, reverse=1),
        _scan("scan_double", normal(3, 5000, dtype="float64"), tolerance=1e-14),
        _scan("scan_wide", wide),
        _scan("scan_wide_odd", wide[:, :4999].copy(), **both),
        _scan("scan_words", (integers(0, 1 << 31, 5, 3000) - (1 << 30)).astype(np.int32), exclusive=1),
        _scan("scan_products", near, kind="CumProd", tolerance=1e-5),
        _scan("scan_products_columns", near, 0, kind="CumProd", exclusive=1),
        _scan("scan_line", normal(1000), 0),
        _scan("scan_dynamic", normal(5, 3001), dims=["n", "m"]),
        _scan("scan_dynamic_reverse", normal(4, 40), dims=["n", "m"], **both),
        _scan("scan_columns", normal(600, 128), 0),
        _scan("scan_columns_odd", normal(2, 301, 33), 1, exclusive=1),
        _scan("scan_columns_reverse", normal(257, 40), 0, reverse=1),
        _scan("scan_columns_few", normal(3000, 4), 0),
        _scan("scan_columns_three", normal(2, 2000, 3), 1, **both),
        _scan("scan_columns_short", normal(40, 5, 256), 1),
        _scan("scan_columns_many", normal(9, 9000), 0, exclusive=1),
        _scan("scan_columns_half", normal(300, 64, dtype="float16"), 0, tolerance=1e-3),
        _scan("scan_columns_wide", integers(0, 1 << 61, 900, 6) - (1 << 60), 0, reverse=1),
        _scan("scan_columns_dynamic", normal(3, 700, 9), 1, dims=["n", "m", "k"]),
        *_part_cases(),
    ]


def _part_cases() -> list[Case]:
    """Few and long lines, which fall into parts of one length or not, along memory and across it."""
    both = {"exclusive": 1, "reverse": 1}
    near = (1 + normal(2, 40_003) / 500).astype(np.float32)
    wide = integers(0, 1 << 62, 2, 50_000) - (1 << 61)
    words = (integers(0, 1 << 31, 3, 43_001) - (1 << 30)).astype(np.int32)
    return [
        _scan("scan_parts", normal(40_000), 0, tolerance=2e-6),
        _scan("scan_parts_exclusive", normal(2, 60_000), tolerance=2e-6, exclusive=1),
        _scan("scan_parts_reverse", normal(2, 60_000), tolerance=2e-6, reverse=1),
        _scan("scan_parts_odd", normal(3, 50_003), tolerance=2e-6),
        _scan("scan_parts_odd_both", normal(3, 50_003), tolerance=2e-6, **both),
        _scan("scan_parts_even_rest", normal(2, 50_012), tolerance=2e-6, reverse=1),
        _scan("scan_parts_chunks", normal(20, 70_000), tolerance=2e-6),
        _scan("scan_parts_half", normal(2, 60_000, dtype="float16"), tolerance=1e-3),
        _scan("scan_parts_half_odd", normal(1, 24_007, dtype="float16"), tolerance=1e-3, **both),
        _scan("scan_parts_double", normal(2, 40_000, dtype="float64"), tolerance=1e-13, reverse=1),
        _scan("scan_parts_wide", wide, exclusive=1),
        _scan("scan_parts_words", words, **both),
        _scan("scan_parts_products", near, kind="CumProd", tolerance=5e-5),
        _scan("scan_parts_products_both", near, kind="CumProd", tolerance=5e-5, **both),
        _scan("scan_parts_columns", normal(20_000, 4), 0, tolerance=2e-6),
        _scan("scan_parts_columns_both", normal(2, 20_000, 6), 1, tolerance=2e-6, **both),
        _scan("scan_parts_columns_odd", normal(30_011, 3), 0, tolerance=2e-6, reverse=1),
        _scan("scan_parts_columns_wide", integers(0, 1 << 61, 9001, 20) - (1 << 60), 0, exclusive=1),
        _scan("scan_parts_columns_half", normal(2, 8000, 40, dtype="float16"), 1, tolerance=1e-3),
    ]
