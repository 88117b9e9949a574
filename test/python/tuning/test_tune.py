"""`--tune` from end to end: measured, remembered, baked in. What is faster is not asserted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.cli.compile import main
from mlc.options import UsageError
from mlc.tuning import cache

WEIGHT = np.random.default_rng(0).standard_normal((96, 80)).astype(np.float32)


def _model(extent: int | str = 24) -> onnx.ModelProto:
    """A product with a weight, one of two activations, and an elementwise end."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "y"], ["b"]),
        helper.make_node("Tanh", ["b"], ["z"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "products",
        [value("x", TensorProto.FLOAT, [extent, 96]), value("y", TensorProto.FLOAT, [80, 40])],
        [value("z", TensorProto.FLOAT, [extent, 40])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("MLC_TUNING_CACHE", raising=False)
    onnx.save(_model(), "model.onnx")
    return tmp_path


def _check(path: str, rows: int = 24) -> mlc.Model:
    model, rng = mlc.load(path), np.random.default_rng(1)
    x, y = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((rows, 96), (80, 40)))
    np.testing.assert_allclose(model(x, y)[0], np.tanh(x @ WEIGHT @ y), rtol=1e-3, atol=1e-4)
    return model


def test_what_was_measured_is_remembered_and_baked_in(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model.onnx", "-o", "one.so", "--tune=0.5", "--tuning-cache", "my tuning.json"]) == 0
    assert "tune       1/" in capsys.readouterr().err
    entries = cache.read(Path("my tuning.json"))
    assert entries and all(e.microseconds > 0 and e.default > 0 for e in entries.values())
    assert any(e.schedule["template"] == "contraction" for e in entries.values())
    assert _check("one.so").metadata["tuning"] == cache.digest({k: e.schedule for k, e in entries.items()})
    # The file alone gives the same bytes.
    assert main(["model.onnx", "-o", "two.so", "--tuning-cache", "my tuning.json"]) == 0
    assert Path("one.so").read_bytes() == Path("two.so").read_bytes()


def test_what_is_known_is_not_measured_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["model.onnx", "-o", "one.so", "--tuning-cache", "t.json", "--tune=0.5"]
    for _ in range(2):  # A slow machine has time for one of the two kernels.
        assert main(arguments) == 0
        known = json.loads(Path("t.json").read_text())
        for entry in known["kernels"].values():
            entry["tried"] = 99
        Path("t.json").write_text(json.dumps(known))
    key, _ = known["kernels"]
    known["kernels"][key]["tried"] = 1  # there was no time for more
    Path("t.json").write_text(json.dumps(known))
    capsys.readouterr()
    assert main(arguments) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "/" in line and line.startswith("tune ")]
    assert len(said) == 1 and known["kernels"][key]["kernel"] in said[0]


def test_the_usual_file_is_not_read_unless_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model.onnx", "-o", "plain.so"]) == 0
    assert main(["model.onnx", "-o", "tuned.so", "--tune=0.1"]) == 0
    _edit(Path("cache/tuning.json"))
    assert main(["model.onnx", "-o", "again.so"]) == 0
    assert Path("plain.so").read_bytes() == Path("again.so").read_bytes()
    assert "tuning" not in _check("again.so").metadata
    monkeypatch.setenv("MLC_TUNING_CACHE", "cache/tuning.json")
    assert main(["model.onnx", "-o", "named.so"]) == 0
    assert "tuning" in _check("named.so").metadata
    assert Path("named.so").read_bytes() != Path("plain.so").read_bytes()


def _edit(path: Path) -> None:
    """Gives every contraction another register tile."""
    content = json.loads(path.read_text())
    for entry in content["kernels"].values():
        entry["schedule"]["rows"] = 3
    path.write_text(json.dumps(content))


def test_decisions_are_in_the_ir(folder: Path) -> None:
    assert main(["model.onnx", "-o", "tuned.so", "--tune=0.3", "--tuning-cache", "t.json"]) == 0
    _edit(Path("t.json"))
    assert main(["model.onnx", "-o", "all.so", "--tuning-cache", "t.json"]) == 0
    assert main(["model.onnx", "--emit", "schedule", "-o", "s.mlir", "--tuning-cache", "t.json"]) == 0
    assert "rows = 3 : i64" in Path("s.mlir").read_text()
    assert main(["s.mlir", "-o", "replayed.so"]) == 0
    assert Path("replayed.so").read_bytes() == Path("all.so").read_bytes()
    _check("all.so")
    assert main(["s.mlir", "-o", "late.so", "--tune"]) == 2


def test_dynamic_extents(folder: Path) -> None:
    onnx.save(_model("n"), "dynamic.onnx")
    assert main(["dynamic.onnx", "-o", "d.so", "--dim", "n=8..64", "--tune=0.3", "--tuning-cache", "t.json"]) == 0
    assert any("f32[8,96]" in entry.kernel for entry in cache.read(Path("t.json")).values())
    _check("d.so", rows=37)


@pytest.mark.parametrize("arguments", [["--tune=1"], []])
def test_a_damaged_file_is_one_message(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    Path("bad.json").write_text('{"format": 1')
    assert main(["model.onnx", "-o", "one.so", "--tuning-cache", "bad.json", *arguments]) == 1
    said = capsys.readouterr().err
    assert "tuning cache 'bad.json' is damaged: it is no JSON" in said and "Traceback" not in said
    assert not Path("one.so").exists()
    assert Path("bad.json").read_text() == '{"format": 1'


def test_a_file_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model.onnx", "-o", "one.so", "--tuning-cache", "none.json"]) == 1
    assert "tuning cache 'none.json': No such file" in capsys.readouterr().err


def test_options_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="kernels of target 'cpu' are measured here"):
        mlc.compile(_model(), output="x.mlir", emit="schedule", tune_bundle="bundle")
    with pytest.raises(UsageError, match="which this compilation does not run"):
        mlc.compile(_model(), output="x.mlir", emit="linalg", tune=1.0)
