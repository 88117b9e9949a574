"""The part `tune`: schedules of the other parts' products, convolutions and attention, the cost model's and others.

`compile` writes a bundle of libraries for each model (`mlc/tuning/gpu_bundle.py`), `run` measures them. Its results,
FOLDER/tune/tuning.json, are what `mlc/tuning/data` packages; `right` is whether the cost model's schedule takes at most
a tenth longer than the best one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpu_parts import attention, conv, gemm, measure, products

ALLOWED = 1.1  # times the best schedule's time
Model = tuple[str, Any, str]
"""A name, an ONNX model and the precision of its compilation."""


def models() -> Iterator[Model]:
    """The models whose kernels are measured."""
    for product in dict.fromkeys(gemm.products()):
        yield product.name, products.product_model(product), product.precision
    for one in conv.convolutions():
        yield one.name, conv.convolution_model(one), "bf16"
    for case in (*attention.timings(), *attention.decoding()):
        yield case.name, attention.model_of(case), "fp32"


def compile_bundles(folder: Path, chosen: Sequence[Model]) -> None:
    """Writes a bundle for each model whose kernels have something to measure; those that are there stay."""
    from mlc.compilation import Compilation
    from mlc.options import make_options

    for name, model, precision in chosen:
        bundle = folder / "tune" / name
        if not bundle.exists():
            bundle.parent.mkdir(parents=True, exist_ok=True)
            options = make_options(
                target="cuda", gpu=measure.chosen_gpu, cpu=measure.HOST, precision=precision, emit="schedule",
                tune_bundle=bundle,
            )  # fmt: skip
            Compilation(options).run(model, bundle.with_suffix(".mlir"))
            print(name, flush=True)


def compile_part(folder: Path) -> None:
    """Writes the bundles of the part."""
    compile_bundles(folder, list(models()))


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Measures every bundle."""
    from mlc.tuning import cache, gpu_bundle

    rows: list[dict[str, Any]] = []
    entries: dict[str, cache.Entry] = {}
    for bundle in sorted(path.parent for path in (folder / "tune").glob(f"*/{gpu_bundle.TASKS}")):
        for one in gpu_bundle.run(bundle):
            entries[one.task.key] = one.entry()
            ratio = one.times[0] / one.times[one.best]
            rows.append({"name": bundle.name, "kernel": one.task.kernel, "ratio": ratio, "right": ratio <= ALLOWED})
    cache.replace(folder / "tune" / gpu_bundle.RESULTS, entries)
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / max(1, len(rows)))
    print(f"{len(rows)} kernels: the cost model's schedule takes {mean:.3f} times the best one's time in the mean")
    return rows
