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
