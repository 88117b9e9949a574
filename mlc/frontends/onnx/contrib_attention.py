"""Attention as onnxruntime's transformer optimizer and model builder write it (domain `com.microsoft`).

Tensors are brought to `[batch, heads, sequence, size]`; masks become one sum that is added to the scores. What is
cached of earlier steps has that form too. (onnxruntime, docs/ContribOperators.md.)
"""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import attention as common
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, linalg, normalization, reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.onnx.attention import rotated_heads
from mlc.frontends.onnx.contrib_elementwise import DOMAIN, with_bias
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.normalization import heads_first
from mlc.frontends.onnx.quantization import dequantized
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

NOTHING = float("-inf")


def joined_heads(b: Builder, x: Tensor) -> Tensor:
    """`[batch, heads, sequence, size]` as `[batch, sequence, heads * size]`."""
    sizes: list[Size] = [b.dim(x, 0), b.dim(x, 2), b.arith("muli", b.dim(x, 1), b.dim(x, 3))]
    return shape.reshape(b, shape.transpose(b, x, [0, 2, 1, 3]), sizes)


def _kept(b: Builder, keep: Tensor, like: Tensor, filtered: float) -> Tensor:
    """0 where `keep` holds, else `filtered`."""
    return ew.select(b, keep, b.like(0, like), b.like(filtered, like))


def _sum(b: Builder, parts: list[Tensor]) -> Tensor | None:
    return ew.fold(b, "add", parts) if parts else None


def _padding(b: Builder, node: Node, mask: Tensor, query: Tensor, keys: Size) -> Tensor:
    """What a mask of keys adds to the scores: `[batch]` lengths, `[2 * batch]` ends and starts, `[3 * batch + 2]`
    lengths and offsets, `[batch, keys]`, `[batch, queries, keys]` or `[batch, 1, longest, longest]` marks."""
    filtered = float(node.attr("mask_filter_value", -10000.0))
    batch, queries = b.dim(query, 0), b.dim(query, 2)
    if mask.rank == 1:
        places = shape.iota(b, [1, 1, 1, keys], 3, "int64")
        column: list[Size] = [batch, 1, 1, 1]
        wide = ew.cast(b, mask, "int64")
        ends = shape.reshape(b, shape.window(b, wide, 0, 0, batch), column)
        keep = ew.compare(b, "lt", places, ends)
        extent = b.dim(mask, 0)
        if shape.same_size(extent, batch):
            return _kept(b, keep, query, filtered)
        # Only the number of elements says whether there are starts behind the ends.
        rest = b.arith("minsi", b.arith("subi", extent, batch), batch)
        starts = shape.reshape(b, shape.window(b, wide, 0, rest, batch), column)
        twice = shape.size_scalar(b, b.arith("muli", batch, 2))
        both = ew.compare(b, "eq", shape.size_scalar(b, extent), twice)
        starts = ew.select(b, both, starts, b.constant(0, "int64"))
        return _kept(b, ew.binary(b, "and", keep, ew.compare(b, "ge", places, starts)), query, filtered)
    marks = ew.compare(b, "gt", ew.cast(b, mask, "int32"), b.constant(0, "int32"))
    if mask.rank == 4:  # square: the last rows, those of the queries, and all keys
        first = b.arith("subi", keys, queries)
        marks = shape.window(b, shape.window(b, marks, 3, 0, keys), 2, first, queries)
    else:
        marks = shape.unsqueeze(b, marks, [1, 2] if mask.rank == 2 else [1])
    return _kept(b, marks, query, filtered)


def _triangle(b: Builder, query: Tensor, keys: Size) -> Tensor:
    """What hides later keys from each query; the queries are the last of the sequence."""
    queries = b.dim(query, 2)
    rows, columns = shape.iota(b, [queries, 1], 0, "int64"), shape.iota(b, [1, keys], 1, "int64")
    before = shape.size_scalar(b, b.arith("subi", keys, queries))
    return _kept(b, ew.compare(b, "le", columns, ew.binary(b, "add", rows, before)), query, NOTHING)


def _scale(node: Node) -> float | None:
    """The factor of the scores; 0 stands for the usual one."""
    return float(node.attr("scale", 0.0)) or None


def _attended(
    b: Builder, node: Node, heads: tuple[Tensor, Tensor, Tensor], mask: Tensor | None, bias: Tensor | None
) -> Tensor:
    """Attention over all keys, with a padding mask, a sum for the scores, and (`unidirectional`) no look ahead."""
    query, key, value = heads
    keys = b.dim(key, 2)
    parts = [] if mask is None else [_padding(b, node, mask, query, keys)]
    same = query.shape[2] is not None and query.shape[2] == key.shape[2]
    causal = bool(node.attr("unidirectional", 0))
    if causal and not same:
        parts.append(_triangle(b, query, keys))
    if bias is not None:
        parts.append(bias)
    return common.attention(b, query, key, value, _sum(b, parts), scale=_scale(node), causal=causal and same)


@onnx_op("Attention", domain=DOMAIN)
def attention(g: GraphImporter, node: Node) -> list[Tensor]:
    """Query, key and value from one product with `weights [in, sum of sizes]`; the cache is `[2, batch, heads, …]`."""
    b = g.b
    projected = with_bias(b, linalg.matmul(b, node[0], node[1]), node.optional(2))
    return _self_attention(g, node, projected, node.optional(3), node.optional(4), node.optional(5))


def _self_attention(
    g: GraphImporter, node: Node, projected: Tensor, mask: Tensor | None, past: Tensor | None, bias: Tensor | None
) -> list[Tensor]:
    b, heads = g.b, int(node.required("num_heads"))
    if node.attr("past_present_share_buffer", 0) or node.attr("do_rotary", 0):
        raise NodeError("a shared cache (past_present_share_buffer) and do_rotary are not supported", "export without")
    sizes = [int(size) for size in node.attr("qkv_hidden_sizes") or []]
    if not sizes:
        width = projected.shape[2]
        if width is None:
            raise NodeError("the size of the projection is known only at run time", "fix the weight's shape")
        sizes = [width // 3] * 3
    query, key, value = (heads_first(b, part, heads) for part in shape.split(b, projected, 2, list(sizes)))
    if past is not None:
        old = [shape.squeeze(b, shape.window(b, past, 0, number, 1), [0]) for number in (0, 1)]
        key, value = shape.concat(b, [old[0], key], 2), shape.concat(b, [old[1], value], 2)
    y = joined_heads(b, _attended(b, node, (query, key, value), mask, bias))
    if not node.wants(1):
        return [y]
    return [y, shape.concat(b, [shape.unsqueeze(b, part, [0]) for part in (key, value)], 0)]


@onnx_op("QAttention", domain=DOMAIN)
def quantized_attention(g: GraphImporter, node: Node) -> list[Tensor]:
    """Attention whose projection multiplies codes: inputs 3 and 4 are their scales, 6 and 7 their zero points."""
    b = g.b
    x = dequantized(b, node[0], node[3], node.optional(6), 0)
    weights = dequantized(b, node[1], node[4], node.optional(7), 1)
    projected = with_bias(b, linalg.matmul(b, x, weights), node.optional(2))
    return _self_attention(g, node, projected, node.optional(5), node.optional(8), None)


@onnx_op("MultiHeadAttention", domain=DOMAIN)
def multi_head_attention(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """Attention of tensors that are projected already: apart, keys and values in one, or all three in one."""
    b, heads = g.b, int(node.required("num_heads"))
    query, key, value = _heads_of(b, node, heads)
    if node.optional(8) is not None:
        raise NodeError("a cache of a fixed size (past_sequence_length) is not supported", "export without it")
    for number, place in ((1, 6), (2, 7)):
        past = node.optional(place)
        if past is not None and number == 1:
            key = shape.concat(b, [past, key], 2)
        elif past is not None:
            value = shape.concat(b, [past, value], 2)
    bias = node.optional(5)
    y = joined_heads(b, _attended(b, node, (query, key, value), node.optional(4), bias))
    return [y, key if node.wants(1) else None, value if node.wants(2) else None]


def _heads_of(b: Builder, node: Node, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value with heads first and their biases added."""
    query, key, value, bias = node[0], node.optional(1), node.optional(2), node.optional(3)
    if query.rank == 5:  # [batch, sequence, heads, 3, size]
        parts = [_packed(b, query, number) for number in range(3)]
        first, second, third = _biased(b, parts, bias, heads)
        return first, second, third
    if key is None:
        raise NodeError("the key is missing", "only a query of rank 5 holds all three")
    first = heads_first(b, query, heads)
    if key.rank == 5:  # [batch, sequence, heads, 2, size]
        first, second, third = _biased(b, [first, _packed(b, key, 0), _packed(b, key, 1)], bias, heads)
        return first, second, third
    if value is None:
        raise NodeError("the value is missing", "only a key of rank 5 holds both")
    if key.rank == 4:  # heads first already, projected and with its bias: only the query's is left to add
        own = None if bias is None else shape.window(b, bias, 0, 0, b.dim(query, 2))
        key, value = (b.refined(x, [x.shape[0], heads, *x.shape[2:]]) for x in (key, value))
        return _biased(b, [first], own, heads)[0], key, value
    first, second, third = _biased(b, [first, heads_first(b, key, heads), heads_first(b, value, heads)], bias, heads)
    return first, second, third


def _packed(b: Builder, x: Tensor, number: int) -> Tensor:
    """One of the tensors that `[batch, sequence, heads, count, size]` holds, with heads first."""
    return shape.transpose(b, shape.squeeze(b, shape.window(b, x, 3, number, 1), [3]), [0, 2, 1, 3])


def _biased(b: Builder, parts: list[Tensor], bias: Tensor | None, heads: int) -> list[Tensor]:
    """Each part plus its piece of one long bias."""
    if bias is None:
        return parts
    done, start = [], 0
    for part in parts:
        size = part.shape[3]
        if size is None:
            raise NodeError("the size of a head is known only at run time", "fix the input's shape")
        own = shape.window(b, bias, 0, start, heads * size)
        done.append(ew.binary(b, "add", part, shape.reshape(b, own, [heads, 1, size])))
        start += heads * size
    return done


# -- grouped queries ---------------------------------------------------------------------------------------------------


@onnx_op("GroupQueryAttention", domain=DOMAIN)
def group_query_attention(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """Causal attention with a cache that holds `seqlens_k + 1` keys of each row after this step, in a buffer that may
    be longer. New keys follow the cached ones; their positions turn queries and keys where `do_rotary` asks for it."""
    b = g.b
    _check_plain(node)
    query, key, value = _grouped_heads(b, node)
    if node.optional(14) is not None and node.optional(15) is not None:
        epsilon = float(node.attr("qk_norm_epsilon", 1e-6))
        pairs = ((query, node[14]), (key, node[15]))
        query, key = (normalization.layer_norm(b, x, scale, None, 3, epsilon, rms=True) for x, scale in pairs)
    lengths = shape.reshape(b, ew.cast(b, node[5], "int64"), [b.dim(query, 0), 1])
    queries = shape.size_tensor(b, query, 2)
    ends = ew.binary(b, "add", lengths, b.constant(1, "int64"))
    total = b.scalar(node[6])
    # The first step may hold rows of several lengths, filled up on the right: nothing lies before any of them.
    first = ew.compare(b, "eq", shape.size_scalar(b, total), queries)
    before = ew.select(b, first, b.constant(0, "int64"), ew.binary(b, "sub", ends, queries))
    if node.attr("do_rotary", 0):
        query, key = (_turned(b, node, x, before) for x in (query, key))
    # What a quantized cache holds is what the step computes with: new keys and values lose precision like the old ones.
    caches = [
        _cached(b, node.optional(3 + side), _coded(b, node, new, side), before, total)
        for side, new in enumerate((key, value))
    ]
    keys, values = (_decoded(b, node, cache, side, query.dtype) for side, cache in enumerate(caches))
    mask = _grouped_mask(b, node, query, keys, before)
    if node.attr("smooth_softmax", 0) or node.optional(11) is not None or node.attr("qk_output", 0):
        y, scores = _with_scores(b, node, (query, keys, values), mask)
        return [joined_heads(b, y), *caches, scores]
    cap = float(node.attr("softcap", 0.0)) or None
    y = common.attention(b, query, keys, values, mask, scale=_scale(node), softcap=cap)
    return [joined_heads(b, y), *caches, None]


_CACHES = ("k_quant_type", "v_quant_type")


def _cache_scale(b: Builder, node: Node, side: int, heads: Size) -> Tensor | None:
    """The factor of the codes in the cache of keys (`side` 0) or of values, in the form in which it broadcasts."""
    kind = node.attr(_CACHES[side], "NONE")
    if kind == "NONE":
        return None
    scale = node[12 + side]
    return shape.reshape_codes(b, scale, [] if kind == "PER_TENSOR" else [1, heads, 1, -1])


def _coded(b: Builder, node: Node, x: Tensor, side: int) -> Tensor:
    """What the cache holds of `x [batch, heads, sequence, size]`: int8 codes where it is quantized."""
    scale = _cache_scale(b, node, side, b.dim(x, 1))
    if scale is None:
        return x
    rounded = ew.unary(b, "round", ew.binary(b, "div", ew.cast(b, x, "float32"), ew.cast(b, scale, "float32")))
    return ew.cast(b, ew.clamp(b, rounded, b.constant(np.float32(-128)), b.constant(np.float32(127))), "int8")


def _decoded(b: Builder, node: Node, cache: Tensor, side: int, dtype: str) -> Tensor:
    """The numbers that a cache stands for."""
    scale = _cache_scale(b, node, side, b.dim(cache, 1))
    if scale is None:
        return cache
    wide = ew.binary(b, "mul", ew.cast(b, cache, "float32"), ew.cast(b, scale, "float32"))
    return ew.cast(b, wide, dtype)


def _check_plain(node: Node) -> None:
    coded = [node.attr(name, "NONE") for name in _CACHES]
    if any(kind not in ("NONE", "PER_TENSOR", "PER_CHANNEL") for kind in coded):
        raise NodeError(f"the types {', '.join(coded)} of the cache's scales", "use NONE, PER_TENSOR or PER_CHANNEL")
    old = next((past.dtype for past in (node.optional(3), node.optional(4)) if past is not None), "int8")
    if coded != ["NONE", "NONE"] and (int(node.attr("kv_cache_bit_width", 8)) != 8 or old != "int8"):
        raise NodeError(f"a cache of {old} codes is not supported", "quantize the cache to int8")
    if (node.optional(14) is None) != (node.optional(15) is None):
        raise NodeError("one of q_norm_weight and k_norm_weight is missing", "give both, or none")
    if node.attr("sliding_window_cache", 0):
        raise NodeError("a cache that slides is not supported", "export with a cache of the whole sequence")


def _grouped_heads(b: Builder, node: Node) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value with heads first; the query may hold all three."""
    heads, groups = int(node.required("num_heads")), int(node.required("kv_num_heads"))
    if node.optional(1) is not None:
        return heads_first(b, node[0], heads), heads_first(b, node[1], groups), heads_first(b, node[2], groups)
    every = heads_first(b, node[0], heads + 2 * groups)
    query, key, value = shape.split(b, every, 1, [heads, groups, groups])
    return query, key, value


def _turned(b: Builder, node: Node, x: Tensor, before: Tensor) -> Tensor:
    """`x` turned by the angles of its positions, those given or the places in the cache."""
    cosine, sine = node[7], node[8]
    positions = node.optional(9)
    if positions is None:
        places = ew.binary(b, "add", before, shape.iota(b, [1, b.dim(x, 2)], 1, "int64"))
        last = shape.size_scalar(b, b.arith("subi", b.dim(cosine, 0), 1))
        positions = ew.binary(b, "min", places, last)  # what fills up a row has no position
    tables = [b.op("gather", [table, positions], axis=0) for table in (cosine, sine)]
    half = cosine.shape[1]
    if half is None:
        raise NodeError("the size of the cosines is known only at run time", "fix the table's shape")
    return rotated_heads(b, x, tables[0], tables[1], 2 * half, bool(node.attr("rotary_interleaved", 0)))


def _cached(b: Builder, past: Tensor | None, new: Tensor, before: Tensor, total: Size) -> Tensor:
    """`new` behind the first `before` entries of `past`, a row at a time. Zeros up to the end of the buffer, unless it
    is that of `past`."""
    if past is None:
        return new
    past = b.refined(past, [new.shape[0], new.shape[1], None, new.shape[3]])
    old = b.dim(past, 2)
    length = b.arith("maxsi", old, total)
    grown = shape.pad(b, past, [0, 0, 0, 0], [0, 0, b.arith("subi", length, old), 0])
    kept = ew.compare(b, "lt", shape.iota(b, [1, length], 1, "int64"), before)
    old_ones = ew.select(b, shape.unsqueeze(b, kept, [1, 3]), grown, b.like(0, new))
    starts = shape.reshape(b, before, [b.dim(new, 0)])
    return indexing.insert(b, old_ones, new, starts, 2, open_end=True)


def _grouped_mask(b: Builder, node: Node, query: Tensor, keys: Tensor, before: Tensor) -> Tensor:
    """Each query sees itself and what precedes it, `local_window_size` keys at most."""
    rows = shape.iota(b, [1, 1, b.dim(query, 2), 1], 2, "int64")
    rows = ew.binary(b, "add", rows, shape.unsqueeze(b, before, [1, 2]))
    columns = shape.iota(b, [1, 1, 1, b.dim(keys, 2)], 3, "int64")
    if node.attr("causal", 1):
        keep = ew.compare(b, "le", columns, rows)
    else:
        ends = ew.binary(b, "add", before, shape.size_tensor(b, query, 2))
        keep = ew.compare(b, "lt", columns, shape.unsqueeze(b, ends, [1, 2]))
    window = int(node.attr("local_window_size", -1))
    if window > 0:
        oldest = ew.binary(b, "sub", rows, b.constant(window, "int64"))
        keep = ew.binary(b, "and", keep, ew.compare(b, "gt", columns, oldest))
    bias = node.optional(10)
    mask = _kept(b, keep, query, NOTHING)
    if bias is None:
        return mask
    have, want = b.dim(bias, 3), b.dim(keys, 2)
    if isinstance(have, int) and isinstance(want, int) and have < want:
        bias = shape.pad(b, bias, [0, 0, 0, 0], [0, 0, 0, want - have])
    return ew.binary(b, "add", mask, bias)


def _with_scores(
    b: Builder, node: Node, heads: tuple[Tensor, Tensor, Tensor], mask: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Attention in steps, and the scores where `qk_output` wants them: before the softmax (1) or after it (2).

    The softmax may have one key more that no value belongs to: its score is that of the head, or 0.
    """
    query, key, value = heads
    count, groups, size = query.shape[1], key.shape[1], query.shape[3]
    if count is None or groups is None or size is None:
        raise NodeError("the heads are known only at run time", "fix the input's shape")
    key, value = (_repeated(b, x, count // groups) for x in (key, value))
    scores = linalg.matmul(b, query, key, transpose_rhs=True)
    scores = ew.scaled(b, scores, _scale(node) or size**-0.5)
    cap = float(node.attr("softcap", 0.0))
    if cap:
        scores = ew.scaled(b, ew.unary(b, "tanh", ew.scaled(b, scores, 1 / cap)), cap)
    scores = ew.cast(b, ew.binary(b, "add", scores, mask), "float32")
    wanted, sink = int(node.attr("qk_output", 0)), node.optional(11)
    # As onnxruntime: the scores of hidden keys are written as zeros.
    hidden = ew.compare(b, "eq", mask, b.like(NOTHING, mask))
    seen = ew.cast(b, ew.select(b, hidden, b.like(0, scores), scores), query.dtype)
    if sink is None and not node.attr("smooth_softmax", 0):
        shares = ew.cast(b, normalization.softmax(b, scores, 3), query.dtype)
        y = linalg.matmul(b, shares, value)
        return y, [None, seen, shares][wanted]
    if sink is None:
        extra = b.constant(0.0, "float32")
    else:
        extra = shape.reshape(b, ew.cast(b, sink, "float32"), [1, count, 1, 1])
    top = ew.binary(b, "max", reduction.reduce(b, "max", scores, [3], True), extra)
    powers = ew.unary(b, "exp", ew.binary(b, "sub", scores, top))
    total = reduction.reduce(b, "sum", powers, [3], True)
    total = ew.binary(b, "add", total, ew.unary(b, "exp", ew.binary(b, "sub", extra, top)))
    shares = ew.cast(b, ew.binary(b, "div", powers, total), query.dtype)
    return linalg.matmul(b, shares, value), [None, seen, shares][wanted]


def _repeated(b: Builder, x: Tensor, times: int) -> Tensor:
    """Every head `times` times."""
    if times == 1:
        return x
    batch, heads, rows, size = b.dims(x)
    spread = shape.broadcast(b, shape.unsqueeze(b, x, [2]), [batch, heads, times, rows, size])
    return shape.reshape(b, spread, [batch, b.arith("muli", heads, times), rows, size])


# -- rotary embedding --------------------------------------------------------------------------------------------------


@onnx_op("RotaryEmbedding", domain=DOMAIN)
def rotary(g: GraphImporter, node: Node) -> Tensor:
    """Turns pairs of features; positions are given one by one, or as that of the first token."""
    b, x = g.b, node[0]
    if float(node.attr("scale", 1.0)) != 1.0 or node.attr("is_packed_batching", 0):
        raise NodeError("a scale and packed batches are not supported", "export without them")
    positions, cosine, sine = node[1], node[2], node[3]
    half = cosine.shape[1]
    if half is None:
        raise NodeError("the size of the cosines is known only at run time", "fix the table's shape")
    partial = int(node.attr("rotary_embedding_dim", 0))
    turned = partial or 2 * half
    packed = x.rank == 3
    if packed:
        heads = int(node.attr("num_heads", 0))
        width = x.shape[2]
        if not heads and width is None:
            raise NodeError("the number of heads is known only at run time", "give num_heads")
        x = heads_first(b, x, heads or int(width or 0) // turned)
    places = ew.cast(b, positions, "int64")
    if places.rank == 1:
        places = ew.binary(b, "add", places, shape.iota(b, [1, b.dim(x, 2)], 1, "int64"))
    tables = [b.op("gather", [table, places], axis=0) for table in (cosine, sine)]
    y = rotated_heads(b, x, tables[0], tables[1], turned, bool(node.attr("interleaved", 0)))
    return joined_heads(b, y) if packed else y
