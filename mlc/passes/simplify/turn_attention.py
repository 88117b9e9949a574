"""Pass `mlc-turn-attention`: values are multiplied by the shares of a softmax from the right.

    %p = mlc.softmax %scores {axis = 3 : i64}                     : tensor<1x8x400x400xf32>
    %t = mlc.transpose %p {permutation = array<i64: 0, 1, 3, 2>}
    %y = mlc.matmul %v, %t                                        : 1x8x32x400, 1x8x400x400 -> 1x8x32x400
becomes
    %w = mlc.transpose %v {permutation = array<i64: 0, 1, 3, 2>}
    %z = mlc.matmul %p, %w                                        : 1x8x400x400, 1x8x400x32 -> 1x8x400x32
    %y = mlc.transpose %z {permutation = array<i64: 0, 1, 3, 2>}

Attention between convolutions has its channels in front of its pixels (CoAtNet, YOLO), so that its values are the left
operand. It is attention all the same: with the shares on the left it is recognized (`mlc/kernels/common/attention.py`),
and no scores are stored. Transposes are read and written through, or belong to the order of an image.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import TRANSPOSED, OpAdaptor, defining_op, swaps_matrices
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import replace
from mlc.passes.walk import functions, operations


class TurnAttention(Pass):
    """Puts the shares of a softmax to the left of what they multiply."""

    dialects = ("mlc",)
    statistics = {"turned": "products whose operands changed places"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in [op for op in operations(function) if op.name == "mlc.matmul"]:
                shares = _shares(op)
                if shares is not None:
                    _turn(op, shares)
                    self.count("turned")


def _shares(op: ir.Operation) -> ir.Value | None:
    """The shares, each row of which belongs to a column of the product, if they are the right operand."""
    left, right = op.operands
    if left.type.rank < 2 or right.type.rank < 2 or _is_softmax(left) or "widen" in op.attributes:
        return None
    if TRANSPOSED[1] in op.attributes:
        return right if _is_softmax(right) else None
    move = defining_op(right)
    return move.operands[0] if move is not None and swaps_matrices(move) and _is_softmax(move.operands[0]) else None


def _is_softmax(value: ir.Value) -> bool:
    """Is it a softmax of rows, rounded or not?"""
    op = defining_op(value)
    while op is not None and op.name == "mlc.cast":
        op = defining_op(op.operands[0])
    if op is None or op.name != "mlc.softmax":
        return False
    return OpAdaptor(op).int("axis") == op.results[0].type.rank - 1


def _turn(op: ir.Operation, shares: ir.Value) -> None:
    left = op.operands[0]
    with ir.InsertionPoint(op), op.location:
        values = left if TRANSPOSED[0] in op.attributes else b.transpose_matrices(left)
        replace(op, [b.transpose_matrices(b.matmul(shares, values))])
