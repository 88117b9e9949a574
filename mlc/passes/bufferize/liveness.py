"""When the buffers of a host function are in use.

Operations are numbered in program order; an operation with regions spans the numbers of everything inside
it. A buffer lives from its first to its last use, seen from the outermost block in which it (or a value
that may be it) is defined: what a loop uses and did not make lives for the whole loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import mlir.ir as ir

VIEWS = {
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.reshape",
    "memref.subview",
}


@dataclass
class Lifetime:
    """An allocation and the range of operation numbers, both ends included, in which its contents matter."""

    alloc: ir.Operation
    order: int
    depth: int  # how many operations are around it
    first: int = -1
    last: int = -1
    carried: bool = False  # handed from one iteration of a loop to the next

    def overlaps(self, other: Lifetime) -> bool:
        """Whether both buffers are in use at some point."""
        return self.first <= other.last and other.first <= self.last


class Liveness:
    """Lifetimes and aliases of one host function that has been bufferized."""

    def __init__(self, function: ir.Operation) -> None:
        self.lifetimes: list[Lifetime] = []
        self._roots: dict[ir.Value, frozenset[int]] = {}
        self._spans: dict[int, tuple[int, int]] = {}
        self._uses: dict[int, list[tuple[int, ...]]] = {}
        self._depths: dict[int, int] = {}
        self._counter = 0
        self.touched: set[int] = set()  # allocations that something reads or writes; the others are empty
        self._visit(function.regions[0].blocks[0], ())
        for number, lifetime in enumerate(self.lifetimes):
            self._close(number, lifetime)

    def roots(self, value: ir.Value) -> frozenset[int]:
        """The allocations (positions in `lifetimes`) that the memref `value` may be a view of."""
        return self._roots.get(value, frozenset())

    def _define(self, value: ir.Value, roots: frozenset[int], depth: int) -> None:
        if roots:
            self._roots[value] = self._roots.get(value, frozenset()) | roots
            for root in roots:
                self._depths[root] = min(self._depths[root], depth)

    def _visit(self, block: ir.Block, path: tuple[int, ...]) -> None:
        for operation in block.operations:
            op = operation.operation
            here = self._counter = self._counter + 1
            nested = (*path, here)
            if op.name == "memref.alloc":
                number = len(self.lifetimes)
                self.lifetimes.append(Lifetime(op, here, len(path)))
                self._depths[number] = len(path)
                self._roots[op.results[0]] = frozenset({number})
            self._enter(op, len(path))
            for region in op.regions:
                for inner in region.blocks:
                    self._visit(inner, nested)
            self._leave(op, len(path))
            touches = op.name not in VIEWS and op.name != "func.return"
            for value in op.operands:
                for root in self.roots(value):
                    if touches:
                        self.touched.add(root)
                    self._uses.setdefault(root, []).append(nested)
            self._counter += 1
            self._spans[here] = (here, self._counter)

    def _enter(self, op: ir.Operation, depth: int) -> None:
        """Region arguments are what the operation is given."""
        if op.name == "scf.for":
            for argument, value in zip(list(op.regions[0].blocks[0].arguments)[1:], list(op.operands)[3:], strict=True):
                self._define(argument, self.roots(value), depth + 1)
        elif op.name == "scf.while":
            for argument, value in zip(op.regions[0].blocks[0].arguments, op.operands, strict=True):
                self._define(argument, self.roots(value), depth + 1)

    def _leave(self, op: ir.Operation, depth: int) -> None:
        """Results are the operand of a view, or what the regions yield."""
        if op.name in VIEWS:
            self._define(op.results[0], self.roots(op.operands[0]), depth)
        elif op.name == "arith.select":
            self._define(op.results[0], self.roots(op.operands[1]) | self.roots(op.operands[2]), depth)
        elif op.name in ("scf.if", "scf.index_switch"):
            for region in op.regions:
                for block in region.blocks:
                    self._flow(list(_terminator(block).operands), list(op.results), depth)
        elif op.name == "scf.for":
            body = op.regions[0].blocks[0]
            yielded = list(_terminator(body).operands)
            self._flow(list(op.operands)[3:], list(op.results), depth)
            self._flow(yielded, list(op.results), depth)
            self._carry(yielded, list(body.arguments)[1:], depth)
        elif op.name == "scf.while":
            before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
            self._flow(list(_terminator(before).operands)[1:], list(op.results), depth)
            self._carry(list(_terminator(after).operands), list(before.arguments), depth)
        elif op.name == "scf.condition":
            after = op.parent.operation.regions[1].blocks[0]
            self._flow(list(op.operands)[1:], list(after.arguments), depth)

    def _flow(self, sources: list[ir.Value], targets: list[ir.Value], depth: int) -> None:
        for source, target in zip(sources, targets, strict=True):
            self._define(target, self.roots(source), depth)

    def _carry(self, yielded: list[ir.Value], arguments: list[ir.Value], depth: int) -> None:
        """What an iteration makes and the next one reads must not be overwritten by the next one's own copy
        of it.
        """
        for value, argument in zip(yielded, arguments, strict=True):
            for root in self.roots(value):
                if self.lifetimes[root].depth > depth and root not in self.roots(argument):
                    self.lifetimes[root].carried = True
            self._define(argument, self.roots(value), depth)

    def _close(self, number: int, lifetime: Lifetime) -> None:
        depth = self._depths[number]
        for path in self._uses.get(number, []):
            first, last = self._spans[path[min(depth, len(path) - 1)]]
            lifetime.first = first if lifetime.first < 0 else min(lifetime.first, first)
            lifetime.last = max(lifetime.last, last)


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation
