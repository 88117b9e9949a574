"""What a compilation is asked to do: its options, the phases and stages that they name, and errors of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

PHASES = ("import", "simplify", "decompose", "layout", "linalg", "kernels", "schedule", "tile", "buffers", "llvm")
CUDA_PHASES = (*PHASES[: PHASES.index("llvm")], "nvvm")
TARGET_PHASES = {"cpu": PHASES, "cuda": CUDA_PHASES}
STAGES = {"cpu": (*PHASES, "object", "library"), "cuda": (*CUDA_PHASES, "ptx", "cubin", "library")}
PRECISIONS = {"cpu": ("fp32", "bf16"), "cuda": ("fp32", "bf16", "tf32")}
NUMBERS = ("winograd", "row_bits")  # options that the IR keeps and a library tells, unless they are 0
SUFFIXES = {"object": ".objects", "library": ".so", "ptx": ".ptx", "cubin": ".cubin"}
FOLDERS = ("object", "ptx", "cubin")  # stages whose output is a folder

# (stage, steps done, steps in all, seconds since the stage began); called at the beginning and the end of a stage.
Progress = Callable[[str, int, int, float], None]


class UsageError(ValueError):
    """The options do not make sense, alone or together."""


class InstallationError(ImportError):
    """What compiling needs is not installed."""


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
    row_bits: int = 0  # of codes that may stand for rows that a weight of few bits multiplies; 0: as the model says
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
    tune_bundle: Path | None = None  # a folder for kernels that another machine is to measure

    def __post_init__(self) -> None:
        self._choice("target", tuple(STAGES))
        if self.target != "cuda" and self.gpu is not None:
            raise UsageError(f"a GPU is chosen for target 'cuda', not for '{self.target}'")
        self._choice("emit", self.stages)
        self._choice("precision", PRECISIONS[self.target])
        self._choice("winograd", (0, 2, 4))
        if self.winograd and (self.target != "cpu" or self.precision != "fp32"):
            raise UsageError("winograd is for target 'cpu' and precision fp32")
        self._choice("row_bits", (0, 8))
        if self.row_bits and self.target != "cpu":
            raise UsageError("row_bits is for target 'cpu'")
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
        wanted = {"tune": self.tune, "tune bundle": self.tune_bundle, "tuning cache": self.tuning_cache}
        name = next((name for name, value in wanted.items() if value is not None), "")
        if not name:
            return
        if self.tune is not None and not 0 < self.tune < float("inf"):
            raise UsageError("tune takes a number of seconds above 0")
        if self.tune_bundle is not None and self.target != "cuda":
            raise UsageError(f"tune bundle: kernels of target '{self.target}' are measured here: say tune instead")
        if self.tune_bundle is not None and self.tune is not None:
            raise UsageError("tune measures here, a tune bundle is for another machine: one of the two")
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
    for name in ("dump_ir", "reproducer", "report", "tuning_cache", "tune_bundle"):
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
