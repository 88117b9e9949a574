"""Operators without an importer: PyTorch decomposes them, what has one stays whole."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
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

from mlc.frontends.torch import aten as importers
from mlc.frontends.torch.decompositions import decomposed_from, without_unknown
from mlc.frontends.torch.registry import find

F = torch.nn.functional

# Of x and y of [3, 4, 6].
FUNCTIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "turned": ("rot90", lambda x, y: torch.rot90(x, 1, [1, 2])),
    "upside down": ("flipud", lambda x, y: torch.flipud(x) - torch.fliplr(y)),
    "two dimensions at least": ("atleast_2d", lambda x, y: torch.atleast_2d(x[0, 0])),
    "columns": ("column_stack", lambda x, y: torch.column_stack([x, y])),
    "blocks": ("block_diag", lambda x, y: torch.block_diag(x[0], y[1])),
    "pairs": ("cartesian_prod", lambda x, y: torch.cartesian_prod(x[0, 0], y[0, 1])),
    "on a diagonal": ("diag_embed", lambda x, y: torch.diag_embed(x, 1, 0, -1)),
    "quantiles": ("quantile", lambda x, y: torch.quantile(x, 0.3, dim=2)),
    "two halves": ("hsplit", lambda x, y: torch.hsplit(x, 2)[1] + torch.hsplit(y, 2)[0]),
    "losses": ("cross_entropy_loss", lambda x, y: F.cross_entropy(x, y.softmax(1))),
    "areas": ("trapezoid", lambda x, y: torch.trapezoid(x, y.cumsum(-1))),
    "steps": ("heaviside", lambda x, y: torch.heaviside(x, y)),
    "margins": ("multi_margin_loss", lambda x, y: F.multi_margin_loss(x[0], torch.tensor([0, 5, 2, 1]))),
    "smooth": ("huber_loss", lambda x, y: F.huber_loss(x, y, delta=0.5)),
    "Hermitian spectrum": ("fft_hfft", lambda x, y: torch.fft.hfft(x)),
}


def test_functions_are_without_an_importer() -> None:
    """Else the tests below would not show what they are for."""
    importers.load()
    assert not [name for name, _ in FUNCTIONS.values() if find(f"aten::{name}") is not None]


@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "any number"])
def test_values(tmp_path: Path, dynamic: bool) -> None:
    torch.manual_seed(3)
    inputs = torch.randn(3, 4, 6), torch.randn(3, 4, 6)
    functions = [function for _, function in FUNCTIONS.values()]
    shapes = (({0: Dim("n", min=2, max=9)},) * 2,) if dynamic else None
    program = export(results_of(functions), inputs, dynamic_shapes=shapes)
    model = mlc.compile(program, output=tmp_path / "model.so")
    for count in (3, 5) if dynamic else (3,):
        inputs = torch.randn(count, 4, 6), torch.randn(count, 4, 6)
        got = model(*(value.numpy() for value in inputs))
        for name, function, value in zip(FUNCTIONS, functions, got, strict=True):
            expected = function(*inputs).numpy()
            np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-5, err_msg=name)


class OfTwo(torch.nn.Module):
    """The results of functions of x and y."""

    def __init__(self, functions: Iterable[Callable[[Any, Any], Any]]) -> None:
        super().__init__()
        self.functions = list(functions)

    def forward(self, x: Any, y: Any) -> Any:
        return tuple(function(x, y) for function in self.functions)


def compile_traced(functions: Iterable[Callable[[Any, Any], Any]], extents: list[int | str], path: Path) -> mlc.Model:
    """The functions traced for tensors of [3, 4, 6], saved and compiled for `extents`."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        example = torch.randn(3, 4, 6)
        torch.jit.trace(OfTwo(functions), (example, example), check_trace=False).save(str(path / "model.pt"))
    return mlc.compile(path / "model.pt", output=path / "model.so", inputs={"x": extents, "y": extents})


@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "any number"])
def test_values_of_torchscript(tmp_path: Path, dynamic: bool) -> None:
    torch.manual_seed(4)
    model = compile_traced([f for _, f in FUNCTIONS.values()], ["n" if dynamic else 3, 4, 6], tmp_path)
    inputs = [torch.randn(5 if dynamic else 3, 4, 6) for _ in range(2)]
    got = model(*(value.numpy() for value in inputs))
    for (name, (_, function)), value in zip(FUNCTIONS.items(), got, strict=True):
        np.testing.assert_allclose(value, function(*inputs).numpy(), rtol=2e-5, atol=2e-5, err_msg=name)


def test_changes_in_place_around_it(tmp_path: Path) -> None:
    def function(x: Any, y: Any) -> Any:
        z = x + y
        z[0] = 1.0
        turned, half = torch.rot90(z), torch.hsplit(z, 2)[0]
        z[1] = 2.0  # which the half shows
        return torch.cat([turned.flatten(), half.flatten(), z.flatten()])

    model = compile_traced([function], ["n", 4, 6], tmp_path)
    x, y = torch.randn(4, 4, 6), torch.randn(4, 4, 6)
    np.testing.assert_array_equal(model(x.numpy(), y.numpy())[0], function(x, y).numpy())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, y: torch.igamma(x, y), "(aten::igamma) (float32[?x4x6], float32[?x4x6]): there is no importer"),
        (lambda x, y: torch.gradient(x)[0], "(aten::gradient) (float32[?x4x6]): PyTorch decomposes it for known"),
        (lambda x, y: torch.linalg.lstsq(x[0], y[0])[0], "PyTorch cannot decompose it: aten.linalg_lstsq"),
    ],
    ids=["no importer", "known extents", "not to be exported"],
)
def test_what_torchscript_has_undecomposed_is_named(
    tmp_path: Path, function: Callable[[Any, Any], Any], message: str
) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        compile_traced([function], ["n", 4, 6], tmp_path)
    assert not (tmp_path / "model.so").exists()


def test_what_has_an_importer_stays_whole() -> None:
    importers.load()
    program = export(Wrapped(lambda x: torch.rot90(F.softmax(F.layer_norm(x, [6]), -1))), (torch.randn(4, 6),))
    made = without_unknown(torch, program)
    operators = {node.target._schema.name: node for node in made.graph.nodes if node.op == "call_function"}
    assert {"aten::softmax", "aten::layer_norm"} < set(operators)
    assert "aten::rot90" not in operators
    assert "aten::rot90" in {decomposed_from(node) for node in operators.values()}


def test_programs_without_unknown_operators_are_left_alone() -> None:
    importers.load()
    program = export(Wrapped(lambda x: F.gelu(x)), (torch.randn(4, 6),))
    assert without_unknown(torch, program) is program


def test_what_cannot_be_decomposed_is_named(tmp_path: Path) -> None:
    """The operator of the program, and the part of it that stopped the import."""
    program = export(Wrapped(lambda x: torch.special.zeta(x, torch.rot90(x))), (torch.randn(4, 4),))
    with pytest.raises(ModelError, match=r"prims::zeta, a part of aten::special_zeta.*no importer") as error:
        mlc.compile(program, output=tmp_path / "model.so")
    assert "rot90" not in str(error.value)
    assert not list(tmp_path.iterdir())
