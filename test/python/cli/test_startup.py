"""What is settled before a command begins."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("own", [None, "20"])
def test_threads_that_wait_for_products_sleep(own: str | None) -> None:
    """NumPy is not loaded before that is said, and a caller's own word counts."""
    program = "import os, sys, mlc.cli\nprint(os.environ['OPENBLAS_THREAD_TIMEOUT'], 'numpy' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    if own is not None:
        environment["OPENBLAS_THREAD_TIMEOUT"] = own
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{own or 4} False\n"), done.stderr
