"""Importing this module loads MLIR with the `mlc` dialect and registers every pass of `mlc/passes`.

Every `mlir.ir.Context` made afterwards knows the dialect, and pass pipelines know the passes by name.
"""

from __future__ import annotations

from pathlib import Path

import mlir.ir as ir  # (loads libMLIRPythonCAPI.so and libLLVM.so, which the native module then finds by name)
from mlir._mlir_libs import _mlir, get_dialect_registry

from mlc.options import InstallationError

try:
    from mlc import _native
except ImportError as error:
    folder = Path(__file__).parent
    raise InstallationError(
        f"the native modules of mlc are not in '{folder}': run from another folder to use an installed mlc, "
        "or build them with `make dev`"
    ) from error

from mlc.passes import base  # (needs the native module)

_native.register_dialects(get_dialect_registry())
_mlir.globals.dialect_search_modules = ["mlc.dialects", *_mlir.globals.dialect_search_modules]
base.register_all(_native.register_pass)

# What programs are made of. MLIR's other dialects are as many again: two thirds of the time that a context takes, and
# every canonicalization would collect their patterns.
DIALECTS = (
    *("mlc", "affine", "arith", "bufferization", "cf", "func", "gpu", "index", "linalg", "llvm", "math", "memref"),
    *("nvvm", "scf", "tensor", "ub", "vector"),
)


def new_context() -> ir.Context:
    """A context with the dialects that passes and front ends build with; the parser loads any other that it meets."""
    return ir.Context(load_on_create_dialects=DIALECTS)
