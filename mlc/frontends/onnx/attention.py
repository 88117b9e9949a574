"""Attention (opset 23 on)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mlc.frontends.common import attention as common
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import linalg, normalization, reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.normalization import heads_first
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.onnx.values import elem_dtype
from mlc.frontends.report import NodeError


class Operands(NamedTuple):
    """Query, key and value as `[batch, heads, seq, dim]`."""

    query: Tensor
    key: Tensor
    value: Tensor


@onnx_op("Attention")
def attention(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """Attention with masks, past keys and values, grouped queries and soft caps; 3-d operands have heads to split."""
    b = g.b
    packed = node[0].rank == 3
    new = _operands(b, node, packed)
    past_key, past_value = node.optional(4), node.optional(5)
    key = new.key if past_key is None else shape.concat(b, [past_key, new.key], 2)
    value = new.value if past_value is None else shape.concat(b, [past_value, new.value], 2)
    whole = Operands(new.query, key, ew.cast(b, value, new.query.dtype))
    past: Size = 0 if past_key is None else b.dim(past_key, 2)
    mask = _mask(b, node, whole, past)
    causal = bool(node.attr("is_causal", 0)) and isinstance(past, int) and past == 0 and node.optional(6) is None
    scores = None
    if node.wants(3) or _low_precision_softmax(node):
        y, scores = _decomposed(b, node, whole, mask, causal)
    else:
        y = common.attention(
            b,
            whole.query,
            whole.key,
            whole.value,
            mask,
            scale=node.attr("scale"),
            causal=causal,
            softcap=float(node.attr("softcap", 0.0)) or None,
        )
    if packed:
        sizes: list[Size] = [b.dim(y, 0), b.dim(y, 2), b.arith("muli", b.dim(y, 1), b.dim(y, 3))]
        y = shape.reshape(b, shape.transpose(b, y, [0, 2, 1, 3]), sizes)
    return [y, key, value, scores]


def _operands(b: Builder, node: Node, packed: bool) -> Operands:
    if not packed:
        return Operands(node[0], node[1], node[2])
    heads, groups = int(node.required("q_num_heads")), int(node.required("kv_num_heads"))
    return Operands(heads_first(b, node[0], heads), heads_first(b, node[1], groups), heads_first(b, node[2], groups))


def _low_precision_softmax(node: Node) -> bool:
    """A softmax precision other than float32 is computed as written."""
    return node.attr("softmax_precision") not in (None, 1) and node[0].dtype != "float64"


def _mask(b: Builder, node: Node, whole: Operands, past: Size) -> Tensor | None:
    """The mask operand, padded to all keys, with the causal triangle, windows and the lengths of the keys worked in."""
    mask = node.optional(3)
    keys = b.dim(whole.key, 2)
    if mask is not None:
        mask = mask if mask.is_bool or mask.is_float else ew.cast(b, mask, whole.query.dtype)
        mask = _padded(b, mask, keys)
    lengths = node.optional(6)
    shifted = lengths is not None or not (isinstance(past, int) and past == 0)
    left, right = int(node.attr("left_window_size", -1)), int(node.attr("right_window_size", -1))
    if node.attr("is_causal", 0) and shifted:
        right = 0
    if left >= 0 or right >= 0:
        columns = shape.iota(b, [1, keys], 1, "int64")
        rows = _positions(b, node, whole)
        if right >= 0:
            last = ew.binary(b, "add", rows, b.constant(np.array(right, np.int64)))
            mask = _both(b, mask, ew.compare(b, "le", columns, last))
        if left >= 0:
            first = ew.binary(b, "sub", rows, b.constant(np.array(left, np.int64)))
            mask = _both(b, mask, ew.compare(b, "ge", columns, first))
    if lengths is not None:
        places = shape.iota(b, [1, 1, 1, keys], 3, "int64")
        limits = shape.reshape(b, ew.cast(b, lengths, "int64"), [b.dim(lengths, 0), 1, 1, 1])
        mask = _both(b, mask, ew.compare(b, "lt", places, limits))
    return mask


def _positions(b: Builder, node: Node, whole: Operands) -> Tensor:
    """The absolute position of each query, `[queries, 1]` or `[batch, 1, queries, 1]`: those before it count too."""
    rows = shape.iota(b, [b.dim(whole.query, 2), 1], 0, "int64")
    past_key, lengths = node.optional(4), node.optional(6)
    if past_key is not None:
        return ew.binary(b, "add", rows, shape.size_tensor(b, past_key, 2))
    if lengths is not None:
        ends = shape.reshape(b, ew.cast(b, lengths, "int64"), [b.dim(lengths, 0), 1, 1, 1])
        return ew.binary(b, "add", rows, ew.binary(b, "sub", ends, shape.size_tensor(b, whole.query, 2)))
    return rows


def _padded(b: Builder, mask: Tensor, keys: Size) -> Tensor:
    """A mask for fewer keys than there are hides the rest."""
    have = b.dim(mask, mask.rank - 1)
    if isinstance(have, int) and isinstance(keys, int) and (have == keys or have == 1):
        return mask
    if not isinstance(have, int) or not isinstance(keys, int):
        return mask
    zeros: list[Size] = [0] * (mask.rank - 1)
    value = b.like(False, mask) if mask.is_bool else b.like(float("-inf"), mask)
    return shape.pad(b, mask, [*zeros, 0], [*zeros, keys - have], value=value)


def _both(b: Builder, mask: Tensor | None, keep: Tensor) -> Tensor:
    """A mask that also hides what `keep` says no to."""
    if mask is None:
        return keep
    if mask.is_bool:
        return ew.binary(b, "and", mask, keep)
    return ew.select(b, keep, mask, b.like(float("-inf"), mask))


def _decomposed(b: Builder, node: Node, whole: Operands, mask: Tensor | None, causal: bool) -> tuple[Tensor, Tensor]:
    """Attention from its parts, for the intermediate result that `qk_matmul_output_mode` chooses."""
    query, key, value = whole
    key, value = (_grouped(b, tensor, query) for tensor in (key, value))
    dim = query.shape[3]
    if dim is None:
        raise NodeError("the size of a head is known only at run time", "fix the input's shape")
    scale = float(node.attr("scale") or dim**-0.5)
    scores = ew.scaled(b, linalg.matmul(b, query, key, transpose_rhs=True), scale)
    stages = [scores]
    softcap = float(node.attr("softcap", 0.0))
    bias = _additive(b, mask, scores)
    if causal:
        rows = shape.iota(b, [b.dim(scores, 2), 1], 0, "int64")
        columns = shape.iota(b, [1, b.dim(scores, 3)], 1, "int64")
        keep = ew.compare(b, "le", columns, rows)
        triangle = ew.select(b, keep, b.like(0.0, scores), b.like(float("-inf"), scores))
        bias = triangle if bias is None else ew.binary(b, "add", bias, triangle)
    if softcap:
        scores = ew.scaled(b, ew.unary(b, "tanh", ew.scaled(b, scores, 1 / softcap)), softcap)
    stages.append(scores)
    if bias is not None:
        scores = ew.binary(b, "add", scores, bias)
    stages.append(scores)
    weights = _probabilities(b, node, scores)
    stages.append(weights)
    mode = int(node.attr("qk_matmul_output_mode", 0))
    return linalg.matmul(b, weights, value), stages[mode]


def _probabilities(b: Builder, node: Node, scores: Tensor) -> Tensor:
    """Softmax in the precision that the node asks for; a row whose every key is masked gives zeros."""
    precision = node.attr("softmax_precision")
    wide = ew.cast(b, scores, elem_dtype(int(precision))) if precision else scores
    top = reduction.reduce(b, "max", wide, [3], True)
    masked = ew.compare(b, "eq", top, b.like(float("-inf"), wide))
    weights = ew.select(b, masked, b.like(0, wide), normalization.softmax(b, wide, 3))
    return ew.cast(b, weights, scores.dtype)


def _additive(b: Builder, mask: Tensor | None, scores: Tensor) -> Tensor | None:
    if mask is None:
        return None
    if not mask.is_bool:
        return ew.cast(b, mask, scores.dtype)
    return ew.select(b, mask, b.like(0.0, scores), b.like(float("-inf"), scores))


def _grouped(b: Builder, x: Tensor, query: Tensor) -> Tensor:
    """Heads repeated so that there are as many as the query has."""
    have, want = x.shape[1], query.shape[1]
    if have is None or want is None or have == want:
        return x
    batch, _, seq, dim = b.dims(x)
    spread = shape.broadcast(b, shape.unsqueeze(b, x, [2]), [batch, have, want // have, seq, dim])
    return shape.reshape(b, spread, [batch, want, seq, dim])


@onnx_op("RotaryEmbedding")
def rotary(g: GraphImporter, node: Node) -> Tensor:
    """Rotates pairs of features by position-dependent angles, whose cosines and sines are inputs."""
    b, x = g.b, node[0]
    packed = x.rank == 3
    if packed:
        x = heads_first(b, x, int(node.required("num_heads")))
    positions = node.optional(3)
    cosine, sine = node[1], node[2]
    if positions is not None:
        cosine, sine = (b.op("gather", [table, positions], axis=0) for table in (cosine, sine))
    partial = int(node.attr("rotary_embedding_dim", 0))
    result = rotated_heads(b, x, cosine, sine, partial, bool(node.attr("interleaved", 0)))
    if not packed:
        return result
    return shape.reshape(b, shape.transpose(b, result, [0, 2, 1, 3]), b.dims(node[0]))


def rotated_heads(b: Builder, x: Tensor, cosine: Tensor, sine: Tensor, turned: int, interleaved: bool) -> Tensor:
    """The first `turned` features (0: all) of `[batch, heads, seq, dim]`, rotated by angles whose cosines and sines are
    `[batch or 1, seq, turned / 2]`."""
    dim = x.shape[3]
    if dim is None:
        raise NodeError("the size of a head is known only at run time", "fix the input's shape")
    cosine, sine = (shape.unsqueeze(b, table, [1]) for table in (cosine, sine))
    turned = turned or dim
    result = _rotated(b, shape.window(b, x, 3, 0, turned), cosine, sine, turned // 2, interleaved)
    if turned == dim:
        return result
    return shape.concat(b, [result, shape.window(b, x, 3, turned, dim - turned)], 3)


def _rotated(b: Builder, x: Tensor, cosine: Tensor, sine: Tensor, half: int, interleaved: bool) -> Tensor:
    cosine, sine = (shape.window(b, table, 3, 0, half) for table in (cosine, sine))
    extents = b.dims(x)
    if interleaved:
        x = shape.reshape(b, x, [*extents[:3], half, 2])
        left, right = (shape.reshape(b, shape.window(b, x, 4, part, 1), [*extents[:3], half]) for part in (0, 1))
    else:
        return _rotated_halves(b, x, cosine, sine, half)
    real = ew.binary(b, "sub", ew.binary(b, "mul", left, cosine), ew.binary(b, "mul", right, sine))
    imaginary = ew.binary(b, "add", ew.binary(b, "mul", left, sine), ew.binary(b, "mul", right, cosine))
    pairs = shape.concat(b, [shape.unsqueeze(b, part, [4]) for part in (real, imaginary)], 4)
    return shape.reshape(b, pairs, extents)


def _rotated_halves(b: Builder, x: Tensor, cosine: Tensor, sine: Tensor, half: int) -> Tensor:
    """The pairs are `x[i]` and `x[i + half]`: `x` times cosines, and its halves in turned order times sines, of which
    the first half is subtracted; so every element of the result is computed in the same way."""
    extents = b.dims(x)
    halves = shape.reshape(b, x, [*extents[:3], 2, half])
    turned = shape.slice_(b, halves, [0, 0, 0, 1, 0], b.dims(halves), [1, 1, 1, -1, 1])
    signs = b.constant(np.array([-1, 1], np.int64).reshape(2, 1))
    turned = ew.binary(b, "mul", turned, ew.cast(b, signs, x.dtype))
    cosine, sine = (shape.unsqueeze(b, table, [3]) for table in (cosine, sine))
    parts = ew.binary(b, "mul", halves, cosine), ew.binary(b, "mul", turned, sine)
    return shape.reshape(b, ew.binary(b, "add", *parts), extents)
