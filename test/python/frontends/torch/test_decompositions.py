"""Operators without an importer: PyTorch decomposes them, what has one stays whole."""

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
    "product of Kronecker": ("kron", lambda x, y: torch.kron(x[0], y[0])),
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
