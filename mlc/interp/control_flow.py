"""`check`. Branches and loops are regions: see `mlc.interp.module`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.interp.registry import Call, InterpError, evaluates


@evaluates("mlc.check", "condition value")
def check(call: Call, condition: bool | np.ndarray, value: int) -> list[Any]:
    """Raises `InterpError` with `message` and `value` unless `condition` holds; has no results."""
    if not bool(np.asarray(condition).reshape(())):
        raise InterpError(f"{call.need('message')} (value {int(value)})")
    return []
