"""Support vector machines (`ai.onnx.ml`): kernels of rows and support vectors, and votes of all pairs of classes."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import linalg, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.ml import ML, labels_of, transformed
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError


def _kernel(b: Builder, node: Node, x: Tensor, vectors: np.ndarray) -> Tensor:
    """The kernel of each row of `x` and each of `vectors [count, features]`: `[rows, count]`."""
    gamma, offset, degree = [float(v) for v in node.attr("kernel_params") or [1.0, 0.0, 3.0]]
    kind = node.attr("kernel_type", "LINEAR")
    weights = b.constant(vectors, x.dtype)
    if kind == "RBF":
        rows, others = shape.unsqueeze(b, x, [1]), b.constant(vectors[None], x.dtype)
        square = reduction.statistic(b, "sum_square", ew.binary(b, "sub", rows, others), [2], False)
        return ew.unary(b, "exp", ew.scaled(b, square, -gamma))
    product = linalg.matmul(b, x, weights, transpose_rhs=True)
    if kind == "LINEAR":
        return product
    inner = ew.binary(b, "add", ew.scaled(b, product, gamma), b.like(offset, x))
    if kind == "SIGMOID":
        return ew.unary(b, "tanh", inner)
    if kind == "POLY":
        return ew.binary(b, "pow", inner, b.like(degree, x))
    raise NodeError(f"the kernel {kind} is not supported", "use LINEAR, POLY, RBF or SIGMOID")


def _features(b: Builder, node: Node) -> Tensor:
    x = ew.cast(b, node[0], "float32")
    return shape.unsqueeze(b, x, [0]) if x.rank == 1 else x


@onnx_op("SVMRegressor", domain=ML)
def regressor(g: GraphImporter, node: Node) -> Tensor:
    """The weighted sum of kernels plus rho; for one class its sign."""
    b, x = g.b, _features(g.b, node)
    count = int(node.attr("n_supports", 0))
    coefficients = np.asarray(node.required("coefficients"), np.float32)
    rho = float((node.attr("rho") or [0.0])[0])
    if count:
        vectors = np.asarray(node.required("support_vectors"), np.float32).reshape(count, -1)
        kernels = _kernel(b, node, x, vectors)
        y = linalg.matmul(b, kernels, b.constant(coefficients.reshape(count, 1), x.dtype))
    else:
        y = _kernel(b, node, x, coefficients.reshape(1, -1))
    y = ew.binary(b, "add", y, b.like(rho, x))
    if node.attr("one_class", 0):
        y = ew.select(b, ew.compare(b, "gt", y, b.like(0, y)), b.like(1, y), b.like(-1, y))
    return transformed(b, y, node.attr("post_transform", "NONE"))


def _pairs(node: Node, classes: int, count: int) -> np.ndarray:
    """The weights of the support vectors in the decision between each pair of classes: `[pairs, count]`."""
    sizes = [int(size) for size in node.required("vectors_per_class")]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    coefficients = np.asarray(node.required("coefficients"), np.float32).reshape(-1, count)
    rows = []
    for first in range(classes):
        for second in range(first + 1, classes):
            row = np.zeros(count, np.float32)
            one, other = slice(starts[first], starts[first + 1]), slice(starts[second], starts[second + 1])
            row[one], row[other] = coefficients[second - 1, one], coefficients[first, other]
            rows.append(row)
    return np.stack(rows)


@onnx_op("SVMClassifier", domain=ML)
def classifier(g: GraphImporter, node: Node) -> list[Tensor]:
    """The class with the most votes of all pairs, and the pairs' decisions; without support vectors the class with the
    best linear score."""
    b, x = g.b, _features(g.b, node)
    labels = list(node.attr("classlabels_ints") or node.attr("classlabels_strings") or [])
    if node.attr("prob_a") or node.attr("prob_b"):
        raise NodeError("probabilities of a support vector machine are not supported", "export the decision function")
    vectors = np.asarray(node.attr("support_vectors") or [], np.float32)
    rho = np.asarray(node.required("rho"), np.float32)
    kind = node.attr("post_transform", "NONE")
    if not vectors.size:
        weights = np.asarray(node.required("coefficients"), np.float32).reshape(len(labels), -1)
        scores = ew.binary(b, "add", _kernel(b, node, x, weights), b.like(float(rho[0]), x))
        return [labels_of(b, scores, labels), transformed(b, scores, kind)]
    count = int(sum(node.required("vectors_per_class")))
    pairs = _pairs(node, len(labels), count)
    kernels = _kernel(b, node, x, vectors.reshape(count, -1))
    decisions = linalg.matmul(b, kernels, b.constant(pairs, x.dtype), transpose_rhs=True)
    decisions = ew.binary(b, "add", decisions, b.constant(rho, x.dtype))
    best = _elected(b, decisions, len(labels))
    scores = decisions
    if len(labels) == 2:
        scores = shape.concat(b, [ew.unary(b, "neg", decisions), decisions], 1)
    return [labels_of(b, scores, labels, best), transformed(b, scores, kind)]


def _elected(b: Builder, decisions: Tensor, classes: int) -> Tensor:
    """The class with the most votes, the first of several: a positive decision is a vote for the first of its pair."""
    names = [(first, second) for first in range(classes) for second in range(first + 1, classes)]
    for_first = np.zeros([len(names), classes], np.float32)
    for_second = np.zeros([len(names), classes], np.float32)
    for place, (first, second) in enumerate(names):
        for_first[place, first] = for_second[place, second] = 1
    positive = ew.cast(b, ew.compare(b, "gt", decisions, b.like(0, decisions)), "float32")
    negative = ew.binary(b, "sub", b.like(1, positive), positive)
    votes = ew.binary(
        b,
        "add",
        linalg.matmul(b, positive, b.constant(for_first)),
        linalg.matmul(b, negative, b.constant(for_second)),
    )
    return reduction.arg_reduce(b, "max", votes, 1, False, False)
