"""What the attention templates of CPUs take into their kernels.

The kernel forms where products are of f32 or of floats of 16 bits, where head dimensions are known and there are more
than a few keys, and more than a few queries or one alone, for which keys and values are read where they lie. Consumers
run on the finished rows. Of producers they take cheap elementwise ones of queries, keys and values, which are packed,
or read, once per work item.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.attention import Product, attention_of, is_share_of_sum
from mlc.kernels.common.fusion import Dims, Role, accepts_pointwise, is_expensive
from mlc.kernels.common.generics import operand_map

WIDEST = 256  # columns of a head: what is packed onto the stack grows with it
FEWEST_QUERIES, FEWEST_KEYS = 4, 16
_TAKEN = (ir.F32Type, ir.BF16Type, ir.F16Type)


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
    if not is_share_of_sum(attention):
        return "exponentials are not relative to the largest ones, which would change what is done to their sum"
    scores, result = attention.scores, root.results[0].type
    if scores.element != attention.output.element or not isinstance(scores.element, _TAKEN):
        return "attention in one kernel is for products of f32, bf16 or f16"
    rows, keys = list(scores.op.results[0].type.shape)[-2:]
    width = result.get_dim_size(attention.output.order.index(attention.output.column))
    for extent in (row_elements(scores), width):
        if not 0 < extent <= WIDEST:
            return f"the head dimension is not known or larger than {WIDEST}"
    dynamic = ir.ShapedType.get_dynamic_size()
    if rows != dynamic and 1 < rows < FEWEST_QUERIES or keys != dynamic and keys < FEWEST_KEYS:
        return "there are too few queries or keys"
    return None


def row_elements(scores: Product) -> int:
    """The elements of a query and of a key; 0 where they are not known."""
    exprs = list(operand_map(scores.op, 0).results)
    for e, extent in zip(exprs, scores.op.operands[0].type.shape, strict=True):
        if isinstance(e, ir.AffineDimExpr) and e.position == scores.inner:
            return int(extent)
    return 0
