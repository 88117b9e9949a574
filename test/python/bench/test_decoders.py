"""`bench/decoders.py`: its cases, and one layer from end to end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from spread import EVERY

ROOT = Path(__file__).resolve().parents[3]


def test_cases_are_tokens_behind_texts_and_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import decoders

    assert list(decoders.cases([511, 9], [128])) == [(511, 1), (9, 1), (0, 128)]
    made = decoders.command(Path("m.onnx"), 1000, 9, 1, 0, ["--threads=1"])
    assert {"--dim=past=9", "--dim=total=10", "--input=input_ids=1x1:0:1000", "--threads=1"} <= set(made)
    assert "--share" not in made
    made = decoders.command(Path("m.onnx"), 1000, 9, 1, 64, [])
    assert {"--dim=past=64", "--dim=total=10", "--share"} <= set(made)


@pytest.mark.parametrize("room", [0, 16] if EVERY else [16])
def test_a_layer(tmp_path: Path, room: int) -> None:
    pytest.importorskip("onnxruntime")
    numbers = {"layers": 1, "heads": 8, "words": 300, "past": 5, "tokens": 4, "rounds": 1, "burst": 0, "room": room}
    options = [*(f"--{name}={value}" for name, value in numbers.items()), "--peers=onnxruntime"]
    command = [sys.executable, str(ROOT / "bench" / "decoders.py"), *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("mlc is") == 4  # a column's title and a line for each of two cases
    assert "input_ids int64[1,1]" in done.stdout and "input_ids int64[1,4]" in done.stdout
    failed = subprocess.run([*command, "--peers", "nobody"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert failed.returncode == 2 and "nobody" in failed.stderr
