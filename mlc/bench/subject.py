"""What is benchmarked: a model, compiled by a process of its own, with inputs and reference outputs in files."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.bench import arrays
from mlc.bench.engines import ENGINES, PEERS, REFERENCES
from mlc.bench.job import Job
from mlc.bench.process import python_module
from mlc.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from mlc.runtime.loader import Entry, Model

Shapes = dict[str, tuple[int, ...]]


class CompileError(RuntimeError):
    """`mlc-compile` failed: its message, and its exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Compiled:
    """What a compilation with an empty cache took and decided. `flops` is the arithmetic of one run at the extents that
    are benchmarked, `byte_flops` the part of it that multiplies integers of at most eight bits, None where the data
    decide it.
    """

    library: Path
    seconds: float
    peak_bytes: int
    stages: dict[str, float]
    kernels: int
    weight_bytes: int
    arena_bytes: int | None
    file_bytes: int
    flops: int | None
    byte_flops: int | None


@dataclass(frozen=True)
class Subject:
    """A model that is ready to be timed. `onnx`, `torchscript` and `program` (of `torch.export`) are what peers read,
    empty when there is none. `shared`, `state`: see `Job`."""

    name: str
    compiled: Compiled
    inputs: dict[str, np.ndarray]
    folder: Path
    onnx: str = ""
    torchscript: str = ""
    program: str = ""
    precision: str = "fp32"
    shared: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, str]:
        """What peers read, by the field of a job."""
        return {"onnx": self.onnx, "torchscript": self.torchscript, "program": self.program}

    def job(self, engine: str, threads: int) -> Job:
        """The job of an engine."""
        files = {**self.files, "library": str(self.compiled.library)}
        place = self.folder / engine
        place.mkdir(exist_ok=True)
        given = str(self.folder / "inputs.npz")
        return Job(engine, threads, self.precision, given, str(place), **files, shared=self.shared, state=self.state)

    def references(self) -> list[str]:
        """The installed engines that give reference results, best first."""
        return [name for name, engine in REFERENCES.items() if engine.installed and engine.source(self.files)]


def run_compiler(model: Path, arguments: Sequence[str], folder: Path, cache: Path) -> tuple[float, int]:
    """Runs `mlc-compile` with its cache in `cache`; the seconds of the process and its largest resident size. Raises
    CompileError.
    """
    command = [*python_module("mlc.cli.compile"), str(model), *arguments]
    with (folder / "compile.log").open("w+") as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, stderr=said, env={**os.environ, "MLC_CACHE_DIR": str(cache)})
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = [line.strip() for line in said.read().splitlines() if line.strip()]
    if process.returncode:
        begin = next((i for i, line in enumerate(lines) if line.startswith("mlc-compile: ")), len(lines) - 1)
        text = "\n".join(lines[begin:]).removeprefix("mlc-compile: ") or f"exit code {process.returncode}"
        code = process.returncode if process.returncode in (1, 2, 3) else 1
        if code == 3:  # its reproducer is in a folder that will be gone
            text = f"{text.splitlines()[0]} (mlc-compile {shlex.join([str(model), *arguments])} shows it)"
        raise CompileError(text, code)
    return seconds, usage.ru_maxrss * 1024


def compile_model(model: Path, folder: Path, precision: str, shapes: Shapes) -> tuple[Path, float, int, dict[str, Any]]:
    """Compiles `model` into `folder`, with an empty cache: the library, seconds, peak memory, and the report."""
    library, report = folder / "model.so", folder / "report.json"
    arguments = ["-o", str(library), "--precision", precision, "--report", str(report), *shape_options(shapes)]
    seconds, memory = run_compiler(model, arguments, folder, folder / "cache")
    return library, seconds, memory, json.loads(report.read_text())


def shape_options(shapes: Mapping[str, Iterable[int]]) -> list[str]:
    """The options of `mlc-compile` that give inputs these shapes."""
    return [word for name, shape in shapes.items() for word in ("--input", f"{name}={','.join(map(str, shape))}")]


def static_report(model: Path, folder: Path, precision: str, inputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The report of a compilation for exactly the shapes of `inputs`, as far as phase `schedule`."""
    report = folder / "static.json"
    arguments = ["-o", str(folder / "static.mlir"), "--emit", "schedule", "--precision", precision]
    arguments += ["--report", str(report), *shape_options({name: a.shape for name, a in inputs.items()})]
    run_compiler(model, arguments, folder, folder / "cache")
    for file in folder.glob("static.mlir*"), folder.glob("static.weights*"):
        for path in file:
            path.unlink()
    return dict(json.loads(report.read_text()))


def total_flops(report: Mapping[str, Any], kind: str) -> int | None:
    """The arithmetic of one run, `flops` or `byte_flops`; None when a kernel's is not known."""
    counts = [(kernel[kind], kernel["launches"]) for kernel in report["kernels"]]
    if any(flops is None for flops, _ in counts):
        return None
    return sum(flops * launches for flops, launches in counts)


def arena_bytes(formula: str, extents: Mapping[str, int]) -> int | None:
    """The value of an arena's size: a Python expression over names of dimensions."""
    try:
        return int(eval(formula, {"__builtins__": {}, "max": max, "min": min}, dict(extents)))
    except Exception:  # an extent that only the data know
        return None


def parse_spec(spec: str) -> tuple[tuple[int, ...] | None, str]:
    """A shape and how to fill it, from `1x3x224x224`, `1x2048:0:256` (random in a range) or `@FILE`, which has none."""
    found = re.fullmatch(r"(\d+(?:[x,]\d+)*)((?::[^:]+:[^:]+)?)", spec)
    if not found:
        return None, spec
    return tuple(int(n) for n in re.split("[x,]", found[1])), f"random{found[2]}"


def inputs_of(
    model: Model, entry: Entry, specs: Mapping[str, str], dims: Mapping[str, int], seed: int
) -> dict[str, np.ndarray]:
    """The inputs of an entry: random ones unless `specs` says otherwise; see `parse_spec`. Raises ArgumentError."""
    from mlc.runtime.example_inputs import make_inputs

    values, extents = {name: parse_spec(spec) for name, spec in specs.items()}, dict(dims)
    fills = {name: fill for name, (_, fill) in values.items()}
    for info in entry.inputs:
        shape = values.get(info.name, (None, ""))[0]
        if shape is None:
            continue
        known = info.dims
        if known is None or None in known:
            fills[info.name] = "x".join(map(str, shape))
        elif len(known) != len(shape) or any(isinstance(k, int) and k != n for k, n in zip(known, shape, strict=True)):
            raise ArgumentError(f"input '{info.name}' is {info}: a shape {'x'.join(map(str, shape))} does not fit")
        else:
            extents |= {k: n for k, n in zip(known, shape, strict=True) if isinstance(k, str) and k not in dims}
    given = make_inputs(model, entry, fills, extents, seed)
    for name, value in given.items():
        if not isinstance(value, np.ndarray) or value.dtype == object:
            raise ArgumentError(f"input '{name}' is no array of numbers: only models that take arrays can be timed")
    return dict(given)


def make_subject(
    model: Path,
    folder: Path,
    *,
    specs: Mapping[str, str],
    dims: Mapping[str, int],
    shapes: Shapes,
    precision: str = "fp32",
    torch: Path | None = None,
    seed: int = 0,
    share: bool = False,
) -> Subject:
    """Compiles `model` and makes its inputs: `specs` and `dims` as `inputs_of` takes them, `shapes` are given to the
    compiler. `torch` is the same model for PyTorch, a file of TorchScript or of `torch.export`. With `share` outputs
    have the memory of the inputs that they continue; so they do where PyTorch changes buffers in place. Raises
    CompileError, or MlcError for inputs.
    """
    from mlc.runtime.loader import load

    library, seconds, memory, report = compile_model(model, folder, precision, shapes)
    loaded = load(library, threads=1)
    entry = loaded.entry(None)
    if share and not any(output.shares for output in entry.outputs):
        raise ArgumentError("--share: no output of this model continues an input (mlc-run --info names those that do)")
    given = inputs_of(loaded, entry, specs, dims, seed)
    arrays.write(folder / "inputs.npz", given)
    extents = {
        dim: value
        for info in entry.inputs
        for dim, value in zip(info.dims or (), given[info.name].shape, strict=False)
        if isinstance(dim, str)
    }
    if any(report["extents"].get(name) != value for name, value in extents.items()):
        counted = static_report(model, folder, precision, given)
    else:
        counted = report
    files = [library, *library.parent.glob(f"{library.stem}*.safetensors")]
    compiled = Compiled(
        library, seconds, memory, report["stages"], len(report["kernels"]), report["weight_bytes"],
        arena_bytes(report["arena"].get(entry.name, "0"), extents), sum(f.stat().st_size for f in files),
        total_flops(counted, "flops"), total_flops(counted, "byte_flops"),
    )  # fmt: skip
    sources = {_field(path): str(path) for path in (model, torch) if path is not None}
    shared = {o.name: o.shares for o in entry.outputs if o.shares and (share or o.continues)}
    state = {o.name: o.continues for o in entry.outputs if o.continues}
    return Subject(model.name, compiled, given, folder, **sources, precision=precision, shared=shared, state=state)


def _field(path: Path) -> str:
    """The field of a job that the file of a model goes into."""
    return {".onnx": "onnx", ".pt2": "program"}.get(path.suffix, "torchscript")


def fixed_model(model: Path, folder: Path, shapes: Shapes, dims: Mapping[str, int]) -> tuple[Path, Shapes]:
    """A copy of an ONNX model whose inputs have fixed shapes, for all engines alike, and those shapes. Raises
    ArgumentError when an extent is not given.
    """
    import onnx

    proto = onnx.load(model)
    constants = {tensor.name for tensor in proto.graph.initializer}
    known, fixed = dict(dims), dict[str, tuple[int, ...]]()
    inputs = [value for value in proto.graph.input if value.name not in constants]
    for value in inputs:
        for dim, extent in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            if dim.dim_param:
                known.setdefault(dim.dim_param, extent)
    for value in inputs:
        if not value.type.HasField("tensor_type"):
            continue
        shape = shapes.get(value.name)
        fixed[value.name] = shape if shape is not None else _extents(value, known)
        value.type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto())
        for extent in fixed[value.name]:
            value.type.tensor_type.shape.dim.add().dim_value = extent
    del proto.graph.value_info[:]
    for value in proto.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in known:
                dim.dim_value = known[dim.dim_param]
    path = folder / model.name
    onnx.save(proto, path, save_as_external_data=proto.ByteSize() > 1 << 30, location="weights.data")
    return path, fixed


def has_halves(model: Path) -> bool:
    """Is something in an ONNX model of half precision: a weight, an input or an output?"""
    if model.suffix != ".onnx":
        return False
    import onnx

    graph = onnx.load(model, load_external_data=False).graph
    values = [value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)]
    return onnx.TensorProto.FLOAT16 in [*values, *(tensor.data_type for tensor in graph.initializer)]


def _extents(value: Any, known: Mapping[str, int]) -> tuple[int, ...]:
    extents = []
    for dim in value.type.tensor_type.shape.dim:
        extent = dim.dim_value if dim.HasField("dim_value") else known.get(dim.dim_param)
        if extent is None:
            name = f"--dim {dim.dim_param}=N" if dim.dim_param else f"--input {value.name}=SHAPE"
            raise ArgumentError(f"--static: input '{value.name}' has an extent that is not fixed: give {name}")
        extents.append(extent)
    return tuple(extents)


def peer_file_bytes(subject: Subject, engine: str) -> int:
    """The size of what a peer reads: the model and its external data."""
    source = ENGINES[engine].source(subject.files)
    if source != subject.onnx:
        return os.path.getsize(source)
    import onnx
    from onnx.external_data_helper import ExternalDataInfo, uses_external_data

    proto = onnx.load(subject.onnx, load_external_data=False)
    places = {ExternalDataInfo(t).location for t in proto.graph.initializer if uses_external_data(t)}
    folder = Path(subject.onnx).parent
    return os.path.getsize(subject.onnx) + sum(os.path.getsize(folder / place) for place in places)


def usable_peers(subject: Subject) -> tuple[str, ...]:
    """The peers that read what there is of the model."""
    return tuple(name for name in PEERS if ENGINES[name].source(subject.files))
