"""Drives a compilation: a model through the phases of `mlc/pipelines` and code generation into one shared
library.

All state is in the module and the weight store that it names, so a compilation may stop after any phase
(`emit`) and go on from the two files that were written, `x.mlir` and `x.weights`, to the same bytes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlc.interrupt import deferred

if TYPE_CHECKING:
    from mlc.runtime.loader import Model

PHASES = ("import", "simplify", "decompose", "layout", "linalg", "kernels", "schedule", "tile", "buffers", "llvm")
CUDA_PHASES = (*PHASES[: PHASES.index("llvm")], "nvvm")
TARGET_PHASES = {"cpu": PHASES, "cuda": CUDA_PHASES}
STAGES = {"cpu": (*PHASES, "object", "library"), "cuda": (*CUDA_PHASES, "ptx", "cubin", "library")}
PRECISIONS = {"cpu": ("fp32", "bf16"), "cuda": ("fp32", "bf16", "tf32")}
SUFFIXES = {"object": ".objects", "library": ".so", "ptx": ".ptx", "cubin": ".cubin"}
FOLDERS = ("object", "ptx", "cubin")  # stages whose output is a folder

# (stage, steps done, steps in all, seconds since the stage began); called at the beginning and the end of a stage.
Progress = Callable[[str, int, int, float], None]


class UsageError(ValueError):
    """The options do not make sense, alone or together."""


class InternalError(RuntimeError):
    """A step failed on an input that the steps before it accepted. `reproducer` is a file that shows it, if
    one exists.
    """

    def __init__(self, stage: str, message: str, reproducer: Path | None) -> None:
        where = f"\nreproducer: {reproducer}" if reproducer else ""
        super().__init__(f"phase '{stage}' failed; this is a bug in mlc\n{message}{where}")
        self.stage = stage
        self.reproducer = reproducer


@dataclass(frozen=True)
class Options:
    """What a compilation is asked to do; see `compile` for the meaning of each."""

    target: str = "cpu"
    cpu: str | None = None  # None: what the IR says, else "native"
    gpu: str | None = None  # None: what the IR says, else "h200"
    emit: str = "library"
    from_phase: str | None = None
    dump_ir: Path | None = None
    inputs: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[str, tuple[int, int | None, int]] = field(default_factory=dict)
    outputs: tuple[str, ...] | None = None
    precision: str = "fp32"
    winograd: int = 0
    weights: str = "auto"
    jobs: int | None = None
    opt_level: int | None = None
    verify_each: bool = False
    verify: int = 0
    cache: bool = True
    reproducer: Path | None = None
    report: Path | None = None
    tune: float | None = None  # seconds to measure schedules for
    tuning_cache: Path | None = None

    def __post_init__(self) -> None:
        self._choice("target", tuple(STAGES))
        if self.target != "cuda" and self.gpu is not None:
            raise UsageError(f"a GPU is chosen for target 'cuda', not for '{self.target}'")
        self._choice("emit", self.stages)
        self._choice("precision", PRECISIONS[self.target])
        self._choice("winograd", (0, 2, 4))
        if self.winograd and (self.target != "cpu" or self.precision != "fp32"):
            raise UsageError("winograd is for target 'cpu' and precision fp32")
        self._choice("weights", ("auto", "embed", "external"))
        if self.from_phase is not None:
            self._choice("from_phase", self.phases)
            if self.stages.index(self.from_phase) >= self.stages.index(self.emit):
                raise UsageError(f"nothing lies between phase '{self.from_phase}' and '{self.emit}'")
        if self.opt_level is not None:
            self._choice("opt_level", (0, 1, 2, 3))
        if self.jobs is not None and self.jobs < 1:
            raise UsageError("jobs must be at least 1")
        if self.report is not None and "schedule" in self.stages[self.stages.index(self.emit) + 1 :]:
            raise UsageError(f"a report is about phase 'schedule', which a compilation to '{self.emit}' does not reach")
        self._check_tuning()
        if self.verify < 0:
            raise UsageError("verify must be at least 1, or 0 not to verify")
        if self.verify and (self.emit != "library" or self.from_phase is not None):
            raise UsageError("verify compares a library with the model that it was compiled from: both are needed")

    def _check_tuning(self) -> None:
        name = "tune" if self.tune is not None else "tuning cache" if self.tuning_cache is not None else ""
        if not name:
            return
        if self.tune is not None and not 0 < self.tune < float("inf"):
            raise UsageError("tune takes a number of seconds above 0")
        if self.target != "cpu":
            raise UsageError(f"{name}: schedules are measured for target 'cpu' only, not for '{self.target}'")
        done = self.stages.index(self.from_phase) if self.from_phase is not None else 0
        if not done < self.stages.index("schedule") <= self.stages.index(self.emit):
            raise UsageError(f"{name}: schedules are decided in phase 'schedule', which this compilation does not run")

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases of the target."""
        return TARGET_PHASES[self.target]

    @property
    def stages(self) -> tuple[str, ...]:
        """The phases of the target, and what follows them."""
        return STAGES[self.target]

    def _choice(self, name: str, allowed: Sequence[object]) -> None:
        value = getattr(self, name)
        if value not in allowed:
            listed = ", ".join(str(a) for a in allowed)
            raise UsageError(f"{name.replace('_', ' ')} '{value}' is not one of: {listed}")


def compile(
    source: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    load: bool = True,
    **options: Any,
) -> Model | Path:
    """Compiles a model and loads it.

    `source` is an ONNX file, the bytes of one, an `onnx.ModelProto`, or an `.mlir` file that an earlier
    compilation has written; `output` the file to write (default: a temporary one, which the returned model
    owns). With `load=False` the library is written and not loaded: the machine that compiles for a GPU need not have
    one.

    Options: `target` ("cpu", or "cuda": a library that runs on an NVIDIA GPU); `cpu` ("native" or a name,
    `mlc.targets.cpu`); `gpu` ("h200", "sm_90a,sm_80", …: `mlc.targets.nvidia`); `emit` (the phase to stop after,
    "object" or "library"; for CUDA "ptx" or "cubin"); `from_phase` (the phase that an `.mlir` source has
    completed; it says so itself); `dump_ir` (a folder for the IR after every phase); `inputs` (`{name: shape}`,
    strings name dynamic dimensions); `dims` (`{name: extent}` or `{name: (lowest, highest or None,
    multiple)}`); `outputs` (names of the values to return); `precision` of the operands of contractions
    ("fp32", "bf16": rounded to bfloat16, or "tf32": to 10 bits of mantissa, by tensor cores of GPUs only; still
    accumulated in float32); `weights` ("embed",
    "external": a `.safetensors` file beside the output, or "auto": external above 256 MB); `jobs` (threads of
    code generation); `opt_level` (0 to 3); `verify_each` (check the IR contract after every phase); `verify` (how
    often to compare the library with the interpreter); `cache` (use the cache of compiled kernels);
    `reproducer` (where to write the IR that shows a bug); `report` (an `.html` or `.json` file for what was
    decided, see `mlc.inspect.report`); `tune` (seconds to measure schedules of CPU kernels for); `tuning_cache` (the
    file of measured schedules, docs/commands.md).

    Returns the loaded model, or the path that was written when `emit` is not "library" or `load` is false. Raises
    `UsageError` for options that make no sense, `mlc.frontends.report.ModelError` for a model that cannot be compiled,
    `LinkError` when this machine cannot link, `InternalError` otherwise.
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
    except ModuleNotFoundError as error:
        hint = "install mlc with its dependencies to compile (models run without them)"
        raise ImportError(f"this installation lacks the compiler's package '{error.name}': {hint}") from error

    with deferred(progress) as update:
        if output is not None:
            path = Compilation(parsed, update).run(source, Path(output))
            return _load(path) if load and parsed.emit == "library" else path
        with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
            # The library stays mapped after its file is gone.
            return _load(Compilation(parsed, update).run(source, Path(folder) / "model.so"))


def make_options(**options: Any) -> Options:
    """The options, with convenient spellings normalised. Raises UsageError."""
    known = {f.name for f in fields(Options)}
    unknown = sorted(set(options) - known)
    if unknown:
        raise UsageError(f"unknown option '{unknown[0]}'; known are {', '.join(sorted(known))}")
    values = dict(options)
    for name in ("inputs", "dtypes", "dims"):
        if values.get(name) is None:
            values.pop(name, None)
    if "dims" in values:
        values["dims"] = {name: _range(name, extent) for name, extent in values["dims"].items()}
    if values.get("outputs") is not None:
        values["outputs"] = tuple(values["outputs"])
    for name in ("dump_ir", "reproducer", "report", "tuning_cache"):
        if values.get(name) is not None:
            values[name] = Path(values[name])
    return Options(**values)


def _range(name: str, extent: Any) -> tuple[int, int | None, int]:
    """A range of extents from an integer, a pair or a triple."""
    if isinstance(extent, int):
        extent = (extent, extent, 1)
    parts = tuple(extent)
    low, high, multiple = (*parts, 1) if len(parts) == 2 else parts
    if low < 0 or multiple < 1 or (high is not None and high < low):
        raise UsageError(f"dimension '{name}': {low}..{high} in steps of {multiple} is no range")
    return low, high, multiple


def _load(path: Path) -> Model:
    from mlc.runtime.loader import load

    return load(path)
