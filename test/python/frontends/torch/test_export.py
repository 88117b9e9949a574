"""Programs of `torch.export` compiled and compared with PyTorch: values, names, dimensions, and what is refused."""

from __future__ import annotations

import collections
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontends.report import ModelError
from mlc.runtime.errors import InputError
from mlc.runtime.errors import ModelError as RunError

pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch
from models.functions import Wrapped
from torch.export import Dim, export

F = torch.nn.functional


class Block(torch.nn.Module):
    """A layer of a transformer: weights, a buffer, views, an update in place, results in a dictionary."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.words = torch.nn.Embedding(20, width)
        self.norm = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, width))

    def forward(self, ids: Any, mask: Any, bias: float = 0.25) -> dict[str, Any]:
        x = self.words(ids) * self.scale + bias
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        x[:, 0] = 1
        return {"hidden": x, "pooled": x.mean(1), "more": [x.argmax(-1), t * 2]}


def compiled(program: Any, path: Path, **asked: Any) -> mlc.Model:
    """The model of `program`, by way of a file."""
    torch.export.save(program, path / "model.pt2")
    return mlc.compile(path / "model.pt2", output=path / "model.so", **asked)


def program_of(function: Callable[..., Any], *arguments: Any, **asked: Any) -> Any:
    """The program of a function."""
    return export(Wrapped(function).eval(), arguments, **asked)


def same(got: Any, want: Any) -> None:
    """Shape, dtype and values of one result are PyTorch's."""
    expected = want.detach().numpy() if isinstance(want, torch.Tensor) else np.asarray(want)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)


@pytest.fixture(scope="module")
def block() -> Any:
    """The program of a block whose batch and length are dynamic."""
    torch.manual_seed(1)
    batch, length = Dim("batch"), Dim("length", max=64)
    ids, mask = torch.randint(0, 20, (3, 5)), torch.ones(3, 5, dtype=torch.bool)
    shapes = {"ids": {0: batch, 1: length}, "mask": {0: batch, 1: length}}
    return export(Block().eval(), (ids, mask), dynamic_shapes=shapes)


def test_a_dynamic_program(block: Any, tmp_path: Path) -> None:
    """Names of inputs and results are the program's; one library serves every length, single ones included."""
    model = compiled(block, tmp_path)
    entry = model.entry()
    assert [(info.name, info.dtype) for info in entry.inputs] == [("ids", "int64"), ("mask", "bool")]
    first, second = entry.inputs[0].dims or ()
    assert entry.inputs[1].dims == (first, second) and first != second
    assert model.dims[str(second)].highest == 64
    module = block.module()
    for b, t in ((3, 5), (1, 1), (2, 9), (4, 64)):
        ids = torch.randint(0, 20, (b, t))
        mask = torch.rand(b, t) < 0.7
        mask[:, 0] = True
        got, want = model.run({"ids": ids.numpy(), "mask": mask.numpy()}), module(ids, mask)
        assert list(got) == ["hidden", "pooled", "more_0", "more_1"]
        for value, expected in zip(got.values(), [want["hidden"], want["pooled"], *want["more"]], strict=True):
            same(value, expected)


def test_names_and_extents_from_the_caller(block: Any, tmp_path: Path) -> None:
    """A symbol takes the caller's name, or extent, wherever it stands."""
    model = compiled(block, tmp_path, inputs={"ids": ["batch", 7]}, outputs=["pooled"])
    assert [info.dims for info in model.entry().inputs] == [("batch", 7), ("batch", 7)]
    ids, mask = torch.randint(0, 20, (2, 7)), torch.ones(2, 7, dtype=torch.bool)
    got = model.run({"ids": ids.numpy(), "mask": mask.numpy()})
    assert list(got) == ["pooled"]
    same(got["pooled"], block.module()(ids, mask)["pooled"])


def test_a_program_itself(block: Any, tmp_path: Path) -> None:
    """`mlc.compile` takes what `torch.export.export` returns; its file gives the same weights and results."""
    ids, mask = torch.randint(0, 20, (2, 3)), torch.ones(2, 3, dtype=torch.bool)
    model = mlc.compile(block, output=tmp_path / "direct.so")
    same(model.run([ids.numpy(), mask.numpy()])["hidden"], block.module()(ids, mask)["hidden"])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"ids": ["batch", 65]}, "65 does not fit"),
        ({"ids": ["batch", 5, 1]}, "has not 3 dimensions"),
        ({"words": [1, 5]}, 'there is no input "words"; the inputs are: ids, mask'),
        ({"ids": [2, 5], "mask": [3, 5]}, "is both 2 and 3"),
    ],
)
def test_shapes_that_do_not_fit(block: Any, tmp_path: Path, shapes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        compiled(block, tmp_path, inputs=shapes)
    assert not (tmp_path / "model.so").exists()


def test_a_convolutional_network(tmp_path: Path) -> None:
    """Batch normalization, pooling, a number of images in steps of four."""
    torch.manual_seed(2)
    layers = [torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(8 * 4 * 4, 5), torch.nn.Softmax(-1)).eval()
    layers[1].running_mean.uniform_(-1, 1)
    program = export(net, (torch.randn(8, 3, 16, 16),), dynamic_shapes=({0: 4 * Dim("fours")},))
    model = compiled(program, tmp_path)
    (info,) = model.entry().inputs
    assert model.dims[str((info.dims or ())[0])].multiple == 4
    x = torch.randn(12, 3, 16, 16)
    same(model.run([x.numpy()])["output"], net(x))
    with pytest.raises(InputError, match="multiples of 4"):
        model.run([x[:6].numpy()])


def test_sums_of_symbols(tmp_path: Path) -> None:
    """An extent that is a sum of symbols is one of the same dimensions, under the names and numbers asked for."""

    class Behind(torch.nn.Module):
        def forward(self, past: Any, new: Any, mask: Any) -> Any:
            return torch.cat([past, new], 1) * mask

    past, new = Dim("past"), Dim("new")
    arrays = (torch.randn(2, 5), torch.randn(2, 3), torch.randn(2, 8))
    program = export(Behind(), arrays, dynamic_shapes=({1: past}, {1: new}, {1: Dim.AUTO}))
    model = compiled(program, tmp_path)
    (_, one), (_, other), (_, both) = (info.dims or () for info in model.entry().inputs)
    assert both in (f"{one} + {other}", f"{other} + {one}")
    for p, n in ((5, 3), (1, 1), (0, 4)):
        given = [torch.randn(2, extent) for extent in (p, n, p + n)]
        same(model.run([x.numpy() for x in given])["output"], Behind()(*given))
    with pytest.raises(InputError, match="and not 8"):
        model.run([torch.randn(2, extent).numpy() for extent in (5, 3, 7)])
    named = mlc.compile(program, output=tmp_path / "named.so", inputs={"past": (2, "before"), "new": (2, 1)})
    assert [info.dims for info in named.entry().inputs] == [(2, "before"), (2, 1), (2, "before + 1")]


def test_branches_and_loops(tmp_path: Path) -> None:
    """`torch.cond` and `while_loop` are taken by the run."""
    from torch._higher_order_ops.while_loop import while_loop

    def function(x: Any) -> Any:
        y = torch.cond(x.sum() > 0, lambda v: v * 2 + 1, lambda v: v - 3, (x,))
        count = torch.zeros((), dtype=torch.int64)
        return y, *while_loop(lambda n, v: v.abs().sum() > 1, lambda n, v: (n + 1, v / 2), (count, x))

    program = program_of(function, torch.randn(3, 4))
    model, module = compiled(program, tmp_path), program.module()
    for x in (torch.full((3, 4), 0.5), torch.full((3, 4), -2.0), torch.zeros(3, 4)):
        for value, want in zip(model.run([x.numpy()]).values(), module(x), strict=True):
            same(value, want)


def test_arithmetic_on_sizes(tmp_path: Path) -> None:
    """Sizes are added, divided and rounded as Python does it."""

    def function(x: Any) -> Any:
        n = x.shape[0]
        half = 2
        made = x.new_full((n + 1, 2), 3.0)
        return x[:half], x[half:].sum(0), made, x.reshape(-1), x.sum() / n, x * (n % 4), x - n // 3

    program = program_of(function, torch.randn(6, 4), dynamic_shapes=(({0: Dim("n", min=4)},),))
    model, module = compiled(program, tmp_path), program.module()
    for n in (4, 6, 11):
        x = torch.randn(n, 4)
        for value, want in zip(model.run([x.numpy()]).values(), module(x), strict=True):
            same(value, want)


def test_core_aten(block: Any, tmp_path: Path) -> None:
    """Programs that PyTorch has decomposed to its core operators."""
    core = block.run_decompositions()
    assert any("native_layer_norm" in str(node.target) for node in core.graph.nodes)
    model = compiled(core, tmp_path)
    ids, mask = torch.randint(0, 20, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    same(model.run([ids.numpy(), mask.numpy()])["hidden"], block.module()(ids, mask)["hidden"])
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.GroupNorm(2, 8)).eval()
    x = torch.randn(2, 3, 9, 9)
    same(compiled(export(net, (x,)).run_decompositions(), tmp_path).run([x.numpy()])["output"], net(x))


def test_what_is_refused(tmp_path: Path) -> None:
    """Inputs that no library takes, and operators without an importer, by the node that has them."""
    number = program_of(lambda x, n: x * n, torch.randn(3), 4, dynamic_shapes=((None, Dim.DYNAMIC),))
    with pytest.raises(ModelError, match="is a SymInt, which no library takes"):
        compiled(number, tmp_path)
    two = program_of(lambda x: (torch.special.airy_ai(x), torch.special.zeta(x, x)), torch.eye(3))
    with pytest.raises(ModelError) as caught:
        compiled(two, tmp_path)
    assert "aten::special_airy_ai" in str(caught.value) and "aten::special_zeta" in str(caught.value)
    assert not (tmp_path / "model.so").exists()


def test_results_of_an_unknown_class(tmp_path: Path) -> None:
    """A process that does not know the class of a program's results says so in one line."""
    Pair = collections.namedtuple("Pair", "first second")
    torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="somebody.results.Pair")
    torch.export.save(program_of(lambda x: Pair(x, x + 1), torch.ones(2)), tmp_path / "pair.pt2")
    command = [sys.executable, "-m", "mlc.cli.compile", "pair.pt2", "-o", "pair.so"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "somebody.results.Pair" in done.stderr, done.stderr
    assert "pass the program itself" in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "pair.so").exists()


def test_a_place_that_data_decide(tmp_path: Path) -> None:
    """Of a weight and of a tensor: a place that is none ends the run, instead of reading what is not theirs."""

    class Picked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Parameter(torch.randn(8, 16, 12))

        def forward(self, x: torch.Tensor, place: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            number = place.item()
            torch._check(number >= 0)
            torch._check(number < 8)
            return x[0] @ self.layers[number], x[number]

    module = Picked().eval()
    x = torch.randn(8, 3, 16)
    model = compiled(program_of(module, x, torch.tensor(2)), tmp_path)
    for number in (0, 5, 7):
        first, second = model(x.numpy(), np.array(number))
        np.testing.assert_allclose(first, (x[0] @ module.layers[number]).detach().numpy(), rtol=0, atol=1e-5)
        np.testing.assert_array_equal(second, x[number].numpy())
    for number in (-1, 8, 1 << 40):
        with pytest.raises(RunError, match="a slice of dimension 0 must lie inside of its input"):
            model(x.numpy(), np.array(number))


GROUPED = """
import torch


def grouped(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    ends = offs.tolist()
    parts = [input[begin:end] @ weight[i] for i, (begin, end) in enumerate(zip([0, *ends], ends))]
    return torch.cat(parts)


schema = "(Tensor input, Tensor weight, Tensor offs) -> Tensor"
torch.library.custom_op("transformers::grouped_mm_fallback", grouped, mutates_args=(), schema=schema)
fake = lambda input, weight, offs: input.new_empty(input.shape[0], weight.shape[2])
torch.library.register_fake("transformers::grouped_mm_fallback", fake)
"""
SAVED = """
import sys
import torch
import transformers.integrations.moe
from torch import nn


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 24, 16))

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return torch.ops.transformers.grouped_mm_fallback(x, self.weight.transpose(1, 2), ends)


torch.manual_seed(0)
inputs = torch.randn(20, 16), torch.tensor([3, 3, 11, 19, 20], dtype=torch.int32)
program = torch.export.export(Experts().eval(), inputs)
torch.export.save(program, "experts.pt2")
torch.save((inputs, program.module()(*inputs).detach()), "results.pt")
"""


def test_operators_of_a_known_package(tmp_path: Path) -> None:
    """Groups of rows, as transformers multiplies them: a file of them makes the package be imported, if it is there."""
    package = tmp_path / "packages" / "transformers" / "integrations"
    package.mkdir(parents=True)
    for file in (package.parent / "__init__.py", package / "__init__.py"):
        file.write_text("")
    (package / "moe.py").write_text(GROUPED)
    known = {**os.environ, "PYTHONPATH": str(tmp_path / "packages")}
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True)
    done = run([sys.executable, "-c", SAVED], env=known)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", "mlc.cli.compile", "experts.pt2", "-o", "experts.so"]
    done = run(command, env=known)
    assert done.returncode == 0, done.stderr
    inputs, expected = torch.load(tmp_path / "results.pt")
    [y] = mlc.load(tmp_path / "experts.so")(*(value.numpy() for value in inputs))
    np.testing.assert_allclose(y, expected.numpy(), rtol=0, atol=2e-6 * float(expected.abs().max()))
    (package / "moe.py").write_text("raise ImportError('half installed')")
    done = run(command, env=known)
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1
    assert "it has operators of transformers, which cannot be imported: half installed" in done.stderr


def test_files_that_hold_no_program(tmp_path: Path) -> None:
    """A damaged file, a text and a pickle are named as what they are."""
    path = tmp_path / "model.pt2"
    torch.export.save(program_of(lambda x: x + 1, torch.randn(3)), path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"not an archive"):
        path.write_bytes(content)
        with pytest.raises(ModelError, match="is no program of torch.export that can be read"):
            mlc.compile(path, output=tmp_path / "model.so")
    torch.save({"weight": torch.ones(2)}, path)
    with pytest.raises(ModelError, match="pickle of torch.save"):
        mlc.compile(path, output=tmp_path / "model.so")
    assert not (tmp_path / "model.so").exists()
