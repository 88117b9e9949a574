"""ONNX's backend suite, compiled: what does not pass must be listed in expected_failures.txt, and nothing else may be.

The list may only shrink. Every line has a reason; a result that differs, a crash or a hang is allowed only where the
line says so. `python test/conformance/onnx_suite.py -k PATTERN` runs some of the cases.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).with_name("onnx_suite.py")
CASES = 2024  # of the package that the list was made with; a later one has more
MOST_FAILURES = 33


@pytest.mark.suite
def test_suite(tmp_path: Path) -> None:
    """A process of its own: the suite forks workers, which a process with threads must not."""
    results = tmp_path / "results.json"
    command = [sys.executable, str(SUITE), "--workers", "2", "--json", str(results)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    outcomes = json.loads(results.read_text())
    assert len(outcomes) >= CASES
    assert sum(one["status"] == "pass" for one in outcomes) >= CASES - MOST_FAILURES


def test_a_crash_a_hang_and_a_wrong_result_are_noticed(tmp_path: Path) -> None:
    """The runner itself: three ways to go wrong, and that what comes after them still runs."""
    script = f"""
import os, sys, time
sys.path.insert(0, {str(SUITE.parent)!r})
import onnx_suite
from onnx_cases import Case

def run_case(case):
    if case.name == "crash":
        os.abort()
    if case.name == "hang":
        time.sleep(60)
    if case.name == "wrong":
        return "wrong", "1 is not 2"
    return "pass", ""

onnx_suite.run_case = run_case
names = ["crash", "hang", "wrong", "fine", "listed", "better"]
cases = [Case(name, "node", 0, 0, [], None) for name in names]
outcomes = list(onnx_suite.run_cases(cases, workers=1, limit=3.0))
print([(one.name, one.status) for one in outcomes])
print(onnx_suite.surprises(outcomes, {{"wrong": "a reason", "better": "a reason", "gone": "a reason"}}, complete=True))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    statuses, surprises = done.stdout.splitlines()
    expected = ["crash", "timeout", "wrong", "pass", "pass", "pass"]
    assert [status for _, status in eval(statuses)] == expected
    found = {line.split(": ")[0]: line for line in eval(surprises)}
    assert set(found) == {"crash", "hang", "wrong", "better", "gone"}
    assert "worse than expected" in found["wrong"]
