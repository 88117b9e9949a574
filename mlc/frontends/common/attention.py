"""Attention."""

from __future__ import annotations

from mlc.frontends.common.builder import Builder, Tensor


def attention(
    b: Builder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
    causal: bool = False,
    softcap: float | None = None,
) -> Tensor:
    """`mlc.attention` on `[batch, heads, seq, dim]`; a boolean mask keeps, a float one is added."""
    return b.op("attention", [query, key, value, mask], scale=scale, causal=causal, softcap=softcap)
