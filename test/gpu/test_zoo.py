"""Real models for a GPU: what is compiled here runs there and is compared. Here, for the CPU."""

from __future__ import annotations

import pickle
from pathlib import Path

import gpu.zoo
import numpy as np
import pytest
from gpu.onnx_sample import packed, unpacked
from models.zoo import MissingModelError

from mlc.runtime.errors import WeightsError


def test_a_model_is_compared_with_the_cpu(tmp_path: Path) -> None:
    try:
        gpu.zoo.compile_models(tmp_path, ["silero_vad"], target="cpu")
    except MissingModelError as error:
        pytest.skip(str(error))
    assert gpu.zoo.run_model(tmp_path, "silero_vad") == (0.0, "")
    case = tmp_path / "silero_vad.case"
    sets = [(inputs, [1.01 * x for x in unpacked(wanted)]) for inputs, wanted in pickle.loads(case.read_bytes())]
    case.write_bytes(pickle.dumps([(inputs, packed(wanted)) for inputs, wanted in sets]))
    assert "differs by 9.9e-03" in gpu.zoo.run_model(tmp_path, "silero_vad")[1]


def test_drawn_weights_do_not_travel(tmp_path: Path) -> None:
    """Where the model runs they are the same bits: the library refuses a weight file with others."""
    try:
        gpu.zoo.compile_models(tmp_path, ["light_squeezenet"], target="cpu")
    except MissingModelError as error:
        pytest.skip(str(error))
    assert {path.suffix for path in tmp_path.iterdir()} == {".so", ".case", ".weights"}
    assert (tmp_path / "light_squeezenet.weights").stat().st_size < 50_000
    assert gpu.zoo.run_model(tmp_path, "light_squeezenet") == (0.0, "")
    weights = tmp_path / "light_squeezenet.weights"
    drawn = pickle.loads(weights.read_bytes())
    weights.write_bytes(pickle.dumps({name: (what[0] + 1, *what[1:]) if isinstance(what, tuple) else what
                                      for name, what in drawn.items()}))  # fmt: skip
    (tmp_path / "light_squeezenet.safetensors").unlink()
    with pytest.raises(WeightsError, match="weights"):
        gpu.zoo.run_model(tmp_path, "light_squeezenet")


def test_what_differs() -> None:
    ones = np.ones((2, 3), np.float32)
    assert gpu.zoo.difference(ones, ones) == 0
    assert gpu.zoo.difference(ones, ones[:1]) == float("inf")
    assert gpu.zoo.difference(ones, np.where(np.eye(2, 3), np.nan, ones).astype(np.float32)) == float("inf")
    assert gpu.zoo.difference(ones.astype(np.int32), 2 * ones.astype(np.int32)) == float("inf")
    assert gpu.zoo.difference(ones, ones * np.float32(1.5)) == pytest.approx(0.5)
