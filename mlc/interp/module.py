"""Interprets whole functions of the phases `import` to `decompose`: the oracle that compiled code is compared with.

Tensors are NumPy arrays, sequences tuples, optionals `Maybe`; scalars (`index`, integers, floats) Python numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from mlir import ir

from mlc.interp import InterpError, evaluate
from mlc.interp.arith import SCALAR_OPS
from mlc.interp.dtypes import numpy_dtype, signed_view
from mlc.interp.from_ir import attributes, elements, result_type


class WeightSource(Protocol):
    """What the interpreter needs of a weight store."""

    def get(self, name: str) -> np.ndarray:
        """The array of a weight."""


def run_function(func: Any, inputs: Sequence[Any], store: WeightSource | None = None) -> list[Any]:
    """The results of a `func.func` for `inputs`, one for each argument: arrays (unsigned ones are read as signless),
    tuples for sequences, `Maybe` for optionals, ints for `index`.

    `store` gives the weights; a module's recipes must be in it. Raises `InterpError`, with the name of the source node,
    when an operation fails or is not known to the interpreter, and when an input does not fit its argument.
    """
    op = func.operation
    block = op.regions[0].blocks[0]
    if len(inputs) != len(block.arguments):
        raise InterpError(f"the function takes {len(block.arguments)} inputs, got {len(inputs)}")
    frame = _Frame(op, store)
    for number, (argument, value) in enumerate(zip(block.arguments, inputs, strict=True)):
        frame.values[argument] = _input(number, argument.type, value)
    return frame.run(block)


def _input(number: int, type_: ir.Type, value: Any) -> Any:
    if not isinstance(type_, ir.RankedTensorType):
        return value
    array, want = signed_view(np.asarray(value)), result_type(type_)
    fits = array.ndim == len(want.shape) and all(w in (-1, h) for w, h in zip(want.shape, array.shape, strict=True))
    if not fits or array.dtype != numpy_dtype(want.dtype):
        raise InterpError(f"input {number} is {array.dtype}{list(array.shape)}, the function takes {type_}")
    return array


class _Frame:
    """The values of one function call."""

    def __init__(self, func: ir.Operation, store: WeightSource | None) -> None:
        self.func, self.store = func, store
        self.values: dict[ir.Value, Any] = {}

    def run(self, block: ir.Block) -> list[Any]:
        """Runs a block; the operands of its terminator."""
        for view in block.operations:
            op = view.operation
            operands = [self.values[v] for v in op.operands]
            if op.name in _TERMINATORS:
                return operands
            results = self.execute(op, operands)
            for result, value in zip(op.results, results, strict=True):
                self.values[result] = value
        return []

    def execute(self, op: ir.Operation, operands: list[Any]) -> list[Any]:
        """The results of one operation. Raises `InterpError` that names its source node."""
        try:
            if op.name == "mlc.weight":
                return [self._weight(op, operands)]
            if op.name.startswith("mlc."):
                return evaluate(op.name, operands, attributes(op), [result_type(r.type) for r in op.results])
            if op.name in _OPS:
                return _OPS[op.name](self, op, operands)
            if op.name in SCALAR_OPS and not any(isinstance(v, np.ndarray) for v in operands):
                types = [str(op.operands[0].type) if len(operands) else "", str(op.results[0].type)]
                return [SCALAR_OPS[op.name](operands, attributes(op), *types)]
            raise InterpError(f"the interpreter does not know '{op.name}' on {[str(v.type) for v in op.operands]}")
        except InterpError as error:
            raise InterpError(_at(op, str(error))) from error

    def _weight(self, op: ir.Operation, index: list[Any]) -> np.ndarray:
        name = ir.StringAttr(op.attributes["name"]).value
        if self.store is None:
            raise InterpError(f"weight '{name}' is needed, but no weight store was given")
        weight = self.store.get(name)
        if index and not 0 <= index[0] < len(weight):
            raise InterpError(f"weight {index[0]} of '{name}' is wanted, which is a stack of {len(weight)}")
        return weight[index[0]] if index else weight


def _at(op: ir.Operation, message: str) -> str:
    location = op.location
    if location.is_a_name() and not message.startswith("at "):
        return f"at {location.name_str}: {message}"
    return message


_TERMINATORS = {"func.return", "scf.yield", "scf.condition"}
_OPS: dict[str, Callable[[_Frame, ir.Operation, list[Any]], list[Any]]] = {}

Handler = Callable[[_Frame, ir.Operation, list[Any]], list[Any]]


def _handles(*names: str) -> Callable[[Handler], Handler]:
    def register(function: Handler) -> Handler:
        for name in names:
            _OPS[name] = function
        return function

    return register


# -- tensors -----------------------------------------------------------------------------------------------------------


@_handles("tensor.dim")
def _dim(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    tensor, position = operands
    if not 0 <= position < tensor.ndim:
        raise InterpError(f"tensor.dim: dimension {position} of a tensor of rank {tensor.ndim}")
    return [int(tensor.shape[position])]


@_handles("tensor.rank")
def _rank(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return [operands[0].ndim]


@_handles("tensor.extract")
def _extract(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    tensor, *position = operands
    if any(not 0 <= at < extent for at, extent in zip(position, tensor.shape, strict=True)):
        raise InterpError(f"tensor.extract: element {position} of a tensor of shape {list(tensor.shape)}")
    element = tensor[tuple(position)]
    return [element.item() if tensor.dtype.kind in "biu" else element]


@_handles("tensor.from_elements")
def _from_elements(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    type_ = result_type(op.results[0].type)
    return [np.array(operands, numpy_dtype(type_.dtype)).reshape(type_.shape)]


@_handles("tensor.cast")
def _tensor_cast(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    want = result_type(op.results[0].type).shape
    if any(w not in (-1, h) for w, h in zip(want, operands[0].shape, strict=True)):
        raise InterpError(f"tensor.cast: a tensor of shape {list(operands[0].shape)} is no {op.results[0].type}")
    return operands


@_handles("tensor.splat")
def _splat(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    type_, sizes = result_type(op.results[0].type), iter(operands[1:])
    shape = [next(sizes) if n == -1 else n for n in type_.shape]
    return [np.full(shape, operands[0], numpy_dtype(type_.dtype))]


@_handles("arith.constant", "index.constant")
def _constant(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    value = op.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        return [elements(value)]
    return [attributes(op)["value"]]


@_handles("arith.select")
def _select(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    condition, on_true, on_false = operands
    if isinstance(condition, np.ndarray):
        return [np.where(condition, on_true, on_false)]
    return [on_true if condition else on_false]


# -- control flow ------------------------------------------------------------------------------------------------------


@_handles("scf.if")
def _if(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    region = op.regions[0 if operands[0] else 1]
    return frame.run(region.blocks[0]) if len(region.blocks) else []


@_handles("scf.for")
def _for(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    low, high, step, *carried = operands
    block = op.regions[0].blocks[0]
    for counter in range(low, high, step):
        for argument, value in zip(block.arguments, [counter, *carried], strict=True):
            frame.values[argument] = value
        carried = frame.run(block)
    return carried


@_handles("scf.while")
def _while(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    before, after = (region.blocks[0] for region in op.regions)
    carried = operands
    while True:
        for argument, value in zip(before.arguments, carried, strict=True):
            frame.values[argument] = value
        proceed, *forwarded = frame.run(before)
        if not proceed:
            return forwarded
        for argument, value in zip(after.arguments, forwarded, strict=True):
            frame.values[argument] = value
        carried = frame.run(after)


@_handles("func.call")
def _call(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    parent = frame.func.parent
    while parent is not None:
        for candidate in parent.operation.regions[0].blocks[0].operations:
            found = candidate.operation
            if found.name == "func.func" and ir.StringAttr(found.attributes["sym_name"]).value == name:
                return run_function(found, operands, frame.store)
        parent = parent.operation.parent
    raise InterpError(f"func.call: there is no function @{name}")


@_handles("cf.assert")
def _assert(frame: _Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    if not operands[0]:
        raise InterpError(ir.StringAttr(op.attributes["msg"]).value)
    return []
