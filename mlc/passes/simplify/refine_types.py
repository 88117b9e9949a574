"""Pass `mlc-refine-types`: extents that are known to be constant become static in the types.

    %n = arith.constant 4 : index
    %0 = mlc.broadcast %x [%n] : tensor<1xf32> -> tensor<?xf32>
    %1 = mlc.unary exp %0 : tensor<?xf32>
becomes
    %0 = mlc.broadcast %x [%n] : tensor<1xf32> -> tensor<4xf32>
    %1 = mlc.unary exp %0 : tensor<4xf32>

What is constant is decided by `mlc.dims`. What control flow carries becomes static when every path agrees, results of
functions too, unless the function is called. Operations that insist on the type that they had (sequences, calls) get a
`tensor.cast`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir
from mlir.dialects import tensor

from mlc.dims import DYNAMIC, DimAnalysis, constant_of
from mlc.passes.base import Pass
from mlc.passes.simplify.rewrite import has_shape_function
from mlc.passes.walk import behind, functions, operations

_CONTROL = {"scf.if", "scf.for", "scf.while"}
_TOLERANT = {"tensor.dim", "tensor.extract", "tensor.cast", "tensor.rank"}


class RefineTypes(Pass):
    """Makes constant extents static in the types."""

    dialects = ("tensor",)
    statistics = {"refined": "values whose type became more static"}

    def run(self, op: Any) -> None:
        called = called_functions(op)
        for function in functions(op):
            open_ = _refinable(function)
            analysis = DimAnalysis(function) if open_ else None
            refined = [(v, _static_type(v, analysis)) for v in open_] if analysis is not None else []
            for value, type_ in refined:
                if type_ is not None:
                    refine(value, type_)
                    self.count("refined")
            for inner in operations(function):
                cast_carried(inner)
            if ir.StringAttr(function.attributes["sym_name"]).value not in called:
                _refine_results(function)


def refine(value: ir.Value, type_: ir.RankedTensorType) -> None:
    """Gives a value a more static type; who insists on the old one gets a cast to it. What control flow carries is left
    to `cast_carried`.
    """
    old = value.type
    strict = [use for use in value.uses if not _is_tolerant(use.owner.operation)]
    value.set_type(type_)
    if strict:
        with behind(value), ir.Location.unknown():
            cast = tensor.cast(old, value)
        for use in strict:
            use.owner.operation.operands[use.operand_number] = cast


def _is_tolerant(op: ir.Operation) -> bool:
    """Whether an operation takes operands of a more static type: control flow does, `cast_carried` sees to it."""
    if op.name in ("scf.yield", "scf.condition"):
        return op.parent.operation.name in _CONTROL
    return op.name in _TOLERANT or op.name in _CONTROL or has_shape_function(op)


def _refinable(function: ir.Operation) -> list[ir.Value]:
    """Tensors with extents that are not known whose type may change freely."""
    values: list[ir.Value] = []
    for op in operations(function):
        if has_shape_function(op) or op.name in _CONTROL:
            values.extend(op.results)
        if op.name in ("scf.for", "scf.while"):
            values.extend(argument for region in op.regions for argument in region.blocks[0].arguments)
    return [v for v in values if isinstance(v.type, ir.RankedTensorType) and not v.type.has_static_shape]


def cast_carried(op: ir.Operation) -> None:
    """Casts what control flow carries to the types of what receives it."""
    if op.name == "scf.if":
        for region in op.regions:
            if len(region.blocks):
                _cast_operands(_terminator(region), 0, [r.type for r in op.results])
    elif op.name == "scf.for":
        types = [a.type for a in list(op.regions[0].blocks[0].arguments)[1:]]
        _cast_operands(op, 3, types)
        _cast_operands(_terminator(op.regions[0]), 0, types)
    elif op.name == "scf.while":
        before, after = ([a.type for a in region.blocks[0].arguments] for region in op.regions)
        _cast_operands(op, 0, before)
        _cast_operands(_terminator(op.regions[0]), 1, after)
        _cast_operands(_terminator(op.regions[1]), 0, before)


def _terminator(region: ir.Region) -> ir.Operation:
    block = region.blocks[0]
    return block.operations[len(block.operations) - 1].operation


def _cast_operands(op: ir.Operation, first: int, types: Sequence[ir.Type]) -> None:
    for number, type_ in enumerate(types, first):
        value = op.operands[number]
        if value.type != type_:
            with ir.InsertionPoint(op), op.location:
                op.operands[number] = tensor.cast(type_, value)


def _static_type(value: ir.Value, analysis: DimAnalysis) -> ir.RankedTensorType | None:
    type_ = value.type
    known = [constant_of(dim) for dim in analysis.dims(value)]
    shape = [DYNAMIC if extent is None or extent < 0 else extent for extent in known]
    if shape == list(type_.shape):
        return None
    return ir.RankedTensorType.get(shape, type_.element_type)


def called_functions(module: Any) -> set[str]:
    """Names of the functions that are called."""
    names: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call":
            names.add(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return names


def _refine_results(function: ir.Operation) -> None:
    """Lets a function return what is behind the casts to its declared result types."""
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1].operation
    if terminator.name != "func.return":
        return
    for number, value in enumerate(terminator.operands):
        op = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if op is not None and op.name == "tensor.cast" and _is_more_static(op.operands[0].type, value.type):
            terminator.operands[number] = op.operands[0]
    old = ir.TypeAttr(function.attributes["function_type"]).value
    new = ir.FunctionType.get(old.inputs, [v.type for v in terminator.operands])
    function.attributes["function_type"] = ir.TypeAttr.get(new)


def _is_more_static(type_: ir.Type, than: ir.Type) -> bool:
    if not isinstance(type_, ir.RankedTensorType) or not isinstance(than, ir.RankedTensorType):
        return False
    return all(old in (DYNAMIC, new) for new, old in zip(type_.shape, than.shape, strict=True))
