"""rsqrt."""

from __future__ import annotations

from mlir import ir

from .emitter import Emitter


def rsqrt(e: Emitter, x: ir.Value) -> ir.Value:
    """1 / sqrt(x); -0 gives -inf as in IEEE 754 and C23."""
    return e.div(1.0, e.sqrt(x))
