"""Which contractions are multiplied on matrix tiles (template `tile_product`), in place of `contraction`."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.kernels.common.analysis import mentions, touches
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_unsigned_input, operand_map
from mlc.kernels.common.padding import padding_of
from mlc.kernels.cpu.haloed_image import first_axis, image_size, pixels_apart
from mlc.kernels.cpu.padding import terms_of, windows_of
from mlc.kernels.cpu.tile_rows import LINES, step_of
from mlc.kernels.cpu.tiles import LINE, ROWS
from mlc.passes.schedule.extents import known, reach, shape_of
from mlc.passes.schedule.pairs import Schedule, in_groups, innermost, sums_bf16, sums_bytes

TILE_ROWS = 4  # of a product that pay for tiles: fewer are as slow as memory
TILE_DEPTH = 16  # bytes of the innermost reduction dimension of which a tile's rows of 64 are not mostly zeros
MIXED_STEPS = 8  # of a sum that have room for the epilogue of a block of rows
TILE_STACK = 1 << 18  # bytes of a panel, or of an image, that a work item may keep on its stack,
FLAT_STACK = 1 << 19  # and of an image that makes tiles full
MORE_IN_TAPS = 1.25  # times as many steps cost less than a weight that is interleaved where it is read


def as_tile_product(
    root: ir.Operation, operand: int, schedule: Schedule, rows: int | None, bf16: bool, int8: bool
) -> Schedule | None:
    """`schedule`, of the contraction `root` of `rows` with vectors of input `operand`, for the template `tile_product`.

    None where the template does not apply: what `as_dot_product` and `as_dot_quads` ask for, of an input that lies in
    memory, at most padded for a window, and of a known number of steps. `bf16` and `int8` say what the target's tiles
    multiply.
    """
    if not (bf16 and sums_bf16(root) or int8 and sums_bytes(root)):
        return None
    group = 2 if sums_bf16(root) else 4
    grouped = in_groups(root, operand, {k: v for k, v in schedule.items() if k not in ("tail", "ahead")}, group)
    type_ = root.operands[1 - operand].type
    if grouped is None or type_.is_dynamic_dim(type_.rank - 1) or int(schedule["row_first"]) < 0:
        return None
    joined = _is_joined(root, operand, schedule)
    taps = reach(root, operand, innermost(root) - 1) or 1 if joined else 1
    depth = type_.get_dim_size(type_.rank - 1) * taps * 4 // group
    if depth < TILE_DEPTH or rows is not None and rows < TILE_ROWS or not _is_in_memory(root, 1 - operand, schedule):
        return None
    stored = "tiles" if "packed_operand" in schedule and not joined else "rows"
    panel = 2 * ROWS
    if stored == "rows" and not 0 < _num_steps(root, operand) * panel * 4 // group <= TILE_STACK:
        return None
    changed: Schedule = {"template": "tile_product", "lanes": ROWS, "rows": 2 * ROWS, "vectors": 2, "unroll": 1}
    line = _line_dim(root, operand, schedule) if rows is not None and rows < 2 * ROWS else -1
    if line >= 0:
        changed |= {"rows": ROWS, "line_dim": line}
    if joined:
        changed |= {"joined": 1} | _unfolded(root, operand, schedule, line)
    elif flat := _flat(root, operand, schedule, line):
        changed = {k: v for k, v in changed.items() if k != "line_dim"} | {"rows": 2 * ROWS} | flat
    elif _has_small_image(root, 1 - operand, line):
        changed["halo"] = 1
    changed |= {"stored": stored, "instruction": _tile_instruction(root, operand)} | _mixed(root, int(changed["rows"]))
    return {**grouped, **changed, **({"panel": panel} if "packed_operand" in schedule else {})}


def _mixed(root: ir.Operation, rows: int) -> Schedule:
    """`mixed` of a product whose tiles are of so many `rows`: windows have other numbers of steps beside padding, and
    gain nothing; where a sum has few steps, whole loops of the epilogue would be between them."""
    steps = _num_steps(root, 0) * _width(root) // LINE
    is_product = str(root.attributes["iterator_types"]).count("reduction") == 1
    return {"mixed": -(-rows // steps)} if is_product and steps >= MIXED_STEPS else {}


def _has_small_image(root: ir.Operation, operand: int, line: int) -> bool:
    """Is input `operand` a padded image that a work item may keep on its stack? `line` is the output dimension of which
    it has several lines, or -1."""
    producer, type_ = defining_op(root.operands[operand]), root.operands[operand].type
    padding = None if producer is None else padding_of(producer)
    if padding is None or not type_.has_static_shape or type_.rank - 1 in padding.dims:
        return False
    width, lines = _width(root), operand_map(root, 2).results
    dims = [ir.AffineDimExpr(lines[line]).position] if line >= 0 else []
    dims += [i for i, kind in enumerate(root.attributes["iterator_types"]) if "reduction" in str(kind)]
    first = first_axis(padding, operand_map(root, operand).results, dims)
    return image_size([int(n) for n in type_.shape], first, LINE // width) * width <= TILE_STACK


def _flat(root: ir.Operation, operand: int, schedule: Schedule, line: int) -> Schedule:
    """`flat` and what goes with it, of a window whose input, with columns in input `operand`, is a padded image that a
    work item may keep on its stack, where rows over all of it are in fewer tiles than rows of its lines, of which there
    are two in a work item if `line` is one of the result's dimensions; {} for others."""
    along, row, shape = 1 - operand, int(schedule["row_last"]), shape_of(root.results[0].type)
    producer, type_ = defining_op(root.operands[along]), root.operands[along].type
    padding = None if producer is None else padding_of(producer)
    if padding is None or not type_.has_static_shape or row < 1 or row != int(schedule["row_first"]):
        return {}
    (lines, pixels), exprs = shape[row - 1 : row + 1], list(operand_map(root, along).results)
    if lines is None or pixels is None or set(padding.dims) != {type_.rank - 3, type_.rank - 2}:
        return {}
    results = operand_map(root, 2).results
    for place, axis in ((-3, row - 1), (-2, row)):
        dim = ir.AffineDimExpr(results[axis]).position
        if dict(terms_of(exprs[place]) or []).get(dim) != 1 or not _is_only_in(exprs, place, dim):
            return {}
    image, width = [int(n) for n in type_.shape], _width(root)
    apart = pixels_apart(padding, image[-2])
    if image_size(image, type_.rank - 3, LINE // width, apart) * width > FLAT_STACK:
        return {}
    by_lines = -(-lines // LINES) * LINES if line >= 0 else lines
    tiles = -(-((lines - 1) * apart + pixels) // ROWS)
    return {"row_first": row - 1, "halo": 1, "flat": apart} if tiles < by_lines * -(-pixels // ROWS) else {}


def _num_steps(root: ir.Operation, operand: int) -> int:
    """How many products each sum has, with the extents of input `operand`, which is read along all of them; 0 where
    these are not known."""
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    return known([reach(root, operand, dim) for dim, reduced in enumerate(kinds) if reduced]) or 0


def _is_joined(root: ir.Operation, operand: int, schedule: Schedule) -> bool:
    """Are the taps along a line of a window and the channels, which are no whole steps, one stretch of memory in the
    input that is not `operand`? The other one is a weight then, of as many dimensions as it is read along."""
    inner, type_ = innermost(root), root.operands[1 - operand].type
    channels = type_.get_dim_size(type_.rank - 1)
    if "packed_operand" not in schedule or inner < 2 or type_.rank < 3 or channels * _width(root) % LINE == 0:
        return False
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    exprs, weight = operand_map(root, 1 - operand).results, operand_map(root, operand).results
    if not kinds[inner - 1] or not all(isinstance(e, ir.AffineDimExpr) for e in weight):
        return False
    terms, taps = dict(terms_of(exprs[-2]) or []), reach(root, operand, inner - 1)
    if terms.get(inner - 1) != 1 or not _is_only_in(exprs, -2, inner - 1) or taps == 1:
        return False
    return taps is None or not _is_whole_in_taps(taps, channels, LINE // _width(root))


def _is_whole_in_taps(taps: int, channels: int, most: int) -> bool:
    """Do steps of each of the `taps` leave no rest of the `channels`, and are not many more than those over all taps,
    of up to `most` elements?"""
    step = step_of(channels, most, most // ROWS)
    return channels % step == 0 and taps * (channels // step) <= MORE_IN_TAPS * -(-taps * channels // most)


def _is_only_in(exprs: Sequence[ir.AffineExpr], number: int, dim: int) -> bool:
    """Is the iteration dimension `dim` in no coordinate but that of `number`, which counts from the end if negative?"""
    return not any(mentions(e, dim) for i, e in enumerate(exprs) if i != number % len(exprs))


def _unfolded(root: ir.Operation, operand: int, schedule: Schedule, line: int) -> Schedule:
    """`unfolded` of a product whose taps along a line are joined with its channels: as many lines as a window reaches
    over, where they fit on the stack. Lines of the result that are side by side read other ones."""
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    exprs, inner = list(operand_map(root, 1 - operand).results), innermost(root)
    taps = [d for d, reduced in enumerate(kinds[: inner - 1]) if reduced]
    first, last = int(schedule["row_first"]), int(schedule["row_last"])
    if line >= 0 or len(taps) != 1 or first != last or not isinstance(exprs[-1], ir.AffineDimExpr):
        return {}
    row = ir.AffineDimExpr(operand_map(root, 2).results[last]).position
    dilation = dict(terms_of(exprs[-3]) or []).get(taps[0])
    if not dilation or not _is_only_in(exprs, -3, taps[0]) or not _is_only_in(exprs, -2, row):
        return {}
    rows, window = shape_of(root.results[0].type)[last], reach(root, operand, taps[0])
    depth = known([reach(root, operand, dim) for dim in (inner - 1, inner)])
    if rows is None or window is None or depth is None:
        return {}
    lines, row_bytes = (window - 1) * dilation + 1, -(-depth * _width(root) // LINE) * LINE
    return {"unfolded": lines} if lines * rows * row_bytes <= TILE_STACK else {}


def _width(root: ir.Operation) -> int:
    """Bytes of an element of the operands."""
    return int(root.operands[0].type.element_type.width) // 8


def _line_dim(root: ir.Operation, operand: int, schedule: Schedule) -> int:
    """The last output dimension, of known extent, that only the other input than `operand` has, beside rows; -1 where
    there is none."""
    order = [ir.AffineDimExpr(e).position for e in operand_map(root, 2).results]
    shape = root.results[0].type
    rows = range(int(schedule["row_first"]), int(schedule["row_last"]) + 1)
    found = [
        i
        for i, dim in enumerate(order)
        if i not in rows
        and not touches(root, operand, dim)
        and not shape.is_dynamic_dim(i)
        and shape.get_dim_size(i) > 1
    ]
    return found[-1] if found else -1


def _tile_instruction(root: ir.Operation, operand: int) -> str:
    """What multiplies tiles of the other input by those of input `operand`."""
    if sums_bf16(root):
        return "tdpbf16ps"
    return "tdpb" + "".join("u" if is_unsigned_input(root, i) else "s" for i in (1 - operand, operand)) + "d"


def _is_in_memory(root: ir.Operation, operand: int, schedule: Schedule) -> bool:
    """Is input `operand` an argument of the kernel, or one with zeros around it that a window goes over?"""
    producer = defining_op(root.operands[operand])
    if producer is None:
        return True
    padding = padding_of(producer)
    if padding is None or padding.value.value != 0 or defining_op(padding.source) is not None:
        return False
    iterators = [str(t) for t in root.attributes["iterator_types"]]
    windows = windows_of(padding, list(operand_map(root, operand).results), iterators)
    order = [ir.AffineDimExpr(e).position for e in operand_map(root, 2).results]
    first, last, axis = (int(schedule[name]) for name in ("row_first", "row_last", "vector_dim"))
    axes = [order.index(w.point) for w in windows or []]
    return bool(axes) and not any(a == axis or first < last and first <= a <= last for a in axes)
