"""Complex numbers in PyTorch's programs, which are two tensors each: arithmetic, views, rotations, transforms."""

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

fft = torch.fft


def c(x: Any) -> Any:
    """Complex numbers of pairs."""
    return torch.view_as_complex(x)


def r(z: Any) -> Any:
    """Pairs of complex numbers."""
    return torch.view_as_real(z)


def _neural_operator(x: Any) -> Any:
    """A layer of a Fourier neural operator: the low frequencies of a transform, times weights, in a tensor of zeros."""
    weight = torch.complex(torch.linspace(-1, 1, 16).reshape(4, 4), torch.linspace(1, 0, 16).reshape(4, 4))
    spectrum = fft.rfft(x[..., 0])
    out = torch.zeros(x.shape[0], 4, spectrum.shape[-1], dtype=torch.cfloat)
    out[:, :, :3] = torch.einsum("bik,io->bok", spectrum[:, :, :3], weight)
    return fft.irfft(out, n=x.shape[2])


# Functions of x of [3, 4, 6, 2] and y of [4, 6, 2], pairs.
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda x, y: r(c(x) * c(y)),
    "mul real": lambda x, y: r(c(x) * y[..., 0]),
    "real mul": lambda x, y: r(y[..., 0] * c(x)),
    "mul number": lambda x, y: r(c(x) * (0.5 - 2j)),
    "add": lambda x, y: r(c(x) + c(y)),
    "add real": lambda x, y: r(c(y) + x[..., 0]),
    "sub from real": lambda x, y: r(x[..., 0] - c(y)),
    "sub number": lambda x, y: r(c(x) - (1 + 2j)),
    "rsub": lambda x, y: r(1 - c(x)),
    "add scaled": lambda x, y: r(torch.add(c(x), c(y), alpha=3)),
    "div": lambda x, y: r(c(x) / c(y)),
    "div real": lambda x, y: r(c(x) / (y[..., 0].abs() + 1)),
    "real div": lambda x, y: r(x[..., 0] / c(y)),
    "div number": lambda x, y: r(c(x) / (1 - 2j)),
    "real div number": lambda x, y: r(x[..., 0] / (1 - 2j)),
    "real and complex of more bits": lambda x, y: r((x[..., 0].double() / c(y)).to(torch.complex64)),
    "reciprocal": lambda x, y: r(1 / c(x)),
    "matmul": lambda x, y: r(c(x) @ c(y).mT),
    "einsum": lambda x, y: r(torch.einsum("bij,ij->bi", c(x), c(y))),
    "einsum, real in front": lambda x, y: r(torch.einsum("ij,bij->bi", y[..., 1].to(torch.complex64), c(x))),
    "conj": lambda x, y: r(c(x).conj() * c(y)),
    "abs": lambda x, y: c(x).abs(),
    "angle": lambda x, y: c(x).angle(),
    "angle of real": lambda x, y: x.angle(),
    "exp": lambda x, y: r(torch.exp(c(x))),
    "square": lambda x, y: r(c(x) ** 2),
    "real and imag": lambda x, y: c(x).real - 2 * c(x).imag,
    "polar": lambda x, y: r(torch.polar(x[..., 0].abs(), x[..., 1])),
    "neg": lambda x, y: r(-c(x)),
    "sum": lambda x, y: r(c(x).sum(1)),
    "mean": lambda x, y: r(c(x).mean((0, 2), keepdim=True)),
    "to complex": lambda x, y: r(x[..., 0].to(torch.complex64)),
    "reshape": lambda x, y: r(c(x).flatten(1).unsqueeze(-1).transpose(0, 1)),
    "slices": lambda x, y: r(c(x)[:, 1:, ::2].permute(2, 0, 1).contiguous()),
    "cat": lambda x, y: r(torch.cat([c(x), y[None, ..., 0].to(torch.complex64)], 0)),
    "cat with real": lambda x, y: r(torch.stack([c(x), c(x).conj()], 1)),
    "split": lambda x, y: r(torch.cat(c(x).chunk(2, -1)[::-1], -1)),
    "where": lambda x, y: r(torch.where(x[..., 0] > 0, c(x), c(y))),
    "where, or a number": lambda x, y: r(torch.where(x[..., 0] > 0, c(x), 0.5)),
    "sum as complex": lambda x, y: r(x[..., 0].sum(1, dtype=torch.complex64) + c(x).sum(0).sum(0)),
    "real, as large as complex": lambda x, y: y[0, 0, 0].expand_as(c(x)) * c(x).real,
    "flip and roll": lambda x, y: r(c(x).flip(1).roll(2, -1)),
    "padded": lambda x, y: r(torch.nn.functional.pad(c(x), (1, 2))),
    "filled": lambda x, y: r(torch.full((2, 3), 1 - 2j) + torch.zeros_like(c(x))[0, :2, :3]),
    "neural operator": lambda x, y: _neural_operator(x),
    "constants": lambda x, y: r(c(x) * torch.polar(torch.ones(6), torch.arange(6.0))),
}

# Of x of [3, 4, 6, 2].
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "fft": lambda x: r(fft.fft(c(x))),
    "fft of real": lambda x: r(fft.fft(x, dim=1)),
    "fft of integers": lambda x: r(fft.fft((x * 8).to(torch.int64), dim=1)),
    "fft, more": lambda x: r(fft.fft(c(x), n=9, norm="ortho")),
    "fft, fewer": lambda x: r(fft.fft(c(x), n=4, dim=2, norm="forward")),
    "ifft": lambda x: r(fft.ifft(c(x), dim=0)),
    "ifft, ortho": lambda x: r(fft.ifft(c(x), norm="ortho")),
    "rfft": lambda x: r(fft.rfft(x, dim=2)),
    "rfft, odd": lambda x: r(fft.rfft(x, n=5, dim=2, norm="ortho")),
    "irfft": lambda x: fft.irfft(c(x)),
    "irfft, odd": lambda x: fft.irfft(c(x), n=7, norm="forward"),
    "irfft, fewer": lambda x: fft.irfft(c(x), n=6, dim=1, norm="ortho"),
    "irfft, one": lambda x: fft.irfft(c(x), n=1),
    "fft2": lambda x: r(fft.fft2(c(x))),
    "ifft2": lambda x: r(fft.ifft2(c(x), s=(5, 4))),
    "rfft2": lambda x: r(fft.rfft2(x, dim=(1, 2))),
    "irfft2": lambda x: fft.irfft2(c(x)),
    "rfft2 and back": lambda x: fft.irfft2(fft.rfft2(x, dim=(1, 2), norm="ortho"), s=(4, 6), dim=(1, 2), norm="ortho"),
    "fftn": lambda x: fft.fftn(c(x)).real,
    "fftn of real, some": lambda x: fft.fftn(x, dim=(2, 1)).imag,
    "rfftn": lambda x: r(fft.rfftn(x)),
    "irfftn": lambda x: fft.irfftn(c(x), s=(3, 8)),
    "shifted": lambda x: r(fft.ifftshift(fft.fftshift(fft.fft(c(x)), dim=1))),
    "windows": lambda x: x[0, 0, 0, 0] + torch.cat([
        make(n, periodic=whole)
        for make in (torch.hann_window, torch.hamming_window, torch.blackman_window, torch.bartlett_window)
        for n, whole in ((8, True), (8, False), (7, False), (1, True))
    ]),
    "windows of other kinds": lambda x: x[0, :2, :3, 0] * torch.hamming_window(3, alpha=0.6, beta=0.4, periodic=False),
    "frequencies": lambda x: x[:, :, :, 0] * fft.fftfreq(6, 0.5) + x[:, :, :, 1] * fft.rfftfreq(10),
}  # fmt: skip


def compare(program: Any, path: Path, *inputs: Any, decomposed: bool = False) -> None:
    """The results of a program are PyTorch's."""
    want = program.module()(*inputs)
    program = program.run_decompositions() if decomposed else program
    model = mlc.compile(program, output=path / "model.so")
    got = model(*[value.numpy() for value in inputs])
    for value, expected in zip(got, want if isinstance(want, list | tuple) else [want], strict=True):
        assert value.shape == tuple(expected.shape)
        scale = float(expected.abs().max())
        np.testing.assert_allclose(value, expected.numpy(), rtol=2e-5, atol=2e-6 * max(scale, 1))


@pytest.mark.parametrize("decomposed", [False, True], ids=["whole", "decomposed"])
@pytest.mark.parametrize("table", ["arithmetic", "transforms"])
def test_values(tmp_path: Path, table: str, decomposed: bool) -> None:
    """Every function of a table, in one program."""
    torch.manual_seed(3)
    functions: dict[str, Callable[..., Any]] = ARITHMETIC if table == "arithmetic" else TRANSFORMS  # type: ignore[assignment]
    inputs = (torch.randn(3, 4, 6, 2), torch.randn(4, 6, 2))[: 2 if table == "arithmetic" else 1]
    compare(export(results_of(functions.values()), inputs), tmp_path, *inputs, decomposed=decomposed)


def test_absolute_values_and_quotients_of_extremes(tmp_path: Path) -> None:
    """Squares of the parts need not be numbers of the dtype."""
    parts = torch.tensor([[3e30, 4e30], [3e-30, -4e-30], [0, 0], [float("inf"), 1], [1, float("nan")], [2e38, 0]])
    model = mlc.compile(export(Wrapped(lambda x: c(x).abs()), (parts,)), output=tmp_path / "abs.so")
    np.testing.assert_allclose(model(parts.numpy())[0], torch.view_as_complex(parts).abs().numpy(), rtol=1e-6)
    some = parts[[0, 1, 5]]
    model = mlc.compile(export(Wrapped(lambda x: r(c(x) / c(x))), (some,)), output=tmp_path / "div.so")
    np.testing.assert_allclose(model(some.numpy())[0], [[1, 0]] * 3, atol=1e-6)


def test_rotary_positions(tmp_path: Path) -> None:
    """Llama's own code: queries as complex numbers, times a buffer of rotations, for any number of words."""

    class Rotated(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            angles = torch.outer(torch.arange(32.0), 10000 ** (-torch.arange(0, 64, 2) / 64))
            self.register_buffer("rotations", torch.polar(torch.ones_like(angles), angles))

        def forward(self, x: Any) -> Any:
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            there = self.rotations[: x.shape[1]][None, :, None]
            return torch.view_as_real(pairs * there).flatten(3).type_as(x)

    x = torch.randn(2, 9, 3, 64)
    program = export(Rotated(), (x,), dynamic_shapes=({1: Dim("words", max=32)},))
    model = mlc.compile(program, output=tmp_path / "model.so")
    for words in (9, 1, 32):
        x = torch.randn(2, words, 3, 64)
        np.testing.assert_allclose(model(x.numpy())[0], program.module()(x).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_fft, hop, window", [(64, 16, 64), (50, 20, 30), (32, 32, None)])
def test_short_time_transforms(tmp_path: Path, n_fft: int, hop: int, window: int | None) -> None:
    """There, and back to the signal."""
    weights = None if window is None else torch.hann_window(window) + 0.1

    def back_and_forth(x: Any) -> Any:
        z = torch.stft(x, n_fft, hop, window, weights, return_complex=True)
        y = torch.istft(z * (1 + 0.5j), n_fft, hop, window, weights, length=x.shape[-1])
        return z.abs(), r(z), y, torch.istft(z, n_fft, hop, window, weights, normalized=True)

    x = torch.randn(2, 300)
    compare(export(Wrapped(back_and_forth), (x,)), tmp_path, x)


def test_transforms_of_any_length(tmp_path: Path) -> None:
    """A mixing of words by their transform (FNet), whose number only a run knows."""
    x = torch.randn(2, 7, 12)
    program = export(Wrapped(lambda x: fft.fftn(x, dim=(1, 2)).real), (x,), dynamic_shapes=(({1: Dim("words")},),))
    model = mlc.compile(program, output=tmp_path / "model.so")
    for words in (7, 1, 40):
        x = torch.randn(2, words, 12)
        np.testing.assert_allclose(model(x.numpy())[0], program.module()(x).numpy(), rtol=1e-4, atol=2e-4)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a result": (lambda x: fft.fft(x), "has complex numbers, which no library returns"),
    "a function": (lambda x: torch.sin(fft.fft(x)).real, "no importer for it with complex numbers"),
    "a power": (lambda x: (fft.fft(x) ** 3).real, "to the power 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    """One error that says what to do."""
    function, said = REFUSED[name]
    with pytest.raises(ModelError, match=said):
        mlc.compile(export(Wrapped(function), (torch.randn(4, 6),)), output=tmp_path / "model.so")


def test_complex_inputs_are_refused(tmp_path: Path) -> None:
    """A library takes real numbers."""
    program = export(Wrapped(lambda z: z.real), (torch.randn(4, dtype=torch.complex64),))
    with pytest.raises(ModelError, match="view_as_complex"):
        mlc.compile(program, output=tmp_path / "model.so")


def test_torchscript(tmp_path: Path) -> None:
    """Traced programs too, where nothing is changed in place; dtypes are numbers there."""

    def spectrum(x: torch.Tensor) -> torch.Tensor:
        windowed = x * torch.hann_window(8, periodic=False, dtype=torch.float64)
        return fft.rfft(windowed).abs() * fft.rfftfreq(8, dtype=torch.float64)

    x = torch.randn(3, 8)
    torch.jit.trace(Wrapped(spectrum), (x,)).save(tmp_path / "model.pt")
    model = mlc.compile(tmp_path / "model.pt", output=tmp_path / "model.so", inputs={"x": [3, 8]})
    [got] = model(x.numpy())
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, spectrum(x).numpy(), rtol=1e-12, atol=1e-12)
