"""Engines against each other: a worker process each, a numeric check first, then bursts in turn.

Whatever disturbs the machine disturbs all engines of a round alike, so engines are compared round by round, and the
median over the rounds is what counts.
"""

from __future__ import annotations

import json
import os
import select
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from mlc.bench.job import Job
from mlc.bench.process import python_module

REST_SECONDS = 0.02  # other engines' threads still spin for some milliseconds after a run
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerError(RuntimeError):
    """An engine cannot run the model, or its process died."""


class Process:
    """The parent's end of a worker. Raises WorkerError when the engine cannot load the model."""

    def __init__(self, job: Job, timeout: float) -> None:
        self._timeout = timeout
        self._log = Path(job.folder) / f"{job.engine}{job.threads}.log"
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(job.threads))}
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                python_module("mlc.bench.worker"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment,
            )  # fmt: skip
        try:
            self._write(job.text())
            self.hello = self._read()
        except BaseException:
            self.kill()
            raise

    def ask(self, command: str, **words: Any) -> dict[str, Any]:
        """The reply to a command. Raises WorkerError."""
        self._write(json.dumps({"cmd": command, **words}))
        return self._read()

    def _pipe(self, pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe

    def _write(self, line: str) -> None:
        pipe = self._pipe(self._process.stdin)
        try:
            pipe.write(line + "\n")
            pipe.flush()
        except BrokenPipeError:
            self._died()

    def _read(self) -> dict[str, Any]:
        pipe = self._pipe(self._process.stdout)
        if not select.select([pipe], [], [], self._timeout)[0]:
            raise WorkerError(f"no answer within {self._timeout:g} s")
        line = pipe.readline()
        if not line:
            self._died()
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise WorkerError(reply["error"])
        return reply

    def _died(self) -> None:
        code = self._process.wait()
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise WorkerError(f"its process died ({how}){': ' + lines[-1].strip() if lines else ''}")

    def kill(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            self._pipe(pipe).close()


@dataclass
class Result:
    """One engine at one number of threads. `status` is `ok`, `differs` (from the reference) or `failed`; times are in
    milliseconds, `rounds` the medians of the bursts.
    """

    engine: str
    status: str
    message: str = ""
    relative_error: float | None = None
    load_seconds: float | None = None
    memory_bytes: int | None = None
    file_bytes: int | None = None
    rounds: list[float] = field(default_factory=list)
    best: float | None = None

    @property
    def median(self) -> float | None:
        """The median over the rounds."""
        return statistics.median(self.rounds) if self.rounds else None


@dataclass(frozen=True)
class Plan:
    """How to time: `rounds` of bursts of `burst` seconds; a worker has `timeout` seconds for an answer."""

    rounds: int
    burst: float
    tolerance: float
    timeout: float


def save_reference(job: Job, path: Path, timeout: float) -> None:
    """Writes what the engine of `job` computes. Raises WorkerError."""
    process = Process(job, timeout)
    try:
        process.ask("save", path=str(path))
    finally:
        process.kill()


def contest(
    jobs: Sequence[Job], reference: Path, plan: Plan, each_round: Callable[[], None], say: Callable[[str], None]
) -> list[Result]:
    """Checks and times the engines of `jobs`, all with the same number of threads. `each_round` is called once a round,
    `say` with what happens next.
    """
    results: list[Result] = []
    running: list[tuple[Process, Result]] = []
    try:
        for job in jobs:
            say(f"loading {job.engine}")
            result, process = _start(job, reference, plan)
            results.append(result)
            if process is not None:
                running.append((process, result))
        for number in range(plan.rounds):
            say(f"round {number + 1} of {plan.rounds}")
            each_round()
            _round(running, number, plan)
    finally:
        for process, _ in running:
            process.kill()
    return results


def _start(job: Job, reference: Path, plan: Plan) -> tuple[Result, Process | None]:
    try:
        process = Process(job, plan.timeout)
    except WorkerError as error:
        return Result(job.engine, "failed", str(error)), None
    hello = process.hello
    result = Result(job.engine, "ok", load_seconds=hello["load_seconds"], file_bytes=sum(hello["files"]) or None)
    try:
        verdict = process.ask("check", path=str(reference), rtol=plan.tolerance)
    except WorkerError as error:
        process.kill()
        return replace(result, status="failed", message=str(error)), None
    result.relative_error = verdict["relative"]
    if not verdict["passed"]:
        result.status, result.message = "differs", verdict["reason"] or "the outputs differ"
    return result, process


def _round(running: list[tuple[Process, Result]], number: int, plan: Plan) -> None:
    """One burst each, every round beginning with another engine. An engine that dies is out."""
    for at in range(len(running)):
        process, result = running[(at + number) % len(running)]
        if result.status == "failed":
            continue
        time.sleep(REST_SECONDS)
        try:
            reply = process.ask("burst", seconds=plan.burst)
        except WorkerError as error:
            result.status, result.message, result.rounds = "failed", str(error), []
            continue
        result.rounds.append(statistics.median(reply["ms"]))
        result.best = min(reply["ms"] + ([result.best] if result.best else []))
        result.memory_bytes = reply["memory"]


def paired_ratio(ours: Result, theirs: Sequence[Result]) -> float | None:
    """How many times faster we are than the best of the others: their time over ours in each round, and the median of
    that over the rounds. None when there is nobody to compare with.
    """
    others = [result.rounds for result in theirs if result.rounds]
    if not ours.rounds or not others:
        return None
    return statistics.median(min(row) / mine for mine, *row in zip(ours.rounds, *others, strict=True))
