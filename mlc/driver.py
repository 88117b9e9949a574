"""Drives a compilation: a model through the phases of `mlc/pipelines` and code generation into one shared
library.

All state is in the module and the weight store that it names, so a compilation may stop after any phase
(`emit`) and go on from the two files that were written, `x.mlir` and `x.weights`, to the same bytes.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlc.interrupt import deferred
from mlc.options import InstallationError, Progress, UsageError, make_options

if TYPE_CHECKING:
    from mlc.runtime.loader import Model


def compile(
    source: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    load: bool = True,
    **options: Any,
) -> Model | Path:
    """Compiles a model and loads it.

    `source` is an ONNX file, the bytes of one, an `onnx.ModelProto`, a program of `torch.export` (`.pt2`, or the
    `ExportedProgram`), a TorchScript file (`.pt`, `.pth`) or a `torch.jit.ScriptModule`, or an `.mlir` file that an
    earlier compilation has written; `output` the file to write (default: a temporary one, which the returned model
    owns). With `load=False` the library is written and not loaded: a machine that compiles for a GPU need not have one.

    Options: `target` ("cpu", or "cuda": a library that runs on an NVIDIA GPU); `cpu` ("native" or a name,
    `mlc.targets.cpu`); `gpu` ("h200", "sm_90a,sm_80", …: `mlc.targets.nvidia`); `emit` (the phase to stop after,
    "object" or "library"; for CUDA "ptx" or "cubin"); `from_phase` (the phase that an `.mlir` source has
    completed; it says so itself); `dump_ir` (a folder for the IR after every phase); `inputs` (`{name: shape}`,
    strings name dynamic dimensions) and `dtypes` (`{name: dtype}`), which TorchScript files do not have; `dims`
    (`{name: extent}` or `{name: (lowest, highest or None, multiple)}`); `outputs` (names of the values to return);
    `precision` of the operands of contractions ("fp32", "bf16": rounded to bfloat16, or "tf32": to 10 bits of mantissa,
    by tensor cores of GPUs only; still accumulated in float32); `winograd` (2 or 4: 3x3 convolutions by minimal
    filtering); `row_bits` (8: what weights of few bits multiply is rounded, in blocks); `weights` ("embed", "external":
    a `.safetensors` file beside the output, or "auto": external above 256 MB); `jobs` (threads of code generation);
    `opt_level` (0 to 3); `verify_each` (check the IR contract after every phase); `verify` (how often to compare the
    library with the interpreter); `cache` (use the cache of compiled kernels); `reproducer` (where to write the IR that
    shows a bug); `report` (an `.html` or `.json` file for what was decided, see `mlc.inspect.report`); `tune` (seconds
    to measure schedules of CPU kernels for); `tuning_cache` (the file of measured schedules, docs/commands.md);
    `tune_bundle` (a folder for another machine to measure schedules of GPU kernels from).

    Returns the loaded model, or the path that was written when `emit` is not "library" or `load` is false. Raises
    `mlc.options.UsageError` for options that make no sense, `mlc.frontends.report.ModelError` for a model that cannot
    be compiled, `mlc.codegen.link.LinkError` when this machine cannot link, `OSError` for a place that cannot be
    written to, and `mlc.options.InternalError` for what is a bug of mlc.
    """
    parsed = make_options(**options)
    if output is None and parsed.emit != "library":
        raise UsageError(f"emit '{parsed.emit}' needs an output file")
    if output is None and not load:
        raise UsageError("a library that is not loaded needs an output file")
    if output is None and parsed.weights == "external":
        raise UsageError("external weights need an output file")
    if output is None:
        parsed = replace(parsed, weights="embed")
    try:
        from mlc.compilation import Compilation
    except InstallationError:
        raise
    except ModuleNotFoundError as error:
        hint = "install mlc with its dependencies to compile (models run without them)"
        raise InstallationError(f"this installation lacks the compiler's package '{error.name}': {hint}") from error

    with deferred(progress) as update:
        if output is not None:
            path = Compilation(parsed, update).run(source, Path(output))
            return _load(path) if load and parsed.emit == "library" else path
        with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
            # The library stays mapped after its file is gone.
            return _load(Compilation(parsed, update).run(source, Path(folder) / "model.so"))


def _load(path: Path) -> Model:
    from mlc.runtime.loader import load

    return load(path)
