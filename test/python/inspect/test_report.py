"""The report: counts against arithmetic done by hand, what it warns about, and the file itself."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models.perceptron import perceptron
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.inspect.collect import KernelReport, Report, _warnings
from mlc.inspect.report import amount, to_html
from mlc.options import UsageError

VALUE = helper.make_tensor_value_info


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "cache"))


def _report(model: Any, tmp_path: Path, **options: Any) -> dict[str, Any]:
    mlc.compile(model, output=tmp_path / "m.so", report=tmp_path / "r.json", **options)
    return json.loads((tmp_path / "r.json").read_text())


def _model(nodes: list, inputs: list, outputs: list, weights: dict[str, np.ndarray] | None = None) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_counts_of_a_perceptron(tmp_path: Path) -> None:
    report = _report(perceptron(), tmp_path, dims={"batch": (8, 64, 8)})
    assert report["extents"] == {"batch": 8}
    first, second, softmax = report["kernels"]
    assert (first["template"], second["template"]) == ("contraction", "contraction")
    assert first["nodes"] == ["first", "bias", "activation"] and softmax["nodes"] == ["probabilities"]
    assert first["flops"] == 8 * 32 * (2 * 24 + 1 + 1)
    assert second["flops"] == 8 * 5 * 2 * 32
    assert first["shapes"][0] == "f32[8,24]" and first["shapes"][-1] == "f32[8,32]"
    weight = np.prod([int(n) for n in first["shapes"][1].removeprefix("f32[").removesuffix("]").split(",")])
    assert first["bytes"] == 4 * (8 * 24 + weight + 32 + 8 * 32)
    # A maximum, a subtraction, an exponential, a sum, a division an element.
    assert softmax["flops"] == 8 * 5 * 5
    assert first["schedule"]["rows"] >= 1 and "template" not in first["schedule"]
    assert report["weight_bytes"] > 0 and report["arena"]["forward"].endswith("*batch")
    assert list(report["stages"])[:2] == ["import", "simplify"] and "library" in report["stages"]


def test_counts_of_a_convolution(tmp_path: Path) -> None:
    """3x3, stride 2, padding 1: 4 channels of 9x9 to 6 of 5x5. Of the 15 pairs of a row's points and taps 13 lie inside."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="c", strides=[2, 2], pads=[1, 1, 1, 1])
    weights = {"w": np.ones((6, 4, 3, 3), np.float32)}
    model = _model([node], [VALUE("x", 1, [1, 4, 9, 9])], [VALUE("y", 1, [1, 6, 5, 5])], weights)
    kernels = _report(model, tmp_path)["kernels"]
    assert sum(k["flops"] for k in kernels if k["contraction"]) == 2 * 6 * 4 * 13 * 13


def test_products_of_bytes_are_counted_apart(tmp_path: Path) -> None:
    """A convolution of bytes and one of floats behind it, both 1x1 of 32 channels to 6 and of 6 to 5."""
    nodes = [
        helper.make_node("ConvInteger", ["x", "w"], ["sums"], name="c"),
        helper.make_node("Cast", ["sums"], ["floats"], to=1),
        helper.make_node("Conv", ["floats", "v"], ["y"], name="d"),
    ]
    weights = {"w": np.ones((6, 32, 1, 1), np.int8), "v": np.ones((5, 6, 1, 1), np.float32)}
    model = _model(nodes, [VALUE("x", 2, [1, 32, 9, 9])], [VALUE("y", 1, [1, 5, 9, 9])], weights)
    kernels = _report(model, tmp_path)["kernels"]
    assert sum(k["byte_flops"] for k in kernels) == 2 * 81 * 32 * 6
    assert sum(k["flops"] - k["byte_flops"] for k in kernels if k["contraction"]) == 2 * 81 * 6 * 5


def test_a_gather_touches_what_it_reads(tmp_path: Path) -> None:
    node = helper.make_node("Gather", ["table", "x"], ["y"], name="g")
    weights = {"table": np.ones((1000, 32), np.float32)}
    model = _model([node], [VALUE("x", 7, [6])], [VALUE("y", 1, [6, 32])], weights)
    (kernel,) = _report(model, tmp_path)["kernels"]
    assert kernel["bytes"] == 6 * 8 + 2 * 6 * 32 * 4


def test_equal_kernels_are_launched_more_than_once(tmp_path: Path) -> None:
    nodes = [helper.make_node("Sin", ["x"], ["a"], name="one"), helper.make_node("CumSum", ["a", "zero"], ["b"]),
             helper.make_node("Sin", ["b"], ["y"], name="two")]  # fmt: skip
    weights = {"zero": np.array(0, np.int64)}
    model = _model(nodes, [VALUE("x", 1, [7, 3])], [VALUE("y", 1, [7, 3])], weights)
    kernels = {tuple(k["nodes"]): k for k in _report(model, tmp_path)["kernels"]}
    sines = next(k for nodes, k in kernels.items() if "one" in nodes)
    assert sines["launches"] == 2 and {"one", "two"} <= set(sines["nodes"])
    assert sines["flops"] == 21 and sines["bytes"] == 2 * 21 * 4


def test_sizes_that_the_data_decide_are_unknown(tmp_path: Path) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
             helper.make_node("Exp", ["f"], ["y"], name="late")]  # fmt: skip
    model = _model(nodes, [VALUE("x", 1, [7])], [VALUE("y", 1, [1, "k"])])
    late = next(k for k in _report(model, tmp_path)["kernels"] if "late" in k["nodes"])
    assert late["flops"] is None and late["bytes"] is None and "?" in late["shapes"][-1]


def test_warnings() -> None:
    good = KernelReport("k0", "contraction", {}, ["a"], contraction=True)
    bad = KernelReport("k1", "loops", {}, ["b", "c"], contraction=True)
    other = KernelReport("k2", "loops", {}, ["d"])
    assert list(_warnings([good, bad, other])) == [
        "kernel k1 (b, c) is a contraction on the generic path: expect a fraction of the peak"
    ]


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [value for name, value in attrs if name in ("src", "href")]


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    mlc.compile(perceptron(), output=tmp_path / "m.so", report=tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = _Links()
    page.feed(text)
    assert page.tags.count("table") == 3 and not page.outside and "http" not in text and "<script" not in text
    for word in ("probabilities", "contraction", "batch = ", "Warnings"):
        assert word in text


def test_names_are_escaped() -> None:
    kernel = KernelReport("k0", "loops", {}, ["<b>&"], 1, ["f32[1]"], 10, 8)
    refusal = {"kernel": "k0", "node": "<i>", "role": "epilogue", "reason": "a < b"}
    report = Report("<model>", "mlc", "cpu", {}, [kernel], [refusal], ["<warning>"])
    text = to_html(report)
    assert "&lt;b&gt;&amp;" in text and "&lt;model&gt;" in text and "&lt;warning&gt;" in text and "a &lt; b" in text
    assert "<i>" not in text and "<b>" not in text


@pytest.mark.parametrize(
    ("number", "text"), [(None, "?"), (0, "0 "), (999, "999 "), (1600, "1.6 k"), (2.5e9, "2.5 G"), (3e13, "30 T")]
)
def test_amounts(number: float | None, text: str) -> None:
    assert amount(number) == text


def test_going_on(tmp_path: Path) -> None:
    onnx.save(perceptron(), tmp_path / "p.onnx")
    whole = _report(tmp_path / "p.onnx", tmp_path)["kernels"]
    for phase in ("kernels", "schedule"):
        stage = mlc.compile(tmp_path / "p.onnx", output=tmp_path / f"{phase}.mlir", emit=phase)
        assert _report(stage, tmp_path)["kernels"] == whole
    late = mlc.compile(tmp_path / "p.onnx", output=tmp_path / "tile.mlir", emit="tile")
    with pytest.raises(UsageError, match="a report is about phase 'schedule'"):
        _report(late, tmp_path)
    with pytest.raises(UsageError, match="which a compilation to 'linalg' does not reach"):
        mlc.compile(tmp_path / "p.onnx", output=tmp_path / "l.mlir", emit="linalg", report=tmp_path / "r.html")
    with pytest.raises(FileNotFoundError, match="of the report does not exist"):
        mlc.compile(tmp_path / "p.onnx", output=tmp_path / "l.so", report=tmp_path / "no" / "r.html")
