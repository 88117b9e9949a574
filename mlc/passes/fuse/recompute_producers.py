"""Give every reader of a cheap elementwise function a copy of it, where that moves less memory than its result would.

```mlir
%e = linalg.generic … exp(%x - %m)                   →   %e0 = linalg.generic … exp(%x - %m)
%s = linalg.generic … sum of %e over the middle      →   %s = linalg.generic … sum of %e0 over the middle
%y = linalg.generic … %e / %s                        →   %e1 = …   %y = linalg.generic … %e1 / %s
```
A reduction and what reads its result over all of its domain are no one kernel, unless they go along rows or columns
(`mlc/passes/fuse/rows.py`): what both read would be written for the one and read by the other. Each copy has one
reader, which fusion lets it join. For GPUs, where a function costs less than a load. What a contraction or a reduction
computes is left alone: functions of it are free at the end of that kernel.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.fusion import is_expensive
from mlc.kernels.common.generics import is_identity, is_reduction
from mlc.kernels.nvidia.column_shares import keeps_columns
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import (
    BlockGraph,
    captured,
    has_identity_output,
    host_blocks,
    inputs_of,
    is_contraction,
    is_elementwise,
)
from mlc.passes.fuse.rows import find_rows

MOST_FUNCTIONS = 2  # exponentials and the like on the way from memory: more of them cost what the loads do
MOST_BEHIND = 16  # operations on that way


class RecomputeProducers(Pass):
    """Give every reader of a cheap elementwise function a copy of it, where that moves less memory."""

    dialects = ("linalg", "tensor", "arith", "math")

    def run(self, root: ir.OpView) -> None:
        for block in host_blocks(root.operation):
            graph = BlockGraph(block)
            find_rows(graph, keeps_columns)
            # From the last one on: what copies read is decided when their readers are known.
            for n in reversed(range(len(graph.ops))):
                if n not in graph.cluster and _is_pointwise(graph.ops[n]):
                    _recompute(graph, graph.ops[n])


def _recompute(graph: BlockGraph, op: ir.Operation) -> None:
    """Copy `op` for all of its readers but one, if that is worth it."""
    readers = _readers(graph, op)
    if readers is None or not any(map(_is_reduced, readers)):
        return
    count, result = len(readers), op.results[0]
    inputs = dict.fromkeys(v for i, v in enumerate(inputs_of(op)) if is_identity(op, i))
    read, written = sum(map(_width, inputs)), _width(result)
    if count * read > read + written + count * written:
        return
    behind = _behind(op)
    if len(behind) > MOST_BEHIND or any(_is_of_a_kernel(graph, p) for p in behind):
        return
    if sum(map(is_expensive, [op, *behind])) > MOST_FUNCTIONS:
        return
    for reader in readers[1:]:
        copy = op.clone(ir.InsertionPoint(reader)).operation
        for number, value in enumerate(inputs_of(reader)):
            if value == result:
                reader.operands[number] = copy.results[0]


def _readers(graph: BlockGraph, op: ir.Operation) -> list[ir.Operation] | None:
    """The operations that read the result of `op`, in program order, if there are several and each could have it
    inside; None otherwise."""
    found: list[ir.Operation] = []
    for use in op.results[0].uses:
        reader = use.owner.operation
        if reader.name != "linalg.generic" or reader.block != op.block or is_contraction(reader):
            return None
        if use.operand_number >= len(inputs_of(reader)) or not is_identity(reader, use.operand_number):
            return None
        known = graph.producer(reader.results[0])
        if known is not None and known in graph.cluster:
            return None
        if reader not in found:
            found.append(reader)
    return found[::-1] if len(found) > 1 else None  # uses are listed last first


def _is_reduced(op: ir.Operation) -> bool:
    """Is `op` a reduction, or is its result for one alone, through functions of their own?"""
    for _ in range(MOST_BEHIND):
        if not _is_pointwise(op):
            break
        readers = [use.owner.operation for use in op.results[0].uses]
        if not readers or any(reader != readers[0] for reader in readers):
            return False
        op = readers[0]
    return op.name == "linalg.generic" and is_reduction(op)


def _is_pointwise(op: ir.Operation) -> bool:
    """Is `op` a function of tensors at the points of its domain?"""
    if op.name != "linalg.generic" or not is_elementwise(op) or len(op.results) != 1 or not has_identity_output(op):
        return False
    names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    return not any(n in ("tensor.extract", "scf.if") for n in names) and len(captured(op)) == len(op.operands)


def _behind(op: ir.Operation) -> list[ir.Operation]:
    """What the elements of `op` are computed from point by point, each once, and what begins that: a kernel's result or
    what is in memory anyway; no further than more than `MOST_BEHIND` of them."""
    found: dict[ir.Value, ir.Operation] = {}
    work = [op]
    while work and len(found) <= MOST_BEHIND:
        now = work.pop()
        if now != op and not _is_pointwise(now):
            continue
        for number, value in enumerate(inputs_of(now)):
            producer = _through_views(value) if is_identity(now, number) else None
            if producer is not None and producer.results[0] not in found:
                found[producer.results[0]] = producer
                work.append(producer)
    return list(found.values())


def _through_views(value: ir.Value) -> ir.Operation | None:
    """What computes `value`, in another shape or its own."""
    op = defining_op(value)
    while op is not None and op.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        op = defining_op(op.operands[0])
    return op


def _is_of_a_kernel(graph: BlockGraph, op: ir.Operation) -> bool:
    """Does `op` end a kernel that functions of its result could be part of?"""
    if op.name != "linalg.generic":
        return False
    number = graph.producer(op.results[0])
    return is_contraction(op) or is_reduction(op) or number is not None and number in graph.cluster


def _width(value: ir.Value) -> int:
    """Bits of an element."""
    element = value.type.element_type
    return element.width if hasattr(element, "width") else 64
