"""Recurrent layers on the tensor cores by blocks alone and in clusters, whatever the estimate would choose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu.emulator.run import run_case
from models.gpu_recurrent import case_of
from models.recurrent import Layer

from mlc.compilation import Compilation
from mlc.options import make_options
from mlc.passes.schedule import gpu_recurrence_cost

LINEAR = {"linear_before_reset": 1}
# Blocks of a cluster, the layer, its steps and rows, and the precision.
FORMS = [
    (2, Layer("LSTM", 64, direction="bidirectional", states=True, lengths=True), 5, 11, "bf16"),
    (8, Layer("LSTM", 64, direction="reverse"), 4, 3, "bf16"),
    (4, Layer("GRU", 64, direction="bidirectional", attributes=LINEAR), 3, 21, "bf16"),
    (2, Layer("GRU", 96, states=True, lengths=True, attributes=LINEAR), 3, 7, "tf32"),
    (8, Layer("LSTM", 320), 2, 9, "bf16"),
    (4, Layer("RNN", 128), 4, 1, "tf32"),
    (1, Layer("LSTM", 48), 3, 20, "tf32"),
    (1, Layer("GRU", 144, attributes=LINEAR), 3, 5, "bf16"),
    (2, Layer("GRU", 160, bias=False, attributes=LINEAR), 3, 9, "tf32"),
]


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_blocks_share_hidden_elements(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a block writes all of its cluster read, and none leaves before that."""
    cluster, layer, steps, batch, precision = FORMS[number]
    taken = []

    def clocks(_: object, schedule: gpu_recurrence_cost.RecurrenceSchedule, __: object) -> tuple[int, int]:
        is_wanted = schedule.cluster == cluster
        taken.append(is_wanted)
        return int(not is_wanted), 0

    monkeypatch.setattr(gpu_recurrence_cost, "_clocks", clocks)
    assert run_case(case_of("recurrent", layer, steps, batch), tmp_path, "sm_90a", precision=precision) == ""
    assert any(taken)


@pytest.mark.parametrize(
    ("layer", "batch", "clusters"),
    [
        (Layer("LSTM", 256), 1, {2, 4, 8}),  # weights that one block would read in every step
        (Layer("LSTM", 64), 1, {1}),  # fewer clocks than blocks take to meet
        (Layer("LSTM", 64), 4096, {1}),  # enough blocks as it is
    ],
)
def test_chosen_clusters(layer: Layer, batch: int, clusters: set[int], tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    options = make_options(target="cuda", gpu="h200", precision="bf16", report=report)
    Compilation(options).run(layer.model(6, batch), tmp_path / "m.so")
    [schedule] = [k["schedule"] for k in json.loads(report.read_text())["kernels"] if k["template"] == "recurrence"]
    assert schedule["cluster"] in clusters
