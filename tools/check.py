#!/usr/bin/env python3
"""Runs every check of the project and ends with a table and one closing line.

    python tools/check.py              # all steps (what `make test` runs)
    python tools/check.py ruff lit     # only these
    python tools/check.py --list

Steps that use one core run two at a time, the longest first, and their output is shown when they end; those that use
both follow one after the other. A failing step does not stop the ones after it, so one run shows everything that is
wrong. The exit status is 0 when all steps passed and 1 otherwise. Steps run with the interpreter that runs this file,
with its `bin` folder first on PATH.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
CXX_SUFFIXES = {".c", ".cc", ".cpp", ".h", ".hpp"}


@dataclass(frozen=True)
class Step:
    """One check: its name, what it looks at, the function that gives its command line, and whether it keeps one core
    busy or all."""

    name: str
    about: str
    command: Callable[[], list[str]]
    alone: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a step ended: its name, the exit status and the seconds it took."""

    name: str
    status: int
    seconds: float


def cxx_sources() -> list[str]:
    """The C and C++ files of the project (tracked or not, but not ignored), relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.splitlines()
    if listed.returncode != 0:  # a source archive, not a clone
        names = [str(p.relative_to(ROOT)) for p in ROOT.glob("mlc/**/*")]
    return sorted(n for n in names if Path(n).suffix in CXX_SUFFIXES and (ROOT / n).exists())


def python_tool(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def script(name: str, *arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "tools" / name), *arguments]


def lit_command() -> list[str]:
    return [str(BIN / "lit"), "--order=smart", "-j2", "-v", "test/lit"]


def pytest_command() -> list[str]:
    # Not `python -m pytest`: that puts the source folder on sys.path and would test an uninstalled tree.
    # A folder of its own for temporary files: pytest's shared one is cleared by whichever run starts next.
    folder = str(ROOT / "out" / "pytest")
    (ROOT / "out").mkdir(exist_ok=True)  # pytest makes the folder, but not the one around it
    # Files are handed out in the order of test/conftest.py, where long ones are not the last.
    spread = ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]
    return [str(BIN / "pytest"), "-q", *spread, "-m", "not suite", "--basetemp", folder]


def steps() -> list[Step]:
    """Every check; of those that use one core the longest first, then the others, cheapest first."""
    return [
        Step("mypy", "Python types", lambda: python_tool("mypy")),
        Step("kernel replay", "the IR of kernels is what was accepted", lambda: script("kernel_replay.py")),
        Step(
            "house rules",
            "sizes, paths, one-way imports, a test a pass",
            lambda: script("house_rules.py"),
        ),
        Step(
            "clang-format",
            "layout of C and C++ files",
            lambda: [str(BIN / "clang-format"), "--dry-run", "-Werror", *cxx_sources()],
        ),
        Step("pass docs", "docs/passes.md is current", lambda: script("gen_pass_reference.py", "--check")),
        Step("operator docs", "docs/operators.md is current", lambda: script("gen_op_table.py", "--check")),
        Step("ruff", "Python style and common mistakes", lambda: python_tool("ruff", "check", ".")),
        Step("lit", "IR tests", lit_command, alone=True),
        Step("pytest", "numerics, API, command lines, runtime", pytest_command, alone=True),
    ]


def run_step(step: Step) -> Outcome:
    """Runs a step. The output of one that is `alone` goes through, that of another is shown in one piece."""
    title = f"\n==> {step.name}: {step.about}\n"
    env = dict(os.environ, PATH=f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}")
    # Else every command that a test starts compiles all Python files that it imports.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = step.command()
    start = time.monotonic()
    if shutil.which(command[0], path=env["PATH"]) is None:
        print(f"{title}{command[0]} is not installed; run `make dev` (it installs the development tools)")
        return Outcome(step.name, 127, 0.0)
    if step.alone:
        print(title, end="", flush=True)
        status = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
    else:
        out, err = subprocess.PIPE, subprocess.STDOUT
        done = subprocess.run(command, cwd=ROOT, env=env, check=False, stdout=out, stderr=err, text=True)
        status = done.returncode
        print(title + done.stdout, end="", flush=True)
    return Outcome(step.name, status, time.monotonic() - start)


def run_steps(chosen: list[Step]) -> list[Outcome]:
    """Runs steps, those that leave a core idle two at a time, and gives how they ended, in order."""
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(run_step, [step for step in chosen if not step.alone]))
    return outcomes + [run_step(step) for step in chosen if step.alone]


def report(outcomes: list[Outcome]) -> int:
    print("\nChecks")
    for outcome in outcomes:
        verdict = "passed" if outcome.status == 0 else f"FAILED (exit status {outcome.status})"
        print(f"  {outcome.name:<14} {outcome.seconds:7.1f} s   {verdict}")
    failed = sum(outcome.status != 0 for outcome in outcomes)
    print(f"\nchecks: {len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    known = steps()
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("names", nargs="*", metavar="STEP", help="steps to run (default: all)")
    parser.add_argument("--list", action="store_true", help="list the steps and stop")
    options = parser.parse_args()
    if options.list:
        for step in known:
            print(f"{step.name:<14} {step.about}")
        return 0
    unknown = sorted(set(options.names) - {step.name for step in known})
    if unknown:
        parser.error(f"no step named {', '.join(unknown)}; --list shows them")
    # Started in the background, a process ignores SIGINT, and so would all its children, among them the tests that
    # interrupt a command.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = [step for step in known if not options.names or step.name in options.names]
    return report(run_steps(chosen))


if __name__ == "__main__":
    sys.exit(main())
