"""The part `models`: whole models in fp32, tf32 and bf16."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, measure, wait


def compile_models(folder: Path, models: dict[str, Path]) -> None:
    """Writes the libraries of the ONNX files `models` without their weights: `run_part` makes its own."""
    for name, path in models.items():
        for precision in ("fp32", "bf16", "tf32"):
            compile_to(path, folder / f"{name}.{precision}.so", precision, "external")
            (folder / f"{name}.{precision}.safetensors").unlink()
            print(name, precision, flush=True)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Times every model in bf16, and compares its results with those in fp32."""
    rows = []
    for path in sorted(folder.glob("*.bf16.so")):
        name = path.name.removesuffix(".bf16.so")
        runs = {p: ModelRun(folder / f"{name}.{p}.so") for p in ("fp32", "bf16", "tf32")}
        for run in runs.values():
            run.run(0)
        wait()
        errors = {p: _difference(runs["fp32"].results, runs[p].results) for p in ("bf16", "tf32")}
        times = measure({p: run.run for p, run in runs.items()}, 4)
        shown = "  ".join(f"{p} {t.median / 1e3:.3f} ms" for p, t in times.items())
        print(f"{name:24s} {shown}  difference {errors}", flush=True)
        print(runs["bf16"].profile(), flush=True)
        rows.append({"name": name, "difference": errors, **{p: asdict(t) for p, t in times.items()}})
    return rows


def _difference(exact: Sequence[Any], rounded: Sequence[Any]) -> float:
    """The largest ||a - b|| / ||a|| over the results."""
    pairs = zip(exact, rounded, strict=True)
    return max(((a.double() - b.double()).norm() / a.double().norm()).item() for a, b in pairs)


class ModelRun:
    """A model with random weights on the GPU, with inputs and results there."""

    def __init__(self, library: Path) -> None:
        import torch

        from mlc.runtime.loader import load

        weights = library.with_suffix(".safetensors")
        if not weights.exists():
            command = [sys.executable, "-m", "mlc.cli.run", str(library), "--init-weights", "0"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.model = load(library, verify_weights=False)
        torch.manual_seed(0)
        self.inputs = [self._tensor(info) for info in self.model.inputs]
        self.context = self.model.context()
        self.results = [
            torch.full(info.dims, float("nan"), device="cuda", dtype=getattr(torch, info.dtype))
            for info in self.model.outputs
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
