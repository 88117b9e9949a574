"""Pass `mlc-resolve-dims`: sizes become arithmetic on the extents of function arguments, written once.

    %0 = scf.for … iter_args(%h = %x) -> (tensor<?x8xf32>) { … }      // every step keeps the extents
    %1 = mlc.concat %0, %0 {axis = 0 : i64} : …
    %n = tensor.dim %1, %c0 : tensor<?x8xf32>
becomes
    %d = tensor.dim %x, %c0 : tensor<?x8xf32>
    %n = arith.muli %d, %c2 : index

`mlc.dims` says what an extent is: through operations, loops and branches, for extents that the model names alike, and
for sizes that cancel (`(b * s * 64) / 64`). What only the data decide stays a `tensor.dim` of the value that they
decide. (Upstream's `resolve-shaped-type-result-dims` does a part of this, but builds each operand's size again for each
user: exponentially many where elementwise operations with run-time broadcasting follow one another.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.dims import DimAnalysis
from mlc.passes.base import Pass
from mlc.passes.walk import functions, operations


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
        for inner in operations(function):
            if _is_size(inner) and list(inner.results[0].uses):
                self._replace(inner, analysis, builder)

    def _replace(self, op: ir.Operation, analysis: DimAnalysis, builder: SizeBuilder) -> None:
        expr = analysis.expr(op.results[0])
        is_leaf = isinstance(expr, ir.AffineSymbolExpr | ir.AffineConstantExpr)
        if not is_leaf and op.name != "tensor.dim":
            return
        source = None
        if isinstance(expr, ir.AffineSymbolExpr) and not _follows(analysis, expr):
            source = analysis.source_of(expr.position)
        if source is not None and (source[0] == op.results[0] or source[0] in op.operands):
            return
        value = builder.build(expr, op)
        if value is not None and value != op.results[0]:
            op.results[0].replace_all_uses_with(value)
            self.count("resolved")


def _follows(analysis: DimAnalysis, expr: ir.AffineSymbolExpr) -> bool:
    """Whether a symbol is a function of other extents, such as those of two operands that broadcast at run time."""
    definition = analysis.symbols.definition(expr.position)
    return isinstance(definition, tuple) and definition[0] in _FUNCTIONS


def _is_size(op: ir.Operation) -> bool:
    """Whether an operation computes an `index`."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, ir.IndexType) or op.name.endswith(".constant"):
        return False
    return op.name == "tensor.dim" or op.name.startswith(("arith.", "index."))


class SizeBuilder:
    """Builds the values of expressions: over a function's arguments at its entry, each once, others where asked for."""

    def __init__(self, analysis: DimAnalysis) -> None:
        self.analysis = analysis
        self._entry = analysis.func.regions[0].blocks[0]
        self.first = self._entry.operations[0].operation
        self._built: dict[ir.AffineExpr, ir.Value | None] = {}

    def at_entry(self, expr: ir.AffineExpr) -> ir.Value | None:
        """The value of `expr` at the function's entry; None when it depends on more than the arguments."""
        if expr not in self._built:
            with ir.InsertionPoint(self.first), self.analysis.func.location:
                self._built[expr] = self._make(expr.maybe_downcast(), None)
        return self._built[expr]

    def build(self, expr: ir.AffineExpr, user: ir.Operation) -> ir.Value | None:
        """The value of `expr` for use by `user`; None when it depends on values that `user` does not see."""
        known = self.at_entry(expr)
        if known is not None:
            return known
        with ir.InsertionPoint(user), user.location:
            return self._make(expr.maybe_downcast(), user)

    def _make(self, expr: ir.AffineExpr, user: ir.Operation | None) -> ir.Value | None:
        if isinstance(expr, ir.AffineConstantExpr):
            return arith.constant(ir.IndexType.get(), expr.value)
        if isinstance(expr, ir.AffineSymbolExpr):
            return self._symbol(expr.position, user)
        # Division rounds down and remainders are not negative: the same as truncation where the dividend is not.
        low = self.analysis.symbols.range(expr.lhs)[0]
        exact = isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr) or (low is not None and low >= 0)
        build = (_BUILDERS if exact else _ROUNDING).get(type(expr))
        operands = self._all([expr.lhs, expr.rhs], user) if build is not None else []
        return build(*operands) if build is not None and operands else None

    def _all(self, exprs: Sequence[ir.AffineExpr], user: ir.Operation | None) -> list[ir.Value]:
        """The values of all expressions, or nothing."""
        values: list[ir.Value] = []
        for expr in exprs:
            value = self._make(expr.maybe_downcast(), user)
            if value is None:
                return []
            values.append(value)
        return values

    def _symbol(self, position: int, user: ir.Operation | None) -> ir.Value | None:
        definition = self.analysis.symbols.definition(position)
        if isinstance(definition, tuple) and definition[0] in _FUNCTIONS:
            parts = self._all(sorted(definition[1], key=str), user)
            if parts:
                return reduce(_FUNCTIONS[definition[0]], parts)
        seen = (source for source in self.analysis.sources_of(position) if self._is_visible(source[0], user))
        value, dimension = next(seen, (None, None))
        if value is None:
            return None
        if dimension is not None:
            return tensor.dim(value, arith.constant(ir.IndexType.get(), dimension))
        is_index = isinstance(value.type, ir.IndexType)
        return value if is_index else arith.index_cast(ir.IndexType.get(), value)

    def _is_visible(self, value: ir.Value, user: ir.Operation | None) -> bool:
        """Whether `value` dominates `user` (None: the entry)."""
        if isinstance(value.owner, ir.Block):
            block: ir.Block = value.owner
            owner = None
        else:
            owner = value.owner.operation
            block = owner.block
        if user is None:
            return owner is None and block == self._entry
        while user.block != block:
            parent = user.parent
            if parent is None or user == self.analysis.func:
                return False
            user = parent.operation
        return owner is None or owner.is_before_in_block(user)


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
_ROUNDING: dict[type, Callable[[ir.Value, ir.Value], ir.Value]] = {
    ir.AffineFloorDivExpr: arith.floordivsi,
    ir.AffineCeilDivExpr: arith.ceildivsi,
}
_FUNCTIONS: dict[object, Callable[[ir.Value, ir.Value], ir.Value]] = {
    "mul": arith.muli,
    "max": arith.maxsi,
    "min": arith.minsi,
    "broadcast": _broadcast,
}
