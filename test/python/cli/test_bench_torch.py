"""`mlc-bench` with PyTorch as a peer; what it does with others is in test_bench.py."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mlc.bench.engines import load_mlc
from mlc.bench.subject import make_subject
from mlc.bench.torch_engines import load_torch
from mlc.cli import bench

torch = pytest.importorskip("torch.jit") and pytest.importorskip("torch")

Captured = pytest.CaptureFixture[str]
PEERS = ("openvino", "torch", "inductor") if importlib.util.find_spec("openvino") else ("torch", "inductor")
QUICK = ("--rounds", 2, "--burst", 0.001)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    """The exit code, what was printed, and what was said."""
    code = bench.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_torchscript(capsys: Captured) -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU()).eval()
    torch.jit.trace(module, torch.zeros(2, 8)).save("traced.pt")
    options = ("--input", "input=2x8", "--json", "o.json")
    code, _, err = call(capsys, "traced.pt", *QUICK, *options)
    assert (code, err) == (0, "")
    data = json.loads(Path("o.json").read_text())
    assert data["reference"] == "torch" and [e["status"] for e in data["runs"][0]["engines"]] == ["ok", "ok"]


def test_program_of_torch_export(capsys: Captured) -> None:
    """PyTorch as it is, `torch.compile` and OpenVINO, where it is installed, are peers; numbers, names and None among
    inputs and outputs are in place."""

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 16)

        def forward(self, x: torch.Tensor, scale: float, more: dict[str, torch.Tensor]) -> dict[str, object]:
            return {"y": self.layer(x) * scale, "none": None, "z": more["a"] - more["b"]}

    torch.manual_seed(0)
    example = (torch.randn(3, 8), 2.0, {"a": torch.randn(5), "b": torch.randn(5)})
    torch.export.save(torch.export.export(Module().eval(), example), "program.pt2")
    code, _, err = call(capsys, "program.pt2", *QUICK, "--json", "o.json")
    assert (code, err) == (0, "")
    data = json.loads(Path("o.json").read_text())
    found = {e["engine"]: e["status"] for e in data["runs"][0]["engines"]}
    assert data["reference"] == "torch" and found == dict.fromkeys(("mlc", *PEERS), "ok")


def test_program_beside_an_onnx_model_takes_its_inputs_in_order(capsys: Captured) -> None:
    class Module(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a - b

    program = torch.export.export(Module(), (torch.zeros(4), torch.zeros(4)))
    torch.export.save(program, "sub.pt2")
    onnx.save(_subtraction(), "sub.onnx")
    options = ("--torch", "sub.pt2", "--peers", "torch", "--json", "o.json")
    code, _, err = call(capsys, "sub.onnx", *QUICK, *options)
    assert (code, err) == (0, "")
    engines = json.loads(Path("o.json").read_text())["runs"][0]["engines"]
    assert [(e["engine"], e["status"]) for e in engines] == [("mlc", "ok"), ("torch", "ok")]


def _subtraction() -> onnx.ModelProto:
    values = [onnx.helper.make_tensor_value_info(name, 1, [4]) for name in ("a", "b", "y")]
    node = onnx.helper.make_node("Sub", ["a", "b"], ["y"])
    graph = onnx.helper.make_graph([node], "sub", values[:2], values[2:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)


def test_a_program_that_changes_buffers(tmp_path: Path) -> None:
    """The module has its buffers itself; mlc gets them, writes them where they are, and gives the other results."""

    class Kept(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("rows", torch.zeros(1, 6, 4))

        def forward(self, x: Any, place: Any) -> Any:
            self.rows.index_copy_(1, place, x)
            return self.rows.sum(1)

    program = torch.export.export(Kept(), (torch.ones(1, 1, 4), torch.tensor([2])))
    torch.export.save(program, tmp_path / "kept.pt2")
    subject = make_subject(
        tmp_path / "kept.pt2", tmp_path, specs={"place": "random:3:4"}, dims={}, shapes={}, precision="fp32"
    )
    assert subject.shared == subject.state == {"rows": "rows"}
    results = []
    for engine in (load_mlc, load_torch):
        loaded = engine(subject.job("torch", 1), subject.inputs)
        results.append([loaded.fetch(loaded.run()) for _ in range(2)][-1])
    assert [len(outputs) for outputs in results] == [1, 1]
    np.testing.assert_array_equal(*(outputs[0] for outputs in results))
    np.testing.assert_array_equal(subject.inputs["rows"][0, 3], subject.inputs["x"][0, 0])
