"""Models that parse and are wrong inside: a report that blames the file, never an error of the importer."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from harness import imported
from models.perceptron import perceptron
from onnx import TensorProto, helper, numpy_helper

import mlc.frontends.onnx as frontend
from mlc.frontends.report import ModelError


def _report(model: onnx.ModelProto | bytes) -> str:
    with pytest.raises(ModelError) as caught:
        imported(model)
    return str(caught.value)


def _resize(**attributes: object) -> onnx.ModelProto:
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], name="up", **attributes)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [value("x", TensorProto.FLOAT, [1, 1, 4, 4])], [value("y", TensorProto.FLOAT, [1, 1, 8, 8])],
        [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_name_that_is_no_text() -> None:
    data = perceptron().SerializeToString().replace(b"Softmax", b"Soft\xf8\xf8x")
    text = _report(data)
    assert "a NodeProto has a op_type that is no text" in text and "the file is damaged" in text


def test_data_that_do_not_fit_the_shape() -> None:
    model = perceptron()
    model.graph.initializer[1].raw_data += bytes(8)
    assert 'tensor "b": its data do not make an array of shape [32]' in _report(model)


@pytest.mark.parametrize(
    ("name", "value"), [("coordinate_transformation_mode", "half_pixle"), ("nearest_mode", "nearest"), ("mode", "quad")]
)
def test_unknown_words_of_attributes(name: str, value: str) -> None:
    text = _report(_resize(**{name: value}))
    assert 'node "up" (Resize)' in text and repr(value) in text.replace('"', "'")


def test_a_bug_of_the_importer_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with nothing wrong is not blamed."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(frontend, "_body", broken)
    with pytest.raises(ZeroDivisionError):
        imported(perceptron())


def _mutated(data: bytes, seed: int) -> bytes:
    """Bits flipped, bytes cut out, put in or replaced, and now and then the end lost."""
    rng, result = random.Random(seed), bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(result))
        kind = rng.randrange(4)
        if kind == 0:
            result[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del result[at : at + rng.randrange(1, 30)]
        elif kind == 2:
            result[at:at] = rng.randbytes(rng.randrange(1, 6))
        else:
            result[at] = rng.choice([0, 1, 2, 127, 255])
    return bytes(result[: rng.randrange(len(result))] if rng.random() < 0.1 else result)


@pytest.mark.parametrize("make", [perceptron, _resize], ids=["perceptron", "resize"])
def test_damage_at_random(make: object) -> None:
    data = make().SerializeToString()  # type: ignore[operator]
    outcomes = {"imported": 0, "refused": 0}
    for seed in range(150):
        try:
            imported(_mutated(data, seed))
            outcomes["imported"] += 1
        except ModelError as error:
            assert str(error)
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 5, outcomes
