"""Blocks of operations, without what iterating over regions costs."""

from __future__ import annotations

from mlir import ir


def blocks_of(op: ir.Operation) -> list[ir.Block]:
    """The blocks of all regions of `op`, in order.

    The bindings end an iteration by a C++ exception, which takes twenty times as long as asking for a length: most
    operations have no region, and those of kernels one block in each.
    """
    regions = op.regions
    count = len(regions)
    if not count:
        return []
    found: list[ir.Block] = []
    for i in range(count):
        blocks = regions[i].blocks
        found += [blocks[j] for j in range(len(blocks))]
    return found


def read_inside(op: ir.Operation) -> list[ir.Value]:
    """What `op` and everything inside of its regions read."""
    found = list(op.operands)
    for block in blocks_of(op):
        for view in block.operations:
            found += read_inside(view.operation)
    return found


def ancestor_in(block: ir.Block, op: ir.Operation) -> ir.Operation:
    """The operation of `block` that is `op`, or that has it inside of its regions."""
    while op.block != block:
        op = op.parent.operation
    return op
