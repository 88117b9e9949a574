"""The part `sweep`: architectures of many packages against PyTorch's compiler, to find what is wrong and what is slow.

Each is a twin (`gpu_parts/twins.py`) of one of `bench/architectures.py` with one input, in bf16 and against
`torch.compile` in its default mode, which takes half a minute each; MLC_SWEEP_LIMIT seconds [500] are for all of them.
What PyTorch cannot export, compile or capture there is passed over with its message; a library that does not run, or
whose results are several times as far from PyTorch's in f32 as those of its compiled bf16, is wrong.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_parts import twins
from gpu_parts.measure import compile_to
from gpu_parts.models import run_twin
from mlc.runtime.errors import MlcError
from mlc.weights.store import WeightError

PRECISION, MODE = "bf16", "default"
FARTHEST = 4.0  # times the difference of what PyTorch compiles
EXAMPLES = (
    "torchvision/convnext_tiny:16",
    "torchvision/swin_t:16",
    "timm/poolformer_s12:16",
    "transformers/segformer:16",
)


def compile_architectures(folder: Path, names: Sequence[str]) -> None:
    """Writes the libraries, without weights, of architectures `PACKAGE/NAME:BATCH`."""
    for text in names or EXAMPLES:
        architecture, _, batch = text.partition(":")
        name = f"{architecture.replace('/', twins.AT)}_b{int(batch or 1)}"
        path, library = folder / f"{name}.onnx", folder / f"{name}.{PRECISION}.so"
        began = time.monotonic()
        try:
            module, _ = twins.export(name, path)
            twins.save_constants(module, path, library)
            exported = time.monotonic()
            compile_to(path, library, PRECISION, "external")
        except Exception as error:  # one of many: the others go on
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        finally:
            for made in (path, path.with_name(path.name + ".data"), library.with_suffix(".safetensors")):
                made.unlink(missing_ok=True)
        print(f"{name}: exported {exported - began:.1f} s, compiled {time.monotonic() - exported:.1f} s", flush=True)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Times every library of the folder that has a twin among the architectures."""
    rows, limit, began = [], float(os.environ.get("MLC_SWEEP_LIMIT", "500")), time.monotonic()
    for library in sorted(folder.glob(f"*{twins.AT}*.{PRECISION}.so")):
        name = library.name.removesuffix(f".{PRECISION}.so")
        if time.monotonic() - began > limit:
            print(f"{name}: no time is left", flush=True)
            continue
        try:
            row = run_twin(folder, name, (PRECISION,), (MODE,))
            far = row[PRECISION]["difference"]
            rows.append({**row, "right": far["mlc"] <= FARTHEST * far[MODE]})
        except (MlcError, WeightError) as error:
            print(f"{name}: wrong: {error}", flush=True)
            rows.append({"name": name, "right": False})
        except Exception as error:  # of PyTorch, for one of many: the others go on
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    return rows
