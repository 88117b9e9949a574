"""Fourier transforms as products with tables of cosines and sines.

A transform of n numbers is a product with an [n, n] matrix, which register tiles compute at the peak of the machine;
n log n steps would pay from some thousands of numbers on. Source: Cooley and Tukey, "An Algorithm for the Machine
Calculation of Complex Fourier Series", 1965, section 1 (the sum that is computed here).
"""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import linalg, shape
from mlc.frontends.common.builder import Builder, Size, Tensor


def fourier(
    b: Builder, real: Tensor, imag: Tensor | None, kept: Size, inverse: bool, power: float = 0
) -> tuple[Tensor, Tensor]:
    """Real and imaginary parts of the first `kept` numbers of the transform of the last dimension, of extent n, times
    n to the `power`; real numbers have no `imag`."""
    cosine, sine = _tables(b, b.dim(real, real.rank - 1), kept, real.dtype, inverse, power)
    parts = [linalg.matmul(b, real, cosine), linalg.matmul(b, real, sine)]
    if imag is not None:
        parts[0] = ew.binary(b, "sub", parts[0], linalg.matmul(b, imag, sine))
        parts[1] = ew.binary(b, "add", parts[1], linalg.matmul(b, imag, cosine))
    return parts[0], parts[1]


def real_inverse(b: Builder, real: Tensor, imag: Tensor, length: int, power: float = -1) -> Tensor:
    """The real signal of `length` numbers whose transform begins with the `length // 2 + 1` numbers of the last
    dimension and goes on with their conjugates, times `length` to the `power`."""
    half = length // 2 + 1
    angles = _angles(half, length, length)
    twice = np.full([half, 1], 2.0)
    twice[0] = 1
    if length % 2 == 0:
        twice[-1] = 1
    weight = twice * float(length) ** power
    cosine, sine = (b.constant(weight * table, real.dtype) for table in (np.cos(angles), np.sin(angles)))
    return ew.binary(b, "sub", linalg.matmul(b, real, cosine), linalg.matmul(b, imag, sine))


def fit(b: Builder, x: Tensor, length: int) -> Tensor:
    """The last dimension with `length` numbers: those behind are left out, zeros added."""
    axis = x.rank - 1
    have = x.shape[axis]
    assert have is not None
    if length <= have:
        return x if length == have else shape.window(b, x, axis, 0, length)
    none: list[Size] = [0] * x.rank
    return shape.pad(b, x, none, [*none[:-1], length - have])


def _angles(times: int, frequencies: int, length: int) -> np.ndarray:
    """In each of `times`, by frequency; exact to the last turn."""
    return 2 * np.pi * (np.outer(np.arange(times), np.arange(frequencies)) % length) / length


def _tables(b: Builder, length: Size, kept: Size, dtype: str, inverse: bool, power: float) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every time and frequency, `[length, kept]`, times `length` to the `power`."""
    sign = 1 if inverse else -1
    if isinstance(length, int) and isinstance(kept, int):
        angles, weight = _angles(length, kept, max(length, 1)), float(max(length, 1)) ** power
        return b.constant(weight * np.cos(angles), dtype), b.constant(sign * weight * np.sin(angles), dtype)
    times, frequencies = (shape.iota(b, sizes, axis, "int64") for axis, sizes in enumerate(([length, 1], [1, kept])))
    whole = shape.size_scalar(b, length)
    turns = ew.binary(b, "mod", ew.binary(b, "mul", times, frequencies), whole)
    number = ew.cast(b, whole, "float64")
    angle = ew.scaled(b, ew.binary(b, "div", ew.cast(b, turns, "float64"), number), 2 * np.pi)
    tables = [ew.unary(b, "cos", angle), ew.scaled(b, ew.unary(b, "sin", angle), sign)]
    if power:
        weight_ = ew.binary(b, "pow", number, b.like(power, number))
        tables = [ew.binary(b, "mul", table, weight_) for table in tables]
    cosine, sine = (ew.cast(b, table, dtype) for table in tables)
    return cosine, sine
