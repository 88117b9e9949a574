"""Choosing how many blocks share the keys of few queries on Hopper.

A tile of queries alone would keep one multiprocessor busy, and its keys and values are read once: what counts is how
many multiprocessors draw from memory, and what it takes to put together what each of them has. Blocks of a cluster do
that over shared memory, clusters over the workspace. The numbers are fitted to 688 kernels that were measured on an
H200 (bench/results/2026-11-24-h200.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

from mlc.passes.schedule.hopper_cost import TOGETHER

CLUSTERS = (1, 2, 4, 8)  # blocks of a cluster; 8 are as many as every chip has room for
# Clusters that share a tile. The last one has 32 reads under way; of other numbers keys are rarely multiples.
GROUP_COUNTS = (1, 2, 4, 8, 16, 32)
LONG, SHORT = 128, 64  # keys of a block's step
LONG_PART = 256  # keys of a block from which on it takes them by `LONG`
ELEMENT = 2  # bytes
NARROW = 64  # columns

# Nanoseconds.
LAUNCH = 2200
DOUBLING = 450  # of a cluster's blocks
READ = 35  # a part of 128 vectors of four numbers, by the last cluster
BOTH = 850  # that clusters that share a tile are of several blocks
# That clusters have not all read as much at a time, which the last one waits for: a part of the time, and the most.
UNLIKE, MOST_UNLIKE = 0.6, 1100
# Bytes in a nanosecond: of a multiprocessor, of one with rows of up to 64 columns, of all, and of all where they are
# no whole number of 64.
DRAWN, NARROW_DRAWN, ALL_DRAWN, UNEVEN = 61, 40, 4650, 4500
WHOLE, NEARLY = 64, 0.98
COMBINED = 128 * 4  # numbers that the threads of a block read at a time


@dataclass(frozen=True)
class Shares:
    """`split` blocks of a cluster and `groups` clusters that share the keys of a tile."""

    split: int
    groups: int


@dataclass(frozen=True)
class Work:
    """`tiles` of `rows` queries each with as many `keys`; `depth` and `width`: columns of keys and of values."""

    tiles: int
    rows: int
    keys: int
    depth: int
    width: int


def ranked_shares(work: Work, multiprocessors: int) -> list[Shares]:
    """What fits a chip, what is estimated to take the least time first."""
    found = []
    for split in CLUSTERS:
        room = int(multiprocessors * (TOGETHER[4] if split > 2 else 1)) // (work.tiles * split)
        most = min(room, ceil(work.keys / (split * SHORT)))
        found += [Shares(split, groups) for groups in GROUP_COUNTS if groups <= most]
    return sorted(found or [Shares(1, 1)], key=lambda shares: nanoseconds(work, shares))


def nanoseconds(work: Work, shares: Shares) -> float:
    """Time of a kernel whose blocks are all there at a time."""
    together = shares.split * shares.groups
    step = LONG if work.keys >= LONG_PART * together else SHORT
    keys = ceil(ceil(work.keys / step) / together) * step
    blocks = work.tiles * together
    drawn: float = min((DRAWN if max(work.depth, work.width) > NARROW else NARROW_DRAWN) * blocks, ALL_DRAWN)
    if blocks > WHOLE and blocks / (WHOLE * ceil(blocks / WHOLE)) < NEARLY:
        drawn = min(drawn, UNEVEN)
    read = keys * (work.depth + work.width) * ELEMENT * blocks / drawn
    time = LAUNCH + read + DOUBLING * log2(shares.split)
    if shares.groups > 1:
        time += READ * shares.groups * ceil(work.rows * work.width / COMBINED) + min(UNLIKE * read, MOST_UNLIKE)
        time += BOTH if shares.split > 1 else 0
    return time
