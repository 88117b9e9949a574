"""The register tiles of contractions: what a tile consists of, and how rows are split into tiles."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mlir import ir

from mlc.kernels.common.analysis import mentions, reachable
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.generics import is_identity, operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.padding import LinePlace

Tiles: TypeAlias = Sequence[tuple[int, int]]
"""Tiles that follow each other: how many rows, and how many such tiles."""

_ONE_TILE = 8  # rows of which all heights have a tile of their own where only a run counts them


def split_rows(extent: int, tile: int) -> list[tuple[int, int]]:
    """`extent` rows as (size, count) tiles of at most `tile` rows, balanced to within one row."""
    if extent <= 0:
        return []
    count = -(-extent // tile)
    small, more = divmod(extent, count)
    return [(size, n) for size, n in ((small + 1, more), (small, count - more)) if n]


def rest_sizes(tile: int, is_window: bool = False) -> list[int]:
    """Heights of the tiles for the last rows of a number that only a run knows, the highest first; what one leaves the
    next ones take. Each height is code of its own, and each tile reads its columns' panel once more: fewer rows than a
    tile has are one tile, and so is a single row above whole tiles with the last of those (`is_taller`). Of windows,
    whose tiles are two pieces of code, and of tiles above eight rows up to four rows are one tile, and of more at most
    one tile has each height.
    """
    if tile <= _ONE_TILE and not is_window:
        return [tile + 1] * is_taller(tile) + list(range(tile - 1, 0, -1))
    powers = [1 << bit for bit in reversed(range(3, tile.bit_length())) if 1 << bit < tile]
    return powers + list(range(min(tile - 1, 4), 0, -1))


def is_taller(tile: int) -> bool:
    """May the last tile have a row more than the others, where only a run knows how many rows there are? With six rows
    of four vectors its operands then need a register or two that are not there: less than to read the panel again for
    one row, but two rows more would need as many as a column has. Eight rows of three vectors leave enough of them.
    """
    return 1 < tile <= _ONE_TILE


def computed_behind(source: KernelSource, root: ir.Operation) -> Iterator[ir.Operation]:
    """What is computed for each element of the results, beside the contraction `root`."""
    for op in reachable(source.results):
        if op != root and op.name == "linalg.generic":
            yield from op.regions[0].blocks[0].operations


def matrices_behind(source: KernelSource, root: ir.Operation) -> list[ir.Value]:
    """The tensors that the epilogue of the contraction `root` reads at the points of its result, each once: inputs, and
    a destination that is updated in place.
    """
    tensors = set(source.tensors)
    shape, found = root.results[0].type.shape, dict[ir.Value, None]()
    for op in reachable(source.results):
        if op == root or op.name != "linalg.generic" or list(op.results[0].type.shape) != list(shape):
            continue
        for number, value in enumerate(list(op.operands)[: -len(op.results)]):
            if value in tensors and is_identity(op, number):
                found[value] = None
    return list(found)


def num_products(root: ir.Operation, outer: Sequence[int]) -> int:
    """How many of the result's `outer` dimensions, from the first one on, both operands have: for each of their points
    there is a product of its own."""
    order = [ir.AffineDimExpr(e).position for e in operand_map(root, len(root.operands) - 1).results]
    reads = [list(operand_map(root, operand).results) for operand in range(2)]
    for number, dim in enumerate(outer):
        if dim != number or not all(any(mentions(e, order[dim]) for e in exprs) for exprs in reads):
            return number
    return len(outer)


Loops = list[tuple[int, Scalar]]
"""Dimensions of a reduction and their extents, the outermost first."""
Position = dict[int, Idx]
"""Where in the reduction a step is, by dimension."""


class Ends(enum.Enum):
    """How the rows of a register tile whose place is not known meet the padding at the ends of their line."""

    INSIDE = "every tap of every row is inside"
    GUARDED = "every row asks for every tap"
    SOMEWHERE = "a run asks where the tile is"


@dataclass(frozen=True)
class Column:
    """A vector of a register tile: where it begins, its lanes, and which of them are inside (None: all)."""

    at: Idx
    lanes: int
    mask: ir.Value | None = None


@dataclass(frozen=True)
class Tile:
    """A register tile: the output coordinates of its accumulators, by (row, vector). `ends` is its place on the line
    where that is known as the tile is written, and with it which taps are inside."""

    row: Scalar
    points: dict[tuple[int, int], list[Idx]]
    columns: list[Column]
    ends: Ends | LinePlace

    def only(self, rows: Sequence[int]) -> Tile:
        """The accumulators of `rows`."""
        return replace(self, points={k: v for k, v in self.points.items() if k[0] in rows})
