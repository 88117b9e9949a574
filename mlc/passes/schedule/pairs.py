"""Which contractions take adjacent products in one step: bf16 in pairs (template `dot_product`), integers of eight bits
in quads (`dot_quads`), either on matrix tiles (`tile_product`), in place of `contraction`."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_unsigned_input, operand_map
from mlc.kernels.common.padding import padding_of
from mlc.kernels.cpu.padding import windows_of
from mlc.kernels.cpu.tiles import ROWS

Schedule = dict[str, int | str]

TILE_ROWS = 4  # of a product that pay for tiles: fewer are as slow as memory
TILE_DEPTH = 16  # bytes of the innermost reduction dimension of which a tile's rows of 64 are not mostly zeros
TILE_PANEL = 1 << 18  # bytes of a panel that a work item may keep on its stack


def as_tile_product(
    root: ir.Operation, operand: int, schedule: Schedule, rows: int | None, bf16: bool, int8: bool
) -> Schedule | None:
    """`schedule`, of the contraction `root` of `rows` with vectors of input `operand`, for the template `tile_product`.

    None where the template does not apply: what `as_dot_product` and `as_dot_quads` ask for, of an input that lies in
    memory, at most padded for a window, and of a known number of steps. `bf16` and `int8` say what the target's tiles
    multiply.
    """
    if not (bf16 and _sums_bf16(root) or int8 and _sums_bytes(root)):
        return None
    group = 2 if _sums_bf16(root) else 4
    grouped = _in_groups(root, operand, {k: v for k, v in schedule.items() if k != "tail"}, group)
    type_ = root.operands[1 - operand].type
    if grouped is None or type_.is_dynamic_dim(type_.rank - 1) or int(schedule["row_first"]) < 0:
        return None
    depth = type_.get_dim_size(type_.rank - 1) * 4 // group
    if depth < TILE_DEPTH or rows is not None and rows < TILE_ROWS or not _is_in_memory(root, 1 - operand, schedule):
        return None
    packed = "packed_operand" in schedule
    panel = 2 * ROWS
    if not packed and depth * panel > TILE_PANEL:
        return None
    changed: Schedule = {"template": "tile_product", "lanes": ROWS, "rows": 2 * ROWS, "vectors": 2, "unroll": 1}
    line = _line_dim(root, operand, schedule) if rows is not None and rows < 2 * ROWS else -1
    if line >= 0:
        changed |= {"rows": ROWS, "line_dim": line}
        changed |= {"ahead": (int(schedule["ahead"]) + 1) // 2} if int(schedule.get("ahead", 0)) > 0 else {}
    changed |= {"stored": "tiles" if packed else "rows", "instruction": _tile_instruction(root, operand)}
    return {**grouped, **changed, **({"panel": panel} if packed else {})}


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
        and not any(mentions(e, dim) for e in operand_map(root, operand).results)
        and not shape.is_dynamic_dim(i)
        and shape.get_dim_size(i) > 1
    ]
    return found[-1] if found else -1


def _tile_instruction(root: ir.Operation, operand: int) -> str:
    """What multiplies tiles of the other input by those of input `operand`."""
    if _sums_bf16(root):
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


def as_dot_product(root: ir.Operation, operand: int, schedule: Schedule, native: bool) -> Schedule | None:
    """`schedule`, of the contraction `root` with vectors of input `operand`, for the template `dot_product`.

    None where the template does not apply: it takes bf16 with sums in f32; the other input must hold the innermost
    reduction dimension as its contiguous one, and not the vectors' dimension. `native` says that the target has the
    instruction.
    """
    if not _sums_bf16(root):
        return None
    grouped = _in_groups(root, operand, schedule, 2)
    if grouped is None:
        return None
    stored = "pairs" if "packed_operand" in schedule else "rows"
    return {**grouped, "template": "dot_product", "stored": stored, "instruction": "vdpbf16ps" if native else "fma"}


def as_dot_quads(root: ir.Operation, operand: int, schedule: Schedule, native: bool, pairs: bool) -> Schedule | None:
    """The same for integers of eight bits and the template `dot_quads`. `native` says that the target has `vpdpbusd`,
    which takes one operand with a sign and one without; `pairs` that it has `vpmaddwd` for its vectors."""
    if not _sums_bytes(root):
        return None
    grouped = _in_groups(root, operand, schedule, 4)
    if grouped is None:
        return None
    stored = "quads" if "packed_operand" in schedule else "rows"
    mixed = is_unsigned_input(root, 0) != is_unsigned_input(root, 1)
    instruction = "vpdpbusd" if native and mixed else "vpmaddwd" if pairs else "mul"
    return {**grouped, "template": "dot_quads", "stored": stored, "instruction": instruction}


def _in_groups(root: ir.Operation, operand: int, schedule: Schedule, group: int) -> Schedule | None:
    """`schedule` with `group` elements of the innermost reduction dimension a step; None where that is impossible."""
    if defining_op(root.operands[operand]) is not None:
        return None
    inner = _innermost(root)
    columns = ir.AffineDimExpr(operand_map(root, 2).results[int(schedule["vector_dim"])]).position
    along = list(operand_map(root, 1 - operand).results)
    if not _is_dim(along[-1], inner) or any(mentions(e, inner) for e in along[:-1]):
        return None
    if any(mentions(e, columns) for e in along):
        return None
    if not any(_is_dim(e, inner) for e in operand_map(root, operand).results):
        return None
    type_ = root.operands[1 - operand].type
    depth = None if type_.is_dynamic_dim(len(along) - 1) else type_.get_dim_size(len(along) - 1)
    if depth is not None and depth < 2 or depth is None and group > 2 and "packed_operand" in schedule:
        return None
    steps = 1 if depth is None else depth // group
    width = root.results[0].type.shape[int(schedule["vector_dim"])]
    if group == 2 and width < 2 * int(schedule["lanes"]):  # too few products for each pair that is spread over lanes
        schedule = {name: value for name, value in schedule.items() if name != "tail"}
    choices = (4, 1) if "tail" in schedule else (4, 3, 2, 1)
    unroll = 1 if depth is None else next(u for u in choices if steps % u == 0)
    return {**schedule, "unroll": unroll, "vector_operand": operand}


def _sums_bf16(root: ir.Operation) -> bool:
    types = [v.type.element_type for v in root.operands]
    return all(isinstance(t, ir.BF16Type) for t in types[:2]) and isinstance(types[2], ir.F32Type)


def _sums_bytes(root: ir.Operation) -> bool:
    types = [v.type.element_type for v in root.operands]
    widths = [t.width if isinstance(t, ir.IntegerType) else 0 for t in types]
    return widths == [8, 8, 32]


def sums_mixed_bytes(root: ir.Operation) -> bool:
    """Does `root` multiply bytes without a sign by bytes with one, with sums of 32 bits?"""
    return _sums_bytes(root) and is_unsigned_input(root, 0) != is_unsigned_input(root, 1)


def _innermost(root: ir.Operation) -> int:
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    return max(i for i, reduced in enumerate(kinds) if reduced)


def _is_dim(expr: ir.AffineExpr, dim: int) -> bool:
    return isinstance(expr, ir.AffineDimExpr) and expr.position == dim
