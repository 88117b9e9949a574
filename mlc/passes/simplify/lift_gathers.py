"""Pass `mlc-lift-gathers`: what is computed of a large table, and picked from, is computed of what was picked.

    %t = mlc.weight "table" : tensor<30522x768xi8>
    %f = mlc.dequantize %t, %scale : tensor<30522x768xi8>, tensor<f32> -> tensor<30522x768xf32>
    %y = mlc.gather %f, %words {axis = 0} : tensor<30522x768xf32>, tensor<1x128xi64> -> tensor<1x128x768xf32>
becomes
    %g = mlc.gather %t, %words {axis = 0} : tensor<30522x768xi8>, tensor<1x128xi64> -> tensor<1x128x768xi8>
    %y = … (%g - zero point) * %scale : tensor<1x128x768xf32>

Embeddings of quantized models and of models with weights of 16 bits: as a weight the table would be twice to eight
times as large, and computed in each run it takes longer than a layer. Passed are casts, dequantizations and operations
element by element, where the table depends on weights only and is larger, in bytes, than what it comes from and than
what `mlc-hoist-weights` makes a weight of anyway. Parameters of rows are picked as well, and dequantizations are
written out, because their parameters then no longer lie along one axis.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlc.interp.dtypes import numpy_dtype
from mlc.interp.from_ir import result_type
from mlc.passes.adaptor import OpAdaptor, defining_op, element, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.decompose.quantization import dequantize
from mlc.passes.simplify.hoist_weights import HoistWeights
from mlc.passes.simplify.rewrite import element_count, is_static, replace
from mlc.passes.simplify.weight_only import WeightOnly
from mlc.passes.walk import functions, operations

_FUNCTIONS = ("mlc.unary", "mlc.cast", "mlc.activation", "mlc.binary")
_PASSED = (*_FUNCTIONS, "mlc.dequantize")
_ENDLESS = 1 << 62


class LiftGathers(Pass):
    """Puts gathers in front of what widens the tables that they read."""

    dialects = ("mlc",)
    statistics = {"lifted": "gathers that read a table as it is stored"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            gathers = [op for op in operations(function) if op.name == "mlc.gather"]
            weights = WeightOnly()
            for op in [op for op in gathers if _is_wider(op.operands[0], weights) and _picks_less(op)]:
                self._lift(op)

    def _lift(self, op: ir.Operation) -> None:
        table, indices = op.operands
        axis = OpAdaptor(op).int("axis") % table.type.rank
        with ir.InsertionPoint(op), op.location:
            replace(op, [_Picked(indices, "mlc.in_range" in op.attributes).of(table, axis)])
        self.count("lifted")


def _is_wider(table: ir.Value, weights: WeightOnly) -> bool:
    """Is `table` a function of weights that takes more memory than they do, and too much to be one for the gather?"""
    source = defining_op(table)
    if source is None or source.name not in _PASSED or not weights.has(table):
        return False
    size = _bytes(table.type)
    if size <= HoistWeights.limit:
        return False
    takes = _takes(table, set())
    if size <= 2 * takes and any(use.owner.operation.name != "mlc.gather" for use in table.uses):
        return False  # who else reads it makes it a weight
    return takes < size


def _takes(value: ir.Value, seen: set[ir.Value]) -> int:
    """Bytes of what the functions of `value` read, each once."""
    op = defining_op(value)
    if value in seen:
        return 0
    seen.add(value)
    if op is None or op.name not in _PASSED:
        return _bytes(value.type)
    return sum(_takes(operand, seen) for operand in op.operands)


def _picks_less(op: ir.Operation) -> bool:
    """Does a gather pick no more elements than there are? How many is not always known: they are taken for few."""
    result = op.results[0].type
    if shape_of(op.operands[0])[OpAdaptor(op).int("axis")] == 1:
        return False
    return not is_static(result) or element_count(result) <= element_count(op.operands[0].type)


def _bytes(type_: ir.Type) -> int:
    if not isinstance(type_.element_type, (ir.IntegerType, ir.FloatType)):
        return _ENDLESS  # strings
    return element_count(type_) * numpy_dtype(result_type(type_).dtype).itemsize


@dataclass(frozen=True)
class _Picked:
    """What a gather picks, of a table and of what the table is computed from."""

    indices: ir.Value
    in_range: bool

    def of(self, value: ir.Value, axis: int) -> ir.Value:
        """The elements of `value` at the indices along `axis`."""
        op = defining_op(value)
        if op is not None and op.name == "mlc.dequantize":
            with ir.InsertionPoint.after(op), op.location:
                value = dequantize(OpAdaptor(op))
            op = defining_op(value)
        if op is None or op.name not in (*_FUNCTIONS, "mlc.gather"):
            return b.gather(value, self.indices, axis, in_range=self.in_range)
        if op.name == "mlc.gather":
            return self._of_gather(op, axis)
        behind = value.type.rank - axis  # operands are aligned at their last dimensions
        operands = [self._operand(v, v.type.rank - behind, shape_of(value)[axis]) for v in op.operands]
        shape = shape_of(value)
        shape[axis : axis + 1] = shape_of(self.indices)
        type_ = ir.RankedTensorType.get(shape, element(value))
        attributes = {name: op.attributes[name] for name in op.attributes}
        with op.location:
            return ir.Operation.create(op.name, [type_], operands, attributes).result

    def _operand(self, value: ir.Value, axis: int, extent: int) -> ir.Value:
        """What an operand has for the picked elements; nothing is picked along dimensions that it lacks."""
        if axis < 0:
            return value
        shape = shape_of(value)
        if shape[axis] == extent:
            return self.of(value, axis)
        rank = self.indices.type.rank
        return value if rank == 1 else b.reshape(value, [*shape[:axis], *[1] * rank, *shape[axis + 1 :]])

    def _of_gather(self, op: ir.Operation, axis: int) -> ir.Value:
        """Parameters that are spread over blocks along another axis are spread when those of the rows are picked."""
        table, positions = op.operands
        other = OpAdaptor(op).int("axis") % table.type.rank
        if positions.type.rank != 1 or other == axis:
            return b.gather(op.results[0], self.indices, axis, in_range=self.in_range)
        moved = other if other < axis else other + self.indices.type.rank - 1
        picked = self.of(table, axis)
        return b.gather(picked, positions, moved, in_range="mlc.in_range" in op.attributes)
