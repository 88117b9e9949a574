"""Which contractions take adjacent products in one step: bf16 in pairs (template `dot_product`), integers of eight bits
in quads (`dot_quads`), in place of `contraction`."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_never_negative_input, is_unsigned_input, operand_map

Schedule = dict[str, int | str]

WORD_STEPS = 1  # in the body of a loop: of more LLVM adds the products first, which takes registers
LEAST_LANES = 8  # of targets that are sure to have `vpmaddubsw`


def as_dot_product(root: ir.Operation, operand: int, schedule: Schedule, native: bool) -> Schedule | None:
    """`schedule`, of the contraction `root` with vectors of input `operand`, for the template `dot_product`.

    None where the template does not apply: it takes bf16 with sums in f32; the other input must hold the innermost
    reduction dimension as its contiguous one, and not the vectors' dimension. `native` says that the target has the
    instruction.
    """
    if not sums_bf16(root):
        return None
    grouped = in_groups(root, operand, schedule, 2)
    if grouped is None:
        return None
    stored = "pairs" if "packed_operand" in schedule else "rows"
    return {**grouped, "template": "dot_product", "stored": stored, "instruction": "vdpbf16ps" if native else "fma"}


def as_dot_quads(root: ir.Operation, operand: int, schedule: Schedule, native: bool, pairs: bool) -> Schedule | None:
    """The same for integers of eight bits and the template `dot_quads`. `native` says that the target has `vpdpbusd`,
    which takes one operand with a sign and one without; `pairs` that it has `vpmaddwd` for its vectors."""
    if not sums_bytes(root):
        return None
    grouped = in_groups(root, operand, schedule, 4)
    if grouped is None:
        return None
    stored = "quads" if "packed_operand" in schedule else "rows"
    mixed = is_unsigned_input(root, 0) != is_unsigned_input(root, 1)
    instruction = "vpdpbusd" if native and mixed else "vpmaddwd" if pairs else "mul"
    if instruction == "vpmaddwd" and stored == "quads" and _depth(root, operand) is not None:
        if mixed and is_never_negative_input(root, 1 - operand) and int(schedule["lanes"]) >= LEAST_LANES:
            return {**grouped, "template": "dot_quads", "stored": stored, "instruction": "vpmaddubsw", "unroll": 1}
        return {**grouped, "template": "dot_words", "stored": "pairs", "unroll": WORD_STEPS}
    return {**grouped, "template": "dot_quads", "stored": stored, "instruction": instruction}


def in_groups(root: ir.Operation, operand: int, schedule: Schedule, group: int) -> Schedule | None:
    """`schedule` with `group` elements of the innermost reduction dimension a step; None where that is impossible."""
    if defining_op(root.operands[operand]) is not None:
        return None
    inner = innermost(root)
    columns = ir.AffineDimExpr(operand_map(root, 2).results[int(schedule["vector_dim"])]).position
    along = list(operand_map(root, 1 - operand).results)
    if not is_dim(along[-1], inner) or any(mentions(e, inner) for e in along[:-1]):
        return None
    if any(mentions(e, columns) for e in along):
        return None
    if not any(is_dim(e, inner) for e in operand_map(root, operand).results):
        return None
    depth = _depth(root, operand)
    if depth is not None and depth < 2 or depth is None and group > 2 and "packed_operand" in schedule:
        return None
    steps = 1 if depth is None else depth // group
    width = root.results[0].type.shape[int(schedule["vector_dim"])]
    if group == 2 and width < 2 * int(schedule["lanes"]):  # too few products for each pair that is spread over lanes
        schedule = {name: value for name, value in schedule.items() if name != "tail"}
    choices = (4, 1) if "tail" in schedule else (4, 3, 2, 1)
    unroll = 1 if depth is None else next(u for u in choices if steps % u == 0)
    return {**schedule, "unroll": unroll, "vector_operand": operand}


def _depth(root: ir.Operation, operand: int) -> int | None:
    """The extent of the innermost reduction dimension, the last one of the input that is not `operand`."""
    type_ = root.operands[1 - operand].type
    last = type_.rank - 1
    return None if type_.is_dynamic_dim(last) else int(type_.get_dim_size(last))


def sums_bf16(root: ir.Operation) -> bool:
    """Does `root` multiply bf16 with sums in f32?"""
    types = [v.type.element_type for v in root.operands]
    return all(isinstance(t, ir.BF16Type) for t in types[:2]) and isinstance(types[2], ir.F32Type)


def reads_halves(root: ir.Operation, operand: int) -> bool:
    """Does `root` multiply f32 by its input `operand` of f16?"""
    types = [v.type.element_type for v in root.operands]
    others = [t for number, t in enumerate(types) if number != operand]
    return isinstance(types[operand], ir.F16Type) and all(isinstance(t, ir.F32Type) for t in others)


def sums_bytes(root: ir.Operation) -> bool:
    """Does `root` multiply integers of eight bits with sums of 32?"""
    types = [v.type.element_type for v in root.operands]
    widths = [t.width if isinstance(t, ir.IntegerType) else 0 for t in types]
    return widths == [8, 8, 32]


def sums_mixed_bytes(root: ir.Operation) -> bool:
    """Does `root` multiply bytes without a sign by bytes with one, with sums of 32 bits?"""
    return sums_bytes(root) and is_unsigned_input(root, 0) != is_unsigned_input(root, 1)


def innermost(root: ir.Operation) -> int:
    """The innermost reduction dimension."""
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    return max(i for i, reduced in enumerate(kinds) if reduced)


def is_dim(expr: ir.AffineExpr, dim: int) -> bool:
    """Is `expr` the iteration dimension `dim` alone?"""
    return isinstance(expr, ir.AffineDimExpr) and expr.position == dim
