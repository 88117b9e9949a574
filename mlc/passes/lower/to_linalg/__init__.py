"""How each primitive operation becomes linalg, one operator family a file.

A lowering is a function from the operation (as a `Lowering`) to one value per result, registered under the operation's
name; `lower_to_linalg` calls it with the insertion point at the operation.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir import ir

    from mlc.passes.lower.to_linalg.context import Lowering

    Rule = Callable[[Lowering], "ir.Value | Sequence[ir.Value]"]

FAMILIES = ("elementwise", "reduction", "linalg", "conv", "pool", "shape", "indexing", "random", "quantization")

OPAQUE = frozenset(
    f"mlc.{name}"
    for name in (
        *("constant", "weight", "scan", "sort", "topk", "nonzero", "suppress", "scatter_elements", "scatter_nd"),
        *("insert", "recurrence"),
        *("extern", "check", "sequence_make", "sequence_at", "sequence_insert", "sequence_erase"),
        *("sequence_length", "optional_some", "optional_none", "optional_has", "optional_get"),
    )
)
"""Operations that stay as they are: sources, and roots of kernels with templates of their own."""

_RULES: dict[str, Rule] = {}


def lowers(name: str) -> Callable[[Rule], Rule]:
    """Registers the lowering of the operation `name`."""

    def register(rule: Rule) -> Rule:
        if name in _RULES:
            raise ValueError(f"{name} has two lowerings")
        _RULES[name] = rule
        return rule

    return register


@cache
def rules() -> dict[str, Rule]:
    """All lowerings by operation name."""
    for family in FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
    return _RULES
