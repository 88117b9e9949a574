"""Programs of `torch.export` that change buffers or inputs: what changes is an input and a result, run after run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.frontends.report import ModelError
from mlc.runtime.errors import ArgumentError
from mlc.runtime.errors import ModelError as RunError

pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch
from torch.export import Dim, export

F = torch.nn.functional


class Cached(torch.nn.Module):
    """An attention whose keys and values are kept in buffers for the longest text, as Hugging Face's static caches."""

    def __init__(self, heads: int = 4, groups: int = 2, width: int = 8, room: int = 24, old: bool = False) -> None:
        super().__init__()
        self.heads, self.groups, self.width, self.old = heads, groups, width, old
        self.qkv = torch.nn.Linear(16, (heads + 2 * groups) * width)
        self.register_buffer("keys", torch.zeros(1, groups, room, width), persistent=False)
        self.register_buffer("values", torch.zeros(1, groups, room, width), persistent=False)
        self.register_buffer("length", torch.zeros((), dtype=torch.long), persistent=False)

    def forward(self, x: Any, first: Any) -> Any:
        count, room = x.shape[1], self.keys.shape[2]
        places = torch.arange(count) + first[0]
        parts = self.qkv(x).view(1, count, -1, self.width).transpose(1, 2)
        q, k, v = parts.split([self.heads, self.groups, self.groups], 1)
        if self.old:
            self.keys[:, :, first], self.values[:, :, first] = k, v
        else:
            self.keys.index_copy_(2, places, k)
            self.values.index_copy_(2, places, v)
        self.length.add_(count)
        again = (1, self.groups, self.heads // self.groups, room, self.width)
        k, v = (t[:, :, None].expand(again).reshape(1, self.heads, room, self.width) for t in (self.keys, self.values))
        seen = torch.arange(room)[None, :] <= places[:, None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen[None, None]).transpose(1, 2)


class Counting(torch.nn.Module):
    """Adds a number that grows from run to run, beside one that has several values at first."""

    def __init__(self, first: Any) -> None:
        super().__init__()
        self.register_buffer("count", first)

    def forward(self, x: Any) -> Any:
        self.count += 1
        return x + self.count


def compiled(program: Any, path: Path, **asked: Any) -> mlc.Model:
    """The model of `program`, by way of a file."""
    torch.export.save(program, path / "model.pt2")
    return mlc.compile(path / "model.pt2", output=path / "model.so", **asked)


def test_caches_in_buffers(tmp_path: Path) -> None:
    """One program for a text and for its words one by one; caches are not copied, and their heads not repeated."""
    module = Cached().eval()
    dynamic = {"x": {1: Dim("count", max=16)}, "first": None}
    program = export(module, (torch.randn(1, 3, 16), torch.tensor([0])), dynamic_shapes=dynamic)
    model = compiled(program, tmp_path)
    outputs = {output.name: output for output in model.outputs}
    assert [info.name for info in model.inputs] == ["x", "first", "keys", "values", "length"]
    assert {name: info.continues for name, info in outputs.items() if info.continues} == {
        name: name for name in ("length", "keys", "values")
    }
    assert [outputs[name].shares for name in ("keys", "values")] == ["keys", "values"]
    state = model.state()
    keys, own, place = state.arrays["keys"], program.module(), 0
    for count in (5, 1, 1, 3, 1):
        x = torch.randn(1, count, 16)
        first = torch.tensor([place])
        with torch.no_grad():
            expected = own(x, first)
        results = state.run({"x": x.numpy(), "first": first.numpy()})
        assert list(results) == ["output"]
        np.testing.assert_allclose(results["output"], expected, rtol=1e-5, atol=1e-6)
        place += count
    np.testing.assert_allclose(keys, own.keys, rtol=1e-5, atol=1e-6)
    with pytest.raises(RunError, match="index_copy.*index 23 is out of range"):  # behind the end of the caches
        state.copy().run({"x": np.zeros((1, 2, 16), np.float32), "first": np.array([23])})
    with pytest.raises(RunError, match="index_copy.*is out of range"):  # PyTorch's index_copy counts from no end
        state.copy().run({"x": np.zeros((1, 2, 16), np.float32), "first": np.array([-3])})
    assert state.arrays["keys"] is keys and state.arrays["length"] == own.length == place
    mlc.compile(tmp_path / "model.pt2", output=tmp_path / "simple.mlir", emit="simplify")
    [attention] = [line for line in (tmp_path / "simple.mlir").read_text().splitlines() if "= mlc.attention" in line]
    assert attention.count("tensor<1x2x24x8xf32>") == 2, attention  # the heads of keys and values


def test_a_slice_by_assignment(tmp_path: Path) -> None:
    """`cache[:, :, position] = …` of one position, also from the end."""
    module = Cached(old=True).eval()
    program = export(module, (torch.randn(1, 1, 16), torch.tensor([0])))
    model = compiled(program, tmp_path)
    assert [info.shares for info in model.outputs if info.name in ("keys", "values")] == ["keys", "values"]
    state, own = model.state(), program.module()
    for place in (0, 1, 2, -1, 3):
        x, first = torch.randn(1, 1, 16), torch.tensor([place])
        with torch.no_grad():
            expected = own(x, first)
        result = state.run({"x": x.numpy(), "first": first.numpy()})["output"]
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.arrays["values"], own.values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
def test_buffers_of_one_number(tmp_path: Path, dtype: str) -> None:
    """What all elements are at first is what the input is where it is not given."""
    kind = getattr(torch, dtype)

    class Kept(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("last", torch.full((3,), 1, dtype=kind))

        def forward(self, x: Any) -> Any:
            before = self.last.clone()
            self.last.copy_(x)
            return before

    model = compiled(export(Kept(), (torch.zeros(3, dtype=kind),)), tmp_path)
    assert model.inputs[1].default == 1 and model.inputs[1].name == "last"
    x = np.array([0, 1, 0]).astype(model(np.zeros(3, model.state().arrays["last"].dtype))[0].dtype)
    state = model.state()
    np.testing.assert_array_equal(state.run({"x": x})["output"].astype(float), [1, 1, 1])
    np.testing.assert_array_equal(state.run({"x": x})["output"].astype(float), [0, 1, 0])
    np.testing.assert_array_equal(model(x)[0].astype(float), [1, 1, 1])


def test_buffers_of_several_numbers(tmp_path: Path) -> None:
    """Their first values are given, and a run of the model alone needs them."""
    first = torch.arange(3.0)
    model = compiled(export(Counting(first.clone()), (torch.zeros(3),)), tmp_path)
    assert model.inputs[1].default is None
    with pytest.raises(ArgumentError, match=r"'count' .*has no default: give its first value"):
        model.state()
    with pytest.raises(ArgumentError, match="needs the inputs count"):
        model(np.zeros(3, np.float32))
    state = model.state({"count": first.numpy()})
    for number in (1, 2):
        np.testing.assert_array_equal(state.run({"x": np.zeros(3, np.float32)})["output"], first.numpy() + number)
    np.testing.assert_array_equal(first, [0, 1, 2])


def test_changed_inputs(tmp_path: Path) -> None:
    """The new contents of an input are a result of its name, behind the others."""

    class Doubled(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            x *= 2
            return x + y

    model = compiled(export(Doubled(), (torch.ones(3), torch.ones(3))), tmp_path)
    assert [(info.name, info.continues) for info in model.outputs] == [("output", ""), ("x", "x")]
    results = model.run({"x": np.full(3, 4, np.float32), "y": np.ones(3, np.float32)})
    np.testing.assert_array_equal(results["output"], [9, 9, 9])
    np.testing.assert_array_equal(results["x"], [8, 8, 8])


def test_names_that_occur_twice(tmp_path: Path) -> None:
    """A buffer with the name of an input, and a result with that of a buffer."""

    class Named(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("x", torch.zeros(2))
            self.register_buffer("sum", torch.zeros(2))

        def forward(self, x: Any) -> Any:
            self.x.copy_(x)
            self.sum.add_(x)
            return {"sum": self.sum * 10}

    model = compiled(export(Named(), (torch.ones(2),)), tmp_path)
    assert [info.name for info in model.inputs] == ["x", "b_x", "sum"]
    assert [(info.name, info.continues) for info in model.outputs] == [("sum", ""), ("b_x", "b_x"), ("sum_next", "sum")]
    state = model.state()
    for number in (1, 2):
        results = state.run({"x": np.ones(2, np.float32)})
        np.testing.assert_array_equal(results["sum"], [10 * number] * 2)
    assert sorted(state.arrays) == ["b_x", "sum"]


def test_states_of_tensors(tmp_path: Path) -> None:
    """The first arrays of a state may be PyTorch's; rows of a buffer without a batch stay where they are."""

    class Kept(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("rows", torch.zeros(6, 4))

        def forward(self, x: Any, place: Any) -> Any:
            self.rows.index_copy_(0, place, x)
            return self.rows.sum(0)

    model = compiled(export(Kept(), (torch.ones(1, 4), torch.tensor([2]))), tmp_path)
    assert model.outputs[1].shares == "rows"
    first = model.state({"rows": torch.ones(6, 4)})
    second = first.copy()
    for state in (first, second):
        state.run({"x": torch.zeros(1, 4), "place": torch.tensor([1])})
    rows = second.arrays["rows"]
    second.run({"x": torch.full((1, 4), 5.0), "place": torch.tensor([2])})
    assert second.arrays["rows"] is rows
    assert (first.arrays["rows"].sum(), rows.sum()) == (20, 36)


def test_changed_parameters(tmp_path: Path) -> None:
    class Learning(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.full((2,), 3.0))

        def forward(self, x: Any) -> Any:
            y = x * self.scale
            with torch.no_grad():
                self.scale.add_(1)
            return y

    program = export(Learning(), (torch.ones(2),))  # which PyTorch cannot read from a file
    model = mlc.compile(program, output=tmp_path / "model.so")
    assert [(info.name, info.default) for info in model.inputs] == [("x", None), ("scale", 3.0)]
    state = model.state()
    for factor in (3, 4, 5):
        np.testing.assert_array_equal(state.run({"x": np.ones(2, np.float32)})["output"], [factor] * 2)


def test_tensors_that_are_no_buffers(tmp_path: Path) -> None:
    """What the export captures as a constant cannot change; the error says what to do."""

    class Holder:
        def __init__(self) -> None:
            self.kept = torch.zeros(2)

    class Captured(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.holder = Holder()

        def forward(self, x: Any) -> Any:
            self.holder.kept.add_(x)
            return self.holder.kept * 2

    program = export(Captured(), (torch.ones(2),), strict=False)
    with pytest.raises(ModelError, match=r"changes lifted_tensor_0 in place, which the export took for constants.*buffers"):
        compiled(program, tmp_path)
