"""Choosing templates and parameters for GPU kernels from shapes."""

from __future__ import annotations

from collections.abc import Sequence
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
LINE = 128  # bytes of a cache line: neighbours' accesses make whole ones
MULTIPROCESSORS = 132
RESIDENT = MULTIPROCESSORS * 1024  # threads that keep the chip busy
REGISTERS = 65536  # of a multiprocessor
SHARED_MEMORY = 48 * 1024  # bytes that a block may have without asking for more
BUSY = MULTIPROCESSORS * 14 // 10  # blocks of a contraction that keep the chip busy
ASSUMED = 16  # for an unknown extent of a contraction: sharing tiles in vain costs less than not sharing them
MOST_SPLIT = 64  # threads that share columns: four neighbours read whole sectors of the memory
FEW_COLUMNS = 6 * MULTIPROCESSORS  # accesses across a reduction that make enough blocks with whole cache lines each
FEW_ROWS = 4 * MULTIPROCESSORS  # rows that leave most of the chip idle with a warp each


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
    return tiled or _rows(source) or _columns(source) or _transposed(source) or _elementwise(source)


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
    """Elements whose widest tensor fills one access."""
    read = [t for t in source.tensors if any(True for _ in t.uses)]
    return max(1, ACCESS // max(_bytes(t) for t in [*read, *source.results]))


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
    inner = _known(shape[first : last + 1])
    most = lanes = _widest_lanes(source)
    if first > last or not _vectorizable(source):
        lanes = most = 1
    elif any(e != 1 for e in shape[:first]):
        lanes = 1 if inner is None else _dividing(lanes, [inner])  # rows of unknown length start anywhere
    rows = _rows_together(source, shape[:first], most // lanes)
    return {"template": "elementwise", "lanes": lanes, "first": first, "last": last, "rows": rows, "threads": THREADS}


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


def _rows(source: KernelSource) -> Schedule | None:
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
    lanes = _dividing(_widest_lanes(source), [box[-1] for box in boxes])
    has_contraction = any(is_contraction(op) for op in reductions)
    together = WARP if has_contraction else min(WARP, LINE // (lanes * _bytes(results[0])))
    rows = rows_of(source) if None in shape[:first] else _known(shape[:first])
    shares = _row_threads(rows, [_known(box) for box in boxes], lanes, together)
    if shares["group"] == 1 or has_contraction and shares["group"] < WARP:
        return None
    return {"template": "rows", "first": first, "lanes": lanes, **shares}


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


def _row_threads(rows: Extent, lengths: Sequence[Extent], lanes: int, together: int) -> dict[str, int]:
    """Threads for a row, at least `together` where it has so many accesses, and how many accesses each keeps.

    Rows that many threads can hold between them are kept; where there are fewer rows than keep the chip busy, more
    threads with less to do are done sooner.
    """
    known = [length for length in lengths if length is not None]
    if len(known) != len(lengths):
        group = LARGEST_GROUP if rows is not None and rows <= FEW_ROWS else WARP
        return {"group": group, "threads": max(group, THREADS // 2), "kept": 0}
    accesses = -(-max(known) // lanes)
    kept = 1
    while kept * lanes < KEPT and kept * LARGEST_GROUP < accesses:
        kept += 1

    def has_threads_to_spare() -> bool:
        return rows is None or rows * _whole(accesses, kept, together) > RESIDENT

    while 2 * kept * lanes <= KEPT and accesses > kept and has_threads_to_spare():
        kept *= 2
    if kept * LARGEST_GROUP < accesses:
        kept = max(1, KEPT_OF_MORE // lanes)
    group = min(LARGEST_GROUP, _whole(accesses, kept, together))
    threads, kept = group if group > WARP else THREADS // 2, min(kept, -(-accesses // group))
    blocks = max(1, REGISTERS // (threads * (32 + 2 * kept * lanes)))
    return {"group": group, "threads": threads, "kept": kept, "blocks": blocks}


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
