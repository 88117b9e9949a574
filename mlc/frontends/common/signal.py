"""Fourier transforms as products with tables of cosines and sines.

A transform of n numbers is a product with an [n, n] matrix, which register tiles compute at the peak of the machine;
n log n steps would pay from some thousands of numbers on. Source: Cooley and Tukey, "An Algorithm for the Machine
Calculation of Complex Fourier Series", 1965, section 1 (the sum that is computed here).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, linalg, shape
from mlc.frontends.common.builder import Builder, Size, Tensor


def fourier(
    b: Builder, real: Tensor, imag: Tensor | None, kept: Size, inverse: bool, power: float = 0
) -> tuple[Tensor, Tensor]:
    """Real and imaginary parts of the first `kept` numbers of the transform of the last dimension, of extent n, times
    n to the `power`; real numbers have no `imag`."""
    length = b.dim(real, real.rank - 1)
    cosine, sine = _tables(b, length, kept, real.dtype, inverse)
    parts = [linalg.matmul(b, real, cosine), linalg.matmul(b, real, sine)]
    if imag is not None:
        parts[0] = ew.binary(b, "sub", parts[0], linalg.matmul(b, imag, sine))
        parts[1] = ew.binary(b, "add", parts[1], linalg.matmul(b, imag, cosine))
    return _scaled(b, parts[0], length, power), _scaled(b, parts[1], length, power)


def real_inverse(b: Builder, real: Tensor, imag: Tensor, length: int, power: float = -1) -> Tensor:
    """The real signal of `length` numbers whose transform begins with the `length // 2 + 1` numbers of the last
    dimension and goes on with their conjugates, times `length` to the `power`."""
    half = length // 2 + 1
    angles = _angles(half, length, length)
    twice = np.full([half, 1], 2.0)
    twice[0] = 1
    if length % 2 == 0:
        twice[-1] = 1
    cosine, sine = (b.constant(twice * table, real.dtype) for table in (np.cos(angles), np.sin(angles)))
    total = ew.binary(b, "sub", linalg.matmul(b, real, cosine), linalg.matmul(b, imag, sine))
    return _scaled(b, total, length, power)


def _scaled(b: Builder, x: Tensor, length: Size, power: float) -> Tensor:
    """`x` times `length` to the `power`: not part of the tables, whose ones and halves are exact."""
    if not power:
        return x
    if isinstance(length, int):
        return ew.binary(b, "div", x, b.like(float(max(length, 1)) ** -power, x))
    number = ew.cast(b, shape.size_scalar(b, length), x.dtype)
    return ew.binary(b, "div", x, number if power == -1 else ew.binary(b, "pow", number, b.like(-power, number)))


def parts_of(b: Builder, pairs: Tensor) -> list[Tensor]:
    """What the last dimension has: real parts, and imaginary ones if there are two."""
    axis = pairs.rank - 1
    return [shape.squeeze(b, shape.window(b, pairs, axis, n, 1), [axis]) for n in range(pairs.shape[axis] or 2)]


def pairs_of(b: Builder, parts: Sequence[Tensor]) -> Tensor:
    """The parts side by side in a new last dimension."""
    return shape.concat(b, [shape.unsqueeze(b, part, [part.rank]) for part in parts], parts[0].rank)


def fit(b: Builder, x: Tensor, axis: int, length: int) -> Tensor:
    """A dimension of known extent with `length` numbers: those behind are left out, zeros added."""
    have = x.shape[axis]
    assert have is not None
    if length <= have:
        return x if length == have else shape.window(b, x, axis, 0, length)
    none: list[Size] = [0] * x.rank
    return shape.pad(b, x, none, [*none[:axis], length - have, *none[axis + 1 :]])


def frames(b: Builder, x: Tensor, axis: int, length: Size, hop: Size) -> Tensor:
    """Overlapping frames of `length` numbers, `hop` after each other: a dimension becomes `frames, length`."""
    count = b.arith("addi", b.arith("floordivsi", b.arith("subi", b.dim(x, axis), length), hop), 1)
    starts = ew.binary(b, "mul", shape.iota(b, [count, 1], 0, "int64"), shape.size_scalar(b, hop))
    places = ew.binary(b, "add", starts, shape.iota(b, [1, length], 1, "int64"))
    return indexing.gather(b, x, places, axis)


def _angles(times: int, frequencies: int, length: int) -> np.ndarray:
    """In each of `times`, by frequency; exact to the last turn."""
    return 2 * np.pi * (np.outer(np.arange(times), np.arange(frequencies)) % length) / length


def _tables(b: Builder, length: Size, kept: Size, dtype: str, inverse: bool) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every time and frequency, `[length, kept]`; that of the sign of the transform."""
    sign = 1 if inverse else -1
    if isinstance(length, int) and isinstance(kept, int):
        angles = _angles(length, kept, max(length, 1))
        return b.constant(np.cos(angles), dtype), b.constant(sign * np.sin(angles), dtype)
    times, frequencies = (shape.iota(b, sizes, axis, "int64") for axis, sizes in enumerate(([length, 1], [1, kept])))
    whole = shape.size_scalar(b, length)
    turns = ew.binary(b, "mod", ew.binary(b, "mul", times, frequencies), whole)
    number = ew.cast(b, whole, "float64")
    angle = ew.scaled(b, ew.binary(b, "div", ew.cast(b, turns, "float64"), number), 2 * np.pi)
    tables = [ew.unary(b, "cos", angle), ew.scaled(b, ew.unary(b, "sin", angle), sign)]
    cosine, sine = (ew.cast(b, table, dtype) for table in tables)
    return cosine, sine
