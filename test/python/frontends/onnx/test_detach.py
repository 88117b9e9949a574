"""Weights taken out of a model file before it is parsed: the same model, the same weights, the same complaints."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from mlc.frontends.onnx import load
from mlc.frontends.onnx.detach import SMALLEST, detach
from mlc.frontends.report import ModelError

LARGE = {"w": (512, 700), "half": (300, 200), "odd": (SMALLEST + 3,)}


def _initializers() -> list[onnx.TensorProto]:
    generator = np.random.default_rng(0)
    arrays = {
        "w": generator.standard_normal(LARGE["w"]).astype(np.float32),
        "half": generator.standard_normal(LARGE["half"]).astype(np.float16),
        "odd": generator.integers(-128, 127, LARGE["odd"]).astype(np.int8),
        "small": generator.standard_normal(7).astype(np.float32),
    }
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    tensors.append(helper.make_tensor("listed", TensorProto.FLOAT, [30_000], [float(i) for i in range(30_000)]))
    tensors.append(helper.make_tensor("text", TensorProto.STRING, [1], [b"x" * 2 * SMALLEST]))
    return tensors


def _model(tensors: list[onnx.TensorProto] | None = None) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 512])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 700])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    graph = helper.make_graph(nodes, "weighty", [x], [y], tensors or _initializers(), doc_string="d")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def _attached(model: load.Model) -> onnx.ModelProto:
    """The proto as it was."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    for tensor in proto.graph.initializer:
        if tensor.name in model.detached and external_data_helper.uses_external_data(tensor):
            value = load.array_of(model, tensor)
            assert callable(value)
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = value().tobytes()
    return proto


def test_large_weights_are_mapped_and_the_model_is_the_same(tmp_path: Path) -> None:
    original = _model()
    path = _saved(original, tmp_path)
    model = load.load(path)
    assert model.detached == set(LARGE)
    assert len(model.serialized) < path.stat().st_size - 512 * 700 * 4
    assert _attached(model).SerializeToString() == original.SerializeToString()
    assert model.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert load.external_problems(model) == [] and load.check(model) == []
    for tensor, wanted in zip(model.proto.graph.initializer, original.graph.initializer, strict=True):
        value = load.array_of(model, tensor)
        array = value() if callable(value) else value
        np.testing.assert_array_equal(array, numpy_helper.to_array(wanted))


def test_what_the_checker_finds_it_still_finds(tmp_path: Path) -> None:
    broken = _model()
    broken.graph.node[0].attribute.append(helper.make_attribute("unknown", 1))
    from_file, from_bytes = load.load(_saved(broken, tmp_path)), load.load(broken.SerializeToString())
    assert from_file.detached and not from_bytes.detached
    found = load.check(from_file)
    assert len(found) == 1 and found == load.check(from_bytes)


@pytest.mark.parametrize("change", ["short", "long", "type", "nameless", "twice"])
def test_odd_weights_stay_in_the_model(tmp_path: Path, change: str) -> None:
    tensors = _initializers()
    first = tensors[0]
    if change == "short":
        first.raw_data = first.raw_data[:-4]
    elif change == "long":
        first.raw_data += bytes(4)
    elif change == "type":
        first.data_type = 99
    elif change == "nameless":
        first.name = ""
    else:
        tensors.append(first)
    odd = _model(tensors)
    from_file, from_bytes = load.load(_saved(odd, tmp_path)), load.load(odd.SerializeToString())
    assert ("w" in from_file.detached) == (change == "twice")
    assert _attached(from_file).SerializeToString() == odd.SerializeToString()
    assert load.check(from_file) == load.check(from_bytes)


def test_a_link_to_a_file_elsewhere_is_read(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    path = _saved(_model(), tmp_path / "blobs")
    link = tmp_path / "link.onnx"
    link.symlink_to(path)
    model = load.load(link)
    assert model.detached and not load.external_problems(model)
    assert _attached(model) == _model()


def test_damaged_files_are_reported_as_before(tmp_path: Path) -> None:
    whole = _model().SerializeToString()
    generator = np.random.default_rng(1)
    for number in range(60):
        data = bytearray(whole)
        if number % 3 == 0:
            del data[int(generator.integers(1, len(data))) :]
        for _ in range(number % 4):
            # Most bytes are data of weights: aim at the ends, where the structure is.
            at = int(generator.integers(0, 200)) * (1 if number % 2 else -1)
            data[at] = int(generator.integers(0, 256))
        path = tmp_path / "model.onnx"
        path.write_bytes(data)
        assert _outcome(path) == _outcome(bytes(data)), number


def _outcome(source: Path | bytes) -> bytes | str:
    try:
        return _attached(load.load(source)).SerializeToString(deterministic=True)
    except ModelError as error:
        return error.problems[0].reason


def test_nothing_but_models_is_taken_apart() -> None:
    size = lambda _: SMALLEST  # noqa: E731
    for data in (b"", b"\x07", b"\xff" * 100, bytes(1000), b"\x3a\x7f", _model([]).SerializeToString()[:50]):
        assert detach(memoryview(data), "model.onnx", size) is None
