"""Columns that threads keep, whatever schedule says how many share one: schedules that no estimate chooses, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu.emulator.run import run_case
from models.gpu_cases import Case, build, cases

from mlc.compilation import Compilation
from mlc.options import InternalError, make_options
from mlc.passes.schedule import gpu_cost

FIELDS = ("lanes", "width", "split", "kept", "threads")


def _case() -> Case:
    """A softmax of 1003 elements of two bytes, in 40 columns."""
    return next(case for case in cases() if case.name == "columns_softmax_full_block_half")


def _set(monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...]) -> None:
    known = {"template": "whole_columns", "first": 1, "last": 1, "blocks": 1}
    schedule = {**known, **dict(zip(FIELDS, numbers, strict=True))}
    monkeypatch.setattr(gpu_cost, "choose_whole_columns", lambda *_: schedule)


@pytest.mark.parametrize("numbers", [(8, 4, 200, 6, 800), (8, 8, 76, 14, 608), (4, 8, 88, 12, 704)], ids=str)
def test_sums_of_many_warps(numbers: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread reads of others in a loop ends with the last of them."""
    _set(monkeypatch, numbers)
    assert run_case(_case(), tmp_path, "sm_90a") == ""


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((3, 8, 16, 3, 128), "lanes of 3 elements, which do not divide 40"),
        ((8, 8, 16, 8, 256), "8 threads side by side and 16 that share a column are neither a warp nor 256 threads"),
        ((4, 10, 16, 8, 160), "10 threads side by side do not divide a warp"),
        ((8, 8, 160, 7, 1280), "1280 threads are no whole warps of one block"),
        ((8, 8, 9, 112, 72), "72 threads are no whole warps of one block"),
    ],
    ids=str,
)
def test_schedules_that_cannot_be_carried_out(
    numbers: tuple[int, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(monkeypatch, numbers)
    with pytest.raises(InternalError, match=message):
        Compilation(make_options(target="cuda", gpu="sm_90a", emit="tile")).run(build(_case()), tmp_path / "tiled.mlir")
