"""Extents as numbers or `index` values, traced back through what the lowering has already built."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.passes.adaptor import DYNAMIC, Size, defining_op
from mlc.passes.lower.to_linalg import scalar


def extent(value: ir.Value, position: int) -> Size:
    """Extent of dimension `position`: never a `tensor.dim` of something that this lowering built."""
    size = value.type.shape[position]
    if size != DYNAMIC:
        return size
    op = defining_op(value)
    trace = _TRACES.get(op.name) if op is not None else None
    found = trace(op, value, position) if trace is not None else None
    return found if found is not None else tensor.dim(value, scalar.index(position))


def sizes_of(value: ir.Value) -> list[Size]:
    """All extents of `value`."""
    return [extent(value, i) for i in range(value.type.rank)]


def constant_index(value: ir.Value) -> int | None:
    """The number that an `index` value is, when it is a constant."""
    op = defining_op(value)
    if op is not None and op.name in ("arith.constant", "index.constant"):
        return ir.IntegerAttr(op.attributes["value"]).value
    return None


def simplified(size: Size) -> Size:
    """A constant `index` value as a number."""
    if isinstance(size, int):
        return size
    known = constant_index(size)
    return size if known is None else known


def product(sizes: Sequence[Size]) -> Size:
    number, values = 1, []
    for size in sizes:
        if isinstance(size, int):
            number *= size
        else:
            values.append(size)
    result: Size = number
    for value in values:
        result = value if isinstance(result, int) and result == 1 else times(result, value)
    return result


def _value(size: Size) -> ir.Value:
    return scalar.index(size) if isinstance(size, int) else size


def times(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return arith.muli(_value(a), _value(b))


def plus(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0 or b == 0:
        return b if isinstance(a, int) else a
    return arith.addi(_value(a), _value(b))


def minus(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return a if isinstance(b, int) and b == 0 else arith.subi(_value(a), _value(b))


def divide(a: Size, b: Size) -> Size:
    """Exact division of non-negative sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return a if isinstance(b, int) and b == 1 else arith.divui(_value(a), _value(b))


def _mixed(op: ir.Operation, dynamic: Sequence[ir.Value], attribute: str, position: int) -> Size:
    statics = list(ir.DenseI64ArrayAttr(op.attributes[attribute]))
    if statics[position] != DYNAMIC:
        return statics[position]
    return dynamic[sum(s == DYNAMIC for s in statics[:position])]


def _of_empty(op: ir.Operation, value: ir.Value, position: int) -> Size | None:
    before = sum(s == DYNAMIC for s in list(value.type.shape)[:position])
    return op.operands[before]


def _of_destination(op: ir.Operation, value: ir.Value, position: int) -> Size | None:
    count = len(op.operands) - len(op.results)
    return extent(op.operands[count + ir.OpResult(value).result_number], position)


def _of_cast(op: ir.Operation, value: ir.Value, position: int) -> Size | None:
    return extent(op.operands[0], position)


def _of_expand(op: ir.Operation, value: ir.Value, position: int) -> Size | None:
    return _mixed(op, list(op.operands)[1:], "static_output_shape", position)


def _of_collapse(op: ir.Operation, value: ir.Value, position: int) -> Size | None:
    group = [a.value for a in op.attributes["reassociation"][position]]
    return product([extent(op.operands[0], p) for p in group])


def _of_slice(op: ir.Operation, value: ir.Value, position: int) -> Size | None:
    offsets, sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[1:3]
    dynamic = list(op.operands)[1 + offsets : 1 + offsets + sizes]
    return _mixed(op, dynamic, "static_sizes", position)


def _of_insert(op: ir.Operation, value: ir.Value, position: int) -> Size | None:
    return extent(op.operands[1], position)


_TRACES: dict[str, Callable[[ir.Operation, ir.Value, int], Size | None]] = {
    "tensor.empty": _of_empty,
    "linalg.generic": _of_destination,
    "linalg.fill": _of_destination,
    "tensor.cast": _of_cast,
    "tensor.expand_shape": _of_expand,
    "tensor.collapse_shape": _of_collapse,
    "tensor.extract_slice": _of_slice,
    "tensor.insert_slice": _of_insert,
}


def resolve_dims(root: ir.Operation) -> None:
    """Replace every `tensor.dim` that names something the lowering built by the size it was built with."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "tensor.dim" and constant_index(op.operands[1]) is not None:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    for op in found:
        position = constant_index(op.operands[1])
        assert position is not None
        with ir.InsertionPoint(op), op.location:
            size = _value(extent(op.operands[0], position))
        source = defining_op(size)
        if source is not None and source.name == "tensor.dim" and source.operands[0] == op.operands[0]:
            if source != op:
                source.erase()
            continue
        op.results[0].replace_all_uses_with(size)
        op.erase()
