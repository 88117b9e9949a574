"""Pass `mlc-sink-moves`: reshapes and transposes come behind what computes with their elements one by one.

    %t = mlc.transpose %x [0, 2, 1, 3]
    %s = mlc.binary mul %t, %c : tensor<1x12x128x64xf32>, tensor<f32>
becomes
    %s = mlc.binary mul %x, %c : tensor<1x128x12x64xf32>, tensor<f32>
    %t = mlc.transpose %s [0, 2, 1, 3]

So the kernel that computes `%x` also computes `%s`, and the one that reads `%t` reads `%s` with other strides. Only
movements that nobody else reads are passed, by casts to no larger types, functions of one tensor, and operations with a
constant of one element.

A transpose of a product's result comes before a reshape that joins dimensions: the product may then write in its order.

    %r = mlc.reshape %m [1, 32, 128, 64] : tensor<1x8x4x128x64xf32> -> tensor<1x32x128x64xf32>
    %t = mlc.transpose %r [0, 2, 1, 3]
becomes
    %t = mlc.transpose %m [0, 3, 1, 2, 4]
    %r = mlc.reshape %t [1, 128, 32, 64]

Products with a matrix pass transposes of what they have rows of, where a matrix of the left operand would be left with
few rows (a batch behind a sequence), and so do operations with a weight for each column: rows that lie together are
multiplied together.
"""

from __future__ import annotations

from mlir import ir

from mlc.dims import DimAnalysis
from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op, element, readers, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_MOVES = ("mlc.reshape", "mlc.transpose")
_FUNCTIONS = ("mlc.unary", "mlc.cast", "mlc.activation", "mlc.binary", "mlc.matmul")
_FEW_ROWS = 128  # of a matrix, with which tiles of products stay partly empty


class SinkMoves(Pass):
    """Puts reshapes and transposes behind elementwise operations."""

    joins: bool = False
    "Only transposes behind reshapes that join dimensions of a product"

    dialects = ("mlc",)
    statistics = {
        "sunk": "movements that an elementwise operation has passed",
        "lifted": "transposes that came before a reshape",
    }

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in [] if self.joins else operations(function):
                if op.name in _FUNCTIONS:
                    self.count("sunk", _sink(op))
            transposes = [op for op in operations(function) if op.name == "mlc.transpose" and _may_lift(op)]
            if transposes:
                analysis = DimAnalysis(function)
                self.count("lifted", sum(_lift(op, analysis) for op in transposes))


def _sink(op: ir.Operation) -> int:
    """Moves `op` in front of the movements that it reads through; gives their number."""
    passed = 0
    while True:
        number = _moved_operand(op)
        move = None if number is None else defining_op(op.operands[number])
        if number is None or move is None or not _can_pass(op, move):
            return passed
        _swap(op, move, number)
        passed += 1


def _moved_operand(op: ir.Operation) -> int | None:
    """The operand that `op` is a function of, element by element or row by row; None when there are several."""
    if op.name != "mlc.binary":
        return 0
    for number in range(2):
        other = op.operands[1 - number]
        source = defining_op(other)
        is_number = source is not None and source.name == "mlc.constant" and all(e == 1 for e in shape_of(other))
        if is_number or _is_by_columns(op, number):
            return number if op.operands[number].type.rank == op.results[0].type.rank else None
    return None


def _is_by_columns(op: ir.Operation, number: int) -> bool:
    """Is the other operand of a binary operation a weight for each column of a transpose that leaves columns alone?"""
    move, other = defining_op(op.operands[number]), op.operands[1 - number]
    return move is not None and _keeps_columns(move) and other.type.rank == 1 and WeightOnly().has(other)


def _keeps_columns(move: ir.Operation) -> bool:
    return move.name == "mlc.transpose" and OpAdaptor(move).ints("permutation")[-1] == move.results[0].type.rank - 1


def _takes_rows(op: ir.Operation, move: ir.Operation) -> bool:
    """Is `op` the product of the rows of `move`, few of which would be together, with a matrix?"""
    rows = shape_of(move.results[0])[-2:-1]
    is_matrix = op.operands[1].type.rank == 2 and "transpose_lhs" not in op.attributes
    return is_matrix and _keeps_columns(move) and bool(rows) and rows[0] < _FEW_ROWS


def _can_pass(op: ir.Operation, move: ir.Operation) -> bool:
    if move.name not in _MOVES or move.block != op.block or "mlc.relayout" in move.attributes:
        return False
    types = [v.type for v in (move.operands[0], move.results[0], op.results[0])]
    if len(list(move.results[0].uses)) != 1 or not all(t.has_static_shape for t in types):
        return False
    if any(v.type.rank > types[0].rank for v in op.operands if v != move.results[0]):
        return False  # its constant would add dimensions
    if op.name == "mlc.matmul":
        return _takes_rows(op, move)
    return bool(element(op.results[0]).width <= element(move.operands[0]).width)


def _swap(op: ir.Operation, move: ir.Operation, number: int) -> None:
    """`op(move(x))` becomes `move(op(x))`; `op` is the same operation afterwards."""
    source, result = move.operands[0], op.results[0]
    moved_type, shape = result.type, shape_of(source)
    if op.name == "mlc.matmul":
        shape[-1] = shape_of(result)[-1]
    attributes = {name: move.attributes[name] for name in move.attributes}
    rest = list(move.operands)[1:]
    op.operands[number] = source
    result.set_type(ir.RankedTensorType.get(shape, element(result)))
    with ir.InsertionPoint.after(op), move.location:
        moved = ir.Operation.create(move.name, [moved_type], [result, *rest], attributes)
    result.replace_all_uses_except(moved.results[0], moved)
    move.erase()


def _may_lift(op: ir.Operation) -> bool:
    """Does the transpose `op` read a reshape of a product that nobody else reads, to fewer dimensions?"""
    joining = defining_op(op.operands[0])
    if joining is None or joining.name != "mlc.reshape" or joining.block != op.block:
        return False
    if len(readers(joining.results[0])) != 1:
        return False
    source = joining.operands[0]
    is_less = source.type.rank > joining.results[0].type.rank
    return is_less and "mlc.relayout" not in op.attributes and _is_of_product(source)


def _lift(op: ir.Operation, analysis: DimAnalysis) -> bool:
    """Moves the transpose `op` in front of the reshape that it reads, if that joins dimensions."""
    joining = op.operands[0].owner.operation
    source = joining.operands[0]
    groups = analysis.joined(analysis.dims(source), analysis.dims(joining.results[0]))
    if groups is None:
        return False
    order = OpAdaptor(op).ints("permutation")
    given, known = OpAdaptor(joining).mixed("sizes", joining.operands[1:]), shape_of(joining.results[0])
    sizes = [size if extent == DYNAMIC else extent for size, extent in zip(given, known, strict=True)]
    with ir.InsertionPoint(op), op.location:
        turned = b.transpose(source, [d for group in order for d in groups[group]])
        op.results[0].replace_all_uses_with(b.reshape(turned, [sizes[group] for group in order]))
    op.erase()
    if not _uses(joining):
        joining.erase()
    return True


def _uses(op: ir.Operation) -> list[ir.OpOperand]:
    return list(op.results[0].uses)


def _is_of_product(value: ir.Value) -> bool:
    """Is `value` a product of matrices, or computed from one by functions that nobody else reads?"""
    op = defining_op(value)
    while op is not None and len(readers(op.results[0])) == 1:
        if op.name == "mlc.matmul":
            return True
        if op.name not in ("mlc.unary", "mlc.cast", "mlc.activation"):
            return False
        op = defining_op(op.operands[0])
    return False
