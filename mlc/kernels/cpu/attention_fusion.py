"""What the attention template of CPUs takes into its kernels.

The kernel forms where head dimensions are known and there is more than a handful of queries and keys. Consumers run on
the finished rows. Of producers it takes cheap elementwise ones of queries, keys and values, which are packed once per
work item.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.attention import attention_of
from mlc.kernels.common.fusion import Dims, Role, accepts_pointwise, is_expensive

WIDEST = 256  # columns of a head: what is packed onto the stack grows with it
FEWEST_QUERIES, FEWEST_KEYS = 4, 16


def accepts(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """None when the template takes `op` into the kernel of the attention whose last product is `dims.root`, else the
    reason. The first question is for the product that gives the scores."""
    if role == "consumer":
        return accepts_pointwise(role, op, dims)
    if is_contraction(op):
        return _worthwhile(dims.root)
    if op.name != "linalg.generic" or is_expensive(op):
        return "it would be computed again for every block of queries"
    return None


def _worthwhile(root: ir.Operation) -> str | None:
    attention = attention_of(root)
    if attention is None:
        return "it is no attention"
    scores, result = attention.scores, root.results[0].type
    if not all(isinstance(p.element, ir.F32Type) for p in (scores, attention.output)):
        return "attention in one kernel is for products of f32"
    rows, keys = list(scores.op.results[0].type.shape)[-2:]
    depth = attention.scores.op.operands[0].type
    width = result.get_dim_size(attention.output.order.index(attention.output.column))
    for extent in (_extent(depth, scores.op, scores.inner), width):
        if not 0 < extent <= WIDEST:
            return f"the head dimension is not known or larger than {WIDEST}"
    dynamic = ir.ShapedType.get_dynamic_size()
    if rows != dynamic and rows < FEWEST_QUERIES or keys != dynamic and keys < FEWEST_KEYS:
        return "there are too few queries or keys"
    return None


def _extent(type_: ir.RankedTensorType, op: ir.Operation, dim: int) -> int:
    """The extent of an iteration dimension in the left operand of a contraction."""
    exprs = list(ir.AffineMapAttr(op.attributes["indexing_maps"][0]).value.results)
    for e, extent in zip(exprs, type_.shape, strict=True):
        if isinstance(e, ir.AffineDimExpr) and e.position == dim:
            return extent
    return 0
