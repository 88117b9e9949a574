"""Layout: convolutions and pools become channels-last, and everything between them follows.

A value whose elements exist in another order is a `Moved`: it equals `transpose(inner, permutation)`. The pass
`propagate_layout` walks a function and asks for each operation with moved operands whether it can work on the inner
values; the rules are here, one operator family a file. A transposition is only materialised where no rule applies.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir import ir

    from mlc.passes.layout.context import Layouts

    Rule = Callable[[Layouts, ir.Operation], "list[Moved | None] | None"]

FAMILIES = ("elementwise", "reduction", "linalg", "conv", "pool", "shape", "indexing")


@dataclass(frozen=True)
class Moved:
    """The value `transpose(inner, permutation)`: its dimension i is dimension `permutation[i]` of `inner`."""

    inner: ir.Value
    permutation: tuple[int, ...]

    @property
    def is_identity(self) -> bool:
        return self.permutation == tuple(range(len(self.permutation)))


_RULES: dict[str, Rule] = {}


def moves(*names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of the operations `names` (without `mlc.`): what its results are in terms of new operations on
    the inner values, or None when its operands have to be materialised."""

    def register(rule: Rule) -> Rule:
        for name in names:
            if f"mlc.{name}" in _RULES:
                raise ValueError(f"mlc.{name} has two layout rules")
            _RULES[f"mlc.{name}"] = rule
        return rule

    return register


@cache
def rules() -> dict[str, Rule]:
    """All layout rules by operation name."""
    for family in FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
    return _RULES
