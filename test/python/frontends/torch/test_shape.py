"""Views by strides, diagonals, pieces, and tensors that are made of sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontends.report import ModelError

pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch
from models.functions import Wrapped, results_of
from torch.export import Dim, export

F, aten = torch.nn.functional, torch.ops.aten

# Of x of [n, 6, 8], y of [n, 6] and a scalar s.
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "as_strided": lambda x, y, s: torch.as_strided(x, (2, 4, 3), (48, 8, 2)),
    "as_strided, windows that overlap": lambda x, y, s: torch.as_strided(x, (5, 4), (2, 1), 3),
    "as_strided, no stride": lambda x, y, s: torch.as_strided(x, (2, 3), (0, 1)),
    "as_strided, one element": lambda x, y, s: torch.as_strided(x, (), (), 7),
    "as_strided of another shape": lambda x, y, s: torch.as_strided(x.reshape(-1, 48) * 2, (2, 3), (48, 5)),
    "as_strided_scatter": lambda x, y, s: torch.as_strided_scatter(x, y[:2, :3], (2, 3), (48, 9), 1),
    "diagonal_scatter": lambda x, y, s: torch.diagonal_scatter(x, y, 0, 1, 2),
    "diagonal_scatter above": lambda x, y, s: torch.diagonal_scatter(x, y[:, :5], 3, -2, -1),
    "diagonal_scatter below": lambda x, y, s: torch.diagonal_scatter(x, y[:, :4], 2, 2, 1),
    "unfold of a scalar": lambda x, y, s: s.unfold(0, 1, 1),
    "unfold of a scalar, nothing": lambda x, y, s: s.unfold(-1, 0, 1),
    "transpose of a scalar": lambda x, y, s: s.transpose(0, -1),
    "squeeze of a scalar": lambda x, y, s: s.squeeze(-1),
    "softmax of a scalar": lambda x, y, s: s.softmax(0),
    "circular padding after cropping": lambda x, y, s: F.pad(x, (-1, 2, 3, -2), "circular"),
    "tensor_split by positions": lambda x, y, s: torch.tensor_split(x, torch.tensor([2, 5]), 1),
    "tensor_split by a number": lambda x, y, s: torch.tensor_split(x, torch.tensor(3), 2),
    "linspace to a tensor": lambda x, y, s: torch.linspace(-1, s, 7),
    "linspace from a tensor": lambda x, y, s: torch.linspace(s, 3.5, 6),
    "linspace between tensors": lambda x, y, s: torch.linspace(s, x[0, 0, 0], 1),
    "linspace of nothing": lambda x, y, s: torch.linspace(s, 1, 0),
    "linspace of whole numbers": lambda x, y, s: torch.linspace(s, 20, 5, dtype=torch.int64),
    "linspace in double precision": lambda x, y, s: torch.linspace(0, 1, 4, dtype=torch.float64) - 1 / 3,
    "empty_strided": lambda x, y, s: torch.ones_like(x.new_empty_strided((2, 3), (1, 2))),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_values(tmp_path: Path, dynamic: bool) -> None:
    """The same values as in PyTorch, with a size that only the run knows, too."""
    torch.manual_seed(3)
    inputs = torch.randn(4, 6, 8), torch.randn(4, 6), torch.tensor(-2.25)
    count = {0: Dim("n", min=3)}
    shapes = ((count, count, None),) if dynamic else None
    program = export(results_of(FUNCTIONS.values()), inputs, dynamic_shapes=shapes)
    model = mlc.compile(program, output=tmp_path / "model.so")
    inputs = (torch.randn(5, 6, 8), torch.randn(5, 6), torch.tensor(1.75)) if dynamic else inputs
    want = [value for result in program.module()(*inputs) for value in _flat(result)]
    names = [name for name, result in zip(FUNCTIONS, program.module()(*inputs), strict=True) for _ in _flat(result)]
    got = model(*(value.numpy() for value in inputs))
    for name, value, expected in zip(names, got, want, strict=True):
        assert value.dtype == expected.numpy().dtype and value.shape == tuple(expected.shape), name
        np.testing.assert_allclose(value, expected.numpy(), rtol=2e-6, atol=2e-6, err_msg=name)


def test_resize(tmp_path: Path) -> None:
    """The first elements in memory; more than there are have no value that could be compared."""
    x = torch.randn(4, 6)
    program = export(results_of([lambda x: aten.resize(x, [3, 5]), lambda x: aten.resize(x, [5, 6])]), (x,))
    fewer, more = mlc.compile(program, output=tmp_path / "model.so")(x.numpy())
    np.testing.assert_array_equal(fewer, x.numpy().reshape(-1)[:15].reshape(3, 5))
    assert more.shape == (5, 6)
    np.testing.assert_array_equal(more[:4], x.numpy())


def _flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def test_strides_of_a_view() -> None:
    """A view by strides of what lies in another order than its extents is refused, as no strides are known."""
    program = export(Wrapped(lambda x: torch.as_strided(x.T, (2, 2), (1, 2))), (torch.zeros(3, 4),))
    with pytest.raises(ModelError, match="a view by strides of a view"):
        mlc.compile(program)
