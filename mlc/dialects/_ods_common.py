"""What generated bindings import from their package: the helpers of the MLIR bindings."""

from __future__ import annotations

from mlir.dialects import _ods_common as _upstream

globals().update({name: value for name, value in vars(_upstream).items() if not name.startswith("__")})
