"""`bench/sweep.py` and `bench/architectures.py`: what is drawn, what is told, and models from end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import onnx
import pytest
from onnx import helper

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import sweep

    return sweep


def save(path: Path, operator: str) -> None:
    """A model of one operator on 3x8 numbers."""
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3, 8]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], name="only")], "one", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bench" / "sweep.py"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def test_a_seed_draws_the_same_architectures_again(sweep: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep.architectures, "names", lambda: [f"{p}/{n}" for p in ("timm", "torchvision") for n in range(50)])
    options = Namespace(of="torchvision", smallest=False, draw=5, seed="some day")
    first = sweep.drawn(options)
    assert first == sweep.drawn(options) and len(set(first)) == 5
    assert all(name.startswith("torchvision/") for name in first)
    options.seed = "another day"
    assert sweep.drawn(options) != first


def test_worst_come_first_and_the_mean_is_geometric(sweep: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [sweep.Row(name, 1, ratio, {"mlc": 1.0}, 0.0) for name, ratio in (("good", 2.0), ("bad", 0.5), ("odd", None))]
    sweep.tell(sweep.Sweep(rows, {"wrong": "differs: by much"}, {"strange": "no such operator"}))
    said = capsys.readouterr().out
    assert said.index("bad") < said.index("good") < said.index("odd")
    assert "geometric mean at 1 thread: 1.00" in said
    assert "FAILED: wrong: differs: by much" in said and "not exported: strange: no such operator" in said


def test_files_are_timed_and_written_down(tmp_path: Path) -> None:
    save(tmp_path / "one.onnx", "Exp")
    done = run(tmp_path, "--files", "one.onnx", "--peers", "none", "--rounds", "2", "--burst", "0.01", "--json", "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    written = json.loads((tmp_path / "out.json").read_text())
    (row,) = written["rows"]
    assert (row["name"], row["status"], row["ratio"]) == ("one", "ok", None)
    assert row["milliseconds"]["mlc"] > 0 and row["error"] < 1e-6
    assert done.stdout.count("one ") == 2 and written["failed"] == {}


def test_a_model_that_does_not_compile_fails_and_others_go_on(tmp_path: Path) -> None:
    save(tmp_path / "good.onnx", "Exp")
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x07broken")
    done = run(tmp_path, "--files", "bad.onnx", "good.onnx", "--peers", "none", "--rounds", "1", "--burst", "0.01")
    assert done.returncode == 1
    assert "FAILED: bad: " in done.stdout and "good" in done.stdout and "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [("--files", "missing.onnx"), ("timm/no_such_net",), ("nothing",)])
def test_what_is_not_there_is_said(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run(tmp_path, *arguments)
    text = done.stdout + done.stderr
    assert arguments[-1] in text and "Traceback" not in text
    assert done.returncode == (1 if "--files" in arguments else 0), text  # what cannot be exported is passed over


def test_an_unknown_architecture_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "bench" / "architectures.py"), "torchvision", "out.onnx"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "torchvision" in done.stderr and not (tmp_path / "out.onnx").exists()
