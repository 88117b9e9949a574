"""What each composite operation means in terms of other `mlc` operations, one operator family a file.

A decomposition is a function from the operation to one value per result, registered under the operation's name; the
pass `decompose` calls it with the insertion point at the operation. It may use other composites: those are decomposed
in turn, unless the target claims them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir import ir

    from mlc.passes.adaptor import OpAdaptor

    Rule = Callable[[OpAdaptor], "ir.Value | Sequence[ir.Value]"]

FAMILIES = (
    *("elementwise", "reduction", "linalg", "conv", "pool", "normalization", "attention", "recurrent", "vision"),
    *("quantization", "indexing"),
)

_RULES: dict[str, Rule] = {}


def decomposition(name: str) -> Callable[[Rule], Rule]:
    """Registers the decomposition of the operation `name`."""

    def register(rule: Rule) -> Rule:
        if name in _RULES:
            raise ValueError(f"{name} has two decompositions")
        _RULES[name] = rule
        return rule

    return register


@cache
def rules() -> dict[str, Rule]:
    """All decompositions by operation name."""
    for family in FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
    return _RULES
