"""Models that scikit-learn trains and skl2onnx exports, compared with onnxruntime. Needs both: `pip install mlc[sklearn]`."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

import mlc

skl2onnx = pytest.importorskip("skl2onnx", reason="the exporter; pip install mlc[sklearn]")
pytest.importorskip("sklearn", reason="trains the models; pip install mlc[sklearn]")

# What is trained: the classes in sklearn, one after the other in a pipeline, with their parameters.
MODELS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "logistic": [("linear_model.LogisticRegression", {"max_iter": 500})],
    "pipeline": [
        ("preprocessing.StandardScaler", {}),
        ("decomposition.PCA", {"n_components": 2}),
        ("linear_model.LogisticRegression", {}),
    ],
    "support": [("svm.SVC", {})],
    "support_likely": [("svm.SVC", {"probability": True, "random_state": 0})],
    "forest": [("ensemble.RandomForestClassifier", {"n_estimators": 8, "max_depth": 5, "random_state": 0})],
    "boosted": [("ensemble.GradientBoostingClassifier", {"n_estimators": 5, "random_state": 0})],
    "neighbors": [("neighbors.KNeighborsClassifier", {})],
    "bayes": [("naive_bayes.GaussianNB", {})],
    "counts": [("naive_bayes.MultinomialNB", {})],
    "perceptrons": [("neural_network.MLPClassifier", {"max_iter": 300, "random_state": 0})],
    "descent": [("linear_model.SGDClassifier", {"loss": "log_loss", "random_state": 0})],
    "calibrated": [("calibration.CalibratedClassifierCV", {})],
    "process": [("gaussian_process.GaussianProcessRegressor", {})],
    "outliers": [("neighbors.LocalOutlierFactor", {"novelty": True})],
    "isolated": [("ensemble.IsolationForest", {"n_estimators": 5, "random_state": 0})],
    "polynomials": [("preprocessing.PolynomialFeatures", {})],
    "quantiles": [("preprocessing.QuantileTransformer", {"n_quantiles": 20, "random_state": 0})],
}


def model_of(name: str) -> Any:
    """An untrained model."""
    steps = []
    for path, parameters in MODELS[name]:
        module, kind = path.rsplit(".", 1)
        steps.append(getattr(importlib.import_module(f"sklearn.{module}"), kind)(**parameters))
    return steps[0] if len(steps) == 1 else importlib.import_module("sklearn.pipeline").make_pipeline(*steps)


def samples(two: bool) -> tuple[np.ndarray, np.ndarray]:
    """Features and classes, of which there are two or three."""
    data = importlib.import_module("sklearn.datasets")
    x, y = data.load_breast_cancer(return_X_y=True) if two else data.load_iris(return_X_y=True)
    return x[:, :6], y


def agrees(model: Any, x: np.ndarray, y: np.ndarray) -> None:
    x = x.astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = skl2onnx.to_onnx(model.fit(x, y), x[:1], target_opset={"": 17, "ai.onnx.ml": 3})
    wanted = ort.InferenceSession(exported.SerializeToString()).run(None, {"X": x[:40]})
    got = list(mlc.compile(exported, cache=False).run({"X": x[:40]}).values())
    for have, want in zip(got, wanted, strict=True):
        if isinstance(want, list):
            keys = list(want[0])
            have, want = ([[row[key] for key in keys] for row in rows] for rows in (have, want))
        if np.asarray(want).dtype.kind == "f":
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("name", MODELS)
def test_three_classes(name: str) -> None:
    agrees(model_of(name), *samples(False))


@pytest.mark.parametrize("name", ["logistic", "support_likely", "forest", "boosted"])
def test_two_classes_and_words(name: str) -> None:
    agrees(model_of(name), *samples(True))
    x, y = samples(False)
    agrees(model_of(name), x, np.array(["setosa", "versicolor", "virginica"])[y])
