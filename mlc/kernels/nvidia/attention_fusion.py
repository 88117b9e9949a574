"""What the attention template of GPUs takes into its kernels.

The copy engine brings queries, keys and values from memory to the tensor cores, so that nothing is computed on the way:
the kernel has no producers. Consumers run on the finished rows.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.attention import Product, attention_of
from mlc.kernels.common.fusion import Dims, Role, accepts_pointwise
from mlc.kernels.common.generics import operand_map
from mlc.kernels.nvidia.tensor_cores.attention_operands import head_dims
from mlc.kernels.nvidia.tensor_maps import LARGEST_RANK

WIDEST = 256  # columns of a head: more accumulators than registers
UNIT = 8  # columns that rows must be multiples of to lie 16 bytes apart


def accepts(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """None when the template takes `op` into the kernel of the attention whose last product is `dims.root`, else the
    reason. The first question is for the product that gives the scores."""
    if role == "consumer":
        return accepts_pointwise(role, op, dims)
    if not is_contraction(op):
        return "the copy engine reads queries, keys and values from memory"
    attention = attention_of(dims.root)
    if attention is None:
        return "it is no attention"
    scores, output = attention.scores, attention.output
    if scores.element != output.element:
        return "its products are of two types"
    depth, width = head_dims(attention)
    if not all(0 < e <= WIDEST and e % UNIT == 0 for e in (depth, width)):
        return f"the head dimension is not known, no multiple of {UNIT}, or larger than {WIDEST}"
    keys = _extent(output, 1, output.inner)
    if keys == 1:
        return "there is one key"
    found = [(scores, 0, scores.inner), (scores, 1, scores.inner), (output, 1, output.column)]
    return next((p for p in (_problem(*one) for one in found) if p is not None), None)


def _problem(product: Product, operand: int, contiguous: int) -> str | None:
    """Why the copy engine cannot read an operand, whose dimension `contiguous` must be so in memory."""
    exprs, shape = list(operand_map(product.op, operand).results), product.op.operands[operand].type.shape
    if not all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in exprs):
        return "it would be read at computed addresses"
    extents = [extent for extent in shape if extent != 1]
    moving = [e for e, extent in zip(exprs, shape, strict=True) if extent != 1]
    if not moving or not isinstance(moving[-1], ir.AffineDimExpr) or moving[-1].position != contiguous:
        return "rows of queries, keys or values are not contiguous in memory"
    single = [isinstance(e, ir.AffineConstantExpr) or e.position in product.batch for e in moving]
    joined = sum(a and b and extent > 0 for a, b, extent in zip(single, single[1:], extents[1:], strict=False))
    return f"it has more than {LARGEST_RANK} dimensions" if len(moving) - joined > LARGEST_RANK else None


def _extent(product: Product, operand: int, dim: int) -> int:
    """The extent of an iteration dimension in an operand; -1 when it is known at run time only."""
    exprs, type_ = list(operand_map(product.op, operand).results), product.op.operands[operand].type
    at = next(i for i, e in enumerate(exprs) if isinstance(e, ir.AffineDimExpr) and e.position == dim)
    return -1 if type_.is_dynamic_dim(at) else int(type_.get_dim_size(at))
