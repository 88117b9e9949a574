"""Runs an imported module operation by operation with `mlc.interp`: what the importers' tests compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mlir import ir

from mlc.interp import ResultType, evaluate, numpy_dtype

DYNAMIC = ir.ShapedType.get_dynamic_size()
_INDEX = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: int(a / b) if b else 0,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "remsi": lambda a, b: int(np.fmod(a, b)),
    "maxsi": max,
    "minsi": min,
}
_PREDICATES = [
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
]


def plain(attr: ir.Attribute) -> Any:
    """An attribute as a Python value."""
    if isinstance(attr, ir.UnitAttr):
        return True
    if isinstance(attr, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr):
        return list(attr)
    if isinstance(attr, ir.ArrayAttr):
        return [plain(item) for item in attr]
    if isinstance(attr, ir.DenseElementsAttr):
        return elements(attr)
    return getattr(attr, "value", attr)


def elements(attr: ir.DenseElementsAttr) -> np.ndarray:
    """Dense elements as an array of the matching (signed) dtype."""
    kind = ir.RankedTensorType(attr.type)
    dtype = numpy_dtype(str(kind.element_type))
    if attr.is_splat:
        return np.full(list(kind.shape), attr.get_splat_value().value, dtype)
    return np.array(list(attr), dtype).reshape(list(kind.shape))


def result_type(kind: ir.Type) -> ResultType:
    """A type as the interpreter wants it."""
    if isinstance(kind, ir.RankedTensorType):
        return ResultType([-1 if extent == DYNAMIC else extent for extent in kind.shape], str(kind.element_type))
    return ResultType([], str(kind))


class Runner:
    """Evaluates the functions of a module with the weights of a store."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.values: dict[ir.Value, Any] = {}

    def block(self, block: ir.Block, arguments: Sequence[Any]) -> list[Any]:
        """Runs a block; returns the operands of its terminator."""
        self.values.update(zip([ir.Value(a) for a in block.arguments], arguments, strict=True))
        for op in block.operations:
            operation = op.operation
            inputs = [self.values[operand] for operand in operation.operands]
            if operation.name in ("func.return", "scf.yield", "scf.condition"):
                return inputs
            results = self.operation(operation, inputs)
            self.values.update(zip(operation.results, results, strict=True))
        return []

    def operation(self, op: ir.Operation, inputs: list[Any]) -> list[Any]:
        """The results of one operation."""
        name = op.name
        if name == "mlc.weight":
            return [self.store.get(op.attributes["name"].value)]
        if name == "mlc.constant":
            return [elements(op.attributes["value"])]
        if name.startswith("mlc."):
            attributes = {key: plain(op.attributes[key]) for key in op.attributes}
            try:
                return evaluate(name, inputs, attributes, [result_type(value.type) for value in op.results])
            except Exception as error:
                shapes = [getattr(item, "shape", item) for item in inputs]
                raise AssertionError(f"{str(op)[:300]} on {shapes}: {error}") from error
        if name.startswith("scf."):
            return self.control(op, inputs)
        return [self.scalar(op, inputs)]

    def scalar(self, op: ir.Operation, inputs: list[Any]) -> Any:
        """Index arithmetic and what connects it with tensors."""
        dialect, name = op.name.split(".")
        if name in _INDEX:
            return _INDEX[name](*inputs)
        if name == "constant":
            return op.attributes["value"].value
        if name == "cmpi":
            return bool(_PREDICATES[op.attributes["predicate"].value](*inputs))
        if name == "select":
            return inputs[1] if inputs[0] else inputs[2]
        if name == "dim":
            return int(inputs[0].shape[inputs[1]])
        if name == "extract":
            return inputs[0][tuple(inputs[1:])].item()
        if name in ("index_cast", "index_castui"):
            return int(inputs[0])
        if name == "cast":
            return inputs[0]
        raise NotImplementedError(f"{dialect}.{name}")

    def control(self, op: ir.Operation, inputs: list[Any]) -> list[Any]:
        """Branches and loops."""
        if op.name == "scf.if":
            return self.block(op.regions[0 if inputs[0] else 1].blocks[0], [])
        if op.name == "scf.for":
            low, high, step, *carried = inputs
            for position in range(low, high, step):
                carried = self.block(op.regions[0].blocks[0], [position, *carried])
            return carried
        carried = inputs
        while True:
            going, *carried = self.block(op.regions[0].blocks[0], carried)
            if not going:
                return carried
            carried = self.block(op.regions[1].blocks[0], carried)


def run(module: ir.Module, store: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The results of the module's entry, by name, for inputs by name."""
    function = module.body.operations[0]
    names = [ir.DictAttr(attr)["mlc.name"].value for attr in function.attributes["arg_attrs"]]
    outputs = [ir.DictAttr(attr) for attr in function.attributes["res_attrs"]]
    results = Runner(store).block(function.regions[0].blocks[0], [inputs[name] for name in names])
    return {attrs["mlc.name"].value: _as_declared(attrs, value) for attrs, value in zip(outputs, results, strict=True)}


def _as_declared(attributes: ir.DictAttr, value: Any) -> Any:
    """Signless integers as the unsigned ones that the result's dtype names."""
    dtype = attributes["mlc.dtype"].value if "mlc.dtype" in attributes else ""
    return value.view(dtype) if dtype.startswith("uint") and isinstance(value, np.ndarray) else value
