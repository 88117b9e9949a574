"""Masks as models of PyTorch make them: what coordinates decide of them is written as coordinates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")

import torch

import mlc


def _simplified(program: Any, path: Path) -> str:
    mlc.compile(program, output=path / "m.mlir", emit="simplify", load=False)
    return (path / "m.mlir").read_text()


class Triangles(torch.nn.Module):
    """Triangles of ones that are kept, and cut (GPT-Neo, nanoGPT)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))
        self.register_buffer("allowed", torch.tril(torch.ones(64, 64, dtype=torch.bool)))

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(2, 3)
        one = scores.masked_fill(self.bias[:, :, :20, :20] == 0, float("-inf"))  # type: ignore[index]
        two = torch.where(self.allowed[4:24, 4:24], scores, torch.finfo(scores.dtype).min)  # type: ignore[index]
        return torch.softmax(one, -1) + torch.softmax(two, -1)


def test_triangles_of_buffers(tmp_path: Path) -> None:
    arguments = tuple(torch.randn(1, 2, 20, 8) for _ in range(2))
    program = torch.export.export(Triangles().eval(), arguments)
    text = _simplified(program, tmp_path)
    assert "mlc.weight" not in text and {*re.findall(r"mlc.compare (\w+)", text)} == {"lt", "le"}
    assert text.count("0xFF800000") == 1  # both hide by it
    got = mlc.compile(program, output=tmp_path / "m.so")(*(a.numpy() for a in arguments))[0]
    np.testing.assert_allclose(got, Triangles()(*arguments).numpy(), rtol=1e-5, atol=1e-6)


class Packed(torch.nn.Module):
    """A window of `window` keys for texts that may be packed, padded ones with a mask, as transformers writes it."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, q: torch.Tensor, padding: torch.Tensor | None = None) -> torch.Tensor:
        batch, length = q.shape[0], q.shape[2]
        position = torch.arange(length, device=q.device)[None]
        steps = torch.diff(position, prepend=position[:, :1] - 1, dim=-1)
        text = (steps != 1).cumsum(-1)
        row, key = position[0][:, None], position[0][None]
        places = torch.arange(1)[:, None, None, None], torch.arange(length)
        shown = (key > row - self.window) & q.new_ones((), dtype=torch.bool) & (key <= row)
        one, other = text[places[0], places[1][:, None]], text[places[0], places[1][None, :]]
        shown = shown[None, None] & (one == other)
        if padding is not None:
            shown = shown & padding[torch.arange(batch)[:, None, None, None], places[1][None, :]]
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=shown)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("padded", [False, True], ids=["plain", "padded"])
def test_windows_of_packed_texts(padded: bool, dynamic: bool, tmp_path: Path) -> None:
    model = Packed(9).eval()
    q, padding = torch.randn(2, 2, 80, 16), torch.ones(2, 80, dtype=torch.bool)
    padding[1, 60:] = False
    arguments = (q, padding) if padded else (q,)
    length = torch.export.Dim("length", min=2, max=500)
    shapes = ({2: length}, {1: length}) if padded else ({2: length},)
    program = torch.export.export(model, arguments, dynamic_shapes=shapes if dynamic else None)
    text = _simplified(program, tmp_path)
    assert {*re.findall(r"mlc.compare (\w+)", text)} == {"gt", "le"}
    assert "gather" not in text and "mlc.scan" not in text and "mlc.concat" not in text
    compiled = mlc.compile(program, output=tmp_path / "m.so")
    for rows in (80, 33, 200) if dynamic else (80,):
        q, padding = torch.randn(2, 2, rows, 16), torch.rand(2, rows) < 0.8
        padding[:, 0] = True
        given = (q, padding) if padded else (q,)
        got = compiled(*(x.numpy() for x in given))[0]
        want = model(*given).numpy()
        np.testing.assert_allclose(got, np.nan_to_num(want), rtol=1e-5, atol=2e-6)
