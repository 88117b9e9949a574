#!/usr/bin/env python3
"""Runs ONNX's backend test suite through `mlc.onnx_backend`: every case is compiled to a library, loaded and run.

    python test/conformance/onnx_suite.py                      # everything; prints what differs from expectations
    python test/conformance/onnx_suite.py -k 'resize|pool'     # cases whose name matches
    python test/conformance/onnx_suite.py --json results.json  # all outcomes as a file

Cases are those of the installed `onnx` package: single nodes, small models and converted PyTorch models, and with
`--light` the nine well-known topologies. Workers are forked processes that may crash or hang without harm to the run.
Outcomes: `pass`; `rejected` (the compiler says that it cannot compile the model); `error` (it fails, or the model does);
`random` and `nearer` (results that cannot match, and that onnx_judge.py finds right); `wrong` (another result); `crash`;
`timeout`.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from pathlib import Path

from onnx_cases import Case, compare, load_cases, load_data, single_node_model
from onnx_judge import NEARER, RANDOM, judge

FOLDER = Path(__file__).resolve().parent
EXPECTED = FOLDER / "expected_failures.txt"
NAMED = (RANDOM, NEARER)  # a line of the list must say so
NEVER = ("wrong", "crash", "timeout")  # worse than a clear error
RECYCLE = 250  # cases before a worker is replaced: compiled libraries stay mapped


@dataclass(frozen=True)
class Outcome:
    """How one case ended."""

    name: str
    kind: str
    operators: list[str]
    status: str
    message: str
    seconds: float


def expected_failures(path: Path = EXPECTED) -> dict[str, str]:
    """Case name to reason; `#` begins a comment."""
    lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return dict(line.split(": ", 1) for line in lines if line)


# --- One case, in a worker --------------------------------------------------------------------------------------


def run_case(case: Case) -> tuple[str, str]:
    """Status and message of one case."""
    from mlc import onnx_backend
    from mlc.frontends.report import ModelError
    from mlc.options import UsageError

    model, data = load_data(case)
    try:
        prepared = onnx_backend.prepare(model, "CPU", jobs=1)
        for inputs, wanted in data:
            got = prepared.run(inputs)
            try:
                compare(list(got), wanted, case.rtol, case.atol)
            except AssertionError as error:
                single = single_node_model(case, model)
                status = judge(case.name, single, inputs, list(got), wanted)
                return status or "wrong", str(error)
    except (ModelError, UsageError) as error:
        return "rejected", str(error)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    return "pass", ""


def _work(cases: Mapping[str, Case], channel: Connection) -> None:
    """The life of a worker: case names in, status and message out."""
    os.environ["MLC_NUM_THREADS"] = "1"
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    while True:
        name = channel.recv()
        if name is None:
            return
        try:
            status, message = run_case(cases[name])
        except Exception as error:
            status, message = "error", f"the test itself: {type(error).__name__}: {error}"
        channel.send((status, " ".join(message.split())[:600]))


# --- Many cases -------------------------------------------------------------------------------------------------


class Worker:
    """A forked process and the case that it is busy with."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        context = multiprocessing.get_context("fork")
        self.channel, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_work, args=(cases, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.case: Case | None = None
        self.began = 0.0
        self.done = 0

    def begin(self, case: Case) -> None:
        """Hands over the next case."""
        self.case, self.began = case, time.monotonic()
        self.channel.send(case.name)

    def outcome(self, limit: float) -> Outcome | None:
        """How the case ended, None while it runs; a worker that is dead or too slow is stopped."""
        assert self.case is not None
        seconds = time.monotonic() - self.began
        status = message = ""
        if self.channel.poll():
            try:
                status, message = self.channel.recv()
            except EOFError:
                self.process.join()
                status, message = "crash", f"exit status {self.process.exitcode}"
        elif seconds > limit:
            status, message = "timeout", f"more than {limit:g} s"
        if not status:
            return None
        case, self.case = self.case, None
        self.done += 1
        if status in ("crash", "timeout"):
            self.done = RECYCLE
        return Outcome(case.name, case.kind, case.operators, status, message, round(seconds, 3))

    def stop(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.join()
        self.channel.close()


def run_cases(cases: Sequence[Case], workers: int, limit: float) -> Iterable[Outcome]:
    """The outcomes of all cases as they come in."""
    by_name = {case.name: case for case in cases}
    todo = collections.deque(cases)
    team = [Worker(by_name) for _ in range(workers)]
    while todo or any(worker.case for worker in team):
        for place, worker in enumerate(team):
            if worker.case is None and todo:
                if worker.done >= RECYCLE:
                    worker.stop()
                    team[place] = worker = Worker(by_name)
                worker.begin(todo.popleft())
        busy = [worker for worker in team if worker.case]
        wait_for([worker.channel for worker in busy], timeout=1.0)
        for worker in busy:
            outcome = worker.outcome(limit)
            if outcome is not None:
                yield outcome
    for worker in team:
        worker.stop()


@contextlib.contextmanager
def cache_of_the_run() -> Iterator[None]:
    """A cache that begins empty: many cases are made of the same kernels, each of which is compiled once in a run, and
    none comes from another run."""
    before = os.environ.get("MLC_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="mlc-suite-") as folder:
        os.environ["MLC_CACHE_DIR"] = folder
        try:
            yield
        finally:
            os.environ.pop("MLC_CACHE_DIR")
            if before is not None:
                os.environ["MLC_CACHE_DIR"] = before


def surprises(outcomes: Sequence[Outcome], expected: Mapping[str, str], complete: bool) -> list[str]:
    """What differs from the list of expected failures, one line each."""
    found = []
    for one in sorted(outcomes, key=lambda o: o.name):
        if one.status == "pass" and one.name in expected:
            found.append(f"{one.name}: passes, remove it from {EXPECTED.name}")
        elif one.status != "pass" and one.name not in expected:
            found.append(f"{one.name}: {one.status}: {one.message}")
        elif one.status in (*NAMED, *NEVER) and not expected[one.name].startswith(f"{one.status}: "):
            found.append(f"{one.name}: {one.status}, which is not what the list says: {one.message}")
    if complete:
        names = {one.name for one in outcomes}
        found += [f"{name}: no such case" for name in expected if name not in names]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit status 1 when something differs from the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", metavar="PATTERN", default="", help="regular expression that names must contain")
    parser.add_argument("--light", action="store_true", help="also the topologies of well-known models")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one case")
    parser.add_argument("--json", type=Path, help="file for all outcomes")
    options = parser.parse_args(arguments)
    cases = [c for c in load_cases(options.light) if re.search(options.k, c.name)]
    began = time.monotonic()
    outcomes = []
    with cache_of_the_run():
        for outcome in run_cases(cases, options.workers, options.limit):
            outcomes.append(outcome)
            if len(outcomes) % 200 == 0:
                print(f"{len(outcomes)} cases in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=0), encoding="utf-8")
    found = surprises(outcomes, expected_failures(), complete=not options.k and options.light)
    print("\n".join(found))
    counts = collections.Counter(one.status for one in outcomes)
    listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    print(f"{len(outcomes)} cases in {time.monotonic() - began:.0f} s: {listed}; {len(found)} surprises")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
