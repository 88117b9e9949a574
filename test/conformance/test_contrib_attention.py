"""Attention operators of onnxruntime's domain, compiled with dynamic batches and sequences, compared with onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from contrib_cases import (
    Case,
    check,
    codes,
    compare,
    feeds_of,
    floats,
    identifier,
    model_of,
    prepared,
    reference,
    scalar,
)

B, S, H, N = 2, 5, 12, 3  # batch, sequence, hidden size, heads
HEADS = {"num_heads": N}


def lengths(*values: int) -> np.ndarray:
    """A vector of int32."""
    return np.array(values, np.int32)


MARKS = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
SELF = [floats(B, S, 8), floats(8, 3 * H, scale=0.4), floats(3 * H)]
PAST = floats(2, B, N, 4, H // N)
WITH_PRESENT = ("y", "present")
ATTENTION = [
    Case("plain", "Attention", SELF, HEADS, [1, 2]),
    Case("causal", "Attention", SELF, HEADS | {"unidirectional": 1}, [1, 2]),
    Case("lengths", "Attention", [*SELF, lengths(5, 3)], HEADS, [1, 2]),
    Case("ends_and_starts", "Attention", [*SELF, lengths(5, 4, 1, 0)], HEADS, [1, 2]),
    Case("marks", "Attention", [*SELF, MARKS], HEADS, [1, 2]),
    Case("marks_causal", "Attention", [*SELF, MARKS], HEADS | {"unidirectional": 1}, [1, 2]),
    Case("marks_3d", "Attention", [*SELF, np.tril(np.ones((B, S, S), np.int32))], HEADS, [1, 2]),
    Case("filter", "Attention", [*SELF, MARKS], HEADS | {"mask_filter_value": -2.0}, [1, 2]),
    Case("scale", "Attention", SELF, HEADS | {"scale": 0.3}, [1, 2]),
    Case("sizes", "Attention", [SELF[0], floats(8, 30), floats(30)], HEADS | {"qkv_hidden_sizes": [12, 12, 6]}, [1, 2]),
    Case("past", "Attention", [*SELF, None, PAST], HEADS | {"unidirectional": 1}, [1, 2], WITH_PRESENT),
    Case("past_marks", "Attention", [*SELF, np.ones((B, S + 4), np.int32), PAST], HEADS, [1, 2], WITH_PRESENT),
    Case("bias", "Attention", [*SELF, None, None, floats(B, N, S, S)], HEADS, [1, 2]),
    Case("bias_broadcast", "Attention", [*SELF, MARKS, None, floats(1, N, S, S)], HEADS, [1, 2]),
]
Q, K, V = floats(B, S, H), floats(B, 7, H), floats(B, 7, H)
OLD = [floats(B, N, 4, H // N), floats(B, N, 4, H // N)]
SAME = [floats(B, S, H), floats(B, S, H), floats(B, S, H)]
THREE = ("y", "key", "value")
MULTI = [
    Case("cross", "MultiHeadAttention", [Q, K, V], HEADS),
    Case("cross_bias", "MultiHeadAttention", [Q, K, V, floats(3 * H)], HEADS),
    Case("cross_lengths", "MultiHeadAttention", [Q, K, V, None, lengths(7, 4)], HEADS),
    Case("cross_marks", "MultiHeadAttention", [Q, K, V, None, np.ones((B, 7), np.int32)], HEADS),
    Case("cross_sum", "MultiHeadAttention", [Q, K, V, None, None, floats(B, N, S, 7)], HEADS),
    Case("self_causal", "MultiHeadAttention", SAME, HEADS | {"unidirectional": 1}),
    Case("self_wider_values", "MultiHeadAttention", [Q, K, floats(B, 7, 18)], HEADS),
    Case("heads_first", "MultiHeadAttention", [Q, floats(B, N, 7, 4), floats(B, N, 7, 4)], HEADS),
    Case("past", "MultiHeadAttention", [*SAME, None, None, None, *OLD], HEADS, outputs=THREE),
    Case(
        "past_causal", "MultiHeadAttention", [*SAME, floats(3 * H), None, None, *OLD],
        HEADS | {"unidirectional": 1, "scale": 0.6}, outputs=THREE,
    ),
]  # fmt: skip
GROUPS = {"num_heads": 4, "kv_num_heads": 2}
WIDTH = 16
TURN = [floats(16, WIDTH // 2), floats(16, WIDTH // 2)]


def grouped(name: str, queries: int, past: int, ends: list[int], total: int, *rest: Any, **attributes: Any) -> Case:
    """A step of grouped-query attention: `past` entries in the cache's buffer, `ends` of them used after the step."""
    batch = len(ends)
    new = [floats(batch, queries, 4 * WIDTH), floats(batch, queries, 2 * WIDTH), floats(batch, queries, 2 * WIDTH)]
    old: list[Any] = [floats(batch, 2, past, WIDTH), floats(batch, 2, past, WIDTH)] if past else [None, None]
    given = [*new, *old, lengths(*(end - 1 for end in ends)), scalar(total, "int32"), *rest]
    return Case(name, "GroupQueryAttention", given, GROUPS | attributes, outputs=THREE)




def scored(name: str, form: int) -> Case:
    """A step whose scores are a result: before the softmax (1), or after it (2)."""
    case = grouped(name, 1, 6, [7, 7], 7, qk_output=form)  # onnxruntime leaves the ends of shorter rows as they are
    return replace(case, outputs=(*THREE, "scores"))


def coded(name: str, kind: str) -> Case:
    """A step with a cache of int8 codes in a longer buffer: one factor, or one for each feature of each head."""
    scales = [scalar(0.02).reshape(1), scalar(0.03).reshape(1)]
    if kind == "PER_CHANNEL":
        scales = [np.abs(floats(1, 2, 1, WIDTH)) * np.float32(0.02) + np.float32(0.005) for _ in range(2)]
    attributes = {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": 8}
    case = grouped(name, 1, 9, [7, 4], 7, *[None] * 5, *scales, **attributes)
    given = list(case.given)
    given[3:5] = [codes("int8", 2, 2, 9, WIDTH), codes("int8", 2, 2, 9, WIDTH)]
    return replace(case, given=given)


PACKED = floats(2, 5, (4 + 2 + 2) * WIDTH)
GROUPED = [
    grouped("prompt", 5, 0, [5, 5], 5),
    grouped("prompt_turned", 5, 0, [5, 5], 5, *TURN, do_rotary=1),
    grouped("prompt_interleaved", 5, 0, [5, 5], 5, *TURN, do_rotary=1, rotary_interleaved=1),
    grouped("token", 1, 6, [7, 7], 7),
    grouped("token_turned", 1, 6, [7, 4], 7, *TURN, do_rotary=1),
    grouped("token_in_buffer", 1, 9, [7, 4], 7),
    grouped("window", 6, 0, [6, 6], 6, local_window_size=3),
    grouped("window_token", 1, 6, [7, 7], 7, local_window_size=3),
    grouped("cap", 5, 0, [5, 5], 5, softcap=2.0, scale=0.7),
    grouped("smooth", 5, 0, [5, 5], 5, smooth_softmax=1),
    grouped("sink", 5, 0, [5, 5], 5, None, None, None, None, floats(4)),
    grouped("not_causal", 5, 0, [5, 5], 5, causal=0),
    grouped("not_causal_token", 2, 6, [8], 8, causal=0),
    *(scored(f"scores_{form}", form) for form in (1, 2)),
    *(coded(f"coded_{kind}", kind) for kind in ("PER_TENSOR", "PER_CHANNEL")),
    grouped("several_tokens", 3, 4, [7], 7, *TURN, do_rotary=1),
    Case(
        "packed", "GroupQueryAttention", [PACKED, None, None, None, None, lengths(4, 4), scalar(5, "int32"), *TURN],
        GROUPS | {"do_rotary": 1}, outputs=THREE,
    ),
]  # fmt: skip
PLACES = np.array([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], np.int64)
ROTARY = [
    Case("heads_last", "RotaryEmbedding", [floats(2, 5, 48), PLACES, *TURN], {}),
    Case("offset", "RotaryEmbedding", [floats(2, 5, 48), np.array([3], np.int64), *TURN], {}),
    Case("heads_first", "RotaryEmbedding", [floats(2, 3, 5, 16), PLACES, *TURN], {"interleaved": 1}),
    Case(
        "partial", "RotaryEmbedding", [floats(2, 3, 5, 24), PLACES, *TURN],
        {"rotary_embedding_dim": 16, "num_heads": 3},
    ),
    Case(
        "partial_heads_last", "RotaryEmbedding", [floats(2, 5, 72), PLACES, *TURN],
        {"rotary_embedding_dim": 16, "num_heads": 3, "interleaved": 1},
    ),
]  # fmt: skip
QUANTIZED = [codes("uint8", B, S, 8), codes("int8", 8, 3 * H), floats(3 * H)]
SCALES = [scalar(0.02), scalar(0.01)]
QUANTIZED_ATTENTION = [
    Case("plain", "QAttention", [*QUANTIZED, *SCALES, None, scalar(120, "uint8"), scalar(3, "int8")], HEADS, [1, 2]),
    Case(
        "columns", "QAttention", [*QUANTIZED, SCALES[0], np.abs(floats(3 * H)) * np.float32(0.01), lengths(5, 3)],
        HEADS, [1, 2],
    ),
    Case(
        "past", "QAttention", [*QUANTIZED, *SCALES, None, scalar(128, "uint8"), scalar(0, "int8"), PAST],
        HEADS | {"unidirectional": 1}, [1, 2], WITH_PRESENT,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", [*ATTENTION, *MULTI, *GROUPED, *ROTARY, *QUANTIZED_ATTENTION], ids=identifier)
def test_matches_onnxruntime(case: Case) -> None:
    check(case)


def test_one_library_serves_every_length() -> None:
    """A cache that grows from nothing to nine keys, with batches of one and two."""
    case = grouped("growing", 1, 1, [2], 2, *TURN, do_rotary=1)
    model = model_of(case)
    model.graph.input[5].type.tensor_type.shape.dim[0].dim_param = "batch"
    library = prepared(model)
    for batch in (1, 2):
        for past in range(9):
            turn = grouped("step", 1, past, [past + 1] * batch, past + 1, *TURN, do_rotary=1)
            given = list(turn.given)
            given[3:5] = [floats(batch, 2, past, WIDTH), floats(batch, 2, past, WIDTH)]
            feeds = {f"x{i}": value for i, value in enumerate(given)}
            for got, want in zip(library.run(feeds), reference(model, feeds), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_norms_of_queries_and_keys() -> None:
    """onnxruntime takes them on GPUs only: the same as normalizing outside of the operator."""
    plain = grouped("plain", 1, 6, [7, 4], 7, *TURN, do_rotary=1)
    norms = [floats(WIDTH), floats(WIDTH)]
    case = replace(plain, given=[*plain.given, *[None] * 5, *norms], attributes={**plain.attributes, "qk_norm_epsilon": 0.01})
    given = list(plain.given)
    for place, scale in enumerate(norms):
        x = np.asarray(given[place]).reshape(2, 1, -1, WIDTH)
        given[place] = (x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.01) * scale).reshape(2, 1, -1).astype(np.float32)
    normed = replace(plain, given=given)
    wanted = reference(model_of(normed), feeds_of(normed))
    compare(prepared(model_of(case), wanted).run(feeds_of(case)), wanted, case)


def _parts(x: np.ndarray) -> np.ndarray:
    """`[batch, sequence, heads * size]` as `[batch, sequence, heads, size]`."""
    return x.reshape(*x.shape[:2], N, -1)


@pytest.mark.parametrize("form", ["queries", "keys"])
def test_packed_projections(form: str) -> None:
    """onnxruntime takes them on GPUs only: they are compared with the same tensors apart."""
    query, key, value = SAME
    if form == "queries":
        packed = [np.stack([_parts(x) for x in SAME], axis=3)]
    else:
        packed = [query, np.stack([_parts(key), _parts(value)], axis=3)]
    apart = Case("apart", "MultiHeadAttention", SAME, HEADS)
    [wanted] = reference(model_of(apart), feeds_of(apart))
    case = Case("packed", "MultiHeadAttention", packed, HEADS)
    model = model_of(case)
    for value_info in model.graph.input:  # sizes of heads are part of the model
        dims = value_info.type.tensor_type.shape.dim
        for dim, extent in zip(list(dims)[2:], packed[int(value_info.name[1:])].shape[2:], strict=True):
            dim.CopyFrom(onnx.TensorShapeProto.Dimension(dim_value=extent))
    [got] = prepared(model).run(feeds_of(case))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
