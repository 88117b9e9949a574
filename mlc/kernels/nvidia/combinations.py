"""Parts of a reduction that several threads have, and how these become one.

A plain combiner (`reduce.combiner`) takes one value of each part; the position of an extreme value (`positions`) takes
that value too. Both are associative and commutative, so that the order is the template's to choose.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import vector

from mlc.kernels.common.frame import Frame
from mlc.kernels.common.positions import Position, finds_position
from mlc.kernels.common.reduce import Combiner, combiner
from mlc.kernels.nvidia.threads import Values


class Combination:
    """The parts of reductions with a plain combiner."""

    def __init__(self, combine: Combiner) -> None:
        self._combine = combine

    def starts(self, frame: Frame, inits: Values) -> Values:
        """What a part begins with, scalars, where the reduction begins with `inits`."""
        return [frame.constants.get(inits[0].type, self._combine.identity)]

    def both(self, a: Values, b: Values) -> Values:
        """Two parts as one, scalars or, lane by lane, vectors."""
        return [ir.Operation.create(self._combine.op, [a[0].type], [a[0], b[0]]).results[0]]

    def across(self, part: Values) -> Values:
        """The lanes of a part as one."""
        value = part[0]
        if not isinstance(value.type, ir.VectorType):
            return part
        kind = ir.Attribute.parse(f"#vector.kind<{self._combine.kind}>")
        reassociate = ir.Attribute.parse("#arith.fastmath<reassoc>")
        return [vector.ReductionOp(value.type.element_type, kind, value, fastmath=reassociate).result]

    def finished(self, inits: Values, total: Values) -> Values:
        """The results, from what the reduction begins with and all parts as one."""
        return self.both(inits, total)


class Positions(Combination):
    """The parts of reductions to the position of an extreme value: that value and its position."""

    def __init__(self, op: ir.Operation) -> None:
        self._position = Position(op)

    def starts(self, frame: Frame, inits: Values) -> Values:
        return inits

    def both(self, a: Values, b: Values) -> Values:
        (value, place), (other, there) = a, b
        return self._position.merged((value, place), (other, there))

    def across(self, part: Values) -> Values:
        value, place = part
        return self._position.total((value, place)) if isinstance(value.type, ir.VectorType) else part

    def finished(self, inits: Values, total: Values) -> Values:
        return total


def combination(op: ir.Operation) -> Combination | None:
    """How parts of the reduction `op` become one; None where that is not known."""
    if finds_position(op):
        return Positions(op)
    combine = combiner(op)
    return None if combine is None else Combination(combine)


def accumulator_bytes(reductions: Sequence[ir.Operation]) -> int:
    """Bytes of the largest part of one lane."""
    return max(sum((r.type.element_type.width + 7) // 8 for r in op.results) for op in reductions)
