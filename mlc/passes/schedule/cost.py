"""Choosing templates and parameters for CPU kernels from shapes and the target's vector registers."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.kernels.common.accesses import accesses_beside_padding, input_accesses, read_dim, write_dim
from mlc.kernels.common.analysis import (
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
from mlc.kernels.common.padding import padded_tensor
from mlc.kernels.common.peepholes import divided_shift, shifted_by_maximum
from mlc.kernels.common.positions import finds_position
from mlc.kernels.common.reduce import combiner, has_long_terms, lane_dim
from mlc.kernels.cpu.padding import Window
from mlc.kernels.cpu.planes import find_plane
from mlc.kernels.cpu.radix_sort import MOST
from mlc.kernels.cpu.scan import accumulator
from mlc.passes.schedule.attention_cost import choose_attention
from mlc.passes.schedule.contraction_cost import choose_contraction
from mlc.passes.schedule.extents import (
    ITEMS_ENOUGH,
    ITEMS_WANTED,
    MASKED_BITS,
    Extent,
    VectorUnit,
    known,
    or_many,
    reach,
    shape_of,
)
from mlc.passes.schedule.moving_cost import Matrices, copy_past_caches, transposing_walk
from mlc.passes.schedule.recurrence_cost import choose_recurrence
from mlc.passes.schedule.scaled_blocks_cost import choose_scaled_blocks

SMALL_ITEM = 1024  # elements of a work item of which fewer ones do
FEW_SUMS = 2  # accumulators in sixteen registers, of which the constants of e^x take eleven; it hides their latency
FEW_ELEMENTS = 8  # of a line of the results that is put together in registers
INTERLEAVED = 128  # vectors of points of a work item that does so
SHORT_ROW = 1000  # elements of rows that are computed two at a time: both stay in the first level of cache
FETCHED_SHORT_ROW = 512  # the same where as many are fetched
NARROW_SHORT_ROW = 512  # the same where sixteen registers hold the constants of both
EARLY, EARLY_OF_TWO = 4, 2  # vectors of a row that are loaded before those in front of them are stored
NARROW_FUNCTIONS = 128  # the same where the rows' sums have terms that take long to compute
FETCHED_ROW = (1 << 9, 1 << 14)  # bytes of rows of which the next one is fetched: longer ones come by themselves
FETCHED_WIDE = (3 << 8, 5 << 10)  # the same with vectors of 512 bits, of functions
LONG_COLUMN = 16  # elements of a column from which on several registers of columns are summed together
COLUMN_REGISTERS = 16  # accumulators of such a sum
POSITION_REGISTERS = 4  # of a search along columns for the position of an extreme value: as many hold positions
BLOCK = 4096  # elements of a vector loop per work item
PIECE = 16  # bytes within which processors interleave vectors cheaply
NARROWEST_PLANE = 4  # lanes of a vector along a line of a plane
PICKED_ACROSS = 3  # instructions that pick elements which are further apart than two, across the halves of a vector
FEW_TAPS = 4  # along a line of one vector that pay for two masked loads for each two of them
PLANE_ROWS = 4  # lines of a tile of a depthwise convolution that share what they load
SCANNED_VECTORS = 4  # vectors of neighbouring lines of a running sum: whole pages of memory are walked less often
SCANNED_BLOCK = 1024  # elements of neighbouring lines that are summed together
SCANNED_ITEMS = 4  # work items below which such blocks are half as long
COUNTED, DIGIT = 128, 8  # elements of a line that are sorted by digits, and their bits, unless they are
COUNTED_LONG, LONG_DIGIT = 8192, 11  # so many, which pay for counts that the first level of cache holds in parts only


def choose(source: KernelSource, unit: VectorUnit, constant_inputs: set[int]) -> dict[str, int | str]:
    """The schedule of a kernel: `template` and its integer parameters.

    `constant_inputs` are numbers of the inputs that every caller passes a weight to; a contraction may ask for such an
    operand in packed panels (`packed_operand`, `panel`).
    """
    attention = find_attention(source)
    if attention is not None:
        return choose_attention(attention, unit)
    root = root_operation(source)
    if root.name.startswith("mlc.") and root.name != "mlc.constant":
        return _opaque(root, unit)
    plane = find_plane(root)
    if plane is not None:
        return _planes(root, plane, unit)
    if is_contraction(root):
        schedule = choose_scaled_blocks(root, unit) or choose_contraction(source, root, unit, constant_inputs)
        if schedule is not None:
            return schedule
    return _transposed(source, unit) or _loops(source, unit)


def _opaque(root: ir.Operation, unit: VectorUnit) -> dict[str, int | str]:
    """The schedule of an operation that has a template of its own."""
    schedule: dict[str, int | str] = {"template": root.name.removeprefix("mlc.")}
    if root.name == "mlc.suppress":
        return {**schedule, "digit": DIGIT, "lanes": unit.lanes(root.operands[0].type.element_type)}
    if root.name == "mlc.recurrence":
        return choose_recurrence(root, unit)
    if root.name == "mlc.insert":
        return {**schedule, "lanes": unit.lanes(root.results[0].type.element_type)}
    if root.name not in ("mlc.scan", "mlc.topk", "mlc.sort"):
        return schedule
    type_ = root.operands[0].type
    axis = ir.IntegerAttr(root.attributes["axis"]).value
    if root.name == "mlc.sort" and (type_.is_dynamic_dim(axis) or COUNTED <= type_.get_dim_size(axis) < MOST):
        is_long = not type_.is_dynamic_dim(axis) and type_.get_dim_size(axis) >= COUNTED_LONG
        digit = LONG_DIGIT if is_long else DIGIT
        return {"template": "radix_sort", "digit": digit, "least": COUNTED}
    innermost = axis == type_.rank - 1
    lanes = unit.lanes(type_.element_type)
    if root.name != "mlc.scan":
        return {**schedule, "lanes": lanes if innermost and root.name == "mlc.topk" else 1}
    extent = or_many(shape_of(type_)[-1])
    if innermost or extent < lanes // 2:
        lanes = 1
    is_rounded = accumulator(type_.element_type) != type_.element_type
    if lanes > 1 and not is_rounded and not ir.BoolAttr(root.attributes["exclusive"]).value:
        return {**schedule, "lanes": lanes, "block": _scanned_block(root)}
    vectors = 1 if lanes == 1 else next(n for n in (SCANNED_VECTORS, 2, 1) if extent >= n * lanes or n == 1)
    return {**schedule, "lanes": lanes, "vectors": vectors}


def _scanned_block(root: ir.Operation) -> int:
    """Elements of neighbouring lines that a work item sums: long stretches of memory, whose sums stay in the first
    level of cache, but several work items where that is a long work."""
    shape = shape_of(root.operands[0].type)
    axis = ir.IntegerAttr(root.attributes["axis"]).value
    outer = [e for i, e in enumerate(shape[:-1]) if i != axis]
    items = (known(outer) or 1) * (or_many(shape[-1]) // SCANNED_BLOCK)
    return SCANNED_BLOCK if items >= SCANNED_ITEMS else SCANNED_BLOCK // 2


# -- loops -------------------------------------------------------------------------------------------------------------


def _loops(source: KernelSource, unit: VectorUnit) -> dict[str, int | str]:
    results = source.results
    shape = shape_of(results[0].type)
    rank = len(shape)
    lanes = min(unit.lanes(r.type.element_type) for r in results)
    first, last = rank, rank - 1
    if not _horizontal(results):
        moving = [i for i, e in enumerate(shape) if e != 1]
        last = moving[-1] if moving else rank - 1
        first = last
        while first > 0 and can_flatten(results, first - 1, last):
            first -= 1
        first = max(first, 0)
        if rank == 0:
            first, last = 0, -1
        elif known(shape[first : last + 1]) == 1 or not _vectorizable(source):
            lanes = 1
    repeat = _repeats(results, shape, lanes) if first == last else 1
    if repeat > 1:
        first -= 1
    inner = known(shape[first : last + 1])
    # What is computed once per row is computed again by every work item, so that rows are not cut.
    whole = any(not d.depends_on(range(first, last + 1)) for d in reduction_demands(results))
    block = BLOCK if first <= last and not whole and (inner is None or inner > 2 * BLOCK) else 0
    registers = _column_registers(results)
    if lanes > 1 and inner is not None and first <= last and registers > 1:
        lanes, block = _wide(lanes, registers, inner, shape[:first])
    sizes = [_bytes(v) for v in (results[0], *results)]
    narrow = unit.bits < MASKED_BITS
    functions = lanes > 1 and _sums_functions(results)
    fetched = whole and lanes > 1 and 0 < first <= last
    fetched = fetched and _is_fetched(inner, _bytes(results[0]), narrow, functions and unit.claims)
    short = FETCHED_SHORT_ROW if fetched else SHORT_ROW
    if narrow:
        short = NARROW_FUNCTIONS if functions else NARROW_SHORT_ROW
    together = 2 if whole and lanes > 1 and or_many(inner) <= short and len(results) == 1 else 1
    moves = lanes > 1 and first <= last and input_accesses(results) is not None and _only_moves(source)
    copied = moves and repeat == 1
    return {
        "template": "loops",
        "lanes": lanes,
        "first": first,
        "last": last,
        "grid": _grid_rank(shape[:first], 0 if block or _reduces(source) else inner),
        "block": block,
        **({"repeat": repeat} if repeat > 1 else {}),
        **(copy_past_caches(known(shape), inner, shape[first - 1] if first else 1, lanes, sizes) if copied else {}),
        **({"together": together} if together > 1 else {}),
        **({"ahead": together} if fetched else {}),
        **({"pieces": 1} if narrow and lanes > 1 and first <= last and (inner is None or inner % lanes) else {}),
        **_exponentials(results, unit, together),
        **({"sums": FEW_SUMS} if functions and unit.registers <= 16 else {}),
    }


def _exponentials(results: Sequence[ir.Value], unit: VectorUnit, together: int) -> dict[str, int]:
    """The parameters of exponentials of softmax. Those of two rows in turns have few registers left."""
    powers = [op for op in reachable(results) if shifted_by_maximum(op)] if unit.scalef else []
    if not powers:
        return {}
    early = EARLY if together == 1 else EARLY_OF_TWO
    return {"scalef": unit.scalef, **({"early": early} if any(map(divided_shift, powers)) else {})}


def _sums_functions(results: Sequence[ir.Value]) -> bool:
    """Does a reduction along rows have terms that take long to compute?"""
    reductions = [op for op in reachable(results) if op.name == "linalg.generic" and is_reduction(op)]
    return any(lane_dim(op) is not None and combiner(op) is not None and has_long_terms(op) for op in reductions)


def _is_fetched(row: Extent, size: int, narrow: bool, wide: bool) -> bool:
    """Is a row of elements of `size` bytes fetched before its turn? Measured with vectors of 256 bits (`narrow`), and
    with `wide` ones where fetching pays and functions take so long that much arrives in the meantime: rows that are
    only added up wait for memory in any case.
    """
    if narrow:
        return row is None or FETCHED_ROW[0] <= row * size < FETCHED_ROW[1]
    return wide and row is not None and FETCHED_WIDE[0] <= row * size < FETCHED_WIDE[1]


def _repeats(results: Sequence[ir.Value], shape: Sequence[Extent], lanes: int) -> int:
    """The extent of the innermost dimension when nothing changes along it and a vector holds it several times."""
    last = len(shape) - 1
    extent = shape[last]
    if last < 1 or extent not in (2, 4, 8) or extent >= lanes or shape[last - 1] == 1:
        return 1
    accesses = input_accesses(results)
    if not accesses or any(mentions(e, last) for reads in accesses.values() for exprs in reads for e in exprs):
        return 1
    return extent


def _column_registers(results: Sequence[ir.Value]) -> int:
    """How many registers of columns are reduced together: several when every result is a reduction by a plain combiner,
    or to a position, of long columns that are next to each other in the input."""
    most = COLUMN_REGISTERS
    for value in results:
        op = _reduction_below(value)
        if op is None or lane_dim(op) is not None or len(op.operands) - len(op.results) != 1:
            return 1
        if combiner(op) is None:
            if not finds_position(op):
                return 1
            most = POSITION_REGISTERS
        if shape_of(op.operands[0].type)[-1:] != shape_of(value.type)[-1:] or _reduced(op) < LONG_COLUMN:
            return 1
    return most


def _reduced(op: ir.Operation) -> int:
    """How many elements of the input are reduced to one; many when that is not known."""
    whole, rest = known(shape_of(op.operands[0].type)), known(shape_of(op.results[0].type))
    return 1 << 30 if whole is None or not rest else whole // rest


def _wide(lanes: int, most: int, inner: int, outer: Sequence[Extent]) -> tuple[int, int]:
    """Lanes of several registers, so that stretches of a row are read, and the block that leaves enough items."""
    wide = next(lanes * n for n in (16, 8, 4, 2, 1) if n <= most and inner >= lanes * n or n == 1)
    items = known(outer)
    return wide, 0 if items is None or items >= ITEMS_WANTED else wide


def _grid_rank(outer: Sequence[Extent], inner: Extent = None) -> int:
    """The fewest outer dimensions that give enough work items. Somewhat fewer items do where one more dimension would
    leave little work to each, `inner` elements and the dimensions between: to begin an item takes time. Where extents
    are unknown, all but those that this is true of; of images whose size is not known lines are items, not pixels.
    """
    total = 1
    for i, extent in enumerate(outer):
        if total >= ITEMS_WANTED:
            return i
        rest = known([*outer[i + 1 :], inner])
        if total >= ITEMS_ENOUGH and rest is not None and 0 < rest < SMALL_ITEM:
            return i
        if extent is None:
            return _grid_rank_of_unknown(outer, inner)
        total *= extent
    return len(outer)


def _grid_rank_of_unknown(outer: Sequence[Extent], inner: Extent) -> int:
    """`_grid_rank` where an extent is unknown: of the last dimensions, known ones are part of an item up to a size that
    is worth one, and so are the pixels of a line."""
    rank, size = len(outer), inner or SMALL_ITEM
    while size < SMALL_ITEM and rank > 1 and None in outer[: rank - 1] and (extent := outer[rank - 1]) is not None:
        size, rank = size * extent, rank - 1
    is_pixel = rank > 2 and outer[rank - 1] is None and None in outer[1 : rank - 1]
    return rank - 1 if inner and is_pixel else rank


def _horizontal(results: Sequence[ir.Value]) -> bool:
    """Do the roots reduce along their inputs' contiguous dimension with a plain combiner?"""
    for value in results:
        op = _reduction_below(value)
        if op is None or lane_dim(op) is None or combiner(op) is None and not finds_position(op):
            return False
    return True


def _reduction_below(value: ir.Value) -> ir.Operation | None:
    """The reduction whose results `value` is an elementwise function of, over the same domain."""
    waiting, seen = [value], set()
    while waiting:
        current = waiting.pop()
        op = defining_op(current)
        # What several operations read is looked at once.
        if current in seen or op is None or op.name != "linalg.generic":
            continue
        if is_reduction(op):
            return op
        seen.add(current)
        last = operand_map(op, len(op.operands) - 1)
        inputs = range(len(op.operands) - len(op.results))
        below = [defining_op(op.operands[i]) for i in inputs if operand_map(op, i) == last]
        waiting += [d.results[0] for d in reversed(below) if d is not None and d.name == "linalg.generic"]
    return None


def _vectorizable(source: KernelSource) -> bool:
    """Position-carrying reductions along a contiguous dimension run as scalar loops."""
    for op in reachable(source.results):
        if op.name != "linalg.generic" or not is_reduction(op) or finds_position(op):
            continue
        if len(op.results) > 1 and lane_dim(op) is not None:
            return False
    return True


def _planes(root: ir.Operation, windows: tuple[Window, Window], unit: VectorUnit) -> dict[str, int | str]:
    """Half vectors where they take less time: wide masks make them cover a line with fewer lanes, without such masks
    what counts is instructions."""
    lanes, extent = unit.lanes(root.results[0].type.element_type), root.results[0].type.shape[3]
    if unit.bits < MASKED_BITS:
        lanes = min((NARROWEST_PLANE, lanes), key=lambda n: _time_of_line(root, windows, n, extent))
        schedule: dict[str, int | str] = {"template": "planes", "lanes": lanes, "rows": PLANE_ROWS}
        if extent % lanes not in (0, 1):
            schedule["pieces"] = 1
        if lanes > NARROWEST_PLANE and _is_picked_in_halves(root, windows[1], extent > lanes):
            schedule["halves"] = 1
        return schedule
    while lanes > NARROWEST_PLANE and -(-extent // (lanes // 2)) * (lanes // 2) < -(-extent // lanes) * lanes:
        lanes //= 2
    return {"template": "planes", "lanes": lanes, "rows": PLANE_ROWS}


def _time_of_line(root: ir.Operation, windows: tuple[Window, Window], lanes: int, extent: int) -> int:
    """Instructions for the tiles of a line of `extent` results of a window over planes."""
    height, width = (reach(root, 1, window.tap) or 1 for window in windows)
    lines, stride = (PLANE_ROWS - 1) * windows[0].stride + height, windows[1].stride
    picking = 0 if stride == 1 else 1 if stride == 2 or lanes == NARROWEST_PLANE else PICKED_ACROSS
    return -(-extent // lanes) * (PLANE_ROWS * height * width + lines * width * picking)


def _is_picked_in_halves(root: ir.Operation, line: Window, several: bool) -> bool:
    """Are taps loaded in pairs of vectors? Those of a line of one vector, not `several`, are all masked, which pays for
    few taps only."""
    return line.stride == 2 and (several or (reach(root, 1, line.tap) or 1) <= FEW_TAPS)


# -- transpositions ----------------------------------------------------------------------------------------------------


def _transposed(source: KernelSource, unit: VectorUnit) -> dict[str, int | str] | None:
    """The schedule of a kernel that reads an input across the results' contiguous dimension; None for other kernels."""
    shape = shape_of(source.results[0].type)
    write = write_dim(shape)
    accesses = input_accesses(source.results) if write >= 0 else None
    padded = write >= 0 and accesses is None and unit.bits >= MASKED_BITS  # bytes beside it are masked
    if padded:
        accesses = accesses_beside_padding(source.results)
    if accesses is None:
        return None
    for number, argument in enumerate(source.block.arguments):
        read = read_dim(argument, accesses.get(argument, set()), write)
        if read is None:
            continue
        lanes = min(unit.lanes(v.type.element_type) for v in [argument, *source.results])
        firsts = [_first_of_group(source.results, last, other) for last, other in ((read, write), (write, read))]
        extents = [known(shape[first : last + 1]) for first, last in zip(firsts, (read, write), strict=True)]
        if max(map(or_many, extents)) < lanes:
            continue
        size = _bytes(argument)
        few = extents[1] is not None and extents[1] <= FEW_ELEMENTS and firsts[1] == write == read + 1
        if few and or_many(extents[0]) >= lanes:
            lanes = unit.bits // (8 * size) if _only_moves(source) else lanes
            group = {"read_first": firsts[0], "read_dim": read, "write_dim": write}
            return {"template": "interleave", **group, "lanes": lanes, "block": INTERLEAVED * lanes}
        if padded:  # tiles of transpositions load whole vectors
            return None
        if _only_moves(source):
            while 2 * lanes * size * 8 <= unit.bits and or_many(extents[1]) > lanes:
                lanes *= 2
        piece = min(lanes, max(2, PIECE // size))
        walked = {*range(firsts[0], read + 1), *range(firsts[1], write + 1)}
        outer = known([e for d, e in enumerate(shape) if d not in walked])
        dense = all(e == 1 for e in shape[read + 1 : firsts[1]])
        sizes = [size, *map(_bytes, source.results)]
        matrices = Matrices(extents[0], extents[1], outer, piece, sizes, dense, unit.claims)
        again = unit.bits < MASKED_BITS and _only_moves(source) and len(accesses) == 1
        return {
            "template": "transpose",
            "argument": number,
            "read_first": firsts[0],
            "read_dim": read,
            "write_first": firsts[1],
            "write_dim": write,
            "lanes": lanes,
            "piece": piece,
            **transposing_walk(matrices, lanes, unit.bits // 8),
            **({"back": 1} if again else {}),
        }
    return None


def _bytes(value: ir.Value) -> int:
    """Bytes of an element in memory."""
    return (value.type.element_type.width + 7) // 8


def _first_of_group(results: Sequence[ir.Value], last: int, other: int) -> int:
    """The first of the dimensions up to `last` that may be walked as one; `other` is none of them."""
    first = last
    while first > 0 and first - 1 != other and can_flatten(results, first - 1, last):
        first -= 1
    return first


def _reduces(source: KernelSource) -> bool:
    """Is an element of the results computed from many?"""
    return any(op.name == "linalg.generic" and is_reduction(op) for op in reachable(source.results))


def _only_moves(source: KernelSource) -> bool:
    """Does a kernel compute nothing but, maybe, padding?"""
    generics = [op for op in reachable(source.results) if op.name == "linalg.generic"]
    return all(len(op.regions[0].blocks[0].operations) == 1 or padded_tensor(op) is not None for op in generics)
