"""`tools/kernel_replay.py`: a changed kernel fails the check and says how to accept the change."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from mlc.passes.tile import expand_gpu_kernels, expand_kernels

ROOT = Path(__file__).resolve().parents[3]
Captured = pytest.CaptureFixture[str]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernel_replay", ROOT / "tools" / "kernel_replay.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


replay = load()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cpu").mkdir()
    for stem in ("concat", "scan_sum"):
        shutil.copy(ROOT / "test" / "replay" / "cpu" / f"{stem}.mlir", tmp_path / "cpu")
    return tmp_path


def call(capsys: Captured, *arguments: object) -> tuple[int, str]:
    status = replay.main([str(a) for a in arguments])
    return status, capsys.readouterr().out


def test_new_changed_accepted_and_gone(folder: Path, capsys: Captured) -> None:
    status, out = call(capsys, "--kernels", folder)
    assert status == 1 and "cpu/concat: new" in out
    assert call(capsys, "--kernels", folder, "--accept")[0] == 0
    assert call(capsys, "--kernels", folder) == (0, "kernel replay: 2 kernels, nothing has changed\n")

    # The schedule says another vector length: as if the template had begun to emit other code.
    path = folder / "cpu" / "concat.mlir"
    path.write_text(path.read_text().replace("lanes = 16", "lanes = 8"))
    status, out = call(capsys, "--kernels", folder)
    assert status == 1 and "cpu/concat: its IR has changed" in out and "cpu/scan_sum" not in out
    assert "1 of 2 kernels" in out and "tools/kernel_replay.py --accept" in out

    path.unlink()
    status, out = call(capsys, "--kernels", folder)
    assert status == 1 and "cpu/concat: there is no such file any more" in out


def test_locations_do_not_count(folder: Path, capsys: Captured) -> None:
    call(capsys, "--kernels", folder, "--accept")
    path = folder / "cpu" / "scan_sum.mlir"
    path.write_text("\n\n// moved\n" + re.sub(r"(\n  }\n)", r' loc("a":1:2)\1', path.read_text(), count=1))
    assert 'loc("a":1:2)' in path.read_text()
    assert call(capsys, "--kernels", folder)[0] == 0


def test_a_kernel_that_does_not_expand_cannot_be_accepted(folder: Path, capsys: Captured) -> None:
    path = folder / "cpu" / "scan_sum.mlir"
    path.write_text(path.read_text().replace('template = "scan"', 'template = "none"'))
    status, out = call(capsys, "--kernels", folder, "--accept")
    assert status == 1 and "cpu/scan_sum: it cannot be expanded" in out and "no template 'none'" in out
    assert not (folder / "accepted.json").exists()


def test_written_ir_is_what_the_template_emits(folder: Path, capsys: Captured, tmp_path: Path) -> None:
    call(capsys, "--kernels", folder, "--write", tmp_path / "out")
    text = (tmp_path / "out" / "cpu" / "concat.mlir").read_text()
    assert "func.func @k0_grid" in text and "loc(" not in text


@pytest.mark.parametrize("target", ["cpu", "nvidia"])
def test_every_template_is_replayed(target: str) -> None:
    """Those that a target takes from the CPU are replayed once."""
    cpu, gpu = expand_kernels.TEMPLATES, expand_gpu_kernels.TEMPLATES
    expected = set(cpu) if target == "cpu" else {name for name, entry in gpu.items() if cpu.get(name) is not entry}
    texts = [path.read_text() for path in (ROOT / "test" / "replay" / target).glob("*.mlir")]
    assert {t for text in texts for t in re.findall(r'template = "(\w+)"', text)} == expected


def test_every_file_is_recorded() -> None:
    accepted = json.loads((ROOT / "test" / "replay" / "accepted.json").read_text())
    files = {f"{path.parent.name}/{path.stem}" for path in (ROOT / "test" / "replay").glob("*/*.mlir")}
    assert set(accepted) == files
