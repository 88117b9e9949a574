"""Pass `mlc-resolve-dims`: sizes become arithmetic on the extents of function arguments, written once.

    %0 = scf.for … iter_args(%h = %x) -> (tensor<?x8xf32>) { … }      // every step keeps the extents
    %n = tensor.dim %0, %c0 : tensor<?x8xf32>
becomes
    %n = tensor.dim %x, %c0 : tensor<?x8xf32>

Runs after upstream's `resolve-shaped-type-result-dims`, which asks each operation for its result sizes, and does what
that cannot: extents of loops and branches, extents that are equal because the model names them so (`mlc.dims`), sizes
that cancel (`(b * s * 64) / 64`). What only the data decide stays a `tensor.dim`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.dims import DimAnalysis, constant_of
from mlc.passes.base import Pass
from mlc.passes.simplify.rewrite import functions, operations


class ResolveDims(Pass):
    """Expresses sizes by the extents of function arguments."""

    dialects = ("arith", "tensor")
    statistics = {"resolved": "index values replaced"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            self._function(function)

    def _function(self, function: ir.Operation) -> None:
        analysis = DimAnalysis(function)
        builder = SizeBuilder(analysis)
        arguments = set(function.regions[0].blocks[0].arguments)
        for inner in operations(function):
            if _is_size(inner) and list(inner.results[0].uses):
                self._replace(inner, analysis, builder, arguments)

    def _replace(self, op: ir.Operation, analysis: DimAnalysis, builder: SizeBuilder, arguments: set[ir.Value]) -> None:
        expr = analysis.expr(op.results[0])
        is_leaf = isinstance(expr, ir.AffineSymbolExpr | ir.AffineConstantExpr)
        if not is_leaf and op.name != "tensor.dim":
            return
        if op.name == "tensor.dim" and op.operands[0] in arguments and constant_of(expr) is None:
            source = analysis.argument_of(expr.position) if isinstance(expr, ir.AffineSymbolExpr) else None
            if source is None or source[0] == op.operands[0]:
                return
        value = builder.build(expr)
        if value is not None and value != op.results[0]:
            op.results[0].replace_all_uses_with(value)
            self.count("resolved")


def _is_size(op: ir.Operation) -> bool:
    """Whether an operation computes an `index`."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, ir.IndexType) or op.name.endswith(".constant"):
        return False
    return op.name == "tensor.dim" or op.name.startswith(("arith.", "index."))


class SizeBuilder:
    """Builds expressions over a function's arguments at its entry, each once."""

    def __init__(self, analysis: DimAnalysis) -> None:
        self.analysis = analysis
        self._entry = analysis.func.regions[0].blocks[0]
        self._first = self._entry.operations[0]
        self._built: dict[ir.AffineExpr, ir.Value | None] = {}

    def build(self, expr: ir.AffineExpr) -> ir.Value | None:
        """The value of `expr`, or None when it depends on the data."""
        if expr not in self._built:
            with ir.InsertionPoint(self._first), self.analysis.func.location:
                self._built[expr] = self._make(expr.maybe_downcast())
        return self._built[expr]

    def _make(self, expr: ir.AffineExpr) -> ir.Value | None:
        if isinstance(expr, ir.AffineConstantExpr):
            return arith.constant(ir.IndexType.get(), expr.value)
        if isinstance(expr, ir.AffineSymbolExpr):
            return self._symbol(expr.position)
        # Division rounds down and remainders are not negative: the same as truncation where the dividend is not.
        low = self.analysis.symbols.range(expr.lhs)[0]
        if not isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr) and (low is None or low < 0):
            return None
        lhs, rhs = self.build(expr.lhs), self.build(expr.rhs)
        if lhs is None or rhs is None:
            return None
        return _BUILDERS[type(expr)](lhs, rhs)

    def _symbol(self, position: int) -> ir.Value | None:
        source = self.analysis.argument_of(position)
        if source is not None:
            value, dimension = source
            if dimension is None:
                return value
            return tensor.dim(value, arith.constant(ir.IndexType.get(), dimension))
        definition = self.analysis.symbols.definition(position)
        if not isinstance(definition, tuple) or definition[0] not in _FUNCTIONS:
            return None
        parts = [self.build(part) for part in sorted(definition[1], key=str)]
        known = [part for part in parts if part is not None]
        return reduce(_FUNCTIONS[definition[0]], known) if len(known) == len(parts) else None


def _broadcast(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """The extent that is not 1 (0 wins over 1)."""
    one = arith.constant(ir.IndexType.get(), 1)
    return arith.select(arith.cmpi(arith.CmpIPredicate.eq, lhs, one), rhs, lhs)


_BUILDERS: dict[type, Callable[[ir.Value, ir.Value], ir.Value]] = {
    ir.AffineAddExpr: arith.addi,
    ir.AffineMulExpr: arith.muli,
    ir.AffineModExpr: arith.remsi,
    ir.AffineFloorDivExpr: arith.divsi,
    ir.AffineCeilDivExpr: arith.ceildivsi,
}
_FUNCTIONS: dict[object, Callable[[ir.Value, ir.Value], ir.Value]] = {
    "mul": arith.muli,
    "max": arith.maxsi,
    "min": arith.minsi,
    "broadcast": _broadcast,
}
