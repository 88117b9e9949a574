"""Choosing templates and parameters for GPU kernels from shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from mlc.kernels.common.accesses import input_accesses, read_dim
from mlc.kernels.common.analysis import (
    Demand,
    can_flatten,
    is_contraction,
    mentions,
    reachable,
    reduction_demands,
    root_operation,
)
from mlc.kernels.common.attention import find_attention
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.common.reduce import combiner, lane_dim
from mlc.kernels.nvidia.rows import is_cooperative
from mlc.passes.schedule.ampere_attention_cost import choose_attention as choose_ampere_attention
from mlc.passes.schedule.ampere_cost import choose_ampere
from mlc.passes.schedule.depthwise_cost import choose_depthwise
from mlc.passes.schedule.hopper_attention_cost import choose_attention
from mlc.passes.schedule.hopper_cost import choose_hopper
from mlc.passes.schedule.matrices import rows_of
from mlc.targets.nvidia import NvidiaTarget

Extent = int | None  # None: known at run time only
Schedule = dict[str, int | str]

ACCESS = 16  # bytes of the widest access of a thread
WARP = 32
THREADS = 256  # of a block whose items are independent
LARGEST_GROUP = 1024
KEPT = 32  # elements of a row that a thread keeps
KEPT_OF_MORE = 24  # the same of a row that it cannot keep whole
MOST_TOGETHER = 8  # rows of a thread whose accesses are narrow
CACHED = 64 * 1024  # bytes that stay near a multiprocessor while other data pass
FEW = 16  # times as many elements as a tensor of which each is read often
LINE = 128  # bytes of a cache line: neighbours' accesses make whole ones
MULTIPROCESSORS = 132
RESIDENT = MULTIPROCESSORS * 1024  # threads that keep the chip busy
REGISTERS = 65536  # of a multiprocessor
SHARED_MEMORY = 48 * 1024  # bytes that a block may have without asking for more
BUSY = MULTIPROCESSORS * 14 // 10  # blocks of a contraction that keep the chip busy
ASSUMED = 16  # for an unknown extent of a contraction: sharing tiles in vain costs less than not sharing them
MOST_SPLIT = 64  # threads that share columns: four neighbours read whole sectors of the memory
FEW_COLUMNS = 6 * MULTIPROCESSORS  # accesses across a reduction that make enough blocks with whole cache lines each
LINES_WANTED = MULTIPROCESSORS * 7 // 16  # blocks that read whole lines and keep the memory busy
FEW_ROWS = 4 * MULTIPROCESSORS  # rows that leave most of the chip idle with a warp each
FEW_THREADS = 128  # of a block that has a short row to itself: more of them wait for each other longer
MOST_SHARING = 8  # blocks of a cluster: more are not to be had everywhere
SHARING_THREADS = 128  # of each of them: several blocks of a multiprocessor are at different rows
KEPT_OF_SHARED = 64  # elements of a thread that has few others beside it
SHARED_ROW = 4096  # elements that are worth a block of their own where others would be idle


def choose(source: KernelSource, target: NvidiaTarget, precision: str) -> Schedule:
    """The schedule of a kernel for `target`: `template` and its parameters; `precision` is that of the operands of
    contractions of f32."""
    attention = find_attention(source)
    if attention is not None:
        if not target.has_wgmma:
            return choose_ampere_attention(attention, target)
        return choose_attention(source, attention, target)
    root = root_operation(source)
    if root.name.startswith("mlc.") and root.name != "mlc.constant":
        return {"template": root.name.removeprefix("mlc."), "threads": WARP}
    tiled = None
    if is_contraction(root):
        choose_cores = choose_hopper if target.has_wgmma else choose_ampere
        tiled = choose_cores(source, root, target, precision) or choose_depthwise(root, target)
        tiled = tiled or _contraction(source, root)
    return tiled or _rows(source, target) or _columns(source) or _transposed(source) or _elementwise(source)


def _shape(type_: ir.RankedTensorType) -> list[Extent]:
    return [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def _known(extents: Sequence[Extent]) -> int | None:
    return None if any(e is None for e in extents) else prod(e for e in extents if e is not None)


def _at_least(extents: Sequence[Extent], assumed: int) -> int:
    """The product where it is known; else that of the known extents, but no less than `assumed`."""
    known = prod(e for e in extents if e is not None)
    return known if all(e is not None for e in extents) else max(known, assumed)


def _bytes(value: ir.Value) -> int:
    return (value.type.element_type.width + 7) // 8


def _widest_lanes(source: KernelSource) -> int:
    """Elements whose widest tensor fills one access. What is smaller than the results by much, as the weights of a
    norm, comes from the cache by as many accesses as it takes."""
    read = [t for t in source.tensors if any(True for _ in t.uses)]
    all_known = [_known(_shape(t.type)) for t in source.tensors]
    most = max((k for k in all_known if k is not None), default=0) if None not in all_known else None
    large = [t for t, k in zip(source.tensors, all_known, strict=True) if t in read and not _is_few(k, most)]
    return max(1, ACCESS // max(_bytes(t) for t in [*large, *source.results]))


def _is_few(count: int | None, most: int | None) -> bool:
    """Are `count` elements few beside the largest tensor's `most` (None: known at run time only)?"""
    return count is not None and (count * FEW <= most if most is not None else count * 4 <= CACHED)


def _dividing(lanes: int, extents: Sequence[Extent]) -> int:
    """The largest power of two up to `lanes` that divides all `extents`; 1 when one is unknown."""
    while lanes > 1 and any(e is None or e % lanes for e in extents):
        lanes //= 2
    return lanes


# -- elementwise -------------------------------------------------------------------------------------------------------


def _elementwise(source: KernelSource) -> Schedule:
    results = source.results
    shape = _shape(results[0].type)
    first, last = _flat_group(results, shape)
    across = _across_rows(source, shape, last)
    if across > 1:
        return {"template": "elementwise", "lanes": across, "first": 0, "last": last, "flat": 1, "threads": THREADS}
    inner = _known(shape[first : last + 1])
    most = lanes = _widest_lanes(source)
    if first > last or not _vectorizable(source):
        lanes = most = 1
    elif any(e != 1 for e in shape[:first]):
        lanes = 1 if inner is None else _dividing(lanes, [inner])  # rows of unknown length start anywhere
    rows = _rows_together(source, shape[:first], most // lanes)
    return {"template": "elementwise", "lanes": lanes, "first": first, "last": last, "rows": rows, "threads": THREADS}


def _across_rows(source: KernelSource, shape: Sequence[Extent], last: int) -> int:
    """Lanes of vectors that go on in the next row, where rows are no multiples of vectors and there are many of them;
    else 1. What does not lie as the results do must be small enough to be in the cache."""
    lanes, columns = _widest_lanes(source), shape[last] if shape else None
    accesses = input_accesses(source.results)
    if columns is None or columns < lanes or columns % lanes == 0 or accesses is None:
        return 1
    if prod(e or ASSUMED for e in shape) < RESIDENT * lanes:
        return 1
    here = tuple(ir.AffineExpr.get_dim(i) for i in range(len(shape)))
    others = [a.type for a, found in accesses.items() if found != {here}]
    return lanes if all((_known(_shape(t)) or CACHED + 1) * 4 <= CACHED for t in others) else 1


def _rows_together(source: KernelSource, outer: Sequence[Extent], narrow: int) -> int:
    """Rows of a thread: where accesses are narrow, several of them are under way at a time; not in kernels with loops,
    which have enough to do."""
    if not outer or outer[-1] is None or any(is_reduction(op) for op in reachable(source.results) if _is_generic(op)):
        return 1
    enough = prod(e or 1 for e in outer) // (BUSY * 2)
    return max(1, min(2 * narrow if narrow > 1 else 1, MOST_TOGETHER, outer[-1], _power(enough + 1) // 2))


def _is_generic(op: ir.Operation) -> bool:
    return op.name == "linalg.generic"


def _flat_group(results: Sequence[ir.Value], shape: Sequence[Extent]) -> tuple[int, int]:
    """The trailing dimensions that flatten into one, as (first, last); (0, -1) for a scalar."""
    if not shape:
        return 0, -1
    moving = [i for i, e in enumerate(shape) if e != 1]
    last = moving[-1] if moving else len(shape) - 1
    first = last
    while first > 0 and can_flatten(results, first - 1, last):
        first -= 1
    return first, last


def _vectorizable(source: KernelSource) -> bool:
    """Position-carrying reductions along a contiguous dimension run as scalar loops."""
    reductions = [op for op in reachable(source.results) if op.name == "linalg.generic" and is_reduction(op)]
    return not any(len(op.results) > 1 and lane_dim(op) is not None for op in reductions)


# -- columns -----------------------------------------------------------------------------------------------------------


def _columns(source: KernelSource) -> Schedule | None:
    """The schedule of a kernel with too few results for its reductions across memory; None for other kernels."""
    results = source.results
    reductions = [op for op in reachable(results) if op.name == "linalg.generic" and is_reduction(op)]
    if not reductions or any(is_contraction(op) or combiner(op) is None for op in reductions):
        return None
    shape = _shape(results[0].type)
    if not shape or not _over_the_domain(results, reductions):
        return None
    axis = max((i for i, e in enumerate(shape) if e != 1), default=len(shape) - 1)
    lanes = _dividing(_widest_lanes(source), [shape[axis]])
    depth = max(_at_least(_reduction_shape(op), 8 * ASSUMED) for op in reductions)
    accesses = prod(e or 1 for e in shape) // lanes
    split = 1
    while depth >= WARP and split < MOST_SPLIT and depth >= 4 * split and accesses * split < BUSY * THREADS:
        split *= 2
    if split == 1:
        return None
    threads = THREADS
    if split == MOST_SPLIT and depth >= 8 * split and accesses * split < BUSY * 2 * THREADS:
        split, threads = (split if accesses >= FEW_COLUMNS else 2 * split), 2 * THREADS
        # Half as many blocks that read whole lines are done sooner.
        threads *= 2 if accesses < FEW_COLUMNS and accesses * split >= LINES_WANTED * 2 * threads else 1
    return {"template": "columns", "first": axis, "last": axis, "lanes": lanes, "split": split, "threads": threads}


def _over_the_domain(results: Sequence[ir.Value], reductions: Sequence[ir.Operation]) -> bool:
    """Is every reduction a result, or needed at the coordinates of the results alone?"""
    rank = results[0].type.rank
    here = tuple(ir.AffineExpr.get_dim(i) for i in range(rank))
    demands = reduction_demands(results)
    found = [defining_op(v) for v in [*results, *(d.value for d in demands)]]
    return all(op in found for op in reductions) and all(d.exprs == here for d in demands)


# -- transpositions ----------------------------------------------------------------------------------------------------


def _transposed(source: KernelSource) -> Schedule | None:
    """The schedule of a kernel that reads an input across the results' contiguous dimension; None for other kernels."""
    shape = _shape(source.results[0].type)
    write = max((i for i, e in enumerate(shape) if e != 1), default=-1)
    accesses = input_accesses(source.results)
    if accesses is None or write < 0:
        return None
    for number, argument in enumerate(source.block.arguments):
        read = read_dim(argument, accesses.get(argument, set()), write)
        if read is not None and all(e is None or e >= WARP for e in (shape[read], shape[write])):
            tile = 2 * WARP if all(e is None or e > WARP for e in (shape[read], shape[write])) else WARP
            dims = {"read_dim": read, "write_dim": write}
            lanes = _dividing(max(1, 8 // _bytes(argument)) if _bytes(argument) < 4 else 1, [shape[read], shape[write]])
            lanes = min(lanes, 4)
            return {
                "template": "transpose", "argument": number, **dims, "tile": tile, "threads": THREADS, "lanes": lanes
            }  # fmt: skip
    return None


# -- rows --------------------------------------------------------------------------------------------------------------


def _rows(source: KernelSource, target: NvidiaTarget) -> Schedule | None:
    """The schedule of a kernel whose reductions a group of threads can share; None for other kernels."""
    results = source.results
    reductions = [op for op in reachable(results) if op.name == "linalg.generic" and is_reduction(op)]
    if not reductions or not all(is_cooperative(op) for op in reductions):
        return None
    demands = reduction_demands(results)
    found = [defining_op(v) for v in [*results, *(d.value for d in demands)]]
    if any(op not in found for op in reductions):
        return None  # reached through a view: at coordinates that are not known here
    shape = _shape(results[0].type)
    first = _row_dims(results, demands, len(shape))
    lengths = [_reduction_shape(op) for op in reductions]
    boxes = [*lengths, shape[first:]] if first < len(shape) else lengths
    widest = _widest_lanes(source)
    lanes = _dividing(widest, [box[-1] for box in boxes])
    has_contraction = any(is_contraction(op) for op in reductions)
    rows = rows_of(source) if None in shape[:first] else _known(shape[:first])
    known = [_known(box) for box in boxes]
    is_odd = lanes < widest and not has_contraction and _may_be_odd(boxes, widest, rows, target)
    lanes = widest if is_odd else lanes
    row = _Rows(rows, lanes, WARP if has_contraction else min(WARP, LINE // (lanes * _bytes(results[0]))))
    shares = row.shares([k + lanes - 1 if k and is_odd else k for k in known], target.has_clusters)
    if shares["group"] == 1 or has_contraction and shares["group"] < WARP:
        return None
    if is_odd:
        first = max(first, len(shape) - 1) if first < len(shape) else first
    return {"template": "rows", "first": first, "lanes": lanes, **shares, **({"odd": 1} if is_odd else {})}


def _may_be_odd(boxes: Sequence[Sequence[Extent]], widest: int, rows: Extent, target: NvidiaTarget) -> bool:
    """May accesses of rows begin where those of the whole tensor do, and is it worth it? Elements of four bytes keep
    the memory as busy one by one, but for long rows. All of a row is kept."""
    moving = {tuple(e for e in box if e != 1) for box in boxes}
    if len(moving) != 1 or any(box[-1] == 1 for box in boxes):
        return False
    row, most = moving.pop(), KEPT * LARGEST_GROUP
    if len(row) != 1 or row[0] is None or row[0] < 4 * widest:
        return False
    if row[0] + widest > most * (MOST_SHARING if target.has_clusters else 1):
        return False
    return widest >= 8 or row[0] > most and (rows is None or rows > MULTIPROCESSORS)


def _row_dims(results: Sequence[ir.Value], demands: Sequence[Demand], rank: int) -> int:
    """How many leading dimensions the reductions are needed at."""
    if any(is_reduction(op) for op in map(defining_op, results) if op is not None and op.name == "linalg.generic"):
        return rank
    used = [d for d in range(rank) if any(mentions(e, d) for demand in demands for e in demand.exprs)]
    return used[-1] + 1 if used else 0


def _reduction_shape(op: ir.Operation) -> list[Extent]:
    """Extents of the reduction dimensions."""
    extents: dict[int, Extent] = {}
    for operand in range(len(op.operands)):
        shape = _shape(op.operands[operand].type)
        for position, expr in enumerate(operand_map(op, operand).results):
            if isinstance(expr, ir.AffineDimExpr) and extents.get(expr.position) is None:
                extents[expr.position] = shape[position]
    kinds = ["reduction" in str(t) for t in op.attributes["iterator_types"]]
    return [extents.get(d) for d, is_reduced in enumerate(kinds) if is_reduced]


@dataclass(frozen=True)
class _Rows:
    """Rows that groups of threads reduce, by accesses of `lanes` elements, of which `together` neighbours at least
    belong to a row."""

    rows: Extent
    lanes: int
    together: int

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
        kept = self._kept(accesses) if cluster == 1 else self._kept_of_shared(accesses)
        group = min(LARGEST_GROUP, _whole(accesses, kept, self.together))
        threads, kept = group if group > WARP else THREADS // 2, min(kept, -(-accesses // group))
        elements = kept * self.lanes
        registers = 44 + elements if cluster > 1 else self._registers(elements)
        blocks = max(1, REGISTERS // (threads * registers))
        shared = {"cluster": cluster} if cluster > 1 else {}
        return {"group": group, "threads": threads, "kept": kept, "blocks": blocks, **shared}

    def _registers(self, elements: int) -> int:
        """Registers of a thread that keeps so many: rows of two-byte elements have half of the bytes under way, and
        need more threads for as many."""
        return 32 + 2 * elements if self.lanes <= 4 else 40 + elements

    def _sharing(self, length: int) -> int:
        """Blocks that share a row: where one could not keep it, or few rows would leave most of the chip idle."""
        if length > KEPT * LARGEST_GROUP:
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
    return _power(max(needed, min(together, accesses)))


# -- contractions ------------------------------------------------------------------------------------------------------


def _contraction(source: KernelSource, root: ir.Operation) -> Schedule | None:
    """The register tile of a contraction; None when no operand is contiguous along the output's last dimension."""
    shape = _shape(root.results[0].type)
    out_map = operand_map(root, len(root.operands) - 1)
    if not shape or not all(isinstance(e, ir.AffineDimExpr) for e in out_map.results):
        return None
    order = [ir.AffineDimExpr(e).position for e in out_map.results]
    axis = max((i for i, e in enumerate(shape) if e != 1), default=len(shape) - 1)
    operand = next((i for i in range(2) if _unit_stride(root, i, order[axis])), None)
    if operand is None:
        return None
    first, last = _row_group(source, root, operand, order, shape, axis)
    rows = _at_least(shape[first : last + 1], ASSUMED) if last >= 0 else 1
    lanes = _dividing(_widest_lanes(source), [shape[axis]])
    others = [e for i, e in enumerate(shape) if i != axis and not first <= i <= last]
    depth = _reduction_shape(root)[-1]
    tile = _register_tile(rows, shape[axis], depth, lanes, prod(e or 1 for e in others), _bytes(root.results[0]))
    return {
        "template": "contraction",
        "vector_dim": axis,
        "row_first": first,
        "row_last": last,
        **tile,
        "lanes": lanes,
        "unroll": _unroll(root),
        "threads": THREADS,
        "blocks": 2,
    }


def _unit_stride(root: ir.Operation, operand: int, dim: int) -> bool:
    exprs = list(operand_map(root, operand).results)
    last = exprs[-1] if exprs else None
    inner = isinstance(last, ir.AffineDimExpr) and last.position == dim
    return inner and not any(mentions(e, dim) for e in exprs[:-1])


def _row_group(
    source: KernelSource, root: ir.Operation, operand: int, order: Sequence[int], shape: Sequence[Extent], axis: int
) -> tuple[int, int]:
    """Output dimensions that `operand` does not have and that flatten into one: (first, last), (-1, -2) for none."""

    def is_free(dim: int) -> bool:
        return not any(mentions(e, order[dim]) for e in operand_map(root, operand).results)

    free = [i for i, e in enumerate(shape) if i != axis and e != 1 and is_free(i)]
    if not free:
        return -1, -2
    first = last = free[-1]
    while first > 0 and first - 1 != axis and is_free(first - 1) and can_flatten(source.results, first - 1, last):
        first -= 1
    return first, last


def _register_tile(rows: int, columns: Extent, depth: Extent, lanes: int, others: int, width: int) -> Schedule:
    """The tile of a thread and of a block: large tiles, and threads that share them where there are too few.

    `others` is the number of matrices of `rows` x `columns` x `depth`, `width` the size of an accumulator in bytes.
    """
    columns = ASSUMED if columns is None else columns
    depth = 8 * ASSUMED if depth is None else depth
    accesses = -(-columns // lanes)
    wide = max(1, 4 // lanes)  # without wide accesses a thread takes several columns instead
    height = min(8, _power(rows))
    block_columns = min(WARP, _power(-(-accesses // wide)))
    split = 1

    def blocks() -> int:
        block_rows = THREADS // (block_columns * split)
        return others * -(-rows // (height * block_rows)) * -(-accesses // (wide * block_columns))

    def is_deep() -> bool:
        return depth >= 16 * split

    while blocks() < BUSY and is_deep() and block_columns * split < THREADS:
        split *= 2
    while blocks() < BUSY and is_deep() and block_columns > 8:
        block_columns, split = block_columns // 2, split * 2
    while split > 1 and height * wide * lanes * width * THREADS > SHARED_MEMORY:
        height //= 2
    return {"rows": height, "columns": wide, "block_columns": block_columns, "split": split}


def _power(extent: int) -> int:
    """The smallest power of two that is not below `extent`."""
    return 1 << max(0, extent - 1).bit_length()


def _unroll(root: ir.Operation) -> int:
    """Unrolling of the innermost reduction dimension: a divisor of its extent."""
    extent = _reduction_shape(root)[-1]
    return 1 if extent is None else next(u for u in (4, 2, 1) if extent % u == 0)
