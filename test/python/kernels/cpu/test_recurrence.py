"""Recurrent layers whose steps are one kernel: what they give, and which layers have one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from models.processors import skip_unless_it_runs
from models.recurrent import Layer
from onnx import TensorProto

import mlc

LINEAR: dict[str, Any] = {"linear_before_reset": 1}
RELU: dict[str, Any] = {"activations": ["Relu"]}
CPUS = ["native", "x86-64-v3", "x86-64-v2"]
LAYERS = {
    "lstm": Layer("LSTM", 32),
    "lstm_back": Layer("LSTM", 21, direction="reverse", states=True),
    "lstm_both": Layer("LSTM", 18, direction="bidirectional", states=True, lengths=True),
    "gru_both": Layer("GRU", 24, direction="bidirectional", lengths=True, attributes=LINEAR),
    "gru": Layer("GRU", 7, states=True, bias=False, attributes=LINEAR),
    "tanh": Layer("RNN", 33, direction="bidirectional", states=True),
    "relu": Layer("RNN", 16, lengths=True, attributes=RELU),
}


def compiled(layer: Layer, tmp_path: Path, steps: int | str, batch: int | str, **options: Any) -> tuple[Any, list[Any]]:
    """The model, and its kernels as the report has them."""
    report, element = tmp_path / "r.json", options.pop("element", TensorProto.FLOAT)
    model = mlc.compile(layer.model(steps, batch, element), output=tmp_path / "m.so", report=report, **options)
    return model, json.loads(report.read_text())["kernels"]


def check(layer: Layer, model: Any, steps: int, batch: int, tolerance: float = 2e-6) -> None:
    """What `model` gives for a sequence, each result relative to its largest element."""
    given = layer.inputs(steps, batch)
    for result, want in zip(model(*given), layer.expected(given), strict=True):
        assert result.shape == want.shape
        np.testing.assert_allclose(result, want, rtol=0, atol=tolerance * max(1.0, np.max(np.abs(want), initial=0)))


def _bf16(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


def check_rounded(layer: Layer, model: Any, steps: int, batch: int, states: bool = True) -> None:
    """The same for products of bf16. A state that is next to the middle between two numbers may be rounded to either, and
    what comes of it as well."""
    given = layer.inputs(steps, batch)
    wanted = layer.expected(given, _bf16, *[_bf16] * states)
    for result, want in zip(model(*given), wanted, strict=True):
        error = np.abs(result - want) / max(1.0, np.max(np.abs(want), initial=0))
        assert np.max(error, initial=0) <= 1e-2 and np.sum(error) <= 2e-4 * max(1, error.size)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", LAYERS)
def test_any_number_of_rows(tmp_path: Path, name: str, cpu: str) -> None:
    """Whole work items, what is left of one in every way, no rows, no steps."""
    skip_unless_it_runs(cpu)
    layer = LAYERS[name]
    model, kernels = compiled(layer, tmp_path, "steps", "batch", cpu=cpu)
    assert [k["template"] for k in kernels if k["template"] == "recurrence"]
    for steps, batch in ((4, 1), (5, 2), (3, 3), (1, 7), (6, 9), (0, 2), (2, 0)):
        check(layer, model, steps, batch)


@pytest.mark.parametrize("batch", [1, 6, 11, 16])
def test_known_number_of_rows(tmp_path: Path, batch: int) -> None:
    layer = LAYERS["lstm_both"]
    model, kernels = compiled(layer, tmp_path, 5, batch)
    assert {k["template"] for k in kernels} >= {"recurrence"}
    check(layer, model, 5, batch)


@pytest.mark.parametrize("cpu", ["znver4", "x86-64-v3"])
@pytest.mark.parametrize("name", LAYERS)
def test_bf16(tmp_path: Path, name: str, cpu: str) -> None:
    """Pairs are multiplied by `vdpbf16ps`; processors without it multiply f32, as they do in other loops of a step."""
    skip_unless_it_runs(cpu)
    layer = LAYERS[name]
    model, kernels = compiled(layer, tmp_path, "steps", "batch", cpu=cpu, precision="bf16")
    [schedule] = [k["schedule"] for k in kernels if k["template"] == "recurrence"]
    assert schedule["group"] == (2 if cpu == "znver4" else 1)
    for steps, batch in ((4, 1), (5, 2), (3, 3), (1, 7), (6, 9), (0, 2), (2, 0)):
        check_rounded(layer, model, steps, batch, states=cpu == "znver4")


def test_one_kernel(tmp_path: Path) -> None:
    """The products of both directions' inputs are one, and the order of what is put out costs nothing."""
    layer = Layer("LSTM", 16, direction="bidirectional")
    _, kernels = compiled(layer, tmp_path, 6, 1)
    assert [k["template"] for k in kernels] == ["contraction", "recurrence"]
    assert kernels[1]["flops"] == 2 * 6 * (2 * 4 * 16) * 16  # steps, sums of both directions, elements of the state


@pytest.mark.parametrize("threads", [1, 2])
def test_threads(tmp_path: Path, threads: int) -> None:
    """Rows of every thread, with the same bits whoever has them."""
    layer = Layer("GRU", 40, direction="bidirectional", attributes=LINEAR)
    compiled(layer, tmp_path, 30, 16)
    given = layer.inputs(30, 16)
    one, several = (mlc.load(tmp_path / "m.so", threads=n)(*given) for n in (1, threads))
    for a, b in zip(one, several, strict=True):
        np.testing.assert_array_equal(a, b)


def test_half_precision(tmp_path: Path) -> None:
    """Weights and states are f32 from step to step; the results alone are rounded."""
    layer = Layer("GRU", 32, attributes=LINEAR)
    model, kernels = compiled(layer, tmp_path, 6, 3, element=TensorProto.FLOAT16)
    assert [k["template"] for k in kernels if k["template"] == "recurrence"]
    given = layer.inputs(6, 3)
    for result, want in zip(model(*(v.astype(np.float16) for v in given)), layer.expected(given), strict=True):
        np.testing.assert_allclose(result, want, rtol=0, atol=4e-3)


@pytest.mark.parametrize(
    ("layer", "batch"),
    [
        (
            Layer("GRU", 16, direction="bidirectional", attributes={"linear_before_reset": 0}),
            4,
        ),  # gates reset the state before its product
        (Layer("LSTM", 16, attributes={"clip": 0.5}), 4),
        (Layer("RNN", 16, attributes={"activations": ["Sigmoid"]}), 4),
        (Layer("LSTM", 128), 1),  # threads share the product of a step
        (Layer("LSTM", 128), "batch"),  # one row may be all
        (Layer("LSTM", 320), 4),  # weights that are too large for a core
    ],
)
def test_stays_a_loop(tmp_path: Path, layer: Layer, batch: int | str) -> None:
    model, kernels = compiled(layer, tmp_path, 7, batch)
    assert not [k for k in kernels if k["template"] == "recurrence"]
    if not layer.attributes:
        check(layer, model, 7, 4 if batch == "batch" else int(batch), 4e-6)
