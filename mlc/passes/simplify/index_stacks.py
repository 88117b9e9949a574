"""Pass `mlc-index-stacks`: one of the tensors that lie in a weight is a weight, of which the run says the number.

    %w = mlc.weight "experts" : tensor<8x64x32xf32>
    %s = mlc.slice %w [%i, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<8x64x32xf32> -> tensor<1x64x32xf32>
becomes
    %e = mlc.weight "experts"[%i of 8] : tensor<64x32xf32>
    %s = mlc.reshape %e [1, 64, 32] : tensor<64x32xf32> -> tensor<1x64x32xf32>

Layers in a loop, or experts, whose weights are stacked: what the program does to one of them (a transposition, a
dequantization, the order that a kernel reads) is done to all when compiling, and a run reads one where it lies. Checks
that the number is one of the stack are those of the slice. Tensors shorter than a line stay slices: in a stack each
begins with one.

Inside of loops a `gather` of one matrix is the same, with a check of its own; elsewhere it is more likely a row of a
table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.interp.dtypes import numpy_dtype
from mlc.interp.from_ir import result_type
from mlc.passes.adaptor import OpAdaptor, defining_op, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import element_count, is_static, replace
from mlc.passes.simplify.weight_recipes import weight_of
from mlc.passes.walk import functions, operations

_LINE = 64  # bytes


class IndexStacks(Pass):
    """Makes one of the tensors that lie in a weight a weight."""

    dialects = ("mlc", "arith", "tensor")
    statistics = {"indexed": "slices that became weights"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            for inner in operations(function):
                form = _FORMS.get(inner.name)
                if form is None or not form[0](inner):
                    continue
                with ir.InsertionPoint(inner), inner.location:
                    replace(inner, [form[1](OpAdaptor(inner))])
                self.count("indexed")


def _parts(op: OpAdaptor) -> list[list[Any]]:
    """Offsets, sizes and strides of a slice, numbers and values."""
    groups = op.segments()[1:]
    return [op.mixed(name, group) for name, group in zip(("offsets", "sizes", "strides"), groups, strict=True)]


def _takes_one(op: ir.Operation) -> bool:
    """Does a slice take one tensor out of a weight, at a place that the run says, or a part of it that is known?"""
    if not is_static(op.results[0].type) or not _is_stack(op.operands[0]):
        return False
    offsets, sizes, strides = _parts(OpAdaptor(op))
    known = all(isinstance(n, int) for n in (*offsets[1:], *sizes, *strides))
    if not known or isinstance(offsets[0], int) or sizes[0] != 1:
        return False
    whole = op.operands[0].type
    size = element_count(whole) // whole.shape[0] * numpy_dtype(result_type(whole).dtype).itemsize
    return size >= _LINE


def _is_stack(value: ir.Value) -> bool:
    """Is that a weight, or one whose tensors have each been transposed, reshaped or converted?"""
    op = defining_op(value)
    while op is not None and _is_of_each(op):
        op = defining_op(op.operands[0])
    return op is not None and op.name == "mlc.weight" and not len(op.operands) and bool(value.type.rank)


def _is_of_each(op: ir.Operation) -> bool:
    """Does an operation on a stack do the same to each tensor of it?"""
    if op.name == "mlc.transpose":
        return OpAdaptor(op).ints("permutation")[0] == 0
    if op.name == "mlc.reshape":
        before, after = (shape_of(value) for value in (op.operands[0], op.results[0]))
        return is_static(op.results[0].type) and bool(after) and before[:1] == after[:1]
    return op.name == "mlc.cast"


def _one_of(stack: ir.Value, index: ir.Value) -> ir.Value:
    """Tensor `index` of a stack."""
    op = defining_op(stack)
    assert op is not None
    if op.name == "mlc.weight":
        one = ir.RankedTensorType.get(list(stack.type.shape)[1:], stack.type.element_type)
        return weight_of(ir.StringAttr(op.attributes["name"]).value, one, index, stack.type.shape[0])
    inner, view = _one_of(op.operands[0], index), OpAdaptor(op)
    if op.name == "mlc.transpose":
        return b.transpose(inner, [axis - 1 for axis in view.ints("permutation")[1:]])
    if op.name == "mlc.reshape":
        return b.reshape(inner, list(stack.type.shape)[1:])
    attributes = {name: op.attributes[name] for name in op.attributes}
    one = ir.RankedTensorType.get(list(inner.type.shape), stack.type.element_type)
    return ir.Operation.create(op.name, [one], [inner], attributes).results[0]


def _indexed(op: OpAdaptor) -> ir.Value:
    """What takes the place of such a slice."""
    stack = op.operand(0)
    offsets, sizes, strides = _parts(op)
    weight = _one_of(stack, offsets[0])
    if sizes[1:] != list(stack.type.shape)[1:] or any(n != 1 for n in strides[1:]):
        weight = b.slice_(weight, offsets[1:], sizes[1:], strides[1:])
    return b.reshape(weight, sizes)


def _gathers_one(op: ir.Operation) -> bool:
    """Does a gather inside of a loop take one matrix, or more dimensions, out of a weight?"""
    view, (stack, indices) = OpAdaptor(op), op.operands
    of_rows = not view.int("axis", 0) and not view.int("batch_dims", 0)
    if not of_rows or stack.type.rank < 3 or shape_of(indices) not in ([], [1]):
        return False
    parent = op.parent
    while parent is not None and parent.name not in ("scf.for", "scf.while"):
        parent = parent.operation.parent
    return parent is not None and _is_stack(stack) and is_static(stack.type)


def _gathered(op: OpAdaptor) -> ir.Value:
    """What takes the place of such a gather."""
    stack, indices = op.operands
    count = b.index(stack.type.shape[0])
    number = tensor.extract(indices, [b.index(0)] * indices.type.rank)
    given = arith.index_cast(ir.IndexType.get(), number)
    place = given
    if not op.flag("mlc.in_range"):
        zero = b.index(0)
        below = arith.cmpi(arith.CmpIPredicate.slt, given, zero)
        place = arith.select(below, arith.addi(given, count), given)
        inside = arith.andi(
            arith.cmpi(arith.CmpIPredicate.sge, place, zero), arith.cmpi(arith.CmpIPredicate.slt, place, count)
        )
        message = {"message": ir.StringAttr.get("the index is out of range")}
        ir.Operation.create("mlc.check", operands=[inside, given], attributes=message)
    return b.reshape(_one_of(stack, place), list(op.types[0].shape))


_Form = tuple[Callable[[ir.Operation], bool], Callable[[OpAdaptor], ir.Value]]
_FORMS: dict[str, _Form] = {"mlc.slice": (_takes_one, _indexed), "mlc.gather": (_gathers_one, _gathered)}
