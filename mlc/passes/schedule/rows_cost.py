"""Choosing blocks, threads and what they keep for rows that groups of threads reduce.

What was measured on an H200 is in bench/results; the numbers here follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.analysis import Demand, is_contraction, mentions, reachable, reduction_demands
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.nvidia.rows import RowSchedule, is_cooperative, staged_bytes, staged_tensors
from mlc.passes.schedule.gpu_shapes import (
    ACCESS,
    Extent,
    bytes_of,
    dividing,
    power_of_two,
    product_of,
    reduced_extents,
    shape_of,
    widest_lanes,
)
from mlc.passes.schedule.matrices import rows_of
from mlc.targets.nvidia import NvidiaTarget

Schedule = dict[str, int | str]

WARP = 32
THREADS = 256  # of a block whose items are independent
LARGEST_GROUP = 1024
KEPT = 32  # elements of a row that a thread keeps
KEPT_OF_MORE = 16  # the same of a row that it cannot keep whole
REREADING = 640  # threads of a block that reads a row several times: they need more registers
LONGEST_IN_LINE = 128  # accesses of a thread that reads each once
KEPT_OF_SHARED = 64  # elements of a thread that has few others beside it
WIDE_LANES = 4  # of elements of four bytes; narrower ones have more
LINE = 128  # bytes of a cache line: neighbours' accesses make whole ones
REGISTERS = 65536  # of a multiprocessor
MULTIPROCESSORS = 132
RESIDENT = MULTIPROCESSORS * 1024  # threads that keep the chip busy
AT_ONCE = 48 * RESIDENT  # elements of rows that are under way together, or nearly so
FEW_ROWS = 4 * MULTIPROCESSORS  # rows that leave most of the chip idle with a warp each
FEW_THREADS = 128  # of a block that has a short row to itself: more of them wait for each other longer
MOST_SHARING = 8  # blocks of a cluster: more are not to be had everywhere
SHARING_THREADS = 128  # of each of them: several blocks of a multiprocessor are at different rows
SHARED_ROW = 4096  # elements that are worth a block of their own where others would be idle
MOST_STAGED = 6  # blocks of a multiprocessor with a row in shared memory each
STAGED, STAGED_ODD = 1024, 640  # threads of these: odd rows take more registers
STAGED_WEIGHTS = 128  # fewer of them where there are weights
STAGED_OTHER = 256  # fewer of them for each further tensor
RESERVED = 2048  # bytes of a block's shared memory beside what it has of rows


def choose_rows(source: KernelSource, target: NvidiaTarget) -> Schedule | None:
    """The schedule of a kernel whose reductions a group of threads can share; None for other kernels."""
    results = source.results
    reductions = [op for op in reachable(results) if op.name == "linalg.generic" and is_reduction(op)]
    if not reductions or not all(is_cooperative(op) for op in reductions):
        return None
    demands = reduction_demands(results)
    found = [defining_op(v) for v in [*results, *(d.value for d in demands)]]
    if any(op not in found for op in reductions):
        return None  # reached through a view: at coordinates that are not known here
    shape = shape_of(results[0].type)
    first = _row_dims(results, demands, len(shape))
    lengths = [reduced_extents(op) for op in reductions]
    boxes = [*lengths, shape[first:]] if first < len(shape) else lengths
    rows = rows_of(source) if None in shape[:first] else product_of(shape[:first])
    lengths_known = [product_of(box) for box in boxes]
    has_contraction = any(is_contraction(op) for op in reductions)
    row = None if has_contraction else _only_dimension(boxes)
    inner = max(first, len(shape) - 1) if first < len(shape) else first
    rereads = first < len(shape) or len(reductions) > 1
    staged = _staged(source, inner, row, rows, target) if row is not None and rereads else None
    if staged is not None:
        return staged
    # Where all rows are under way at a time, how long one takes decides: neighbours' reads of weights make whole lines.
    at_once = rows is not None and rows > FEW_ROWS and rows * max(k or 0 for k in lengths_known) <= AT_ONCE
    widest = widest_lanes(source, of_all=at_once, of_inputs=first == len(shape))
    lanes = dividing(widest, [box[-1] for box in boxes])
    is_odd = lanes < widest and row is not None and widest > WIDE_LANES and 4 * widest <= row <= KEPT * LARGEST_GROUP
    is_odd = is_odd and _reads_whole_rows(source)
    lanes = widest if is_odd else lanes
    together = WARP if has_contraction else min(WARP, LINE // (lanes * bytes_of(results[0])))
    accessed = [k + lanes - 1 if k and is_odd else k for k in lengths_known]
    shares = _Rows(rows, lanes, together, rereads).shares(accessed, target.has_clusters)
    if shares["group"] == 1 or has_contraction and shares["group"] < WARP:
        return None
    odd = {"first": inner, "odd": 1} if is_odd else {}
    return {"template": "rows", "first": first, "lanes": lanes, **shares, **odd}


def _reads_whole_rows(source: KernelSource) -> bool:
    """Is every element read at the coordinates of a result, none shifted or turned? Accesses of odd rows begin in front
    of them and end behind them."""
    generics = [op for op in reachable(source.results) if op.name == "linalg.generic"]
    plain = (ir.AffineDimExpr, ir.AffineConstantExpr)
    return all(
        isinstance(expr, plain)
        for op in generics
        for number in range(len(op.operands))
        for expr in operand_map(op, number).results
    )


def _only_dimension(boxes: Sequence[Sequence[Extent]]) -> int | None:
    """The length of rows that are one dimension, the last one, of everything."""
    moving = {tuple(e for e in box if e != 1) for box in boxes}
    if len(moving) != 1 or any(box[-1] == 1 for box in boxes):
        return None
    row = moving.pop()
    return row[0] if len(row) == 1 else None


def _staged(source: KernelSource, first: int, row: int, rows: Extent, target: NvidiaTarget) -> Schedule | None:
    """The schedule of many rows that are too long for registers: blocks have them in shared memory, two or more of them
    on a multiprocessor, so that one computes while the next one is read. None for others."""
    lanes = widest_lanes(source)
    longest = KEPT * LARGEST_GROUP if lanes <= WIDE_LANES else KEPT * LARGEST_GROUP // 2
    if row <= longest or rows is not None and rows <= MULTIPROCESSORS:
        return None
    is_odd = row % lanes != 0
    if is_odd and not _reads_whole_rows(source):
        return None
    tensors = staged_tensors(source, RowSchedule(first, lanes, WARP, WARP))
    if any(bytes_of(t) * lanes != ACCESS for t in tensors):
        return None
    others = sum(any(True for _ in t.uses) for t in source.tensors if t not in [*tensors, *source.destinations])
    held = (STAGED_ODD if is_odd else STAGED) - (len(tensors) - 1) * STAGED_OTHER - min(1, others) * STAGED_WEIGHTS
    room, most = target.shared_memory_per_block, MOST_SHARING if target.has_clusters else 1
    clusters = [1 << n for n in range(most.bit_length())]
    choices = [(cluster, blocks) for cluster in clusters for blocks in range(MOST_STAGED, 1, -1)]
    for cluster, blocks in [*choices, (1, 1)]:
        threads = min(LARGEST_GROUP, held // blocks // WARP * WARP)
        schedule = RowSchedule(first, lanes, threads, threads, 0, cluster, int(is_odd), 1)
        needed = staged_bytes(source, schedule)
        if 0 < needed <= room and blocks * (needed + RESERVED) <= room + RESERVED:
            shared = {"cluster": cluster} if cluster > 1 else {}
            shape = {"first": first, "lanes": lanes, "group": threads, "threads": threads, "blocks": blocks}
            return {"template": "rows", **shape, "kept": 0, "staged": 1, **shared, **({"odd": 1} if is_odd else {})}
    return None


def _row_dims(results: Sequence[ir.Value], demands: Sequence[Demand], rank: int) -> int:
    """How many leading dimensions the reductions are needed at."""
    if any(is_reduction(op) for op in map(defining_op, results) if op is not None and op.name == "linalg.generic"):
        return rank
    used = [d for d in range(rank) if any(mentions(e, d) for demand in demands for e in demand.exprs)]
    return used[-1] + 1 if used else 0


@dataclass(frozen=True)
class _Rows:
    """Rows that groups of threads reduce, by accesses of `lanes` elements, of which `together` neighbours at least
    belong to a row; does more than one reduction or result need an element?"""

    rows: Extent
    lanes: int
    together: int
    rereads: bool

    def shares(self, lengths: Sequence[Extent], has_clusters: bool) -> dict[str, int]:
        """Blocks and threads for a row, and how many accesses each thread keeps.

        Rows that many threads can hold between them are kept; where there are fewer rows than keep the chip busy, more
        threads with less to do are done sooner.
        """
        known = [length for length in lengths if length is not None]
        if len(known) != len(lengths):
            group = LARGEST_GROUP if self.rows is not None and self.rows <= FEW_ROWS else WARP
            return {"group": group, "threads": max(group, THREADS // 2), "kept": 0}
        cluster = self._sharing(max(known)) if has_clusters else 1
        accesses = -(-max(known) // (self.lanes * cluster))
        if cluster == 1 and self._is_read_once(accesses):
            group = LARGEST_GROUP // 2
            return {"group": group, "threads": group, "kept": -(-accesses // group), "blocks": 2}
        kept = self._kept(accesses) if cluster == 1 else self._kept_of_shared(accesses)
        group = min(LARGEST_GROUP, _whole(accesses, kept, self.together))
        if self.rereads and kept * LARGEST_GROUP < accesses:
            group = REREADING
        threads, kept = group if group > WARP else THREADS // 2, min(kept, -(-accesses // group))
        elements = kept * self.lanes
        registers = 44 + elements if cluster > 1 else self._registers(elements)
        blocks = max(1, REGISTERS // (threads * registers))
        shared = {"cluster": cluster} if cluster > 1 else {}
        return {"group": group, "threads": threads, "kept": kept, "blocks": blocks, **shared}

    def _is_read_once(self, accesses: int) -> bool:
        """Does nothing need an element of a long row again, each of which is an access? Those of a thread are in line
        then, so that the loads of many are under way, and none but the last tests for the end."""
        short = KEPT * LARGEST_GROUP
        return not self.rereads and self.lanes == 1 and short < accesses <= LONGEST_IN_LINE * LARGEST_GROUP // 2

    def _registers(self, elements: int) -> int:
        """Registers of a thread that keeps so many: rows of two-byte elements have half of the bytes under way, and
        need more threads for as many."""
        return 32 + 2 * elements if self.lanes <= WIDE_LANES else 40 + elements

    def _sharing(self, length: int) -> int:
        """Blocks that share a row: where one could not keep it, or few rows would leave most of the chip idle."""
        if length > KEPT * LARGEST_GROUP and self.rereads:
            return MOST_SHARING
        cluster = 1
        while cluster < MOST_SHARING and (self.rows or MULTIPROCESSORS) * cluster * 2 <= MULTIPROCESSORS:
            if length < 2 * cluster * SHARED_ROW:
                break
            cluster *= 2
        return cluster

    def _kept_of_shared(self, accesses: int) -> int:
        """Accesses that each thread of a block keeps of its part of a row: as many as registers allow where there are
        many rows, of which several should be under way on each multiprocessor."""
        few = self.rows is not None and self.rows * MOST_SHARING <= MULTIPROCESSORS
        kept = -(-accesses // (2 * SHARING_THREADS if few else SHARING_THREADS))
        if kept * self.lanes > KEPT_OF_SHARED:
            kept = KEPT // self.lanes
        return kept if kept * LARGEST_GROUP >= accesses else max(1, KEPT // 2 // self.lanes)

    def _kept(self, accesses: int) -> int:
        """Accesses that each thread of a block keeps."""
        lanes, kept = self.lanes, 1
        many = self.rows is None or self.rows > MULTIPROCESSORS
        if lanes > WIDE_LANES and LARGEST_GROUP < accesses <= 2 * LARGEST_GROUP and many:
            return KEPT_OF_SHARED // lanes
        while kept * lanes < KEPT and kept * LARGEST_GROUP < accesses:
            kept += 1

        def has_threads_to_spare() -> bool:
            group = _whole(accesses, kept, self.together)
            if self.rows is not None and self.rows <= MULTIPROCESSORS:
                return group > FEW_THREADS and kept * lanes < KEPT // 2
            return self.rows is None or self.rows * group > RESIDENT

        while 2 * kept * lanes <= KEPT and accesses > kept and has_threads_to_spare():
            kept *= 2
        return kept if kept * LARGEST_GROUP >= accesses else max(1, KEPT_OF_MORE // lanes)


def _whole(accesses: int, kept: int, together: int) -> int:
    """The smallest group that does `accesses` with `kept` for each thread."""
    needed = -(-accesses // kept)
    if needed > WARP:
        return -(-needed // WARP) * WARP
    return power_of_two(max(needed, min(together, accesses)))
