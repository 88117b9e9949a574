"""Elementwise functions of the `math` dialect as f32 arithmetic, for the CPU and for NVPTX alike.

`expand` emits `arith`, `math.fma`, `math.sqrt` and the like at the current insertion point: minimax
polynomials fitted by tools/fit_minimax.py (coefficients.py), no branches and no calls; only sin, cos and tan
have an `scf.if` around the reduction of arguments above 131072, entered when some lane needs it. No operation
traps or has undefined behaviour for any lane value, so lanes that are masked out may hold garbage. NaN,
infinities, signed zeros and subnormal numbers are treated as C99 Annex F says. The bits are the same on every
machine with FMA and on every vector length, unless `has_exp2` says that the target has instructions (`nvptx`).

Largest error in ulp, over all 2^32 arguments (powf, atan2: over 2^31 pairs; see bench/ulp.py):

    exp 0.90   exp2 0.88   expm1 1.24   log 0.89   log2 1.18   log10 0.95   log1p 1.51   sigmoid 3.44
    sin 1.50   cos 1.50    tan 2.38     asin 1.34  acos 1.07   atan 1.35    atan2 1.53   erf 3.65
    sinh 1.62  cosh 1.35   tanh 3.29    asinh 1.34 acosh 2.06  atanh 1.35   powf 1.71    cbrt 0.97  rsqrt 1.50

tanh and erf to within 1.4 ulp took 2.2 and 2.7 times as long, the sigmoid to within 2.5 ulp 1.1 times (bench/results).
A constant exponent of 2, 3, 0, 1, -1, 0.5 or -0.5 makes a power a product, quotient or root (1.5 ulp).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import vector

from . import exp, halves, hyperbolic, inverse_trig, log, nvptx, pow, trig
from .emitter import Emitter

_FUNCTIONS: dict[str, Callable[..., ir.Value]] = {
    "math.exp": exp.exp,
    "math.exp2": exp.exp2,
    "math.expm1": exp.expm1,
    "math.log": log.log,
    "math.log2": log.log2,
    "math.log10": log.log10,
    "math.log1p": log.log1p,
    "math.sin": trig.sin,
    "math.cos": trig.cos,
    "math.tan": trig.tan,
    "math.asin": inverse_trig.asin,
    "math.acos": inverse_trig.acos,
    "math.atan": inverse_trig.atan,
    "math.atan2": inverse_trig.atan2,
    "math.sinh": hyperbolic.sinh,
    "math.cosh": hyperbolic.cosh,
    "math.tanh": halves.tanh,
    "math.asinh": hyperbolic.asinh,
    "math.acosh": hyperbolic.acosh,
    "math.atanh": hyperbolic.atanh,
    "math.erf": halves.erf,
    "math.powf": pow.powf,
    "math.rsqrt": pow.rsqrt,
    "math.cbrt": pow.cbrt,
}
SUPPORTED = frozenset(_FUNCTIONS)
_BY_INSTRUCTIONS: dict[str, Callable[..., ir.Value]] = {
    "math.exp": nvptx.exp,
    "math.tanh": nvptx.tanh,
    "math.erf": nvptx.erf,
}


def _is_f32(type_: ir.Type) -> bool:
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    return isinstance(element, ir.F32Type)


def expand(op_name: str, operands: Sequence[ir.Value], has_exp2: bool = False) -> ir.Value | None:
    """Emits `op_name` on `operands` at the insertion point; None if the caller has to keep the operation."""
    function = _FUNCTIONS.get(op_name)
    if function is None or not _is_f32(operands[0].type):
        return None
    if has_exp2:
        function = _BY_INSTRUCTIONS.get(op_name, function)
    return function(Emitter(operands[0].type), *operands)


def expands(op_name: str, type_: ir.Type) -> bool:
    """Does `expand` emit `op_name` on operands of `type_`?"""
    return op_name in SUPPORTED and _is_f32(type_)


def sigmoid(x: ir.Value, has_exp2: bool = False) -> ir.Value:
    """Emits 1 / (1 + e^-x) for an f32 scalar or vector (by instructions: to within 2^-21 of 1)."""
    return (nvptx if has_exp2 else exp).sigmoid(Emitter(x.type), x)


def tanh(x: ir.Value, has_exp2: bool = False) -> ir.Value:
    """Emits tanh(x) for an f32 scalar or vector."""
    return (nvptx if has_exp2 else halves).tanh(Emitter(x.type), x)


def one_plus_erf(x: ir.Value, has_exp2: bool = False) -> ir.Value:
    """Emits 1 + erf(x) for an f32 scalar or vector, to within 2^-21.9 (by instructions: 2^-21)."""
    return (nvptx if has_exp2 else halves).one_plus_erf(Emitter(x.type), x)


def one_plus_tanh(x: ir.Value, has_exp2: bool = False) -> ir.Value:
    """Emits 1 + tanh(x) for an f32 scalar or vector, to within 2^-22 (by instructions: 2^-21)."""
    return (nvptx if has_exp2 else hyperbolic).one_plus_tanh(Emitter(x.type), x)


def exp_nonpositive(x: ir.Value, scalef: int = 0, has_exp2: bool = False) -> ir.Value:
    """Emits e^x for an f32 scalar or vector without positive elements (above 87 the result is garbage).

    Shorter than "math.exp", for softmax: results below 2^-103.5 are 0 (so is that of -inf), so that quotients by the
    sum of a row of up to 2^22 elements are no subnormal numbers; NaN stays NaN; e^0 is 1.
    The relative error is at most 2^-22.5 + |x| 2^-26; x = a - max(a), rounded, has brought one of 2^-24 |x| already.
    `scalef` says that vectors of 16 elements are registers of AVX-512: fewer instructions, but an error of up to
    2^-22.6 + |x| 2^-23.6. With 2 they are fewer where `vreduceps` is fast, and the error is no larger; with 3 small
    results are subnormal numbers. Targets with `has_exp2` have 0 below 2^-126.
    """
    if has_exp2:
        return nvptx.exp_nonpositive(Emitter(x.type), x)
    return exp.exp_nonpositive(Emitter(x.type), x, scalef if _is_sixteen(x.type) else 0)


def exp_shifted(x: ir.Value, most: ir.Value, scalef: int) -> ir.Value | None:
    """Emits e^(x - most) for a vector of 16 f32 that are at most the scalar `most`, times a factor near 1 that is the
    same for all x: for quotients by their sum. None where there is no `scalef` for it; errors are those of
    `exp_nonpositive`, without that of a difference that is rounded.
    """
    if not scalef or not _is_sixteen(x.type) or isinstance(most.type, ir.VectorType):
        return None
    e = Emitter(x.type)
    a, b = (vector.broadcast(x.type, v) for v in exp.shift_by(Emitter(most.type), most))
    return exp.power(e, e.fma(x, a, b), scalef)


def _is_sixteen(type_: ir.Type) -> bool:
    return isinstance(type_, ir.VectorType) and list(type_.shape) == [16]


def reciprocal(x: ir.Value) -> ir.Value:
    """Emits 1 / x for an f32 scalar or vector by the instruction that targets with `has_exp2` have: 1 ulp."""
    return nvptx.reciprocal(x)
