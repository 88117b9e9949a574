"""What the parts share: compiling, waiting, timing."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HOST = "x86-64-v3"  # the machine with the GPU may be an older one
CACHE = 150_000_000  # bytes that no cache holds
ROUNDS = 9
PATIENCE = 20.0  # seconds after which a launch counts as hanging
chosen_gpu: str | None = None  # what libraries are compiled for: an older chip's are compiled again by the driver


def compile_to(
    source: Any, output: Path, precision: str = "fp32", weights: str = "embed", dims: dict[str, int] | None = None
) -> None:
    """Writes the library of a model; `dims` are extents of named dimensions."""
    from mlc.compilation import Compilation
    from mlc.options import make_options

    options = make_options(target="cuda", gpu=chosen_gpu, cpu=HOST, precision=precision, weights=weights,
                           dims=dims)  # fmt: skip
    Compilation(options).run(source, output)


@dataclass(frozen=True)
class Time:
    """Microseconds of one run: median, least and most over the rounds."""

    median: float
    least: float
    most: float


def wait() -> None:
    """Waits for the GPU; a process whose kernel hangs ends here."""
    import os

    import torch

    event = torch.cuda.Event()
    event.record()
    began = time.monotonic()
    while not event.query():
        if time.monotonic() - began > PATIENCE:
            print("HANG", flush=True)
            os._exit(7)
        time.sleep(0.001)


def captured(work: Callable[[int], None], repeats: int) -> Any:
    """A CUDA graph of `repeats` runs."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for number in range(3):
            work(number)
    gc.collect()  # memory that is freed while a stream is captured spoils the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for number in range(repeats):
            work(number)
    return graph


def measure(engines: dict[str, Callable[[int], None]], repeats: int) -> dict[str, Time]:
    """The times of all engines, replayed in turn."""
    import torch

    graphs = {name: captured(work, repeats) for name, work in engines.items()}
    for graph in graphs.values():
        graph.replay()
        wait()
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / repeats)
    return {n: Time(statistics.median(t), min(t), max(t)) for n, t in times.items()}


def error_of(result: Any, expected: Any, run: Callable[[int], None]) -> float:
    """||y - y64|| / ||y64|| of what `run(0)` writes over poison; NaN counts as infinite."""
    result.fill_(float("nan") if result.dtype.is_floating_point else -77)
    run(0)
    wait()
    error = ((result.double() - expected).norm() / expected.norm()).item()
    return math.inf if math.isnan(error) else error


def sets_of(needed: int, most: int = 24) -> int:
    """How many sets of `needed` bytes no cache holds."""
    return max(1, min(most, CACHE // needed + 1))


def timed(name: str, run: Any, flops: int) -> dict[str, Any]:
    """A row of the report: the check, and the times of the library and of its peers; the ratio is to the best one."""
    error, repeats = run.error(), max(4, min(60, int(4e-3 * 700e12 / flops)))
    times = measure({"mlc": run.mlc, **run.peers()}, repeats)
    ratio = min(t.median for engine, t in times.items() if engine != "mlc") / times["mlc"].median
    rate = flops / times["mlc"].median / 1e6
    said = "  ".join(f"{engine} {time.median:9.2f}" for engine, time in times.items())
    print(f"{name:44s} {said} us {rate:6.1f} TF  x{ratio:5.3f}  err {error:.1e}", flush=True)
    return {"name": name, "error": error, "right": error < 5e-3, **{n: asdict(t) for n, t in times.items()}}
