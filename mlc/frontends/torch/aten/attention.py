"""Attention."""

from __future__ import annotations

from mlc.frontends.common import attention, elementwise, shape
from mlc.frontends.common.builder import Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, aten


@aten("scaled_dot_product_attention")
def scaled_dot_product_attention(call: Call) -> Tensor:
    """`softmax(q kᵀ scale + mask) v` on `[…, heads, seq, dim]`."""
    if call.get("dropout_p", 0.0):
        raise NodeError("attention with dropout", "call model.eval() before tracing")
    b = call.b
    query, key, value = (call.tensor(i) for i in range(3))
    mask = call.get("attn_mask")
    missing = list(range(4 - query.rank))
    lifted = query.rank in (2, 3)
    if lifted:
        query, key, value = (shape.unsqueeze(b, t, missing) for t in (query, key, value))
    if query.rank != 4:
        raise NodeError(f"attention on operands of rank {query.rank}", "use rank 2, 3 or 4")
    if mask is not None and not mask.is_float and not mask.is_bool:
        mask = elementwise.cast(b, mask, "bool")
    call.get("enable_gqa")  # the heads say it
    scale = call.get("scale")
    result = attention.attention(
        b, query, key, value, mask, scale=None if scale is None else float(scale), causal=bool(call.get("is_causal"))
    )
    return shape.squeeze(b, result, missing) if lifted else result


@aten("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(call: Call) -> list[Tensor | None]:
    """Attention as PyTorch's kernel for CPUs is called; its second result is for training."""
    return [scaled_dot_product_attention(call), None]
