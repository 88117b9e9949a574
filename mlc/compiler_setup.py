"""Importing this module loads MLIR with the `mlc` dialect and registers every pass of `mlc/passes`.

Every `mlir.ir.Context` made afterwards knows the dialect, and pass pipelines know the passes by name.
"""

from __future__ import annotations

import mlir.ir  # noqa: F401  (loads libMLIRPythonCAPI.so and libLLVM.so, which the native module then finds by name)
from mlir._mlir_libs import _mlir, get_dialect_registry

from mlc import _native
from mlc.passes import base

_native.register_dialects(get_dialect_registry())
_mlir.globals.dialect_search_modules = ["mlc.dialects", *_mlir.globals.dialect_search_modules]
base.register_all(_native.register_pass)
