"""The order of tiles: bands of rows of tiles, in which rows run fastest, so that blocks at work together read the same
operands from the cache.
"""

from __future__ import annotations

from mlc.kernels.common.index import IndexMath, Scalar


def place_in_bands(
    math: IndexMath, rows: Scalar, columns: Scalar, raster: int, number: Scalar
) -> tuple[Scalar, Scalar]:
    """The row and the column of tile `number` among `rows` x `columns` of them, in bands of `raster` rows."""
    band = math.mul(columns, raster)
    first = math.mul(math.div(number, band), raster)
    place = math.rem(number, band)
    height: Scalar = math.minimum(math.sub(rows, first), raster)
    if isinstance(rows, int) and rows % raster == 0:
        height = raster
    return math.add(first, math.rem(place, height)), math.div(place, height)
