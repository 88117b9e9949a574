"""Reductions and scans along axes: those of scalars, extremes so far, medians, modes, variances, norms, histograms."""

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

NAN, INF = float("nan"), float("inf")

# Of x of [4, 6], with missing and infinite numbers and equal ones.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "largest so far": lambda x: x.cummax(1),
    "smallest so far": lambda x: x.cummin(-2),
    "integers so far": lambda x: x.nan_to_num().to(torch.int32).cummin(1),
    "truth so far": lambda x: (x > 2).cummax(1),
    "exponentials so far": lambda x: x.logcumsumexp(1),
    "exponentials so far, other axis": lambda x: x.logcumsumexp(0),
    "median of all": lambda x: x.median(),
    "median": lambda x: x.median(1),
    "median, dimension kept": lambda x: x.median(0, keepdim=True),
    "median of integers": lambda x: x.nan_to_num(0, 9, -9).to(torch.int64).median(1)[0],
    "median of numbers": lambda x: x.nanmedian(1),
    "median of all numbers": lambda x: x.nanmedian(),
    "mode": lambda x: x[1:].mode(1),
    "mode, dimension kept": lambda x: x[1:].mode(0, keepdim=True),
    "variance, less a fraction": lambda x: x[1:2].var(1, correction=1.3),
    "deviation, less a fraction": lambda x: torch.std_mean(x[3], correction=2.5, dim=0),
    "variance of few": lambda x: x[3, :1].var(0, correction=2),
    "norm in another dtype": lambda x: torch.linalg.vector_norm(x[3].to(torch.float16), dtype=torch.float32),
    "histogram between extremes": lambda x: torch.histc(x[3], 5),
    "histogram of equal ones": lambda x: torch.histc(x[3, :2], 5),
    "sums": lambda x: torch.logaddexp(x, x.flip(1)),
    "sums with itself": lambda x: torch.logaddexp(x, x),
    "sums to base 2": lambda x: torch.logaddexp2(x, x.flip(1)),
    "sums with itself to base 2": lambda x: torch.logaddexp2(x, x),
}

# Of a scalar, whose dimensions are 0 and -1.
SCALARS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda s: s.sum(0),
    "mean": lambda s: s.mean(-1, keepdim=True),
    "running sum": lambda s: s.cumsum(0),
    "running product": lambda s: s.cumprod(-1),
    "exponentials": lambda s: s.logsumexp(-1),
    "exponentials so far": lambda s: s.logcumsumexp(0),
    "maximum": lambda s: s.max(0),
    "maximum, dimension kept": lambda s: s.min(-1, keepdim=True),
    "maximum of two": lambda s: torch.max(s, torch.stack([s, s + 1])),
    "place": lambda s: s.argmax(0),
    "norm": lambda s: torch.linalg.vector_norm(s, 3, dim=0),
    "variance": lambda s: s.var(0, correction=0),
    "largest so far": lambda s: s.cummax(0),
    "median": lambda s: s.median(0),
    "mode": lambda s: s.mode(0),
    "k-th": lambda s: s.kthvalue(1, 0),
    "extremes": lambda s: torch.aminmax(s, dim=0),
    "angle": lambda s: torch.nn.functional.cosine_similarity(s, s + 1, dim=0),
    "truth": lambda s: s.any(0),
}


def numbers() -> Any:
    """Rows with NaN, infinities and ties."""
    rows = [[1, 3, NAN, 2, 5, NAN], [3, 3, 1, 3, -1, 1], [-INF, -INF, INF, 2, INF, -INF], [2, 2, 1, 1, 7, 7]]
    return torch.tensor(rows)


def check(names: Any, got: Any, want: Any) -> None:
    """Results in a list are those of a list of results and of pairs of them."""
    flat = [(name, part) for name, value in zip(names, want, strict=True) for part in _parts(value)]
    for (name, expected), value in zip(flat, got, strict=True):
        assert value.dtype == expected.numpy().dtype, name
        np.testing.assert_allclose(value, expected.numpy(), rtol=2e-6, atol=1e-6, err_msg=name)


def _parts(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_values(tmp_path: Path) -> None:
    """PyTorch's values and places."""
    x = numbers()
    model = mlc.compile(export(results_of(FUNCTIONS.values()), (x,)), output=tmp_path / "model.so")
    check(FUNCTIONS, model(x.numpy()), [function(x) for function in FUNCTIONS.values()])


def test_scalars(tmp_path: Path) -> None:
    """A scalar is reduced like a vector of one element."""
    x = torch.tensor(2.5)
    model = mlc.compile(export(results_of(SCALARS.values()), (x,)), output=tmp_path / "model.so")
    check(SCALARS, model(x.numpy()), [function(x) for function in SCALARS.values()])


def test_any_size(tmp_path: Path) -> None:
    """Extents that only a run knows."""
    functions: dict[str, Callable[[Any], Any]] = {
        "largest so far": lambda x: x.cummax(1),
        "exponentials so far": lambda x: x.logcumsumexp(1),
        "median": lambda x: x.median(1)[0],
        "median of numbers": lambda x: x.nanmedian(0)[0],
        "mode": lambda x: x.round().mode(1)[0],
        "variance": lambda x: x.var(1, correction=1.5),
        "histogram": lambda x: torch.histc(x, 4),
    }
    x = torch.randn(3, 7)
    shapes = (({0: Dim("rows", min=2), 1: Dim("columns", min=2)},),)
    program = export(results_of(functions.values()), (x,), dynamic_shapes=shapes)
    model = mlc.compile(program, output=tmp_path / "model.so")
    for rows, columns in ((3, 7), (2, 40), (9, 2)):
        x = torch.randn(rows, columns)
        check(functions, model(x.numpy()), [function(x) for function in functions.values()])


def test_refused(tmp_path: Path) -> None:
    """One error that says what to do."""
    program = export(Wrapped(lambda x: torch.view_as_real(x.to(torch.complex32))), (torch.randn(3),))
    with pytest.raises(ModelError, match="complex32.*use complex64"):
        mlc.compile(program, output=tmp_path / "model.so")


# Of x of [2, 6], uint8.
UNSIGNED: dict[str, Callable[[Any], Any]] = {
    "sorted": lambda x: torch.sort(x)[0],
    "order": lambda x: torch.argsort(x, descending=True),
    "third": lambda x: torch.kthvalue(x, 3)[0],
    "largest three": lambda x: torch.topk(x, 3)[0],
    "largest so far": lambda x: torch.cummax(x, 1)[0],
    "place of the smallest so far": lambda x: torch.cummin(x, 0)[1],
    "largest": lambda x: x.max(1)[0],
    "middle": lambda x: x.median(),
    "most frequent": lambda x: torch.mode(x)[0],
    "distinct": lambda x: torch.unique(x),
}


def test_unsigned(tmp_path: Path) -> None:
    """128 is more than 127."""
    x = torch.tensor([[200, 3, 130, 7, 255, 0], [127, 128, 1, 254, 90, 60]], dtype=torch.uint8)
    got = mlc.compile(export(results_of(UNSIGNED.values()), (x,)), output=tmp_path / "m.so")(x.numpy())
    for (name, function), value in zip(UNSIGNED.items(), got, strict=True):
        expected = function(x).numpy()
        assert value.dtype == expected.dtype, name
        np.testing.assert_array_equal(value, expected, err_msg=name)
