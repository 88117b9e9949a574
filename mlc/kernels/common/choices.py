"""Chains of branches that load from one of several tensors, as concatenations are, as one load of a chosen address.

    %y = scf.if %a { tensor.extract %x0[…] } else { scf.if %b { tensor.extract %x1[…] } else { tensor.extract %x2[…] } }
becomes
    %memory = select %a, %x0, (select %b, %x1, %x2)
    %y = vector.load %memory[select …]

The threads of a warp take all branches that one of them takes, each with a load to wait for. Addresses are a few
instructions, and all threads load at once. Takes branches that compute places and load elements of one type, rounded
ones too that are widened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from mlir import ir
from mlir.dialects import arith, memref

from mlc.kernels.common import memory
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_identity, only_operation
from mlc.kernels.common.index import Idx

if TYPE_CHECKING:
    from mlc.kernels.common.body import Lane
    from mlc.kernels.common.evaluate import Evaluator

Env: TypeAlias = "dict[ir.Value, Lane]"
Emit: TypeAlias = "Callable[[Evaluator, ir.Operation, Env, Sequence[Idx]], None]"
Operand: TypeAlias = "Callable[[Evaluator, Env, ir.Value], Lane]"

FEWEST = 3  # loads, of which two may wait for each other
_COMPUTED = {"arith.addi", "arith.subi", "arith.muli", "arith.constant", "arith.cmpi", "linalg.index"}


@dataclass(frozen=True)
class _Place:
    """Elements that are loaded, in a memory of any size."""

    memory: ir.Value
    where: Idx


@dataclass(frozen=True)
class Choice:
    """Emits chains of branches of one body: `emit` computes an operation of it, `operand` is a value of it."""

    ev: Evaluator
    dims: Sequence[Idx]
    emit: Emit
    operand: Operand

    def load(self, op: ir.Operation, env: Env) -> ir.Value | None:
        """The result of a chain that begins with the branch `op`; None where it is none, or where elements do not lie
        side by side."""
        ev = self.ev
        if not ev.frame.has_warps or ev.mask is not None or len(op.results) != 1:
            return None
        found = [ev.frame.buffers.get(tensor) for tensor in _tensors(op) or []]
        buffers = [buffer for buffer in found if buffer is not None]
        if len(buffers) < max(FEWEST, len(found)) or any(b.element != buffers[0].element for b in buffers):
            return None
        place = self._place(op, env)
        if place is None:
            return None
        buffer = replace(buffers[0], memory=place.memory, strides=[1])
        loaded, wide = memory.load(ev.frame, ev.idx, buffer, [place.where], None), op.results[0].type
        if wide == buffer.element:
            return loaded
        is_vector = isinstance(loaded.type, ir.VectorType)
        return arith.extf(ir.VectorType.get([ev.lanes], wide) if is_vector else wide, loaded)

    def _place(self, op: ir.Operation, env: Env) -> _Place | None:
        """Where the chain that begins with the branch `op` loads."""
        condition = self.operand(self.ev, env, op.operands[0])
        if not isinstance(condition, ir.Value) or isinstance(condition.type, ir.VectorType):
            return None
        sides: list[_Place] = []
        for region in op.regions:
            *body, last, _ = (one.operation for one in region.blocks[0].operations)
            inner = dict(env)
            for one in body:
                self.emit(self.ev, one, inner, self.dims)
            side = self._place(last, inner) if last.name == "scf.if" else self._address(last, inner)
            if side is None or (sides and side.where.step != sides[0].where.step):
                return None
            sides.append(side)
        chosen = arith.select(condition, *(side.memory for side in sides))
        base = arith.select(condition, *(self.ev.frame.constants.index(side.where.base) for side in sides))
        return _Place(chosen, Idx(base, sides[0].where.step, level=max(side.where.level for side in sides)))

    def _address(self, extract: ir.Operation, env: Env) -> _Place | None:
        """Where elements are that lie side by side, or where one is."""
        ev, buffer = self.ev, self.ev.frame.buffers[_stored(extract)]
        found = [self.operand(ev, env, v) for v in list(extract.operands)[1:]]
        coords = [c if isinstance(c, Idx) else Idx(c) for c in found]
        if any(isinstance(c, ir.Value) and isinstance(c.type, ir.VectorType) for c in found):
            return None
        where = memory.address(buffer, coords, ev.idx)
        if where.lanes is not None or where.repeat != 1 or where.step not in (0, 1):
            return None
        any_size = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], buffer.memory.type.element_type)
        return _Place(memref.cast(any_size, buffer.memory), where)


def _tensors(op: ir.Operation) -> list[ir.Value] | None:
    """The tensors that a chain of branches loads from, behind what widens them; None where it does anything else."""
    found: list[ir.Value] = []
    for region in op.regions:
        *body, end = (one.operation for one in region.blocks[0].operations)
        if not body or len(end.operands) != 1 or defining_op(end.operands[0]) != body[-1]:
            return None
        last = body[-1]
        if any(one.name not in _COMPUTED for one in body[:-1]):
            return None
        inner = _tensors(last) if last.name == "scf.if" else [_stored(last)] if last.name == "tensor.extract" else None
        if inner is None:
            return None
        found += inner
    return found


def _stored(extract: ir.Operation) -> ir.Value:
    """The tensor of whose elements those that are loaded are, widened or not."""
    value = extract.operands[0]
    op = defining_op(value)
    if only_operation(op, "arith.extf") is None or op is None:
        return value
    return op.operands[0] if is_identity(op, 0) and is_identity(op, 1) else value
