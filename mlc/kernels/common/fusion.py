"""What a template is asked before an operation joins one of its kernels.

Every template has `accepts(role, op, dims) -> None | reason`. The role is that of `op`: a `producer` computes what the
kernel reads, a `consumer` reads what the kernel computes. The answer is None, or why the operation stays outside: a
phrase that completes "the template refuses because …". Questions that the template need not be asked (other readers of
a value, circles between kernels) are the planner's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mlir import ir

from mlc.kernels.common.generics import operand_map

Role: TypeAlias = Literal["producer", "consumer"]


@dataclass(frozen=True)
class Dims:
    """Where an operation would join a kernel: `reader` is the operation of the pair that reads the other's result, as
    its operand number `operand` (-1: its body reads it); `root` is the kernel's root. `through` is
    set when `op` moves data and would become part of an indexing map of the root: the map that the root's operand, for
    a consumer its result, would get. `behind`: the reader computes with the root's result and is no operand of it."""

    root: ir.Operation
    reader: ir.Operation
    operand: int
    through: ir.AffineMap | None = None
    behind: bool = False

    @property
    def coordinates(self) -> list[ir.AffineExpr] | None:
        """The element that is read at an iteration point of `reader`; None when that is no generic."""
        if self.through is not None:
            return list(self.through.results)
        if self.reader.name != "linalg.generic" or self.operand < 0:
            return None
        return list(operand_map(self.reader, self.operand).results)

    @property
    def is_same_point(self) -> bool:
        """Is the element at the reader's own iteration point read?"""
        exprs = self.coordinates
        if exprs is None or len(exprs) != self.rank:
            return False
        return all(isinstance(e, ir.AffineDimExpr) and e.position == i for i, e in enumerate(exprs))

    @property
    def is_permutation(self) -> bool:
        """Is every element read at one iteration point of the reader, and only there?"""
        exprs = self.coordinates
        if exprs is None:
            return False
        return len(exprs) == sum(isinstance(e, ir.AffineDimExpr) for e in exprs) == self.rank

    @property
    def rank(self) -> int:
        """Number of iteration dimensions of the reader."""
        return len(self.reader.attributes["iterator_types"])


Accepts: TypeAlias = Callable[[Role, ir.Operation, Dims], str | None]


def accepts_pointwise(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """The rule of templates that evaluate everything on demand at the points of one domain."""
    if role == "consumer":
        return None if dims.is_same_point else "it reads the result at another point than its own"
    return None if dims.is_permutation else "its elements would be computed more than once"


def accepts_rows(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """The rule of row kernels, which compute what they do not store anew in every pass over a row."""
    if role == "producer" and is_expensive(op):
        return "its functions would be computed in every pass over the row"
    if role == "producer" and not dims.is_same_point:
        return "its elements are not read along the rows"
    return accepts_pointwise(role, op, dims)


_CHEAP_MATH = ("math.absf", "math.absi", "math.fma", "math.copysign", "math.floor", "math.ceil", "math.trunc")
_SEARCHES = ("tensor.extract", "scf.if")


def is_expensive(op: ir.Operation) -> bool:
    """Does a generic compute a function that takes much longer than a load, or load at computed addresses?"""
    names = _body_names(op)
    return loads_at_computed(op) or any(n.startswith("math.") and n not in _CHEAP_MATH for n in names)


def loads_at_computed(op: ir.Operation) -> bool:
    """Does a generic load at addresses that it computes, or under a condition?"""
    return any(name in _SEARCHES for name in _body_names(op))


def _body_names(op: ir.Operation) -> list[str]:
    if op.name != "linalg.generic":
        return []
    return [inner.operation.name for inner in op.regions[0].blocks[0].operations]


def refuses_all(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """The rule of templates that do one thing."""
    return f"the kernel of {dims.root.name} takes no other operation"
