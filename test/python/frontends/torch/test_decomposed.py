"""Operators that decompositions of PyTorch leave, losses, and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc

pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch
from models.functions import results_of
from torch.export import export

F, aten = torch.nn.functional, torch.ops.aten

# Of x of [2, 3, 6, 8] and y of [2, 3, 6, 8].
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "reflected lines": lambda x, y: aten.reflection_pad1d(x[0], (3, 2)),
    "reflected images": lambda x, y: aten.reflection_pad2d(x, (3, 2, 1, 4)),
    "reflected volumes": lambda x, y: aten.reflection_pad3d(x[None], (3, 2, 1, 4, 2, 1)),
    "replicated lines": lambda x, y: aten.replication_pad1d(x[0], (0, 5)),
    "replicated images": lambda x, y: aten.replication_pad2d(x, (3, 2, 1, 9)),
    "replicated volumes": lambda x, y: aten.replication_pad3d(x[None], (3, 2, 1, 4, 5, 1)),
    "means of regions": lambda x, y: aten._adaptive_avg_pool2d(x, (3, 5)),
    "means of volumes": lambda x, y: aten._adaptive_avg_pool3d(x, (3, 2, 2)),
    "distances": lambda x, y: aten._cdist_forward(x, y, 2.0, None),
    "distances, sums of differences": lambda x, y: aten._cdist_forward(x, y, 1.0, None),
    "squares": lambda x, y: F.mse_loss(x, y),
    "squares of each": lambda x, y: F.mse_loss(x, y, reduction="none"),
    "sum of squares": lambda x, y: F.mse_loss(x, y, reduction="sum"),
    "absolute values": lambda x, y: F.l1_loss(x, y),
    "sum of absolute values": lambda x, y: F.l1_loss(x, y, reduction="sum"),
}


@pytest.mark.parametrize("decomposed", [False, True], ids=["whole", "decomposed"])
def test_values(tmp_path: Path, decomposed: bool) -> None:
    """The same values, whether the operators are whole or PyTorch has taken them apart."""
    torch.manual_seed(5)
    inputs = torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    program = export(results_of(FUNCTIONS.values()), inputs)
    want = program.module()(*inputs)
    program = program.run_decompositions() if decomposed else program
    got = mlc.compile(program, output=tmp_path / "model.so")(*(value.numpy() for value in inputs))
    for name, value, expected in zip(FUNCTIONS, got, want, strict=True):
        np.testing.assert_allclose(value, expected.numpy(), rtol=2e-5, atol=2e-5, err_msg=name)


def test_random_numbers(tmp_path: Path) -> None:
    """Numbers of the right distribution, others at every place, the same in every run."""
    functions: list[Callable[..., Any]] = [
        lambda x: torch.randn(4000) + x[0],
        lambda x: torch.randn(4000) + x[0],
        lambda x: torch.randn_like(x) + x,
        lambda x: torch.rand(4000) + x[0],
        lambda x: torch.rand_like(x) + x,
        lambda x: torch.randint(3, 9, (4000,)) + x[0].to(torch.int64),
    ]
    x = np.zeros(4000, np.float32)
    model = mlc.compile(export(results_of(functions), (torch.zeros(4000),)), output=tmp_path / "model.so")
    drawn = list(model(x))
    for again, value in zip(model(x), drawn, strict=True):
        np.testing.assert_array_equal(again, value)
    for normal in drawn[:3]:
        assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1
    for uniform in drawn[3:5]:
        assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.05
    assert set(drawn[5]) == set(range(3, 9)) and drawn[5].dtype == np.int64
    for first, second in ((0, 1), (1, 2), (3, 4)):
        assert abs(np.corrcoef(drawn[first], drawn[second])[0, 1]) < 0.1
