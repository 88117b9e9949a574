"""Which contractions of bf16 take their products in pairs: the template `dot_product` in place of `contraction`."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import operand_map

Schedule = dict[str, int | str]


def as_dot_product(root: ir.Operation, operand: int, schedule: Schedule, native: bool) -> Schedule | None:
    """`schedule`, of the contraction `root` with vectors of input `operand`, for the template `dot_product`.

    None where the template does not apply: it takes bf16 with sums in f32; the other input must hold the innermost
    reduction dimension as its contiguous one, and not the vectors' dimension. `native` says that the target has the
    instruction.
    """
    if not _sums_bf16(root) or defining_op(root.operands[operand]) is not None:
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
    if depth is not None and depth < 2:
        return None
    pairs = 1 if depth is None else depth // 2
    return {
        **schedule,
        "template": "dot_product",
        "unroll": 1 if depth is None else next(u for u in (4, 3, 2, 1) if pairs % u == 0),
        "vector_operand": operand,
        "stored": "pairs" if "packed_operand" in schedule else "rows",
        "instruction": "vdpbf16ps" if native else "fma",
    }


def _sums_bf16(root: ir.Operation) -> bool:
    types = [v.type.element_type for v in root.operands]
    return all(isinstance(t, ir.BF16Type) for t in types[:2]) and isinstance(types[2], ir.F32Type)


def _innermost(root: ir.Operation) -> int:
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    return max(i for i, reduced in enumerate(kinds) if reduced)


def _is_dim(expr: ir.AffineExpr, dim: int) -> bool:
    return isinstance(expr, ir.AffineDimExpr) and expr.position == dim
