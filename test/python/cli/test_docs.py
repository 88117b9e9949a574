"""What `--help` lists and what the documentation says are the same options."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import mlc
from mlc.cli import bench as bench_tool
from mlc.cli import compile as compile_tool
from mlc.cli import run as run_tool

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def _options(app: typer.Typer) -> set[str]:
    return {name for parameter in typer.main.get_command(app).params for name in getattr(parameter, "opts", [])}


def _used(command: str) -> set[tuple[str, str]]:
    """(page, option) for every long option on a line of a page that names the command and no other one."""
    found = set()
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            commands = set(re.findall(r"mlc-(?:compile|run|opt|doctor|bench)\b", line))
            if commands == {command}:
                found |= {(page.name, option) for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)}
    return found


@pytest.mark.parametrize(
    ("command", "app"), [("mlc-compile", compile_tool.app), ("mlc-run", run_tool.app), ("mlc-bench", bench_tool.app)]
)
def test_options_of_the_pages_exist(command: str, app: typer.Typer) -> None:
    used = _used(command)
    assert len(used) > 1
    assert not {(page, option) for page, option in used if option not in _options(app)}


def test_the_page_of_the_commands() -> None:
    """Its options are those of one of the tools; its variables are read somewhere."""
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    known = _options(compile_tool.app) | _options(run_tool.app) | _options(bench_tool.app)
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) - known == {"--help"}
    sources = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "mlc").rglob("*") if p.suffix in (".py", ".cpp"))
    for variable in re.findall(r"`(MLC_\w+)`", text):
        assert f'"{variable}"' in sources


def test_no_option_without_help() -> None:
    for app in (compile_tool.app, run_tool.app):
        for parameter in typer.main.get_command(app).params:
            assert getattr(parameter, "hidden", False) or getattr(parameter, "help", None), parameter.name


@pytest.mark.parametrize("command", ["compile", "run", "bench", "doctor", "opt"])
def test_every_command_says_its_version(command: str) -> None:
    words = [sys.executable, "-m", f"mlc.cli.{command}", "--version"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith(f"mlc {mlc.__version__}")
