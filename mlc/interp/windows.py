"""Sliding windows over spatial dimensions, shared by convolution and pooling: one strided view per kernel
position.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np


def output_extents(
    extents: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    """floor((in + low + high - dilated kernel) / stride) + 1 per spatial dimension, at least 0."""
    rank = len(extents)
    return [
        max(
            0,
            (extents[i] + padding[i] + padding[rank + i] - (dilations[i] * (kernel[i] - 1) + 1)) // strides[i] + 1,
        )
        for i in range(rank)
    ]


def pad_spatial(x: np.ndarray, padding: Sequence[int], value: float | int | bool, first: int) -> np.ndarray:
    """`x` with `padding` (low..., high...) around the spatial dimensions from `first` on; negative padding
    crops.
    """
    rank = len(padding) // 2
    widths = [(0, 0)] * x.ndim
    crop = [slice(None)] * x.ndim
    for i in range(rank):
        low, high = padding[i], padding[rank + i]
        extent = x.shape[first + i]
        crop[first + i] = slice(max(0, -low), max(0, extent - max(0, -high)))
        widths[first + i] = (max(0, low), max(0, high))
    return np.pad(x[tuple(crop)], widths, constant_values=value)


def taps(
    padded: np.ndarray,
    first: int,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    out: Sequence[int],
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """For each kernel position, row-major: its coordinates and the view of `padded` that it meets, extents
    `out`.
    """
    for position in itertools.product(*(range(k) for k in kernel)):
        index: list[slice] = [slice(None)] * padded.ndim
        for i, at in enumerate(position):
            start = at * dilations[i]
            index[first + i] = slice(start, start + (out[i] - 1) * strides[i] + 1 if out[i] else start, strides[i])
        yield position, padded[tuple(index)]
