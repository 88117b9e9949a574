"""Pass `mlc-sum-products`: products of a matrix that a run knows and one vector become sums of products.

    %y = mlc.matmul %x, %v                       : tensor<16x768x196xf32>, tensor<16x196x1xf32>
becomes
    %p = mlc.binary mul %x, (mlc.reshape %v)     : tensor<16x768x196xf32>, tensor<16x1x196xf32>
    %y = mlc.reshape (mlc.reduce sum %p {axes = array<i64: 2>, keepdims = false})

Every element of such a matrix is read once, so that no tile of a product pays. Reductions read it in the order that it
has, transposed or not, and belong to a kernel with what computes it. Pooling by weights (GCNet, Cao et al., 2019,
section 4) and states that one vector reads are examples. Weights stay with products, which have kernels for vectors, as
do rows of whole 16 bytes that are 16-bit floats or meet a vector of weights, and products before and behind a softmax,
with which they are attention. Sums of 16-bit floats are those of `f32`.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, element, lies_along_sum, readers, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.layout.align_products import MULTIPLE
from mlc.passes.simplify.rewrite import replace
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_MOVES = ("mlc.reshape", "mlc.transpose", "mlc.broadcast", "mlc.slice", "mlc.concat", "mlc.pad")
_FUNCTIONS = ("mlc.unary", "mlc.binary", "mlc.activation", "mlc.clamp", "mlc.select", "mlc.cast", "mlc.softmax")
_BETWEEN = {*_MOVES, *_FUNCTIONS}


class SumProducts(Pass):
    """Computes products of a matrix and a vector as sums."""

    dialects = ("mlc",)
    statistics = {"summed": "products that became sums"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            weights = WeightOnly()
            products = [op for op in operations(function) if op.name == "mlc.matmul"]
            chosen = [(op, side) for op in products if (side := _vector(op, weights)) is not None]
            del weights  # and what it remembers of values
            for op, side in chosen:
                _sum(op, side)
            self.count("summed", len(chosen))


def _vector(op: ir.Operation, weights: WeightOnly) -> int | None:
    """Which operand, 0 or 1, is a vector that goes through a matrix; None where the product is to stay one."""
    left, right = op.operands
    if left.type.rank < 2 or right.type.rank < 2 or not b.is_float(element(left)):
        return None
    *_, rows, columns = shape_of(op.results[0])
    side = 1 if columns == 1 else 0 if rows == 1 else None
    if side is None or weights.has(op.operands[1 - side]) or _is_attention(op):
        return None
    is_even = shape_of(op.operands[1 - side])[-1] % MULTIPLE == 0
    is_for_tensor_cores = element(left).width == 16 or weights.has(op.operands[side])
    return None if is_even and is_for_tensor_cores else side


def _is_attention(op: ir.Operation) -> bool:
    """Is a product in front of a softmax, written out or not, or behind one of other products?"""
    if any(map(_makes_shares, _through(readers(op.results[0]), lambda one: readers(one.results[0])))):
        return True
    before = _through([one for value in op.operands if (one := defining_op(value)) is not None], _computing)
    return any(map(_makes_shares, before)) and any(one.name == "mlc.matmul" for one in before)


def _makes_shares(op: ir.Operation) -> bool:
    return op.name == "mlc.softmax" or op.name == "mlc.unary" and OpAdaptor(op).text("kind") == "exp"


def _through(start: list[ir.Operation], following: Callable[[ir.Operation], list[ir.Operation]]) -> set[ir.Operation]:
    """The operations of `start` and those that follow, through what computes element by element or moves elements."""
    pending, seen = list(start), set(start)
    while pending:
        op = pending.pop()
        if op.name in _BETWEEN:
            found = [one for one in following(op) if one not in seen]
            pending += found
            seen.update(found)
    return seen


def _computing(op: ir.Operation) -> list[ir.Operation]:
    """The operations that compute what `op` reads."""
    return [one for value in op.operands if (one := defining_op(value)) is not None]


def _sum(op: ir.Operation, side: int) -> None:
    """Puts a sum of products in the place of a product whose operand `side` is a vector."""
    with ir.InsertionPoint(op), op.location:
        matrix, vector = (b.cast(op.operands[i], b.wide_type(element(op.operands[i]))) for i in (1 - side, side))
        *batch, _, _ = extents = b.sizes(vector)
        count = extents[_summed(op, side)]
        factors = b.reshape(vector, [*batch, *((1, count) if _summed(op, 1 - side) == -1 else (count, 1))])
        products = b.mul(matrix, factors)
        rank = products.type.rank
        summed = b.reduce("sum", products, [rank + _summed(op, 1 - side)], keepdims=False)
        replace(op, [b.cast(b.expand_dims(summed, [rank - 2 + side]), element(op.results[0]))])


def _summed(op: ir.Operation, operand: int) -> int:
    """The dimension of an operand, from the end, that a product sums over."""
    return -1 if lies_along_sum(op, operand) else -2
