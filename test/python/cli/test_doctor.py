"""`mlc-doctor` finds a working machine, and says what is missing on a broken one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mlc import _native
from mlc.cli.doctor import check_cpu

COMMAND = [sys.executable, "-m", "mlc.cli.doctor"]


def _run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MLC_CACHE_DIR": str(folder / "cache"), **variables}
    return subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True, text=True, timeout=120)


def test_a_machine_that_works(tmp_path: Path) -> None:
    done = _run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    status = {line.split()[1]: line.split()[0] for line in done.stdout.splitlines()}
    assert {status[topic] for topic in ("python", "compiler", "cpu", "linker", "cache", "compile")} == {"ok"}


def test_a_machine_without_a_linker(tmp_path: Path) -> None:
    done = _run(tmp_path, "--quiet", CC="no-such-compiler")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines and all(line.startswith("FAIL") for line in lines)
    assert any("linker" in line and "no-such-compiler" in line for line in lines)


@pytest.mark.parametrize("tiles", [True, False])
def test_a_processor_with_matrix_tiles(tiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    features = ["+avx2", "+fma", "+avx512f", "+amx-tile", "+amx-int8", "+amx-bf16", "-avx512bf16"]
    host = {
        "triple": "x86_64-unknown-linux-gnu",
        "cpu": "sapphirerapids",
        "features": [f if tiles or "amx" not in f else f"-{f[1:]}" for f in features],
    }
    monkeypatch.setattr(_native, "host_info", lambda: host)
    found = check_cpu().text
    assert found.startswith("sapphirerapids, ") and "512-bit vectors (avx2, fma, avx512f)" in found
    assert ("matrix tiles (amx-int8, amx-bf16)" in found) == tiles
