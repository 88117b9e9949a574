"""The schedule of contractions in register tiles, and the grid of their work items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlc.kernels.common.frame import Frame, KernelSource
from mlc.kernels.common.index import IndexMath, Scalar
from mlc.kernels.common.items import emit_grid


@dataclass(frozen=True)
class ContractionSchedule:
    """Parameters of template `contraction` and of those that are like it; see its module."""

    lanes: int
    vector_dim: int
    row_first: int
    row_last: int
    rows: int
    vectors: int
    unroll: int
    block: int
    tail: int = field(default=0, kw_only=True)
    packed_operand: int = field(default=-1, kw_only=True)
    ahead: int = field(default=0, kw_only=True)
    early: int = field(default=0, kw_only=True)
    pieces: int = field(default=0, kw_only=True)
    part: int = field(default=0, kw_only=True)

    @property
    def panel(self) -> int:
        """Elements of the vector dimension in one register tile."""
        return self.lanes * self.vectors

    @property
    def row_block(self) -> int:
        """Rows of one work item."""
        return self.rows * self.block

    def together(self, dim: int) -> int:
        """Points of the output dimension `dim`, neither of rows nor of columns, that one work item has."""
        return 1

    def in_panels(self, columns: Scalar) -> Scalar:
        """How many of the `columns` are in panels."""
        return columns

    def num_rows(self, math: IndexMath, shape: Sequence[Scalar]) -> Scalar:
        """The rows of a result of `shape`."""
        return math.product(shape[self.row_first : self.row_last + 1])


@dataclass(frozen=True)
class GroupedSchedule(ContractionSchedule):
    """Those of templates whose step is a group of adjacent elements of the reduction."""

    vector_operand: int
    stored: str


def outer_dims(rank: int, s: ContractionSchedule) -> list[int]:
    """The output's dimensions that are neither rows nor columns."""
    return [d for d in range(rank) if d != s.vector_dim and not s.row_first <= d <= s.row_last]


def grid_items(frame: Frame, shape: list[Scalar], s: ContractionSchedule, products: int) -> list[Scalar]:
    """Extents of the grid: products, which share nothing, then panels, other outer dimensions, row blocks."""
    math = frame.math
    rows = s.num_rows(math, shape)
    outer = [math.ceildiv(shape[d], s.together(d)) for d in outer_dims(len(shape), s)]
    panels = math.ceildiv(s.in_panels(shape[s.vector_dim]), s.panel)
    return [*outer[:products], panels, *outer[products:], math.ceildiv(rows, s.row_block)]


def grid_point(
    math: IndexMath, item: Scalar, items: list[Scalar], products: int, s: ContractionSchedule
) -> list[Scalar]:
    """The coordinates among `items` of work item number `item`, in the order of `grid_items`."""
    if not s.part:
        return math.delinearize(item, items)
    panels, others = items[products], items[products + 1 :]
    blocks = math.product(others)
    *front, number = math.delinearize(item, [*items[:products], math.mul(panels, blocks)])
    part = _size_of_part(math, blocks, s)
    size = math.mul(panels, part)
    first, rest = math.mul(math.div(number, size), part), math.rem(number, size)
    length = part
    if not (isinstance(blocks, int) and isinstance(part, int) and blocks % part == 0):
        length = math.minimum(part, math.sub(blocks, first))
    block = math.add(first, math.rem(rest, length))
    return [*front, math.div(rest, length), *math.delinearize(block, others)]


def _size_of_part(math: IndexMath, blocks: Scalar, s: ContractionSchedule) -> Scalar:
    """How many of the `blocks` of rows that a panel meets are in a part."""
    return s.part if s.part > 0 else math.maximum(math.ceildiv(blocks, -s.part), 1)


def tile_grid(source: KernelSource, schedule: ContractionSchedule) -> Frame:
    """The grid function of the template and of those that share its tiles."""
    return emit_grid(source, lambda frame, shape: grid_items(frame, shape, schedule, 0))
