"""Support vector machines (`ai.onnx.ml`): kernels of rows and support vectors, and votes of all pairs of classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlc.frontends.common import control_flow, linalg, reduction, shape
from mlc.frontends.common import elementwise as ew
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
    """The class with the most votes of all pairs, and the decisions of all pairs, or the probabilities of all classes
    where the model has parameters for them; without support vectors the class with the best linear score."""
    b, x = g.b, _features(g.b, node)
    labels = list(node.attr("classlabels_ints") or node.attr("classlabels_strings") or [])
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
    if node.attr("prob_a"):
        scores = _probabilities(b, node, decisions, len(labels))
    elif len(labels) == 2:
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


def _probabilities(b: Builder, node: Node, decisions: Tensor, classes: int) -> Tensor:
    """The probability of each class: Platt's of all pairs, coupled. `[rows, pairs]` to `[rows, classes]`.

    As libsvm (`sigmoid_predict`, `multiclass_probability`; Wu, Lin and Weng 2004, algorithm 2) and onnxruntime.
    """
    slope, offset = (np.asarray(node.required(name), np.float32) for name in ("prob_a", "prob_b"))
    inner = ew.binary(b, "add", ew.binary(b, "mul", decisions, b.constant(slope)), b.constant(offset))
    first = ew.unary(b, "sigmoid", ew.unary(b, "neg", inner))
    first = ew.clamp(b, first, b.like(1e-7, first), b.like(1 - 1e-7, first))
    second = ew.binary(b, "sub", b.like(1, first), first)
    # Row i, column j of a matrix is the probability of i in the decision between i and j, zero for i = j.
    names = [(one, other) for one in range(classes) for other in range(one + 1, classes)]
    upper = np.zeros([len(names), classes * classes], np.float32)
    lower = np.zeros_like(upper)
    for place, (one, other) in enumerate(names):
        upper[place, one * classes + other] = lower[place, other * classes + one] = 1
    pairs = ew.binary(b, "add", linalg.matmul(b, first, b.constant(upper)), linalg.matmul(b, second, b.constant(lower)))
    matrix = shape.reshape(b, pairs, [b.dim(pairs, 0), classes, classes])
    swapped = shape.transpose(b, matrix, [0, 2, 1])
    own = reduction.reduce(b, "sum", ew.binary(b, "mul", swapped, swapped), [2], False)
    diagonal = b.constant(np.eye(classes, dtype=np.float32))
    squares = ew.binary(b, "mul", shape.unsqueeze(b, own, [2]), diagonal)
    return _coupled(b, ew.binary(b, "sub", squares, ew.binary(b, "mul", matrix, swapped)), own, classes)


def _coupled(b: Builder, matrix: Tensor, own: Tensor, classes: int) -> Tensor:
    """The shares p of all classes that minimise p Q p for each Q of `matrix [rows, classes, classes]`, whose diagonals
    are `own`: at most 100 rounds, which a row is no longer part of once it is near enough.
    """
    start = shape.full(b, [b.dim(own, 0), classes], b.constant(np.float32(1 / classes)))
    limit = b.constant(np.float32(0.005 / classes))

    def errors(shares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Q p, p Q p, and which rows are still too far from equal."""
        products = shape.squeeze(b, linalg.matmul(b, matrix, shape.unsqueeze(b, shares, [2])), [2])
        total = reduction.reduce(b, "sum", ew.binary(b, "mul", shares, products), [1], True)
        far = reduction.reduce(b, "max", ew.unary(b, "abs", ew.binary(b, "sub", products, total)), [1], True)
        return products, total, ew.compare(b, "ge", far, limit)

    def step(_: Tensor, going: Tensor, values: Sequence[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        [shares] = values
        products, total, far = errors(shares)
        better = _round(b, matrix, own, (shares, products, total), classes)
        following = ew.select(b, far, better, shares)
        return reduction.reduce(b, "max", far, [0, 1], False), [following], []

    rounds, going = b.constant(np.int64(100)), b.constant(np.array(True))
    return control_flow.while_(b, rounds, going, [start], step)[0]


def _round(b: Builder, matrix: Tensor, own: Tensor, state: tuple[Tensor, Tensor, Tensor], classes: int) -> Tensor:
    """One step for each class in turn, each followed by a division that makes the shares' sum 1 again."""

    def step(number: Tensor, values: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        shares, products, total = values
        square = shape.unsqueeze(b, control_flow.take(b, own, 1, number, False), [1])
        mine = shape.unsqueeze(b, control_flow.take(b, products, 1, number, False), [1])
        change = ew.binary(b, "div", ew.binary(b, "sub", total, mine), square)
        sum_ = ew.binary(b, "add", b.like(1, change), change)
        here = ew.compare(b, "eq", b.constant(np.arange(classes)), number)
        shares = ew.binary(b, "add", shares, ew.select(b, here, change, b.like(0, change)))
        inner = ew.binary(b, "add", ew.binary(b, "mul", change, square), ew.scaled(b, mine, 2.0))
        total = ew.binary(b, "add", total, ew.binary(b, "mul", change, inner))
        column = ew.binary(b, "mul", change, control_flow.take(b, matrix, 1, number, False))
        products = ew.binary(b, "add", products, column)
        total = ew.binary(b, "div", ew.binary(b, "div", total, sum_), sum_)
        return [ew.binary(b, "div", shares, sum_), ew.binary(b, "div", products, sum_), total], []

    return control_flow.for_(b, classes, state, step)[0]
