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
    *("mlc", "affine", "arith", "bufferization", "cf", "func", "index", "linalg", "llvm", "math", "memref"),
    *("scf", "tensor", "ub", "vector"),
)
GPU_DIALECTS = ("gpu", "nvvm")
"""What programs for GPUs are made of beside these; their bindings take a fiftieth of a small compilation to load."""


def new_context(*, gpu: bool = True) -> ir.Context:
    """A context with the dialects that passes and front ends build with, those for a `gpu` or for CPUs only; the parser
    loads any other that it meets. MLIR's own threads would have nothing to do while passes in Python run, and waking
    them is a tenth of a small compilation.
    """
    context = ir.Context(load_on_create_dialects=(*DIALECTS, *GPU_DIALECTS) if gpu else DIALECTS)
    context.enable_multithreading(False)
    return context
