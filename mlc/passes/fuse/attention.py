"""Attention patterns: two contractions and the softmax between them as one kernel (mlc/kernels/common/attention.py)."""

from __future__ import annotations

from mlc.kernels.common.attention import attention_of
from mlc.kernels.common.fusion import Accepts, Dims
from mlc.passes.fuse.graph import BlockGraph, is_contraction


def find_attention(graph: BlockGraph, accepts: Accepts) -> dict[int, int]:
    """Make a cluster of every attention of the block that the template takes; gives {cluster: its last product}."""
    found: dict[int, int] = {}
    for n, op in enumerate(graph.ops):
        attention = attention_of(op) if is_contraction(op) else None
        if attention is None or accepts("producer", attention.scores.op, Dims(op, op, 0)) is not None:
            continue
        members = sorted(i for m in attention.members if (i := graph.producer(m.results[0])) is not None)
        if not any(m in graph.cluster for m in members) and graph.legal(members):
            found[graph.new_cluster(members, "attention")] = n
    return found
