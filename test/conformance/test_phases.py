"""Every phase can be the end of one compilation and the start of another, with the same bytes in the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from models.zoo import MissingModelError, zoo
from phases import compiled_again, gone_on

import mlc

PHASES = [
    "import", "simplify", "decompose", "layout", "linalg", "kernels", "schedule", "tile", "buffers", "llvm",
]  # fmt: skip


# Seventy kernels for images of any size: their text is what takes long, and there is most of it behind `tile`.
STOPS = [("silero_vad", phase) for phase in PHASES] + [("ocr_cls", "schedule"), ("ocr_cls", "tile")]


@pytest.fixture(scope="module")
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A model file and its artefact."""
    try:
        path = zoo(request.param).path
    except MissingModelError as error:
        pytest.skip(str(error))
    output = tmp_path_factory.mktemp("whole") / "model.so"
    mlc.compile(path, output=output)
    return path, output.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "phase"), STOPS, indirect=["whole"])
def test_stopping_and_going_on_changes_nothing(whole: tuple[Path, bytes], phase: str, tmp_path: Path) -> None:
    path, expected = whole
    assert gone_on(path, phase, tmp_path) == expected


@pytest.mark.parametrize("whole", ["silero_vad", "ocr_cls"], indirect=True)
def test_two_compilations_give_the_same_bytes(whole: tuple[Path, bytes], tmp_path: Path) -> None:
    path, expected = whole
    assert compiled_again(path, tmp_path) == expected
