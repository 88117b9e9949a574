"""What tests of attention of bf16 share: sizes, masks, and the errors that results may have.

What a kernel adds to the error is that of the exponentials, which are rounded to bf16. Those errors are independent,
so that a result may be wrong by a few times the root of the sum of their squares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
from test_attention import weights

SIZES = [  # rows, keys, elements of a key, of a value, causal
    *[(32, 64, 32, 32, False), (8, 16, 8, 8, False), (197, 197, 64, 64, False), (64, 333, 80, 72, True)],
    *[(250, 100, 16, 33, True), (9, 1000, 11, 130, False), (48, 129, 160, 16, False), (20, 31, 48, 48, True)],
]
MASKS = [("i1", (70, 150)), ("i1", (2, 1, 1, 150)), ("f32", (2, 1, 70, 150)), ("f32", (1, 4, 70, 150))]


def rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


def check(
    got: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    precise: float = 2e-5,
    scale: float | None = None,
    **options: Any,
) -> None:
    """Compares with the definition; `precise` is the error that it would have without rounding."""
    scaled = rounded(q * np.float32(1 / np.sqrt(q.shape[3]) if scale is None else scale))
    shares = weights(scaled, rounded(k), **options)
    values = np.repeat(rounded(v), q.shape[1] // v.shape[1], axis=1)
    deviation = 2.0**-8 / np.sqrt(3) * np.sqrt(shares**2 @ values**2)
    wrong = np.abs(got - shares @ values) / (5 * deviation + precise)
    assert not (wrong >= 1).any() and np.isfinite(got).all(), f"{wrong.max()} of what is allowed"


def masks(dtype: str, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Of 70 rows and 150 keys: padding, windows, hidden rows, whole hidden blocks at either end; numbers that hide by
    infinity, by the least float and by little."""
    rows, keys = np.arange(70)[:, None], np.arange(150)
    patterns = [
        keys < 60 + 0 * rows,
        keys >= 100 + 0 * rows,
        np.abs(keys - 2 * rows) < 9,
        (rows % 10 != 3) & (keys > rows),
    ]
    for pattern in patterns:
        visible = np.broadcast_to(pattern[: shape[-2]] if len(shape) > 1 else pattern, shape)
        for low in (-np.inf, -3.4028235e38, -30.0) if dtype == "f32" else (None,):
            yield np.ascontiguousarray(visible) if low is None else np.where(visible, 0.25, low).astype(np.float32)
