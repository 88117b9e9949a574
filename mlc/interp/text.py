"""`extern`: host calls of C routines, evaluated by Python functions that are registered for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.interp.registry import Call, InterpError, evaluates

_ROUTINES: dict[str, Callable[[str, Sequence[Any]], Sequence[Any]]] = {}


def register_routine(callee: str, function: Callable[[str, Sequence[Any]], Sequence[Any]]) -> None:
    """Lets `mlc.extern` evaluate `callee` with `function(config, inputs) -> results`; replaces an earlier
    one.
    """
    _ROUTINES[callee] = function


@evaluates("mlc.extern", "inputs*")
def extern(call: Call, inputs: list[Any]) -> list[Any]:
    """The results of the routine `callee`. Raises `InterpError` when no Python function is registered for
    it.
    """
    callee = call.need("callee")
    if callee not in _ROUTINES:
        raise InterpError(f"mlc.extern: no Python function is registered for the routine '{callee}'")
    return list(_ROUTINES[callee](call.attr("config", ""), inputs))
