"""Pass `mlc-check-shapes`: what operations need of extents that only the run tells is asked for when it begins.

    %y = mlc.matmul %x, %w : tensor<?x?xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
becomes
    %d = tensor.dim %x, %c1 : tensor<?x?xf32>
    %ok = arith.cmpi eq, %d, %c4 : index
    mlc.check %ok, %d, "contraction extents of ?x? and 4x2 must be equal"
    %y = mlc.matmul %x, %w : …

The shape functions of operations say what they need (`DimEnv::expectEqual`, `expectAtMost` and `expectStretches`); a
reshape needs as many elements, and no extent of a result may be negative. What `mlc.dims` knows to hold is not asked
for. Checks of what the arguments decide come first of all, others in front of their operation. Broadcasts of
elementwise operations have checks of their own (`mlc-lower-to-linalg`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

from mlir import ir
from mlir.dialects import arith

from mlc.dims import DimAnalysis, constant_of, is_shaped, requirements
from mlc.passes.adaptor import defining_op
from mlc.passes.base import Pass
from mlc.passes.simplify.resolve_dims import SizeBuilder
from mlc.passes.simplify.rewrite import constant_index, has_shape_function, is_static
from mlc.passes.walk import functions, operations


class Need(NamedTuple):
    """`lhs == rhs` (equal), `lhs <= rhs` (at_most), or one of `lhs == rhs` and `lhs == 1` (stretches)."""

    lhs: ir.AffineExpr
    rhs: ir.AffineExpr
    kind: str
    message: str

    def is_known(self, analysis: DimAnalysis) -> bool:
        """Whether it certainly holds."""
        if self.kind == "at_most":
            return analysis.symbols.at_most(self.lhs, self.rhs)
        return analysis.equal(self.lhs, self.rhs)

    def build(self, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """Whether it holds, of the values of both sides."""
        predicate = arith.CmpIPredicate.sle if self.kind == "at_most" else arith.CmpIPredicate.eq
        holds = arith.cmpi(predicate, lhs, rhs)
        if self.kind == "stretches":
            one = arith.constant(ir.IndexType.get(), 1)
            holds = arith.ori(holds, arith.cmpi(arith.CmpIPredicate.eq, lhs, one))
        return holds


class CheckShapes(Pass):
    """Asks for what operations need of extents that are not known."""

    dialects = ("arith", "mlc", "tensor")
    statistics = {
        "checks": "checks that were built",
        "unseen": "checks that were not, of extents that nothing in front of the operation has",
    }

    def run(self, op: Any) -> None:
        for function in functions(op):
            if any(_is_open(inner) for inner in operations(function)):
                self._function(function)

    def _function(self, function: ir.Operation) -> None:
        analysis = DimAnalysis(function)
        builder, asked = SizeBuilder(analysis), set[tuple[Any, ...]]()
        entry = function.regions[0].blocks[0]
        for op in operations(function):
            said = equation(analysis, op)
            if said is not None:  # by who built the program
                asked.update((op.block, "equal", *sides) for sides in (said, said[::-1]))
            for need in _needs(analysis, op) if _is_open(op) else ():
                # What holds at the entry holds inside of it too.
                keys = [(block, need.kind, need.lhs, need.rhs) for block in (entry, op.block)]
                if asked.isdisjoint(keys):
                    asked.add(keys[1])
                    self._ask(builder, need, op, entry)

    def _ask(self, builder: SizeBuilder, need: Need, op: ir.Operation, entry: ir.Block) -> None:
        """Builds the check: at the entry if it can be and must hold, else in front of `op`."""
        sides = [side for expr in need[:2] if (side := builder.build(expr, op)) is not None]
        if len(sides) < 2:
            self.count("unseen")
            return
        is_first = op.block == entry and all(builder.at_entry(expr) is not None for expr in need[:2])
        with ir.InsertionPoint(builder.first if is_first else op), op.location:
            holds = need.build(*sides)
            value = sides[1] if constant_of(need.lhs) is not None else sides[0]
            attributes = {"message": ir.StringAttr.get(need.message)}
            ir.Operation.create("mlc.check", operands=[holds, value], attributes=attributes)
        self.count("checks")


def equation(analysis: DimAnalysis, op: ir.Operation) -> tuple[ir.AffineExpr, ir.AffineExpr] | None:
    """The two sides that an `mlc.check` asks to be equal; None for other operations, and where it asks for more."""
    compare = defining_op(op.operands[0]) if op.name == "mlc.check" else None
    if compare is None or compare.name != "arith.cmpi":
        return None
    if ir.IntegerAttr(compare.attributes["predicate"]).value != arith.CmpIPredicate.eq:
        return None
    lhs, rhs = compare.operands
    return analysis.expr(lhs), analysis.expr(rhs)


def _is_open(op: ir.Operation) -> bool:
    """Whether an operation has a shape function, and extents or places that are not known."""
    return has_shape_function(op) and not all(_is_settled(v) for v in (*op.operands, *op.results))


def _is_settled(value: ir.Value) -> bool:
    """Whether a tensor's extents are known, or a size."""
    if is_shaped(value):
        return is_static(value.type)
    return not isinstance(value.type, ir.IndexType) or constant_index(value) is not None


def _needs(analysis: DimAnalysis, op: ir.Operation) -> Iterator[Need]:
    """What an operation needs and is not known to have."""
    symbols = analysis.symbols
    zero, one = symbols.constant(0), symbols.constant(1)
    try:
        needed = requirements(analysis, op)
    except ValueError as error:  # no run can have it
        yield Need(one, zero, "equal", str(error).rpartition("' op ")[2])  # without where and which operation it is
        return
    for lhs, rhs, kind, what in needed:
        lhs, rhs = symbols.canonical(lhs), symbols.canonical(rhs)
        if kind == "stretches" and symbols.at_most(symbols.constant(2), lhs):
            kind = "equal"
        need = Need(lhs, rhs, kind, what)
        if not need.is_known(analysis):
            yield need._replace(message=_message(need))
    if op.name == "mlc.reshape":
        have, want = (reduce(symbols.mul, analysis.dims(v), one) for v in (op.operands[0], op.results[0]))
        if not analysis.equal(have, want):
            number = constant_of(want)
            wanted = "another number of elements" if number is None else f"{number} elements"
            yield Need(have, want, "equal", f"the input cannot be reshaped to {wanted}")
    for result in op.results:
        for axis, extent in enumerate(analysis.dims(result) if is_shaped(result) else []):
            if not symbols.at_most(zero, extent):
                yield Need(zero, extent, "at_most", f"dimension {axis} of the result would be negative")


def _message(need: Need) -> str:
    """What is wrong, with the number that is wanted if it is one."""
    if need.kind != "equal":
        return need.message
    numbers = [n for n in (constant_of(need.lhs), constant_of(need.rhs)) if n is not None]
    return f"{need.message} differ: {numbers[0]} is needed" if numbers else f"{need.message} differ"
