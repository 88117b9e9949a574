"""What runs continue: inputs with defaults, outputs that the next run gets, and the `State` that keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.cli import run
from mlc.runtime import ArgumentError, InputError
from mlc.runtime.loader import read_metadata
from mlc.runtime.state import State

# A cache of rows that are inserted at `place`, a counter, and the sum of all rows so far.
PROGRAM = """
func.func @forward(%x: tensor<?x1x4xf32> {mlc.name = "x", mlc.dims = ["batch", "", ""]},
                   %place: tensor<1xi64> {mlc.name = "place"},
                   %cache: tensor<?x6x4xf32> {mlc.name = "cache", mlc.dims = ["batch", "", ""], mlc.default = 0.0 : f64},
                   %runs: tensor<i32> {mlc.name = "runs", mlc.default = 7 : i64})
    -> (tensor<?x4xf32> {mlc.name = "sum"}, tensor<?x6x4xf32> {mlc.name = "cache", mlc.continues = "cache"},
        tensor<i32> {mlc.name = "runs_next", mlc.continues = "runs"}) {
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %cache, %c0 : tensor<?x6x4xf32>
  %starts = mlc.broadcast %place [%batch] : tensor<1xi64> -> tensor<?xi64>
  %new = mlc.insert %cache, %x, %starts {axis = 1 : i64} : tensor<?x6x4xf32>, tensor<?x1x4xf32>, tensor<?xi64> -> tensor<?x6x4xf32>
  %sum = mlc.reduce sum %new {axes = array<i64: 1>, keepdims = false} : tensor<?x6x4xf32> -> tensor<?x4xf32>
  %one = mlc.constant dense<1> : tensor<i32>
  %more = mlc.binary add %runs, %one : tensor<i32>
  return %sum, %new, %more : tensor<?x4xf32>, tensor<?x6x4xf32>, tensor<i32>
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state")
    (folder / "model.mlir").write_text(PROGRAM)
    mlc.compile(folder / "model.mlir", output=folder / "model.so", from_phase="import", load=False)
    return folder / "model.so"


def test_metadata(library: Path) -> None:
    [entry] = read_metadata(library)["entries"]
    defaults = {value["name"]: value.get("default") for value in entry["inputs"]}
    assert defaults == {"x": None, "place": None, "cache": 0.0, "runs": 7}
    told = {value["name"]: (value.get("continues"), value.get("shares")) for value in entry["outputs"]}
    assert told == {"sum": (None, None), "cache": ("cache", "cache"), "runs_next": ("runs", None)}


def test_runs_that_continue(library: Path) -> None:
    """Caches stay where they are, counters are taken as they come, and the other outputs are returned."""
    state = mlc.load(library).state(dims={"batch": 2})
    assert {name: (a.shape, a.dtype.name) for name, a in state.arrays.items()} == {
        "cache": ((2, 6, 4), "float32"),
        "runs": ((), "int32"),
    }
    cache, rows = state.arrays["cache"], np.arange(16, dtype=np.float32).reshape(2, 2, 1, 4)
    for number, x in enumerate(rows):
        results = state.run({"x": x, "place": np.array([number])})
        assert list(results) == ["sum"]
        np.testing.assert_array_equal(results["sum"], rows[: number + 1].sum((0, 2)))
    assert state.arrays["cache"] is cache and state.arrays["runs"] == 9
    np.testing.assert_array_equal(cache[:, :2], rows[:, :, 0].swapaxes(0, 1))
    assert not cache[:, 2:].any()


def test_copies_go_their_own_way(library: Path) -> None:
    first = mlc.load(library).state(dims={"batch": 1})
    first.run({"x": np.ones((1, 1, 4), np.float32), "place": np.array([0])})
    second = first.copy()
    given = {"x": np.full((1, 1, 4), 5, np.float32), "place": np.array([1])}
    np.testing.assert_array_equal(second.run(given)["sum"], [[6] * 4])
    np.testing.assert_array_equal(first.arrays["cache"].sum(1), [[1] * 4])
    assert (first.arrays["runs"], second.arrays["runs"]) == (8, 9)


def test_first_values(library: Path) -> None:
    """The caller's arrays are continued where they are; what they leave out has the default."""
    cache = np.ones((1, 6, 4), np.float32)
    state = mlc.load(library).state({"cache": cache})
    state.run({"x": np.zeros((1, 1, 4), np.float32), "place": np.array([5])})
    assert state.arrays["cache"] is cache and not cache[0, 5].any() and cache[0, :5].all() and state.arrays["runs"] == 8


def test_a_failure_keeps_the_state(library: Path) -> None:
    state = mlc.load(library).state(dims={"batch": 2})
    with pytest.raises(InputError, match="batch"):
        state.run({"x": np.zeros((3, 1, 4), np.float32), "place": np.array([0])})
    assert state.arrays["runs"] == 7 and not state.arrays["cache"].any()


def test_inputs_with_defaults_may_be_left_out(library: Path) -> None:
    """A run of the model alone begins anew; where the extents are not known, the array is needed."""
    model = mlc.load(library)
    given = {"x": np.ones((1, 1, 4), np.float32), "place": np.array([0]), "cache": np.ones((1, 6, 4), np.float32)}
    for _ in range(2):
        results = model.run(given)
        assert results["runs_next"] == 8 and results["cache"] is not given["cache"]
    with pytest.raises(ArgumentError, match="needs the inputs cache"):
        model.run({"x": given["x"], "place": given["place"]})


def test_what_is_refused(library: Path, tmp_path: Path) -> None:
    model = mlc.load(library)
    with pytest.raises(ArgumentError, match=r"'cache' is float32\[batch,6,4\].*extents are not known.*dims="):
        model.state()
    with pytest.raises(ArgumentError, match="'x' is no part of the state of entry 'forward', which is: cache, runs"):
        model.state({"x": np.zeros(3)})
    text = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n %y = mlc.unary exp %x : tensor<2xf32>\n return %y : tensor<2xf32> }"
    (tmp_path / "plain.mlir").write_text(text)
    plain = mlc.compile(tmp_path / "plain.mlir", output=tmp_path / "plain.so", from_phase="import")
    with pytest.raises(ArgumentError, match="entry 'f' has no state"):
        plain.state()


def test_in_mlc_run(library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what continues what, and begins with the defaults."""
    assert run.main([str(library), "--info"]) == 0
    told = capsys.readouterr().out
    assert "int32[], 7 if not given" in told and "int32[], continues runs" in told and "may share cache" in told
    saved = tmp_path / "out.npz"
    assert run.main([str(library), "--input", "place=0", "--input", "x=ones", "--save", str(saved)]) == 0
    with np.load(saved) as outputs:
        assert outputs["runs_next"] == 8 and outputs["cache"].sum() == 4


class OnTheGpu:
    """As much of a tensor of PyTorch on a GPU as a state needs."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def new_empty(self, shape: tuple[int, ...]) -> OnTheGpu:
        return OnTheGpu(shape)


def test_tensors_of_a_gpu_take_turns(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run makes a new one but the first, and none is given both as an input and for the output that continues it."""
    monkeypatch.setattr("mlc.runtime.state.is_cuda_tensor", lambda value: isinstance(value, OnTheGpu))
    entry = mlc.load(library).entry()
    given: list[tuple[Any, Any]] = []

    def recorded(inputs: dict[str, Any], *, out: list[Any], stream: int | None) -> dict[str, Any]:
        del stream
        given.append((inputs["cache"], out[1]))
        return {"sum": "sum", "cache": out[1], "runs_next": out[2]}

    monkeypatch.setattr(entry, "run", recorded)
    first = {"cache": OnTheGpu((1, 6, 4)), "runs": OnTheGpu(())}
    state = State(entry, first)
    for _ in range(4):
        assert state.run({"x": 0, "place": 0}) == {"sum": "sum"}
    assert given[0][0] is first["cache"] and given[0][1].shape == (1, 6, 4)
    assert [a for a, _ in given] == [given[0][0], given[0][1]] * 2
    assert [b for _, b in given] == [given[0][1], given[0][0]] * 2
