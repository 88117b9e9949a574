"""`mlc.nonzero`: coordinates of the non-zero elements, in row-major order.

One work item walks the input once; the number of columns was counted by the host (`mlc-count-nonzero`), so the
destination is exactly full. ONNX operator NonZero; NumPy `nonzero`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, func, scf

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop
from mlc.kernels.common.index import Idx


@dataclass(frozen=True)
class NonzeroSchedule:
    """No parameters."""


def expand(source: KernelSource, schedule: NonzeroSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    op = defining_op(source.results[0])
    assert op is not None
    frame = Frame(source)
    with frame.body():
        _walk(frame, op.operands[0], source.destinations[0])
        func.ReturnOp([])
    grid = Frame(source, grid=True)
    with grid.body():
        func.ReturnOp([grid.constants.index(1)])
    return [frame, grid]


def _walk(frame: Frame, tensor: ir.Value, destination: ir.Value) -> None:
    ev = Evaluator(frame, 1)
    rank = tensor.type.rank
    extents = [frame.extent(tensor, i) for i in range(rank)]
    total = frame.math.product(extents)
    output = frame.buffers[destination]
    i64 = ir.IntegerType.get_signless(64)

    def element(variable: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        coords = frame.math.delinearize(variable, extents)
        scope = ev.child()
        value = scope.tensor(tensor, [Idx(c) for c in coords])
        found = _is_nonzero(frame, value)
        branch = scf.IfOp(found, [ir.IndexType.get()], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            for axis, coord in enumerate(coords):
                stored = arith.index_cast(i64, frame.constants.index(coord))
                memory.store(frame, scope.idx, output, [Idx(axis), Idx(carried[0])], stored, None)
            scf.YieldOp([frame.constants.index(frame.math.add(carried[0], 1))])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([carried[0]])
        return list(branch.results)

    # The grid is one item; running it under begin/end keeps the calling convention uniform.
    def item(_: ir.Value, __: list[ir.Value]) -> list[ir.Value]:
        for_loop(frame, 0, total, 1, [frame.constants.index(0)], element)
        return []

    for_loop(frame, frame.begin, frame.end, 1, [], item)


def _is_nonzero(frame: Frame, value: ir.Value) -> ir.Value:
    """`value != 0`; a NaN is not zero."""
    if isinstance(value.type, ir.FloatType):
        return arith.cmpf(arith.CmpFPredicate.UNE, value, frame.constants.get(value.type, 0.0))
    if value.type.width == 1:
        return value
    return arith.cmpi(arith.CmpIPredicate.ne, value, frame.constants.get(value.type, 0))
