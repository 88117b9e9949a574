"""The process of one engine: loads a model, then does what its parent writes, a line of JSON for a line of JSON.

    {"cmd": "save", "path"}                          writes the outputs: they are the reference
    {"cmd": "check", "path", "rtol"}                 compares them: {"passed", "relative", "reason"}
    {"cmd": "burst", "seconds"} or {…, "calls"}      times calls after one that is not: {"ms": […]}
    {"cmd": "quit"}

The first line, unasked, is {"load_seconds", "first_ms", "files"} or {"error"}; every reply has "memory", the largest
resident size so far in bytes. What libraries print goes to the standard error.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

MOST_CALLS = 10_000
MESSAGE = 200  # characters of what an engine says


class Worker:
    """One engine, loaded."""

    def __init__(self, job_text: str) -> None:
        """Raises whatever the engine raises."""
        from mlc.bench import arrays
        from mlc.bench.engines import ENGINES, REFERENCES
        from mlc.bench.job import Job

        job = Job(**json.loads(job_text))
        engine = ENGINES.get(job.engine) or REFERENCES[job.engine]
        feeds = arrays.read(Path(job.inputs))
        start = time.perf_counter()
        self._model = engine.load(job, feeds)
        loaded = time.perf_counter()
        self._model.run()
        self._once = time.perf_counter() - loaded
        self.hello = {
            "load_seconds": loaded - start,
            "first_ms": self._once * 1e3,
            "files": [os.path.getsize(path) for path in self._model.files],
        }

    def _outputs(self) -> dict[str, Any]:
        """The outputs by number; sequences item by item, maps as rows, strings with a fixed width."""
        import numpy as np

        from mlc.runtime.maps import as_matrix

        flat = []
        for output in self._model.fetch(self._model.run()):
            value = as_matrix(output, ordered=True)
            flat += value if isinstance(value, list) else [value]
        plain = [np.asarray(value) for value in flat if value is not None]
        return {str(i): v.astype(str) if v.dtype == object else v for i, v in enumerate(plain)}

    def save(self, path: str) -> dict[str, Any]:
        """Writes the outputs."""
        from mlc.bench import arrays

        arrays.write(Path(path), self._outputs())
        return {}

    def check(self, path: str, rtol: float) -> dict[str, Any]:
        """Compares the outputs: errors of floats relative to the largest magnitude of theirs, others exactly."""
        import numpy as np

        from mlc.bench import arrays
        from mlc.runtime.compare import compare

        ours, theirs = self._outputs(), arrays.read(Path(path))
        if len(ours) != len(theirs):
            return {"passed": False, "relative": None, "reason": f"{len(ours)} outputs, not {len(theirs)}"}
        worst, passed, reason = 0.0, True, ""
        for name, value in ours.items():
            row = compare(name, value, theirs[name], 0.0, 0.0)
            inexact = value.dtype.kind not in "biuU" and not row.reason
            passed &= row.relative <= rtol if inexact else row.passed
            worst = max(worst, row.relative)
            reason = reason or row.reason
        return {"passed": passed, "relative": worst if np.isfinite(worst) else None, "reason": reason}

    def burst(self, seconds: float = 0.0, calls: int = 0) -> dict[str, Any]:
        """The milliseconds of `calls` calls, or of as many as fit into `seconds`."""
        run, clock = self._model.run, time.perf_counter
        start = clock()
        run()  # brings back what the engines before have driven from the caches
        self._once = min(self._once, clock() - start)
        times = []
        for _ in range(calls or max(1, min(MOST_CALLS, round(seconds / max(self._once, 1e-7))))):
            start = clock()
            run()
            times.append((clock() - start) * 1e3)
        return {"ms": times}


def serve(commands: TextIO, reply: Callable[[dict[str, Any]], None]) -> None:
    """Loads what the first line says and answers the others until the input ends."""
    try:
        worker = Worker(commands.readline())
    except Exception as error:  # of any engine, about any model: the parent shows it
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        reply({"error": f"{type(error).__name__}: {lines[0].strip()[:MESSAGE]}"})
        return
    reply(worker.hello)
    for line in commands:
        words = json.loads(line)
        command = words.pop("cmd")
        if command == "quit":
            return
        answers: dict[str, Callable[..., dict[str, Any]]]
        answers = {"save": worker.save, "check": worker.check, "burst": worker.burst}
        reply(answers[command](**words))


def peak_memory() -> int:
    """The largest resident size of this process so far, in bytes: what the system counts since the program began, as
    that of `getrusage` begins with what the parent had when it made the process.
    """
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    return 1024 * (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def main() -> int:
    """Serves standard input and output."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(message: dict[str, Any]) -> None:
        replies.write(json.dumps({**message, "memory": peak_memory()}) + "\n")
        replies.flush()

    serve(sys.stdin, reply)
    return 0


if __name__ == "__main__":
    code = main()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)  # the thread pools of some engines crash when they are taken apart
