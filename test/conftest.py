"""Settings shared by all tests: markers that depend on the machine, and hypothesis' profile."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

TORCH_MISSING = "PyTorch is not installed (`make test-torch` installs it and runs these tests)"
GPU_MISSING = "this machine has no NVIDIA GPU"


def pytest_configure(config: pytest.Config) -> None:
    """Property tests are seeded and have no deadline: CI machines are slow, and a run must be repeatable."""
    del config
    if importlib.util.find_spec("hypothesis"):
        import hypothesis

        hypothesis.settings.register_profile("mlc", deadline=None, derandomize=True, print_blob=True)
        hypothesis.settings.load_profile("mlc")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips, with the reason, the tests whose marker names something that this machine lacks."""
    missing = {}
    if importlib.util.find_spec("torch") is None:
        missing["torch"] = pytest.mark.skip(reason=TORCH_MISSING)
    if shutil.which("nvidia-smi") is None:
        missing["gpu"] = pytest.mark.skip(reason=GPU_MISSING)
    for item in items:
        for marker, skip in missing.items():
            if item.get_closest_marker(marker):
                item.add_marker(skip)
