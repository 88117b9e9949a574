"""Scripts of `bench/` that take model files: a missing one is one line and exit code 1, before anything is compiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = {
    "hottest": ["there.onnx", "missing.onnx"],
    "models": ["there.onnx", "missing.onnx"],
    "dynamic": ["missing.onnx", "--dim", "batch=1"],
    "gpu": ["compile", "folder", "models", "--model", "net=missing.onnx"],
}


@pytest.mark.parametrize("script", COMMANDS)
def test_a_missing_model_is_one_line(script: str, tmp_path: Path) -> None:
    (tmp_path / "there.onnx").touch()
    command = [sys.executable, str(ROOT / "bench" / f"{script}.py"), *COMMANDS[script]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{script}.py: there is no file 'missing.onnx'\n"
    assert [path.name for path in tmp_path.iterdir()] == ["there.onnx"]
