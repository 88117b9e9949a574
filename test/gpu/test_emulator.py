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
from spread import EVERY

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
        "parts_argmin_many_last", "parts_argmin_last", "parts_sum", *(["parts_argmax_most_parts"] if EVERY else []),
    )),
)  # fmt: skip
ROUNDED = (
    ("conv", "sm_90a", "bf16"), ("conv_deep", "sm_90a", "bf16"), ("conv_depthwise", "sm_90a", "bf16"),
    ("attention_100x77x64", "sm_90a", "bf16"), ("attention_70x70x40", "sm_80", "tf32"),
    ("gemm_transposed", "sm_90a", "tf32"), ("matmul_batched", "sm_80", "tf32"),
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
    """Attention of heads with queries, and with keys; `causal`, `mask` and `dtype` (bf16)."""
    dtype, causal = np.dtype(options.get("dtype", ml_dtypes.bfloat16)), options.get("causal", False)
    names = ["q", "k", "v", *(["mask"] if options.get("mask") else [])]

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
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return [(powers / powers.sum(-1, keepdims=True) @ value).astype(dtype)]

    node = ("Attention", names, ["y"], {"is_causal": int(causal)})
    return Case("attention", [node], inputs, expected, {"y": dtype.name}, tolerance=0.02, opset=23)


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
]


@pytest.mark.parametrize("number", range(len(SHARES)))
def test_clusters_share_keys(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlc.passes.schedule.hopper_attention_cost as cost

    split, groups, case = SHARES[number]

    def ranked(source: Any, attention: Any, target: Any) -> list[Any]:
        return [cost._named(cost._schedule(cost.FEW, source, attention, target, (split, groups)))]

    monkeypatch.setattr(cost, "ranked_attention", ranked)
    assert run_case(case, tmp_path) == ""


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
