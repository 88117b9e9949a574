"""Extents as numbers: expressions of a dimension analysis at chosen extents of the inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mlir import ir

from mlc.dims import DimAnalysis

Lookup = Callable[[int], "int | None"]

_CALLS: dict[str, Callable[..., int]] = {
    "floor": lambda a, b: a // b,
    "ceil": lambda a, b: -(-a // b),
    "mod": lambda a, b: a % b,
    "truncdiv": lambda a, b: math.trunc(a / b),
}
_FOLDS: dict[str, Callable[[list[int]], int]] = {"mul": math.prod, "max": max, "min": min, "broadcast": max}


class Extents:
    """What the extents of a function's tensors are when the symbols of `analysis` have the values that `lookup` gives
    for their positions; None for what the data decide.
    """

    def __init__(self, analysis: DimAnalysis, lookup: Lookup) -> None:
        self._analysis = analysis
        self._lookup = lookup

    def shape(self, value: ir.Value) -> list[int | None]:
        """The extents of a tensor."""
        return [self.number(expr) for expr in self._analysis.dims(value)]

    def index(self, value: ir.Value) -> int | None:
        """The value of an `index` value."""
        return self.number(self._analysis.expr(value))

    def number(self, expr: Any) -> int | None:
        """The value of an expression."""
        expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
        if isinstance(expr, ir.AffineConstantExpr):
            return int(expr.value)
        if isinstance(expr, ir.AffineSymbolExpr):
            known = self._lookup(expr.position)
            return known if known is not None else self._call(self._analysis.symbols.definition(expr.position))
        left, right = self.number(expr.lhs), self.number(expr.rhs)
        if left is None or right is None:
            return None
        if isinstance(expr, ir.AffineAddExpr):
            return left + right
        if isinstance(expr, ir.AffineMulExpr):
            return left * right
        if not right:
            return None
        kinds = ((ir.AffineFloorDivExpr, "floor"), (ir.AffineCeilDivExpr, "ceil"), (ir.AffineModExpr, "mod"))
        return next((_CALLS[name](left, right) for kind, name in kinds if isinstance(expr, kind)), None)

    def _call(self, key: Any) -> int | None:
        """The value of a function application, as `SymbolTable.definition` describes it."""
        if not isinstance(key, tuple) or not isinstance(key[0], str):
            return None
        name, rest = key[0], key[1:]
        if name in _FOLDS and len(rest) == 1 and isinstance(rest[0], (tuple, list, set, frozenset)):
            rest = tuple(rest[0])
        if name not in _FOLDS and name not in _CALLS:
            return None
        found = [self.number(e) if isinstance(e, ir.AffineExpr) else e for e in rest]
        numbers = [n for n in found if isinstance(n, int)]
        if len(numbers) != len(found) or (name in _CALLS and (len(numbers) != 2 or not numbers[1])):
            return None
        return _FOLDS[name](numbers) if name in _FOLDS else _CALLS[name](*numbers)


def named(analysis: DimAnalysis, values: Mapping[str, int]) -> Extents:
    """Extents where the named dimensions have `values`."""
    names = analysis.symbol_names
    return Extents(analysis, lambda position: values.get(names[position]))
