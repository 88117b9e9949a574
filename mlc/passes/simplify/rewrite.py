"""What the passes of this phase share: reading constants, replacing operations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from mlir import ir

from mlc import _native
from mlc.dialects import builders
from mlc.interp.from_ir import elements
from mlc.passes.adaptor import defining_op

IMPURE = {"mlc.check", "mlc.extern", "mlc.launch", "mlc.buffer"}
"""`mlc` operations that must not be moved, folded or dropped here."""


def constant_array(value: ir.Value) -> np.ndarray | None:
    """The elements of a constant tensor, else None."""
    op = defining_op(value)
    if op is None or op.name not in ("mlc.constant", "arith.constant"):
        return None
    attr = op.attributes["value"]
    return elements(attr) if isinstance(attr, ir.DenseElementsAttr) else None


def constant_index(value: ir.Value) -> int | None:
    """The number that an `index` or integer value is, else None."""
    op = defining_op(value)
    if op is None or op.name not in ("arith.constant", "index.constant"):
        return None
    attr = op.attributes["value"]
    return ir.IntegerAttr(attr).value if isinstance(attr, ir.IntegerAttr) else None


def is_static(type_: ir.Type) -> bool:
    """Whether a type is a tensor of known shape."""
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape


def element_count(type_: ir.Type) -> int:
    """How many elements a tensor type of known shape has."""
    return math.prod(ir.RankedTensorType(type_).shape)


def is_unused(op: ir.Operation) -> bool:
    """Whether no result of an operation is used."""
    return all(not list(result.uses) for result in op.results)


def constant_before(op: ir.Operation, array: np.ndarray) -> ir.Value:
    """An `mlc.constant` of `array` in front of `op`, at its location."""
    with ir.InsertionPoint(op), op.location:
        return builders.constant(array)


def replace(op: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Uses `values` instead of the results of `op`, and erases it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def erase_unread(op: ir.Operation) -> None:
    """Erases an operation, and what only it read."""
    sources = {source for value in op.operands if (source := defining_op(value)) is not None}
    op.erase()
    for source in sources:
        if source.name.startswith("mlc.") and not any(list(r.uses) for r in source.results):
            erase_unread(source)


def is_pure_mlc(op: ir.Operation) -> bool:
    """Whether `op` is an `mlc` operation on tensors that only depends on its operands."""
    return op.name.startswith("mlc.") and op.name not in IMPURE and len(op.results) > 0


def has_shape_function(op: ir.Operation) -> bool:
    """Whether an operation accepts operands with more static types than it was built with."""
    return op.name.startswith("mlc.") and _native.has_dims(op)
