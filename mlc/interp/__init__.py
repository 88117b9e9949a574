"""Every `mlc` operation evaluated with NumPy: the constant folder, the weight evaluator and the test oracle.

Needs NumPy and ml_dtypes only, never MLIR (`mlc.interp.module`, which walks IR, is imported on its own).
The meaning of each operation is that of `docs/ir.md`, sections 2 and 3.
"""

from __future__ import annotations

from mlc.interp import (  # noqa: F401  (imported for their registrations)
    activation,
    attention,
    control_flow,
    conv,
    elementwise,
    indexing,
    linalg,
    normalization,
    pool,
    quantization,
    random,
    recurrent,
    reduction,
    scatter,
    sequence,
    shape,
    text,
    vision,
)
from mlc.interp.dtypes import DYNAMIC, mlir_dtype, numpy_dtype
from mlc.interp.registry import InterpError, Maybe, ResultType, evaluate, evaluates, supported_ops

__all__ = [
    "DYNAMIC",
    "InterpError",
    "Maybe",
    "ResultType",
    "evaluate",
    "evaluates",
    "mlir_dtype",
    "numpy_dtype",
    "supported_ops",
]
