"""Integers of other types than int64: unsigned ones above half of their range, truth values, and what makes other types
of them."""

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
from torch.export import Dim, export

F = torch.nn.functional

# Of two matrices of bytes, [n, 7] and [7, 4].
BYTES: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, y: x @ y,
    "product of vectors": lambda x, y: torch.dot(x[0], y[:, 0].repeat(2)[:7]),
    "linear": lambda x, y: F.linear(x, y.mT.contiguous(), y[0]),
    "product and sum": lambda x, y: torch.addmm(y[0], x, y, alpha=3, beta=2),
    "einsum": lambda x, y: torch.einsum("ij,jk->ik", x.int(), y.int()),
    "einsum of one": lambda x, y: torch.einsum("ij->j", y),
    "einsum that moves": lambda x, y: torch.einsum("ij->ji", x),
    "relu": lambda x, y: torch.relu(x),
    "lower triangle": lambda x, y: torch.tril(x, 1),
    "upper triangle": lambda x, y: torch.triu(y),
    "any": lambda x, y: torch.any(x, 1),
    "all": lambda x, y: torch.all(x > 3) | torch.all(y, 0).bool(),
    "running product": lambda x, y: torch.cumprod(y, 0),
    "squares": lambda x, y: torch.square(x),
    "squares of truth values": lambda x, y: torch.square(x > 100),
    "a number below zero": lambda x, y: (x - 1) * (x == -1),
    "sums at places": lambda x, y: y.index_add(0, torch.tensor([0, 6, 0]), y[:3], alpha=-1),
    "truth values added up at places": lambda x, y: torch.index_put(
        y > 99, [torch.tensor([0, 0, 1])], y[2:5] > 99, accumulate=True
    ),
    "places in an order": lambda x, y: torch.searchsorted(
        y[:, 0].contiguous(), x[0], sorter=y[:, 0].sort(stable=True)[1]
    ),
    "powers": lambda x, y: torch.linalg.vander(y[:, 0], N=3),
    "distance": lambda x, y: F.pairwise_distance(x.float(), x[:1].float()),
    "greatest common divisor": lambda x, y: torch.gcd(x, y[:, 0]),
    "least common multiple": lambda x, y: torch.lcm(x.long(), y[:, 1].long() - 128),
    "counts": lambda x, y: torch.bincount(y.flatten(), minlength=300)[:256],
    "sums by number": lambda x, y: torch.bincount(y[:, 0], y[:, 1], 256)[:256],
    "product of Kronecker": lambda x, y: torch.kron(y, y[0]),
    "means of windows": lambda x, y: F.avg_pool1d(y.mT.long() - 128, 3, 2, 1),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "any number"])
def test_bytes(tmp_path: Path, dynamic: bool) -> None:
    generator = torch.Generator().manual_seed(6)

    def drawn(*sizes: int) -> Any:
        return torch.randint(0, 256, sizes, generator=generator).to(torch.uint8)

    shapes = ({0: Dim("n", min=2, max=9)}, None) if dynamic else None
    program = export(
        results_of(BYTES.values()), (drawn(5, 7), drawn(7, 4)), dynamic_shapes=(shapes,) if shapes else None
    )
    model = mlc.compile(program, output=tmp_path / "model.so")
    inputs = drawn(8 if dynamic else 5, 7), drawn(7, 4)
    got = model(*(value.numpy() for value in inputs))
    for (name, function), value in zip(BYTES.items(), got, strict=True):
        expected = function(*inputs).numpy()
        assert value.dtype == expected.dtype, name
        np.testing.assert_allclose(value, expected, rtol=1e-6, err_msg=name)


SCALED: dict[str, Callable[[Any], Any]] = {
    f"{mode}, {size[0]} x {size[1]}{', smooth' if smooth else ''}": lambda x, mode=mode, size=size, smooth=smooth: (
        F.interpolate(x, size=size, mode=mode, antialias=smooth)
    )
    for mode in ("bilinear", "bicubic")
    for size in ((5, 5), (14, 20))
    for smooth in (False, True)
}


def test_images_of_bytes(tmp_path: Path) -> None:
    """To the nearest integer of what floats give, within the range of bytes. (PyTorch rounds twice in fixed point.)"""
    image = torch.randint(0, 256, (2, 3, 7, 9), generator=torch.Generator().manual_seed(7)).to(torch.uint8)
    model = mlc.compile(export(results_of(SCALED.values()), (image,)), output=tmp_path / "model.so")
    for (name, function), value in zip(SCALED.items(), model(image.numpy()), strict=True):
        exact = function(image.double()).clamp(0, 255).numpy()
        assert value.dtype == np.uint8, name
        assert np.abs(value - exact).max() <= 0.501, name
