"""The list of phases for NVIDIA GPUs: complete, shared with the CPU up to the kernels, and every pass in it exists."""

from __future__ import annotations

import re

import pytest
from mlir import ir
from mlir.passmanager import PassManager

import mlc.compiler_setup  # noqa: F401
from mlc import _native
from mlc.options import CUDA_PHASES
from mlc.pipelines import cpu
from mlc.pipelines.cuda import ASKING, SHARED, phases
from mlc.targets.cpu import resolve
from mlc.targets.nvidia import NAMED

GPU_ONLY = (
    "mlc-float8-contractions",
    "mlc-turn-products",
    "mlc-sum-products",
    "mlc-slice-gathers",
    "mlc-fold-factors",
    "mlc-recompute-producers",
    "mlc-plan-splits",
    "mlc-plan-parts",
    "mlc-split-scans",
    "mlc-split-selections",
    "mlc-order-scatters",
    "mlc-sink-moves",
    "mlc-join-groups",
    "mlc-unfold-windows",
    "mlc-pad-channels",
    "mlc-extend-channels",
    "mlc-align-products",
)
CPU_ONLY = (
    "mlc-group-gathers",
    "mlc-share-kernels",
    "mlc-plan-splits{threads=true}",
    "mlc-sink-moves{joins=true}",
    "mlc-join-groups{line=64 apart=true}",
    "mlc-widen-halves",
    "mlc-widen-halves{weights=true}",
)
HOST = resolve("native", _native.host_info())


@pytest.mark.parametrize("chip", NAMED)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "tf32"])
def test_phases_and_passes(chip: str, precision: str) -> None:
    answers = ("cuda" if NAMED[chip].has_wgmma else "cuda-mma") + ("-tf32" if precision == "tf32" else "")
    listed = phases([NAMED[chip]], HOST, precision)
    assert tuple(name for name, _ in listed) == CUDA_PHASES
    expected = cpu.phases(HOST, precision, integers=False)
    for (name, passes), (_, of_cpu) in zip(listed[: len(SHARED)], expected, strict=False):
        plain = [p.removesuffix("{weights-only=true}") for p in of_cpu if p not in CPU_ONLY and not _recurs(p)]
        asked = [f"{p}{{target={answers}}}" if p in ASKING else p for p in plain]
        asked = [p.split("{")[0] if p.startswith("mlc-narrow-stores") else p for p in asked]  # tensors of any size
        of_both = [p for p in passes if p.split("{")[0] not in GPU_ONLY and not _recurs(p)]
        shared = [re.sub(r"\{(bytes=true|even=true|narrow=true|even=8|rows=\d+)\}$", "", p) for p in of_both]
        assert shared == asked, name
    with ir.Context():
        for _, passes in listed:
            for text in passes:
                PassManager.parse(f"builtin.module({text})")


def _recurs(text: str) -> bool:
    """Is it the pass that makes recurrent layers kernels, which multiply what the precision says?"""
    return text.startswith(cpu.RECURRING)


@pytest.mark.parametrize(("precision", "options"), [("fp32", "f32=false"), ("tf32", "f32=true"), ("bf16", "narrow=true")])
def test_recurrent_layers(precision: str, options: str) -> None:
    """Tensor cores multiply f32 where the precision allows it only."""
    passes = dict(phases([NAMED["h200"]], HOST, precision))["decompose"]
    [found] = [p for p in passes if _recurs(p)]
    assert options in found and passes.index(found) < passes.index("mlc-decompose")


def test_templates_of_the_gpu_are_asked_whatever_the_host() -> None:
    hosts = [resolve(name, _native.host_info()) for name in ("x86-64-v4", "sapphirerapids")]
    plans = [dict(phases([next(iter(NAMED.values()))], host, "bf16"))["kernels"] for host in hosts]
    assert plans[0] == plans[1]
