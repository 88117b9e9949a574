"""The sample of ONNX's backend suite for a GPU: what is compiled here runs there and is judged here. Here, for the CPU."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

import gpu.onnx_sample as sample

import mlc.options


def test_a_sample_is_compiled_run_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = mlc.options.make_options
    monkeypatch.setattr(mlc.options, "make_options", lambda **_: options())
    sample.compile_sample(tmp_path, 3, 7)
    names = [path.stem for path in tmp_path.glob("*.case")]
    assert len(names) == 3
    results = {name: sample.run_case(tmp_path, name) for name in names}
    assert sample.judged(tmp_path, results) == []
    # Results that are not there or differ are named.
    assert len(sample.judged(tmp_path, {})) == 3
    other = sample.packed(np.full((7, 7, 7), 5, np.int8))
    wrong = {name: [[other, *sets[0][1:]], *sets[1:]] for name, sets in results.items()}
    assert len(sample.judged(tmp_path, wrong)) == 3


def test_values_are_packed() -> None:
    values = [np.ones((2, 0), np.float16), None, [np.array(["a", "b"], object), np.array(True)]]
    back = sample.unpacked(sample.packed(values))
    assert back[1] is None
    assert back[0].shape == (2, 0)
    assert back[2][0].tolist() == ["a", "b"]
    assert back[2][1].dtype == bool
