"""Settings shared by all tests: markers that depend on the machine, and hypothesis' profile."""

from __future__ import annotations

import collections
import importlib.util
import shutil
import signal
import threading
from pathlib import Path

import pytest

SLOW_COUNTS_AS = 20  # tests
GPU_MISSING = "this machine has no NVIDIA GPU"


def pytest_configure(config: pytest.Config) -> None:
    """Property tests are seeded and have no deadline: CI machines are slow, and a run must be repeatable."""
    del config
    # A runner in the background may have been started with Ctrl-C ignored, and children inherit that.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if importlib.util.find_spec("hypothesis"):
        import hypothesis

        hypothesis.settings.register_profile("mlc", deadline=None, derandomize=True, print_blob=True)
        hypothesis.settings.load_profile("mlc")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips, with the reason, the tests whose marker names something that this machine lacks. For workers that share the
    files of a run, those that may take long come first: no worker should be busy with one while the others are done.
    """
    if hasattr(config, "workerinput"):
        weights: collections.Counter[Path] = collections.Counter()
        for item in items:
            weights[item.path] += SLOW_COUNTS_AS if item.get_closest_marker("slow") else 1
        items.sort(key=lambda item: -weights[item.path])  # stable: files, and tests of a file, stay together
    if shutil.which("nvidia-smi") is None:
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason=GPU_MISSING))
