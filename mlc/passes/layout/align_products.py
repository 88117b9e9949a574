"""Pass `mlc-align-products`: products for tensor cores read rows that are multiples of 16 bytes.

    %0 = mlc.matmul %x, %y : tensor<300x521xbf16>, tensor<521x130xbf16>
becomes
    %1 = mlc.matmul (mlc.pad %x), (mlc.pad (mlc.transpose %y)) {transpose_rhs, widen, mlc.along_sum}
           : tensor<300x528xbf16>, tensor<130x528xbf16> -> tensor<300x130xf32>
    %0 = mlc.cast %1

Tensor cores read rows that are multiples of 16 bytes apart. Zeros add nothing to the sums: where their number is no
such multiple, both operands get some. An operand that lies across the sum is transposed where its rows are none.
Weights are moved when the model is compiled, an activation by a kernel, or by the one that computes it. Takes products
of 16-bit floats whose matrices have known shapes. Where activations are moved they must be large enough for two more
kernels to pay; products of two activations must have no batches, which attention may have. A weight is the right
operand, or the left one of a batch (`mlc-turn-products`).
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, TRANSPOSED, OpAdaptor, element, lies_along_sum, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import replace
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

MULTIPLE = 8  # elements of 16 bits
ALONG_SUM = "mlc.along_sum"
"""Attribute of a product whose right operand stays along the sum."""

_FEWEST_ROWS = 8  # with fewer rows a matrix is read once, and moving it takes longer
_ASSUMED = 512  # rows that the run knows
_LEAST = 1 << 22  # products of numbers from which on two more kernels pay
_LEAST_LONG, _LONG = 1 << 20, 128  # the same where sums have so many terms


class AlignProducts(Pass):
    """Pads and transposes operands of products to what tensor cores read."""

    dialects = ("mlc",)
    statistics = {"aligned": "products whose operands are moved"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            weights = WeightOnly()
            found = [op for op in operations(function) if _is_moved(op, weights)]
            for op in found:
                with ir.InsertionPoint(op), op.location:
                    replace(op, [_moved(op)])
            self.count("aligned", len(found))


def _is_moved(op: ir.Operation, weights: WeightOnly) -> bool:
    if op.name != "mlc.matmul" or not all(isinstance(element(v), ir.BF16Type | ir.F16Type) for v in op.operands):
        return False
    shapes = [shape_of(v)[-2:] for v in op.operands]
    rows, columns, depth = _extents(OpAdaptor(op))
    if DYNAMIC in (columns, depth) or all(s[1] % MULTIPLE == 0 for s in shapes):
        return False
    if DYNAMIC in (s[1] for s in shapes):
        return False
    is_weight = weights.has(op.operands[1])
    if is_weight and shapes[0][1] % MULTIPLE == depth % MULTIPLE == 0:
        return True  # only the weight is moved
    is_left = op.operands[0].type.rank == 2 and weights.has(op.operands[0])
    if not (is_weight or is_left) and any(v.type.rank > 2 for v in op.operands):
        return False  # attention, maybe: its kernel has these products
    rows = _ASSUMED if rows == DYNAMIC else rows
    return rows >= _FEWEST_ROWS and rows * columns * depth >= (_LEAST_LONG if depth >= _LONG else _LEAST)


def _extents(op: OpAdaptor) -> tuple[int, int, int]:
    """Rows, columns and terms of a product."""
    left, right = (shape_of(v)[-2:] for v in op.operands)
    rows, depth = reversed(left) if op.flag(TRANSPOSED[0]) else left
    return rows, right[0] if op.flag(TRANSPOSED[1]) else right[1], depth


def _moved(op: ir.Operation) -> ir.Value:
    """The product of moved operands. It gives f32, which is rounded behind it: the operands of such a product stay as
    they are."""
    more, operands, flags = -_extents(OpAdaptor(op))[2] % MULTIPLE, [], {"widen"}
    for number, flag in enumerate(TRANSPOSED):
        value = op.operands[number]
        rank, is_along = value.type.rank, lies_along_sum(op, number)
        if not is_along and shape_of(value)[-1] % MULTIPLE:
            value, is_along = b.transpose_matrices(value), True
        if more:
            high = [0] * rank
            high[rank - 1 if is_along else rank - 2] = more
            value = b.pad(value, [0] * rank, high)
        if is_along == (number == 1):
            flags.add(flag)
        operands.append(value)
    if TRANSPOSED[1] in flags:
        flags.add(ALONG_SUM)
    total = b.operation("matmul", operands, {name: ir.UnitAttr.get() for name in sorted(flags)})[0]
    return b.cast(total, element(op.results[0]))
