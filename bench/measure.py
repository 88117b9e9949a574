"""What the benchmarks of one process share: interleaved timing, errors, and the two engines."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

Shapes = dict[str, tuple[int, ...]]
Run = Callable[[], list[np.ndarray]]
BURST_SECONDS = 0.05


@dataclass
class Samples:
    """Milliseconds of single calls, one value (the mean of a burst) for each round."""

    milliseconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def best(self) -> float:
        return min(self.milliseconds)


def interleave(
    engines: Mapping[str, Run], rounds: int, each_round: Callable[[], None] = lambda: None
) -> dict[str, Samples]:
    """Times all `engines` in turn, `rounds` times: one burst of calls each, so that what disturbs the machine
    disturbs all of them alike. Every engine is warmed up first; the burst's length is fixed from that.
    `each_round` is called once a round.
    """
    calls = {}
    for name, run in engines.items():
        run()
        start = time.perf_counter()
        run()
        once = time.perf_counter() - start
        calls[name] = max(1, min(10_000, round(BURST_SECONDS / max(once, 1e-6))))
    samples = {name: Samples() for name in engines}
    for _ in range(rounds):
        each_round()
        for name, run in engines.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                run()
            samples[name].milliseconds.append((time.perf_counter() - start) / calls[name] * 1e3)
    return samples


def relative_error(got: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference divided by the largest magnitude of `expected`; inf when shapes or NaNs differ."""
    if got.shape != expected.shape:
        return float("inf")
    got64, expected64 = got.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isnan(got64), np.isnan(expected64)):
        return float("inf")
    if expected64.size == 0:
        return 0.0
    scale = float(np.nanmax(np.abs(expected64))) or 1.0
    return float(np.nanmax(np.abs(got64 - expected64))) / scale


def worst_error(got: list[np.ndarray], expected: list[np.ndarray]) -> float:
    if len(got) != len(expected):
        return float("inf")
    return max((relative_error(a, b) for a, b in zip(got, expected, strict=True)), default=0.0)


def onnxruntime_engine(model: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    """onnxruntime's CPU provider with all graph optimisations and `threads` threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feeds = dict(inputs)
    return lambda: list(session.run(None, feeds))


def mlc_engine(library: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    """The compiled library `library`, run by `threads` threads."""
    import mlc

    model = mlc.load(library, threads=threads)
    feeds = dict(inputs)
    return lambda: list(model.run(feeds).values())


def compile_model(model: Path, library: Path) -> float:
    """Compiles `model` with the default options; the seconds that took."""
    import mlc

    start = time.perf_counter()
    mlc.compile(model, output=library)
    return time.perf_counter() - start


@dataclass(frozen=True)
class Compiled:
    """What `mlc-compile` took: the whole process's seconds, those of each stage, and its largest resident size."""

    seconds: float
    stages: Mapping[str, float]
    peak: int

    def __str__(self) -> str:
        inside = sum(self.stages.values())
        parts = [f"{name} {seconds:.2f}" for name, seconds in self.stages.items()]
        parts.append(f"start and end {self.seconds - inside:.2f}")
        return f"{self.seconds:5.2f} s, {self.peak / 1e6:.0f} MB  ({', '.join(parts)})"


def compile_process(model: Path, library: Path, cache: Path) -> Compiled:
    """Compiles `model` by a process of its own that keeps its cache in `cache`. Raises RuntimeError with what the
    process said when it fails.
    """
    command = [sys.executable, "-m", "mlc.cli.compile", "--verbose", str(model), "-o", str(library)]
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, stderr=said, env={**os.environ, "MLC_CACHE_DIR": str(cache)})
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode:
        raise RuntimeError(text.strip().splitlines()[-1] if text.strip() else f"exit code {process.returncode}")
    stages = {name: float(number) for name, number in re.findall(r"^(\w+) +(\d+\.\d+) s", text, re.MULTILINE)}
    return Compiled(seconds, stages, usage.ru_maxrss * 1024)


def random_inputs(model: Path, shapes: Shapes) -> dict[str, np.ndarray]:
    """Seeded inputs of the model's dtypes: floats in [-1, 1), integers in [0, 256). `shapes` overrides."""
    graph = onnx.load(model, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    generator = np.random.default_rng(0)
    inputs = {}
    for value in graph.input:
        if value.name in constants:
            continue
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        shape = shapes.get(value.name) or tuple(dims)
        if not all(extent > 0 for extent in shape):
            hint = f"--input {value.name}=1x3x224x224"
            raise SystemExit(f"{model.name}: input {value.name} has unknown dims; give its shape: {hint}")
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if np.issubdtype(dtype, np.floating):
            inputs[value.name] = generator.uniform(-1, 1, shape).astype(dtype)
        else:
            inputs[value.name] = generator.integers(0, 2 if dtype == np.bool_ else 256, shape).astype(dtype)
    return inputs


def check_files(models: Iterable[Path]) -> None:
    """Ends the program with one line when a model's file is missing: at once, not after the models before it."""
    for model in models:
        if not model.is_file():
            raise SystemExit(f"{Path(sys.argv[0]).name}: there is no file '{model}'")


def shape_option(text: str) -> tuple[str, tuple[int, ...]]:
    """`x=1x3x224x224` -> name and shape."""
    name, _, dims = text.partition("=")
    return name, tuple(int(extent) for extent in dims.split("x"))
