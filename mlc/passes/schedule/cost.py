"""Choosing templates and parameters for CPU kernels from shapes and the target's vector registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.accesses import input_accesses, read_dim
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
from mlc.kernels.common.peepholes import shifted_by_maximum
from mlc.kernels.common.positions import finds_position
from mlc.kernels.common.reduce import combiner, lane_dim
from mlc.kernels.cpu.inner_product import has_few_rows, lies_along_sum
from mlc.kernels.cpu.panel_copy import MOST_STEPS
from mlc.kernels.cpu.planes import find_plane
from mlc.passes.schedule.attention_cost import choose_attention
from mlc.passes.schedule.moving_cost import copy_streams, transposing_walk
from mlc.passes.schedule.pairs import as_dot_product, as_dot_quads

Extent = int | None  # None: known at run time only

ITEMS_WANTED = 64  # work items that keep a pool busy without making each too small
FEW_ELEMENTS = 8  # of a line of the results that is put together in registers
INTERLEAVED = 128  # vectors of points of a work item that does so
SHORT_ROW = 1000  # elements of rows that are computed two at a time: both stay in the first level of cache
LONG_COLUMN = 16  # elements of a column from which on several registers of columns are summed together
COLUMN_REGISTERS = 16  # accumulators of such a sum
POSITION_REGISTERS = 4  # of a search along columns for the position of an extreme value: as many hold positions
BLOCK = 4096  # elements of a vector loop per work item
COPIED_STEPS = (128, MOST_STEPS)  # lines of a panel that is copied: enough to hurt, few enough for the stack
COPIED_ROWS = 160  # rows of a work item that pay for the copy
TRANSPOSED_ROWS = 48  # rows of a work item for which a panel may be transposed anew
FAR_APART = 256  # elements between two lines from which on they are copied
FEW_ROWS = 4  # rows of a product up to which a matrix that is not packed is read in long stretches
INNER_LANES = 8  # sums along vectors from which on there are enough at a time to hide how long one takes
INNER_ROWS = 4  # of a tile of such sums: as many columns, so that every operand that is loaded is used as often
LINE_VECTORS = 16  # accumulators of such a tile
PIECE = 16  # bytes within which processors interleave vectors cheaply
DEPTHWISE_SUMS = 16  # accumulators where a sum has two operands of its own: neither stays in a register
PLANE_ROWS = 4  # lines of a tile of a depthwise convolution that share what they load
SCANNED_VECTORS = 4  # vectors of neighbouring lines of a running sum: whole pages of memory are walked less often
SCANNED_BLOCK = 1024  # elements of neighbouring lines that are summed together
SCANNED_ITEMS = 4  # work items below which such blocks are half as long


@dataclass(frozen=True)
class VectorUnit:
    """What the target offers to the register allocator of the templates."""

    bits: int
    registers: int
    bf16_dot: bool = False  # has an instruction that sums products of pairs of bf16
    int8_dot: bool = False  # has an instruction that sums products of quads of 8-bit integers
    int16_dot: bool = False  # has an instruction that sums products of pairs of 16-bit integers

    @property
    def scalef(self) -> bool:
        """Is there an instruction that scales by powers of two? It is AVX-512's, which alone has such registers."""
        return self.bits == 512

    def lanes(self, element: ir.Type) -> int:
        """Lanes for computing on `element`: 32-bit lanes, 64-bit ones for f64."""
        return self.bits // (64 if isinstance(element, ir.F64Type) else 32)


def _shape(type_: ir.RankedTensorType) -> list[Extent]:
    return [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def _known(extents: Sequence[Extent]) -> int | None:
    total = 1
    for extent in extents:
        if extent is None:
            return None
        total *= extent
    return total


def choose(source: KernelSource, unit: VectorUnit, constant_inputs: set[int]) -> dict[str, int | str]:
    """The schedule of a kernel: `template` and its integer parameters.

    `constant_inputs` are numbers of the inputs that every caller passes a weight to; a contraction may ask for such an
    operand in packed panels (`packed_operand`, `panel`).
    """
    attention = find_attention(source)
    if attention is not None:
        chosen = choose_attention(attention, unit.lanes(source.results[0].type.element_type), unit.registers)
        return {**chosen, "scalef": 1} if unit.scalef else chosen
    root = root_operation(source)
    if root.name.startswith("mlc.") and root.name != "mlc.constant":
        return _opaque(root, unit)
    if find_plane(root) is not None:
        return _planes(root, unit)
    if is_contraction(root):
        schedule = _contraction(source, root, unit, constant_inputs)
        if schedule is not None:
            return schedule
    return _transposed(source, unit) or _loops(source, unit)


def _opaque(root: ir.Operation, unit: VectorUnit) -> dict[str, int | str]:
    """The schedule of an operation that has a template of its own."""
    schedule: dict[str, int | str] = {"template": root.name.removeprefix("mlc.")}
    if root.name not in ("mlc.scan", "mlc.topk", "mlc.sort"):
        return schedule
    type_ = root.operands[0].type
    innermost = ir.IntegerAttr(root.attributes["axis"]).value == type_.rank - 1
    lanes = unit.lanes(type_.element_type)
    if root.name != "mlc.scan":
        return {**schedule, "lanes": lanes if innermost and root.name == "mlc.topk" else 1}
    extent = _or_many(_shape(type_)[-1])
    if innermost or extent < lanes // 2:
        lanes = 1
    if lanes > 1 and not ir.BoolAttr(root.attributes["exclusive"]).value:
        return {**schedule, "lanes": lanes, "block": _scanned_block(root)}
    vectors = 1 if lanes == 1 else next(n for n in (SCANNED_VECTORS, 2, 1) if extent >= n * lanes or n == 1)
    return {**schedule, "lanes": lanes, "vectors": vectors}


def _scanned_block(root: ir.Operation) -> int:
    """Elements of neighbouring lines that a work item sums: long stretches of memory, whose sums stay in the first
    level of cache, but several work items where that is a long work."""
    shape = _shape(root.operands[0].type)
    axis = ir.IntegerAttr(root.attributes["axis"]).value
    outer = [e for i, e in enumerate(shape[:-1]) if i != axis]
    items = (_known(outer) or 1) * (_or_many(shape[-1]) // SCANNED_BLOCK)
    return SCANNED_BLOCK if items >= SCANNED_ITEMS else SCANNED_BLOCK // 2


# -- loops -------------------------------------------------------------------------------------------------------------


def _loops(source: KernelSource, unit: VectorUnit) -> dict[str, int | str]:
    results = source.results
    shape = _shape(results[0].type)
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
        elif _known(shape[first : last + 1]) == 1 or not _vectorizable(source):
            lanes = 1
    repeat = _repeats(results, shape, lanes) if first == last else 1
    if repeat > 1:
        first -= 1
    inner = _known(shape[first : last + 1])
    # What is computed once per row is computed again by every work item, so that rows are not cut.
    whole = any(not d.depends_on(range(first, last + 1)) for d in reduction_demands(results))
    block = BLOCK if first <= last and not whole and (inner is None or inner > 2 * BLOCK) else 0
    registers = _column_registers(results)
    if lanes > 1 and inner is not None and first <= last and registers > 1:
        lanes, block = _wide(lanes, registers, inner, shape[:first])
    sizes = [_bytes(v) for v in (results[0], *results)]
    moves = lanes > 1 and first <= last and input_accesses(results) is not None and _only_moves(source)
    stream = moves and repeat == 1 and copy_streams(_known(shape), inner, lanes, sizes)
    return {
        "template": "loops",
        "lanes": lanes,
        "first": first,
        "last": last,
        "grid": _grid_rank(shape[:first]),
        "block": block,
        **({"repeat": repeat} if repeat > 1 else {}),
        **({"stream": 1} if stream else {}),
        **({"together": 2} if whole and lanes > 1 and _or_many(inner) <= SHORT_ROW and len(results) == 1 else {}),
        **({"scalef": 1} if unit.scalef and any(shifted_by_maximum(op) for op in reachable(results)) else {}),
    }


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
        if _shape(op.operands[0].type)[-1:] != _shape(value.type)[-1:] or _reduced(op) < LONG_COLUMN:
            return 1
    return most


def _reduced(op: ir.Operation) -> int:
    """How many elements of the input are reduced to one; many when that is not known."""
    whole, rest = _known(_shape(op.operands[0].type)), _known(_shape(op.results[0].type))
    return 1 << 30 if whole is None or not rest else whole // rest


def _wide(lanes: int, most: int, inner: int, outer: Sequence[Extent]) -> tuple[int, int]:
    """Lanes of several registers, so that stretches of a row are read, and the block that leaves enough items."""
    wide = next(lanes * n for n in (16, 8, 4, 2, 1) if n <= most and inner >= lanes * n or n == 1)
    items = _known(outer)
    return wide, 0 if items is None or items >= ITEMS_WANTED else wide


def _grid_rank(outer: Sequence[Extent]) -> int:
    """The fewest outer dimensions that give enough work items; all of them when extents are unknown."""
    total = 1
    for i, extent in enumerate(outer):
        if total >= ITEMS_WANTED:
            return i
        if extent is None:
            return len(outer)
        total *= extent
    return len(outer)


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


def _planes(root: ir.Operation, unit: VectorUnit) -> dict[str, int | str]:
    """Half vectors where they cover a line with fewer lanes."""
    lanes, extent = unit.lanes(root.results[0].type.element_type), root.results[0].type.shape[3]
    while lanes > 4 and -(-extent // (lanes // 2)) * (lanes // 2) < -(-extent // lanes) * lanes:
        lanes //= 2
    return {"template": "planes", "lanes": lanes, "rows": PLANE_ROWS}


# -- transpositions ----------------------------------------------------------------------------------------------------


def _transposed(source: KernelSource, unit: VectorUnit) -> dict[str, int | str] | None:
    """The schedule of a kernel that reads an input across the results' contiguous dimension; None for other kernels."""
    shape = _shape(source.results[0].type)
    write = max((i for i, e in enumerate(shape) if e != 1), default=-1)
    accesses = input_accesses(source.results) if write >= 0 else None
    if accesses is None:
        return None
    for number, argument in enumerate(source.block.arguments):
        read = read_dim(argument, accesses.get(argument, set()), write)
        if read is None:
            continue
        lanes = min(unit.lanes(v.type.element_type) for v in [argument, *source.results])
        firsts = [_first_of_group(source.results, last, other) for last, other in ((read, write), (write, read))]
        extents = [_known(shape[first : last + 1]) for first, last in zip(firsts, (read, write), strict=True)]
        if max(map(_or_many, extents)) < lanes:
            continue
        size = _bytes(argument)
        few = extents[1] is not None and extents[1] <= FEW_ELEMENTS and firsts[1] == write == read + 1
        if few and _or_many(extents[0]) >= lanes:
            lanes = unit.bits // (8 * size) if _only_moves(source) else lanes
            group = {"read_first": firsts[0], "read_dim": read, "write_dim": write}
            return {"template": "interleave", **group, "lanes": lanes, "block": INTERLEAVED * lanes}
        if _only_moves(source):
            while 2 * lanes * size * 8 <= unit.bits and _or_many(extents[1]) > lanes:
                lanes *= 2
        piece = min(lanes, max(2, PIECE // size))
        walked = {*range(firsts[0], read + 1), *range(firsts[1], write + 1)}
        outer = _known([e for d, e in enumerate(shape) if d not in walked])
        return {
            "template": "transpose",
            "argument": number,
            "read_first": firsts[0],
            "read_dim": read,
            "write_first": firsts[1],
            "write_dim": write,
            "lanes": lanes,
            "piece": piece,
            **transposing_walk(extents[0], extents[1], outer, lanes, piece, [size, *map(_bytes, source.results)]),
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


def _only_moves(source: KernelSource) -> bool:
    """Does a kernel compute nothing?"""
    generics = [op for op in reachable(source.results) if op.name == "linalg.generic"]
    return all(len(op.regions[0].blocks[0].operations) == 1 for op in generics)


def _or_many(extent: Extent) -> int:
    return 1 << 30 if extent is None else extent


# -- contractions ------------------------------------------------------------------------------------------------------


def _contraction(
    source: KernelSource, root: ir.Operation, unit: VectorUnit, constant_inputs: set[int]
) -> dict[str, int | str] | None:
    if len(root.operands) != 3:
        return None  # a constant operand lives in the body
    shape = _shape(root.results[0].type)
    out_map = operand_map(root, 2)
    if not shape or not all(isinstance(e, ir.AffineDimExpr) for e in out_map.results):
        return None
    order = [ir.AffineDimExpr(e).position for e in out_map.results]
    moving = [i for i, e in enumerate(shape) if e != 1]
    axis = moving[-1] if moving else len(shape) - 1
    best: tuple[int, int, bool] | None = None
    for operand in range(2):
        packed = _packable(source, root, operand, order[axis], constant_inputs, shape[axis])
        if not packed and not _unit_stride(root, operand, order[axis]):
            continue
        rows = [i for i in moving if i != axis and not _touches(root, operand, order[i])]
        candidate = (rows[-1] if rows else -1, operand, packed)
        if best is None or _row_size(shape, candidate[0]) > _row_size(shape, best[0]):
            best = candidate
    if best is None:
        return _along_sum(source, root, unit, axis)
    row, operand, packed = best
    first = row
    while row >= 0 and first > 0 and first - 1 != axis and _rows_flatten(source, root, operand, order, first - 1, row):
        first -= 1
    if row < 0:
        first, row = -1, -2
    height, vectors = _register_tile(shape[axis], unit, root.results[0].type.element_type)
    if all(_touches(root, operand, order[axis]) for operand in range(2)):
        height = min(height, max(1, DEPTHWISE_SUMS // vectors))
    few = _known(shape[first : row + 1]) if row >= 0 else 1
    if not packed and few is not None and few <= FEW_ROWS:
        height, vectors = (
            few,
            max(vectors, _line_vectors(shape[axis], unit.lanes(root.results[0].type.element_type), few)),
        )
    schedule: dict[str, int | str] = {
        "template": "contraction",
        "lanes": unit.lanes(root.results[0].type.element_type),
        "vector_dim": axis,
        "row_first": first,
        "row_last": row,
        "rows": height,
        "vectors": vectors,
        "unroll": _unroll(root),
    }
    panel = int(schedule["lanes"]) * vectors
    schedule["block"] = _row_block(shape, axis, first, row, height, panel)
    if packed:
        schedule["packed_operand"] = operand
        schedule["panel"] = panel
    elif _is_worth_copying(root, operand, order[axis], shape, schedule):
        schedule |= {"template": "panel_copy", "vector_operand": operand}
    in_pairs = as_dot_product(root, operand, schedule, unit.bf16_dot)
    return in_pairs or as_dot_quads(root, operand, schedule, unit.int8_dot, unit.int16_dot) or schedule


def _along_sum(source: KernelSource, root: ir.Operation, unit: VectorUnit, axis: int) -> dict[str, int | str] | None:
    """The schedule of a product whose operands both lie along the sum; None for other contractions."""
    shape, order = _shape(root.results[0].type), [e.position for e in operand_map(root, 2).results]
    element = root.results[0].type.element_type
    holding = [i for i in range(2) if _touches(root, i, order[axis])]
    if not lies_along_sum(root) or len(holding) != 1 or _depth(root) == 1:
        return None
    [operand] = holding
    rows = [i for i, e in enumerate(shape) if e != 1 and i != axis and not _touches(root, operand, order[i])]
    if not rows:
        return None
    first = row = rows[-1]
    while first > 0 and first - 1 != axis and _rows_flatten(source, root, operand, order, first - 1, row):
        first -= 1
    lanes, count, depth = unit.lanes(element), _known(shape[first : row + 1]), _depth(root)
    height, vectors, template, unroll = INNER_ROWS, 1, "inner_product", 1
    copies = isinstance(element, ir.F32Type) and _is_worth_transposing(count, depth, lanes)
    if copies:
        height, vectors = _register_tile(shape[axis], unit, element)
        template, unroll = "panel_copy", _unroll(root)
    block = _row_block(shape, axis, first, row, height, lanes * vectors)
    return {
        "template": template,
        "lanes": lanes,
        "vector_dim": axis,
        "row_first": first,
        "row_last": row,
        "rows": height,
        "vectors": vectors,
        "unroll": unroll,
        "block": max(block, -(-TRANSPOSED_ROWS // height)) if copies else block,
        **({"vector_operand": operand} if copies else {}),
    }


def _is_worth_transposing(rows: Extent, depth: Extent, lanes: int) -> bool:
    """Are panels of an operand that lies along the sum to be transposed on the way?"""
    if rows is None or depth is None or depth > MOST_STEPS or rows < INNER_ROWS:
        return False
    return lanes < INNER_LANES or not has_few_rows(rows, depth)


def _depth(root: ir.Operation) -> Extent:
    """The extent of the dimension that is summed over, the last one of the first operand."""
    return _shape(root.operands[0].type)[-1]


def _is_worth_copying(
    root: ir.Operation, operand: int, columns: int, shape: Sequence[Extent], schedule: dict[str, int | str]
) -> bool:
    """Do the lines of a run-time operand lie far apart, and are they read often enough by every work item?"""
    exprs = list(operand_map(root, operand).results)
    plain = [e.position for e in exprs if isinstance(e, ir.AffineDimExpr)]
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    steps = [root.operands[operand].type.shape[plain.index(d)] for d in plain if kinds[d]]
    if len(plain) != len(exprs) or len(steps) != 1 or sum(kinds) != 1 or not _is_f32(root):
        return False
    first, last = int(schedule["row_first"]), int(schedule["row_last"])
    rows = _known(shape[first : last + 1]) if first >= 0 else 1
    reach = _shape(root.operands[operand].type)[plain.index(columns)]
    if rows is None or reach is None or not COPIED_STEPS[0] <= steps[0] <= COPIED_STEPS[1]:
        return False
    return reach >= FAR_APART and min(rows, int(schedule["rows"]) * int(schedule["block"])) >= COPIED_ROWS


def _is_f32(root: ir.Operation) -> bool:
    return all(isinstance(v.type.element_type, ir.F32Type) for v in root.operands)


def _row_size(shape: Sequence[Extent], axis: int) -> int:
    if axis < 0:
        return 0
    extent = shape[axis]
    return 1 << 30 if extent is None else extent


def _touches(root: ir.Operation, operand: int, dim: int) -> bool:
    return any(mentions(e, dim) for e in operand_map(root, operand).results)


def _unit_stride(root: ir.Operation, operand: int, dim: int) -> bool:
    exprs = list(operand_map(root, operand).results)
    last = exprs[-1] if exprs else None
    inner = isinstance(last, ir.AffineDimExpr) and last.position == dim
    return inner and not any(mentions(e, dim) for e in exprs[:-1])


def _packable(
    source: KernelSource, root: ir.Operation, operand: int, dim: int, constant_inputs: set[int], extent: Extent
) -> bool:
    """Is the operand a weight that holds the vector dimension, read through a permutation (and unit dimensions)?"""
    value = root.operands[operand]
    if defining_op(value) is not None or extent is None or extent == 1:
        return False
    number = list(source.block.arguments).index(value)
    exprs = list(operand_map(root, operand).results)
    plain = [e.position for e in exprs if isinstance(e, ir.AffineDimExpr)]
    fixed = sum(isinstance(e, ir.AffineConstantExpr) for e in exprs)
    return number in constant_inputs and len(plain) + fixed == len(exprs) and dim in plain


def _rows_flatten(
    source: KernelSource, root: ir.Operation, operand: int, order: Sequence[int], first: int, last: int
) -> bool:
    if any(_touches(root, operand, order[i]) for i in range(first, last + 1)):
        return False
    return can_flatten(source.results, first, last)


def _register_tile(extent: Extent, unit: VectorUnit, element: ir.Type) -> tuple[int, int]:
    """Rows and vectors of the accumulator tile: about three quarters of the registers, wide before tall."""
    lanes = unit.lanes(element)
    if unit.registers < 32:
        return (4, 3) if extent is None or extent > 2 * lanes else (6, 2) if extent > lanes else (8, 1)
    if extent is None or extent > 3 * lanes:
        if extent is not None and extent % (4 * lanes) and extent % (3 * lanes) == 0:
            return 8, 3
        return 6, 4
    return (8, 3) if extent > 2 * lanes else (8, 2) if extent > lanes else (8, 1)


def _line_vectors(extent: Extent, lanes: int, rows: int) -> int:
    """Vectors of a tile of few rows: as long a stretch of a matrix's line as accumulators allow, that memory is read in
    few streams."""
    most = LINE_VECTORS // rows
    return most if extent is None else min(most, -(-extent // lanes))


def _unroll(root: ir.Operation) -> int:
    """Unrolling of the innermost reduction dimension: a divisor of its extent."""
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    innermost = max(i for i, r in enumerate(kinds) if r)
    for operand in range(2):
        for position, expr in enumerate(operand_map(root, operand).results):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == innermost:
                type_ = root.operands[operand].type
                if type_.is_dynamic_dim(position):
                    return 1
                return next(u for u in (4, 3, 2, 1) if type_.get_dim_size(position) % u == 0)
    return 1


def _row_block(shape: Sequence[Extent], axis: int, first: int, last: int, rows: int, panel: int) -> int:
    """Row tiles per work item: items of about one size, and enough of them."""
    extent = _known(shape[first : last + 1]) if first >= 0 else 1
    others = [e for i, e in enumerate(shape) if i != axis and not first <= i <= last]
    columns = shape[axis]
    outer = _known([e if e is not None else 1 for e in others])
    assert outer is not None
    if extent is None:
        return 8
    panels = 1 if columns is None else -(-columns // panel)
    tiles = -(-extent // rows)
    wanted = -(-ITEMS_WANTED // (4 * max(1, panels * outer)))
    return max(1, min(64, -(-tiles // wanted)))
