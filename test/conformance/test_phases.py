"""Every phase can be the end of one compilation and the start of another, with the same bytes in the end."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from models.zoo import MissingModelError, zoo
from phases import compiled_again, gone_on

import mlc

PHASES = [
    "import", "simplify", "decompose", "layout", "linalg", "kernels", "schedule", "tile", "buffers", "llvm",
]  # fmt: skip


# Convolutions, of images of one size: seventy kernels for any size have ten times the text.
FIXED = {"ocr_cls": [1, 3, 48, 192]}
STOPS = [("silero_vad", phase) for phase in PHASES] + [("ocr_cls", "schedule"), ("ocr_cls", "tile")]


@pytest.fixture(scope="module")
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A model file and its artefact."""
    try:
        path = zoo(request.param).path
    except MissingModelError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("whole")
    if request.param in FIXED:
        path = _of_one_size(path, FIXED[request.param], folder / "model.onnx")
    output = folder / "model.so"
    mlc.compile(path, output=output)
    return path, output.read_bytes()


def _of_one_size(path: Path, shape: list[int], copy: Path) -> Path:
    """A copy of a model whose input has this shape."""
    model = onnx.load(path)
    for dim, extent in zip(model.graph.input[0].type.tensor_type.shape.dim, shape, strict=True):
        dim.dim_value = extent
    del model.graph.value_info[:]
    onnx.save(model, copy)
    return copy


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "phase"), STOPS, indirect=["whole"])
def test_stopping_and_going_on_changes_nothing(whole: tuple[Path, bytes], phase: str, tmp_path: Path) -> None:
    path, expected = whole
    assert gone_on(path, phase, tmp_path) == expected


@pytest.mark.parametrize("whole", ["silero_vad", "ocr_cls"], indirect=True)
def test_two_compilations_give_the_same_bytes(whole: tuple[Path, bytes], tmp_path: Path) -> None:
    path, expected = whole
    assert compiled_again(path, tmp_path) == expected
