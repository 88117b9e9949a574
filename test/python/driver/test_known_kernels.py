"""Kernels that have been compiled before: neither expanded nor compiled again, and the artefact has the same bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mlc
from mlc.codegen import known_kernels, version
from mlc.codegen.known_programs import KnownPrograms
from mlc.passes.tile import expand_kernels


class _Expansions:
    """Counts the kernels that are expanded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._expand = expand_kernels.expand_kernel
        monkeypatch.setattr(expand_kernels, "expand_kernel", self._counted)

    def _counted(self, kernel: Any) -> None:
        self.count += 1
        self._expand(kernel)


@pytest.fixture
def expansions(monkeypatch: pytest.MonkeyPatch) -> _Expansions:
    return _Expansions(monkeypatch)


@pytest.fixture(autouse=True)
def _no_program_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownPrograms, "has_module", lambda self: False)


def _library(model: Path, folder: Path, **options: Any) -> bytes:
    output = folder / "model.so"
    mlc.compile(model, output=output, **options)
    return output.read_bytes()


def _entries(folder: Path) -> Iterator[Path]:
    return (folder / "cache" / "objects").glob("*/*.o")


def test_the_second_compilation_expands_nothing_and_gives_the_same_bytes(
    model_file: Path, tmp_path: Path, expansions: _Expansions
) -> None:
    cold = _library(model_file, tmp_path)
    first = expansions.count
    assert first > 0
    assert _library(model_file, tmp_path) == cold
    assert expansions.count == first
    assert _library(model_file, tmp_path, cache=False) == cold
    assert expansions.count == 2 * first


def test_phases_show_every_kernel_whatever_is_known(model_file: Path, tmp_path: Path, expansions: _Expansions) -> None:
    def phases(folder: Path, **options: Any) -> list[bytes]:
        folder.mkdir()
        texts = []
        for phase in ("tile", "buffers", "llvm"):
            mlc.compile(model_file, output=folder / f"{phase}.mlir", emit=phase, **options)
            texts.append((folder / f"{phase}.mlir").read_bytes())
        mlc.compile(model_file, output=folder / "model.so", dump_ir=folder / "ir", verify_each=True, **options)
        return [
            *texts,
            (folder / "model.so").read_bytes(),
            *(f.read_bytes() for f in sorted((folder / "ir").iterdir())),
        ]

    without = phases(tmp_path / "without", cache=False)
    _library(model_file, tmp_path)
    before = expansions.count
    assert phases(tmp_path / "with") == without
    assert expansions.count > before


@pytest.mark.parametrize("phase", ["schedule", "tile", "llvm"])
def test_going_on_with_what_is_known_changes_nothing(model_file: Path, tmp_path: Path, phase: str) -> None:
    cold = _library(model_file, tmp_path)
    mlc.compile(model_file, output=tmp_path / "stage.mlir", emit=phase)
    assert _library(tmp_path / "stage.mlir", tmp_path) == cold


def test_other_sources_of_the_compiler_know_nothing(
    model_file: Path, tmp_path: Path, expansions: _Expansions, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = _library(model_file, tmp_path)
    first = expansions.count
    monkeypatch.setattr(known_kernels, "source_version", lambda **_: "edited")
    assert _library(model_file, tmp_path) == cold
    assert expansions.count == 2 * first
    assert _library(model_file, tmp_path) == cold  # known to these sources from now on
    assert expansions.count == 2 * first


def test_nothing_becomes_known_while_sources_change(
    model_file: Path, tmp_path: Path, expansions: _Expansions, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = iter(["before", None])
    monkeypatch.setattr(known_kernels, "source_version", lambda **_: next(versions))
    _library(model_file, tmp_path)
    first = expansions.count
    monkeypatch.setattr(known_kernels, "source_version", lambda **_: "before")
    _library(model_file, tmp_path)
    assert expansions.count == 2 * first


def test_damaged_entries_are_made_again(model_file: Path, tmp_path: Path, expansions: _Expansions) -> None:
    cold = _library(model_file, tmp_path)
    first = expansions.count
    for number, entry in enumerate(sorted(_entries(tmp_path))):
        content = entry.read_bytes()
        entry.write_bytes([content[: len(content) // 2], b"", content[:-1] + b"?"][number % 3])
    assert _library(model_file, tmp_path) == cold
    assert expansions.count == 2 * first
    assert _library(model_file, tmp_path) == cold
    assert expansions.count == 2 * first


def test_an_entry_whose_object_is_gone_is_made_again(model_file: Path, tmp_path: Path, expansions: _Expansions) -> None:
    cold = _library(model_file, tmp_path)
    first = expansions.count
    for entry in _entries(tmp_path):
        if b"\x7fELF" in entry.read_bytes()[:4]:
            entry.unlink()
    assert _library(model_file, tmp_path) == cold
    assert expansions.count == 2 * first


def test_the_version_follows_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "kernels" / "template.py"
    source.parent.mkdir()
    source.write_text("step = 1\n")
    monkeypatch.setattr(version, "_ROOT", tmp_path)

    def started() -> str | None:
        monkeypatch.setattr(version, "_LOADED", version._stamps())
        monkeypatch.setattr(version, "_seen", -math.inf)
        version._source_hash.cache_clear()
        return version.source_version()

    try:
        first = started()
        assert first is not None and started() == first
        monkeypatch.setattr(version, "_RECENT", 3600.0)
        source.write_text("step = 22\n")
        assert version.source_version(lately=True) == first  # what a moment ago was true
        assert version.source_version() is None  # this process may run either
        assert version.source_version(lately=True) is None
        second = started()
        assert second not in (None, first)
        source.write_text("step = 1\n")
        assert started() == first
    finally:
        version._source_hash.cache_clear()
