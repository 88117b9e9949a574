"""How much work a kernel is: iterations times operations, without what falls into the padding of a window; how much of
it is products of small integers; and the elements of its tensors, of which a gather touches no more than it reads."""

from __future__ import annotations

import math
from collections.abc import Callable

from mlir import ir

from mlc.inspect.extents import Extents
from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.padding import padding_of
from mlc.kernels.common.recurrent_cell import layer_of
from mlc.kernels.common.streamed import find_codes, is_streamed
from mlc.kernels.cpu.padding import windows_of

_COUNTED = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.maximumf", "arith.minimumf")
_WORKING = ("linalg.generic", "mlc.recurrence")
_INTEGER = ("arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.divui")
_SMALL = 8  # bits of integers that processors multiply faster than floats


def flops_of(
    source: KernelSource, extents: Extents, chosen: Callable[[ir.Operation], bool] | None = None
) -> int | None:
    """Arithmetic of all generics of a kernel (a function counts as one) and products of a recurrent layer, or of those
    `chosen`; None where extents are not known. What makes numbers of a weight's codes where they are multiplied does
    not count: it is how the weight is stored, no work.
    """
    total = 0
    for view in source.block.operations:
        op = view.operation
        if op.name not in _WORKING or is_streamed(op) or chosen is not None and not chosen(op):
            continue
        if op.name == "mlc.recurrence":
            inputs = extents.shape(op.operands[0])
            if None in inputs:
                return None
            total += 2 * math.prod(e for e in inputs if e is not None) * layer_of(op).hidden
            continue
        body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
        count = sum(name in _COUNTED or name.startswith("math.") for name in body)
        if is_contraction(op):
            count += sum(name in _INTEGER for name in body)
        if not count:
            continue
        iterations = _iterations(op, extents)
        if iterations is None:
            return None
        total += count * iterations
    return total


def multiplies_bytes(op: ir.Operation) -> bool:
    """Is a generic a contraction of integers of at most eight bits, or of such with scales in blocks on both sides?"""
    if not is_contraction(op):
        return False
    operands = list(op.operands)[:2]
    if all(find_codes(value) is not None for value in operands):
        return True
    elements = [value.type.element_type for value in operands if isinstance(value.type, ir.RankedTensorType)]
    return len(elements) == 2 and all(isinstance(e, ir.IntegerType) and e.width <= _SMALL for e in elements)


def elements_of(argument: ir.Value, size: int, extents: Extents) -> int | None:
    """How many elements of a kernel's argument, which has `size`, are touched at most: a body that extracts elements
    touches one at every point of its loops. None where extents are not known."""
    total = 0
    for use in argument.uses:
        op = use.owner.operation
        generic = _enclosing_generic(op)
        if op.name != "tensor.extract" or generic is None:
            return size
        points = _iterations(generic, extents)
        if points is None:
            return None
        total += points
    return min(size, total)


def _enclosing_generic(op: ir.Operation) -> ir.Operation | None:
    parent = op.parent
    while parent is not None and parent.operation.name != "linalg.generic":
        parent = parent.operation.parent
    return None if parent is None else parent.operation


def _iterations(op: ir.Operation, extents: Extents) -> int | None:
    """How many points of a generic's loops read elements that exist."""
    loops = _loops(op, extents)
    known = [n for n in loops if n is not None]
    if len(known) != len(loops):
        return None
    count = math.prod(known)
    if is_contraction(op) and count:
        for (point, tap), inside in _padded(op, known, extents):
            count = count // (known[point] * known[tap]) * inside
    return count


def _loops(op: ir.Operation, extents: Extents) -> list[int | None]:
    """The extents of a generic's loops."""
    loops: list[int | None] = [None] * len(op.attributes["iterator_types"])
    for number, operand in enumerate(op.operands):
        if not isinstance(operand.type, ir.RankedTensorType):
            continue
        shape = extents.shape(operand)
        for expr, extent in zip(operand_map(op, number).results, shape, strict=True):
            if isinstance(expr, ir.AffineDimExpr) and loops[expr.position] is None:
                loops[expr.position] = extent
    return loops


def _padded(op: ir.Operation, loops: list[int], extents: Extents) -> list[tuple[tuple[int, int], int]]:
    """For every padded dimension that a contraction reads windows of: the loops over its points and its taps, and how
    many pairs of those read inside."""
    iterators = [str(t) for t in op.attributes["iterator_types"]]
    found = []
    for number in range(len(op.operands) - 1):
        producer = defining_op(op.operands[number])
        padding = None if producer is None else padding_of(producer)
        if padding is None:
            continue
        shape = extents.shape(padding.source)
        for w in windows_of(padding, list(operand_map(op, number).results), iterators) or []:
            extent = shape[w.axis]
            if extent is not None:
                inside = sum(
                    0 <= point * w.stride + tap * w.dilation - w.low < extent
                    for point in range(loops[w.point])
                    for tap in range(loops[w.tap])
                )
                found.append(((w.point, w.tap), inside))
    return found
