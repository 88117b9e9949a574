"""Elementwise functions of the `math` dialect as branch-free f32 arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from . import erf, exp, hyperbolic, inverse_trig, log, pow, trig
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
    "math.tanh": hyperbolic.tanh,
    "math.asinh": hyperbolic.asinh,
    "math.acosh": hyperbolic.acosh,
    "math.atanh": hyperbolic.atanh,
    "math.erf": erf.erf,
    "math.powf": pow.powf,
    "math.rsqrt": pow.rsqrt,
    "math.cbrt": pow.cbrt,
}
SUPPORTED = frozenset(_FUNCTIONS)


def _is_f32(type_: ir.Type) -> bool:
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    return isinstance(element, ir.F32Type)


def expand(op_name: str, operands: Sequence[ir.Value]) -> ir.Value | None:
    """Emits `op_name` on `operands` at the insertion point; None if the caller has to keep the operation."""
    function = _FUNCTIONS.get(op_name)
    if function is None or not _is_f32(operands[0].type):
        return None
    return function(Emitter(operands[0].type), *operands)


def sigmoid(x: ir.Value) -> ir.Value:
    """Emits 1 / (1 + e^-x) for an f32 scalar or vector."""
    return exp.sigmoid(Emitter(x.type), x)
