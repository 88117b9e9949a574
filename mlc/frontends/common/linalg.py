"""Matrix products with NumPy's treatment of vectors, and determinants."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import reduction, shape
from mlc.frontends.common.builder import Builder, Tensor, unit
from mlc.frontends.report import NodeError


def matmul(
    b: Builder,
    lhs: Tensor,
    rhs: Tensor,
    transpose_lhs: bool = False,
    transpose_rhs: bool = False,
    lhs_bits: int | None = None,
) -> Tensor:
    """`numpy.matmul`: a vector is a row on the left and a column on the right; leading dimensions broadcast. `lhs` may
    be rounded to codes of `lhs_bits`."""
    if lhs.rank == 0 or rhs.rank == 0:
        raise NodeError("a matrix product needs operands of rank 1 or more")
    if lhs.dtype != rhs.dtype:
        raise NodeError(f"the operands have different types, {lhs.dtype} and {rhs.dtype}", "insert a Cast")
    left = shape.unsqueeze(b, lhs, [0]) if lhs.rank == 1 else lhs
    right = shape.unsqueeze(b, rhs, [1]) if rhs.rank == 1 else rhs
    if lhs.unsigned and str(lhs.element) == "i8":
        # The primitive reads i8 as signed.
        left, right = ew.cast(b, left, "int32"), ew.cast(b, right, "int32")
    result = b.op(
        "matmul",
        [left, right],
        transpose_lhs=unit(transpose_lhs and lhs.rank > 1),
        transpose_rhs=unit(transpose_rhs and rhs.rank > 1),
        unsigned=lhs.unsigned and str(left.element) != "i32",
        lhs_bits=lhs_bits,
    )
    gone = [axis for axis, vector in ((result.rank - 2, lhs), (result.rank - 1, rhs)) if vector.rank == 1]
    return shape.squeeze(b, result, gone) if gone else result


def determinant(b: Builder, x: Tensor) -> Tensor:
    """The determinant of the last two dimensions, whose extent must be static: Gaussian elimination, unrolled.

    Each step picks the row with the largest pivot, as LAPACK does.
    """
    size = x.shape[-1]
    if size is None or x.rank < 2:
        raise NodeError("the determinant of matrices whose extent is known only at run time is not supported")
    lead = b.dims(x)[:-2]
    matrix = shape.reshape(b, x, [b.product(lead), size, size])
    result = shape.full(b, [b.dim(matrix, 0), 1, 1], b.like(1, x))
    for remaining in range(size, 0, -1):
        rows = shape.iota(b, [1, remaining, 1], 1, "int64")
        column = shape.window(b, matrix, 2, 0, 1)
        best = reduction.arg_reduce(b, "max", ew.unary(b, "abs", column), 1, True, False)
        chosen = ew.cast(b, ew.compare(b, "eq", rows, best), x.dtype)
        pivot_row = reduction.reduce(b, "sum", ew.binary(b, "mul", matrix, chosen), [1], True)
        pivot = shape.window(b, pivot_row, 2, 0, 1)
        moved = ew.compare(b, "ne", best, b.constant(np.array(0, np.int64)))
        sign = ew.select(b, moved, b.like(-1, x), b.like(1, x))
        result = ew.binary(b, "mul", result, ew.binary(b, "mul", pivot, sign))
        if remaining == 1:
            break
        # The first row takes the place of the pivot row, then everything below is eliminated.
        first = shape.window(b, matrix, 1, 0, 1)
        swapped = ew.select(b, ew.compare(b, "eq", rows, best), first, matrix)
        below = shape.window(b, swapped, 1, 1, remaining - 1)
        zero = ew.compare(b, "eq", pivot, b.like(0, x))
        divisor = ew.select(b, zero, b.like(1, x), pivot)
        factor = ew.binary(b, "div", shape.window(b, below, 2, 0, 1), divisor)
        reduced = ew.binary(b, "sub", below, ew.binary(b, "mul", factor, pivot_row))
        matrix = shape.window(b, reduced, 2, 1, remaining - 1)
    return shape.reshape(b, result, lead)
