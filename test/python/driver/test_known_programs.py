"""Models that have been compiled before: no pass runs again, and the artefact has the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from models.perceptron import perceptron

import mlc
from mlc.codegen import known_programs
from mlc.compilation import Compilation
from mlc.options import make_options


class _Library:
    """Compiles to one path, and says which phases ran."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "model.so"
        self.stages: list[str] = []

    def __call__(self, source: Any, **options: Any) -> bytes:
        self.stages = []
        Compilation(make_options(**options), self._note).run(source, self.path)  # libraries for GPUs do not load here
        return self.path.read_bytes()

    def _note(self, stage: str, done: int, total: int, seconds: float) -> None:
        if stage not in self.stages:
            self.stages.append(stage)

    @property
    def was_known(self) -> bool:
        return "simplify" not in self.stages


@pytest.fixture
def library(tmp_path: Path) -> _Library:
    return _Library(tmp_path)


@pytest.mark.parametrize("options", [{}, {"weights": "external"}, {"inputs": "fixed"}, {"target": "cuda"}])
def test_the_second_compilation_runs_no_phase_and_gives_the_same_bytes(
    library: _Library, model_file: Path, options: dict[str, Any]
) -> None:
    if "inputs" in options:
        options = {"inputs": _fixed(model_file)}
    cold = library(model_file, **options)
    assert not library.was_known
    weights = library.path.with_suffix(".safetensors")
    content = weights.read_bytes() if weights.exists() else b""
    assert library(model_file, **options) == cold
    assert library.was_known
    assert (weights.read_bytes() if weights.exists() else b"") == content
    assert library(model_file, cache=False, **options) == cold
    assert not library.was_known


def test_a_weight_file_that_is_there_is_not_written_again(library: _Library, model_file: Path) -> None:
    library(model_file, weights="external")
    weights = library.path.with_suffix(".safetensors")
    first, content = weights.stat().st_ino, weights.read_bytes()
    library(model_file, weights="external")
    assert library.was_known
    assert weights.stat().st_ino == first
    damaged = bytearray(content)
    damaged[-1] ^= 1
    for other in (bytes(damaged), content[:-1], b"x" + content[1:]):
        weights.write_bytes(other)
        library(model_file, weights="external")
        assert weights.read_bytes() == content
    weights.unlink()
    library(model_file, weights="external")
    assert weights.read_bytes() == content


def _fixed(model_file: Path) -> dict[str, list[int]]:
    first = onnx.load(model_file).graph.input[0]
    return {first.name: [d.dim_value or 3 for d in first.type.tensor_type.shape.dim]}


def test_what_is_known_computes_the_same(model_file: Path) -> None:
    first, second = mlc.compile(model_file), mlc.compile(model_file)
    name, (_, features) = next(iter(_fixed(model_file).items()))
    x = np.random.default_rng(0).standard_normal((5, features)).astype(np.float32)
    assert first.run({name: x}).keys() == second.run({name: x}).keys()
    for output, value in first.run({name: x}).items():
        np.testing.assert_array_equal(value, second.run({name: x})[output])


def test_other_weights_are_another_program(library: _Library, tmp_path: Path) -> None:
    proto = perceptron()
    first = library(proto)
    weight = next(t for t in proto.graph.initializer if len(t.dims) == 2)
    weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight) + 1, weight.name))
    other = library(proto)
    assert not library.was_known and other != first
    assert library(proto) == other
    assert library.was_known
    assert library(perceptron()) == first
    assert library.was_known


def test_other_options_are_another_program(library: _Library, model_file: Path) -> None:
    library(model_file)
    for options in ({"opt_level": 1}, {"precision": "bf16"}, {"cpu": "x86-64-v3"}, {"inputs": _fixed(model_file)}):
        library(model_file, **options)
        assert not library.was_known, options


def test_whoever_wants_more_of_the_phases_gets_it(library: _Library, model_file: Path, tmp_path: Path) -> None:
    cold = library(model_file)
    for options in (
        {"dump_ir": tmp_path / "ir"},
        {"verify_each": True},
        {"verify": 1},
        {"report": tmp_path / "report.json"},
    ):
        assert library(model_file, **options) == cold
        assert not library.was_known, options
    assert (tmp_path / "report.json").exists() and (tmp_path / "ir").exists()


def test_other_sources_of_the_compiler_know_nothing(
    library: _Library, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = library(model_file)
    monkeypatch.setattr(known_programs, "source_version", lambda **_: "edited")
    assert library(model_file) == cold
    assert not library.was_known
    assert library(model_file) == cold
    assert library.was_known


def test_nothing_becomes_known_while_sources_change(
    library: _Library, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = iter(["before", "after"])
    monkeypatch.setattr(known_programs, "source_version", lambda **_: next(versions))
    library(model_file)
    for version in ("before", "after"):
        monkeypatch.setattr(known_programs, "source_version", lambda version=version, **_: version)
        library(model_file)
        assert not library.was_known


@pytest.mark.parametrize("damage", ["cut", "empty", "changed"])
def test_damaged_entries_are_made_again(library: _Library, model_file: Path, tmp_path: Path, damage: str) -> None:
    cold = library(model_file)
    for entry in (tmp_path / "cache" / "objects").glob("*/*.o"):
        content = entry.read_bytes()
        spoilt = {"cut": content[: len(content) // 2], "empty": b"", "changed": content[:-1] + b"?"}
        entry.write_bytes(spoilt[damage])
    assert library(model_file) == cold
    assert not library.was_known
    assert library(model_file) == cold
    assert library.was_known


def test_a_program_whose_objects_are_gone_is_made_again(library: _Library, model_file: Path, tmp_path: Path) -> None:
    cold = library(model_file)
    for entry in (tmp_path / "cache" / "objects").glob("*/*.o"):
        if entry.read_bytes()[:4] == b"\x7fELF":
            entry.unlink()
    assert library(model_file) == cold
    assert not library.was_known
