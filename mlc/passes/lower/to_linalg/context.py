"""What a lowering knows about its operation: operands, attributes, result sizes, equal extents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mlir import ir
from mlir.dialects import arith

from mlc import _native
from mlc.dims import DimAnalysis
from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, shape_of
from mlc.passes.lower.to_linalg import scalar
from mlc.passes.lower.to_linalg.builder import Source, const, dim, size_value
from mlc.passes.lower.to_linalg.sizes import extent, simplified

Extents: TypeAlias = "list[ir.AffineExpr]"


class DimFacts:
    """Extents of the operands and results of every `mlc` operation of a function as they were before the lowering.

    The lowering replaces operands as it goes, so the analysis of the original values is noted by operation.
    """

    def __init__(self, function: ir.Operation) -> None:
        analysis = DimAnalysis(function)
        self.symbols = analysis.symbols
        self._facts: dict[ir.Value, tuple[list[Extents], list[Extents]]] = {}

        def extents(values: Sequence[ir.Value]) -> list[Extents]:
            return [list(analysis.dims(v)) if isinstance(v.type, ir.RankedTensorType) else [] for v in values]

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name.startswith("mlc.") and len(op.results):
                self._facts[op.results[0]] = (extents(op.operands), extents(op.results))
            return ir.WalkResult.ADVANCE

        function.walk(visit)

    def operand(self, op: ir.Operation, number: int) -> Extents:
        return self._facts[op.results[0]][0][number]

    def result(self, op: ir.Operation, number: int) -> Extents:
        return self._facts[op.results[0]][1][number]


class Lowering(OpAdaptor):
    """One operation while it is being lowered; the insertion point is in front of it."""

    def __init__(self, op: ir.Operation, facts: DimFacts) -> None:
        super().__init__(op)
        self.facts = facts
        self._sizes: list[list[Size]] | None = None

    def sizes(self, result: int = 0) -> list[Size]:
        """Extents of a result: numbers where its type knows them, else `index` values."""
        shape = list(self.op.results[result].type.shape)
        if DYNAMIC not in shape:
            return list(shape)
        known = self._extents_of_operands(result)
        if known is not None:
            return known
        if self._sizes is None:
            self._sizes = [[simplified(s) for s in sizes] for sizes in _native.reify(self.op)]
        return [s if s != DYNAMIC else r for s, r in zip(shape, self._sizes[result], strict=True)]

    def _extents_of_operands(self, result: int) -> list[Size] | None:
        """Extents of a result whose unknown ones are all known to be those of operands: values that others have, too,
        where arithmetic on them (which of two extents is not 1?) would be another extent to who reads the result."""
        places: dict[ir.AffineExpr, tuple[int, int]] = {}
        for number, operand in enumerate(self.op.operands):
            for i, expr in enumerate(self.facts.operand(self.op, number)):
                if operand.type.is_dynamic_dim(i):
                    places.setdefault(expr, (number, i))
        found = []
        for size, expr in zip(self.op.results[result].type.shape, self.facts.result(self.op, result), strict=True):
            if size == DYNAMIC and expr not in places:
                return None
            found.append(size if size != DYNAMIC else places[expr])
        return [extent(self.op.operands[f[0]], f[1]) if isinstance(f, tuple) else f for f in found]

    def same_extent(self, a: tuple[int, int], b: tuple[int, int]) -> bool:
        """Are dimension `a` = (operand, dimension) and dimension `b` known to be equal?"""
        sizes = [shape_of(self.operand(n))[i] for n, i in (a, b)]
        if DYNAMIC not in sizes:
            return sizes[0] == sizes[1]
        return self.facts.operand(self.op, a[0])[a[1]] == self.facts.operand(self.op, b[0])[b[1]]

    def broadcast(self, numbers: Sequence[int], rank: int, keep: int = 0) -> list[Source]:
        """Operands `numbers` read at the result's coordinates, NumPy-broadcast in all but the last `keep` dimensions
        (those are left to the caller, as zeros)."""
        sources = []
        for number in numbers:
            value = self.operand(number)
            own = value.type.rank - keep
            exprs, dynamic = [], set()
            for i in range(own):
                position = rank - keep - own + i
                access = self._access(number, i, numbers, keep)
                exprs.append(const(0) if access == "zero" else dim(position))
                if access == "dynamic":
                    dynamic.add(i)
                if access in ("dynamic", "asked"):
                    self._check_broadcast(value, i, position)
            sources.append(Source(value, exprs + [const(0)] * keep, dynamic))
        return sources

    def _access(self, number: int, position: int, numbers: Sequence[int], keep: int) -> str:
        """How operand `number` follows the result along `position`: `same`, `asked` (the same, or the run stops),
        `zero`, or `dynamic` (not known).
        """
        from_end = position - (self.operand(number).type.rank - keep)
        size = shape_of(self.operand(number))[position]
        others = []
        for other in numbers:
            where = from_end + self.operand(other).type.rank - keep
            if other != number and where >= 0:
                others.append((other, where, shape_of(self.operand(other))[where]))
        if size == 1:
            return "same" if all(s == 1 for _, _, s in others) else "zero"
        if size != DYNAMIC or all(s == 1 or self.same_extent((number, position), (o, w)) for o, w, s in others):
            return "same"
        lowest, _ = self.facts.symbols.range(self.facts.operand(self.op, number)[position])
        return "asked" if lowest is not None and lowest > 1 else "dynamic"

    def _check_broadcast(self, value: ir.Value, position: int, result_position: int) -> None:
        """A run-time check that an extent is 1 or the result's."""
        own, target = size_value(extent(value, position)), size_value(self.sizes()[result_position])
        fits = arith.ori(arith.cmpi(scalar.I.eq, own, target), arith.cmpi(scalar.I.eq, own, scalar.index(1)))
        emit_check(fits, own, "shapes cannot be broadcast")


def emit_check(condition: ir.Value, value: ir.Value, message: str) -> None:
    """A run-time error `message` with `value` unless `condition` holds."""
    ir.Operation.create("mlc.check", [], [condition, value], {"message": ir.StringAttr.get(message)})
