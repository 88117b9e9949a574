"""Real models against onnxruntime: real inputs, several sizes of every dynamic dimension, any number of threads.

The packaged models have their pretrained weights; the `light_*` topologies are reweighted (test/models/weights.py). A
reference that hardly varies, or that does not react to other inputs, fails the test: it would prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from models.zoo import Inputs, MissingModelError, Sample, names, zoo
from spread import EVERY

import mlc

ort = pytest.importorskip("onnxruntime", reason="the reference; pip install mlc[ort]")

# Layers as zfnet512 has them, and 144 million weights.
NOTHING_NEW = {"light_vgg19"}


def _tiled(name: str, axis: int, count: int) -> Callable[[Inputs], Inputs]:
    """Another extent of one input dimension: what is there, repeated or cut off."""

    def change(inputs: Inputs) -> Inputs:
        array = inputs[name]
        reps = [1] * array.ndim
        reps[axis] = -(-count // array.shape[axis])
        grown = np.tile(array, reps)
        return {**inputs, name: np.ascontiguousarray(np.take(grown, range(count), axis))}

    return change


def _speakers(count: int) -> Callable[[Inputs], Inputs]:
    """Several voices at once: the sound and its state have a batch dimension."""

    def change(inputs: Inputs) -> Inputs:
        louder = np.concatenate([inputs["input"] * (1 + i) for i in range(count)])
        return {**inputs, "input": louder, "state": np.zeros([2, count, 128], np.float32)}

    return change


def _same(inputs: Inputs) -> Inputs:
    return inputs


SIZES: dict[str, list[Callable[[Inputs], Inputs]]] = {
    "magika": [_tiled("bytes", 0, 1), _tiled("bytes", 0, 5)],
    "ocr_det": [_tiled("x", 2, 96), _tiled("x", 3, 448), _tiled("x", 0, 2)],
    "ocr_rec": [_tiled("x", 3, 100), _tiled("x", 3, 416), _tiled("x", 0, 3)],
    "ocr_cls": [_tiled("x", 0, 3)],
    "silero_vad": [_speakers(3)],
    "silero_vad_op15": [_speakers(2)],
}


def _sample(name: str) -> Sample:
    try:
        return zoo(name)
    except MissingModelError as error:
        pytest.skip(str(error))


def _reference(path: Path) -> Callable[[Inputs], list[np.ndarray]]:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in names() if EVERY or name not in NOTHING_NEW])
def test_matches_onnxruntime(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = _sample(name)
    model = mlc.compile(sample.path, output=tmp_path / "model.so", weights="embed")
    reference = _reference(sample.path)
    worst = 0.0
    first: list[np.ndarray] = []
    for number, inputs in enumerate([sample.inputs, sample.swapped]):
        for change in [_same, *SIZES.get(name, [])]:
            wanted = reference(change(inputs))
            for got, want in zip(model(**change(inputs)), wanted, strict=True):
                assert got.shape == want.shape
                assert got.dtype == want.dtype
                np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
                worst = max(worst, float(np.max(np.abs(got - want), initial=0.0)))
            if change is _same:
                assert any(np.std(w) > 1e-3 for w in wanted), "the reference hardly varies"
                if number:
                    assert any(not np.allclose(a, b, atol=1e-3) for a, b in zip(first, wanted, strict=True))
                first = wanted
    with capsys.disabled():
        print(f"\n{name}: largest difference {worst:.2e}")


@pytest.mark.parametrize("name", ["ocr_cls", "silero_vad"])
def test_results_do_not_depend_on_threads(name: str, tmp_path: Path) -> None:
    sample = _sample(name)
    mlc.compile(sample.path, output=tmp_path / "model.so")
    results = []
    for threads in (1, 2, 3):
        model = mlc.load(tmp_path / "model.so", threads=threads)
        results.append([r.tobytes() for r in model(**sample.inputs)])
    assert results[0] == results[1] == results[2]
