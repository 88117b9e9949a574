"""Conditions that positions decide: which keys of a row a causal mask shows, a window, or the length of a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.analysis import touches
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import body_of, input_number, is_reduction, operand_map

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
_EXACT = ("arith.index_cast", "arith.extsi")  # those that leave any integer as it is
_NARROWEST = 32  # bits of integers of the run that limits are computed from
_PREDICATES = {2: ("<", 1), 3: ("<=", 1), 4: ("<", -1), 5: ("<=", -1)}  # slt, sle, sgt, sge


@dataclass(frozen=True)
class Term:
    """An integer of the run: the element of `value` at coordinates that are functions of others."""

    value: ir.Value
    at: tuple[Linear, ...]


@dataclass(frozen=True)
class Linear:
    """`constant` plus the iteration dimensions times their factors, plus terms times theirs."""

    factors: tuple[tuple[int, int], ...]
    constant: int
    terms: tuple[tuple[Term, int], ...] = ()

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        """The sum, or the difference with `sign` -1."""
        found = dict(self.factors)
        for dim, factor in other.factors:
            found[dim] = found.get(dim, 0) + sign * factor
        terms = dict(self.terms)
        for term, factor in other.terms:
            terms[term] = terms.get(term, 0) + sign * factor
        kept = tuple(sorted((d, f) for d, f in found.items() if f))
        return Linear(kept, self.constant + sign * other.constant, tuple((t, f) for t, f in terms.items() if f))

    def mentions(self, dim: int) -> bool:
        """Does it depend on an iteration dimension?"""
        return dim in dict(self.factors) or any(at.mentions(dim) for term, _ in self.terms for at in term.at)


@dataclass(frozen=True)
class Band:
    """The columns of a row that a condition shows: none in front of each of the `firsts`, and none behind each of the
    `lasts`, which are functions of the coordinates of the row; `is_whole` when nothing else is asked."""

    firsts: tuple[Linear, ...]
    lasts: tuple[Linear, ...]
    is_whole: bool


def band_of(op: ir.Operation, condition: ir.Value) -> Band:
    """What `condition`, in the body of a generic over rows and, last, columns, shows of a row, as far as coordinates
    and integers that do not depend on the column say: the row's number, or not, and other numbers are added."""
    rank = len(op.attributes["iterator_types"])
    column, row = rank - 1, rank - 2
    dims = [Linear(((d, 1),), 0) for d in range(rank)]
    firsts, lasts, is_whole = [], [], rank > 1
    for difference in _conditions(op, condition, dims):
        sign = 0 if difference is None else dict(difference.factors).get(column, 0)
        if difference is None or rank < 2 or abs(sign) != 1:
            is_whole = False
            continue
        rest = difference.plus(Linear(((column, sign),), 0), -1)
        limit = Linear((), 0).plus(rest, -sign)
        if limit.mentions(column) or dict(limit.factors) not in ({}, {row: 1}):
            is_whole = False
        elif sign > 0:
            lasts.append(limit)
        else:
            firsts.append(limit)
    return Band(tuple(firsts), tuple(lasts), is_whole)


def is_positional(op: ir.Operation | None) -> bool:
    """Does a generic compute something from coordinates, constants, and what other such generics compute?"""
    seen: set[ir.Operation] = set()
    stack = [op]
    while stack:
        below = stack.pop()
        if below is None or not _computes_alone(below):
            return False
        if below not in seen:
            seen.add(below)
            stack.extend(defining_op(v) for v in list(below.operands)[:-1])
    return True


def is_mask(op: ir.Operation | None) -> bool:
    """Does a generic compute booleans for rows and columns from what coordinates decide, from booleans that are the
    same for all rows (a padding mask), and from integers that are the same for all columns (lengths)?"""
    if op is None or not _computes_alone(op) or _width(op.results[0]) != 1:
        return False
    rank = len(op.attributes["iterator_types"])
    for number, value in enumerate(list(op.operands)[:-1]):
        producer = defining_op(value)
        of_columns = _width(value) == 1 and not touches(op, number, rank - 2)
        of_rows = _width(value) >= _NARROWEST and not touches(op, number, rank - 1)
        if not (of_columns or of_rows or is_positional(producer) or is_mask(producer)):
            return False
    return rank > 1


def is_sum(op: ir.Operation | None) -> bool:
    """Does a generic add or subtract integers, and coordinates, and do nothing else?"""
    if op is None or not _computes_alone(op) or _width(op.results[0]) < _NARROWEST:
        return False
    names = {o.name for o in body_of(op)} - {*_CASTS, "arith.constant", "linalg.index", "linalg.yield"}
    return names <= {"arith.addi", "arith.subi"}


def _computes_alone(op: ir.Operation) -> bool:
    """Is `op` a generic with one result whose body neither reduces nor loads nor branches?"""
    if op.name != "linalg.generic" or is_reduction(op) or len(op.results) != 1:
        return False
    return not any(o.name == "tensor.extract" or o.regions for o in body_of(op))


def _conditions(op: ir.Operation, value: ir.Value, dims: list[Linear]) -> Iterator[Linear | None]:
    """Of each condition that must hold for `value` to do so the number that is not positive then; None for others."""
    number = input_number(op, value)
    if number is not None:
        below = _below(op, number, dims)
        yield from [None] if below is None else _conditions(*below)
        return
    test = defining_op(value)
    if test is not None and test.name == "arith.andi":
        for part in test.operands:
            yield from _conditions(op, part, dims)
        return
    yield _comparison(op, value, dims)


def _comparison(op: ir.Operation, value: ir.Value, dims: list[Linear]) -> Linear | None:
    """The number that is not positive where a comparison holds."""
    test = defining_op(value)
    if test is None or test.name != "arith.cmpi":
        return None
    kind = _PREDICATES.get(ir.IntegerAttr(test.attributes["predicate"]).value)
    left, right = (_number(op, v, dims) for v in test.operands)
    if kind is None or left is None or right is None:
        return None
    relation, sign = kind
    difference = left.plus(right, -1) if sign > 0 else right.plus(left, -1)
    return difference if relation == "<=" else difference.plus(Linear((), 1))


def _number(op: ir.Operation, value: ir.Value, dims: list[Linear]) -> Linear | None:
    """An integer of a body as a function of coordinates, and of integers of the run."""
    number = input_number(op, value)
    if number is not None:
        below = _below(op, number, dims)
        found = None if below is None else _number(*below)
        return found or _term(op, number, dims)
    inner = defining_op(value)
    if inner is None:
        return None
    if inner.name == "linalg.index":
        return dims[ir.IntegerAttr(inner.attributes["dim"]).value]
    if inner.name == "arith.constant" and isinstance(inner.attributes["value"], ir.IntegerAttr):
        return Linear((), inner.attributes["value"].value)
    if inner.name in _CASTS:
        found = _number(op, inner.operands[0], dims)
        return found if found is None or not found.terms or inner.name in _EXACT else None
    if inner.name not in ("arith.addi", "arith.subi"):
        return None
    left, right = (_number(op, v, dims) for v in inner.operands)
    if left is None or right is None:
        return None
    return left.plus(right, 1 if inner.name == "arith.addi" else -1)


def _term(op: ir.Operation, number: int, dims: list[Linear]) -> Linear | None:
    """An element of an input."""
    value = op.operands[number]
    found = [_affine(expr, dims) for expr in operand_map(op, number).results]
    at = tuple(f for f in found if f is not None)
    if len(at) < len(found) or _width(value) < _NARROWEST:
        return None
    return Linear((), 0, ((Term(value, at), 1),))


def _width(value: ir.Value) -> int:
    """Bits of an integer; 0 for other types."""
    type_ = value.type.element_type
    return type_.width if isinstance(type_, ir.IntegerType) else 0


def _below(op: ir.Operation, number: int, dims: list[Linear]) -> tuple[ir.Operation, ir.Value, list[Linear]] | None:
    """The generic that computes an input, the value that it yields, and its dimensions in terms of those here."""
    producer = defining_op(op.operands[number])
    if producer is None or not _computes_alone(producer):
        return None
    out = operand_map(producer, len(producer.operands) - 1).results
    inner: list[Linear] = [Linear((), 0)] * len(producer.attributes["iterator_types"])
    for expr, own in zip(operand_map(op, number).results, out, strict=True):
        if not isinstance(own, ir.AffineDimExpr):
            return None
        at = _affine(expr, dims)
        if at is None:
            return None
        inner[own.position] = at
    return producer, body_of(producer)[-1].operands[0], inner


def _affine(expr: ir.AffineExpr, dims: list[Linear]) -> Linear | None:
    expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    return Linear((), expr.value) if isinstance(expr, ir.AffineConstantExpr) else None
