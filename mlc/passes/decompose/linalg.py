"""`einsum`: pairs of operands become batched matrix products."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.passes.adaptor import OpAdaptor, Size, shape_of
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition


@dataclass
class Term:
    """A tensor with a label for each dimension."""

    value: ir.Value
    labels: str

    def size(self, label: str) -> Size:
        return b.size(self.value, self.labels.index(label))

    def is_one(self, label: str) -> bool:
        return shape_of(self.value)[self.labels.index(label)] == 1


@decomposition("mlc.einsum")
def einsum(op: OpAdaptor) -> ir.Value:
    """Operands are contracted from left to right; a label is summed as soon as no later operand has it."""
    inputs, output = parse_equation(op.text("equation"), [v.type.rank for v in op.operands])
    terms = [_diagonal(Term(v, labels)) for v, labels in zip(op.operands, inputs, strict=True)]
    current = terms[0]
    for number, term in enumerate(terms[1:], 1):
        keep = output + "".join(t.labels for t in terms[number + 1 :])
        current = _contract(current, term, keep)
    current = _sum_out(current, output)
    return _ordered(current, output).value


def parse_equation(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Labels of the inputs and of the output. The dimensions under `...` get labels of their own, aligned from the
    right."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    free = [c for c in string.ascii_letters if c not in equation]
    inputs, widest = [], 0
    for term, rank in zip(left.split(","), ranks, strict=True):
        count = rank - len(term.replace("...", ""))
        widest = max(widest, count if "..." in term else 0)
        dots = "".join(reversed(free[:count]))
        inputs.append(term.replace("...", dots))
    dots = "".join(reversed(free[:widest]))
    if not arrow:
        named = left.replace("...", "").replace(",", "")
        right = "..." + "".join(c for c in sorted(set(named)) if named.count(c) == 1)
    return inputs, right.replace("...", dots)


def _diagonal(term: Term) -> Term:
    """A label that occurs twice in one term keeps the elements whose two coordinates agree: in rows of both dimensions,
    one after the other, those that are a row and an element apart.
    """
    for position, label in enumerate(term.labels):
        first = term.labels.index(label)
        if first == position:
            continue
        rank, sizes = term.value.type.rank, b.sizes(term.value)
        kept = [axis for axis in range(rank) if axis not in (first, position)]
        labels = "".join(term.labels[axis] for axis in kept)
        square = b.transpose(term.value, [*kept, first, position])
        rows, columns = sizes[first], sizes[position]
        line = b.reshape(square, [*(sizes[axis] for axis in kept), _joined([rows, columns])])
        step = columns + 1 if isinstance(columns, int) else arith.addi(columns, b.index(1))
        to = [*(sizes[axis] for axis in kept), _least(rows, columns)]
        value = b.slice_(line, [0] * len(to), to, [*([1] * len(kept)), step])
        return _diagonal(Term(value, labels + label))
    return term


def _sum_out(term: Term, keep: str) -> Term:
    axes = [i for i, label in enumerate(term.labels) if label not in keep]
    if not axes:
        return term
    rest = "".join(label for label in term.labels if label in keep)
    return Term(b.reduce("sum", term.value, axes, keepdims=False), rest)


def _ordered(term: Term, labels: str) -> Term:
    if term.labels == labels:
        return term
    return Term(b.transpose(term.value, [term.labels.index(label) for label in labels]), labels)


def _contract(left: Term, right: Term, keep: str) -> Term:
    left, right = _sum_out(left, keep + right.labels), _sum_out(right, keep + left.labels)
    shared = [label for label in left.labels if label in right.labels]
    summed = "".join(label for label in shared if label not in keep)
    batch = "".join(label for label in shared if label in keep)
    rows = "".join(label for label in left.labels if label not in right.labels)
    columns = "".join(label for label in right.labels if label not in left.labels)
    if not summed or any(left.is_one(label) != right.is_one(label) for label in summed):
        return _sum_out(_product(left, right, batch + rows + columns + summed), keep)
    return _matmul(left, right, batch, rows, columns, summed)


def _product(left: Term, right: Term, labels: str) -> Term:
    """The elementwise product, broadcast over the labels that only one side has."""

    def aligned(term: Term) -> ir.Value:
        own = "".join(label for label in labels if label in term.labels)
        missing = [i for i, label in enumerate(labels) if label not in term.labels]
        value = _ordered(term, own).value
        return b.expand_dims(value, missing) if missing else value

    return Term(b.mul(aligned(left), aligned(right)), labels)


def _matmul(left: Term, right: Term, batch: str, rows: str, columns: str, summed: str) -> Term:
    """`[batch, M, K] x [batch, K, N]` with the labels of each group joined."""
    row_sizes, column_sizes = [left.size(label) for label in rows], [right.size(label) for label in columns]
    depth = _joined([left.size(label) for label in summed])
    lhs = _ordered(left, batch + rows + summed).value
    rhs = _ordered(right, batch + summed + columns).value
    batches = len(batch)
    lhs = b.reshape(lhs, [*b.sizes(lhs)[:batches], _joined(row_sizes), depth])
    rhs = b.reshape(rhs, [*b.sizes(rhs)[:batches], depth, _joined(column_sizes)])
    product = b.cast(b.matmul(lhs, rhs), b.element(lhs))  # which is wider for bytes
    value = b.reshape(product, [*b.sizes(product)[:batches], *row_sizes, *column_sizes])
    return Term(value, batch + rows + columns)


def _joined(sizes: Sequence[Size]) -> Size:
    total: Size = 1
    for size in sizes:
        if isinstance(size, int) and isinstance(total, int):
            total *= size
        else:
            total = arith.muli(b.index(total), b.index(size))
    return total


def _least(a: Size, other: Size) -> Size:
    if isinstance(a, int) and isinstance(other, int):
        return min(a, other)
    return arith.minsi(b.index(a), b.index(other))
