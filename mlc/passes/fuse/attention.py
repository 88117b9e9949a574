"""Attention patterns: two contractions and the softmax between them as one kernel (mlc/kernels/common/attention.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mlir import ir

from mlc.kernels.common.attention import Attention, attention_of
from mlc.kernels.common.attention_chain import chain_of
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.fusion import Accepts, Dims
from mlc.kernels.common.positional import is_mask, is_positional, is_sum
from mlc.passes.fuse.graph import BlockGraph, Refusal, is_contraction
from mlc.passes.host.nodes import node_name

Owns = Callable[[Attention], bool]
"""Does a kernel of attention compute for itself what positions decide of its mask?"""


def owns_windows(attention: Attention) -> bool:
    """Where keys in front of a row are hidden, too: then few blocks of keys are left in which the mask is computed, and
    the kernel knows which ones."""
    return bool(chain_of(attention).firsts)


def own_positions(block: ir.Block, accepts: Accepts, owns: Owns) -> None:
    """Give every attention that the template takes its own computation of what positions alone decide, as a causal
    mask, also where a mask of columns takes part: layers share it, and it costs less than reading it."""
    for view in list(block.operations):
        op = view.operation
        attention = attention_of(op) if is_contraction(op) else None
        if attention is None or accepts("producer", attention.scores.op, Dims(op, op, 0)) is not None:
            continue
        if not owns(attention):
            continue
        for reader, _ in attention.path:
            _own_producers(reader)


def _own_producers(reader: ir.Operation) -> None:
    if reader.name != "linalg.generic":
        return
    for number in range(len(reader.operands) - 1):
        producer = defining_op(reader.operands[number])
        if producer is None or not _is_own(producer):
            continue
        if len(list(producer.results[0].uses)) > 1:
            producer = producer.clone(ir.InsertionPoint(reader)).operation
            reader.operands[number] = producer.results[0]
        _own_producers(producer)


def _positions(op: ir.Operation) -> Iterator[ir.Operation]:
    """What `op` is computed from that its kernel computes for itself."""
    for value in list(op.operands)[:-1] if op.name == "linalg.generic" else ():
        producer = defining_op(value)
        if producer is not None and _is_own(producer):
            yield producer
            yield from _positions(producer)


def _is_own(producer: ir.Operation) -> bool:
    """Does each kernel that reads a value compute it for itself?"""
    return is_positional(producer) or is_mask(producer) or is_sum(producer)


def find_attention(
    graph: BlockGraph, accepts: Accepts, owns: Owns
) -> tuple[dict[int, int], dict[int, Refusal]]:
    """Make a cluster of every attention of the block that the template takes; gives {cluster: its last product}, and
    for the last products of others why it does not take them. What positions decide is part of those that `owns` says
    (`own_positions`)."""
    found: dict[int, int] = {}
    refused: dict[int, Refusal] = {}
    for n, op in enumerate(graph.ops):
        attention = attention_of(op) if is_contraction(op) else None
        if attention is None:
            continue
        scores = attention.scores.op
        reason = accepts("producer", scores, Dims(op, op, 0))
        if reason is not None:
            refused[n] = Refusal("producer", node_name(scores.location), f"no attention in one kernel: {reason}")
            continue
        parts = [*attention.members]
        if owns(attention):
            parts += [p for reader, _ in attention.path for p in _positions(reader)]
        members = sorted({i for m in parts if (i := graph.producer(m.results[0])) is not None})
        if not any(m in graph.cluster for m in members) and graph.legal(members):
            found[graph.new_cluster(members, "attention")] = n
    return found, refused
