"""Reductions to the position of an extreme value (ArgMax, ArgMin) that lanes, or threads, share.

Every lane keeps the best value that it has seen and where that was; at the end the best of the lanes is found, and
among the lanes that have it the first position, or the last. A NaN is better than any number. What a lane begins with,
position 0 of a value that nothing is worse than, counts for nothing: if that is the best, all elements are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.index import Scalar

EXTREME = "mlc.arg_reduce"
"""On a generic: the `vector.kind` of the extreme value that its first result is, the second being its position."""
LAST = "mlc.select_last"
"""On such a generic: of equal values the last one counts."""

_COMBINERS = {
    "maximumf": arith.maximumf, "minimumf": arith.minimumf, "maxsi": arith.maxsi, "minsi": arith.minsi,
    "maxui": arith.maxui, "minui": arith.minui,
}  # fmt: skip
Lanes = tuple[ir.Value, ir.Value]
"""Best values, and their positions."""
Step = Callable[[Scalar, Lanes, ir.Value | None], Lanes]


def finds_position(generic: ir.Operation) -> bool:
    """Does a generic reduce to an extreme value and its position?"""
    return generic.name == "linalg.generic" and EXTREME in generic.attributes


class Position:
    """How the lanes of one such reduction are put together."""

    def __init__(self, generic: ir.Operation) -> None:
        self.kind = ir.StringAttr(generic.attributes[EXTREME]).value
        self.last = LAST in generic.attributes
        self.element, self.place = (r.type.element_type for r in generic.results)
        self.none = -1 if self.last else (1 << (self.place.width - 1)) - 1

    def merged(self, a: Lanes, b: Lanes) -> Lanes:
        """The better of two, scalars or, lane by lane, vectors."""
        best = _COMBINERS[self.kind](a[0], b[0])
        places = [self._candidates(lanes, best) for lanes in (a, b)]
        return best, (arith.maxsi if self.last else arith.minsi)(*places)

    def total(self, lanes: Lanes) -> Lanes:
        """The best of all lanes, as scalars."""
        kind = ir.Attribute.parse(f"#vector.kind<{self.kind}>")
        best = vector.ReductionOp(self.element, kind, lanes[0]).result
        places = self._candidates(lanes, memory.splat(best, lanes[0].type.shape[0]))
        kind = ir.Attribute.parse(f"#vector.kind<{'maxsi' if self.last else 'minsi'}>")
        return best, vector.ReductionOp(self.place, kind, places).result

    def _candidates(self, lanes: Lanes, best: ir.Value) -> ir.Value:
        """The positions of the lanes that have the value `best`."""
        value, places = lanes
        if isinstance(self.element, ir.FloatType):
            is_best = arith.cmpf(arith.CmpFPredicate.UEQ, value, best)
            # Where `best` is a number no value is a NaN; where it is a NaN the numbers are not the best.
            number = arith.cmpf(arith.CmpFPredicate.ORD, value, value)
            best_number = arith.cmpf(arith.CmpFPredicate.ORD, best, best)
            is_best = arith.andi(is_best, arith.cmpi(arith.CmpIPredicate.eq, number, best_number))
        else:
            is_best = arith.cmpi(arith.CmpIPredicate.eq, value, best)
        none = ir.IntegerAttr.get(self.place, self.none)
        if isinstance(places.type, ir.VectorType):
            none = ir.DenseElementsAttr.get_splat(places.type, none)
        return arith.select(is_best, places, arith.ConstantOp(places.type, none).result)


def masked(mask: ir.Value | None, new: Sequence[ir.Value], old: Sequence[ir.Value]) -> list[ir.Value]:
    """`new` where the mask is set."""
    if mask is None:
        return list(new)
    return [arith.select(mask, a, b) for a, b in zip(new, old, strict=True)]
