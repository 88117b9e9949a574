"""`matmul` and the composite `einsum`."""

from __future__ import annotations

import numpy as np

from mlc.interp.dtypes import is_int, unsigned_dtype, widen
from mlc.interp.registry import Call, InterpError, evaluates


def contraction_operand(x: np.ndarray, result: np.dtype, unsigned: bool = False) -> np.ndarray:
    """`x` in the dtype in which a contraction that gives `result` accumulates; integers have a sign unless
    `unsigned`."""
    if is_int(result):
        x = x.view(unsigned_dtype(x.dtype)) if unsigned else x
        return widen(x).astype(result)
    return widen(x)


@evaluates("mlc.matmul", "lhs rhs")
def matmul(call: Call, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """`lhs [...,M,K]` times `rhs [...,K,N]`, batch dimensions broadcast."""
    if lhs.ndim < 2 or rhs.ndim < 2:
        raise InterpError(f"mlc.matmul: operands of rank {lhs.ndim} and {rhs.ndim}, both must be at least 2")
    left = contraction_operand(lhs, call.dtype(), bool(call.attr("unsigned_lhs", False)))
    right = contraction_operand(rhs, call.dtype(), bool(call.attr("unsigned_rhs", False)))
    if call.attr("transpose_lhs", False):
        left = np.swapaxes(left, -1, -2)
    if call.attr("transpose_rhs", False):
        right = np.swapaxes(right, -1, -2)
    return np.matmul(left, right)


@evaluates("mlc.einsum", "inputs*")
def einsum(call: Call, inputs: list[np.ndarray]) -> np.ndarray:
    """`equation` over the inputs, in NumPy's notation (with `...`)."""
    operands = [contraction_operand(x, call.dtype()) for x in inputs]
    return np.asarray(np.einsum(call.need("equation").replace(" ", ""), *operands, optimize=len(operands) > 1))
