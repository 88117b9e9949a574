"""Pass `mlc-turn-products`: weights multiply from the left what would be transposed for them, and back behind them.

    %0 = mlc.matmul %x, %w {transpose_lhs, transpose_rhs} : tensor<16x196x768xf32>, tensor<384x196xf32>
    %1 = mlc.binary add %0, %b                            : tensor<16x768x384xf32>, tensor<384xf32>
    %2 = mlc.transpose %1 {permutation = array<i64: 0, 2, 1>}
becomes
    %0 = mlc.matmul %w, %x                                : tensor<384x196xf32>, tensor<16x196x768xf32>
    %2 = mlc.binary add %0, (mlc.reshape %b)              : tensor<16x384x768xf32>, tensor<384x1xf32>

Layers that mix tokens instead of channels are written so (Tolstikhin et al., "MLP-Mixer", 2021; gMLP, ResMLP): the
products of all tokens are computed in the order of memory, and what is computed of a result element by element, as the
sum of a residual stream, belongs to the kernel of the product. Several products may follow each other, with what
is computed element by element in between.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import TRANSPOSED, defining_op, element, readers, shape_of, swaps_matrices
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import erase_unread, replace
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_FUNCTIONS = ("mlc.unary", "mlc.activation", "mlc.cast")


class TurnProducts(Pass):
    """Multiplies by weights from the left where a result is transposed and so is what they multiply."""

    dialects = ("mlc",)
    statistics = {"turned": "transposes of results that are no more"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            weights = WeightOnly()
            transposes = [op for op in operations(function) if swaps_matrices(op) and _turns(op.operands[0], weights)]
            del weights  # and what it remembers of values
            for op in transposes:
                source = defining_op(op.operands[0])
                with ir.InsertionPoint(op), op.location:
                    replace(op, [_turned(op.operands[0])])
                if source is not None:
                    erase_unread(source)
            self.count("turned", len(transposes))


def _turns(value: ir.Value, weights: WeightOnly) -> bool:
    """Can the transpose of `value`, which nothing else reads, be computed without one, by a product?"""
    op = defining_op(value)
    if op is None or len(readers(value)) != 1:
        return False
    if op.name in _FUNCTIONS:
        return _turns(op.operands[0], weights)
    if op.name == "mlc.binary":
        main = _main(op)
        return main is not None and _turns(op.operands[main], weights)
    if op.name != "mlc.matmul" or op.operands[1].type.rank != 2 or not weights.has(op.operands[1]):
        return False
    return TRANSPOSED[0] in op.attributes or _turns(op.operands[0], weights)


def _main(op: ir.Operation) -> int | None:
    """Which operand of a `binary` has the shape of the result, if the other one is a vector or a number."""
    shape = shape_of(op.results[0])
    for main in range(2):
        if shape_of(op.operands[main]) == shape and op.operands[1 - main].type.rank <= 1:
            return main
    return None


def _turned(value: ir.Value) -> ir.Value:
    """The transpose of a value that `_turns`."""
    op = defining_op(value)
    assert op is not None
    *batch, rows, columns = shape_of(value)
    shape = [*batch, columns, rows]
    if op.name == "mlc.matmul":
        x, w = op.operands
        x = x if TRANSPOSED[0] in op.attributes else _turned(x)
        widen = {"widen": op.attributes["widen"]} if "widen" in op.attributes else {}
        return b.operation("matmul", [w, x], {**b.unit(TRANSPOSED[1] not in op.attributes, TRANSPOSED[0]), **widen})[0]
    if op.name in _FUNCTIONS:
        return b.again(op, [_turned(op.operands[0]), *list(op.operands)[1:]], shape)
    main = _main(op)
    assert main is not None
    operands = [_turned(v) if i == main else _column(v) for i, v in enumerate(op.operands)]
    return b.again(op, operands, shape, element(value))


def _column(value: ir.Value) -> ir.Value:
    """A vector that is added to rows as one that is added to columns."""
    return b.expand_dims(value, [1]) if value.type.rank else value
