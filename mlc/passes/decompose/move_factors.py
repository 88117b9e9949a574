"""Pass `mlc-move-factors`: a factor of keys becomes one of queries.

    %k = mlc.binary mul %keys, %factor : tensor<1x4x?x64xf32>, tensor<f32>
    %t = mlc.transpose %k {permutation = array<i64: 0, 1, 3, 2>}
    %s = mlc.matmul %q, %t                                           : 1x4x8x64, 1x4x64x? -> 1x4x8x?
becomes
    %t = mlc.transpose %keys {permutation = array<i64: 0, 1, 3, 2>}
    %s = mlc.matmul (mlc.binary mul %q, %factor), %t

PyTorch's exporters for ONNX multiply queries and keys with the root of an attention's scale. There are more keys than
queries when a text goes on, and what lies in a cache can then be read there, transposed or not. A factor is one number;
it is moved where the left side has no more elements than the right one, as far as that is known, and nobody else reads
the keys with it. With the option `narrow` only in 16 bits: on GPUs that is what makes one kernel of an attention, and
in 32 bits a single query was slower in it (1.5 ms against 0.5 ms for two layers behind 8000 keys on an H200).
"""

from __future__ import annotations

from itertools import zip_longest
from math import prod

from mlir import ir

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op, element, readers, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_MOVES = ("mlc.reshape", "mlc.transpose")
_MOST_DEPTH = 512  # of a sum: heads are no longer, texts may be


class MoveFactors(Pass):
    """Multiplies the left side of products with factors of their right side."""

    narrow: bool = False
    "Only products of floats of 16 bits"

    dialects = ("mlc",)
    statistics = {"moved": "factors that a left side has now"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            weights = WeightOnly()
            products = [op for op in operations(function) if op.name == "mlc.matmul"]
            for op in products:
                if self.narrow and element(op.operands[0]).width != 16:
                    continue
                while _may_move(op, weights) and (found := _factor(op)) is not None:
                    _move(op, *found)
                    self.count("moved")


def _may_move(op: ir.Operation, weights: WeightOnly) -> bool:
    """Are both sides of a product values of the run, and is the left one no larger, as far as that is known?"""
    left, right = (shape_of(operand) for operand in op.operands)
    if len(left) < 3 or not 0 < left[-1] <= _MOST_DEPTH or any(map(weights.has, op.operands)):
        return False
    columns = right[-2] if OpAdaptor(op).flag("transpose_rhs") else right[-1]
    batches = zip_longest(reversed(left[:-2]), reversed(right[:-2]), fillvalue=1)
    known = [extents for extents in [*batches, (left[-2], columns)] if DYNAMIC not in extents]
    return DYNAMIC in (left[-2], columns) or prod(one for one, _ in known) <= prod(other for _, other in known)


def _factor(op: ir.Operation) -> tuple[ir.Operation, int] | None:
    """The multiplication by one number that the right side of a product comes from, and the number's operand."""
    value = op.operands[1]
    while (source := defining_op(value)) is not None and len(readers(source.results[0])) == 1:
        if source.name not in _MOVES:
            break
        value = source.operands[0]
    if source is None or source.name != "mlc.binary" or OpAdaptor(source).text() != "mul" or len(readers(value)) != 1:
        return None
    for number in range(2):
        factor, main = source.operands[number], source.operands[1 - number]
        is_one = factor.type.rank <= op.operands[0].type.rank and all(extent == 1 for extent in shape_of(factor))
        if is_one and main.type == source.results[0].type and element(factor) == element(op.operands[0]):
            return source, number
    return None


def _move(op: ir.Operation, multiplication: ir.Operation, number: int) -> None:
    factor, main = multiplication.operands[number], multiplication.operands[1 - number]
    with ir.InsertionPoint(op), op.location:
        op.operands[0] = b.mul(op.operands[0], factor)
    multiplication.results[0].replace_all_uses_with(main)
    multiplication.erase()
