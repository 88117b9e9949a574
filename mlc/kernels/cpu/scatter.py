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
    updates = op.operands[2]
    extents = [frame.extent(updates, i) for i in range(updates.type.rank)]

    def element(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        coords = frame.math.delinearize(variable, extents)
        update(frame, op, output, element_target(frame, op, output, coords), coords)
        return []

    for_loop(frame, 0, frame.math.product(extents), 1, [], element)


def _scatter_nd(frame: Frame, op: ir.Operation, output: Buffer) -> None:
    batch, rest = slices_of(frame, op)

    def one(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        where = frame.math.delinearize(variable, batch)
        target = slice_target(frame, op, output, where)

        def element(inner: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            tail = frame.math.delinearize(inner, rest)
            update(frame, op, output, target.inside(tail), [*where, *tail])
            return []

        for_loop(frame, 0, frame.math.product(rest), 1, [], element)
        return []

    for_loop(frame, 0, frame.math.product(batch), 1, [], one)


def slices_of(frame: Frame, op: ir.Operation) -> tuple[list[Scalar], list[Scalar]]:
    """The extents of an `mlc.scatter_nd`'s slices, how many there are and how large they are."""
    _, indices, updates = op.operands
    batch = [frame.extent(indices, i) for i in range(indices.type.rank - 1)]
    return batch, [frame.extent(updates, i) for i in range(len(batch), updates.type.rank)]


@dataclass(frozen=True)
class Target:
    """Where an update goes: coordinates of the result, are they `valid`, and the index `raw` where they are not."""

    coords: list[Scalar]
    valid: ir.Value
    raw: ir.Value

    def inside(self, tail: Sequence[Scalar]) -> Target:
        """An element of a slice that goes there."""
        return Target([*self.coords, *tail], self.valid, self.raw)


def element_target(frame: Frame, op: ir.Operation, output: Buffer, coords: Sequence[Scalar]) -> Target:
    """Where the update at `coords` of an `mlc.scatter_elements` goes."""
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    raw = Evaluator(frame, 1).tensor(op.operands[1], [Idx(c) for c in coords])
    target: list[Scalar] = list(coords)
    target[axis], valid = _normalise(frame, raw, output.shape[axis])
    return Target(target, valid, raw)


def slice_target(frame: Frame, op: ir.Operation, output: Buffer, where: Sequence[Scalar]) -> Target:
    """Where slice `where` of an `mlc.scatter_nd` goes."""
    indices, ev = op.operands[1], Evaluator(frame, 1)
    target: list[Scalar] = []
    valid = frame.constants.get(ir.IntegerType.get_signless(1), 1)
    worst = frame.constants.get(indices.type.element_type, 0)
    for level in range(indices.type.get_dim_size(indices.type.rank - 1)):
        raw = ev.tensor(indices, [Idx(c) for c in [*where, level]])
        position, inside = _normalise(frame, raw, output.shape[level])
        worst = arith.select(inside, worst, raw)
        valid = arith.andi(valid, inside)
        target.append(position)
    return Target(target, valid, worst)


def _normalise(frame: Frame, raw: ir.Value, extent: Scalar) -> tuple[ir.Value, ir.Value]:
    """A raw index counted from the front, and whether it is in range."""
    c, index = frame.constants, ir.IndexType.get()
    position = arith.index_cast(index, raw)
    negative = arith.cmpi(arith.CmpIPredicate.slt, position, c.index(0))
    position = arith.select(negative, c.index(frame.math.add(position, extent)), position)
    return position, arith.cmpi(arith.CmpIPredicate.ult, position, c.index(extent))


def update(frame: Frame, op: ir.Operation, output: Buffer, target: Target, coords: Sequence[Scalar]) -> None:
    """Write or reduce the update at `coords`; an index out of range sets the error word instead."""
    kind, ev = ir.StringAttr(op.attributes["reduction"]).value, Evaluator(frame, 1)
    point = [Idx(c) for c in target.coords]

    def write() -> None:
        new = Evaluator(frame, 1).tensor(op.operands[2], [Idx(c) for c in coords])
        if kind != "none":
            new = _combine(op, memory.load(frame, ev.idx, output, point, None), new)
        memory.store(frame, ev.idx, output, point, new, None)

    guarded(frame, target, write)


def guarded(frame: Frame, target: Target, write: Callable[[], None]) -> None:
    """`write` where the target is valid, else the error word."""

    def fail() -> None:
        i64, c = ir.IntegerType.get_signless(64), frame.constants
        wide = target.raw if target.raw.type == i64 else arith.extsi(i64, target.raw)
        memref.store(c.get(i64, INDEX_OUT_OF_RANGE), frame.error, [c.index(0)])
        memref.store(wide, frame.error, [c.index(1)])

    if_then(target.valid, write, fail)


def compared(op: ir.Operation) -> str:
    """What a scatter does with an integer and its update: `add`, `mul`, `maxs`, `maxu`, `mins` or `minu`."""
    kind = ir.StringAttr(op.attributes["reduction"]).value
    if kind not in ("max", "min"):
        return kind
    is_unsigned = "unsigned" in op.attributes or op.results[0].type.element_type == ir.IntegerType.get_signless(1)
    return f"{kind}{'u' if is_unsigned else 's'}"


def _combine(op: ir.Operation, old: ir.Value, new: ir.Value) -> ir.Value:
    if isinstance(old.type, ir.FloatType):
        floats = {"add": arith.addf, "mul": arith.mulf, "max": arith.maximumf, "min": arith.minimumf}
        return floats[ir.StringAttr(op.attributes["reduction"]).value](old, new)
    integers = {
        "add": arith.addi, "mul": arith.muli, "maxs": arith.maxsi, "maxu": arith.maxui, "mins": arith.minsi,
        "minu": arith.minui,
    }  # fmt: skip
    return integers[compared(op)](old, new)
