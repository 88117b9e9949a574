"""Factorizations of matrices, and what they solve: systems of equations, determinants, inverses.

Dimensions before the last two are batches. Source: PyTorch documentation, "torch.linalg".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlc.frontends.common import control_flow, factorizations, linalg, reduction, shape
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.common.types import numpy_dtype
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, Value, aten, like


def _matrices(b: Builder, x: Tensor) -> tuple[Tensor, list[Size]]:
    """`x` as `[batch, rows, columns]`, and the dimensions that the batch was."""
    if x.rank < 2 or not x.is_float:
        raise NodeError(f"it needs matrices of floats, got {x}", "convert it, or give it two dimensions")
    sizes = b.dims(x)
    return shape.reshape(b, x, [b.product(sizes[:-2]), *sizes[-2:]]), sizes[:-2]


def _with(b: Builder, x: Tensor, lead: Sequence[Size]) -> Tensor:
    """A result whose first dimension is the batch, with the dimensions that it was."""
    return shape.reshape(b, x, [*lead, *b.dims(x)[1:]])


def _pair(b: Builder, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, list[Size]]:
    """Two batches of matrices, as one of the common shape each."""
    common = shape.broadcast_sizes(b, [b.dims(value)[:-2] for value in (x, y)])
    x, y = (shape.expand(b, value, [*common, *b.dims(value)[-2:]]) for value in (x, y))
    return _matrices(b, x)[0], _matrices(b, y)[0], common


def _succeeded(b: Builder, info: Tensor, message: str) -> None:
    """A run ends with an error unless every element of `info` is 0."""
    most = reduction.reduce(b, "max", info, list(range(info.rank)), False)
    if 0 not in info.shape:
        control_flow.require(b, ew.compare(b, "eq", most, b.like(0, most)), True, message)


@aten("_linalg_det", "linalg_det", "det")
def determinant(call: Call) -> Tensor | list[Tensor]:
    """The determinant; with the factors and pivots of the elimination for its gradient."""
    b, x = call.b, call.tensor(0)
    matrix, lead = _matrices(b, x)
    factors, pivots, _ = factorizations.lu(b, matrix)
    result = _with(b, linalg.eliminated_determinant(b, factors, pivots), lead)
    if call.op != "aten::_linalg_det":
        return result
    return [result, _with(b, factors, lead), _with(b, pivots, lead)]


@aten("_linalg_slogdet", "linalg_slogdet", "slogdet", "logdet")
def log_determinant(call: Call) -> Tensor | list[Tensor]:
    """The sign of the determinant and the logarithm of its size; or the logarithm of the determinant itself."""
    b, x = call.b, call.tensor(0)
    matrix, lead = _matrices(b, x)
    factors, pivots, _ = factorizations.lu(b, matrix)
    diagonal = factorizations.diagonal(b, factors)
    signs = reduction.reduce(b, "prod", ew.unary(b, "sign", diagonal), [1], False)
    sign = ew.binary(b, "mul", signs, factorizations.parity(b, pivots, x.dtype))
    logs = ew.unary(b, "log", ew.unary(b, "abs", diagonal))
    size = reduction.reduce(b, "sum", logs, [1], False)
    if call.op == "aten::logdet":
        negative = ew.compare(b, "lt", sign, b.like(0, sign))
        return _with(b, ew.select(b, negative, b.like(float("nan"), size), size), lead)
    results = [_with(b, sign, lead), _with(b, size, lead)]
    if call.op == "aten::_linalg_slogdet":
        results += [_with(b, factors, lead), _with(b, pivots, lead)]
    return results


@aten("linalg_inv_ex", "linalg_inv", "inverse")
def inverse(call: Call) -> Tensor | list[Tensor]:
    """The inverse, and the first pivot that is 0; a run fails for one that was not to say which."""
    b, x = call.b, call.tensor(0)
    matrix, lead = _matrices(b, x)
    unit = factorizations.eye(b, b.dims(matrix), matrix)
    found, _, _, info = factorizations.solve(b, matrix, unit)
    if call.op != "aten::linalg_inv_ex" or call.get("check_errors", False):
        _succeeded(b, info, "a matrix that is inverted is singular")
    result = _with(b, found, lead)
    return [result, _with(b, info, lead)] if call.op == "aten::linalg_inv_ex" else result


@aten("_linalg_solve_ex", "linalg_solve_ex", "linalg_solve")
def solve(call: Call) -> Tensor | list[Tensor]:
    """What `A` makes the right-hand side of: `A x = B`, or `x A = B` where it is not on the left."""
    b, a, rhs = call.b, call.tensor(0), call.tensor(1)
    left = bool(call.get("left", True))
    vector = rhs.rank == 1 or (rhs.rank == a.rank - 1 and rhs.shape == a.shape[:-1])
    if vector:
        rhs = shape.unsqueeze(b, rhs, [rhs.rank])
    lines, own = _matrices(b, a)
    wide, right, lead = _pair(b, a, rhs)
    if not left:
        wide, right = factorizations.transposed(b, wide), factorizations.transposed(b, right)
    found, factors, pivots, info = factorizations.solve(b, wide, right)
    result = _with(b, found if left else factorizations.transposed(b, found), lead)
    result = shape.squeeze(b, result, [result.rank - 1]) if vector else result
    if call.op == "aten::linalg_solve" or call.get("check_errors", False):
        _succeeded(b, info, "a system of equations that is solved is singular")
    if call.op == "aten::linalg_solve":
        return result
    if len(lead) > len(own) or not left:  # the factors are those of A itself
        factors, pivots, info = factorizations.lu(b, lines)
    else:
        own = lead
    if call.op == "aten::linalg_solve_ex":
        return [result, _with(b, info, own)]
    return [result, _with(b, factors, own), _with(b, pivots, own), _with(b, info, own)]


@aten("linalg_cholesky_ex", "linalg_cholesky", "cholesky")
def cholesky(call: Call) -> Tensor | list[Tensor]:
    """The triangular factor of a positive definite matrix, and the first leading minor that is not positive."""
    b, x = call.b, call.tensor(0)
    upper = bool(call.get("upper", False))
    matrix, lead = _matrices(b, x)
    factor, info = factorizations.cholesky(b, factorizations.transposed(b, matrix) if upper else matrix)
    result = _with(b, factorizations.transposed(b, factor) if upper else factor, lead)
    if call.op != "aten::linalg_cholesky_ex" or call.get("check_errors", False):
        _succeeded(b, info, "a matrix of which the Cholesky factor is taken is not positive definite")
    return [result, _with(b, info, lead)] if call.op == "aten::linalg_cholesky_ex" else result


def _by_cholesky(b: Builder, factor: Tensor, rhs: Tensor, upper: bool) -> Tensor:
    """`inverse(L transpose(L)) rhs`, or of `transpose(U) U`."""
    other = factorizations.transposed(b, factor)
    first, second = (other, factor) if upper else (factor, other)
    between = factorizations.solve_triangular(b, first, rhs, upper=False)
    return factorizations.solve_triangular(b, second, between, upper=True)


@aten("cholesky_solve")
def cholesky_solve(call: Call) -> Tensor:
    """The solution of equations of whose matrix the Cholesky factor is given."""
    b, upper = call.b, bool(call.get("upper", False))
    rhs, factor, lead = _pair(b, call.tensor(0), call.tensor(1))
    return _with(b, _by_cholesky(b, factor, rhs, upper), lead)


@aten("cholesky_inverse")
def cholesky_inverse(call: Call) -> Tensor:
    """The inverse of a matrix of which the Cholesky factor is given."""
    b, upper = call.b, bool(call.get("upper", False))
    factor, lead = _matrices(b, call.tensor(0))
    unit = factorizations.eye(b, b.dims(factor), factor)
    return _with(b, _by_cholesky(b, factor, unit, upper), lead)


@aten("linalg_solve_triangular")
def solve_triangular(call: Call) -> Tensor:
    """The solution of `A x = B`, or of `x A = B`, for triangular matrices A."""
    b, upper, left = call.b, bool(call.get("upper")), bool(call.get("left", True))
    a, rhs, lead = _pair(b, call.tensor(0), call.tensor(1))
    return _with(b, _triangular(b, a, rhs, upper, bool(call.get("unitriangular", False)), left), lead)


def _triangular(b: Builder, a: Tensor, rhs: Tensor, upper: bool, unit: bool, left: bool) -> Tensor:
    if left:
        return factorizations.solve_triangular(b, a, rhs, upper, unit)
    a, rhs = factorizations.transposed(b, a), factorizations.transposed(b, rhs)
    return factorizations.transposed(b, factorizations.solve_triangular(b, a, rhs, not upper, unit))


@aten("triangular_solve")
def old_solve_triangular(call: Call) -> list[Tensor]:
    """The solution of `A x = B`, or of `transpose(A) x = B`, for triangular matrices A; and A."""
    b, upper = call.b, bool(call.get("upper", True))
    rhs, a, lead = _pair(b, call.tensor(0), call.tensor(1))
    copy = _with(b, a, lead)
    if call.get("transpose", False):
        a, upper = factorizations.transposed(b, a), not upper
    return [_with(b, factorizations.solve_triangular(b, a, rhs, upper, bool(call.get("unitriangular"))), lead), copy]


@aten("linalg_lu_factor_ex", "linalg_lu_factor", "_lu_with_info")
def lu_factor(call: Call) -> list[Tensor]:
    """Both triangular factors in one matrix, the rows that were exchanged, and the first pivot that is 0."""
    b, pivoting = call.b, bool(call.get("pivot", True))
    matrix, lead = _matrices(b, call.tensor(0))
    results = factorizations.lu(b, matrix, pivoting=pivoting)
    factors, pivots, info = (_with(b, value, lead) for value in results)
    if call.op == "aten::linalg_lu_factor" or call.get("check_errors", False):
        _succeeded(b, info, "a matrix of which the LU factors are taken is singular")
    return [factors, pivots] if call.op == "aten::linalg_lu_factor" else [factors, pivots, info]


def _unpacked(b: Builder, factors: Tensor) -> list[Tensor]:
    """L and U of the matrix that holds both."""
    count = b.arith("minsi", b.dim(factors, 1), b.dim(factors, 2))
    lower, upper = (shape.window(b, factors, axis, 0, count) for axis in (2, 1))
    return [factorizations.triangle(b, lower, False, unit=True), factorizations.triangle(b, upper, True)]


def _permutation(b: Builder, factors: Tensor, pivots: Tensor) -> Tensor:
    """P of `x = P L U`."""
    height = b.dim(factors, 1)
    return factorizations.exchanged(
        b, factorizations.eye(b, [b.dim(factors, 0), height, height], factors), pivots, True
    )


@aten("linalg_lu", "lu_unpack")
def lu(call: Call) -> list[Tensor]:
    """The factors of `x = P L U`, which may be packed already; those that are not asked for are empty."""
    b = call.b
    matrix, lead = _matrices(b, call.tensor(0))
    if call.op == "aten::linalg_lu":
        pivoting, data = bool(call.get("pivot", True)), True
        factors, pivots, _ = factorizations.lu(b, matrix, pivoting=pivoting)
    else:
        pivoting, data = bool(call.get("unpack_pivots", True)), bool(call.get("unpack_data", True))
        steps = call.tensor(1)
        factors, pivots = matrix, shape.reshape(b, steps, [b.dim(matrix, 0), b.dim(steps, steps.rank - 1)])
    empty = shape.full(b, [0], b.like(0, matrix))
    halves = [_with(b, value, lead) for value in _unpacked(b, factors)] if data else [empty, empty]
    return [_with(b, _permutation(b, factors, pivots), lead) if pivoting else empty, *halves]


@aten("linalg_lu_solve")
def lu_solve(call: Call) -> Tensor:
    """The solution of `A x = B`, or of `x A = B`, of the LU factors of A or of its transposed matrix."""
    b, packed, steps = call.b, call.tensor(0), call.tensor(1)
    factors, rhs, lead = _pair(b, packed, call.tensor(2))
    pivots = shape.expand(b, steps, [*lead, b.dim(steps, steps.rank - 1)])
    pivots = shape.reshape(b, pivots, [b.dim(factors, 0), b.dim(steps, steps.rank - 1)])
    left = bool(call.get("left", True))
    rhs = rhs if left else factorizations.transposed(b, rhs)
    if bool(call.get("adjoint", False)) == left:  # transpose(A) = transpose(U) transpose(L) transpose(P)
        other = factorizations.transposed(b, factors)
        found = factorizations.solve_triangular(b, other, rhs, upper=False)
        found = factorizations.solve_triangular(b, other, found, upper=True, unit=True)
        found = factorizations.exchanged(b, found, pivots, backwards=True)
    else:
        found = factorizations.exchanged(b, rhs, pivots)
        found = factorizations.solve_triangular(b, factors, found, upper=False, unit=True)
        found = factorizations.solve_triangular(b, factors, found, upper=True)
    return _with(b, found if left else factorizations.transposed(b, found), lead)


@aten("linalg_qr", "qr")
def qr(call: Call) -> list[Tensor]:
    """An orthogonal and an upper triangular factor; of all columns in the mode "complete", without Q in "r"."""
    b = call.b
    matrix, lead = _matrices(b, call.tensor(0))
    if call.op == "aten::qr":
        mode = "reduced" if call.get("some", True) else "complete"
    else:
        mode = str(call.get("mode", "reduced"))
    q, r = factorizations.qr(b, matrix, mode == "complete")
    return [shape.full(b, [0], b.like(0, q)) if mode == "r" else _with(b, q, lead), _with(b, r, lead)]


@aten("geqrf")
def packed_qr(call: Call) -> list[Tensor]:
    """R, with the vectors of the reflections that make it below its diagonal; and their factors."""
    b = call.b
    matrix, lead = _matrices(b, call.tensor(0))
    return [_with(b, value, lead) for value in factorizations.reflections(b, matrix)]


@aten("linalg_householder_product", "orgqr")
def householder_product(call: Call) -> Tensor:
    """The first columns of a product of reflections."""
    b, tau = call.b, call.tensor(1)
    matrix, lead = _matrices(b, call.tensor(0))
    taus = shape.reshape(b, tau, [b.dim(matrix, 0), b.dim(tau, tau.rank - 1)])
    return _with(b, factorizations.reflected(b, factorizations.eye(b, b.dims(matrix), matrix), matrix, taus), lead)


@aten("ormqr")
def reflect(call: Call) -> Tensor:
    """A product of reflections, or its transposed matrix, times a matrix, on the left or on the right of it."""
    b, tau = call.b, call.tensor(1)
    vectors, lead = _matrices(b, call.tensor(0))
    x, _ = _matrices(b, call.tensor(2))
    left, backwards = bool(call.get("left", True)), bool(call.get("transpose", False))
    taus = shape.reshape(b, tau, [b.dim(vectors, 0), b.dim(tau, tau.rank - 1)])
    if left:
        return _with(b, factorizations.reflected(b, x, vectors, taus, backwards), lead)
    found = factorizations.reflected(b, factorizations.transposed(b, x), vectors, taus, not backwards)
    return _with(b, factorizations.transposed(b, found), lead)


@aten("_linalg_svd", "linalg_svd", "svd", "linalg_svdvals")
def svd(call: Call) -> Tensor | list[Tensor]:
    """Singular values, the largest first, and both factors; "svd" gives V and the others its transposed matrix."""
    b = call.b
    matrix, lead = _matrices(b, call.tensor(0))
    full = bool(call.get("full_matrices", True)) if call.op != "aten::svd" else not call.get("some", True)
    turned = _is_wide(matrix)
    tall = factorizations.transposed(b, matrix) if turned else matrix
    call.get("driver")  # how, not what
    if call.op == "aten::linalg_svdvals":
        return _with(b, factorizations.singular_values(b, tall), lead)
    if not call.get("compute_uv", True):
        return _values_only(call, tall, matrix, lead)
    u, values, v = factorizations.svd(b, tall, full)
    u, v = (v, u) if turned else (u, v)
    last = v if call.op == "aten::svd" else factorizations.transposed(b, v)
    return [_with(b, value, lead) for value in (u, values, last)]


def _is_wide(matrix: Tensor) -> bool:
    """Whether the matrices are certainly wider than high: their transposed ones have fewer columns to turn."""
    height, width = matrix.shape[1:]
    return height is not None and width is not None and width > height


def _values_only(call: Call, tall: Tensor, matrix: Tensor, lead: Sequence[Size]) -> list[Tensor]:
    """The singular values between what PyTorch has for the factors that are not asked for."""
    b = call.b
    values = _with(b, factorizations.singular_values(b, tall), lead)
    zero = b.like(0, matrix)
    if call.op != "aten::svd":
        empty = shape.full(b, [0], zero)
        return [empty, values, empty]
    height, width = b.dims(matrix)[1:]
    return [shape.full(b, [*lead, height, height], zero), values, shape.full(b, [*lead, width, width], zero)]


def _symmetric(b: Builder, matrix: Tensor, upper: bool) -> Tensor:
    """The symmetric matrices of which one half is given."""
    lines, places = factorizations.rows(b, matrix), factorizations.columns(b, matrix)
    given = ew.compare(b, "le" if upper else "ge", lines, places)
    return ew.select(b, given, matrix, factorizations.transposed(b, matrix))


@aten("_linalg_eigh", "linalg_eigh", "linalg_eigvalsh")
def eigh(call: Call) -> Tensor | list[Tensor]:
    """Eigenvalues of symmetric matrices, the smallest first, and eigenvectors as columns; one half is read."""
    b = call.b
    matrix, lead = _matrices(b, call.tensor(0))
    upper = str(call.get("UPLO", "L")).upper() == "U"
    values, vectors = factorizations.eigh(b, _symmetric(b, matrix, upper))
    if call.op == "aten::linalg_eigvalsh":
        return _with(b, values, lead)
    if not call.get("compute_v", True):
        return [_with(b, values, lead), shape.full(b, [0], b.like(0, matrix))]
    return [_with(b, values, lead), _with(b, vectors, lead)]


@aten("linalg_pinv")
def pseudo_inverse(call: Call) -> Tensor:
    """The pseudo-inverse: of singular values that are not above a bound, 0 is the reciprocal.

    The bound is the larger one of `atol` and of `rtol` times the largest singular value; `rtol` is by default the
    larger extent times the dtype's epsilon, but 0 where there is an `atol`.
    """
    b = call.b
    matrix, lead = _matrices(b, call.tensor(0))
    hermitian, (absolute, relative) = bool(call.get("hermitian", False)), _bounds(call, matrix, lead)
    if 0 in matrix.shape:
        return shape.full(b, [*lead, *b.dims(matrix)[:0:-1]], b.like(0, matrix))
    if hermitian:
        values, v = factorizations.eigh(b, _symmetric(b, matrix, upper=False))
        u = v
    else:
        turned = _is_wide(matrix)
        u, values, v = factorizations.svd(b, factorizations.transposed(b, matrix) if turned else matrix, False)
        u, v = (v, u) if turned else (u, v)
    size = ew.unary(b, "abs", values)
    largest = reduction.reduce(b, "max", size, [1], True)
    kept = ew.compare(b, "gt", size, ew.binary(b, "max", absolute, ew.binary(b, "mul", relative, largest)))
    reciprocal = ew.binary(b, "div", b.like(1, values), ew.select(b, kept, values, b.like(1, values)))
    reciprocal = shape.unsqueeze(b, ew.select(b, kept, reciprocal, b.like(0, values)), [1])
    result = factorizations.product(b, ew.binary(b, "mul", v, reciprocal), factorizations.transposed(b, u))
    return _with(b, result, lead)


def _bounds(call: Call, matrix: Tensor, lead: Sequence[Size]) -> tuple[Tensor, Tensor]:
    """The absolute and the relative bound of singular values, `[batch, 1]` each."""
    b = call.b

    def given(value: Value) -> Tensor:
        return _column_of(b, like(b, value, matrix), lead)

    eps = like(b, float(np.finfo(numpy_dtype(matrix.dtype)).eps), matrix)
    extent = like(b, b.arith("maxsi", *b.dims(matrix)[1:]), matrix)
    default = ew.binary(b, "mul", eps, extent)
    absolute, relative = call.get("atol"), call.get("rtol", call.get("rcond"))
    zero = b.like(0, matrix)
    if absolute is None:
        return zero, default if relative is None else given(relative)
    bound = given(absolute)
    if relative is not None:
        return bound, given(relative)
    return bound, ew.select(b, ew.compare(b, "gt", bound, zero), zero, default)


def _column_of(b: Builder, value: Tensor, lead: Sequence[Size]) -> Tensor:
    """A number of each matrix, or of all, as `[batch, 1]`."""
    return value if value.rank == 0 else shape.reshape(b, shape.expand(b, value, lead), [b.product(lead), 1])


@aten("linalg_matrix_exp", "matrix_exp")
def matrix_exp(call: Call) -> Tensor:
    """The exponential of square matrices."""
    b = call.b
    matrix, lead = _matrices(b, call.tensor(0))
    return _with(b, linalg.matrix_exp(b, matrix), lead)
