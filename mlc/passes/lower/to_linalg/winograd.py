"""3x3 convolutions by Winograd's minimal filtering: five contractions instead of one.

A tile of results is `At [(G g Gt) * (Bt d B)] A`, where `d` is a tile of the input, `g` the filter, and `*` goes
element by element: for 4x4 results and 6x6 inputs 36 products instead of 144, for 2x2 and 4x4 16 instead of 36. Summed
over channels those are as many products of matrices. Each of the two transforms is two contractions with a small
constant matrix, one along rows and one along columns; that of the filter is arithmetic on weights, done in f64 when the
weight image is written.

Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308, section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mlir import ir

from mlc.dialects import builders
from mlc.dialects import mlc as m
from mlc.passes.adaptor import Size, element, shape_of
from mlc.passes.lower.to_linalg.builder import Source, dim, dims
from mlc.passes.lower.to_linalg.linalg import contraction
from mlc.passes.lower.to_linalg.views import collapse
from mlc.passes.lower.to_linalg.windows import padded, shifted

TAPS = 3


@dataclass(frozen=True)
class Matrices:
    """`Bt`, `G` and `At` of one tile."""

    input: np.ndarray
    filter: np.ndarray
    output: np.ndarray

    @property
    def tile(self) -> int:
        """Results along one dimension."""
        return len(self.output)

    @property
    def window(self) -> int:
        """Inputs along one dimension, and products."""
        return self.tile + TAPS - 1


MATRICES = {
    2: Matrices(
        np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float64),
        np.array([[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]], np.float64),
        np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.float64),
    ),
    4: Matrices(
        np.array([
            [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1],
        ], np.float64),
        np.array([
            [1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1],
        ], np.float64),
        np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]], np.float64),
    ),
}  # fmt: skip


def convolve(value: ir.Value, filter_: ir.Value, tile: int, padding: list[int], sizes: list[Size]) -> ir.Value:
    """The convolution of `value` [N, H, W, C] with `filter_` [3, 3, C, O], a weight, at stride 1, in tiles of `tile`
    (2 or 4); `padding` is that of top, left, bottom and right; the result has `sizes` [N, H', W', O], all known."""
    by = MATRICES[tile]
    batch, height, width, outputs = (int(size) for size in sizes)
    type_ = element(value)
    products = _products(_transformed_input(value, by, padding, height, width), _transformed_filter(filter_, by), type_)
    back = _constant(by.output, type_)
    _, _, _, down, across, _ = shape_of(products)
    halved = contraction(  # [r, j, n, p, q, o] from [i, j, n, p, q, o]
        [tile, by.window, batch, down, across, outputs], dims(6), "ppppppr",
        Source(back, [dim(0), dim(6)]), Source(products, [dim(6), *dims(6)[1:]]), type_,
    )  # fmt: skip
    tiles = contraction(  # [n, p, r, q, s, o] from [r, j, n, p, q, o]
        [batch, down, tile, across, tile, outputs], dims(6), "ppppppr",
        Source(back, [dim(4), dim(6)]), Source(halved, [dim(2), dim(6), dim(0), dim(1), dim(3), dim(5)]), type_,
    )  # fmt: skip
    whole = collapse(tiles, [[0], [1, 2], [3, 4], [5]])
    if (down * tile, across * tile) == (height, width):
        return whole
    return shifted(whole, [batch, height, width, outputs], [0] * 4, [], 0)  # the first rows and columns


def _transformed_input(value: ir.Value, by: Matrices, padding: list[int], height: int, width: int) -> ir.Value:
    """`Bt d B` of every tile: [i, j, n, p, q, c]."""
    batch, rows, columns, channels = shape_of(value)
    top, left = padding[:2]
    tile, down, across = by.tile, -(-height // by.tile), -(-width // by.tile)
    type_, forth = element(value), _constant(by.input, element(value))
    tall = padded(value, [1], [top, down * tile + TAPS - 1 - rows - top], 0)
    rows_done = contraction(  # [i, n, p, x, c]
        [by.window, batch, down, columns, channels], dims(5), "pppppr",
        Source(forth, [dim(0), dim(5)]), Source(tall, [dim(1), dim(2) * tile + dim(5), dim(3), dim(4)]), type_,
    )  # fmt: skip
    wide = padded(rows_done, [3], [left, across * tile + TAPS - 1 - columns - left], 0)
    return contraction(
        [by.window, by.window, batch, down, across, channels], dims(6), "ppppppr",
        Source(forth, [dim(1), dim(6)]),
        Source(wide, [dim(0), dim(2), dim(3), dim(4) * tile + dim(6), dim(5)]), type_,
    )  # fmt: skip


def _transformed_filter(filter_: ir.Value, by: Matrices) -> ir.Value:
    """`G g Gt` of every pair of channels: [i, j, c, o]."""
    *_, channels, outputs = shape_of(filter_)
    forth = _constant(by.filter, ir.F64Type.get())
    wide = builders.cast(filter_, ir.F64Type.get())
    rows_done = m.matmul(forth, builders.reshape(wide, [TAPS, TAPS * channels * outputs]))
    done = m.matmul(forth, builders.reshape(rows_done, [by.window, TAPS, channels * outputs]))
    return builders.cast(builders.reshape(done, [by.window, by.window, channels, outputs]), element(filter_))


def _products(tiles: ir.Value, filters: ir.Value, type_: ir.Type) -> ir.Value:
    """The sums over channels: [i, j, n, p, q, o]."""
    sizes = [*shape_of(tiles)[:-1], shape_of(filters)[-1]]
    left = Source(tiles, [*dims(5), dim(6)])
    right = Source(filters, [dim(0), dim(1), dim(6), dim(5)])
    return contraction(sizes, dims(6), "ppppppr", left, right, type_)


def _constant(matrix: np.ndarray, type_: ir.Type) -> ir.Value:
    return builders.constant(matrix.astype(np.float64 if isinstance(type_, ir.F64Type) else np.float32))
