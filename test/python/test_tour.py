"""docs/tour.md, repeated: its commands run, and its excerpts stand in the IR that they write."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
EXCERPT = re.compile(r"<!-- (\S+\.mlir) -->\n```mlir\n(.*?)```", re.S)
NAMES = re.compile(r"%\w+(?:#\d+)?|#map\d*")
# The environment of the reader, which a test run already has.
SKIPPED = ("source ",)


def console_commands(text: str) -> list[str]:
    """The lines after `$` in the console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", text, re.S)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in lines if not line.startswith(SKIPPED)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the tour's commands have run; they name `examples/` and `out/` in it."""
    folder = tmp_path_factory.mktemp("tour")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "out").mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in console_commands(TOUR):
        if "make_tiny.py" in command:  # writes into its own repository unless told
            command += " out/tiny.onnx"
        environment = dict(os.environ, PATH=path)
        result = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return folder


def normal(line: str) -> str:
    """A line without what carries no meaning: indentation, value and map numbers."""
    return NAMES.sub("%", line.strip())


def fragments(line: str) -> list[str]:
    return [part.strip() for part in normal(line).split("…") if part.strip()]


def contains(line: str, parts: list[str]) -> bool:
    position = 0
    for part in parts:
        position = line.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


@pytest.mark.parametrize("number", range(len(EXCERPT.findall(TOUR))))
def test_excerpt_is_in_the_dump(folder: Path, number: int) -> None:
    """The lines of the excerpt stand in the dump in this order (others may lie between them)."""
    name, excerpt = EXCERPT.findall(TOUR)[number]
    dump = [normal(line) for line in (folder / "out" / "ir" / name).read_text(encoding="utf-8").splitlines()]
    position = 0
    for line in excerpt.splitlines():
        found = next((i for i in range(position, len(dump)) if contains(dump[i], fragments(line))), None)
        assert found is not None, f"{name} has no such line after line {position}: {line}"
        position = found + 1


def test_tour_has_excerpts_and_commands() -> None:
    assert len(EXCERPT.findall(TOUR)) >= 6
    assert len(console_commands(TOUR)) >= 5


def test_emit_and_go_on(folder: Path) -> None:
    """The two commands of "From here" make the library that the one command made."""
    common = {"cwd": folder, "check": True, "capture_output": True}
    compiler = str(Path(sys.executable).parent / "mlc-compile")
    kernels, library = folder / "out" / "k.mlir", folder / "out" / "two_steps.so"
    first = [compiler, "out/tiny.onnx", "--cpu", "x86-64-v3", "--emit", "kernels", "-o", str(kernels)]
    subprocess.run(first, **common)
    subprocess.run([compiler, str(kernels), "--cpu", "x86-64-v3", "-o", str(library)], **common)
    assert library.read_bytes() == (folder / "out" / "tiny.so").read_bytes()
