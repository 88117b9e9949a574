"""What the tests with a stand-in for the driver share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from gpu.stand_in import FAKE


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stand-in."""
    folder = tmp_path_factory.mktemp("driver")
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", folder / "libcuda.so.1", FAKE]
    subprocess.run([str(word) for word in command], check=True)
    return folder
