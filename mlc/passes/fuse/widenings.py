"""Functions that widen what they read, at the end of a kernel: whoever reads their result computes them.

A quantized tensor that is read dequantized, a residual or what is pooled, would be written four times as wide as its
codes, which are often in memory as well, for the contraction that multiplies them.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.fusion import is_expensive
from mlc.kernels.common.generics import is_identity, is_reduction
from mlc.passes.fuse.graph import BlockGraph, inputs_of


def find_widenings(graph: BlockGraph) -> list[tuple[list[int], int]]:
    """Chains of functions at the end of a kernel that make wider elements of what it has computed before, and the other
    kernel that alone reads their results."""
    found = []
    for n in range(len(graph.ops)):
        reader = _only_reader(graph, n)
        chain = [] if reader is None else _chain(graph, n)
        if reader is not None and chain:
            found.append((chain, reader))
    return found


def _only_reader(graph: BlockGraph, n: int) -> int | None:
    """The cluster that reads the result of operation `n`, where that is another one and the only one."""
    own, readers = graph.cluster.get(n), {graph.cluster.get(u) for u in graph.users[n]}
    if own is None or len(readers) != 1 or own in readers or not _is_function(graph.ops[n]):
        return None
    return readers.pop()


def _chain(graph: BlockGraph, n: int) -> list[int]:
    """Operation `n` and the functions of its kernel that it is computed by, back to the narrowest elements; nothing
    where those in front of it are as wide."""
    chain: list[int] = []
    best, least = 0, _width(graph.ops[n].results[0])
    while _is_function(graph.ops[n]):
        [value] = [v for v in inputs_of(graph.ops[n]) if v.type.rank]
        producer = graph.producer(value)
        if producer is None or graph.cluster.get(producer) != graph.cluster[n]:
            break
        chain.append(n)
        if _width(value) < least:
            best, least = len(chain), _width(value)
        if graph.users[producer] != [n]:
            break
        n = producer
    return chain[best - 1 :: -1] if best else []


def _is_function(op: ir.Operation) -> bool:
    """Does a generic compute its elements from those of one tensor, at the same points, and numbers?"""
    if op.name != "linalg.generic" or is_reduction(op) or len(op.results) != 1 or is_expensive(op):
        return False
    ranked = [i for i, v in enumerate(inputs_of(op)) if v.type.rank]
    if len(ranked) != 1 or inputs_of(op)[ranked[0]].type.shape != op.results[0].type.shape:
        return False
    return is_identity(op, ranked[0]) and is_identity(op, len(op.operands) - 1)


def _width(value: ir.Value) -> int:
    """Bits of an element; of what is no number more than of any."""
    return int(getattr(value.type.element_type, "width", 1 << 10))
