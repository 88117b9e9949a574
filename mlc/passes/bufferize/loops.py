"""Buffers of structured control flow: what branches yield and what loops carry.

A branch hands out the buffer of the branch taken. A loop-carried tensor whose extents never change lives in
one buffer: the initial value is copied in before the loop and every iteration copies its result back at its
end. One whose extents may change from iteration to iteration is passed from hand to hand instead, and its
allocations are marked for the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlir.ir as ir
from mlir.dialects import func, memref

from mlc.passes.bufferize.types import host_type, is_abstract, is_tensor

if TYPE_CHECKING:
    from mlc.passes.bufferize.bufferize_host import HostFunction


_WHOLE = ("memref.expand_shape", "memref.collapse_shape", "memref.cast")


def terminator_of(block: ir.Block) -> ir.Operation:
    """The last operation of `block`."""
    return block.operations[len(block.operations) - 1].operation


def whole_buffer(value: ir.Value) -> ir.Value:
    """The memref that `value` is a view of all elements of."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _WHOLE:
        value = value.owner.operation.operands[0]
    return value


class LoopBufferizer:
    """Translates `scf` operations for a `HostFunction`."""

    def __init__(self, host: HostFunction) -> None:
        self._host = host
        self._fixed: dict[ir.Value, bool] = {}
        self.carried: set[ir.Value] = set()
        """Buffers that loops own: what an iteration makes of their contents may overwrite them."""

    # --- Which carried values keep their extents: asked of the tensors, before anything is translated -----

    def find_carried(self, block: ir.Block) -> None:
        """Decides for every loop-carried tensor below `block` whether its extents are the same in all
        iterations.
        """
        for operation in block.operations:
            op = operation.operation
            if op.name == "scf.for":
                body = op.regions[0].blocks[0]
                self._examine(list(op.operands)[3:], list(body.arguments)[1:], body, list(terminator_of(body).operands))
            elif op.name == "scf.while":
                before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
                condition = list(terminator_of(before).operands)[1:]
                for argument, passed in zip(after.arguments, condition, strict=True):
                    if is_tensor(argument):
                        self._host.sizes.assume_like(argument, passed)
                yielded = list(terminator_of(after).operands)
                self._examine(list(op.operands), list(before.arguments), before, yielded)
                self.find_carried(after)
                continue
            for region in op.regions:
                for nested in region.blocks:
                    self.find_carried(nested)

    def _examine(
        self, initial: list[ir.Value], arguments: list[ir.Value], body: ir.Block, yielded: list[ir.Value]
    ) -> None:
        """By induction: if values with the initial extents come in, do values with the same extents go out?

        The assumption about one value may rest on that about another, so all of them have to hold at once.
        """
        sizes = self._host.sizes
        held = {}
        for first, argument, result in zip(initial, arguments, yielded, strict=True):
            if is_tensor(argument):
                sizes.assume_like(argument, first)
                held[argument] = (first, result)
                self._fixed[argument] = True
        wrong: list[ir.Value] = list(held)
        while wrong:
            wrong = [a for a, (first, result) in held.items() if self._fixed[a] and not self._same(first, result)]
            for argument in wrong:
                self._fixed[argument] = False
                sizes.forget(argument)

    def _same(self, first: ir.Value, result: ir.Value) -> bool:
        sizes = self._host.sizes
        axes = [i for i in range(first.type.rank) if first.type.is_dynamic_dim(i)]
        return all(sizes.dim(first, i) == sizes.dim(result, i) for i in axes)

    # --- Translation --------------------------------------------------------------------------------------

    def branch(self, op: ir.Operation) -> None:
        """`scf.if`, `scf.index_switch`: results are whatever buffer the branch yields."""
        for region in op.regions:
            for block in region.blocks:
                self._host.block(block)
                self._replace_operands(terminator_of(block), 0)
        self._retype(op)

    def for_loop(self, op: ir.Operation) -> None:
        """`scf.for` with carried tensors."""
        body = op.regions[0].blocks[0]
        carried = self._enter(op, 3, list(body.arguments)[1:])
        self._host.block(body)
        self._write_back(terminator_of(body), carried)
        self._retype(op)

    def while_loop(self, op: ir.Operation) -> None:
        """`scf.while` with carried tensors; what the condition hands on is passed as it is."""
        before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
        carried = self._enter(op, 0, list(before.arguments))
        self._host.block(before)
        self._replace_operands(terminator_of(before), 1)
        for argument in after.arguments:
            argument.set_type(host_type(argument.type))
        self._host.block(after)
        self._write_back(terminator_of(after), carried)
        self._retype(op)

    def _enter(self, op: ir.Operation, first: int, arguments: list[ir.Value]) -> dict[int, ir.Value]:
        """Gives carried tensors their buffers; returns those that are written back, by position."""
        carried: dict[int, ir.Value] = {}
        for number, argument in enumerate(arguments):
            if not is_abstract(argument):
                continue
            initial = op.operands[first + number]
            target = host_type(argument.type)
            if self._fixed.get(argument, False):
                buffer = self._host.allocate(initial)
                if not self._is_empty(initial):
                    memref.copy(self._host.buffer(initial), buffer)
                carried[number] = buffer
                self.carried.add(buffer)
            else:
                buffer = self._host.buffer(initial)
            op.operands[first + number] = buffer
            argument.set_type(target)
            if number in carried:
                argument.replace_all_uses_with(buffer)
                # Sizes were derived under the assumption that the argument has the initial extents; the buffer does.
        return carried

    def _write_back(self, terminator: ir.Operation, carried: dict[int, ir.Value]) -> None:
        """Copies the results of an iteration into the loop's buffers; a permutation of them goes through
        copies.
        """
        values = [self._host.buffer(v) if is_abstract(v) else v for v in terminator.operands]
        with ir.InsertionPoint(terminator), terminator.location:
            owned = set(carried.values())
            sources: dict[int, ir.Value] = {}
            for number, buffer in carried.items():
                source = values[number]
                if whole_buffer(source) == buffer:
                    continue
                if len(carried) > 1 and self._may_be(source, owned):
                    source = self._kept(source)
                sources[number] = source
            for number, value in enumerate(values):
                # What is handed on must not be a buffer that is about to be overwritten.
                passed = number not in carried and isinstance(value.type, ir.MemRefType)
                if passed and owned and self._may_be(value, owned):
                    values[number] = self._kept(value)
            for number, source in sources.items():
                memref.copy(source, carried[number])
        for number, value in enumerate(values):
            terminator.operands[number] = carried.get(number, value)

    def _kept(self, value: ir.Value) -> ir.Value:
        """A copy of `value`."""
        target = ir.MemRefType.get(value.type.shape, value.type.element_type)
        copy = memref.AllocOp(target, self._host.extents(value), [], alignment=64).result
        memref.copy(value, copy)
        return copy

    def _may_be(self, value: ir.Value, buffers: set[ir.Value]) -> bool:
        """Whether `value` may be one of `buffers` or a view of one."""
        while True:
            if value in buffers:
                return True
            if isinstance(value.owner, ir.Block):
                return not isinstance(value.owner.owner.opview, func.FuncOp)
            op = value.owner.operation
            if op.name in ("memref.alloc", "memref.get_global", "mlc.buffer"):
                return False
            if not op.name.startswith("memref."):
                return True
            value = op.operands[0]

    def _replace_operands(self, terminator: ir.Operation, first: int) -> None:
        with ir.InsertionPoint(terminator), terminator.location:
            for number in range(first, len(terminator.operands)):
                value = terminator.operands[number]
                if is_abstract(value):
                    terminator.operands[number] = self._host.buffer(value)

    def _retype(self, op: ir.Operation) -> None:
        for result in op.results:
            result.set_type(host_type(result.type))

    @staticmethod
    def _is_empty(value: ir.Value) -> bool:
        return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "tensor.empty"
