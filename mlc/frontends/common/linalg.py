"""Matrix products with NumPy's treatment of vectors, determinants and exponentials."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlc.frontends.common import control_flow, factorizations, reduction, shape, types
from mlc.frontends.common import elementwise as ew
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
        unsigned=lhs.unsigned and left.element == lhs.element,
        lhs_bits=lhs_bits,
    )
    gone = [axis for axis, vector in ((result.rank - 2, lhs), (result.rank - 1, rhs)) if vector.rank == 1]
    return shape.squeeze(b, result, gone) if gone else result


def determinant(b: Builder, x: Tensor) -> Tensor:
    """The determinant of the last two dimensions, by elimination with pivots: the product of all pivots."""
    if x.rank < 2:
        raise NodeError(f"the determinant of {x}, which is no matrix")
    lead = b.dims(x)[:-2]
    matrix = shape.reshape(b, x, [b.product(lead), *b.dims(x)[-2:]])
    factors, pivots, _ = factorizations.lu(b, matrix)
    return shape.reshape(b, eliminated_determinant(b, factors, pivots), lead)


def eliminated_determinant(b: Builder, factors: Tensor, pivots: Tensor) -> Tensor:
    """The determinants `[batch]` of matrices of which the factors and pivots of `factorizations.lu` are given."""
    result = reduction.reduce(b, "prod", factorizations.diagonal(b, factors), [1], False)
    return ew.binary(b, "mul", result, factorizations.parity(b, pivots, factors.dtype))


def matrix_exp(b: Builder, x: Tensor) -> Tensor:
    """The exponential of matrices `[batch, n, n]`: a Taylor polynomial of `x / 2^s`, squared s times.

    With s such that no column's sum of sizes exceeds 1, the terms that are left out are below the last place of the
    dtype. Source: Moler & Van Loan, Nineteen Dubious Ways to Compute the Exponential of a Matrix, method 3.
    """
    if 0 in x.shape:
        return x
    size = reduction.reduce(b, "max", reduction.reduce(b, "sum", ew.unary(b, "abs", x), [1], True), [2], True)
    info = np.finfo(types.numpy_dtype(x.dtype))
    small = b.like(float(info.tiny), x)
    exponent = ew.binary(b, "div", ew.unary(b, "log", ew.binary(b, "max", size, small)), b.like(math.log(2), x))
    halvings = ew.clamp(b, ew.unary(b, "ceil", exponent), b.like(0, x), b.like(float(info.maxexp - 4), x))
    part = ew.binary(b, "div", x, ew.binary(b, "pow", b.like(2, x), halvings))
    # No power of an infinity or NaN says more than the first.
    known = ew.compare(b, "lt", size, b.like(float("inf"), x))
    squarings = ew.cast(b, ew.select(b, known, halvings, b.like(0, x)), "int64")
    degree = 12 if info.bits <= 32 else 18
    unit_ = factorizations.eye(b, b.dims(x), x)

    def term(number: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        divisor = ew.cast(b, ew.binary(b, "sub", b.constant(np.array(degree, np.int64)), number), x.dtype)
        following = ew.binary(b, "div", factorizations.product(b, part, carried[0]), divisor)
        return [ew.binary(b, "add", unit_, following)], []

    def square(number: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        doubled = factorizations.product(b, carried[0], carried[0])
        return [ew.select(b, ew.compare(b, "gt", squarings, number), doubled, carried[0])], []

    [series] = control_flow.for_(b, degree, [unit_], term)
    most = b.scalar(reduction.reduce(b, "max", squarings, [0, 1, 2], False))
    return control_flow.for_(b, most, [series], square)[0]
