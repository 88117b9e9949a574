"""The register tiles of contractions: what a tile consists of, and how rows are split into tiles."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir import ir

from mlc.kernels.common.analysis import mentions, reachable
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.generics import is_identity, operand_map
from mlc.kernels.common.index import Idx, Scalar


def split_rows(extent: int, tile: int) -> list[tuple[int, int]]:
    """`extent` rows as (size, count) tiles of at most `tile` rows, balanced to within one row."""
    if extent <= 0:
        return []
    count = -(-extent // tile)
    small, more = divmod(extent, count)
    return [(size, n) for size, n in ((small + 1, more), (small, count - more)) if n]


def rest_sizes(tile: int) -> list[int]:
    """Heights of the tiles for fewer than `tile` rows whose number only a run knows, the highest first; what one leaves
    the next ones take. Each height is code of its own, and each tile reads its columns' panel once more: up to four
    rows are one tile, and of more at most one tile has each height.
    """
    powers = [1 << bit for bit in reversed(range(3, tile.bit_length())) if 1 << bit < tile]
    return powers + list(range(min(tile - 1, 4), 0, -1))


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


class Ends(enum.Enum):
    """How the rows of a register tile meet the padding at the ends of their line."""

    INSIDE = "every tap of every row is inside"
    KNOWN = "the position is known, and with it which taps are inside"
    GUARDED = "every row asks for every tap"


@dataclass(frozen=True)
class Column:
    """A vector of a register tile: where it begins, its lanes, and which of them are inside (None: all)."""

    at: Idx
    lanes: int
    mask: ir.Value | None = None


@dataclass(frozen=True)
class Tile:
    """A register tile: the output coordinates of its accumulators, by (row, vector)."""

    row: Scalar
    points: dict[tuple[int, int], list[Idx]]
    columns: list[Column]
    ends: Ends

    def only(self, rows: Sequence[int]) -> Tile:
        """The accumulators of `rows`."""
        return replace(self, points={k: v for k, v in self.points.items() if k[0] in rows})
