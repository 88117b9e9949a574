"""Functions of elements: special functions to the last bit or so, and the parts of floating-point numbers."""

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

S = torch.special
NAN, INF = float("nan"), float("inf")

SPECIAL: dict[str, Callable[[Any], Any]] = {
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "trigamma": lambda x: torch.polygamma(1, x),
    "tetragamma": lambda x: torch.polygamma(2, x.abs()),
    "digamma by order": lambda x: torch.polygamma(0, x),
    "gamma of more variables": lambda x: torch.mvlgamma(x.abs().clamp(3, 7), 1),
    "erfinv": torch.erfinv,
    "erfc": torch.erfc,
    "erfcx": S.erfcx,
    "ndtr": S.ndtr,
    "ndtri": S.ndtri,
    "i0": torch.i0,
    "i0e": S.i0e,
    "i1": S.i1,
    "i1e": S.i1e,
    "i0 by its other name": S.modified_bessel_i0,
    "j0": lambda x: S.bessel_j0(x.clamp(-50, 50)),
    "j1": lambda x: S.bessel_j1(x.clamp(-50, 50)),
    "spherical j0": S.spherical_bessel_j0,
}


def bessel(order: int, x: Any) -> Any:
    """J0 or J1 for |x| <= 50 by the trapezoidal rule, which is exact here (DLMF 10.9.2)."""
    angles = torch.arange(400, dtype=torch.float64) * (np.pi / 200)
    waves = torch.cos(order * angles - x.clamp(-50, 50)[:, None] * torch.sin(angles)).mean(1)
    return torch.where(x.abs() < 1e-9, x / 2 if order else 1.0, waves)


# What is exact in float64 where PyTorch's function is not: its J0(5.543) has 5 digits.
REFERENCES: dict[str, Callable[[Any], Any]] = {
    "ndtr": lambda x: torch.erfc(x * -(0.5**0.5)) / 2,
    "j0": lambda x: bessel(0, x),
    "j1": lambda x: bessel(1, x),
}

# Of two vectors, exactly.
PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "signs": lambda x, y: x.signbit(),
    "signs of integers": lambda x, y: y.nan_to_num(0, 9, -9).to(torch.int32).signbit(),
    "sign of another": lambda x, y: torch.copysign(y, x),
    "sign of a number": lambda x, y: torch.copysign(x, -1.0),
    "integers with the sign of another": lambda x, y: torch.copysign(y.nan_to_num(0, 9, -9).to(torch.int32), x),
    "next": lambda x, y: torch.nextafter(x, y),
    "previous": lambda x, y: torch.nextafter(x, -y),
    "next of float64": lambda x, y: torch.nextafter(x.double(), y.double()),
    "mantissas": lambda x, y: torch.frexp(x)[0],
    "powers": lambda x, y: torch.frexp(x)[1],
    "powers of float64": lambda x, y: torch.frexp(x.double())[1],
    "mantissas of float16": lambda x, y: torch.frexp(y.half())[0],
    "steps": lambda x, y: torch.heaviside(x, y),
    "thousandths": lambda x, y: torch.round(x, decimals=3),
    "hundreds": lambda x, y: torch.round(x, decimals=-2),
    "rounded integers": lambda x, y: torch.floor(y.nan_to_num(0, 9, -9).to(torch.int32)),
}


def arguments() -> Any:
    """Numbers of all magnitudes, next to integers and at the edges."""
    generator = torch.Generator().manual_seed(7)
    plain = torch.rand(300, generator=generator) * 24 - 12
    unit = torch.rand(200, generator=generator) * 2 - 1
    near = torch.arange(-10.0, 10.0).repeat(4) + 2.0 ** -(torch.rand(80, generator=generator) * 20)
    large = 10 ** (torch.rand(50, generator=generator) * 5)
    return torch.cat([plain, unit, near, large, -large, 1 - 2.0 ** -torch.arange(1.0, 24.0), torch.tensor([1e-38])])


def units_in_the_last_place(value: Any, expected: Any) -> float:
    """The largest distance of float32 from float64."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(np.float32)
        distance = np.abs(value.astype(np.float64) - expected) / np.spacing(np.maximum(np.abs(rounded), 1e-30))
    is_same = (value == rounded) | (np.isnan(value) & np.isnan(rounded))
    return float(np.max(np.where(is_same, 0, distance)))


def test_special_functions(tmp_path: Path) -> None:
    """Within 2 ulp of PyTorch's float64, for any number of elements."""
    x = arguments()
    program = export(results_of(SPECIAL.values()), (x,), dynamic_shapes=(({0: Dim("count")},),))
    model = mlc.compile(program, output=tmp_path / "model.so")
    for part in (x, x[:13]):
        for (name, function), value in zip(SPECIAL.items(), model(part.numpy()), strict=True):
            expected = REFERENCES.get(name, function)(part.double()).numpy()
            assert value.dtype == np.float32, name
            assert units_in_the_last_place(value, expected) < 2, name


def test_edges_of_special_functions(tmp_path: Path) -> None:
    """At poles, infinities and NaN; also of float64, and of scalars of integers."""
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0, INF, NAN, 0.5, 200.0], dtype=torch.float64)
    names = ["lgamma", "digamma", "erfinv", "erfc", "erfcx", "ndtri", "i0e", "j1"]
    functions = [SPECIAL[name] for name in names]
    program = export(results_of([*functions, lambda x: torch.lgamma((x[4] * 3).to(torch.int64))]), (x,))
    *values, of_integer = mlc.compile(program, output=tmp_path / "model.so")(x.numpy())
    for name, function, value in zip(names, functions, values, strict=True):
        is_known = np.isfinite(x.numpy()) if name in ("i0e", "j1") else np.ones(len(x), bool)
        np.testing.assert_allclose(value[is_known], function(x).numpy()[is_known], rtol=1e-12, atol=1e-14, err_msg=name)
    assert of_integer.dtype == np.float32 and abs(of_integer - np.log(120)) < 1e-6


def test_logarithms_of_the_normal_distribution(tmp_path: Path) -> None:
    """Where the distribution function is 0 or 1 in float32."""
    x = torch.tensor([-1e4, -40.0, -5.0, -0.5, 0.0, 0.99, 1.0, 5.0, 13.0, INF, -INF])
    model = mlc.compile(export(results_of([S.log_ndtr]), (x,)), output=tmp_path / "model.so")
    assert units_in_the_last_place(model(x.numpy())[0], S.log_ndtr(x.double()).numpy()) < 2


def test_parts_of_numbers(tmp_path: Path) -> None:
    """Bit by bit, but for the signs of NaN."""
    x = torch.tensor([0, -0.0, 1, -1, 1.5, NAN, -NAN, INF, -INF, 1e-45, -1e-45, 1e-38, -3e38, 3.4028235e38, 1234.5678])
    y = torch.tensor([-1, 1, 2, -2, -5, 1, 1, 1, 1, -1, 1, 0, -INF, INF, 0])
    model = mlc.compile(export(results_of(PARTS.values()), (x, y)), output=tmp_path / "model.so")
    for (name, function), value in zip(PARTS.items(), model(x.numpy(), y.numpy()), strict=True):
        expected = function(x, y).numpy()
        assert value.dtype == expected.dtype, name
        np.testing.assert_array_equal(value, expected, err_msg=name)
        is_number = expected == expected
        np.testing.assert_array_equal(np.signbit(value[is_number]), np.signbit(expected[is_number]), err_msg=name)


def _of_first(name: str) -> Callable[[Any, Any], Any]:
    function = getattr(torch, name)
    return lambda x, y: function(x)


OF_ONE = ("asin", "acos", "atan", "asinh", "acosh", "atanh", "sinh", "cosh", "sigmoid")
OF_ONE += ("isnan", "isinf", "isfinite", "floor", "ceil", "round", "trunc")

# Of whole numbers x and y of [6].
INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: _of_first(name) for name in OF_ONE},
    "atan2": torch.atan2,
    "heaviside": torch.heaviside,
    "logsumexp": lambda x, y: torch.logsumexp(x, 0),
    "distance": lambda x, y: torch.nn.functional.pairwise_distance(x[None], y[None]),
}


def test_integers(tmp_path: Path) -> None:
    """Functions of floats make floats of them, roundings leave them alone."""
    x, y = torch.tensor([-3, -1, 0, 1, 2, 7]), torch.tensor([2, -1, 3, 0, -2, 1])
    got = mlc.compile(export(results_of(INTEGERS.values()), (x, y)), output=tmp_path / "m.so")(x.numpy(), y.numpy())
    for (name, function), value in zip(INTEGERS.items(), got, strict=True):
        expected = function(x, y).numpy()
        assert value.dtype == expected.dtype, name
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6, err_msg=name)
