"""`mlc.weights.WeightImage`: layout, streaming, hash, safetensors form."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from mlc.weights import Store, WeightError, WeightImage
from mlc.weights.image import Placement
from mlc.weights.safetensors import SafetensorsFile


def store() -> Store:
    result = Store()
    result.add("a", np.arange(5, dtype=np.float32))
    result.add("b", np.arange(3, dtype=np.int64))
    result.add("lazy", lambda: np.full(20, 7, np.int32), (20,), "i32")
    return result


def test_layout_and_bytes() -> None:
    image = WeightImage.of(store(), ["lazy", "a", "lazy", "b"])
    assert image.offsets() == {"lazy": 0, "a": 128, "b": 192}
    assert image.size == 256
    out = io.BytesIO()
    digest = image.write_to(out)
    data = out.getvalue()
    assert len(data) == 256 and digest == image.hash() == hashlib.blake2b(data, digest_size=32).digest()
    np.testing.assert_array_equal(np.frombuffer(data, np.int32, 20, 0), np.full(20, 7))
    np.testing.assert_array_equal(np.frombuffer(data, np.float32, 5, 128), np.arange(5))
    assert not any(data[80:128])


def test_given_placements_are_checked() -> None:
    weights = store()
    assert WeightImage(weights, [Placement("a", 64, 20)], 4096).size == 4096
    with pytest.raises(WeightError, match="'b' overlaps"):
        WeightImage(weights, [Placement("a", 0, 20), Placement("b", 16, 24)])
    with pytest.raises(WeightError, match="has 20 bytes, the weight image has room for 24"):
        WeightImage(weights, [Placement("a", 0, 24)])
    with pytest.raises(WeightError, match="too small"):
        WeightImage(weights, [Placement("a", 64, 20)], 64)


def test_safetensors_form_holds_the_image_as_its_data(tmp_path: Path) -> None:
    image = WeightImage.of(store(), ["a", "b", "lazy"])
    path = tmp_path / "m.safetensors"
    digest = image.write_safetensors(path, {"producer": "test"})
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    assert start % 4096 == 0
    assert hashlib.blake2b(raw[start:], digest_size=32).digest() == digest == image.hash()
    theirs = load_file(path)
    np.testing.assert_array_equal(theirs["lazy"], np.full(20, 7))
    assert SafetensorsFile(path).metadata["producer"] == "test"
    weights = Store.load(path)
    np.testing.assert_array_equal(weights.get("b"), np.arange(3))


def test_empty_image(tmp_path: Path) -> None:
    image = WeightImage.of(Store(), [])
    assert image.size == 0 and list(image.chunks()) == []
    image.write_safetensors(tmp_path / "e.safetensors")
    assert load_file(tmp_path / "e.safetensors") == {}


def test_weights_and_interp_import_no_mlir() -> None:
    code = "import sys, mlc.weights, mlc.weights.registry, mlc.interp; assert 'mlir' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
