"""Random numbers, from counter-based generators with explicit seeds."""

from __future__ import annotations

from mlir import ir

from mlc.frontends.common import types
from mlc.frontends.common.builder import Builder, Size, Tensor, split_sizes


def random(b: Builder, kind: str, seed: Tensor, sizes: list[Size], dtype: str) -> Tensor:
    """`mlc.random`: uniform in [0, 1) or standard normal."""
    static, dynamic = split_sizes(sizes)
    result = ir.RankedTensorType.get(static, types.element_type(dtype))
    return b.op("random", [seed, dynamic], [result], static_sizes=static, kind=kind)
