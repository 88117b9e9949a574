"""Normalization, pooling, convolution, attention, resampling and random numbers."""

from __future__ import annotations

import math
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
MEAN, VARIANCE, WEIGHT = torch.linspace(-1, 1, 6), torch.linspace(0.5, 2, 6), torch.linspace(-2, 1, 6)


def _filter(*sizes: int) -> torch.Tensor:
    return torch.linspace(-1, 1, math.prod(sizes)).reshape(sizes)


# Of x of [n, 6, 8, 10].
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "native_layer_norm": lambda x: torch.native_layer_norm(x, [8, 10], None, None, 1e-5),
    "native_layer_norm of one": lambda x: torch.native_layer_norm(x[..., :6], [6], WEIGHT, MEAN, 0.1),
    "native_group_norm": lambda x: torch.native_group_norm(x, WEIGHT, MEAN, x.shape[0], 6, 80, 3, 1e-5),
    "instance_norm, stored": lambda x: F.instance_norm(x, MEAN, VARIANCE, WEIGHT, MEAN, False),
    "instance_norm, its own": lambda x: F.instance_norm(x, None, None, WEIGHT, MEAN),
    "batch_norm, of the batch": lambda x: F.batch_norm(x, None, None, WEIGHT, MEAN, True),
    "batch_norm, stored": lambda x: torch.native_batch_norm(x, WEIGHT, None, MEAN, VARIANCE, False, 0.1, 1e-5)[0],
    "avg_pool2d, divisor": lambda x: F.avg_pool2d(x, 3, 2, 1, True, False, divisor_override=4),
    "avg_pool3d, divisor": lambda x: F.avg_pool3d(x, (3, 2, 3), divisor_override=-7),
    "adaptive_avg_pool1d of nothing": lambda x: F.adaptive_avg_pool1d(x[0, :0], 3),
    "adaptive_avg_pool2d to nothing": lambda x: F.adaptive_avg_pool2d(x, (0, 3)),
    "conv1d of one": lambda x: F.conv1d(x[0, :, 0], _filter(4, 6, 3), padding=1),
    "conv2d of one, same": lambda x: F.conv2d(x[0], _filter(4, 3, 3, 2), WEIGHT[:4], padding="same", groups=2),
    "conv3d of one": lambda x: F.conv3d(x[:1], _filter(2, 1, 2, 3, 2), stride=2),
    "conv_transpose1d of one": lambda x: F.conv_transpose1d(x[0, :, 0], _filter(6, 4, 3), stride=2, output_padding=1),
    "conv_transpose2d of one": lambda x: F.conv_transpose2d(x[0], _filter(6, 2, 3, 2), WEIGHT[:4], groups=2),
    "conv_transpose3d of one": lambda x: F.conv_transpose3d(x[:1], _filter(1, 2, 2, 3, 2), padding=1),
    "rrelu": lambda x: F.rrelu(x, 0.1, 0.4),
    "attention of rank 2": lambda x: F.scaled_dot_product_attention(x[0, 0], x[0, 1], x[0, 2], x[0, 3, :, :8]),
    "attention of rank 3": lambda x: F.scaled_dot_product_attention(x[0], x[1], x[2], x[0, :, :, :8] > 0),
    "attention of rank 5": lambda x: F.scaled_dot_product_attention(x[None], x[None] + 1, x[None], is_causal=True),
    "attention of rank 5, mask": lambda x: F.scaled_dot_product_attention(
        torch.stack([x, -x]), x[None], torch.stack([x, x]), torch.stack([x, -x])[:, :, :1, :, :8]
    ),
    "attention of ranks 4 and 5": lambda x: F.scaled_dot_product_attention(x, x[None], torch.stack([x, 2 * x])),
    "attention, one batch of keys": lambda x: F.scaled_dot_product_attention(x, x[:1], x[:1]),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_values(tmp_path: Path, dynamic: bool) -> None:
    """The same values as in PyTorch, with a batch whose size only the run knows, too."""
    torch.manual_seed(4)
    x = torch.randn(4, 6, 8, 10)
    shapes = (({0: Dim("n", min=3)},),) if dynamic else None
    _compare(tmp_path, FUNCTIONS, x, torch.randn(5, 6, 8, 10) if dynamic else x, shapes)


def _compare(path: Path, functions: dict[str, Callable[..., Any]], x: Any, other: Any, shapes: Any) -> None:
    """Compiles for `x` and `shapes`, and compares results for `other` with PyTorch's."""
    module = results_of(functions.values())
    results = module(other)
    named = [(name, part) for name, result in zip(functions, results, strict=True) for part in _flat(result)]
    got = mlc.compile(export(module, (x,), dynamic_shapes=shapes), output=path / "model.so")(other.numpy())
    for (name, expected), value in zip(named, got, strict=True):
        assert value.dtype == expected.numpy().dtype and value.shape == tuple(expected.shape), name
        np.testing.assert_allclose(value, expected.numpy(), rtol=2e-5, atol=2e-5, err_msg=name)


def _flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


_WITH_CORNERS = [("bilinear", False), ("bilinear", True), ("bicubic", False), ("bicubic", True)]


def _resized(mode: str, factor: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda x: F.interpolate(x, scale_factor=factor, mode=mode, **options)


# Of x of [2, 3, n, 20]; 20 * 0.9 is below 18 in single precision.
RESIZED: dict[str, Callable[[Any], Any]] = {
    **{
        f"{mode}, {'corners' if corners else 'centres'}, by {factor}": _resized(mode, factor, align_corners=corners)
        for mode, corners in _WITH_CORNERS
        for factor in (1.7, (0.6, 0.9))
    },
    **{f"{mode} by {factor}": _resized(mode, factor) for mode in ("nearest", "nearest-exact") for factor in (1.7, 0.9)},
    "bilinear by the ratio": _resized("bilinear", 1.7, align_corners=False, recompute_scale_factor=True),
    "linear, corners": lambda x: F.interpolate(x[0], scale_factor=1.7, mode="linear", align_corners=True),
    "trilinear, corners": lambda x: F.interpolate(x[None], scale_factor=1.7, mode="trilinear", align_corners=True),
    "trilinear": lambda x: F.interpolate(x[None], scale_factor=0.9, mode="trilinear"),
    "antialias": lambda x: aten._upsample_bilinear2d_aa(x, None, False, [1.7, 0.9]),
    "antialias, corners": lambda x: aten._upsample_bilinear2d_aa(x, None, True, [0.8, 0.9]),
    "antialias, corners, size and factors": lambda x: aten._upsample_bicubic2d_aa(x, [3, 7], True, 1.7, 0.9),
    "upsample_bilinear": lambda x: F.upsample_bilinear(x, scale_factor=0.6),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.filterwarnings("ignore")
def test_resampling(tmp_path: Path, dynamic: bool) -> None:
    """Sizes and places of samples with factors that are no whole numbers."""
    torch.manual_seed(4)
    x = torch.randn(2, 3, 9, 20)
    shapes = (({2: Dim("n", min=8)},),) if dynamic else None
    _compare(tmp_path, RESIZED, x, torch.randn(2, 3, 13, 20) if dynamic else x, shapes)


COUNT = 20000


def test_distributions(tmp_path: Path) -> None:
    """Random numbers of other distributions: quantiles, and others in every place."""
    line = torch.linspace(0, 1, COUNT)
    functions: list[Callable[[Any], Any]] = [
        lambda x: torch.empty_like(x).uniform_(-2, 3),
        lambda x: torch.empty_like(x).exponential_(2.0),
        lambda x: torch.empty_like(x).cauchy_(1.0, 0.5),
        lambda x: torch.empty_like(x).log_normal_(0.5, 0.25),
        lambda x: torch.empty_like(x).geometric_(0.25),
        lambda x: torch.empty_like(x).normal_(3.0, 2.0),
        lambda x: torch.normal(x, 0.5) - x,
        lambda x: torch.normal(1.0, x + 1) / (x + 1),
        lambda x: torch.normal(2.0, 0.5, (COUNT,)) + 0 * x,
        lambda x: torch.empty_like(x).random_(9),
    ]
    got = mlc.compile(export(results_of(functions), (line,)), output=tmp_path / "model.so")(line.numpy())
    half = math.log(2) / 2
    want = [
        (-0.75, 0.5, 1.75), (math.log(4 / 3) / 2, half, 2 * half), (0.5, 1, 1.5),
        (math.exp(0.5 - 0.16862), math.exp(0.5), math.exp(0.5 + 0.16862)), (1, 3, 5), (1.651, 3, 4.349),
        (-0.3372, 0, 0.3372), (None, None, None), (1.6628, 2, 2.3372), (2, 4, 6),
    ]  # fmt: skip
    for number, (value, quantiles) in enumerate(zip(got, want, strict=True)):
        for share, expected in zip((0.25, 0.5, 0.75), quantiles, strict=True):
            if expected is not None:
                assert abs(np.quantile(value, share) - expected) < 0.05, (number, share)
    assert set(got[9]) == set(range(9)) and abs(got[7].std() - 1) < 0.1
    assert got[4].min() == 1 and abs(np.corrcoef(got[5], got[6])[0, 1]) < 0.05


def test_choices(tmp_path: Path) -> None:
    """Coins, permutations, and positions by weight: none of weight 0, and none twice without replacement."""
    weights = torch.tensor([[0.0, 1.0, 3.0, 0.0, 4.0], [2.0, 0.0, 0.0, 2.0, 0.0]])
    functions: list[Callable[[Any], Any]] = [
        lambda w: torch.bernoulli(w[0, :3].repeat(4000) / 3),
        lambda w: torch.bernoulli(w, 0.5),
        lambda w: torch.multinomial(w, 8000, replacement=True),
        lambda w: torch.multinomial(w, 2),
        lambda w: torch.multinomial(w[0].expand(4000, 5), 1),
        lambda w: torch.randperm(100) + 0 * w[0, 0].long(),
    ]
    model = mlc.compile(export(results_of(functions), (weights,)), output=tmp_path / "model.so")
    coins, even, many, two, first, order = model(weights.numpy())
    assert np.allclose(coins.reshape(-1, 3).mean(0), [0, 1 / 3, 1], atol=0.03) and set(even.ravel()) <= {0, 1}
    for row, share in zip(many, weights, strict=True):
        counts = np.bincount(row, minlength=5) / 8000
        np.testing.assert_allclose(counts, (share / share.sum()).numpy(), atol=0.03)
    assert set(two[0]) < {1, 2, 4} and len(set(two[0])) == 2 and set(two[1]) == {0, 3}
    np.testing.assert_allclose(np.bincount(first.ravel(), minlength=5) / 4000, [0, 1 / 8, 3 / 8, 0, 0.5], atol=0.04)
    assert sorted(order) == list(range(100)) and list(order) != sorted(order)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "max_norm": (lambda x: F.embedding(torch.tensor([0, 2]), x, max_norm=1.0), "max_norm"),
    "rrelu": (lambda x: F.rrelu(x, training=True), "rrelu in training mode"),
    "batch_norm": (lambda x: F.batch_norm(x, MEAN, VARIANCE, training=True), "batch normalization in training mode"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """What changes in training says so."""
    function, message = REFUSED[name]
    with pytest.raises(ModelError, match=message):
        mlc.compile(export(Wrapped(function), (torch.randn(4, 6),)))


def test_sampling_where_nothing_is(tmp_path: Path) -> None:
    """Places that are no numbers, infinite, or far away: a perspective divides by zero somewhere."""
    nan, inf = float("nan"), float("inf")
    grid = torch.tensor(
        [[nan, 0.1], [0.2, nan], [inf, -inf], [-inf, 0.3], [1e20, -1e20], [0.5, 1e9], [nan, nan], [0.1, 0]]
    )
    functions = {
        (mode, padding, corners): lambda x, g, m=mode, p=padding, c=corners: F.grid_sample(x, g, m, p, c)  # type: ignore[misc]
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for corners in (False, True)
    }
    torch.manual_seed(2)
    inputs = torch.rand(1, 2, 5, 6), grid.reshape(1, 2, 4, 2)
    got = mlc.compile(export(results_of(functions.values()), inputs), output=tmp_path / "m.so")(
        *map(np.asarray, inputs)
    )
    for (name, function), value in zip(functions.items(), got, strict=True):
        np.testing.assert_allclose(value, function(*inputs).numpy(), rtol=1e-5, atol=1e-6, err_msg=str(name))
