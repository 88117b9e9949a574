"""Fits the minimax polynomials of `mlc/kernels/common/vector_math` and writes its `coefficients.py`.

    python tools/fit_minimax.py            # rewrite coefficients.py
    python tools/fit_minimax.py --check    # exit status 1 when coefficients.py is out of date
    python tools/fit_minimax.py --report   # print the approximation error of each polynomial

A fit is a linear minimax problem: find the coefficients of given powers of x which minimise
max |(sum c_j x^p_j - target(x)) * weight(x)| on an interval. It is solved in float64 by the multi-point Remez
exchange on a dense Chebyshev grid. The coefficients are then rounded to float32 one at a time, most important
(lowest power) first, and the remaining ones are fitted again to absorb the rounding error. Quotients of polynomials
are fitted as linear problems over and over, the errors divided by the last denominator (Loeb, "Algorithms for Chebyshev
approximations using the ratio of linear forms", Journal of the SIAM 8, 1960).

Source of the method: Brisebarre, Muller and Tisserand, "Computing machine-efficient polynomial
approximations", ACM TOMS 32(2), 2006; the exchange is Cheney, "Introduction to Approximation Theory", section
3.8. NumPy only.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

import numpy as np

Array = np.ndarray
OUTPUT = Path(__file__).resolve().parent.parent / "mlc/kernels/common/vector_math/coefficients.py"
GRID = 3000


@dataclass(frozen=True)
class Fit:
    """One polynomial: sum c_j x^powers[j] approximates `target` on `domain`, errors scaled by `weight`."""

    name: str
    doc: str
    domain: tuple[float, float]
    powers: Sequence[int]
    target: Callable[[Array], Array]
    weight: Callable[[Array], Array]


def chebyshev_grid(low: float, high: float) -> Array:
    """Returns GRID Chebyshev nodes (never an end point, never 0 for a symmetric interval), ascending."""
    angles = (np.arange(GRID) + 0.5) * math.pi / GRID
    return (low + high) / 2 - (high - low) / 2 * np.cos(angles)


def exchange(error: Array, count: int) -> Array:
    """Returns `count` alternating extrema of `error` (or all, if fewer), the smallest left out."""
    runs = np.flatnonzero(np.diff(np.signbit(error))) + 1
    peaks = [int(run[np.argmax(np.abs(error[run]))]) for run in np.split(np.arange(error.size), runs)]
    while len(peaks) > count:
        size = np.abs(error[peaks])
        least = int(np.argmin(size))
        last = len(peaks) - 1
        if len(peaks) == count + 1 or least in (0, last):
            del peaks[0 if size[0] < size[last] else last]
        else:  # its neighbours have the same sign: the larger one stays
            neighbour = least + 1 if size[least + 1] < size[least - 1] else least - 1
            peaks = [peak for index, peak in enumerate(peaks) if index not in (least, neighbour)]
    return np.array(peaks)


def remez(basis: Array, target: Array) -> Array:
    """Minimises max |basis @ c - target| over the rows (already weighted grid points). Returns c."""
    points, count = basis.shape
    scale = np.abs(basis).max(axis=0)
    scaled = basis / scale
    rows = np.unique(np.linspace(0, points - 1, count + 1).round().astype(int))
    best, best_error = np.linalg.lstsq(scaled, target, rcond=None)[0], math.inf
    signs = (-1.0) ** np.arange(count + 1)
    for _ in range(60):
        system = np.column_stack([scaled[rows], signs])
        solution = np.linalg.solve(system, target[rows])
        error = scaled @ solution[:-1] - target
        worst = np.abs(error).max()
        if worst < best_error:
            best, best_error = solution[:-1], worst
        if worst <= abs(solution[-1]) * (1 + 1e-6):
            break
        fresh = exchange(error, count + 1)
        if fresh.size < count + 1 or np.array_equal(fresh, rows):
            break
        rows = fresh
    return best / scale


def fit(spec: Fit) -> tuple[list[float], float]:
    """Returns the float32 coefficients of `spec` and the weighted maximum error they leave."""
    x = chebyshev_grid(*spec.domain)
    weight = spec.weight(x)
    columns = [x**power * weight for power in spec.powers]
    rest = spec.target(x) * weight
    rounded: list[float] = []
    for index in range(len(columns)):
        # Errors alternate in sign only if the lowest term keeps its own: odd terms change theirs at 0.
        side = np.sign(columns[index])[:, np.newaxis]
        free = np.column_stack(columns[index:]) * side
        coefficient = float(np.float32(remez(free, rest * side[:, 0])[0]))
        rounded.append(coefficient)
        rest = rest - coefficient * columns[index]
    return rounded, float(np.abs(rest).max())


@dataclass(frozen=True)
class Half:
    """An odd function f, |f| <= 1, as 2NQ / (N^2 + Q^2) with N = x sum p_j x^2j and Q = sum q_j x^2j.

    N / Q approximates the half of f, the t with f = 2t / (1 + t^2): that of tanh(x) is tanh(x/2). Errors of t count
    less the closer f comes to 1, and squared where it rounds to 1. `first` are p_0 and q_0, floats: how large they are
    decides how roundings fall, so their mantissas are chosen by trial. With `meets`, which takes a p_0 of 1, N = Q at
    the upper end.
    """

    name: str
    doc: str
    high: float
    half: Callable[[Array], Array]
    first: tuple[float, float]
    terms: tuple[int, int]
    meets: bool


#: The weight of errors of a half where its function rounds to 1: 2^-26 of it is 2^-12.2 of the half.
HALF_FLOOR = 7e-5
Columns = dict[int, Array]


def solve_half(columns: Columns, known: dict[int, float], weight: Array, at_end: dict[int, float]) -> dict[int, float]:
    """The coefficients, by powers, that are not `known` yet. Odd powers are those of N; `at_end`, if not empty, has the
    columns' values where they have to add up to 0, which determines the highest odd power.
    """
    last = max(power for power in columns if power % 2)
    free = [p for p in sorted(columns) if p not in known and not (at_end and p == last)]
    rest = -sum(value * columns[p] for p, value in known.items())
    slopes, level = dict.fromkeys(free, 0.0), 0.0
    if at_end:
        slopes = {p: at_end[p] / at_end[last] for p in free}
        level = -sum(value * at_end[p] for p, value in known.items()) / at_end[last]
        rest = rest - level * columns[last]
    evens = {p: columns[p] / columns[0] for p in columns if p % 2 == 0}
    found, below = dict[int, float](), np.ones_like(weight)
    for _ in range(12 if free else 0):
        scale = weight / below
        matrix = np.column_stack([(columns[p] - slopes[p] * columns[last]) * scale for p in free])
        found = dict(zip(free, map(float, remez(matrix, rest * scale)), strict=True))
        below = sum(({**known, **found}[p] * column for p, column in evens.items()), np.zeros_like(weight))
    return {**found, last: level - sum(slopes[p] * v for p, v in found.items())} if at_end else found


def fit_half(spec: Half) -> tuple[list[float], list[float], float]:
    """Returns the float32 coefficients of N and Q of `spec` and the error of f, relative to f, that they leave."""
    x = chebyshev_grid(0.0, spec.high)
    t = spec.half(x)
    odd, even = ([2 * j + first for j in range(count)] for first, count in zip((1, 0), spec.terms, strict=True))
    columns = {p: x**p for p in odd} | {p: -t * x**p for p in even}
    at_end = {p: spec.high**p * (1 if p % 2 else -1) for p in columns} if spec.meets else {}
    weight = np.hypot((1 - t * t) / (t * (1 + t * t)), HALF_FLOOR)
    known = dict(zip((1, 0), spec.first, strict=True))
    while len(known) < len(columns):
        found = solve_half(columns, known, weight, at_end)
        power = min(found, key=lambda p: (bool(at_end) and p == odd[-1], p))
        known[power] = float(np.float32(found[power]))
    if spec.meets:
        known = meeting(known, spec.high)
    n, q = (sum(known[p] * x**p for p in powers) for powers in (odd, even))
    error = 2 * n * q / (n * n + q * q) / (2 * t / (1 + t * t)) - 1
    return [known[p] for p in odd], [known[p] for p in even], float(np.abs(error).max())


def rounded(value: Fraction) -> Fraction:
    """The float32 nearest to a normal number, the even one of two."""
    unit = Fraction(2) ** (math.frexp(float(value))[1] - 24)
    return round(value / unit) * unit


def meeting(coefficients: dict[int, float], at: float) -> dict[int, float]:
    """The coefficients with the highest odd one moved until N(at) = Q(at), evaluated by fused multiply-adds, N as
    x + x^3 R(x^2).
    """

    def horner(powers: Sequence[int]) -> Fraction:
        total = Fraction(0)
        for power in reversed(powers):
            total = rounded(total * Fraction(at) ** 2 + Fraction(coefficients[power]))
        return total

    odd, even = ([p for p in sorted(coefficients) if p % 2 == rest] for rest in (1, 0))
    below, start = horner(even), coefficients[odd[-1]]
    for step in sorted(range(-64, 65), key=abs):
        coefficients[odd[-1]] = start + step * float(np.spacing(np.float32(start)))
        if rounded(horner(odd[1:]) * Fraction(at) ** 3 + Fraction(at)) == below:
            return coefficients
    raise ValueError(f"no coefficient makes the polynomials meet at {at}")


def vectorised(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Lifts a scalar function of the standard library to arrays."""
    return lambda x: np.array([function(float(v)) for v in np.ravel(x)]).reshape(np.shape(x))


LN2 = math.log(2)
HALF_LN2 = 0.34664
LOG_DOMAIN = (math.sqrt(0.5) - 1, math.sqrt(2) - 1)
ASIN_SPLIT = 0.5625
ASINH_SPLIT = 1.25
ODD = "x + sum c_j x^(2j+3)"


def log_fit(name: str, base: float, doc: str) -> Fit:
    """The fit of log_base(1 + f) - f / ln(base), relative to the logarithm."""
    scale = 1 / math.log(base)
    return Fit(
        name,
        doc,
        LOG_DOMAIN,
        range(2, 11),
        lambda f: (np.log1p(f) - f) * scale,
        lambda f: 1 / np.abs(np.log1p(f) * scale),
    )


def odd_fit(name: str, function: Callable[[Array], Array], formula: str, high: float, powers: Sequence[int]) -> Fit:
    """The fit of an odd function as x + sum c_j x^powers[j] on [0, high], relative to the function."""
    doc = f"{name.split('_')[0].lower()}(x) = {formula}, |x| <= {high}"
    return Fit(name, doc, (0.0, high), powers, lambda x: function(x) - x, lambda x: 1 / function(x))


def exponential_fits() -> list[Fit]:
    """exp, exp2, expm1."""
    domain = (-HALF_LN2, HALF_LN2)
    return [
        Fit(
            "EXP",
            "e^r = 1 + r + sum c_j r^(j+2), |r| <= ln(2)/2",
            domain,
            range(2, 7),
            lambda r: np.expm1(r) - r,
            lambda r: np.exp(-r),
        ),
        Fit(
            "EXP_SHORT",
            "e^r = 1 + sum c_j r^(j+1), |r| <= ln(2)/2",
            domain,
            range(1, 6),
            np.expm1,
            lambda r: np.exp(-r),
        ),
        Fit(
            "EXP2",
            "2^r = 1 + sum c_j r^(j+1), |r| <= 1/2",
            (-0.5, 0.5),
            range(1, 7),
            lambda r: np.expm1(r * LN2),
            lambda r: np.exp2(-r),
        ),
        Fit(
            "EXP2_SHORT",
            "2^r = 1 + sum c_j r^(j+1), |r| <= 1/2",
            (-0.5, 0.5),
            range(1, 6),
            lambda r: np.expm1(r * LN2),
            lambda r: np.exp2(-r),
        ),
        Fit(
            "EXP2_FRACTION",
            "2^r = 1 + sum c_j r^(j+1), 0 <= r <= 1",
            (0.0, 1.0),
            range(1, 6),
            lambda r: np.expm1(r * LN2),
            lambda r: np.exp2(-r) * (1 + r**4),  # arguments just below 0 end near 1: errors count double there
        ),
        Fit(
            "EXPM1",
            "e^r - 1 = r + sum c_j r^(j+2), |r| <= ln(2)/2",
            domain,
            range(2, 8),
            lambda r: np.expm1(r) - r,
            lambda r: 1 / np.abs(np.expm1(r)),
        ),
    ]


def logarithm_fits() -> list[Fit]:
    """log, log2, log10, and atanh for powf."""
    return [
        log_fit("LOG", math.e, "ln(1+f) = f + sum c_j f^(j+2), 1+f in [sqrt(1/2), sqrt(2)]"),
        log_fit("LOG2", 2.0, "log2(1+f) = f/ln(2) + sum c_j f^(j+2), 1+f in [sqrt(1/2), sqrt(2)]"),
        log_fit("LOG10", 10.0, "log10(1+f) = f/ln(10) + sum c_j f^(j+2), 1+f in [sqrt(1/2), sqrt(2)]"),
        odd_fit("ATANH_THIRD", np.arctanh, ODD, 0.1716, (3, 5, 7, 9)),
    ]


def trigonometric_fits() -> list[Fit]:
    """sin, cos, tan and their inverses."""
    return [
        odd_fit("SIN", np.sin, ODD, 0.79, (3, 5, 7, 9)),
        Fit(
            "COS",
            "cos(r) = 1 - r^2/2 + sum c_j r^(2j+4), |r| <= 0.79",
            (0.0, 0.79),
            (4, 6, 8),
            lambda r: (np.cos(r) - 1) + r * r / 2,
            lambda r: 1 / np.cos(r),
        ),
        odd_fit("TAN", np.tan, ODD, 0.79, range(3, 16, 2)),
        odd_fit("ATAN", np.arctan, ODD, 1.0, range(3, 20, 2)),
        odd_fit("ASIN", np.arcsin, ODD, ASIN_SPLIT, range(3, 14, 2)),
    ]


def hyperbolic_fits() -> list[Fit]:
    """The branches near zero of sinh and the inverses, and 1 - erf for targets that have 2^x."""
    erfc = vectorised(math.erfc)
    return [
        odd_fit("SINH", np.sinh, ODD, 1.0, (3, 5, 7, 9)),
        odd_fit("ASINH", np.arcsinh, ODD, ASINH_SPLIT, range(3, 20, 2)),
        odd_fit("ATANH", np.arctanh, ODD, 0.5, range(3, 14, 2)),
        Fit(
            "ERFC",
            "log2(1 - erf(t)) = sum c_j t^(j+1), 0 <= t <= 6, small where 1 - erf(t) is; it falls beyond",
            (0.0, 6.0),
            range(1, 9),
            lambda t: np.log2(erfc(t)),
            erfc,
        ),
    ]


def half_erf(x: Array) -> Array:
    """erf / (1 + sqrt(1 - erf^2))."""
    below = vectorised(math.erfc)(x)
    return vectorised(math.erf)(x) / (1 + np.sqrt(below * (2 - below)))


def halves() -> list[Half]:
    """The functions that are computed by their halves."""
    p_0, root = (float(np.float32(v)) for v in (0.93, math.sqrt(math.pi)))
    return [
        Half("TANH", "tanh(x)", 9.25, lambda x: np.tanh(x / 2), (p_0, 2 * p_0), (3, 4), False),
        Half("ERF", "erf(x)", 4.25, half_erf, (1.0, root), (4, 5), True),
    ]


def fits() -> list[Fit]:
    """All polynomials, in the order of the generated file."""
    return [*exponential_fits(), *logarithm_fits(), *trigonometric_fits(), *hyperbolic_fits()]


def pi_decimal() -> Decimal:
    """Returns pi to the precision of the decimal context (Machin's formula)."""

    def arctan_inverse(n: int) -> Decimal:
        total, term, k = Decimal(0), Decimal(1) / n, 0
        while abs(term) > Decimal(10) ** -(getcontext().prec + 2):
            total += term / (2 * k + 1) * (-1) ** k
            term, k = term / (n * n), k + 1
        return total

    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239))


def split(value: Decimal, parts: int, first_bits: int = 24) -> list[float]:
    """Splits `value` into float32 parts that add up to it; the first keeps `first_bits` significant bits."""
    result: list[float] = []
    for index in range(parts):
        part = float(np.float32(float(value)))
        if index == 0 and first_bits < 24:
            mantissa, exponent = math.frexp(part)
            part = math.ldexp(round(math.ldexp(mantissa, first_bits)), exponent - first_bits)
        result.append(part)
        value -= Decimal(part)
    return result


def constants() -> dict[str, tuple[str, list[float]]]:
    """Constants split into float32 parts, with their descriptions."""
    getcontext().prec = 90
    ln2, ln10, pi = Decimal(2).ln(), Decimal(10).ln(), pi_decimal()
    return {
        "LN2": (
            "ln(2); the first part has 15 bits, so that n * LN2[0] is exact for |n| < 512",
            split(ln2, 2, 15),
        ),
        "LOG2_E": ("1/ln(2)", split(1 / ln2, 2)),
        "LOG10_E": ("1/ln(10)", split(1 / ln10, 2)),
        "LOG10_2": ("log10(2); the first part has 15 bits", split(ln2 / ln10, 2, 15)),
        "HALF_PI": ("pi/2", split(pi / 2, 3)),
        "TWO_OVER_PI": ("2/pi", split(2 / pi, 1)),
    }


def two_over_pi_words(count: int) -> list[int]:
    """The first `count` 32-bit words of the binary fraction of 2/pi."""
    getcontext().prec = 90
    return [int(2 / pi_decimal() * 2 ** (32 * (i + 1))) & 0xFFFFFFFF for i in range(count)]


def render() -> str:
    """Returns the text of coefficients.py."""
    lines = [
        '"""Minimax coefficients and split constants. Generated by tools/fit_minimax.py; do not edit."""',
        "",
        "from __future__ import annotations",
        "",
    ]

    def emit(name: str, doc: str, values: Sequence[float]) -> None:
        shortest = [np.format_float_scientific(np.float32(v), unique=True, trim="0") for v in values]
        numbers = [number.replace("e+", "e") for number in shortest]
        lines.append(f"#: {doc}.")
        if len(numbers) == 1:
            lines.extend([f"{name} = ({numbers[0]},)", ""])
        else:
            lines.extend([f"{name} = (", *(f"    {number}," for number in numbers), ")", ""])

    for spec in fits():
        values, error = fit(spec)
        emit(spec.name, f"{spec.doc}; error 2^{math.log2(error):.1f}", values)
    for half in halves():
        above, below, error = fit_half(half)
        emit(
            f"{half.name}_N",
            f"{half.doc} = 2NQ / (N^2 + Q^2), N = x sum c_j x^2j, |x| <= {half.high}; error 2^{math.log2(error):.1f}",
            above,
        )
        emit(f"{half.name}_Q", "Q = sum c_j x^2j" + (f"; N at {half.high}" if half.meets else ""), below)
    for name, (doc, values) in constants().items():
        emit(name, doc, values)
    lines.extend(["#: The first 192 bits of the binary fraction of 2/pi.", "TWO_OVER_PI_WORDS = ("])
    lines.extend(f"    0x{word:08X}," for word in two_over_pi_words(6))
    lines.extend(
        [
            ")",
            "",
            "#: Where functions change from one formula to the other.",
            f"ASIN_SPLIT = {ASIN_SPLIT}",
            f"ASINH_SPLIT = {ASINH_SPLIT}",
            "",
        ]
    )
    return "\n".join(lines)


def main() -> int:
    """Command line entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the checked-in file, write nothing")
    parser.add_argument("--report", action="store_true", help="print the error of each fit, write nothing")
    options = parser.parse_args()
    if options.report:
        for spec in fits():
            print(f"{spec.name:12} 2^{math.log2(fit(spec)[1]):7.2f}  {spec.doc}")
        for half in halves():
            print(f"{half.name:12} 2^{math.log2(fit_half(half)[2]):7.2f}  {half.doc}")
        return 0
    text = render()
    if options.check:
        same = OUTPUT.read_text() == text
        print("coefficients.py is up to date" if same else "coefficients.py differs: run tools/fit_minimax.py")
        return 0 if same else 1
    OUTPUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
