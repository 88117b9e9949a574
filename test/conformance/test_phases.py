"""Every phase can be the end of one compilation and the start of another, with the same bytes in the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from models.zoo import MissingModelError, zoo
from phases import compiled_again, gone_on
from spread import EVERY

import mlc

PHASES = [
    "import", "simplify", "decompose", "layout", "linalg", "kernels", "schedule", "tile", "buffers", "llvm",
]  # fmt: skip


# Convolutions, of images of one size: code for any size is several times as long. The other model's sizes stay open.
SHAPES = {"ocr_cls": {"x": [1, 3, 48, 192]}, "silero_vad": {}}
# Every second one of the larger model: all of a small one are in test/python/passes/simplify/test_integer_phases.py.
STOPS = [("silero_vad", phase) for phase in PHASES[:: 1 if EVERY else 2]] + [("ocr_cls", "schedule"), ("ocr_cls", "tile")]


Whole = tuple[Path, dict[str, Any], bytes]


@pytest.fixture(scope="module")
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A model file, what it is compiled with, and its artefact."""
    try:
        path = zoo(request.param).path
    except MissingModelError as error:
        pytest.skip(str(error))
    output = tmp_path_factory.mktemp("whole") / "model.so"
    options = {"inputs": SHAPES[request.param]}
    mlc.compile(path, output=output, **options)
    return path, options, output.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "phase"), STOPS, indirect=["whole"])
def test_stopping_and_going_on_changes_nothing(whole: Whole, phase: str, tmp_path: Path) -> None:
    path, options, expected = whole
    assert gone_on(path, phase, tmp_path, **options) == expected


@pytest.mark.parametrize("whole", ["silero_vad", "ocr_cls"], indirect=True)
def test_two_compilations_give_the_same_bytes(whole: Whole, tmp_path: Path) -> None:
    path, options, expected = whole
    assert compiled_again(path, tmp_path, **options) == expected
