"""Importing this module loads MLIR with the `mlc` dialect and registers every pass of `mlc/passes`.

Every `mlir.ir.Context` made afterwards knows the dialect, and pass pipelines know the passes by name.
"""

from __future__ import annotations

from pathlib import Path

import mlir.ir  # noqa: F401  (loads libMLIRPythonCAPI.so and libLLVM.so, which the native module then finds by name)
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
