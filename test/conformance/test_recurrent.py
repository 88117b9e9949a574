"""Recurrent layers with activations that have parameters, and with coupled gates, against onnxruntime."""

from __future__ import annotations

from typing import Any

import pytest
from contrib_cases import Case, check, floats, identifier

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
HIDDEN, WIDTH = 4, 6


def layer(name: str, op: str, directions: int = 1, **attributes: Any) -> Case:
    """A layer of four hidden units on five steps of two sequences."""
    rows = GATES[op] * HIDDEN
    weights = [floats(directions, rows, WIDTH, scale=0.4), floats(directions, rows, HIDDEN, scale=0.4)]
    peepholes = [floats(directions, 3 * HIDDEN)] if op == "LSTM" else []
    states = [floats(directions, 2, HIDDEN)] * (2 if op == "LSTM" else 1)
    given = [floats(5, 2, WIDTH), *weights, floats(directions, 2 * rows), None, *states, *peepholes]
    named = {"hidden_size": HIDDEN, "direction": "bidirectional" if directions == 2 else "forward", **attributes}
    outputs = ("y", "h", "c") if op == "LSTM" else ("y", "h")
    return Case(name, op, given, named, [1, 2, 3], outputs, rtol=1e-3, atol=1e-4, domain="")


CASES = [
    layer("leaky", "RNN", activations=["LeakyRelu"], activation_alpha=[0.3]),
    layer("affine", "RNN", activations=["Affine"], activation_alpha=[0.4], activation_beta=[0.1]),
    layer("threshold", "RNN", activations=["ThresholdedRelu"], activation_alpha=[0.2]),
    layer("elu_and_softsign", "RNN", 2, activations=["Elu", "Softsign"], activation_alpha=[0.5]),
    layer("softplus", "RNN", activations=["Softplus"]),
    layer("hard", "GRU", activations=["HardSigmoid", "ScaledTanh"], activation_alpha=[0.3, 0.8], activation_beta=[0.4, 0.9]),
    layer("hard_both", "GRU", 2, activations=["HardSigmoid", "Tanh", "Sigmoid", "LeakyRelu"],
          activation_alpha=[0.3, 0.05], activation_beta=[0.6]),
    layer("coupled", "LSTM", input_forget=1),
    layer("coupled_both", "LSTM", 2, input_forget=1, clip=0.7),
    layer("relu", "LSTM", activations=["Sigmoid", "Relu", "HardSigmoid"], activation_alpha=[0.25], activation_beta=[0.5]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=identifier)
def test_matches_onnxruntime(case: Case) -> None:
    check(case)
