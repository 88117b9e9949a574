#!/usr/bin/env python3
"""Libraries for NVIDIA GPUs against PyTorch: compiled on one machine, run on another that has the GPU.

    python bench/gpu.py compile FOLDER [PART…] [--model NAME=FILE.onnx]   # where the compiler is
    python bench/gpu.py run FOLDER [PART…]                                # where GPU and PyTorch are; mlc needs NumPy
    python bench/gpu.py chart FOLDER                                      # FOLDER/report.json as a page once more

Parts (`bench/gpu_parts`): `check` (many small products and convolutions: right or wrong), `gemm` (products of matrices
against torch.matmul), `gemv` (the same with few rows), `conv` (the layers of ResNet-50, MobileNetV2 and ResNeXt-50
against cuDNN),
`rows` (softmax, norms, elementwise chains, transpositions and reductions against eager and compiled PyTorch),
`selection` (the best elements of lines, where extreme ones are, scattered updates and running sums, against eager
PyTorch),
`recurrent` (layers of LSTMs, GRUs and RNNs against cuDNN),
`attention` (against PyTorch's flash and cuDNN back ends), `masks` (windows, sinks and caches against its masks,
FlexAttention and compiled PyTorch), `models` (against eager and compiled PyTorch), `language`
(language models against `torch.compile`), `dynamic` (BERT and GPT-2 of any length against libraries for one length
each), `runtime` (what the runtime promises: bits, memory, streams, captures,
addresses that change), and only where they are named `tune` (schedules other than the chosen ones, of the cases of
`gemm`, `conv` and `attention`), `search` (models and their convolutions against `torch.compile` with `max-autotune`)
and `sweep` (architectures of other packages, `--architecture`, against `torch.compile`).
A model's library has its weights outside. Models that PyTorch has are exported from it, and run with its weights; of
others (`--model`) `run` makes random ones of the same seed for each precision and compares results with those of the
same model in fp32, which another template computes. Times are medians of replays of
CUDA graphs, the engines in turn; inputs are normal random numbers, several sets of them where one would stay in the
cache; outputs are poisoned, and compared with float64. A run writes FOLDER/report.json with every number, and
FOLDER/report.html, which draws them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_parts import chart, measure

PARTS = (
    *("check", "gemm", "gemv", "conv", "rows", "selection", "recurrent", "attention", "masks"),
    *("models", "language", "dynamic", "runtime"),
)
# The first takes a quarter of an hour to compile, the others minutes to run.
ON_REQUEST = ("tune", "search", "sweep")


def main() -> None:
    """Compiles or runs; ends with status 1 when a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("compile", "run", "chart"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)} [all]")
    parser.add_argument("--gpu", help="the GPU to compile for, as mlc-compile has it [h200]")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE", help="an ONNX file to compile")
    parser.add_argument(
        "--architecture", action="append", default=[], metavar="PACKAGE/NAME:BATCH",
        help="one of bench/architectures.py to compile for the part sweep",
    )  # fmt: skip
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in (*PARTS, *ON_REQUEST)]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; parts are {', '.join((*PARTS, *ON_REQUEST))}")
    measure.chosen_gpu = options.gpu
    models = {name: Path(path) for name, path in (text.split("=", 1) for text in options.model)}
    if options.action == "compile":
        from measure import check_files  # it needs onnx, which a machine that only runs may lack

        check_files(models.values())
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.action == "compile":
        _compile(options.folder, options.parts or PARTS, models, options.architecture)
        return
    report: dict[str, Any] = {}
    if options.action == "chart":
        report = json.loads((options.folder / "report.json").read_text())
    else:
        for name in options.parts or PARTS:
            report[name] = _part(name).run_part(options.folder)
        (options.folder / "report.json").write_text(json.dumps(report, indent=1))
    (options.folder / "report.html").write_text(chart.page_of(report, "mlc on a GPU"))
    sys.exit(0 if all(row.get("right", True) for rows in report.values() for row in rows) else 1)


def _part(name: str) -> Any:
    return importlib.import_module(f"gpu_parts.{name}")


def _compile(folder: Path, parts: Sequence[str], models: dict[str, Path], architectures: Sequence[str]) -> None:
    for name in parts:
        if name == "models":
            _part(name).compile_models(folder, models)
        elif name == "sweep":
            _part(name).compile_architectures(folder, architectures)
        else:
            _part(name).compile_part(folder)


if __name__ == "__main__":
    main()
