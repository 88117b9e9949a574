"""Parameters of attention on Hopper's tensor cores, and where things lie in its memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlc.kernels.common.attention import Attention
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.nvidia.hopper import attention_result
from mlc.kernels.nvidia.hopper.attention_groups import MOST_TILES, GroupLayout
from mlc.kernels.nvidia.hopper.attention_parts import parts_bytes
from mlc.kernels.nvidia.hopper.barriers import Ring
from mlc.kernels.nvidia.tensor_cores.attention_operands import CHUNK, head_dims
from mlc.kernels.nvidia.tensor_cores.epilogue import staging_bytes
from mlc.kernels.nvidia.tensor_cores.tiles import ROW, ROWS


@dataclass(frozen=True)
class HopperAttentionSchedule:
    """Parameters of the template; see `attention.py`."""

    element: str
    keys: int
    stages: int
    consumers: int
    queries: int
    result: str
    lanes: int
    order: str
    blocks: int
    multiprocessors: int
    threads: int
    split: int = 1
    groups: int = 1

    @property
    def tile_rows(self) -> int:
        """Queries of a block."""
        return ROWS * self.consumers

    @property
    def shares(self) -> int:
        """Blocks that share the keys of a tile."""
        return self.split * self.groups


@dataclass(frozen=True)
class Layout:
    """Bytes of the shared memory: where queries, keys, values, the epilogue's staging area and the barriers begin, and
    all of them."""

    keys: int
    values: int
    staging: int
    barriers: int
    total: int


def layout(schedule: HopperAttentionSchedule, depth: int, width: int) -> Layout:
    """The shared memory for queries and keys of `depth` columns and values of `width`."""
    s = schedule
    chunks, wide = -(-depth // CHUNK), -(-width // CHUNK)
    keys = s.queries * s.tile_rows * chunks * ROW
    values = keys + s.stages * s.keys * chunks * ROW
    staging = values + s.stages * s.keys * wide * ROW
    room = attention_result.staging_bytes if s.result else staging_bytes
    barriers = staging + room(width, 4 * s.consumers)
    if s.split > 1:
        barriers = max(barriers, parts_bytes(width))
    return Layout(keys, values, staging, barriers, barriers + 2 * Ring.size(s.stages) + Ring.size(s.queries))


def may_be_grouped(source: KernelSource, attention: Attention, schedule: HopperAttentionSchedule) -> bool:
    """Can clusters share tiles: is it known how many there are, and is there room?"""
    found, tiles = _group_layout(source, attention, schedule)
    rows, room = found.rows, layout(schedule, *head_dims(attention)).staging
    return 0 < tiles <= MOST_TILES and 0 < rows <= schedule.tile_rows and found.shared_bytes <= room


def group_layout(
    source: KernelSource, attention: Attention, schedule: HopperAttentionSchedule
) -> tuple[GroupLayout, int]:
    """What clusters that share a tile write, and the bytes of the workspace. Raises ValueError where they cannot."""
    found, tiles = _group_layout(source, attention, schedule)
    if not may_be_grouped(source, attention, schedule):
        name = source.func.name.value
        raise ValueError(f"kernel {name}: clusters cannot share {tiles} tiles of {found.rows} queries")
    return found, found.workspace(tiles)


def _group_layout(
    source: KernelSource, attention: Attention, schedule: HopperAttentionSchedule
) -> tuple[GroupLayout, int]:
    """The layout, and how many tiles there are; 0 where that is not known."""
    shape, output = source.results[0].type.shape, attention.output
    rows, width = shape[output.order.index(output.row)], head_dims(attention)[1]
    extents = [shape[output.order.index(d)] for d in output.batch]
    return GroupLayout(schedule.groups, rows, width), prod(extents) if min(extents, default=1) > 0 else 0
