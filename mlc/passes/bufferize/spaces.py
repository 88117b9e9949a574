"""In which memory the buffers of a host function are, once kernels have been placed: the host's or the GPU's.

What touches a buffer decides: a launch on the GPU, or the host. Views, branches and loops hand buffers on, and a plain
copy stays in one memory; only copies that `mlc-insert-transfers` made lead from one to the other.
"""

from __future__ import annotations

import mlir.ir as ir

from mlc.passes.bufferize.liveness import VIEWS
from mlc.passes.walk import operations

HOST, DEVICE = "host", "device"


class SpaceAnalysis:
    """The memories of one bufferized function. Raises ValueError when a buffer would have to be in both."""

    def __init__(self, function: ir.Operation) -> None:
        self._parent: dict[ir.Value, ir.Value] = {}
        self._space: dict[ir.Value, str] = {}
        self.placed = "mlc.placed" in function.attributes  # not for programs without a GPU
        if not self.placed:
            return
        inside = operations(function)
        for op in inside:
            self._join(op)
        for op in inside:
            self._constrain(op)

    def space(self, value: ir.Value) -> str:
        """The memory of the memref `value`; the host's when nothing says otherwise."""
        return self._space.get(self._root(value), HOST)

    def _root(self, value: ir.Value) -> ir.Value:
        while value in self._parent:
            value = self._parent[value]
        return value

    def _same(self, one: ir.Value, other: ir.Value) -> None:
        a, b = self._root(one), self._root(other)
        if a != b and isinstance(one.type, ir.MemRefType):
            self._parent[a] = b

    def _join(self, op: ir.Operation) -> None:
        """Values that are one buffer, or copies of one."""
        if op.name in VIEWS:
            self._same(op.operands[0], op.results[0])
        elif op.name == "arith.select":
            self._same(op.operands[1], op.results[0])
            self._same(op.operands[2], op.results[0])
        elif op.name == "memref.copy" and "mlc.transfer" not in op.attributes:
            self._same(op.operands[0], op.operands[1])
        elif op.name == "scf.for":
            arguments = list(op.regions[0].blocks[0].arguments)[1:]
            for initial, argument, result in zip(list(op.operands)[3:], arguments, op.results, strict=True):
                self._same(initial, argument)
                self._same(argument, result)
        elif op.name == "scf.while":
            for initial, argument in zip(op.operands, op.regions[0].blocks[0].arguments, strict=True):
                self._same(initial, argument)
        elif op.name == "scf.condition":
            parent = op.parent.operation
            after = parent.regions[1].blocks[0].arguments
            for value, argument, result in zip(list(op.operands)[1:], after, parent.results, strict=True):
                self._same(value, argument)
                self._same(argument, result)
        elif op.name == "scf.yield":
            self._join_yield(op, op.parent.operation)

    def _join_yield(self, op: ir.Operation, parent: ir.Operation) -> None:
        targets = parent.regions[0].blocks[0].arguments if parent.name == "scf.while" else parent.results
        for value, target in zip(op.operands, targets, strict=True):
            self._same(value, target)

    def _constrain(self, op: ir.Operation) -> None:
        if op.name == "mlc.launch":
            self._all(op, list(op.operands), _text(op, "mlc.placement"))
        elif op.name == "memref.copy" and "mlc.transfer" in op.attributes:
            to = _text(op, "mlc.transfer")
            self._all(op, [op.operands[1]], to)
            self._all(op, [op.operands[0]], DEVICE if to == HOST else HOST)
        elif op.name in ("memref.load", "memref.store", "memref.get_global"):
            self._all(op, [*op.operands, *op.results], HOST)
        elif op.name == "memref.reshape":
            self._all(op, [op.operands[1]], HOST)
        elif op.name == "mlc.buffer" and ir.StringAttr(op.attributes["where"]).value == "weights":
            self._all(op, list(op.results), _text(op, "mlc.space"))
        elif op.name == "mlc.extern":
            on_device = ir.StringAttr(op.attributes["callee"]).value == "mlc_rt_gpu_constant"
            self._all(op, list(op.operands), HOST)
            self._all(op, list(op.results), DEVICE if on_device else HOST)

    def _all(self, op: ir.Operation, values: list[ir.Value], space: str) -> None:
        for value in values:
            if isinstance(value.type, ir.MemRefType):
                known = self._space.setdefault(self._root(value), space)
                if known != space:
                    where = f"in the {known}'s memory, not the {space}'s"
                    raise ValueError(f"a buffer of {op.name} is {where} (at {op.location})")


def _text(op: ir.Operation, name: str) -> str:
    return ir.StringAttr(op.attributes[name]).value if name in op.attributes else HOST
