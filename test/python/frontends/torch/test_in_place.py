"""TorchScript models that change tensors in place, also through views and under other names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontends.report import ModelError

# (A submodule: pytest makes an empty module of this folder's name.)
pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch
from models.functions import results_of

F = torch.nn.functional


def through(view: Callable[[Any], Any], change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that changes a view of a new tensor and returns the tensor and the view."""

    def function(x: Any) -> Any:
        y = x * 2
        part = view(y)
        change(part)
        return torch.cat([y.reshape(-1), part.reshape(-1)])

    return function


def renamed(x: Any) -> Any:
    """Changes a tensor that has a second name."""
    y = x * 2
    z = y
    z += 1
    return y + z


def filled_in(x: Any) -> Any:
    """Fills a tensor row by row."""
    y = torch.zeros(4, 6)
    y[1] = x[0]
    y[0, 2:] = x[0, 2:]
    y[2:, ::2] = x[2:, 1::2]
    return y


def before_and_after(x: Any) -> Any:
    """Reads a copy, a sum and a view from before the change."""
    y = x * 2
    copy, total, view = y.clone(), y + 0, y[:, 1]
    y.mul_(3)
    return torch.cat([copy, total, y], 1) + view[:, None]


def shapes_in_place(x: Any) -> Any:
    """Operators that change extents in place, then elements."""
    y = x * 2
    z = y.view(4, 6)
    z.unsqueeze_(0)
    z.transpose_(1, 2)
    z[0, 5] = 3.0
    return torch.cat([y.reshape(-1), z.reshape(-1)])


def pieces(x: Any) -> Any:
    """Changes pieces of a split tensor."""
    y = x * 2
    first, second = y.chunk(2, 1)
    first.add_(1)
    a, b, c, d = y.unbind(0)
    c.neg_()
    e, g = y.split([2, 4], 1)
    g.sub_(e.sum())
    return y + second.sum() + b.sum()


def integers(x: Any) -> Any:
    """A result of floats that is stored in integers, and a smaller operand."""
    y = (x * 10).long()
    y.add_(torch.tensor(7))
    y[:, 0] = 2.9
    y.clamp_(min=-3)
    return y


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "column": through(lambda y: y[:, 0], lambda part: part.fill_(5.0)),
    "slice": through(lambda y: y[:, :2], lambda part: part.mul_(3)),
    "steps": through(lambda y: y[1:, 1::2], lambda part: part.add_(1)),
    "from the end": through(lambda y: y[-2:, -1], lambda part: part.zero_()),
    "reshape": through(lambda y: y.view(24)[5:17], lambda part: part.sub_(1)),
    "flatten": through(lambda y: y.flatten(), lambda part: part.relu_()),
    "transposed": through(lambda y: y.t()[1:3], lambda part: part.exp_()),
    "permuted": through(lambda y: y.view(2, 2, 6).permute(2, 0, 1)[2], lambda part: part.sigmoid_()),
    "narrow": through(lambda y: y.narrow(1, 2, 3).unsqueeze(1).squeeze(1), lambda part: part.div_(4)),
    "detached": through(lambda y: y.detach().contiguous(), lambda part: part.tanh_()),
    "same dtype": through(lambda y: y.to(torch.float32), lambda part: part.add_(1)),
    "a copy": through(lambda y: y.to(torch.float32, copy=True), lambda part: part.add_(1)),
    "a row of rows": through(lambda y: y[1:][1], lambda part: part.copy_(torch.arange(6.0))),
    "masked": through(lambda y: y, lambda part: part.masked_fill_(part > 0, -1.0)),
    "one number": through(lambda y: y[0], lambda part: part.copy_(torch.tensor(3))),
    "dropout": through(lambda y: F.dropout(y, 0.5, False), lambda part: part.add_(1)),
    "renamed": renamed,
    "filled in": filled_in,
    "before and after": before_and_after,
    "shapes": shapes_in_place,
    "pieces": pieces,
    "integers": integers,
    "of accumulation": lambda x: x.clone().scatter_add_(1, torch.tensor([[0, 0, 1, 5, 5, 5]]), torch.ones(1, 6)),
    "of triangles": lambda x: x.clone().triu_(1) + x.clone().cumsum_(1) + x.clone().clamp_min_(0.5),
}


def test_changes_show_wherever_memory_is_shared(tmp_path: Path) -> None:
    torch.manual_seed(0)
    example = torch.randn(4, 6)
    want = results_of(FUNCTIONS.values())(example)
    torch.jit.trace(results_of(FUNCTIONS.values()), example, check_trace=False).save(str(tmp_path / "m.pt"))
    got = mlc.compile(tmp_path / "m.pt", output=tmp_path / "m.so", inputs={"x": [4, 6]})(example.numpy())
    for name, ours, theirs in zip(FUNCTIONS, got, want, strict=True):
        assert ours.dtype == theirs.numpy().dtype, name
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=2e-5, atol=2e-5, err_msg=name)


class Dynamic(torch.nn.Module):
    """Changes parts whose places depend on the extents."""

    def forward(self, x: Any) -> Any:
        y = x.clone()
        y[:, 1:] += x[:, :-1]
        y[-1].mul_(2)
        y.view(-1)[2:] -= 1
        return y


def test_places_known_at_run_time(tmp_path: Path) -> None:
    torch.jit.trace(Dynamic(), torch.randn(3, 5)).save(str(tmp_path / "m.pt"))
    model = mlc.compile(tmp_path / "m.pt", output=tmp_path / "m.so", inputs={"x": ["rows", "columns"]})
    for rows, columns in ((3, 5), (1, 2), (7, 4)):
        x = torch.randn(rows, columns)
        np.testing.assert_allclose(model(x.numpy())[0], Dynamic()(x).numpy(), rtol=1e-6, atol=1e-6)


class Scripted(torch.nn.Module):
    """What tracing would follow: names for one tensor in source code."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        y = x * 2
        z = y
        z += 1
        z[:, 0] = 4.0
        h = y.view(24)
        h.mul_(2)
        parts = [y, h]
        parts.append(y.t())
        y.add_(1)
        return parts


def test_scripted_names(tmp_path: Path) -> None:
    torch.jit.script(Scripted()).save(str(tmp_path / "m.pt"))
    x = torch.randn(4, 6)
    got = mlc.compile(tmp_path / "m.pt", output=tmp_path / "m.so", inputs={"x": [4, 6]})(x.numpy())
    for ours, theirs in zip(got, Scripted()(x), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-6, atol=1e-6)


class Keeps(torch.nn.Module):
    """Counts its runs."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs.add_(1)
        return x * self.runs


class Doubtful(torch.nn.Module):
    """Changes what may be a view or a copy, and reads the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.t() * 2
        z = y.reshape(24)
        z.add_(1)
        return y.sum(0)


class Expanded(torch.nn.Module):
    """Writes one element that many places show."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x[:, :1] * 2
        y.expand(4, 6)[:, 1].copy_(x[:, 1])
        return y


class Branch(torch.nn.Module):
    """Changes a tensor in a branch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if x.sum() > 0:
            y.add_(1)
        return y


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Keeps, r'node "add_" \(aten::add_\).*changes "runs" of the module.*pass it to the next run as an input'),
        (Doubtful, r"sum.*may share memory with this one, or not.*clone\(\)"),
        (Branch, r"add_.*changes a tensor in a branch"),
        (Expanded, r"writes through the view that expand makes"),
    ],
)
def test_what_cannot_be_followed_is_refused(tmp_path: Path, module: type, message: str) -> None:
    torch.jit.script(module()).save(str(tmp_path / "m.pt"))
    with pytest.raises(ModelError, match=message):
        mlc.compile(tmp_path / "m.pt", output=tmp_path / "m.so", inputs={"x": [4, 6]})
    assert not (tmp_path / "m.so").exists()
