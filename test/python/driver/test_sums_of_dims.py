"""Inputs whose dimensions are sums of others' (`past + new`), as exporters name the mask of a decoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mlc
from mlc.runtime.errors import InputError
from mlc.runtime.example_inputs import make_inputs
from mlc.verification import random_inputs


def _model(mask: str = "past + new") -> onnx.ModelProto:
    """`y = concat(old, new) * mask`."""
    nodes = [
        helper.make_node("Concat", ["old", "new"], ["all"], axis=1),
        helper.make_node("Mul", ["all", "mask"], ["y"]),
    ]
    shapes = {"mask": ["batch", mask], "old": ["batch", "past"], "new": ["batch", "new"]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "sums", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def _draw(batch: int, past: int, new: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(past)
    shapes = {"mask": (batch, past + new), "old": (batch, past), "new": (batch, new)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _check(model: mlc.Model, given: dict[str, np.ndarray]) -> None:
    [result] = model(**given)
    np.testing.assert_array_equal(result, np.concatenate([given["old"], given["new"]], 1) * given["mask"])


def test_the_sum_is_one_extent_with_what_is_joined(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    model = mlc.compile(_model(), output=tmp_path / "model.so", verify=3, report=report)
    for batch, past, new in ((1, 1, 1), (3, 20, 1), (2, 0, 5), (2, 3, 0)):
        _check(model, _draw(batch, past, new))
    [entry] = model.entries.values()
    assert entry.outputs[0].dims == ("batch", "past + new")
    assert report.read_text().count('"template"') == 1  # a product that may broadcast is a kernel of its own


def test_inputs_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    model = mlc.compile(_model("past + 2*new - 1"), output=tmp_path / "model.so")
    given = _draw(2, 3, 2)
    given["mask"] = given["mask"][:, :1]
    message = (
        r"input 'mask': dimension 'past \+ 2\*new - 1' is 1, and not 6: 'past' is 3 in input 'old', 'new' is 2 in input "
        r"'new'; if it may be another, compile with another name for it \(--input\)"
    )
    with pytest.raises(InputError, match=message):
        model(**given)
    below = {"mask": np.zeros((2, 0), np.float32), "old": np.zeros((2, 0), np.float32), "new": np.zeros((2, 0), np.float32)}
    with pytest.raises(InputError, match="is 0, and not -1"):
        model(**below)


def test_another_name_lets_it_broadcast(tmp_path: Path) -> None:
    model = mlc.compile(_model(), output=tmp_path / "model.so", inputs={"mask": ("batch", "columns")})
    given = _draw(2, 3, 4)
    _check(model, given)
    _check(model, given | {"mask": given["mask"][:, :1]})


def test_a_number_for_one_of_them(tmp_path: Path) -> None:
    model = mlc.compile(_model(), output=tmp_path / "model.so", dims={"new": 1})
    assert model.inputs[0].dims == ("batch", "past + 1")
    _check(model, _draw(2, 6, 1))
    with pytest.raises(InputError, match="and not 7: 'past' is 6 in input 'old'"):
        model(**(_draw(2, 6, 1) | {"mask": np.zeros((2, 6), np.float32)}))
    model = mlc.compile(_model(), output=tmp_path / "fixed.so", dims={"new": 1, "past": 4})
    assert model.inputs[0].dims == ("batch", 5)
    _check(model, _draw(2, 4, 1))


def test_sums_that_name_no_other_dimension_are_names(tmp_path: Path) -> None:
    model = mlc.compile(_model("past + total"), output=tmp_path / "model.so")
    _check(model, _draw(2, 3, 4))
    _check(model, _draw(2, 3, 4) | {"mask": np.ones((2, 1), np.float32)})


def test_made_inputs_add_up(tmp_path: Path) -> None:
    model = mlc.compile(_model("past + 2*new"), output=tmp_path / "model.so")
    [entry] = model.entries.values()
    shapes = {name: value.shape for name, value in make_inputs(model, entry, {}, {"past": 5}).items()}
    assert shapes == {"mask": (1, 7), "old": (1, 5), "new": (1, 1)}
    shapes = {name: value.shape for name, value in make_inputs(model, entry, {"new": "3x4"}, {}).items()}
    assert shapes == {"mask": (3, 9), "old": (3, 1), "new": (3, 4)}
    for run in range(3):
        drawn = random_inputs(model, entry.inputs, run)
        assert drawn["mask"].shape[1] == drawn["old"].shape[1] + 2 * drawn["new"].shape[1]
