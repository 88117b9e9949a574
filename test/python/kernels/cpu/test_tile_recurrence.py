"""Recurrent layers of precision bf16 on matrix tiles, which are emulated where there are none: rows around those of a
tile, hidden elements around those of a panel and of a step."""

from __future__ import annotations

from pathlib import Path

import pytest
from models.recurrent import Layer
from test_recurrence import LAYERS, LINEAR, check, check_rounded, compiled
from tiles.emulated import Tiles


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a pool block all signals, also the one by which instructions are emulated."""
    monkeypatch.setenv("MLC_NUM_THREADS", "1")


@pytest.mark.parametrize("name", LAYERS)
def test_any_number_of_rows(tiles: Tiles, tmp_path: Path, name: str) -> None:
    layer = LAYERS[name]
    model, kernels = compiled(layer, tmp_path, "steps", "batch", cpu=tiles.cpu, precision="bf16")
    assert [k["template"] for k in kernels if "recurrence" in k["template"]] == ["tile_recurrence"]
    for steps, batch in ((4, 1), (5, 3), (1, 16), (2, 17), (3, 40), (0, 2), (2, 0)):
        check_rounded(layer, model, steps, batch)


@pytest.mark.parametrize("hidden", [15, 16, 17, 31, 33, 64, 80])
def test_sizes(tiles: Tiles, tmp_path: Path, hidden: int) -> None:
    """As many products of tiles as all steps of all gates have; work items have equally many rows."""
    layer, steps, batch = Layer("GRU", hidden, direction="bidirectional", attributes=LINEAR), 3, 20
    model, kernels = compiled(layer, tmp_path, steps, batch, cpu=tiles.cpu, precision="bf16")
    [schedule] = [k["schedule"] for k in kernels if k["template"] == "tile_recurrence"]
    others = tiles.count("tdpbf16ps")
    check_rounded(layer, model, steps, batch)
    products = 2 * -(-batch // schedule["rows"]) * steps * -(-hidden // 16) * 3 * -(-hidden // 32)
    assert tiles.count("tdpbf16ps") - others >= products
    assert not tiles.configured


def test_without_rounding(tiles: Tiles, tmp_path: Path) -> None:
    """Precision fp32 multiplies f32 on the same processor."""
    layer = LAYERS["lstm_both"]
    model, kernels = compiled(layer, tmp_path, 4, 5, cpu=tiles.cpu)
    assert {k["template"] for k in kernels} >= {"recurrence"}
    check(layer, model, 4, 5)
