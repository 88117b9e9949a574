"""The operations of the linalg dialect that mlc builds.

Upstream's package of the dialect makes the Python of every named operation when it is imported, which takes as long as
compiling a small model. This has the generated classes alone, and is found before it (`mlc.compiler_setup`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir._mlir_libs._mlirDialectsLinalg import fill_builtin_region
from mlir.dialects._linalg_ops_gen import FillOp, GenericOp, IndexOp, YieldOp

__all__ = ["GenericOp", "IndexOp", "YieldOp", "fill"]


def fill(value: ir.Value, *, outs: Sequence[ir.Value]) -> ir.Value:
    """The tensor `outs[0]` with every element `value`."""
    op = FillOp([out.type for out in outs], [value], list(outs))
    fill_builtin_region(op.operation)
    return op.results[0]
