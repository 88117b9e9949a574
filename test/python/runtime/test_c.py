"""The C tests of test/runtime, built as they are and with sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import mlc

from .conftest import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("cmake") or not shutil.which("c++"), reason="needs cmake and c++")


@pytest.mark.slow
def test_plain(tmp_path: Path) -> None:
    """With the library that is linked into artefacts."""
    runtime = Path(mlc.__file__).parent / "lib" / "libmlc_rt.a"
    options = ["-DMLC_RT_TESTS=ON", f"-DMLC_RT_BUILT={runtime}"]
    for command in (
        ["cmake", "-S", str(ROOT / "mlc/runtime"), "-B", str(tmp_path), *options],
        ["cmake", "--build", str(tmp_path), "--parallel", "2", "--target", "test_run", "test_results", "test_threads", "test_pool"],
        ["ctest", "--test-dir", str(tmp_path), "--output-on-failure"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_sanitizers() -> None:
    """Memory errors, undefined behaviour, data races."""
    done = subprocess.run(["sh", str(ROOT / "test/runtime/sanitize.sh")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["==", "address,undefined", *["ok"] * 4, "==", "thread", *["ok"] * 4]
