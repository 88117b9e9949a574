"""What kernels compute, tensor cores, copy engines and clusters included, on a machine without a GPU: their PTX runs in
NumPy (`gpu/emulator`). And what that machine notices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gpu.emulator.decode import decode
from gpu.emulator.machine import Launch
from gpu.emulator.memory import EmulationError, Memory
from gpu.emulator.parse import parse
from gpu.emulator.run import run_case
from models.gpu_cases import Case, cases
from spread import EVERY, spread

EXACT = (
    ("matmul_half_odd", "sm_80"), ("matmul_half_odd", "sm_90a"), ("matmul_float8", "sm_80"), ("conv", "sm_80"),
    *((name, "sm_90a") for name in (
        "matmul_float8_odd", "matmul_float8_weight", "matmul_sum_of_run_0", "matmul_sum_of_run_200", "softmax_half",
        "softmax_half_1x50257", "top_k_odd", "argmax_vocabulary", "argmax_odd_columns", "layer_norm_10x768",
        "transpose_half", "transpose_read_twice", "scatter_add_words", "scatter_max_bytes", "cast_int64", "div_int64",
        "exp_33x12", "tanh_33x12",
        "sin_33x12", "max_pool", "argmax_many_columns", "argmax_few_columns", "argmin_few_columns_last",
        "columns_softmax_alone", "columns_softmax_warp", "columns_softmax_block", "columns_softmax_full_block_half",
        "columns_norm_pixels", "columns_norm_too_long", "argmax_last_odd_columns", "scan_parts_half_odd",
        "spread_rows", "spread_columns", "parts_argmin_many_last", "parts_argmin_last", "parts_sum",
        *(["parts_argmax_most_parts"] if EVERY else []),
    )),
)  # fmt: skip
ROUNDED = (
    ("conv", "sm_90a", "bf16"), ("conv_deep", "sm_90a", "bf16"), ("conv_depthwise", "sm_90a", "bf16"),
    ("conv_depthwise_wide", "sm_90a", "bf16"), ("conv_positions", "sm_90a", "bf16"),
    ("conv_depthwise_band", "sm_90a", "bf16"), ("conv_depthwise_column", "sm_90a", "bf16"),
    ("conv_depthwise_line", "sm_90a", "bf16"), ("conv_residual_18", "sm_90a", "bf16"),
    ("conv_residual_20", "sm_80", "bf16"), ("conv_residual_20", "sm_90a", "bf16"),
    ("conv_any_number", "sm_90a", "bf16"), ("attention_heads_apart", "sm_90a", "bf16"),
    ("attention_few_tokens", "sm_90a", "bf16"), ("attention_channels", "sm_90a", "bf16"),
    ("attention_channels", "sm_80", "bf16"),
    ("attention_windows", "sm_90a", "bf16"), ("attention_windows", "sm_80", "bf16"),
    ("attention_100x77x64", "sm_90a", "bf16"), ("attention_70x70x40", "sm_80", "tf32"),
    ("mixing", "sm_90a", "bf16"), ("mixing", "sm_80", "bf16"), ("pooling_by_shares", "sm_90a", "bf16"),
    ("patches_with_borders", "sm_90a", "bf16"), ("patches_far_apart", "sm_90a", "bf16"),
    ("two_classes", "sm_90a", "bf16"), ("small_matrices", "sm_90a", "bf16"),
    ("parts_even", "sm_90a", "bf16"), ("parts_odd", "sm_90a", "bf16"), ("dense_block", "sm_90a", "bf16"),
    ("gemm_transposed", "sm_90a", "tf32"), ("matmul_batched", "sm_80", "tf32"),
    ("recurrent_lstm", "sm_90a", "bf16"), ("recurrent_lstm", "sm_90a", "tf32"), ("recurrent_lstm_lengths", "sm_90a", "bf16"),
    ("recurrent_lstm_large", "sm_90a", "bf16"), ("recurrent_gru", "sm_90a", "bf16"),
    ("recurrent_gru_lengths", "sm_80", "tf32"), ("recurrent_gru_large", "sm_90a", "tf32"),
    ("recurrent_half", "sm_90a", "fp32"), ("recurrent_half", "sm_80", "fp32"),
    ("recurrent_gru_large", "sm_90a", "bf16"), ("recurrent_tanh", "sm_80", "bf16"), ("recurrent_relu", "sm_90a", "tf32"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "gpu"), EXACT)
def test_results_of_the_code_that_is_shipped(name: str, gpu: str, tmp_path: Path) -> None:
    assert run_case(_case(name), tmp_path, gpu) == ""


@pytest.mark.parametrize(("name", "gpu", "precision"), ROUNDED)
def test_results_with_operands_that_are_rounded(name: str, gpu: str, precision: str, tmp_path: Path) -> None:
    """Convolutions by windows of the copy engine among them."""
    assert run_case(replace(_case(name), tolerance=2e-2), tmp_path, gpu, precision) == ""


def _case(name: str) -> Case:
    return next(case for case in cases() if case.name == name)


def _attention(heads: tuple[int, int], lengths: tuple[int, int], depth: int, **options: Any) -> Case:
    """Attention of heads with queries, and with keys; `causal`, `mask`, `dtype` (bf16), and `window`: what the first and
    the last visible key of a row are more than its number, of which either may be None."""
    dtype, causal = np.dtype(options.get("dtype", ml_dtypes.bfloat16)), options.get("causal", False)
    names, window = ["q", "k", "v", *(["mask"] if options.get("mask") else [])], options.get("window")

    def inputs() -> dict[str, np.ndarray]:
        rng = np.random.default_rng(20261123)
        shapes: dict[str, tuple[int, ...]] = {"q": (1, heads[0], lengths[0], depth), "mask": lengths}
        shapes.update(dict.fromkeys("kv", (1, heads[1], lengths[1], depth)))
        return {name: rng.standard_normal(shapes[name]).astype(dtype) for name in names}

    def expected(arrays: Any) -> list[np.ndarray]:
        query, key, value, *mask = (np.asarray(arrays[name], np.float64) for name in names)
        key, value = (np.repeat(x, heads[0] // heads[1], 1) for x in (key, value))
        scores = query @ key.swapaxes(-1, -2) / np.sqrt(depth) + (mask[0] if mask else 0)
        if causal:
            scores[..., np.triu(np.ones(lengths, bool), 1)] = -np.inf
        if window is not None:
            scores[..., ~_seen(lengths, window)] = -np.inf
        top = scores.max(-1, keepdims=True)
        powers = np.exp(scores - np.where(np.isfinite(top), top, 0))
        total = powers.sum(-1, keepdims=True)
        return [(powers / np.where(total == 0, 1, total) @ value).astype(dtype)]

    nodes, constants = ([], {}) if window is None else _window(lengths, window)
    given = [*names, "seen"] if window is not None else names
    nodes.append(("Attention", given, ["y"], {"is_causal": int(causal)}))
    made = {"y": dtype.name}
    return Case("attention", nodes, inputs, expected, made, constants=constants, tolerance=0.02, opset=23)


def _seen(lengths: tuple[int, int], window: tuple[int | None, int | None]) -> np.ndarray:
    away = np.arange(lengths[1]) - np.arange(lengths[0])[:, None]
    first, last = window
    return (away >= (-np.inf if first is None else first)) & (away <= (np.inf if last is None else last))


def _window(lengths: tuple[int, int], window: tuple[int | None, int | None]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """The nodes of ONNX that make the mask `seen` of a window, and their constants."""
    constants = {"zero": np.array(0), "one": np.array(1), "rows": np.array(lengths[0]), "keys": np.array(lengths[1])}
    nodes: list[Any] = [
        ("Range", ["zero", "rows", "one"], ["row"], {}), ("Range", ["zero", "keys", "one"], ["key"], {}),
        ("Unsqueeze", ["row", "one"], ["column"], {}),
    ]  # fmt: skip
    parts = []
    for name, operator, number in zip(("first", "last"), ("GreaterOrEqual", "LessOrEqual"), window, strict=True):
        if number is not None:
            constants[name] = np.array(number)
            nodes.append(("Add", ["column", name], [f"{name}_key"], {}))
            nodes.append((operator, ["key", f"{name}_key"], [f"{name}_seen"], {}))
            parts.append(f"{name}_seen")
    nodes.append(("And", [parts[0], parts[-1]], ["seen"], {}))
    return nodes, constants


LIMITS: dict[str, tuple[tuple[int, int], list[tuple[str, str, int, int]]]] = {
    # Lengths of rows and keys; operator of a key and of what is added: an input, 1 for the row's number too, a constant.
    "length": ((70, 200), [("Less", "length", 0, 0)]),
    "cache": ((70, 300), [("LessOrEqual", "past", 1, 0)]),
    "window": ((70, 400), [("LessOrEqual", "past", 1, 0), ("Greater", "past", 1, -40)]),
    "place": ((1, 500), [("LessOrEqual", "places", 0, 0)]),
    "places": ((7, 500), [("LessOrEqual", "places", 0, 0)]),
    "many_places": ((90, 200), [("LessOrEqual", "places", 0, 0)]),
    "both": ((40, 150), [("LessOrEqual", "past", 1, 0), ("Less", "length", 0, 0), ("LessOrEqual", "", 1, 90)]),
}  # fmt: skip


def _limited(form: str, dtype: Any = ml_dtypes.bfloat16, written: bool = False) -> Case:
    """Attention of two texts whose visible keys the run limits: by a length, by what is in front of the rows, by places
    of the rows; or the same `written` out."""
    lengths, limits = LIMITS[form]
    rows, keys = lengths
    shapes = {"length": (2, 1, 1, 1), "past": (2, 1, 1, 1), "places": (rows, 1)}
    given = sorted({name for _, name, _, _ in limits if name})
    nodes: list[Any] = [
        ("Range", ["zero", "rows", "one"], ["line"], {}), ("Unsqueeze", ["line", "one"], ["row"], {}),
        ("Range", ["zero", "keys", "one"], ["key"], {}),
    ]  # fmt: skip
    constants = {"zero": np.array(0), "one": np.array(1), "rows": np.array(rows), "keys": np.array(keys)}
    parts = []
    for number, (operator, name, with_row, more) in enumerate(limits):
        sum_, constants[f"more{number}"] = f"more{number}", np.array(more)
        for one in (*([name] if name else []), *(["row"] if with_row else [])):
            nodes.append(("Add", [sum_, one], [f"{sum_}_{one}"], {}))
            sum_ = f"{sum_}_{one}"
        nodes.append((operator, ["key", sum_], [f"part{number}"], {}))
        parts.append(f"part{number}")
    while len(parts) > 1:
        nodes.append(("And", parts[:2], [f"{parts[0]}_{parts[1]}"], {}))
        parts = [f"{parts[0]}_{parts[1]}", *parts[2:]]
    if written:
        constants |= {"scale": np.array(0.125, dtype), "low": np.array(-np.inf, dtype)}
        nodes += [
            ("Transpose", ["k"], ["kt"], {"perm": [0, 1, 3, 2]}), ("MatMul", ["q", "kt"], ["s0"], {}),
            ("Mul", ["s0", "scale"], ["s1"], {}), ("Where", [parts[0], "s1", "low"], ["s2"], {}),
            ("Softmax", ["s2"], ["p"], {"axis": 3}), ("MatMul", ["p", "v"], ["y"], {}),
        ]  # fmt: skip
    else:
        nodes.append(("Attention", ["q", "k", "v", parts[0]], ["y"], {}))
    shape = {"q": (2, 2, rows, 64), "k": (2, 2, keys, 64), "v": (2, 2, keys, 64)}

    def inputs() -> dict[str, np.ndarray]:
        rng = np.random.default_rng(20261130)
        arrays: dict[str, np.ndarray] = {n: rng.standard_normal(s).astype(dtype) for n, s in shape.items()}
        return {**arrays, **{n: rng.integers(1, keys - rows if n == "past" else keys, shapes[n]) for n in given}}

    def expected(arrays: Any) -> list[np.ndarray]:
        query, key, value = (np.asarray(arrays[name], np.float64) for name in "qkv")
        compared = {"Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater}
        shown: Any = True
        for operator, name, with_row, more in limits:
            limit = (arrays[name] if name else 0) + with_row * np.arange(rows)[:, None] + more
            shown = shown & compared[operator](np.arange(keys), limit)
        scores = np.where(shown, query @ key.swapaxes(-1, -2) / 8, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return [(powers / powers.sum(-1, keepdims=True) @ value).astype(dtype)]

    made = {"y": np.dtype(dtype).name}
    return Case("limited", nodes, inputs, expected, made, constants=constants, tolerance=0.02, opset=23)


def _chosen(heads: int, lengths: tuple[int, int], depth: int, dtype: Any) -> Case:
    """Attention that is written out, whose scores a mask of the run and a causal one choose from."""
    nodes, constants = _window(lengths, (None, 0))
    constants |= {"scale": np.array(depth**-0.5, dtype), "low": np.array(-np.inf, dtype)}
    nodes += [
        ("And", ["seen", "mask"], ["shown"], {}), ("Transpose", ["k"], ["kt"], {"perm": [0, 1, 3, 2]}),
        ("MatMul", ["q", "kt"], ["s0"], {}), ("Mul", ["s0", "scale"], ["s1"], {}),
        ("Where", ["shown", "s1", "low"], ["s2"], {}), ("Softmax", ["s2"], ["p"], {"axis": 3}),
        ("MatMul", ["p", "v"], ["y"], {}),
    ]  # fmt: skip

    def inputs() -> dict[str, np.ndarray]:
        rng = np.random.default_rng(20261130)
        shapes = {"q": (1, heads, lengths[0], depth), **dict.fromkeys("kv", (1, heads, lengths[1], depth))}
        arrays = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
        mask = rng.random((1, 1, 1, lengths[1])) < 0.7
        mask[..., 0] = True
        return {**arrays, "mask": mask}

    def expected(arrays: Any) -> list[np.ndarray]:
        query, key, value = (np.asarray(arrays[name], np.float64) for name in "qkv")
        scores = query @ key.swapaxes(-1, -2) / np.sqrt(depth)
        shown = _seen(lengths, (None, 0)) & arrays["mask"]
        powers = np.exp(scores - scores.max(-1, keepdims=True)) * shown
        return [(powers / powers.sum(-1, keepdims=True) @ value).astype(dtype)]

    made = {"y": np.dtype(dtype).name}
    return Case("chosen", nodes, inputs, expected, made, constants=constants, tolerance=0.02, opset=23)


def _with_sink(heads: int, lengths: tuple[int, int], depth: int, dtype: Any) -> Case:
    """Causal attention as PyTorch's exporters write it with a score for each head that belongs to no key: in front of
    all scores, behind them, and between."""
    sink = np.array([50.0, -60.0, 0.5, 2.0][:heads]).reshape(1, heads, 1, 1).astype(dtype)
    nodes, constants = _window(lengths, (None, 0))
    constants |= {
        "scale": np.array(depth**-0.5, dtype), "sink": sink, "low": np.array(-np.inf, dtype), "end": np.array([-1]),
        "to": np.array([1, heads, lengths[0], 1]), "start": np.array([0]), "axis": np.array([3]),
    }  # fmt: skip
    nodes += [
        ("Transpose", ["k"], ["kt"], {"perm": [0, 1, 3, 2]}), ("MatMul", ["q", "kt"], ["s0"], {}),
        ("Mul", ["s0", "scale"], ["s1"], {}), ("Where", ["seen", "s1", "low"], ["s2"], {}),
        ("Expand", ["sink", "to"], ["column"], {}), ("Concat", ["s2", "column"], ["s3"], {"axis": 3}),
        ("Softmax", ["s3"], ["p0"], {"axis": 3}), ("Slice", ["p0", "start", "end", "axis"], ["p1"], {}),
        ("MatMul", ["p1", "v"], ["y"], {}),
    ]  # fmt: skip
    nodes = [(name, ["rows_1" if v == "column" and name == "Add" else v for v in given],
              ["rows_1" if v == "column" and name == "Unsqueeze" else v for v in made], options)
             for name, given, made, options in nodes]  # fmt: skip

    def inputs() -> dict[str, np.ndarray]:
        rng = np.random.default_rng(20261130)
        shapes = {"q": (1, heads, lengths[0], depth), **dict.fromkeys("kv", (1, heads, lengths[1], depth))}
        return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}

    def expected(arrays: Any) -> list[np.ndarray]:
        query, key, value = (np.asarray(arrays[name], np.float64) for name in "qkv")
        scores = query @ key.swapaxes(-1, -2) / np.sqrt(depth)
        scores[..., ~_seen(lengths, (None, 0))] = -np.inf
        wide = np.asarray(sink, np.float64)
        top = np.maximum(scores.max(-1, keepdims=True), wide)
        powers = np.exp(scores - top)
        return [(powers / (powers.sum(-1, keepdims=True) + np.exp(wide - top)) @ value).astype(dtype)]

    made = {"y": np.dtype(dtype).name}
    return Case("sink", nodes, inputs, expected, made, constants=constants, tolerance=0.02, opset=23)


def _best(shape: tuple[int, int], k: int, largest: bool) -> Case:
    """The best of lines of bf16, many of them equal."""
    x = np.random.default_rng(20261124).standard_normal(shape).astype(ml_dtypes.bfloat16)
    x[0, 99], x[-1, ::7] = np.nan, -np.inf

    def expected(arrays: Any) -> list[np.ndarray]:
        wide = arrays["x"].astype(np.float32)
        key = np.where(np.isnan(wide), np.inf, wide)
        order = np.lexsort((-key, ~np.isnan(wide)) if largest else (key, np.isnan(wide)), axis=1)[:, :k]
        return [np.take_along_axis(arrays["x"], order, 1), order]

    nodes = [("TopK", ["x", "k"], ["v", "i"], {"largest": int(largest)})]
    return Case("best", nodes, lambda: {"x": x}, expected, {"v": "bfloat16", "i": "int64"},
                constants={"k": np.array([k])}, tolerance=0)  # fmt: skip


@pytest.mark.parametrize(("shape", "k", "largest"), [((3, 900), 60, True), ((1, 8_201), 50, False)])
def test_best_of_bfloat16(shape: tuple[int, int], k: int, largest: bool, tmp_path: Path) -> None:
    assert run_case(_best(shape, k, largest), tmp_path) == ""


# Blocks of a cluster and clusters that share keys, some of them without any.
SHARES: list[tuple[int, int, Case]] = [
    (2, 3, _attention((8, 2), (5, 330), 80)),
    (1, 16, _attention((8, 1), (1, 500), 128)),
    (8, 2, _attention((4, 4), (1, 777), 64)),
    (8, 1, _attention((16, 1), (1, 600), 64)),
    (2, 2, _attention((4, 1), (20, 300), 128, mask=True, dtype=np.float16)),
    (2, 2, _attention((8, 2), (8, 400), 40, causal=True)),
    (1, 3, _attention((2, 2), (64, 600), 256, dtype=np.float16)),
    (8, 3, _attention((2, 1), (1, 900), 80)),
    (4, 1, _attention((2, 2), (40, 500), 72, dtype=np.float16)),
    (2, 2, _attention((4, 2), (3, 600), 64, window=(300, 420))),
    (4, 1, _attention((2, 2), (50, 640), 64, window=(100, None))),
    (2, 1, _with_sink(3, (9, 600), 64, ml_dtypes.bfloat16)),
    (2, 3, _with_sink(4, (3, 600), 64, np.float16)),
]


@pytest.mark.parametrize("number", range(len(SHARES)))
def test_clusters_share_keys(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlc.passes.schedule.hopper_attention_cost as cost

    split, groups, case = SHARES[number]

    def ranked(source: Any, attention: Any, target: Any) -> list[Any]:
        return [cost._named(cost._schedule(cost.FEW, source, attention, target, (split, groups)))]

    monkeypatch.setattr(cost, "ranked_attention", ranked)
    assert run_case(case, tmp_path) == ""


WINDOWS = {
    "wide": ((2, 1), (300, 300), 64, (-200, 0)),
    "narrow": ((2, 2), (300, 300), 64, (-9, 0)),
    "one_key": ((1, 1), (200, 200), 128, (0, 0)),
    "around": ((1, 1), (260, 270), 40, (-100, 60)),
    "ahead": ((1, 1), (150, 400), 64, (20, None)),
    "behind_a_cache": ((2, 1), (100, 500), 64, (300, 400)),
    "rows_without_keys": ((1, 1), (300, 90), 64, (-50, 0)),
}


@pytest.mark.parametrize(("gpu", "form"), spread(list(WINDOWS), "sm_90a", ["sm_80"], 3))
def test_windows(form: str, gpu: str, tmp_path: Path) -> None:
    """Keys in front of the rows of a tile are not read, those that some of its rows see are hidden from the others."""
    heads, lengths, depth, window = WINDOWS[form]
    assert run_case(_attention(heads, lengths, depth, window=window), tmp_path, gpu) == ""


@pytest.mark.parametrize("form", ["narrow", "around"])
def test_windows_of_exact_products(form: str, tmp_path: Path) -> None:
    heads, lengths, depth, window = WINDOWS[form]
    case = _attention(heads, lengths, depth, window=window, dtype=np.float32)
    assert run_case(replace(case, tolerance=1e-5), tmp_path) == ""


@pytest.mark.parametrize(("gpu", "form"), spread(list(LIMITS), "sm_90a", ["sm_80"], 3))
def test_limits_of_the_run(form: str, gpu: str, tmp_path: Path) -> None:
    """The kernel reads them itself, and no mask."""
    assert run_case(_limited(form), tmp_path, gpu) == ""
    assert len(list(tmp_path.rglob("*.ptx"))) == 1


@pytest.mark.parametrize(("form", "gpu"), [("cache", "sm_90a"), ("places", "sm_90a"), ("window", "sm_80")])
def test_limits_of_written_attention(form: str, gpu: str, tmp_path: Path) -> None:
    assert run_case(_limited(form, written=True), tmp_path, gpu) == ""
    assert len(list(tmp_path.rglob("*.ptx"))) == 1


@pytest.mark.parametrize("gpu", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16], ids=str)
def test_masks_of_the_run(dtype: Any, gpu: str, tmp_path: Path) -> None:
    """In the kernel, beside a causal mask, which still bounds what is read."""
    case = _chosen(2, (150, 170), 64, dtype)
    assert run_case(case, tmp_path, gpu) == ""
    assert len(list(tmp_path.rglob("*.ptx"))) == 1


@pytest.mark.parametrize("gpu", ["sm_90a", "sm_80"])
@pytest.mark.parametrize(("lengths", "dtype"), [((150, 150), ml_dtypes.bfloat16), ((60, 70), np.float32)], ids=str)
def test_sinks(lengths: tuple[int, int], dtype: Any, gpu: str, tmp_path: Path) -> None:
    case = _with_sink(4, lengths, 64, dtype)
    case = replace(case, tolerance=1e-5) if dtype == np.float32 else case
    assert run_case(case, tmp_path, gpu) == ""


# Queries of a warp, threads across a row and tiles of keys together, of products that are exact.
@pytest.mark.parametrize(
    ("rows", "across", "together", "causal"),
    [(16, 8, 1, True), (32, 4, 1, True), (32, 8, 1, False), (32, 8, 1, True), (32, 8, 2, True), (32, 4, 2, False)],
)
def test_exact_attention(
    rows: int, across: int, together: int, causal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlc.passes.schedule.ampere_attention_cost as cost

    def only(attention: Any, target: Any) -> list[Any]:
        return [cost.AmpereAttentionSchedule("f32", 2 * rows, rows, 4, 64, 2, across, together)]

    monkeypatch.setattr(cost, "_exact", only)
    case = _attention((2, 1), (70, 77), 72, causal=causal, dtype=np.float32)
    assert run_case(replace(case, tolerance=1e-5), tmp_path) == ""


# -- what the machine notices ------------------------------------------------------------------------------------------

_ENTRY = """
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 mlc_shared[];
.visible .entry k(.param .u64 .ptr .align 1 k_param_0, .param .u64 k_param_1) {
  .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.b64 %rd1, [k_param_0];
  ld.param.b64 %rd2, [k_param_1];
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  mov.u32 %r2, mlc_shared;
"""


def _run(body: str, elements: int = 64, threads: int = 64) -> np.ndarray:
    """Runs a kernel of one block on words that count from 0."""
    memory = Memory(1 << 16)
    content = np.arange(elements, dtype=np.uint32).tobytes()
    address = memory.allocate(content)
    nothing = memory.allocate(256)
    program = decode(parse(_ENTRY + body + "ret;\n}"), 1024, {})
    given = {name: value.to_bytes(8, "little") for name, value in (("k_param_0", address), ("k_param_1", nothing))}
    Launch(program, memory, threads, 1, given, {}).run()
    return np.frombuffer(memory.contents(address, len(content)), np.uint32)


def test_threads_that_come_apart_meet_again() -> None:
    body = """
      and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 1; @%p2 bra ODD;
      mov.u32 %r4, 5; bra.uni BOTH;
      ODD: mov.u32 %r4, 7;
      BOTH: shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1; st.global.b32 [%rd4], %r5;
    """
    assert _run(body).tolist() == [7, 5] * 32


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("st.global.b32 [%rd4], %r1;", "writes at .* in no buffer"),
        ("ld.global.b32 %r3, [%rd4+2];", "not aligned"),
        ("ld.global.b32 %r3, [%rd2];", "which nobody has written"),
        ("@%p1 bar.sync 0;", "threads of the warp are elsewhere"),
        ("mov.b32 %r3, 2; @%p1 mbarrier.init.shared.b64 [%r2], %r3; bar.sync 0; "
         "@%p1 mbarrier.arrive.shared.b64 _, [%r2]; mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;",
         "all wait for each other: line .*mbarrier.try_wait"),
        ("mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;", "no barrier at"),
        ("bar.sync 1, 128;", "all wait for each other"),
        ("trap;", "trap"),
    ],
)  # fmt: skip
def test_what_must_not_be_is_an_error(body: str, said: str) -> None:
    with pytest.raises(EmulationError, match=said):
        _run(body, elements=32)


def test_copies_are_there_when_they_have_been_waited_for() -> None:
    begin = "shl.b32 %r3, %r1, 4; add.s32 %r3, %r2, %r3; mul.wide.u32 %rd5, %r1, 16; add.s64 %rd5, %rd1, %rd5;"
    copy = "cp.async.cg.shared.global [%r3], [%rd5], 16; cp.async.commit_group;"
    end = "ld.shared.b32 %r4, [%r3+4]; add.s32 %r4, %r4, 100; st.global.b32 [%rd5], %r4;"
    waits = _run(begin + copy + "cp.async.wait_group 0;" + end, elements=256)
    assert waits[::4].tolist() == [4 * n + 101 for n in range(64)]
    assert (_run(begin + copy + "cp.async.wait_group 1;" + end, elements=256)[::4] == 99).all(), "poison and 100"
