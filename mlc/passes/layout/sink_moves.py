"""Pass `mlc-sink-moves`: reshapes and transposes come behind what computes with their elements one by one.

    %t = mlc.transpose %x [0, 2, 1, 3]
    %s = mlc.binary mul %t, %c : tensor<1x12x128x64xf32>, tensor<f32>
becomes
    %s = mlc.binary mul %x, %c : tensor<1x128x12x64xf32>, tensor<f32>
    %t = mlc.transpose %s [0, 2, 1, 3]

So the kernel that computes `%x` also computes `%s`, and the one that reads `%t` reads `%s` with other strides. Only
movements that nobody else reads are passed, by casts to no larger types, functions of one tensor, and operations with a
constant of one element.
"""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import defining_op, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.walk import functions, operations

_MOVES = ("mlc.reshape", "mlc.transpose")
_FUNCTIONS = ("mlc.unary", "mlc.cast", "mlc.activation", "mlc.binary")


class SinkMoves(Pass):
    """Puts reshapes and transposes behind elementwise operations."""

    dialects = ("mlc",)
    statistics = {"sunk": "movements that an elementwise operation has passed"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in operations(function):
                if op.name in _FUNCTIONS:
                    self.count("sunk", _sink(op))


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
    """The operand that `op` is a function of, element by element; None when there are several."""
    if op.name != "mlc.binary":
        return 0
    for number in range(2):
        other = op.operands[1 - number]
        source = defining_op(other)
        if source is not None and source.name == "mlc.constant" and all(e == 1 for e in shape_of(other)):
            return number if op.operands[number].type.rank == op.results[0].type.rank else None
    return None


def _can_pass(op: ir.Operation, move: ir.Operation) -> bool:
    if move.name not in _MOVES or move.block != op.block or "mlc.relayout" in move.attributes:
        return False
    types = [v.type for v in (move.operands[0], move.results[0], op.results[0])]
    if len(list(move.results[0].uses)) != 1 or not all(t.has_static_shape for t in types):
        return False
    if any(v.type.rank > types[0].rank for v in op.operands if v != move.results[0]):
        return False  # its constant would add dimensions
    return bool(element(op.results[0]).width <= element(move.operands[0]).width)


def _swap(op: ir.Operation, move: ir.Operation, number: int) -> None:
    """`op(move(x))` becomes `move(op(x))`; `op` is the same operation afterwards."""
    source, result = move.operands[0], op.results[0]
    moved_type = ir.RankedTensorType.get(shape_of(move.results[0]), element(result))
    attributes = {name: move.attributes[name] for name in move.attributes}
    rest = list(move.operands)[1:]
    op.operands[number] = source
    result.set_type(ir.RankedTensorType.get(shape_of(source), element(result)))
    with ir.InsertionPoint.after(op), move.location:
        moved = ir.Operation.create(move.name, [moved_type], [result, *rest], attributes)
    result.replace_all_uses_except(moved.results[0], moved)
    move.erase()
