"""What the benchmarks share: interleaved timing, the machine's peak, errors, and the two engines."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

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


def interleave(engines: Mapping[str, Run], rounds: int) -> dict[str, Samples]:
    """Times all `engines` in turn, `rounds` times: one burst of calls each, so that what disturbs the machine
    disturbs all of them alike. Every engine is warmed up first; the burst's length is fixed from that.
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
        for name, run in engines.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                run()
            samples[name].milliseconds.append((time.perf_counter() - start) / calls[name] * 1e3)
    return samples


def peak_gflops(threads: int) -> float:
    """Measured fp32 multiply-add peak of `threads` threads, in GFLOP/s (`peak.c`, compiled with `cc`)."""
    source = Path(__file__).with_name("peak.c")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "peak"
        flags = ["-O3", "-march=native", "-ffp-contract=fast", "-pthread"]
        subprocess.run(["cc", *flags, str(source), "-o", str(program)], check=True)
        shown = subprocess.run([str(program), str(threads)], check=True, capture_output=True, text=True)
    return float(shown.stdout)


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
