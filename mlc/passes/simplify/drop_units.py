"""Pass `mlc-drop-units`: what is computed element by element between reshapes of the same elements needs neither.

    %r = mlc.reshape %x [1, 4, 12, 49, 49] : tensor<4x12x49x49xf32> -> tensor<1x4x12x49x49xf32>
    %s = mlc.binary add %r, %mask : tensor<1x4x12x49x49xf32>, tensor<1x4x1x49x49xf32> -> tensor<1x4x12x49x49xf32>
    %y = mlc.reshape %s [4, 12, 49, 49] : tensor<1x4x12x49x49xf32> -> tensor<4x12x49x49xf32>
becomes
    %m = mlc.reshape %mask [4, 1, 49, 49] : tensor<1x4x1x49x49xf32> -> tensor<4x1x49x49xf32>
    %y = mlc.binary add %x, %m : tensor<4x12x49x49xf32>, tensor<4x1x49x49xf32> -> tensor<4x12x49x49xf32>

So a batch of one, which the mask of a window says a dimension for, does not keep scores, mask and softmax from being
one kernel with the products. The reshapes put in and take out dimensions of one element only; other operands are
weights, whose reshapes are no part of a run.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.passes.adaptor import defining_op, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import is_static, replace
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_FUNCTIONS = ("mlc.unary", "mlc.cast", "mlc.activation", "mlc.binary", "mlc.compare", "mlc.select")


class DropUnits(Pass):
    """Computes elementwise operations without the dimensions of one element that are there for them only."""

    dialects = ("mlc",)
    statistics = {"dropped": "operations that lost their reshapes"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            weights = WeightOnly()
            for op in operations(function):
                if op.name == "mlc.reshape" and _drop(op, weights):
                    self.count("dropped")


def _drop(move: ir.Operation, weights: WeightOnly) -> bool:
    """Replaces the reshape `move` and the operation in front of it by one of the reshape's type, if that can be."""
    op, result = defining_op(move.operands[0]), move.results[0]
    if op is None or op.name not in _FUNCTIONS or len(list(op.results[0].uses)) != 1:
        return False
    if not all(is_static(v.type) for v in (*op.operands, op.results[0], result)):
        return False
    places = _places(shape_of(op.results[0]), shape_of(result))
    if places is None:
        return False
    rank = op.results[0].type.rank
    shapes = [_without(shape_of(v), places, rank) for v in op.operands]
    sources = [_source(v, shape) for v, shape in zip(op.operands, shapes, strict=True)]
    pairs = list(zip(op.operands, sources, strict=True))
    others = [v for v, source in pairs if source is None]
    moved = [source for v, source in pairs if source is not None and source != v]
    if not any(source.type.rank == len(places) for source in moved):
        return False  # nothing is saved
    if not all(_is_number(v) or weights.has(v) for v in others):
        return False
    with ir.InsertionPoint(move), op.location:
        operands = [
            v if source is None and _is_number(v) else source or b.reshape(v, shape)
            for v, shape, source in zip(op.operands, shapes, sources, strict=True)
        ]
        attributes = {name: op.attributes[name] for name in op.attributes}
        type_ = ir.RankedTensorType.get(shape_of(result), element(op.results[0]))
        replace(move, [ir.Operation.create(op.name, [type_], operands, attributes).result])
    return True


def _places(shape: Sequence[int], wanted: Sequence[int]) -> list[int | None] | None:
    """For each dimension of `wanted` that of `shape` which it is, None where it has one element and is put in; None
    where more than dimensions of one element differ."""
    places, at = list[int | None](), 0
    for extent in wanted:
        while at < len(shape) and shape[at] != extent and shape[at] == 1:
            at += 1
        if at < len(shape) and shape[at] == extent:
            places.append(at)
            at += 1
        elif extent == 1:
            places.append(None)
        else:
            return None
    return places if all(extent == 1 for extent in shape[at:]) else None


def _without(shape: Sequence[int], places: Sequence[int | None], rank: int) -> list[int]:
    """What the `shape` of an operand becomes, which is aligned with the last ones of `rank` dimensions."""
    full = [1] * (rank - len(shape)) + list(shape)
    return [1 if at is None else full[at] for at in places]


def _source(value: ir.Value, shape: Sequence[int]) -> ir.Value | None:
    """The tensor of `shape` that `value` is a reshape of, or is itself but for dimensions in front."""
    if [1] * (len(shape) - value.type.rank) + shape_of(value) == list(shape):
        return value
    op = defining_op(value)
    if op is None or op.name != "mlc.reshape" or shape_of(op.operands[0]) != list(shape):
        return None
    return op.operands[0]


def _is_number(value: ir.Value) -> bool:
    return all(extent == 1 for extent in shape_of(value)) and value.type.rank <= 1
