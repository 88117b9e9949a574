"""Pass `mlc-scalarize-shapes`: sizes that a model computes with tensors become arithmetic on `index`.

    %s = mlc.shape_of %x : tensor<?x4xf32> -> tensor<2xi64>
    %e = tensor.extract %s[%c0] : tensor<2xi64>
    %n = arith.index_cast %e : i64 to index
becomes
    %n = tensor.dim %x, %c0 : tensor<?x4xf32>

Demand driven: each `tensor.extract` of an integer or truth value at a constant position asks for that one element, and
the question goes up through gathers, slices, concatenations, arithmetic, … to constants, extents and function
arguments. Where an operation has no rule, the chain ends in a `tensor.extract` of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import arith, tensor

from mlc.interp.from_ir import elements
from mlc.passes.adaptor import DYNAMIC, OpAdaptor, defining_op
from mlc.passes.base import Pass
from mlc.passes.simplify import scalars
from mlc.passes.simplify.rewrite import constant_index
from mlc.passes.simplify.scalars import Scalar, UnsupportedError
from mlc.passes.walk import functions, operations

Position = tuple[int, ...]
_LIMIT = 1024
_DEPTH = 200


class ScalarizeShapes(Pass):
    """Turns shape computations on tensors into index arithmetic."""

    dialects = ("arith", "math", "tensor")
    statistics = {"scalarized": "elements of shape tensors computed as scalars"}

    def run(self, op: Any) -> None:
        for function in functions(op):
            for inner in operations(function):
                if inner.name == "tensor.extract" and _is_size(inner.results[0].type):
                    self._scalarize(inner)

    def _scalarize(self, op: ir.Operation) -> None:
        position = [constant_index(v) for v in list(op.operands)[1:]]
        source = op.operands[0]
        if any(p is None for p in position) or defining_op(source) is None:
            return
        element = source.type.element_type
        with ir.InsertionPoint(op), op.location:
            trace = _Trace()
            try:
                scalar = trace.element(source, tuple(p for p in position if p is not None))
            except UnsupportedError:
                return
            if trace.is_same(scalar, op):
                return
            value = scalars.value_of(scalar, element)
            if value.type != element:
                value = arith.index_cast(element, value)
        op.results[0].replace_all_uses_with(value)
        op.erase()
        self.count("scalarized")


def _is_size(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width in (1, 32, 64)


class _Trace:
    """Finds the elements of tensors; one for each extracted element, at its insertion point."""

    def __init__(self) -> None:
        self._known: dict[tuple[ir.Value, Position], Scalar] = {}
        self._extracts: dict[ir.Value, tuple[ir.Value, Position]] = {}
        self._depth = 0

    def element(self, value: ir.Value, position: Position) -> Scalar:
        """The element of a tensor at a position. Raises `UnsupportedError` when not even extracting it makes sense."""
        key = (value, position)
        if key not in self._known:
            self._depth += 1
            try:
                self._known[key] = self._find(value, position)
            finally:
                self._depth -= 1
        return self._known[key]

    def _find(self, value: ir.Value, position: Position) -> Scalar:
        op = defining_op(value)
        rule = _RULES.get(op.name) if op is not None and self._depth < _DEPTH else None
        if op is not None and rule is not None and not _is_unsigned(op):
            try:
                return rule(self, OpAdaptor(op), position)
            except UnsupportedError:
                pass
        return self._extract(value, position)

    def _extract(self, value: ir.Value, position: Position) -> Scalar:
        element = value.type.element_type
        if not (_is_size(element) or isinstance(element, ir.F32Type | ir.F64Type)):
            raise UnsupportedError(str(element))
        indices = [arith.constant(ir.IndexType.get(), p) for p in position]
        found = tensor.extract(value, indices)
        if isinstance(element, ir.IntegerType) and element.width > 1:
            found = arith.index_cast(ir.IndexType.get(), found)
        self._extracts[found] = (value, position)
        return found

    def is_same(self, scalar: Scalar, op: ir.Operation) -> bool:
        """Whether `scalar` is nothing but the element that `op` extracts."""
        found = self._extracts.get(scalar) if isinstance(scalar, ir.Value) else None
        return found is not None and found[0] == op.operands[0]

    def broadcast(self, value: ir.Value, position: Position) -> Scalar:
        """The element of an operand that broadcasts to the tensor of `position`."""
        return self.element(value, broadcast_position(value, position))


def broadcast_position(value: ir.Value, position: Position) -> Position:
    """The position in an operand that a position in the tensor that it broadcasts to reads."""
    shape = list(value.type.shape)
    if DYNAMIC in shape:
        raise UnsupportedError("an operand of unknown shape")
    own = position[len(position) - len(shape) :]
    return tuple(0 if extent == 1 else at for at, extent in zip(own, shape, strict=True))


def _is_unsigned(op: ir.Operation) -> bool:
    return any(name in op.attributes for name in ("unsigned", "unsigned_in", "unsigned_out"))


def static_shape(value: ir.Value) -> list[int]:
    """The extents of a small tensor. Raises `UnsupportedError` when they are unknown or many."""
    shape = list(value.type.shape)
    if DYNAMIC in shape or np.prod(shape, dtype=np.int64) > _LIMIT:
        raise UnsupportedError("a tensor of unknown or large shape")
    return shape


_Rule = Callable[[_Trace, OpAdaptor, Position], Scalar]
_RULES: dict[str, _Rule] = {}


def _rule(name: str) -> Callable[[_Rule], _Rule]:
    def register(function: _Rule) -> _Rule:
        _RULES[name] = function
        return function

    return register


# -- leaves ------------------------------------------------------------------------------------------------------------


@_rule("mlc.constant")
def _constant(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    value = elements(op.op.attributes["value"])[position]
    if value.dtype.kind not in "biuf":
        raise UnsupportedError(str(value.dtype))
    return value.item()


_RULES["arith.constant"] = _constant


@_rule("mlc.shape_of")
def _shape_of(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    return extent_of(op.operand(0), position[0])


def extent_of(value: ir.Value, axis: int) -> Scalar:
    """An extent as a number or a `tensor.dim`."""
    extent = value.type.shape[axis]
    return extent if extent != DYNAMIC else tensor.dim(value, arith.constant(ir.IndexType.get(), axis))


@_rule("tensor.from_elements")
def _from_elements(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    flat = int(np.ravel_multi_index(position, static_shape(op.op.results[0]))) if position else 0
    value = op.operand(flat)
    known = constant_index(value)
    if known is not None:
        return bool(known) if str(value.type) == "i1" else known
    if isinstance(value.type, ir.IntegerType) and value.type.width > 1:
        source = defining_op(value)
        if source is not None and source.name == "arith.index_cast":
            return source.operands[0]
        return arith.index_cast(ir.IndexType.get(), value)
    return value


@_rule("mlc.iota")
def _iota(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    number = position[op.int("axis")]
    return number if isinstance(op.types[0].element_type, ir.IntegerType) else float(number)


# -- movement ----------------------------------------------------------------------------------------------------------


@_rule("mlc.gather")
def _gather(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    source, indices = op.operands
    axis, rank = op.int("axis"), indices.type.rank
    index = trace.element(indices, position[axis : axis + rank])
    extent = source.type.shape[axis]
    if not scalars.is_known(index) or extent == DYNAMIC or not -extent <= index < extent:
        raise UnsupportedError("a gather whose index is known at run time only")
    return trace.element(source, (*position[:axis], int(index) % extent, *position[axis + rank :]))


@_rule("mlc.concat")
def _concat(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    axis = op.int("axis")
    at = position[axis]
    for value in op.operands:
        extent = value.type.shape[axis]
        if extent == DYNAMIC:
            raise UnsupportedError("a concatenation of unknown shapes")
        if at < extent:
            return trace.element(value, (*position[:axis], at, *position[axis + 1 :]))
        at -= extent
    raise UnsupportedError("a position outside the tensor")


@_rule("mlc.slice")
def _slice(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    groups = op.segments()
    offsets, strides = op.mixed("offsets", groups[1]), op.mixed("strides", groups[3])
    source: list[int] = []
    for at, offset, stride in zip(position, offsets, strides, strict=True):
        first, step = _number(offset), _number(stride)
        if at == 0 and first is not None:
            source.append(first)
        elif first is None or step is None:
            raise UnsupportedError("a slice at a run-time offset")
        else:
            source.append(first + at * step)
    return trace.element(op.operand(0), tuple(source))


def _number(size: int | ir.Value) -> int | None:
    return constant_index(size) if isinstance(size, ir.Value) else size


@_rule("mlc.reshape")
def _reshape(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    source, target = static_shape(op.operand(0)), static_shape(op.op.results[0])
    flat = int(np.ravel_multi_index(position, target)) if position else 0
    return trace.element(op.operand(0), tuple(int(i) for i in np.unravel_index(flat, source)) if source else ())


@_rule("mlc.transpose")
def _transpose(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    source = [0] * len(position)
    for at, axis in zip(position, op.ints("permutation"), strict=True):
        source[axis] = at
    return trace.element(op.operand(0), tuple(source))


@_rule("mlc.broadcast")
def _broadcast(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    return trace.broadcast(op.operand(0), position)


@_rule("mlc.pad")
def _pad(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    _, value, low, _ = op.segments()
    if op.text("mode") != "constant":
        raise UnsupportedError("padding that repeats elements")
    source = []
    for at, before in zip(position, op.mixed("low", low), strict=True):
        number = _number(before)
        if number is None:
            raise UnsupportedError("padding of unknown width")
        source.append(at - number)
    shape = static_shape(op.operand(0))
    if all(0 <= at < extent for at, extent in zip(source, shape, strict=True)):
        return trace.element(op.operand(0), tuple(source))
    return trace.element(value[0], ()) if value else 0


@_rule("tensor.cast")
def _tensor_cast(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    return trace.element(op.operand(0), position)


# -- arithmetic --------------------------------------------------------------------------------------------------------


def _element(value: ir.Value) -> ir.Type:
    return value.type.element_type


@_rule("mlc.cast")
def _cast(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    value = op.operand(0)
    return scalars.cast(trace.element(value, position), _element(value), op.types[0].element_type)


@_rule("mlc.unary")
def _unary(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    value = op.operand(0)
    return scalars.unary(op.text(), trace.element(value, position), _element(value))


@_rule("mlc.binary")
def _binary(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    lhs, rhs = op.operands
    if _element(lhs) != _element(rhs):
        raise UnsupportedError("operands of two types")
    left, right = trace.broadcast(lhs, position), trace.broadcast(rhs, position)
    return scalars.binary(op.text(), left, right, _element(lhs))


@_rule("mlc.compare")
def _compare(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    lhs, rhs = op.operands
    left, right = trace.broadcast(lhs, position), trace.broadcast(rhs, position)
    return scalars.compare(op.text("predicate"), left, right, _element(lhs))


@_rule("mlc.select")
def _select(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    condition, on_true, on_false = op.operands
    chosen = trace.broadcast(condition, position)
    if scalars.is_known(chosen):
        return trace.broadcast(on_true if chosen else on_false, position)
    left, right = trace.broadcast(on_true, position), trace.broadcast(on_false, position)
    return scalars.select(chosen, left, right, _element(on_true))


@_rule("mlc.clamp")
def _clamp(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    value, low, high = op.segments()
    element = _element(value[0])
    result = trace.element(value[0], position)
    for bound, kind in ((low, "max"), (high, "min")):
        if bound:
            result = scalars.binary(kind, result, trace.broadcast(bound[0], position), element)
    return result


_REDUCE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}


@_rule("mlc.reduce")
def _reduce(trace: _Trace, op: OpAdaptor, position: Position) -> Scalar:
    value, axes = op.operand(0), op.ints("axes")
    shape, element = static_shape(value), _element(value)
    rest = iter(position)
    fixed = [None if i in axes else next(rest) for i in range(len(shape))]
    if op.flag("keepdims"):
        fixed = [None if i in axes else position[i] for i in range(len(shape))]
    total: Scalar = None
    for offsets in np.ndindex(*[shape[axis] for axis in sorted(axes)]):
        inside = iter(offsets)
        at = tuple(next(inside) if i is None else i for i in fixed)
        part = trace.element(value, at)
        total = part if total is None else scalars.binary(_REDUCE[op.text()], total, part, element)
    if total is not None:
        return total
    if op.text() in ("sum", "prod") and not (isinstance(element, ir.IntegerType) and element.width == 1):
        return 0 if op.text() == "sum" else 1
    raise UnsupportedError("a reduction of nothing")
