"""Choosing templates and parameters for GPU kernels from shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from mlc.kernels.common.accesses import input_accesses, read_dim
from mlc.kernels.common.analysis import (
    can_flatten,
    is_contraction,
    mentions,
    reachable,
    reduction_demands,
    root_operation,
    touches,
)
from mlc.kernels.common.attention import find_attention
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.common.reduce import lane_dim
from mlc.kernels.nvidia.block_select import is_shared, part_of
from mlc.kernels.nvidia.combinations import accumulator_bytes, combination
from mlc.kernels.nvidia.joined import is_joined, parts_of
from mlc.kernels.nvidia.scatter import SCATTERS, is_atomic, is_in_place
from mlc.passes.schedule.ampere_attention_cost import choose_attention as choose_ampere_attention
from mlc.passes.schedule.ampere_cost import choose_ampere, choose_exact
from mlc.passes.schedule.depthwise_cost import choose_depthwise
from mlc.passes.schedule.gpu_recurrence_cost import choose_recurrence
from mlc.passes.schedule.gpu_shapes import (
    CACHED,
    Extent,
    at_least,
    bytes_of,
    dividing,
    power_of_two,
    product_of,
    reduced_extents,
    shape_of,
    widest_lanes,
)
from mlc.passes.schedule.hopper_attention_cost import choose_attention
from mlc.passes.schedule.hopper_cost import choose_hopper
from mlc.passes.schedule.rows_cost import choose_rows
from mlc.passes.schedule.scan_cost import choose_scan
from mlc.passes.schedule.whole_columns_cost import choose_whole_columns
from mlc.targets.nvidia import NvidiaTarget

Schedule = dict[str, int | str]

WARP = 32
SELECTING = 1024, 256  # threads that select the best elements of a long line, and of a short one
LONG_LINE = 4096  # elements of a line of which each of so many threads has several
THREADS = 256  # of a block whose items are independent
MOST_THREADS = 4 * THREADS
MOST_TOGETHER = 8  # rows of a thread whose accesses are narrow
MULTIPROCESSORS = 132
RESIDENT = MULTIPROCESSORS * 1024  # threads that keep the chip busy
SHARED_MEMORY = 48 * 1024  # bytes that a block may have without asking for more
BUSY = MULTIPROCESSORS * 14 // 10  # blocks of a contraction that keep the chip busy
ASSUMED = 16  # for an unknown extent of a contraction: sharing tiles in vain costs less than not sharing them
MOST_SPLIT = 64  # threads that share columns: four neighbours read whole sectors of the memory
SHARED = 16  # threads that share a column where there are many: sixteen neighbours read 256 bytes of a row
UNDER_WAY = 1 << 17  # threads that keep the memory busy
LEAST_DEPTH = 48  # elements of a column that several threads share though there are many; positions take twice as many
LEAST_ACROSS = 8  # accesses across the columns that are worth it: they read whole lines
FEW_COLUMNS = 6 * MULTIPROCESSORS  # accesses across a reduction that make enough blocks with whole cache lines each
LINES_WANTED = MULTIPROCESSORS * 7 // 16  # blocks that read whole lines and keep the memory busy


def choose(source: KernelSource, target: NvidiaTarget, precision: str) -> Schedule:
    """The schedule of a kernel for `target`: `template` and its parameters; `precision` is that of the operands of
    contractions of f32."""
    if is_joined(source):
        return _joined(source)
    attention = find_attention(source)
    if attention is not None:
        if not target.has_wgmma or isinstance(attention.scores.element, ir.F32Type):
            return choose_ampere_attention(attention, target, precision)
        return choose_attention(source, attention, target)
    root = root_operation(source)
    if root.name == "mlc.topk" and is_shared(root):
        return _selecting(root)
    if root.name == "mlc.scan":
        return choose_scan(root)
    if root.name == "mlc.recurrence":
        return choose_recurrence(root, target, precision)
    if root.name in SCATTERS and is_in_place(source):
        return {"template": "scatter", "atomic": int(is_atomic(root)), "threads": THREADS, "early": 0}
    if root.name.startswith("mlc.") and root.name != "mlc.constant":
        return {"template": root.name.removeprefix("mlc."), "threads": WARP}
    tiled = None
    if is_contraction(root):
        choose_cores = choose_hopper if target.has_wgmma else choose_ampere
        tiled = choose_cores(source, root, target, precision) or choose_depthwise(root, target)
        tiled = tiled or choose_exact(source, root, target) or _contraction(source, root)
    tiled = tiled or choose_rows(source, target) or choose_whole_columns(source, target)
    return tiled or _columns(source) or _transposed(source) or _elementwise(source)


def _selecting(root: ir.Operation) -> Schedule:
    """A block for every line; loads of a long one are as many at a time as the block can have."""
    axis = ir.IntegerAttr(root.attributes["axis"]).value
    extent = part_of(root) or shape_of(root.operands[0].type)[axis]
    threads = SELECTING[0] if extent is None or extent >= LONG_LINE else SELECTING[1]
    return {"template": "block_select", "threads": threads, "group": threads}


# -- elementwise -------------------------------------------------------------------------------------------------------


def _elementwise(source: KernelSource) -> Schedule:
    results = source.results
    shape = shape_of(results[0].type)
    first, last = _flat_group(results, shape)
    across = _across_rows(source, shape, last)
    if across > 1:
        return {"template": "elementwise", "lanes": across, "first": 0, "last": last, "flat": 1, "threads": THREADS}
    inner = product_of(shape[first : last + 1])
    most = lanes = widest_lanes(source)
    if first > last or not _vectorizable(source):
        lanes = most = 1
    elif any(e != 1 for e in shape[:first]):
        lanes = 1 if inner is None else dividing(lanes, [inner])  # rows of unknown length start anywhere
    rows = _rows_together(source, shape[:first], most // lanes)
    return {"template": "elementwise", "lanes": lanes, "first": first, "last": last, "rows": rows, "threads": THREADS}


def _joined(source: KernelSource) -> Schedule:
    """What the parts of a joined kernel would get on their own."""
    found = [{"rows": 1, "flat": 0, **_elementwise(part)} for part in parts_of(source)]
    columns = {name: " ".join(str(part[name]) for part in found) for name in ("lanes", "first", "last", "rows", "flat")}
    return {"template": "joined", "threads": THREADS, **columns}


def _across_rows(source: KernelSource, shape: Sequence[Extent], last: int) -> int:
    """Lanes of vectors that go on in the next row, where rows are no multiples of vectors and there are many of them;
    else 1. What does not lie as the results do must be small enough to be in the cache."""
    lanes, columns = widest_lanes(source), shape[last] if shape else None
    accesses = input_accesses(source.results)
    if columns is None or columns < lanes or columns % lanes == 0 or accesses is None:
        return 1
    if prod(e or ASSUMED for e in shape) < RESIDENT * lanes:
        return 1
    here = tuple(ir.AffineExpr.get_dim(i) for i in range(len(shape)))
    others = [a.type for a, found in accesses.items() if found != {here}]
    return lanes if all((product_of(shape_of(t)) or CACHED + 1) * 4 <= CACHED for t in others) else 1


def _rows_together(source: KernelSource, outer: Sequence[Extent], narrow: int) -> int:
    """Rows of a thread: where accesses are narrow, several of them are under way at a time; not in kernels with loops,
    which have enough to do."""
    if not outer or outer[-1] is None or any(is_reduction(op) for op in reachable(source.results) if _is_generic(op)):
        return 1
    enough = prod(e or 1 for e in outer) // (BUSY * 2)
    return max(1, min(2 * narrow if narrow > 1 else 1, MOST_TOGETHER, outer[-1], power_of_two(enough + 1) // 2))


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
    if not reductions or any(is_contraction(op) or combination(op) is None for op in reductions):
        return None
    shape = shape_of(results[0].type)
    if not shape or not _over_the_domain(results, reductions):
        return None
    axis = max((i for i, e in enumerate(shape) if e != 1), default=len(shape) - 1)
    lanes = dividing(widest_lanes(source), [shape[axis]])
    while lanes * accumulator_bytes(reductions) * MOST_THREADS > SHARED_MEMORY:
        lanes //= 2
    depth = max(at_least(reduced_extents(op), 8 * ASSUMED) for op in reductions)
    accesses = prod(e or 1 for e in shape) // lanes
    across = (shape[axis] or LEAST_ACROSS * lanes) // lanes
    worth = LEAST_DEPTH * max(len(op.results) for op in reductions)
    is_many = accesses >= BUSY * THREADS
    if depth < WARP or is_many and (depth < worth or across < LEAST_ACROSS):
        return None
    split, threads = _sharing(accesses, depth)
    split, threads = _without_idle(split, threads, (shape[axis] or threads) // lanes, depth)
    return {"template": "columns", "first": axis, "last": axis, "lanes": lanes, "split": split, "threads": threads}


def _sharing(accesses: int, depth: int) -> tuple[int, int]:
    """How many threads share a column of `depth` elements, and the threads of a block, for so many `accesses` across
    the columns."""
    split = min(SHARED, power_of_two(depth // 3))
    while split < MOST_SPLIT and depth >= 4 * split:
        if accesses * split >= (UNDER_WAY if depth >= 16 * split else BUSY * THREADS):
            break
        split *= 2
    if split < MOST_SPLIT or depth < 8 * split:
        return split, THREADS
    split, threads = (split if accesses >= FEW_COLUMNS else 2 * split), 2 * THREADS
    # Half as many blocks that read whole lines are done sooner.
    wide = accesses < FEW_COLUMNS and accesses * split >= LINES_WANTED * 2 * threads
    return split, threads * 2 if wide else threads


def _without_idle(split: int, threads: int, across: int, depth: int) -> tuple[int, int]:
    """`split` and `threads` where a block would have more threads along its columns than there are accesses `across`:
    more of them share those that there are, as long as each has a step of the `depth`."""
    width = min(threads // split, power_of_two(across))
    split = max(split, min(threads // width, power_of_two(depth)))
    return split, max(WARP, width * split)


def _over_the_domain(results: Sequence[ir.Value], reductions: Sequence[ir.Operation]) -> bool:
    """Is every reduction a result, or needed at the coordinates of the results alone? It may be without those of
    dimensions of one element."""
    shape = results[0].type.shape
    here = [ir.AffineExpr.get_dim(i) for i in range(len(shape))]
    moving = [d for d, extent in zip(here, shape, strict=True) if extent != 1]
    demands = reduction_demands(results)
    found = [defining_op(v) for v in [*results, *(d.value for d in demands)]]
    asked = [[e for e in d.exprs if not isinstance(e, ir.AffineConstantExpr)] for d in demands]
    at_home = all(exprs == [e for e in here if e in moving or e in exprs] for exprs in asked)
    return at_home and all(op in found for op in reductions)


# -- transpositions ----------------------------------------------------------------------------------------------------


def _transposed(source: KernelSource) -> Schedule | None:
    """The schedule of a kernel that reads an input across the results' contiguous dimension; None for other kernels."""
    shape = shape_of(source.results[0].type)
    write = max((i for i, e in enumerate(shape) if e != 1), default=-1)
    accesses = input_accesses(source.results)
    if accesses is None or write < 0:
        return None
    for number, argument in enumerate(source.block.arguments):
        read = read_dim(argument, accesses.get(argument, set()), write)
        if read is not None and all(e is None or e >= WARP for e in (shape[read], shape[write])):
            tile = 2 * WARP if all(e is None or e > WARP for e in (shape[read], shape[write])) else WARP
            dims = {"read_dim": read, "write_dim": write}
            widest = max(1, 8 // bytes_of(argument)) if bytes_of(argument) < 4 else 1
            lanes = min(dividing(widest, [shape[read], shape[write]]), 4)
            return {
                "template": "transpose", "argument": number, **dims, "tile": tile, "threads": THREADS, "lanes": lanes
            }  # fmt: skip
    return None


# -- contractions ------------------------------------------------------------------------------------------------------


def _contraction(source: KernelSource, root: ir.Operation) -> Schedule | None:
    """The register tile of a contraction; None when no operand is contiguous along the output's last dimension."""
    shape = shape_of(root.results[0].type)
    out_map = operand_map(root, len(root.operands) - 1)
    if not shape or not all(isinstance(e, ir.AffineDimExpr) for e in out_map.results):
        return None
    order = [ir.AffineDimExpr(e).position for e in out_map.results]
    axis = max((i for i, e in enumerate(shape) if e != 1), default=len(shape) - 1)
    operand = next((i for i in range(2) if _unit_stride(root, i, order[axis])), None)
    if operand is None:
        return None
    first, last = _row_group(source, root, operand, order, shape, axis)
    rows = at_least(shape[first : last + 1], ASSUMED) if last >= 0 else 1
    lanes = dividing(widest_lanes(source), [shape[axis]])
    others = [e for i, e in enumerate(shape) if i != axis and not first <= i <= last]
    depth = reduced_extents(root)[-1]
    tile = _register_tile(rows, shape[axis], depth, lanes, prod(e or 1 for e in others), bytes_of(root.results[0]))
    return {
        "template": "contraction",
        "vector_dim": axis,
        "row_first": first,
        "row_last": last,
        **tile,
        "lanes": lanes,
        "unroll": _unroll(root),
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
        return not touches(root, operand, order[dim])

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
    height = min(8, power_of_two(rows))
    block_columns = min(WARP, power_of_two(-(-accesses // wide)))
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
    # Of a small matrix a block has as many threads as tiles, and tiles are small enough for a warp to have one each.
    while height > 1 and block_columns * split * -(-rows // height) < WARP:
        height //= 2
    threads = max(WARP, min(THREADS, power_of_two(block_columns * split * -(-rows // height))))
    return {"rows": height, "columns": wide, "block_columns": block_columns, "split": split, "threads": threads}


def _unroll(root: ir.Operation) -> int:
    """Unrolling of the innermost reduction dimension: a divisor of its extent."""
    extent = reduced_extents(root)[-1]
    return 1 if extent is None else next(u for u in (4, 2, 1) if extent % u == 0)
