"""Factorizations of batches of matrices, as loops over columns: triangular, orthogonal, by eigenvalues.

Every function takes matrices of `[batch, rows, columns]`, of one dtype of floats; extents may be dynamic. A loop holds
one step of the textbook's algorithm, which works on whole matrices: what it leaves alone is masked. So neither the size
of the program nor the time to compile it depends on the size of the matrices.

Source: Golub & Van Loan, Matrix Computations, 4th edition; the sections are named below. LAPACK decides where the book
leaves a choice: the order of pivots, the signs of the orthogonal factors, and what `info` says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlc.frontends.common import control_flow, indexing, reduction, shape
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.common.types import numpy_dtype

_SWEEPS = 40
"""How often Jacobi's method goes through all pairs of columns at most; it needs about log2 of their number, and 5."""


def rows(b: Builder, x: Tensor) -> Tensor:
    """The number of the row of each element of `x`: `[1, rows, 1] i64`."""
    return shape.iota(b, [1, b.dim(x, 1), 1], 1, "int64")


def columns(b: Builder, x: Tensor) -> Tensor:
    """The number of the column of each element of `x`: `[1, 1, columns] i64`."""
    return shape.iota(b, [1, 1, b.dim(x, 2)], 2, "int64")


def triangle(b: Builder, x: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """`x` with zeros on the other side of the diagonal; ones on it where it is `unit`."""
    kept = ew.compare(b, ("lt" if unit else "le") if upper else ("gt" if unit else "ge"), rows(b, x), columns(b, x))
    part = ew.select(b, kept, x, b.like(0, x))
    if not unit:
        return part
    return ew.select(b, ew.compare(b, "eq", rows(b, x), columns(b, x)), b.like(1, x), part)


def eye(b: Builder, sizes: Sequence[Size], like: Tensor) -> Tensor:
    """Ones on the diagonals of matrices of `sizes`, `[batch, rows, columns]`, of the dtype of `like`."""
    _, height, width = sizes
    lines = (shape.iota(b, [1, height, 1], 1, "int64"), shape.iota(b, [1, 1, width], 2, "int64"))
    one = ew.select(b, ew.compare(b, "eq", *lines), b.like(1, like), b.like(0, like))
    return shape.broadcast(b, one, sizes)


def diagonal(b: Builder, x: Tensor) -> Tensor:
    """The diagonals of `x`, which is no wider than it is high: `[batch, columns]`."""
    on = ew.compare(b, "eq", rows(b, x), columns(b, x))
    return reduction.reduce(b, "sum", ew.select(b, on, x, b.like(0, x)), [1], False)


def transposed(b: Builder, x: Tensor) -> Tensor:
    """The transposed matrices."""
    return shape.transpose(b, x, [0, 2, 1])


def product(b: Builder, lhs: Tensor, rhs: Tensor) -> Tensor:
    """The products of matrices."""
    return b.op("matmul", [lhs, rhs])


def _row(b: Builder, x: Tensor, number: Size) -> Tensor:
    return shape.window(b, x, 1, number, 1)


def _column(b: Builder, x: Tensor, number: Size) -> Tensor:
    return shape.window(b, x, 2, number, 1)


def _total(b: Builder, x: Tensor, axis: int) -> Tensor:
    return reduction.reduce(b, "sum", x, [axis], True)


def _last(b: Builder, count: Size) -> Tensor:
    """The number of the last one of `count`: `[] i64`."""
    return ew.binary(b, "sub", shape.size_scalar(b, count), b.constant(np.array(1, np.int64)))


def _first(b: Builder, info: Tensor, failed: Tensor, number: Tensor) -> Tensor:
    """`info [batch] i32`, with step `number`, counted from 1, where it is the first that `failed`."""
    after = ew.cast(b, ew.binary(b, "add", number, b.like(1, number)), "int32")
    now = ew.binary(b, "and", shape.reshape(b, failed, [b.dim(info, 0)]), ew.compare(b, "eq", info, b.like(0, info)))
    return ew.select(b, now, after, info)


def _exchanged(b: Builder, x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """`x` with the row `first [] i64` in the place of `second [batch, 1, 1] i64`, and the other way round."""
    here, there = ew.compare(b, "eq", rows(b, x), first), ew.compare(b, "eq", rows(b, x), second)
    one = _row(b, x, b.element(first))
    other = _total(b, ew.select(b, there, x, b.like(0, x)), 1)
    return ew.select(b, here, other, ew.select(b, there, one, x))


def lu(b: Builder, x: Tensor, steps: Size | None = None, pivoting: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Gaussian elimination of the first `steps` columns (or of all): `P x = L U`, in one matrix (Golub & Van Loan 3.4).

    Returns L below the diagonal and U, like `x`; the row that each one was exchanged with, `[batch, steps] i32`, where
    rows begin at 1; and the first pivot that is 0, counted from 1, or 0: `[batch] i32`. A column without a pivot is
    left as it is. Columns behind `steps` become `inverse(L) P x`.
    """
    count = b.arith("minsi", b.dim(x, 1), b.dim(x, 2)) if steps is None else steps
    batch = b.dim(x, 0)
    none = b.constant(0, "int32")
    start = [x, shape.full(b, [batch, count], none), shape.full(b, [batch], none)]
    if 0 in x.shape:
        return start[0], start[1], start[2]

    def step(number: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        matrix, pivots, info = carried
        at, line = b.element(number), rows(b, matrix)
        best = shape.reshape(b, number, [1, 1, 1])
        column = _column(b, matrix, at)
        if pivoting:
            size = ew.select(b, ew.compare(b, "ge", line, number), ew.unary(b, "abs", column), b.like(-1, matrix))
            best = reduction.arg_reduce(b, "max", size, 1, True, False)
        matrix = _exchanged(b, matrix, number, best) if pivoting else matrix
        pivot_row = _row(b, matrix, at)
        pivot, column = _column(b, pivot_row, at), _column(b, matrix, at)
        missing = ew.compare(b, "eq", pivot, b.like(0, pivot))
        divisor = ew.select(b, missing, b.like(1, pivot), pivot)
        below = ew.compare(b, "gt", line, number)
        factor = ew.binary(b, "div", column, divisor)
        less = ew.binary(b, "sub", matrix, ew.binary(b, "mul", factor, pivot_row))
        behind = ew.compare(b, "gt", columns(b, matrix), number)
        there = ew.compare(b, "eq", columns(b, matrix), number)
        inside = ew.select(b, behind, less, ew.select(b, there, factor, matrix))
        matrix = ew.select(b, below, inside, matrix)
        return [matrix, *_noted(b, number, best, missing, pivots, info)], []

    factors, pivots, info = control_flow.for_(b, count, start, step)
    return factors, pivots, info


def _noted(
    b: Builder, number: Tensor, best: Tensor, missing: Tensor, pivots: Tensor, info: Tensor
) -> tuple[Tensor, Tensor]:
    """The pivots and `info` of `lu` with those of step `number`."""
    place = ew.cast(b, ew.binary(b, "add", shape.reshape(b, best, [b.dim(best, 0), 1]), b.like(1, best)), "int32")
    now = ew.compare(b, "eq", shape.iota(b, [1, b.dim(pivots, 1)], 1, "int64"), number)
    return ew.select(b, now, place, pivots), _first(b, info, missing, number)


def exchanged(b: Builder, x: Tensor, pivots: Tensor, backwards: bool = False) -> Tensor:
    """`x` with its rows exchanged as `pivots [batch, steps] i32` of `lu` say: `P x`, or back: `transpose(P) x`."""
    count = b.dim(pivots, 1)
    if 0 in x.shape:
        return x
    last = _last(b, count)

    def step(number: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        if backwards:
            number = ew.binary(b, "sub", last, number)
        other = ew.cast(b, shape.window(b, pivots, 1, b.element(number), 1), "int64")
        other = shape.reshape(b, ew.binary(b, "sub", other, b.like(1, other)), [b.dim(pivots, 0), 1, 1])
        return [_exchanged(b, carried[0], number, other)], []

    return control_flow.for_(b, count, [x], step)[0]


def parity(b: Builder, pivots: Tensor, dtype: str) -> Tensor:
    """The determinant of `lu`'s P, 1 or -1: `[batch]` of `dtype`."""
    place = shape.iota(b, [1, b.dim(pivots, 1)], 1, "int32")
    moved = ew.compare(b, "ne", pivots, ew.binary(b, "add", place, b.like(1, place)))
    odd = reduction.reduce(b, "sum", ew.cast(b, moved, "int32"), [1], False)
    odd = ew.binary(b, "and", odd, b.like(1, odd))
    return ew.select(b, ew.compare(b, "eq", odd, b.like(1, odd)), b.constant(-1, dtype), b.constant(1, dtype))


def solve_triangular(b: Builder, a: Tensor, rhs: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """`inverse(a) rhs`, `[batch, n, columns]`, of triangular matrices `a` (Golub & Van Loan 3.1): the other half of
    `a` is not read, nor is its diagonal where that is `unit`.
    """
    count = b.dim(a, 1)
    if 0 in rhs.shape:
        return rhs
    last = _last(b, count)

    def step(number: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        [x] = carried
        number = ew.binary(b, "sub", last, number) if upper else number
        at, line = b.element(number), rows(b, x)
        column, found = _column(b, a, at), _row(b, x, at)
        if not unit:
            found = ew.binary(b, "div", found, _row(b, column, at))
        rest = ew.compare(b, "lt" if upper else "gt", line, number)
        less = ew.binary(b, "sub", x, ew.binary(b, "mul", column, found))
        here = ew.compare(b, "eq", line, number)
        return [ew.select(b, here, found, ew.select(b, rest, less, x))], []

    return control_flow.for_(b, count, [rhs], step)[0]


def solve(b: Builder, a: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`inverse(a) rhs` by elimination with pivots, which takes the right-hand sides along; and the results of `lu`."""
    count = b.dim(a, 1)
    both, pivots, info = lu(b, shape.concat(b, [a, rhs], 2), count)
    factors = shape.window(b, both, 2, 0, count)
    reduced = shape.window(b, both, 2, count, b.dim(rhs, 2))
    return solve_triangular(b, factors, reduced, upper=True), factors, pivots, info


def cholesky(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """The lower L of `x = L transpose(L)`, of whose `x` only the lower half is read (Golub & Van Loan 4.2.5); and the
    first leading minor that is not positive, counted from 1, or 0: `[batch] i32`.
    """
    batch = b.dim(x, 0)
    start = [x, shape.full(b, [batch], b.constant(0, "int32"))]
    if 0 in x.shape:
        return start[0], start[1]

    def step(number: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        matrix, info = carried
        at = b.element(number)
        column = _column(b, matrix, at)
        pivot = _row(b, column, at)
        good = ew.compare(b, "gt", pivot, b.like(0, pivot))
        root = ew.unary(b, "sqrt", pivot)
        below = ew.binary(b, "div", column, root)
        line = shape.reshape(b, below, [batch, 1, b.dim(matrix, 1)])
        less = ew.binary(b, "sub", matrix, ew.binary(b, "mul", below, line))
        behind = ew.compare(b, "gt", columns(b, matrix), number)
        here = ew.compare(b, "eq", columns(b, matrix), number)
        inside = ew.select(b, behind, less, ew.select(b, here, below, matrix))
        corner = ew.binary(b, "and", here, ew.compare(b, "eq", rows(b, matrix), number))
        changed = ew.select(b, ew.compare(b, "gt", rows(b, matrix), number), inside, matrix)
        changed = ew.select(b, corner, root, changed)
        return [changed, _first(b, info, ew.unary(b, "not", good), number)], []

    factor, info = control_flow.for_(b, b.dim(x, 1), start, step)
    return triangle(b, factor, upper=False), info


def reflections(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """Householder's reflections that make `x` triangular: `H1 H2 … = Q`, `transpose(Q) x = R` (Golub & Van Loan 5.2.2).

    Returns R and below its diagonal the vectors, whose first element is 1, like `x`; and the factors `tau
    [batch, min(rows, columns)]` of `H = 1 - tau v transpose(v)`. Signs as of LAPACK's larfg.
    """
    count, batch = b.arith("minsi", b.dim(x, 1), b.dim(x, 2)), b.dim(x, 0)
    taus = shape.full(b, [batch, 1, count], b.like(0, x))
    if 0 in x.shape:
        return x, shape.reshape(b, taus, [batch, count])

    def step(number: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        matrix, taus = carried
        at, line = b.element(number), rows(b, matrix)
        vector, beta, tau = _reflection(b, _column(b, matrix, at), number)
        along = _total(b, ew.binary(b, "mul", vector, matrix), 1)
        less = ew.binary(b, "sub", matrix, ew.binary(b, "mul", ew.binary(b, "mul", tau, vector), along))
        here = ew.compare(b, "eq", columns(b, matrix), number)
        kept = ew.select(b, ew.compare(b, "eq", line, number), beta, vector)
        inside = ew.select(b, here, kept, less)
        changed = ew.binary(
            b, "and", ew.compare(b, "ge", line, number), ew.compare(b, "ge", columns(b, matrix), number)
        )
        now = ew.compare(b, "eq", columns(b, taus), number)
        return [ew.select(b, changed, inside, matrix), ew.select(b, now, tau, taus)], []

    matrix, taus = control_flow.for_(b, count, [x, taus], step)
    return matrix, shape.reshape(b, taus, [batch, count])


def _reflection(b: Builder, column: Tensor, number: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What reflects `column [batch, rows, 1]` from row `number` on to one element, beta: the vector, beta and tau."""
    line, zero, one = rows(b, column), b.like(0, column), b.like(1, column)
    below, here = ew.compare(b, "gt", line, number), ew.compare(b, "eq", line, number)
    rest = ew.select(b, below, column, zero)
    # Squares of large or small elements would leave the range of the dtype.
    unit, scale = normalized(b, ew.select(b, here, column, rest))
    alpha = ew.binary(b, "div", _row(b, column, b.element(number)), scale)
    norm = ew.unary(b, "sqrt", _total(b, ew.binary(b, "mul", unit, unit), 1))
    beta = ew.select(b, ew.compare(b, "ge", alpha, zero), ew.unary(b, "neg", norm), norm)
    largest = reduction.reduce(b, "max", ew.unary(b, "abs", rest), [1], True)
    done = ew.compare(b, "eq", largest, zero)
    beta = ew.select(b, done, alpha, beta)
    divisor = ew.select(b, done, one, ew.binary(b, "sub", alpha, beta))
    vector = ew.binary(b, "div", ew.select(b, below, unit, zero), divisor)
    quotient = ew.binary(b, "div", ew.binary(b, "sub", beta, alpha), ew.select(b, done, one, beta))
    tau = ew.select(b, done, zero, quotient)
    return ew.select(b, here, one, vector), ew.binary(b, "mul", beta, scale), tau


def normalized(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices over their element that is furthest from 0 (1 where all are 0), and that: `[batch, 1, 1]`."""
    scale = reduction.reduce(b, "max", ew.unary(b, "abs", x), [1, 2], True)
    scale = ew.select(b, ew.compare(b, "eq", scale, b.like(0, x)), b.like(1, x), scale)
    return ew.binary(b, "div", x, scale), scale


def reflected(b: Builder, x: Tensor, vectors: Tensor, tau: Tensor, backwards: bool = False) -> Tensor:
    """`Q x` of the `vectors` and `tau` of `reflections`, or `transpose(Q) x`."""
    count = b.dim(tau, 1)
    if 0 in x.shape or 0 in vectors.shape or 0 in tau.shape:
        return x
    last = _last(b, count)
    taus = shape.unsqueeze(b, tau, [1])

    def step(number: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        [matrix] = carried
        number = number if backwards else ew.binary(b, "sub", last, number)
        at, line = b.element(number), rows(b, matrix)
        vector = ew.select(b, ew.compare(b, "gt", line, number), _column(b, vectors, at), b.like(0, x))
        vector = ew.select(b, ew.compare(b, "eq", line, number), b.like(1, x), vector)
        along = _total(b, ew.binary(b, "mul", vector, matrix), 1)
        scaled = ew.binary(b, "mul", ew.binary(b, "mul", _column(b, taus, at), vector), along)
        return [ew.binary(b, "sub", matrix, scaled)], []

    return control_flow.for_(b, count, [x], step)[0]


def qr(b: Builder, x: Tensor, complete: bool = False) -> tuple[Tensor, Tensor]:
    """`x = Q R` with orthonormal columns of Q, `[batch, rows, k]`, and R `[batch, k, columns]`: k is the number of rows
    where it is `complete`, and else the smaller extent.
    """
    packed, tau = reflections(b, x)
    height = b.dim(x, 1)
    width = height if complete else b.arith("minsi", height, b.dim(x, 2))
    q = reflected(b, eye(b, [b.dim(x, 0), height, width], x), packed, tau)
    return q, triangle(b, shape.window(b, packed, 1, 0, width), upper=True)


def _order(b: Builder, count: Size) -> Tensor:
    """Where each of `count` columns, which is even, comes from after a round of Jacobi's method: `[count] i64`.

    Column i of the first half meets column i of the second; the first one stays, the others move around in a circle, so
    that each has met each after count - 1 rounds, and all are back in their places.
    """
    number, half = shape.iota(b, [count], 0, "int64"), shape.size_scalar(b, b.arith("divsi", count, 2))
    one = b.constant(np.array(1, np.int64))
    last = _last(b, count)
    before, after = ew.binary(b, "sub", number, one), ew.binary(b, "add", number, one)
    order = ew.select(b, ew.compare(b, "lt", number, half), before, after)
    order = ew.select(b, ew.compare(b, "eq", number, one), half, order)
    end = ew.binary(b, "max", ew.binary(b, "sub", half, one), one)
    order = ew.select(b, ew.compare(b, "eq", number, last), end, order)
    return ew.select(b, ew.compare(b, "eq", number, b.constant(np.array(0, np.int64))), number, order)


def orthogonalized(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """The orthogonal V, `[batch, columns, columns]`, for which the columns of `x V` are orthogonal; and `x V`.

    One-sided Jacobi rotations (Golub & Van Loan 8.6.3) of all pairs of columns, half as many at a time as there are
    columns, until a sweep finds none that are not orthogonal.
    """
    height, width, batch = b.dim(x, 1), b.dim(x, 2), b.dim(x, 0)
    more = b.arith("remsi", width, 2)
    even = b.arith("addi", width, more)
    order = _order(b, even)
    # A column of zeros is orthogonal to all.
    both = shape.concat(b, [shape.pad(b, x, [0, 0, 0], [0, 0, more]), eye(b, [batch, width, even], x)], 1)

    def turn(number: Tensor, carried: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        matrix, worst = carried
        matrix, angle = _rotated(b, matrix, height, even)
        worst = ew.binary(b, "max", worst, reduction.reduce(b, "max", angle, [0, 1, 2], False))
        return [_moved(b, matrix, order), worst], []

    def sweep(number: Tensor, going: Tensor, carried: Sequence[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        none = b.like(0, x)
        matrix, worst = control_flow.for_(b, b.arith("subi", even, 1), [carried[0], none], turn)
        again = ew.compare(b, "gt", worst, none)
        return again, [matrix], []

    true, most = b.constant(True, "bool"), b.constant(np.array(_SWEEPS, np.int64))
    both = control_flow.while_(b, most, true, [both], sweep)[0]
    both = shape.window(b, both, 2, 0, width)
    # Rounding changes the lengths of the columns of V a little with each turn, and those of `x V` by the same factor.
    v = shape.window(b, both, 1, height, width)
    length = ew.unary(b, "sqrt", _total(b, ew.binary(b, "mul", v, v), 1))
    both = ew.binary(b, "div", both, length)
    return shape.window(b, both, 1, height, width), shape.window(b, both, 1, 0, height)


def _moved(b: Builder, x: Tensor, order: Tensor) -> Tensor:
    return b.op("gather", [x, order], axis=2)


def _rotated(b: Builder, both: Tensor, height: Size, width: Size) -> tuple[Tensor, Tensor]:
    """The matrices whose first `height` rows count, with each column of the first half turned so that it and its
    partner are orthogonal; and 1 for every pair that was not, `[batch, 1, width / 2]`.
    """
    half = b.arith("divsi", width, 2)
    p, q = (shape.window(b, both, 2, start, half) for start in (0, half))
    x, y = (shape.window(b, part, 1, 0, height) for part in (p, q))
    xx, yy, xy = (_total(b, ew.binary(b, "mul", *pair), 1) for pair in ((x, x), (y, y), (x, y)))
    zero, one = b.like(0, both), b.like(1, both)
    # What is left when rounding decides: a few units in the last place of the product of the two lengths.
    least = b.like(float(16 * np.finfo(numpy_dtype(both.dtype)).eps), both)
    lengths = ew.binary(b, "mul", ew.unary(b, "sqrt", xx), ew.unary(b, "sqrt", yy))
    turned = ew.compare(b, "gt", ew.unary(b, "abs", xy), ew.binary(b, "mul", least, lengths))
    divisor = ew.select(b, turned, ew.binary(b, "add", xy, xy), one)
    zeta = ew.binary(b, "div", ew.binary(b, "sub", yy, xx), divisor)
    size = ew.unary(b, "abs", zeta)
    root = ew.unary(b, "sqrt", ew.binary(b, "add", one, ew.binary(b, "mul", size, size)))
    tangent = ew.binary(b, "div", one, ew.binary(b, "add", size, root))
    tangent = ew.select(b, ew.compare(b, "lt", zeta, zero), ew.unary(b, "neg", tangent), tangent)
    tangent = ew.select(b, turned, tangent, zero)
    cosine = ew.binary(
        b, "div", one, ew.unary(b, "sqrt", ew.binary(b, "add", one, ew.binary(b, "mul", tangent, tangent)))
    )
    sine = ew.binary(b, "mul", cosine, tangent)
    # What is added to a column is small: so rounding changes its length less (Rutishauser, 1966).
    half_ = ew.binary(b, "div", sine, ew.binary(b, "add", one, cosine))
    left = ew.binary(b, "add", q, ew.binary(b, "mul", half_, p))
    left = ew.binary(b, "sub", p, ew.binary(b, "mul", sine, left))
    right = ew.binary(b, "sub", p, ew.binary(b, "mul", half_, q))
    right = ew.binary(b, "add", q, ew.binary(b, "mul", sine, right))
    return shape.concat(b, [left, right], 2), ew.cast(b, turned, both.dtype)


def _sorted(b: Builder, values: Tensor, matrices: Sequence[Tensor], descending: bool) -> list[Tensor]:
    """`values [batch, n]` in order, and the columns of `matrices` in the same."""
    ordered, places = indexing.sort(b, values, 1, descending)
    wide = shape.unsqueeze(b, places, [1])
    spread = [shape.broadcast(b, wide, b.dims(matrix)) for matrix in matrices]
    return [ordered, *(indexing.gather_elements(b, *pair, 2) for pair in zip(matrices, spread, strict=True))]


def singular_values(b: Builder, x: Tensor) -> Tensor:
    """The singular values, the largest first: `[batch, min(rows, columns)]`."""
    return _singular(b, x)[0]


def _singular(b: Builder, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The singular values of `x`, all of V, and `x V` over the largest element of `x`."""
    unit, scale = normalized(b, x)
    v, product_ = orthogonalized(b, unit)
    lengths = ew.unary(b, "sqrt", reduction.reduce(b, "sum", ew.binary(b, "mul", product_, product_), [1], False))
    values, v, product_ = _sorted(b, lengths, [v, product_], True)
    values = shape.window(b, values, 1, 0, b.arith("minsi", b.dim(x, 1), b.dim(x, 2)))
    return ew.binary(b, "mul", values, shape.squeeze(b, scale, [2])), v, product_


def svd(b: Builder, x: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """`x = U diagonal(S) transpose(V)`: U `[batch, rows, k]`, S `[batch, k]`, the largest first, V `[batch, columns,
    k]`, where k is the smaller extent; U and V are square where they are to be `full`.

    The orthogonal columns of `x V` over their lengths are U: Householder's reflections find what is missing where a
    length is 0 or where U is full.
    """
    values, v, product_ = _singular(b, x)
    count = b.dim(values, 1)
    u, r = qr(b, product_, full)
    sign = diagonal(b, shape.window(b, shape.window(b, r, 1, 0, count), 2, 0, count))
    negative = ew.compare(b, "lt", sign, b.like(0, sign))
    sign = shape.unsqueeze(b, ew.select(b, negative, b.like(-1, x), b.like(1, x)), [1])
    if full:
        rest = b.arith("subi", b.dim(x, 1), count)
        sign = shape.pad(b, sign, [0, 0, 0], [0, 0, rest], value=b.like(1, x))
    else:
        v = shape.window(b, v, 2, 0, count)
    return ew.binary(b, "mul", u, sign), values, v


def eigh(b: Builder, x: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues of symmetric matrices, the smallest first, `[batch, n]`, and their eigenvectors, as columns.

    None of `x + c` is negative where c is the largest sum of the sizes of a row's elements (Gershgorin, Golub & Van
    Loan 7.2.1), so that its singular vectors are its eigenvectors, and those of `x`.
    """
    unit, scale = normalized(b, x)
    bound = reduction.reduce(b, "max", _total(b, ew.unary(b, "abs", unit), 2), [1], True)
    on = ew.compare(b, "eq", rows(b, x), columns(b, x))
    shifted = ew.binary(b, "add", unit, ew.select(b, on, bound, b.like(0, x)))
    v, _ = orthogonalized(b, shifted)
    values = reduction.reduce(b, "sum", ew.binary(b, "mul", v, product(b, unit, v)), [1], False)
    values, v = _sorted(b, values, [v], False)
    return ew.binary(b, "mul", values, shape.squeeze(b, scale, [2])), v
