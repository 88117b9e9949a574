"""Estimating the time of columns that threads keep in registers.

A kernel is as slow as the slowest of three: memory, the instructions of its threads, and its blocks' way from the first
load to the last store, as they neither read nor write while their parts of a reduction meet. Few elements leave
room for many threads on the way, but each of them has to meet the others. The numbers are fitted, not counted, to 213
times that were measured on an H200 (bench/results/2026-11-24-h200.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

from mlc.kernels.nvidia.column_shares import LINE, ColumnShares
from mlc.kernels.nvidia.threads import WARP

REGISTERS, THREADS, BLOCKS = 65536, 2048, 32  # of a multiprocessor
HELD = 31  # registers of a thread beside what it keeps
REDUCTIONS = 2
MOST_READ = 4  # parts of a column that every thread of it reads
FEW_WAVES = 3  # of which the last one is as long as the others

# Microseconds.
LAUNCH = 3.0
BESIDE = 0.077  # of what is not the slowest, how much it takes
WAY = 3.2  # of a block, from a load to a store,
ACCESS_WAY = 0.054  # for each access of a thread,
STEP_WAY = 0.0042  # and for each instruction of a meeting that waits for others

# Instructions of a thread.
THREAD = 13
ACCESS_COST, LANE_COST = 1.1, 0.1  # of an access and of each of its elements
SHUFFLE, SHARED = 1.6, 5.2  # exchanges of a warp, accesses to shared memory

ISSUED = 4 * 1700  # instructions of warps in a microsecond
MEMORY = 3750e3  # bytes in a microsecond, for a multiprocessor each of `ALL`
ALL = 132
NARROW = 64  # bytes of a row below which memory delivers more than is wanted,
WASTED, HALF_WASTED = 1.23, 1.05  # so much more, and where a row is no line


@dataclass(frozen=True)
class ColumnWork:
    """`outer` matrices of `inner` columns of `depth` elements of `size` bytes in each of `tensors`."""

    outer: int
    depth: int
    inner: int
    size: int
    tensors: int


def microseconds(work: ColumnWork, shares: ColumnShares, multiprocessors: int) -> float:
    """Time of a kernel."""
    columns = ceil(work.inner / (shares.lanes * shares.width))
    blocks = ceil(work.outer * columns * shares.width * shares.split / shares.threads)
    instructions, steps = _meeting(shares)

    accessed = (work.tensors + 1) * work.outer * work.depth * work.inner * work.size * _wasted(work, shares)
    memory = accessed / (MEMORY * multiprocessors / ALL)

    accesses = shares.kept * work.tensors
    instructions += THREAD + accesses * (ACCESS_COST + LANE_COST * shares.lanes)
    issue = blocks / multiprocessors * instructions * shares.threads / WARP / ISSUED

    registers = HELD + accesses * shares.lanes * max(1, work.size // 4)
    together = min(REGISTERS // (shares.threads * registers), THREADS // shares.threads, BLOCKS)
    waves = blocks / (multiprocessors * max(1, together))
    way = (ceil(waves) if waves < FEW_WAVES else waves) * (WAY + ACCESS_WAY * accesses + STEP_WAY * steps)

    times = memory, issue, way
    return LAUNCH + max(times) + BESIDE * (sum(times) - max(times))


def _wasted(work: ColumnWork, shares: ColumnShares) -> float:
    """How much memory reads for what threads read of a row."""
    row = LINE if shares.split == 1 else shares.width * shares.lanes * work.size
    return WASTED if row < NARROW else HALF_WASTED if row < LINE else 1.0


def _meeting(shares: ColumnShares) -> tuple[float, float]:
    """A thread's instructions for all reductions, and how many of them wait for one another: `column_parts` says how
    threads' parts meet."""
    if shares.split == 1:
        return 0, 0
    halves = max(0.0, log2(WARP / shares.width))
    instructions, steps = halves * shares.lanes * SHUFFLE, halves
    parts = shares.threads // max(shares.width, WARP)
    if shares.width * shares.split > WARP and (parts <= MOST_READ or parts & (parts - 1)):
        instructions += shares.lanes * (1 + parts) * SHARED
        steps += 3
    elif shares.width * shares.split > WARP:
        takes = ceil(shares.width * shares.lanes * parts / shares.threads)
        instructions += (2 * shares.lanes + takes * (log2(parts) + 3)) * SHARED
        steps += 4 + takes + log2(parts)
    return REDUCTIONS * instructions, REDUCTIONS * steps
