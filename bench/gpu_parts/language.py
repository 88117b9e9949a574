"""The part `language`: GPT-2 with 512 tokens, and a Llama of eight layers of the 1B model's shape with 512 tokens and
decoding a token with 1,024 places in the cache, all in bf16, against `torch.compile`.

Small Llamas are compared with onnxruntime's results in float32. The large ones have random weights, each side its own.
PyTorch's modules are compiled in the default mode and in `max-autotune` (its `no-cudagraphs` form), and captured as
CUDA graphs as the library is, which leaves out what its own graphs cost. PyTorch updates its caches in place; the
library writes caches of its own, every place of them: both as their users get them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from gpu_parts.measure import compile_to, measure, wait
from gpu_parts.models import ModelRun, profile_of

BOUND = 2e-2  # of bf16 results, relative to those in float32
PLACES, POSITION = 1024, 1000


@dataclass(frozen=True)
class Case:
    """A model that is timed: of `family`, with `tokens` at once, and `cache` places."""

    name: str
    family: str
    tokens: int
    cache: int = 0


CASES = (
    Case("gpt2_512", "gpt2", 512),
    Case("llama_1b_prefill_512", "llama", 512),
    Case("llama_1b_decode", "llama", 1, PLACES),
)
CHECKS = (("small_prefill", 130, 0), ("small_decode", 1, 200), ("small_decode_more", 3, 200))


def compile_part(folder: Path) -> None:
    """Writes the libraries, without weights but for the small ones, and the small ones' inputs and expected results."""
    from models import llama

    small = llama.Llama(layers=2, width=256, heads=8, groups=2, depth=64, inner=512, words=512)
    for name, tokens, cache in CHECKS:
        compile_to(_with_expected(folder, small, name, tokens, cache), folder / f"{name}.so")
        print(name, flush=True)
    for case in CASES:
        source = folder / f"{case.name}.onnx"
        if case.family == "llama":
            llama.save(llama.llama(llama.Llama(), case.tokens, case.cache), llama.Llama(), source)
        else:
            _export_gpt2(source, case.tokens)
        began = time.perf_counter()
        compile_to(source, folder / f"{case.name}.so", "fp32", "external")
        print(f"{case.name} compiled in {time.perf_counter() - began:.1f} s", flush=True)
        for suffix in (".onnx", ".weights", ".safetensors", ".onnx.data"):
            (folder / f"{case.name}{suffix}").unlink(missing_ok=True)


def _with_expected(folder: Path, small: Any, name: str, tokens: int, cache: int) -> Any:
    """A small model in bf16; its inputs and what onnxruntime computes of them in float32 are written to `folder`."""
    from dataclasses import replace

    import ml_dtypes
    import onnxruntime
    from models import llama

    rounded = llama.random_weights(small)
    wide = {n: w.astype(np.float32) for n, w in rounded.items()}
    exact = llama.llama(replace(small, dtype="float32"), tokens, cache, wide.__getitem__)
    session = onnxruntime.InferenceSession(exact.SerializeToString())
    rng, arrays = np.random.default_rng(tokens), {}
    for info in session.get_inputs():
        if info.name == "ids":
            arrays[info.name] = rng.integers(0, small.words, info.shape)
        elif info.name == "position":
            arrays[info.name] = np.array([cache - tokens - 20])
        else:
            drawn = rng.standard_normal(info.shape, np.float32)
            arrays[info.name] = drawn.astype(ml_dtypes.bfloat16).astype(np.float32)
    results = session.run(None, arrays)
    expected = {f"={i.name}": r for i, r in zip(session.get_outputs(), results, strict=True)}
    np.savez(folder / f"{name}.npz", **arrays, **expected)
    return llama.llama(small, tokens, cache, rounded.__getitem__)


def _export_gpt2(path: Path, tokens: int) -> None:
    import torch

    from gpu_parts.language_peers import Gpt2

    torch.manual_seed(0)
    model = Gpt2().eval().to(torch.bfloat16)
    ids = torch.zeros((1, tokens), dtype=torch.int64)
    torch.onnx.export(model, (ids,), str(path), input_names=["ids"], output_names=["logits"], opset_version=20,
                      dynamo=True, verbose=False)  # fmt: skip


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks the small models, and times the large ones; MLC_LANGUAGE_MODES says in which modes PyTorch compiles."""
    filled = [_fill(folder / f"{case.name}.so") for case in CASES]
    rows = [_checked(folder, name) for name, *_ in CHECKS]
    modes = os.environ.get("MLC_LANGUAGE_MODES", "default,max-autotune-no-cudagraphs").split(",")
    for case, process in zip(CASES, filled, strict=True):
        peers = _peers(case, [mode for mode in modes if mode])
        if process is not None and process.wait():
            raise RuntimeError(f"{case.name}: no weights were made")
        rows.append(_timed(folder, case, peers))
        del peers
        _free()
    return rows


def run_searched(folder: Path, name: str, mode: str, ready: Callable[[], None]) -> dict[str, Any]:
    """A large model against the default mode and `mode`; `ready` is called when all that is timed is compiled."""
    case = next(case for case in CASES if case.name == name)
    process = _fill(folder / f"{name}.so")
    peers = _peers(case, ["default", mode])
    if process is not None and process.wait():
        raise RuntimeError(f"{name}: no weights were made")
    ready()
    row = _timed(folder, case, peers)
    print(profile_of(peers[mode], 24), flush=True)
    return row


def _fill(library: Path) -> Any:
    """Begins to write random weights for a library, if there are none."""
    if library.with_suffix(".safetensors").exists():
        return None
    command = [sys.executable, "-m", "mlc.cli.run", str(library), "--init-weights", "0"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def _free() -> None:
    import gc

    import torch

    gc.collect()
    torch.cuda.empty_cache()
    torch._dynamo.reset()


def _checked(folder: Path, name: str) -> dict[str, Any]:
    """A small model's largest ||y - y32|| / ||y32|| over its results."""
    import torch

    from mlc.runtime.loader import load

    arrays = np.load(folder / f"{name}.npz")
    model = load(folder / f"{name}.so")
    inputs = [torch.from_numpy(arrays[i.name]).cuda().to(getattr(torch, i.dtype)) for i in model.inputs]
    expected = [torch.from_numpy(arrays[f"={o.name}"]).cuda().double() for o in model.outputs]
    results = [torch.full(o.dims, float("nan"), device="cuda", dtype=getattr(torch, o.dtype)) for o in model.outputs]
    model.context().run(inputs, out=results, stream=torch.cuda.current_stream().cuda_stream)
    wait()
    errors = [((y.double() - e).norm() / e.norm()).item() for y, e in zip(results, expected, strict=True)]
    right = all(error < BOUND for error in errors)
    print(f"{'right' if right else 'WRONG'} {name:24s} {' '.join(f'{e:.1e}' for e in errors)}", flush=True)
    return {"name": name, "error": max(errors), "right": right}


def _peers(case: Case, modes: list[str]) -> dict[str, Callable[[int], None]]:
    """What runs PyTorch's model, by mode."""
    import torch

    torch.manual_seed(0)
    model, arguments = _torch_model(case)
    peers: dict[str, Callable[[int], None]] = {}
    for mode in modes:
        began = time.perf_counter()
        torch._dynamo.reset()
        compiled = torch.compile(model, mode=mode)

        def run(_: int, compiled: Any = compiled) -> None:
            with torch.no_grad():
                compiled(*arguments)

        run(0)
        wait()
        print(f"{case.name}: torch.compile {mode} took {time.perf_counter() - began:.1f} s", flush=True)
        peers[mode] = run
    return peers


def _torch_model(case: Case) -> tuple[Any, tuple[Any, ...]]:
    import torch

    from gpu_parts import language_peers as peers

    ids = torch.randint(0, 1000, (1, case.tokens), device="cuda")
    if case.family == "gpt2":
        return peers.Gpt2().eval().to("cuda", torch.bfloat16), (ids,)
    from models.llama import Llama

    sizes = Llama()
    model = peers.Llama(sizes, case.cache or case.tokens).eval().to("cuda", torch.bfloat16)
    if not case.cache:
        return model, (ids,)
    shape = (sizes.layers, 1, sizes.groups, case.cache, sizes.depth)
    caches = [list(torch.randn(shape, device="cuda").to(torch.bfloat16)) for _ in range(2)]
    return model, (ids, torch.tensor([POSITION], device="cuda"), *caches)


def _timed(folder: Path, case: Case, peers: dict[str, Callable[[int], None]]) -> dict[str, Any]:
    """A row of the report."""
    import torch

    run = ModelRun(folder / f"{case.name}.so")
    for info, tensor in zip(run.model.inputs, run.inputs, strict=True):
        if info.name == "position":
            tensor.copy_(torch.tensor([POSITION]))
    run.run(0)
    wait()
    finite = all(bool(result.isfinite().all()) for result in run.results)
    times = measure({"mlc": run.run, **peers}, 4)
    shown = "  ".join(f"{name} {t.median / 1e3:.4f} ms" for name, t in times.items())
    best = min((times[name].median for name in peers), default=float("nan"))
    print(f"{case.name:24s} {shown}  x{best / times['mlc'].median:.3f} {'' if finite else 'NOT FINITE'}", flush=True)
    print(run.profile(24), flush=True)
    return {"name": case.name, "right": finite, **{n: asdict(t) for n, t in times.items()}}
