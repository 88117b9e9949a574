"""Elementwise functions of the `math` dialect as branch-free f32 arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from . import erf, exp, hyperbolic, log, pow, trig
from .emitter import Emitter

_UNARY: dict[str, Callable[[Emitter, ir.Value], ir.Value]] = {
    "math.exp": exp.exp, "math.exp2": exp.exp2, "math.expm1": exp.expm1,
    "math.log": log.log, "math.log2": log.log2, "math.log10": log.log10, "math.log1p": log.log1p,
    "math.sin": trig.sin, "math.cos": trig.cos, "math.tanh": hyperbolic.tanh, "math.erf": erf.erf,
    "math.rsqrt": pow.rsqrt, "sigmoid": exp.sigmoid,
}


def expand(op_name: str, operands: Sequence[ir.Value]) -> ir.Value | None:
    function = _UNARY.get(op_name)
    if function is None:
        return None
    return function(Emitter(operands[0].type), *operands)
