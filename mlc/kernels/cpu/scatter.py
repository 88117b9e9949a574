"""`mlc.scatter_elements` and `mlc.scatter_nd`: a copy of the input with updates written or reduced into it; where the
input is the destination itself (`mlc.inout`), nothing is copied.

One work item, updates in order, so that duplicate indices have the result of the source framework's loop and the sum
of several updates does not depend on threads. ONNX operators ScatterElements and ScatterND.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref

from mlc.kernels.common import memory
from mlc.kernels.common.body import INDEX_OUT_OF_RANGE
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, defining_op, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items


@dataclass(frozen=True)
class ScatterSchedule:
    """No parameters."""


def expand(source: KernelSource, schedule: ScatterSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    op = defining_op(source.results[0])
    assert op is not None
    data = op.operands[0]

    def body(frame: Frame, _: list[Scalar]) -> None:
        output = frame.buffers[source.destinations[0]]
        if data != source.destinations[0]:  # else it is updated in place
            _copy(frame, data, output)
        if op.name == "mlc.scatter_elements":
            _scatter_elements(frame, op, output)
        else:
            _scatter_nd(frame, op, output)

    return emit_items(source, lambda frame: [], body)


def _copy(frame: Frame, data: ir.Value, output: Buffer) -> None:
    extents = [frame.extent(data, i) for i in range(data.type.rank)]

    def element(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        point = [Idx(c) for c in frame.math.delinearize(variable, extents)]
        ev = Evaluator(frame, 1)
        memory.store(frame, ev.idx, output, point, ev.tensor(data, point), None)
        return []

    for_loop(frame, 0, frame.math.product(extents), 1, [], element)


def _scatter_elements(frame: Frame, op: ir.Operation, output: Buffer) -> None:
    _, indices, updates = op.operands
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    extents = [frame.extent(updates, i) for i in range(updates.type.rank)]

    def element(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        coords = frame.math.delinearize(variable, extents)
        ev = Evaluator(frame, 1)
        point = [Idx(c) for c in coords]
        target: list[Scalar] = list(coords)
        raw = ev.tensor(indices, point)
        target[axis], valid = _normalise(frame, raw, output.shape[axis])
        _update(frame, op, output, target, valid, raw, lambda: Evaluator(frame, 1).tensor(updates, point))
        return []

    for_loop(frame, 0, frame.math.product(extents), 1, [], element)


def _scatter_nd(frame: Frame, op: ir.Operation, output: Buffer) -> None:
    _, indices, updates = op.operands
    depth = indices.type.get_dim_size(indices.type.rank - 1)
    batch = [frame.extent(indices, i) for i in range(indices.type.rank - 1)]
    rest = [frame.extent(updates, i) for i in range(len(batch), updates.type.rank)]

    def one(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        where = frame.math.delinearize(variable, batch)
        ev = Evaluator(frame, 1)
        target: list[Scalar] = []
        valid = frame.constants.get(ir.IntegerType.get_signless(1), 1)
        worst = frame.constants.get(indices.type.element_type, 0)
        for level in range(depth):
            raw = ev.tensor(indices, [Idx(c) for c in [*where, level]])
            position, inside = _normalise(frame, raw, output.shape[level])
            worst = arith.select(inside, worst, raw)
            valid = arith.andi(valid, inside)
            target.append(position)

        def element(inner: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            tail = frame.math.delinearize(inner, rest)
            point = [Idx(c) for c in [*where, *tail]]
            _update(
                frame, op, output, [*target, *tail], valid, worst, lambda: Evaluator(frame, 1).tensor(updates, point)
            )
            return []

        for_loop(frame, 0, frame.math.product(rest), 1, [], element)
        return []

    for_loop(frame, 0, frame.math.product(batch), 1, [], one)


def _normalise(frame: Frame, raw: ir.Value, extent: Scalar) -> tuple[ir.Value, ir.Value]:
    """A raw index counted from the front, and whether it is in range."""
    c, index = frame.constants, ir.IndexType.get()
    position = arith.index_cast(index, raw)
    negative = arith.cmpi(arith.CmpIPredicate.slt, position, c.index(0))
    position = arith.select(negative, c.index(frame.math.add(position, extent)), position)
    return position, arith.cmpi(arith.CmpIPredicate.ult, position, c.index(extent))


def _update(
    frame: Frame,
    op: ir.Operation,
    output: Buffer,
    target: Sequence[Scalar],
    valid: ir.Value,
    raw: ir.Value,
    value: Callable[[], ir.Value],
) -> None:
    """Write or reduce one element; an index out of range sets the error word instead."""
    kind = ir.StringAttr(op.attributes["reduction"]).value
    idx = Evaluator(frame, 1).idx
    point = [Idx(c) for c in target]

    def write() -> None:
        new = value()
        if kind != "none":
            new = _combine(kind, memory.load(frame, idx, output, point, None), new)
        memory.store(frame, idx, output, point, new, None)

    def fail() -> None:
        i64, c = ir.IntegerType.get_signless(64), frame.constants
        wide = raw if raw.type == i64 else arith.extsi(i64, raw)
        memref.store(c.get(i64, INDEX_OUT_OF_RANGE), frame.error, [c.index(0)])
        memref.store(wide, frame.error, [c.index(1)])

    if_then(valid, write, fail)


def _combine(kind: str, old: ir.Value, new: ir.Value) -> ir.Value:
    floats = {"add": arith.addf, "mul": arith.mulf, "max": arith.maximumf, "min": arith.minimumf}
    integers = {"add": arith.addi, "mul": arith.muli, "max": arith.maxsi, "min": arith.minsi}
    return (floats if isinstance(old.type, ir.FloatType) else integers)[kind](old, new)
