"""The part `dynamic`: one library of BERT and of GPT-2 whose batch and length only a run knows, against libraries that
are compiled for one length each; all in bf16, with random weights, and results compared with each other."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, measure, wait
from gpu_parts.models import ModelRun

LENGTHS = {"bert": (16, 64, 128, 512), "gpt2": (16, 64, 128, 512, 1000)}
BOUND = 2e-2  # of two ways to round to bf16


def compile_part(folder: Path) -> None:
    """Writes the libraries, without weights."""
    for name, lengths in LENGTHS.items():
        source = folder / f"{name}.onnx"
        export(name, source)
        compile_to(source, folder / f"{name}_dynamic.so", weights="external")
        for length in lengths:
            compile_to(source, library(folder, name, length), weights="external", dims={"batch": 1, "tokens": length})
        for path in [source, *folder.glob(f"{name}_*.safetensors")]:
            path.unlink()
        print(name, flush=True)


def library(folder: Path, name: str, length: int) -> Path:
    """Where the library of one length is."""
    return folder / f"{name}_{length}.so"


def export(name: str, path: Path) -> None:
    """Writes the ONNX file of a model with dimensions `batch` and `tokens`."""
    import torch

    from gpu_parts.language_peers import Bert, Gpt2

    torch.manual_seed(0)
    model = (Bert() if name == "bert" else Gpt2()).eval().to(torch.bfloat16)
    dims = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("tokens", min=1, max=LENGTHS[name][-1])}
    torch.onnx.export(
        model, (torch.zeros((2, 17), dtype=torch.int64),), str(path), input_names=["ids"], output_names=["y"],
        opset_version=20, dynamo=True, verbose=False, external_data=False, dynamic_shapes={"ids": dims},
    )  # fmt: skip


def run_part(folder: Path) -> list[dict[str, Any]]:
    """A row for every model and length; the weights of all libraries of a model are the same."""
    return [row for name, lengths in LENGTHS.items() for row in _rows(folder, name, lengths)]


def _rows(folder: Path, name: str, lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    import torch

    rows = []
    for length in lengths:
        ids = torch.randint(0, 1000, (1, length), device="cuda")
        fixed = ModelRun(library(folder, name, length), [ids])
        free = ModelRun(folder / f"{name}_dynamic.so", [ids], [tuple(r.shape) for r in fixed.results])
        fixed.run(0)
        free.run(0)
        wait()
        pairs = list(zip(fixed.results, free.results, strict=True))
        error = max(((a.double() - b.double()).norm() / a.double().norm()).item() for a, b in pairs)
        times = measure({"fixed": fixed.run, "dynamic": free.run}, 4)
        ratio = times["fixed"].median / times["dynamic"].median
        shown = "  ".join(f"{engine} {t.median:8.2f} us" for engine, t in times.items())
        print(f"{name:6s} {length:5d} {shown}  x{ratio:.3f}  difference {error:.1e}", flush=True)
        rows.append({"name": f"{name} {length}", "right": error < BOUND, **{n: asdict(t) for n, t in times.items()}})
    return rows
