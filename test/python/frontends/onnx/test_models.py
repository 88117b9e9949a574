"""Whole models: the imported module computes what onnxruntime computes, and it reacts to its inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from evaluate import run
from harness import imported, reference, signless
from models import samples
from models.zoo import MissingModelError, Sample, names, zoo

FAST = {"light_squeezenet", "light_shufflenet"}
# Every node of these has an operator, attributes and a number of inputs that a node of another model has too, and
# multiplying their large matrices takes long; one of them is compared compiled (test/conformance/test_zoo.py).
NOTHING_NEW = {"light_vgg19", "light_zfnet512"}


def sample(name: str) -> Sample:
    """A model of the zoo, or a skip with the reason."""
    try:
        return zoo(name)
    except MissingModelError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.startswith("light") and name not in FAST else ())
        for name in names()
        if name not in NOTHING_NEW
    ],
)
def test_agrees_with_onnxruntime(name: str) -> None:
    """Both inputs give the reference's outputs, which differ from one another."""
    model = sample(name)
    module, store = imported(model.path)
    outputs = []
    for inputs in (model.inputs, model.swapped):
        want = reference(model.path, inputs)
        got = run(module, store, {key: signless(value) for key, value in inputs.items()})
        for value, expected in zip(got.values(), want, strict=True):
            assert value.shape == expected.shape
            assert np.abs(value - expected).max() <= 2e-4 * max(np.abs(expected).max(), 1e-6)
        outputs.append(want)
    spread = np.abs(outputs[0][0] - outputs[1][0]).max()
    assert spread > 1e-3, "the reference does not react to its input"


def test_recognizer_reads_the_text() -> None:
    """The text that was rendered comes out."""
    model = sample("ocr_rec")
    module, store = imported(model.path)
    (probabilities,) = run(module, store, model.inputs).values()
    (characters,) = [entry.value for entry in onnx.load(model.path).metadata_props if entry.key == "character"]
    assert samples.decoded(probabilities, characters).replace(" ", "") == samples.TEXTS[0].replace(" ", "")


@pytest.mark.parametrize("width", [160, 320, 480])
def test_recognizer_takes_any_width(width: int) -> None:
    """The dynamic width of the model is dynamic in the module."""
    model = sample("ocr_rec")
    module, store = imported(model.path)
    image = np.random.default_rng(width).standard_normal([1, 3, 48, width]).astype(np.float32)
    (got,) = run(module, store, {"x": image}).values()
    np.testing.assert_allclose(got, reference(model.path, {"x": image})[0], atol=1e-4)


def test_static_shape_removes_branches() -> None:
    """With fixed extents the conditions of silero's branches are known; the branch for the other sampling rate does not
    fit them, so the rate is checked."""
    model = sample("silero_vad")
    shapes = {"input": [1, 576], "state": [2, 1, 128]}
    module, store = imported(model.path, input_shapes=shapes)
    assert "scf.if" in str(imported(model.path)[0])
    assert "scf.if" not in str(module)
    assert str(module).count("mlc.check") == 1
    got = run(module, store, model.inputs)
    for value, want in zip(got.values(), reference(model.path, model.inputs), strict=True):
        np.testing.assert_allclose(value, want, atol=1e-5)
    with pytest.raises(AssertionError, match="does not fit the shapes"):
        run(module, store, model.inputs | {"sr": np.array(8000)})
