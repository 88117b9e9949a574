"""Libraries of one kernel each, in several schedules: written where the compiler is, measured where the GPU is.

    mlc-compile MODEL --target cuda --tune-bundle FOLDER -o MODEL.so    # here: writes FOLDER
    python -m mlc.tuning.gpu_bundle FOLDER                              # there: measures, writes FOLDER/tuning.json
    mlc-compile MODEL --target cuda --tuning-cache FOLDER/tuning.json -o MODEL.so

Measuring needs NumPy, the CUDA driver and this package's runtime, no compiler. Every schedule runs on the same random
operands, in turn with the others; several sets of operands are gone through where one would stay in the L2 cache. A
schedule has to compute what the first does, the cost model's, and is chosen where it is faster by a margin, twice.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mlc.runtime.errors import MlcError
from mlc.runtime.loader import Context, load
from mlc.tuning.cache import Entry, Schedule, TuningError, replace
from mlc.tuning.gpu_device import DeviceArray, Driver, GpuError, Graph

TASKS, LIBRARIES, RESULTS, TIMES = "tasks.json", "libraries.tar.xz", "tuning.json", "times.json"
MARGIN = 0.97  # of the default's time, which a schedule has to be below
_FORMAT = 1
_CACHED = 150_000_000  # bytes that no cache holds
_MOST_SETS = 8
_REPLAY = 600.0  # microseconds that a replay takes at least
_MOST_REPEATS = 64
_ROUNDS = 7
_AGAIN = 15  # rounds of the winner against the default
_TOLERANCE = 2e-2  # of the norm of the difference: sums of 16-bit results in another order
_COMPARED = 1 << 20  # elements of a result that are compared

Tensor = tuple[str, tuple[int, ...]]
"""The type of elements and the shape."""


@dataclass(frozen=True)
class Task:
    """A kernel to measure: its key in the cache and its title, its inputs and results, its schedules with the cost
    model's first, and the library of each ("": it could not be compiled)."""

    key: str
    target: str
    kernel: str
    inputs: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    schedules: tuple[Schedule, ...]
    libraries: tuple[str, ...] = ()


@dataclass
class Measured:
    """Microseconds of each schedule of a task, by its number, and the number of the best."""

    task: Task
    best: int
    times: dict[int, float] = field(default_factory=dict)

    def entry(self) -> Entry:
        """What the cache keeps."""
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        micros = [round(self.times[n], 3) for n in (self.best, 0)]
        schedule, tried = self.task.schedules[self.best], len(self.times)
        return Entry(self.task.target, self.task.kernel, schedule, micros[0], micros[1], tried, date)

    def line(self) -> str:
        """What was found, for people."""
        best, default = self.times[self.best], self.times[0]
        if not self.best:
            return f"{self.task.kernel}: {default:.2f} us, as the cost model says"
        names = {k: v for k, v in self.task.schedules[self.best].items() if self.task.schedules[0].get(k) != v}
        changes = ", ".join(f"{k} {v}" for k, v in names.items())
        return f"{self.task.kernel}: {default:.2f} -> {best:.2f} us (-{1 - best / default:.0%}), {changes}"


def save(folder: Path, tasks: Sequence[Task], libraries: Path) -> None:
    """Writes a bundle of `tasks`, whose libraries are in the folder `libraries`. The runtime is in each of them: they
    are compressed together."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / LIBRARIES, "w:xz", preset=6) as archive:
        for name in sorted({n for task in tasks for n in task.libraries if n}):
            archive.add(libraries / name, arcname=name, filter=_anonymous)
    content = {"format": _FORMAT, "tasks": [asdict(task) for task in tasks]}
    (folder / TASKS).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mtime = info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def read_tasks(folder: Path) -> list[Task]:
    """The tasks of a bundle. Raises TuningError for what is none."""
    try:
        content = json.loads((folder / TASKS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TuningError(f"'{folder}' is no bundle of kernels to measure: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise TuningError(f"'{folder}': its format is not {_FORMAT}; write it again with --tune-bundle")
    return [_task(row) for row in content["tasks"]]


def _task(row: dict[str, Any]) -> Task:
    inputs, results = (tuple((dtype, tuple(shape)) for dtype, shape in row[name]) for name in ("inputs", "results"))
    schedules, libraries = tuple(row["schedules"]), tuple(row["libraries"])
    return Task(row["key"], row["target"], row["kernel"], inputs, results, schedules, libraries)


# --- Runs -------------------------------------------------------------------------------------------------------------


class Operands:
    """Sets of operands of a task on the GPU. Use as a context manager."""

    def __init__(self, driver: Driver, task: Task) -> None:
        sizes = [np.prod(shape, dtype=np.int64) * 4 for _, shape in (*task.inputs, *task.results)]
        count = max(1, min(_MOST_SETS, _CACHED // max(1, int(sum(sizes))) + 1))
        self.driver = driver
        self.inputs = [self._made(task.inputs, n) for n in range(count)]
        self.results = [self._made(task.results, 0) for _ in range(count)]

    def _made(self, tensors: Sequence[Tensor], number: int) -> list[DeviceArray]:
        return [DeviceArray(self.driver, *t, number * len(tensors) + i) for i, t in enumerate(tensors)]

    def __enter__(self) -> Operands:
        return self

    def __exit__(self, *_: object) -> None:
        for arrays in (*self.inputs, *self.results):
            for array in arrays:
                array.free()

    def work(self, context: Context) -> Callable[[int], None]:
        """Runs a library on a set."""

        def run(number: int) -> None:
            number %= len(self.inputs)
            context.run(self.inputs[number], out=self.results[number], stream=self.driver.stream)

        return run


def measure(driver: Driver, task: Task, folder: Path) -> Measured | None:
    """The times of the schedules of `task`, whose libraries are in `folder`, and the best one; None when the cost
    model's cannot be run."""
    with Operands(driver, task) as operands, ExitStack() as stack:
        graphs: dict[int, Graph] = {}
        wanted: list[np.ndarray] = []
        for number, name in enumerate(task.libraries):
            if not name or (number and not wanted):
                continue
            try:
                context = stack.enter_context(load(folder / name, device=driver.device).context())
                results = _results(driver, operands, context)
            except MlcError:
                continue
            wanted = wanted or results
            if all(map(_agree, results, wanted)):
                graphs[number] = stack.enter_context(_recorded(driver, operands.work(context)))
        if 0 not in graphs:
            return None
        return _chosen(task, graphs)


def _results(driver: Driver, operands: Operands, context: Context) -> list[np.ndarray]:
    """What a library computes of the first set."""
    for array in operands.results[0]:
        array.poison()
    operands.work(context)(0)
    driver.wait()
    return [array.read(_COMPARED) for array in operands.results[0]]


def _agree(got: np.ndarray, wanted: np.ndarray) -> bool:
    same = np.isfinite(wanted)
    if not np.array_equal(np.isfinite(got), same):
        return False
    difference = np.linalg.norm(got[same] - wanted[same])
    return bool(difference <= _TOLERANCE * np.linalg.norm(wanted[same]))


def _recorded(driver: Driver, work: Callable[[int], None]) -> Graph:
    """A graph of as many runs as take long enough to be timed."""
    for number in range(2):
        work(number)
    with driver.graph(work, 4) as first:
        once = min(first.microseconds() for _ in range(3))
    return driver.graph(work, max(4, min(_MOST_REPEATS, int(_REPLAY / max(once, 0.1)))))


def _chosen(task: Task, graphs: dict[int, Graph]) -> Measured:
    """The fastest schedule that is faster than the first by the margin, also when they run alone."""
    rounds = _race(graphs, _ROUNDS)
    times = {n: statistics.median(t) for n, t in rounds.items()}
    best = min(times, key=lambda n: times[n])
    if best and times[best] < MARGIN * times[0]:
        again = {n: statistics.median(t) for n, t in _race({n: graphs[n] for n in (0, best)}, _AGAIN).items()}
        if again[best] < MARGIN * again[0]:
            return Measured(task, best, {**times, **again})
    return Measured(task, 0, times)


def _race(graphs: dict[int, Graph], rounds: int) -> dict[int, list[float]]:
    times: dict[int, list[float]] = {n: [] for n in graphs}
    for graph in graphs.values():
        graph.microseconds()
    for _ in range(rounds):
        for number, graph in graphs.items():
            times[number].append(graph.microseconds())
    return times


# --- The command ------------------------------------------------------------------------------------------------------


@contextmanager
def unpacked(folder: Path) -> Iterator[Path]:
    """A folder with the libraries of a bundle."""
    with tempfile.TemporaryDirectory(prefix="mlc-tune-") as temporary:
        with tarfile.open(folder / LIBRARIES, "r:xz") as archive:
            for member in archive:
                if member.isfile() and "/" not in member.name:
                    content = archive.extractfile(member)
                    assert content is not None
                    (Path(temporary) / member.name).write_bytes(content.read())
        yield Path(temporary)


def run(folder: Path, device: int = 0, say: Callable[[str], object] = print) -> list[Measured]:
    """Measures a bundle and writes its results: `tuning.json`, a file of measured schedules, and `times.json`, the
    times of all that were tried. `say` gets a line for every kernel."""
    tasks, driver, found = read_tasks(folder), Driver(device), list[Measured]()
    with unpacked(folder) as libraries:
        for number, task in enumerate(tasks, 1):
            one = measure(driver, task, libraries)
            line = one.line() if one is not None else f"{task.kernel}: not measured, as it cannot be run"
            say(f"{number}/{len(tasks)} {line}")
            found += [one] if one is not None else []
    replace(folder / RESULTS, {one.task.key: one.entry() for one in found})
    rows = [{"kernel": m.task.kernel, "times": [m.times.get(n) for n in range(len(m.task.schedules))]} for m in found]
    (folder / TIMES).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return found


def main() -> None:
    """Measures the bundle that the command line names; ends with status 1 when that fails."""
    parser = argparse.ArgumentParser(prog="python -m mlc.tuning.gpu_bundle", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="what `mlc-compile --tune-bundle` wrote")
    parser.add_argument("--device", type=int, default=0, help="number of the GPU [0]")
    options = parser.parse_args()
    try:
        found = run(options.folder, options.device)
    except (GpuError, TuningError) as error:
        sys.exit(f"error: {error}")
    gains = [m.times[0] / m.times[m.best] for m in found if m.best]
    most = max(gains, default=1.0)
    print(f"{len(found)} kernels; {len(gains)} are faster than the cost model's, at most {most:.2f} times")


if __name__ == "__main__":
    main()
