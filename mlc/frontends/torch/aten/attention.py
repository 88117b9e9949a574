"""Attention."""

from __future__ import annotations

import math

from mlc.frontends.common import attention, elementwise, linalg, normalization, reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
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
    if mask is not None and not mask.is_float and not mask.is_bool:
        mask = elementwise.cast(b, mask, "bool")
    batches = _batch_extents(b, [query, key, value])
    if query.rank != 4 or batches is not None:
        query, key, value = (_of_rank_4(b, tensor, batches or []) for tensor in (query, key, value))
        if mask is not None and mask.rank > 3 and batches is not None:
            mask = _of_rank_4(b, mask, batches)
    call.get("enable_gqa")  # the heads say it
    scale = call.get("scale")
    result = attention.attention(
        b, query, key, value, mask, scale=None if scale is None else float(scale), causal=bool(call.get("is_causal"))
    )
    if batches is not None:
        return shape.reshape(b, result, [*batches, *b.dims(result)[1:]])
    rank = call.tensor(0).rank
    return shape.squeeze(b, result, list(range(4 - rank))) if rank < 4 else result


def _batch_extents(b: Builder, tensors: list[Tensor]) -> list[Size] | None:
    """The common extents in front of the last three dimensions, where tensors have more than one of them or differ."""
    leads = [b.dims(tensor)[:-3] for tensor in tensors]
    count = max(len(lead) for lead in leads)
    if count < 2 and all(len(lead) == count and (not lead or _agree(lead[0], leads[0][0])) for lead in leads):
        return None
    return shape.broadcast_sizes(b, leads)


def _agree(lhs: Size, rhs: Size) -> bool:
    """Whether two extents are equal, as far as is known."""
    return lhs == rhs or not (isinstance(lhs, int) and isinstance(rhs, int))


def _of_rank_4(b: Builder, x: Tensor, batches: list[Size]) -> Tensor:
    """`x [..., heads, rows, columns]` with its dimensions in front as one, after they are broadcast to `batches`."""
    x = shape.unsqueeze(b, x, list(range(3 - x.rank))) if x.rank < 3 else x
    last = b.dims(x)[-3:]
    wide = shape.broadcast(b, x, [*batches, *last])
    return shape.reshape(b, wide, [b.product(batches), *last])


@aten("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(call: Call) -> list[Tensor | None]:
    """Attention as PyTorch's kernel for CPUs is called; its second result is for training."""
    return [scaled_dot_product_attention(call), None]


@aten("_native_multi_head_attention")
def multi_head_attention(call: Call) -> list[Tensor | None]:
    """`nn.MultiheadAttention` of one tensor in evaluation mode, `[batch, seq, width]`, and the weights if wanted:
    `[batch, seq, seq]`, or for each head `[batch, heads, seq, seq]`."""
    query, key, value = (call.tensor(i) for i in range(3))
    if call.get("need_weights"):
        result, weights = _weighed(call, *_heads_of(call, query, key, value))
        if call.get("average_attn_weights"):
            weights = reduction.reduce(call.b, "mean", weights, [1], False)
        return [_joined(call, result), weights]
    result = _attended(call, query, key, value)
    return [_joined(call, result), None]


@aten("_transformer_encoder_layer_fwd")
def transformer_encoder_layer(call: Call) -> Tensor:
    """`nn.TransformerEncoderLayer` in evaluation mode, `[batch, seq, width]`: attention and a perceptron, each added to
    what it reads, with normalization in front of it or behind the sum."""
    x = call.tensor(0)
    first, epsilon = bool(call.get("norm_first")), float(call.get("eps"))

    def normalized(x: Tensor, number: int) -> Tensor:
        weight, bias = call.get(f"norm_weight_{number}"), call.get(f"norm_bias_{number}")
        return normalization.layer_norm(call.b, x, weight, bias, x.rank - 1, epsilon)

    for number, part in ((1, _self_attention), (2, _perceptron)):
        added = elementwise.binary(call.b, "add", x, part(call, normalized(x, number) if first else x))
        x = added if first else normalized(added, number)
    return x


def _self_attention(call: Call, x: Tensor) -> Tensor:
    return _joined(call, _attended(call, x, x, x))


def _attended(call: Call, *tensors: Tensor) -> Tensor:
    query, key, value = _heads_of(call, *tensors)
    return attention.attention(call.b, query, key, value, _kept(call))


def _perceptron(call: Call, x: Tensor) -> Tensor:
    hidden = _linear(call.b, x, call.get("ffn_weight_1"), call.get("ffn_bias_1"))
    hidden = elementwise.activation(call.b, "gelu" if call.get("use_gelu") else "relu", hidden)
    return _linear(call.b, hidden, call.get("ffn_weight_2"), call.get("ffn_bias_2"))


def _linear(b: Builder, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return elementwise.binary(b, "add", linalg.matmul(b, x, weight, transpose_rhs=True), bias)


def _head_count(call: Call) -> int:
    name = "num_heads" if "num_heads" in call.names else "num_head"
    return call.int(call.names.index(name))


def _heads_of(call: Call, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The projections of three tensors `[batch, seq, width]` as `[batch, heads, seq, dim]`."""
    b, width, heads = call.b, call.int(call.names.index("embed_dim")), _head_count(call)
    weight, bias = call.get("qkv_weight"), call.get("qkv_bias")
    if query.value == key.value == value.value:
        parts = shape.split(b, _linear(b, query, weight, bias), 2, [width] * 3)
    else:
        shares = zip(shape.split(b, weight, 0, [width] * 3), shape.split(b, bias, 0, [width] * 3), strict=True)
        parts = [_linear(b, x, *share) for x, share in zip((query, key, value), shares, strict=True)]
    split = [shape.reshape(b, part, [*b.dims(part)[:2], heads, width // heads]) for part in parts]
    first, second, third = (shape.transpose(b, part, [0, 2, 1, 3]) for part in split)
    return first, second, third


def _joined(call: Call, heads: Tensor) -> Tensor:
    """The output projection of `[batch, heads, seq, dim]`."""
    b, width = call.b, call.int(call.names.index("embed_dim"))
    rows = shape.transpose(b, heads, [0, 2, 1, 3])
    rows = shape.reshape(b, rows, [*b.dims(rows)[:2], width])
    return _linear(b, rows, call.get("proj_weight"), call.get("proj_bias"))


def _kept(call: Call) -> Tensor | None:
    """Which keys count, as `mlc.attention` wants it. The operator's mask says which do not (a float one by what is not
    0): `[seq, seq]` with type 0, `[batch, seq]` with type 1, `[batch, heads, seq, seq]` with type 2."""
    mask, kind = call.get("mask"), call.get("mask_type")
    if mask is None:
        return None
    kept = elementwise.unary(call.b, "not", elementwise.cast(call.b, mask, "bool"))
    axes = {0: [0, 1], 1: [1, 2], 2: []}.get(2 if kind is None else int(kind))
    if axes is None or kept.rank + len(axes) != 4:
        raise NodeError(f"a mask of type {kind} and rank {kept.rank}", "use a mask of keys, or of queries and keys")
    return shape.unsqueeze(call.b, kept, axes) if axes else kept


def _weighed(call: Call, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Attention, and its weights `[batch, heads, seq, seq]`."""
    b, width = call.b, call.int(call.names.index("embed_dim"))
    logits = linalg.matmul(b, query, key, transpose_rhs=True)
    logits = elementwise.binary(b, "mul", logits, b.like(1 / math.sqrt(width // _head_count(call)), logits))
    kept = _kept(call)
    if kept is not None:
        logits = elementwise.select(b, kept, logits, b.like(-math.inf, logits))
    weights = normalization.softmax(b, logits, 3, False)
    return linalg.matmul(b, weights, value), weights
