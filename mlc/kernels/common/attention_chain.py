"""From scores to logits: what stands between the products of attention, and what it says of the keys that a row sees.

A mask that hides all keys behind a row's own position, or in front of such a place (a window), or behind a place that
the run says (the length of a cache), limits what must be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.attention import Attention
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import body_of, input_number, is_number
from mlc.kernels.common.positional import Band, Linear, band_of

_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")
FAR = 1 << 29  # no extent is as large
_CASTS = ("arith.extf", "arith.truncf")


@dataclass(frozen=True)
class Limit:
    """The first or the last visible key of a row: `number` is a function of the coordinates of `op`, which hides
    others."""

    op: ir.Operation
    number: Linear

    @property
    def offset(self) -> int | None:
        """What it is more than the row's number, where that is known; of far ones, which hide nothing or all, one that
        is far."""
        known = not self.number.terms and len(self.number.factors) == 1
        return max(-FAR, min(self.number.constant, FAR)) if known else None

    def mentions(self, dim: int) -> bool:
        """Does the run say other numbers at other coordinates of a dimension?"""
        return any(at.mentions(dim) for term, _ in self.number.terms for at in term.at)

    @property
    def is_monotone(self) -> bool:
        """Does it never fall from one row to the next?"""
        return not self.mentions(len(self.op.attributes["iterator_types"]) - 2)


@dataclass(frozen=True)
class Chain:
    """The operations between scores and logits: `start` is the value that is `scale` times the scores, `hiding` are
    selections of the keys between limits, which are the largest of `firsts` and the least of `lasts`, and `is_plain`
    says that there is nothing else."""

    scale: float
    start: ir.Value
    hiding: tuple[tuple[ir.Operation, int], ...]
    firsts: tuple[Limit, ...]
    lasts: tuple[Limit, ...]
    is_plain: bool

    @property
    def is_bounded(self) -> bool:
        """Is anything known of the keys that are hidden?"""
        return bool(self.firsts or self.lasts)

    @property
    def window(self) -> int | None:
        """How many keys a row sees at most, where that is known."""
        firsts, lasts = ([limit.offset for limit in limits] for limits in (self.firsts, self.lasts))
        known = [[n for n in offsets if n is not None] for offsets in (firsts, lasts)]
        return min(known[1]) - max(known[0]) + 1 if known[0] and known[1] else None


def chain_of(attention: Attention) -> Chain:
    """What the logits of `attention` are made by."""
    scale, start, rest = 1.0, attention.scores.op.results[0], list(reversed(attention.path))
    while rest:
        factor = _factor(*rest[0])
        if factor is None:
            break
        scale, start = scale * factor, rest.pop(0)[0].results[0]
    hiding: list[tuple[ir.Operation, int]] = []
    firsts: list[Limit] = []
    lasts: list[Limit] = []
    for number, (op, operand) in enumerate(rest):
        band = _band(op, operand)
        if band is None or not all(_keeps_hidden(*later) for later in rest[number + 1 :]):
            continue
        firsts += [Limit(op, one) for one in band.firsts]
        lasts += [Limit(op, one) for one in band.lasts]
        if band.is_whole:
            hiding.append((op, operand))
    known = {op for op, _ in hiding}
    plain = all(op in known or _factor(op, operand) == 1.0 for op, operand in rest)
    return Chain(scale, start, tuple(hiding), _narrowest(firsts, max), _narrowest(lasts, min), plain)


def _narrowest(limits: Sequence[Limit], choose: Callable[[Iterable[int]], int]) -> tuple[Limit, ...]:
    """Of limits that are so much more than the row's number the one that counts, and all others."""
    known = [limit.offset for limit in limits if limit.offset is not None]
    if not known:
        return tuple(limits)
    kept = next(limit for limit in limits if limit.offset == choose(known))
    return (kept, *(limit for limit in limits if limit.offset is None))


def _factor(op: ir.Operation, operand: int) -> float | None:
    """What `op` multiplies its operand by, if that is a positive number and all it does; 1 for views and rounding."""
    if op.name in _VIEWS:
        return 1.0
    if len(op.operands) != 2 or operand != 0:
        return None
    factor, value = 1.0, op.regions[0].blocks[0].arguments[0]
    for inner in body_of(op):
        if inner.name in ("arith.constant", "linalg.yield"):
            continue
        if not inner.operands or inner.operands[0] != value and (len(inner.operands) < 2 or inner.operands[1] != value):
            return None
        if inner.name in ("arith.mulf", "arith.divf"):
            number = _number(inner.operands[1] if inner.operands[0] == value else inner.operands[0])
            if number is None or number <= 0 or inner.name == "arith.divf" and inner.operands[0] != value:
                return None
            factor = factor * number if inner.name == "arith.mulf" else factor / number
        elif inner.name not in _CASTS:
            return None
        value = inner.results[0]
    return factor


def _number(value: ir.Value) -> float | None:
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], ir.FloatAttr):
        return None
    return float(op.attributes["value"].value)


def _band(op: ir.Operation, operand: int) -> Band | None:
    """The keys that `op` shows, where it hides others and does nothing else."""
    inner = [o for o in body_of(op) if o.name not in ("arith.constant", "linalg.yield")]
    selects = [o for o in inner if o.name == "arith.select"]
    if not inner or len(selects) != 1 or inner[-1] != selects[0]:
        return None
    condition, shown, hidden = selects[0].operands
    if input_number(op, shown) != operand or not is_number(hidden, float("-inf")):
        return None
    return band_of(op, condition)


def _keeps_hidden(op: ir.Operation, operand: int) -> bool:
    """Does `op` leave -inf as it is, whatever finite numbers its other operands are?"""
    if op.name in _VIEWS:
        return True
    names = {o.name for o in body_of(op)} - {"arith.constant", "linalg.yield", "linalg.index", *_CASTS}
    if names == {"arith.addf"} or not names:
        return True
    select = next((o for o in body_of(op) if o.name == "arith.select"), None)
    if select is None or names - {"arith.select", "arith.cmpi", "arith.index_cast", "arith.addi"}:
        return False
    return input_number(op, select.operands[1]) == operand and is_number(select.operands[2], float("-inf"))
