"""What the contraction template of CPUs takes into its kernels.

Consumers run on the accumulators before they are stored. Of producers it takes the padding of a convolution: its
windows then read the tensor that is not padded.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.evaluate import operand_map
from mlc.kernels.common.fusion import Dims, Role, accepts_pointwise
from mlc.kernels.common.padding import padding_of


def accepts(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """None when the template takes `op` into the kernel of the contraction `dims.root`, else the reason."""
    if role == "consumer":
        return accepts_pointwise(role, op, dims)
    padding = padding_of(op)
    if padding is None:
        return "it would be computed again for every tile of the contraction"
    number = padding.value.value
    if number != 0:
        return f"the padding is {number}, not 0"
    if dims.reader != dims.root or dims.coordinates is None:
        return "it is not an operand of the contraction"
    columns = _vector_dim(dims.root)
    for dim in padding.dims:
        expr = dims.coordinates[dim]
        if isinstance(expr, ir.AffineDimExpr | ir.AffineConstantExpr):
            return f"dimension {dim} is padded, which is not one of the window"
        if columns is None or mentions(expr, columns):
            return f"dimension {dim} is padded, along which vectors are loaded"
    return None


def _vector_dim(root: ir.Operation) -> int | None:
    """The iteration dimension of the output's last dimension that is not 1; None when all are."""
    shape = root.results[0].type.shape
    moving = [i for i, extent in enumerate(shape) if extent != 1]
    exprs = list(operand_map(root, len(root.operands) - 1).results)
    return ir.AffineDimExpr(exprs[moving[-1]]).position if moving else None
