"""Odd functions between -1 and 1 by their halves: tanh, erf, 1 + erf.

The half t of such an f has f = 2t / (1 + t^2), as tanh(x/2) is the half of tanh(x). With t = N / Q, N = x P(x^2) and Q
a polynomial of x^2, f is 2NQ / (N^2 + Q^2) and 1 + f is (N + Q)^2 / (N^2 + Q^2): one division, no branch, and two short
polynomials that are evaluated side by side. Where f comes close to 1, errors of N and Q vanish; the polynomials have
fewer terms, and the results fewer wrong bits, than with f itself as a quotient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from . import coefficients as k
from .emitter import Emitter


@dataclass(frozen=True)
class Half:
    """N and Q of a function; `one` is an argument from which on it is 1, where the formula gives 1 exactly."""

    n: Sequence[float]
    q: Sequence[float]
    one: float


TANH = Half(k.TANH_N, k.TANH_Q, 9.3)
ERF = Half(k.ERF_N, k.ERF_Q, 3.8)
#: Where N and Q of erf are the same number.
ERF_MEETS = 4.25


def odd(e: Emitter, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """x + sum coefficients[j] x^(2j+3)."""
    square = e.mul(x, x)
    return e.fma(e.mul(x, square), e.horner(square, coefficients), x)


def parts(e: Emitter, x: ir.Value, half: Half, limit: float) -> tuple[ir.Value, ir.Value]:
    """N and Q at x, or at the closer of -limit and limit."""
    x = e.at_most(e.at_least(x, -limit), limit)
    square = e.mul(x, x)
    n = odd(e, x, half.n[1:]) if half.n[0] == 1.0 else e.mul(x, e.horner(square, half.n))
    return n, e.horner(square, half.q)


def whole(e: Emitter, x: ir.Value, half: Half) -> tuple[ir.Value, ir.Value]:
    """2NQ and N^2 + Q^2, whose quotient is the function; the second is a normal number."""
    n, q = parts(e, x, half, half.one)
    return e.mul(n, e.add(q, q)), e.fma(n, n, e.mul(q, q))


def tanh(e: Emitter, x: ir.Value) -> ir.Value:
    """Hyperbolic tangent."""
    return e.div(*whole(e, x, TANH))


def erf(e: Emitter, x: ir.Value) -> ir.Value:
    """The error function."""
    return e.div(*whole(e, x, ERF))


def one_plus_erf(e: Emitter, x: ir.Value) -> ir.Value:
    """1 + erf(x) to within 2^-21.9, as 2s / (s + d) with s = (N + Q)^2 and d = (N - Q)^2.

    From -4.25 on N is -Q, and the result 0: a product with a huge x has to vanish.
    """
    n, q = parts(e, x, ERF, ERF_MEETS)
    total, rest = e.add(q, n), e.sub(q, n)
    square = e.mul(total, total)
    return e.div(e.add(square, square), e.fma(rest, rest, square))
