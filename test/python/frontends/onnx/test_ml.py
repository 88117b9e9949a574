"""Classical models against onnxruntime: random trees and linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from harness import evaluated, reference
from onnx import TensorProto, helper

RNG = np.random.default_rng(11)
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]


def model(op: str, outputs: list[tuple[str, int, list[Any]]], features: int = 5, **attributes: Any) -> onnx.ModelProto:
    """One `ai.onnx.ml` node."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", features])
    node = helper.make_node(op, ["x"], [name for name, _, _ in outputs], domain="ai.onnx.ml", **attributes)
    values = [helper.make_tensor_value_info(*output) for output in outputs]
    return helper.make_model(helper.make_graph([node], "ml", [x], values), opset_imports=OPSETS, ir_version=8)


def random_trees(count: int, depth: int, mixed: bool) -> tuple[dict[str, list[Any]], list[tuple[int, int]]]:
    """Complete trees in the classic encoding, and the names of their leaves."""
    columns: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    }
    leaves = []
    for tree in range(count):
        inner = 2**depth - 1
        mode = str(RNG.choice(MODES)) if mixed else "BRANCH_LEQ"
        for number in range(2 * inner + 1):
            leaf = number >= inner
            if leaf:
                leaves.append((tree, number))
            row = (
                tree,
                number,
                0 if leaf else int(RNG.integers(5)),
                0.0 if leaf else float(RNG.normal()),
                "LEAF" if leaf else mode,
                0 if leaf else 2 * number + 1,
                0 if leaf else 2 * number + 2,
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return columns, leaves


def agree(proto: onnx.ModelProto, *, missing: bool = False) -> None:
    """Two batches give what onnxruntime gives."""
    for rows in (1, 40):
        x = RNG.standard_normal([rows, 5]).astype(np.float32)
        if missing:
            x[RNG.random(x.shape) < 0.2] = np.nan
        for got, want in zip(evaluated(proto, {"x": x}), reference(proto, {"x": x}), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("mixed", [False, True])
def test_tree_regressor(kind: str, mixed: bool) -> None:
    """Several targets, aggregated in every way."""
    trees, leaves = random_trees(6, 3, mixed)
    weights = {
        "target_treeids": [tree for tree, _ in leaves],
        "target_nodeids": [node for _, node in leaves],
        "target_ids": [int(RNG.integers(2)) for _ in leaves],
        "target_weights": [float(RNG.normal()) for _ in leaves],
    }
    outputs = [("y", TensorProto.FLOAT, ["N", 2])]
    agree(model("TreeEnsembleRegressor", outputs, n_targets=2, aggregate_function=kind, **trees, **weights))


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("missing", [False, True])
def test_tree_classifier(transform: str, missing: bool) -> None:
    """Three classes; missing values follow the false branch or the tracked one."""
    trees, leaves = random_trees(5, 3, False)
    tracks = [int(RNG.integers(2)) if mode != "LEAF" else 0 for mode in trees["nodes_modes"]]
    weights = {
        "class_treeids": [tree for tree, _ in leaves],
        "class_nodeids": [node for _, node in leaves],
        "class_ids": [int(RNG.integers(3)) for _ in leaves],
        # Positive: onnxruntime never chooses a class that no leaf speaks for, even if all others score below zero.
        "class_weights": [float(RNG.uniform(0.1, 1)) for _ in leaves],
    }
    outputs = [("label", TensorProto.INT64, ["N"]), ("scores", TensorProto.FLOAT, ["N", 3])]
    options = {"nodes_missing_value_tracks_true": tracks} if missing else {}
    labels = {"classlabels_int64s": [10, 20, 30], "post_transform": transform}
    agree(model("TreeEnsembleClassifier", outputs, **trees, **weights, **labels, **options), missing=missing)


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_binary_tree_classifier(transform: str, positive: bool) -> None:
    """Two classes with one column of weights: probabilities, as a random forest has them, or scores."""
    trees, leaves = random_trees(5, 3, False)
    weights = {
        "class_treeids": [tree for tree, _ in leaves],
        "class_nodeids": [node for _, node in leaves],
        "class_ids": [0 for _ in leaves],
        "class_weights": [float(RNG.uniform(0 if positive else -0.2, 0.2)) for _ in leaves],
    }
    outputs = [("label", TensorProto.INT64, ["N"]), ("scores", TensorProto.FLOAT, ["N", 2])]
    labels = {"classlabels_int64s": [0, 1], "post_transform": transform}
    agree(model("TreeEnsembleClassifier", outputs, **trees, **weights, **labels))


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("classes", [2, 4])
def test_linear_classifier(transform: str, classes: int) -> None:
    """Rows of coefficients for each class."""
    outputs = [("label", TensorProto.INT64, ["N"]), ("scores", TensorProto.FLOAT, ["N", classes])]
    attributes = {
        "coefficients": RNG.standard_normal(classes * 5).tolist(),
        "intercepts": RNG.standard_normal(classes).tolist(),
        "classlabels_ints": list(range(3, 3 + classes)),
        "post_transform": transform,
    }
    agree(model("LinearClassifier", outputs, **attributes))


@pytest.mark.parametrize("targets", [1, 3])
def test_probit(targets: int) -> None:
    """Probabilities on both sides of one half become quantiles of the normal distribution."""
    attributes = {
        "coefficients": (RNG.uniform(-0.02, 0.02, targets * 5)).tolist(),
        "intercepts": [0.25, 0.8, 0.3][:targets],  # onnxruntime cancels most digits near 0.5
        "targets": targets,
        "post_transform": "PROBIT",
    }
    agree(model("LinearRegressor", [("y", TensorProto.FLOAT, ["N", targets])], **attributes))


def test_linear_regressor_and_preparation() -> None:
    """Regression, scaling, normalising, imputing, and extraction of features."""
    y = [("y", TensorProto.FLOAT, ["N", 2])]
    coefficients = RNG.standard_normal(10).tolist()
    agree(model("LinearRegressor", y, targets=2, coefficients=coefficients, intercepts=[1.0, -2.0]))
    same = [("y", TensorProto.FLOAT, ["N", 5])]
    agree(model("Scaler", same, offset=[0.5, 1, 2, 3, 4], scale=[2.0, 3, 4, 5, 6]))
    for norm in ("MAX", "L1", "L2"):
        if norm != "MAX":
            agree(model("Normalizer", same, norm=norm))
    imputed = model("Imputer", same, imputed_value_floats=[1.0, 2, 3, 4, 5], replaced_value_float=float("nan"))
    agree(imputed, missing=True)
