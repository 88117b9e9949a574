"""The part `models`: whole models in fp32, tf32 and bf16, against PyTorch where it has the model too."""

from __future__ import annotations

import copy
import gc
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpu_parts import twins
from gpu_parts.measure import compile_to, measure, wait

PRECISIONS = ("fp32", "bf16", "tf32")


def compile_models(folder: Path, models: dict[str, Path]) -> None:
    """Writes the libraries of the ONNX files `models`, or of all twins, without weights: `run_part` has its own."""
    for name, path in models.items():
        _compile(folder, name, path)
    for name in [] if models else twins.twin_names():
        path = folder / f"{name}.onnx"
        if not path.exists():
            twins.export(name, path)
        _compile(folder, name, path)
        path.unlink()
        path.with_name(path.name + ".data").unlink(missing_ok=True)


def _compile(folder: Path, name: str, path: Path) -> None:
    for precision in PRECISIONS:
        began = time.monotonic()
        compile_to(path, folder / f"{name}.{precision}.so", precision, "external")
        (folder / f"{name}.{precision}.safetensors").unlink()
        print(f"{name} {precision} {time.monotonic() - began:.1f} s", flush=True)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Times every model: twins against PyTorch, others in all precisions; and says how far results are from fp32."""
    rows = []
    for name in sorted({path.name.split(".")[0] for path in folder.glob("*.bf16.so")}):
        gc.collect()
        rows.append(run_twin(folder, name) if twins.is_twin(name) else run_alone(folder, name))
    return rows


def run_alone(folder: Path, name: str) -> dict[str, Any]:
    """A model with random weights in all precisions."""
    runs = {p: ModelRun(folder / f"{name}.{p}.so") for p in PRECISIONS}
    for run in runs.values():
        run.run(0)
    wait()
    errors = {p: _difference(runs["fp32"].results, runs[p].results) for p in PRECISIONS if p != "fp32"}
    times = measure({p: run.run for p, run in runs.items()}, 4)
    shown = "  ".join(f"{p} {t.median / 1e3:.3f} ms" for p, t in times.items())
    print(f"{name:24s} {shown}  difference {errors}", flush=True)
    print(runs["bf16"].profile(), flush=True)
    return {"name": name, "difference": errors, **{p: asdict(t) for p, t in times.items()}}


def run_twin(
    folder: Path,
    name: str,
    precisions: Sequence[str] = ("bf16", "tf32"),
    modes: Sequence[str] = twins.MODES,
    ready: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """A model against PyTorch with the same weights; differences are from PyTorch in f32. `ready` is called when all
    that is timed is compiled."""
    import torch

    module, x = twins.build(name)
    expected: list[Any] = []
    row: dict[str, Any] = {"name": name}
    for precision in precisions:
        library = folder / f"{name}.{precision}.so"
        if not library.with_suffix(".safetensors").exists():
            twins.give_weights(module, library)
        own = ModelRun(library, [x.cuda()])
        peers = {mode: twins.engine(copy.deepcopy(module), x, precision, mode) for mode in modes}
        if ready is not None:
            for run, _ in peers.values():
                run(0)
            wait()
            ready()
        times = measure({"mlc": own.run, **{mode: run for mode, (run, _) in peers.items()}}, 4)
        # Before PyTorch is set to exact products, for which what was compiled would be searched for anew.
        profiles = [own.profile(), *([profile_of(peers[modes[-1]][0])] if ready is not None else [])]
        if not expected:  # only now: while others search, the GPU is theirs
            exact, expected = twins.engine(copy.deepcopy(module), x, "fp32", "eager")
            exact(0)
            wait()
        errors = {"mlc": _difference(expected, own.results)}
        errors |= {mode: _difference(expected, last) for mode, (_, last) in peers.items()}
        best = min((times[mode].median for mode in modes if mode != "eager"), default=math.nan)
        shown = "  ".join(f"{engine} {t.median / 1e3:.3f}" for engine, t in times.items())
        far = "  ".join(f"{engine} {error:.1e}" for engine, error in errors.items())
        ratio = best / times["mlc"].median
        print(f"{name:16s} {precision} ms: {shown}  compiled / mlc {ratio:.3f}  differences: {far}", flush=True)
        print("\n".join(profiles), flush=True)
        row[precision] = {"difference": errors, "ratio": ratio, **{e: asdict(t) for e, t in times.items()}}
        del own, peers
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()
    return row


def profile_of(run: Callable[[int], None], most: int = 14) -> str:
    """The kernels of PyTorch that take longest in a run, as `ModelRun.profile` has those of a library."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for number in range(3):
            run(number)
        wait()
    kernels = sorted(found.key_averages(), key=lambda kernel: -kernel.device_time_total)
    lines = [f"  {k.key[:72]:72s} {k.count:5d} x {k.device_time_total / k.count:8.2f} us" for k in kernels[:most]]
    return "\n".join(lines)


def _difference(exact: Sequence[Any], rounded: Sequence[Any]) -> float:
    """The largest ||a - b|| / ||a|| over the results."""
    pairs = zip(exact, rounded, strict=True)
    return max(((a.double() - b.double()).norm() / a.double().norm()).item() for a, b in pairs)


class ModelRun:
    """A model on the GPU, with inputs and results there: random ones, and random weights, where none are given.
    `shapes` are those of results that only a run knows."""

    def __init__(
        self, library: Path, inputs: list[Any] | None = None, shapes: Sequence[Any] | None = None
    ) -> None:
        import torch

        from mlc.runtime.loader import load

        weights = library.with_suffix(".safetensors")
        if not weights.exists():
            command = [sys.executable, "-m", "mlc.cli.run", str(library), "--init-weights", "0"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.model = load(library, verify_weights=False)
        torch.manual_seed(0)
        self.inputs = inputs or [self._tensor(info) for info in self.model.inputs]
        self.context = self.model.context()
        self.results = [
            torch.full(shape, float("nan"), device="cuda", dtype=getattr(torch, info.dtype))
            for info, shape in zip(self.model.outputs, shapes or [i.dims for i in self.model.outputs], strict=True)
        ]

    @staticmethod
    def _tensor(info: Any) -> Any:
        import torch

        kind = getattr(torch, info.dtype)
        if kind.is_floating_point:
            return torch.randn(info.dims, device="cuda").to(kind)
        return torch.randint(0, 2 if "mask" in info.name or "type" in info.name else 1000, info.dims, device="cuda",
                             dtype=kind)  # fmt: skip

    def run(self, _: int) -> None:
        """One run."""
        import torch

        self.context.run(self.inputs, out=self.results, stream=torch.cuda.current_stream().cuda_stream)

    def profile(self, most: int = 14) -> str:
        """The kernels that take longest, by a context that times every launch."""
        with self.model.context(profile=True) as context:
            for _ in range(3):
                context.run(self.inputs, out=self.results)
            kernels = context.profile()["kernels"]
        kernels.sort(key=lambda k: -k["ns"])
        lines = []
        for kernel in kernels[:most]:
            each = kernel["ns"] / kernel["calls"] / 1e3
            lines.append(f"  {kernel['name']:8s} {kernel['template']:20s} {kernel['calls']:5d} x {each:8.2f} us")
        return "\n".join(lines)
