"""`mlc.scan`: running sums and products along an axis; one work item per line. ONNX operators CumSum, CumProd."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items


@dataclass(frozen=True)
class ScanSchedule:
    """No parameters."""


def expand(source: KernelSource, schedule: ScanSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    op = defining_op(source.results[0])
    assert op is not None
    tensor, destination = op.operands[0], source.destinations[0]
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    kind = ir.StringAttr(op.attributes["kind"]).value
    exclusive, reverse = (ir.BoolAttr(op.attributes[n]).value for n in ("exclusive", "reverse"))
    rank = tensor.type.rank
    element = tensor.type.element_type

    def items(frame: Frame) -> list[Scalar]:
        return [frame.extent(tensor, i) for i in range(rank) if i != axis]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        ev = Evaluator(frame, 1)
        extent = frame.extent(tensor, axis)

        def step(variable: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            at: Scalar = variable
            if reverse:
                at = frame.math.sub(frame.math.sub(extent, 1), variable)
            point = [Idx(c) for c in [*coords[:axis], at, *coords[axis:]]]
            scope = ev.child()
            total = _combine(kind, carried[0], scope.tensor(tensor, point))
            result = carried[0] if exclusive else total
            memory.store(frame, scope.idx, frame.buffers[destination], point, result, None)
            return [total]

        for_loop(frame, 0, extent, 1, [_identity(frame, kind, element)], step)

    return emit_items(source, items, body)


def _identity(frame: Frame, kind: str, element: ir.Type) -> ir.Value:
    is_float = isinstance(element, ir.FloatType)
    if kind in ("sum", "prod"):
        value: int | float = 0 if kind == "sum" else 1
        return frame.constants.get(element, float(value) if is_float else value)
    sign = -1 if kind == "max" else 1
    if is_float:
        return frame.constants.get(element, sign * float("inf"))
    limit = 1 << (ir.IntegerType(element).width - 1)
    return frame.constants.get(element, -limit if kind == "max" else limit - 1)


def _combine(kind: str, a: ir.Value, b: ir.Value) -> ir.Value:
    floats = {"sum": arith.addf, "prod": arith.mulf, "max": arith.maximumf, "min": arith.minimumf}
    integers = {"sum": arith.addi, "prod": arith.muli, "max": arith.maxsi, "min": arith.minsi}
    return (floats if isinstance(a.type, ir.FloatType) else integers)[kind](a, b)
