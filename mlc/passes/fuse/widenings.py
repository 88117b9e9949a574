"""Functions that widen integers which are in memory anyway: whoever reads their result computes them.

The codes of a quantized tensor are written for the contraction that multiplies them. What else reads the tensor, a
residual or a pooling, reads it dequantized: computed by the kernel that makes the codes it would be written again, four
times as wide; computed by the reader nothing is.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.fusion import is_expensive
from mlc.kernels.common.generics import is_identity, is_reduction
from mlc.passes.fuse.graph import BlockGraph, inputs_of, is_contraction


def find_widenings(graph: BlockGraph) -> set[int]:
    """The operations from a contraction's integers to the one that another kernel reads, which nobody else does."""
    found: set[int] = set()
    for n, op in enumerate(graph.ops):
        if is_function(op) and _reads_factor(graph, n):
            found |= _chain(graph, n)
    return found


def is_function(op: ir.Operation) -> bool:
    """Does a generic compute its elements from those of one tensor, at the same points?"""
    if op.name != "linalg.generic" or is_reduction(op) or len(op.results) != 1 or is_expensive(op):
        return False
    inputs = inputs_of(op)
    same = [i for i, v in enumerate(inputs) if v.type.shape == op.results[0].type.shape]
    others = [v for v in inputs if v.type.rank]
    return len(same) == len(others) == 1 and is_identity(op, same[0]) and is_identity(op, len(op.operands) - 1)


def _reads_factor(graph: BlockGraph, n: int) -> bool:
    """Does operation `n` read integers that another operation makes and a contraction multiplies?"""
    [value] = [v for v in inputs_of(graph.ops[n]) if v.type.rank]
    producer = graph.producer(value)
    if producer is None or not isinstance(value.type.element_type, ir.IntegerType):
        return False
    return any(is_contraction(graph.ops[u]) for u in graph.users[producer])


def _chain(graph: BlockGraph, n: int) -> set[int]:
    """Operation `n` and the functions of its result alone; nothing unless there is one reader at their end, and what it
    reads is wider than the integers."""
    chain = [n]
    while len(users := graph.users[chain[-1]]) == 1:
        [user] = users
        if not is_function(graph.ops[user]):
            break
        chain.append(user)
    [value] = [v for v in inputs_of(graph.ops[n]) if v.type.rank]
    made = graph.ops[chain[-1]].results[0].type.element_type
    wider = hasattr(made, "width") and made.width > value.type.element_type.width
    return {*chain} if wider and len(graph.users[chain[-1]]) == 1 else set()
