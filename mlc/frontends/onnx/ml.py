"""Classical machine learning (`ai.onnx.ml`): encoders, linear models and tree ensembles on numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, linalg, normalization, reduction, shape, text, trees
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.common.trees import LEAF, Forest
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

ML = "ai.onnx.ml"
_MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
_TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
_AGGREGATES = ["average", "sum", "min", "max"]
STRINGS = ("string labels are not supported", "use integer labels, and map them outside the model")


def _float(b: Builder, x: Tensor) -> Tensor:
    return x if x.dtype in ("float32", "float64") else ew.cast(b, x, "float32")


def _vector(node: Node, name: str) -> np.ndarray | None:
    """A list attribute, or its `_as_tensor` form."""
    tensor = node.attr(f"{name}_as_tensor")
    if isinstance(tensor, onnx.TensorProto):
        return onnx.numpy_helper.to_array(tensor)
    value = node.attr(name)
    return None if value is None or not len(value) else np.asarray(value)


@onnx_op("Scaler", domain=ML)
def scaler(g: GraphImporter, node: Node) -> Tensor:
    """(x - offset) * scale, a value for each feature or one for all."""
    b, x = g.b, _float(g.b, node[0])
    offset, scale = (np.asarray(node.required(name)) for name in ("offset", "scale"))
    return ew.binary(b, "mul", ew.binary(b, "sub", x, b.constant(offset, x.dtype)), b.constant(scale, x.dtype))


@onnx_op("Binarizer", domain=ML)
def binarizer(g: GraphImporter, node: Node) -> Tensor:
    """1 above the threshold, else 0."""
    x = node[0]
    return ew.cast(g.b, ew.compare(g.b, "gt", x, g.b.like(node.attr("threshold", 0.0), x)), x.dtype)


@onnx_op("Normalizer", domain=ML)
def normalizer(g: GraphImporter, node: Node) -> Tensor:
    """Rows divided by their largest magnitude, or 1- or 2-norm; rows of zeros stay."""
    b, x = g.b, _float(g.b, node[0])
    last = x.rank - 1
    kind = node.attr("norm", "MAX")
    if kind == "MAX":
        norm = reduction.reduce(b, "max", ew.unary(b, "abs", x), [last], True)
    else:
        norm = reduction.statistic(b, "l1" if kind == "L1" else "l2", x, [last], True)
    zero = ew.compare(b, "eq", norm, b.like(0, x))
    return ew.binary(b, "div", x, ew.select(b, zero, b.like(1, x), norm))


@onnx_op("Imputer", domain=ML)
def imputer(g: GraphImporter, node: Node) -> Tensor:
    """Replaces one value, which may be NaN, by a value for each feature."""
    b, x = g.b, node[0]
    suffix = ("float", "floats") if x.is_float else ("int64", "int64s")
    replaced = node.attr(f"replaced_value_{suffix[0]}", 0)
    new = b.constant(np.asarray(node.required(f"imputed_value_{suffix[1]}")), x.dtype)
    hit = ew.unary(b, "isnan", x) if np.isnan(replaced) else ew.compare(b, "eq", x, b.like(replaced, x))
    return ew.select(b, hit, new, x)


@onnx_op("ArrayFeatureExtractor", domain=ML)
def extractor(g: GraphImporter, node: Node) -> Tensor:
    """Elements of the last dimension, chosen by index."""
    b, x = g.b, node[0]
    indices = shape.reshape_codes(b, node[1], [-1])
    if x.rank == 1:
        x = shape.unsqueeze(b, x, [0])
    return indexing.gather(b, x, indices, x.rank - 1)


@onnx_op("FeatureVectorizer", domain=ML)
def vectorizer(g: GraphImporter, node: Node) -> Tensor:
    """The features of all inputs side by side, as float32."""
    columns = [ew.cast(g.b, x, "float32") for x in node.present()]
    rows = [shape.unsqueeze(g.b, x, [0]) if x.rank == 1 else x for x in columns]
    return shape.concat(g.b, rows, 1)


@onnx_op("OneHotEncoder", domain=ML)
def one_hot(g: GraphImporter, node: Node) -> Tensor:
    """1 at the place of the category in the list, along a new last dimension."""
    categories = node.attr("cats_int64s")
    if not categories:
        names = list(node.required("cats_strings"))
        place = shape.unsqueeze(g.b, text.lookup(g.b, node[0], names), [node[0].rank])
        return ew.cast(g.b, ew.compare(g.b, "eq", place, g.b.constant(np.arange(len(names)))), "float32")
    x = ew.cast(g.b, node[0], "int64")
    line = g.b.constant(np.asarray(categories, np.int64))
    return ew.cast(g.b, ew.compare(g.b, "eq", shape.unsqueeze(g.b, x, [x.rank]), line), "float32")


@onnx_op("LabelEncoder", domain=ML)
def label_encoder(g: GraphImporter, node: Node) -> Tensor:
    """The value of each key, or the default; numbers or strings on both sides."""
    b = g.b
    keys, values = _table(node, "keys"), _table(node, "values")
    default = node.attr("default_tensor")
    if isinstance(default, onnx.TensorProto):
        other = onnx.numpy_helper.to_array(default).reshape([])
    elif values.dtype.kind == "O":
        other = np.asarray(node.attr("default_string", "_Unused"), object)
    elif values.dtype.kind == "f":
        other = np.asarray(node.attr("default_float", -0.0), values.dtype)
    else:
        other = np.asarray(node.attr("default_int64", -1), values.dtype)
    places = _places(b, node[0], keys)
    entries = np.append(values, other)
    if values.dtype.kind == "O":
        return indexing.gather(b, text.table(b, [_text(entry) for entry in entries]), places, 0)
    return indexing.gather(b, b.constant(entries.astype(values.dtype)), places, 0)


@onnx_op("CategoryMapper", domain=ML)
def category_mapper(g: GraphImporter, node: Node) -> Tensor:
    """Texts as the numbers of their categories, or back; what is no category is the default."""
    b, names = g.b, list(node.required("cats_strings"))
    numbers = np.asarray(node.required("cats_int64s"), np.int64)
    if node[0].dtype == "string":
        values = np.append(numbers, np.int64(node.attr("default_int64", -1)))
        return indexing.gather(b, b.constant(values), text.lookup(b, node[0], names), 0)
    texts = text.table(b, [*names, node.attr("default_string", "_Unused")])
    return indexing.gather(b, texts, _places(b, node[0], numbers), 0)


def _places(b: Builder, x: Tensor, keys: np.ndarray) -> Tensor:
    """The number of the first key that fits each element, or the number of keys."""
    if (keys.dtype.kind == "O") != (x.dtype == "string"):
        raise NodeError(f"its keys do not fit an input of {x.dtype}", "keys and input must have one type")
    if x.dtype == "string":
        return text.lookup(b, x, [_text(key) for key in keys])
    column = shape.unsqueeze(b, x, [x.rank])
    hit = ew.compare(b, "eq", column, b.constant(keys, x.dtype))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        nan = ew.binary(b, "and", ew.unary(b, "isnan", column), b.constant(np.isnan(keys)))
        hit = ew.binary(b, "or", hit, nan)
    count = len(keys)
    places = ew.select(b, hit, b.constant(np.arange(count)), b.constant(np.array(count, np.int64)))
    return reduction.reduce(b, "min", places, [x.rank], False)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _table(node: Node, name: str) -> np.ndarray:
    """Keys or values: an array of numbers, or of objects that are strings."""
    tensor = node.attr(f"{name}_tensor")
    if isinstance(tensor, onnx.TensorProto):
        array = onnx.numpy_helper.to_array(tensor)
        return array.astype(object) if array.dtype.kind in "OSU" else array
    for suffix, dtype in (("int64s", np.int64), ("floats", np.float32), ("strings", object)):
        if node.attr(f"{name}_{suffix}"):
            return np.asarray(node.attr(f"{name}_{suffix}"), dtype)
    raise NodeError(f"it has no {name}", f"give {name}_int64s, {name}_floats, {name}_strings or {name}_tensor")


def transformed(b: Builder, scores: Tensor, kind: str) -> Tensor:
    """Scores after a `post_transform`."""
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return ew.unary(b, "sigmoid", scores)
    if kind == "SOFTMAX":
        return normalization.softmax(b, scores, scores.rank - 1)
    if kind == "SOFTMAX_ZERO":
        # Softmax in which scores of zero stay zero (times exp(-max), which the sum cancels).
        top = reduction.reduce(b, "max", scores, [scores.rank - 1], True)
        near = ew.compare(b, "le", ew.unary(b, "abs", scores), b.like(1e-7, scores))
        exponent = ew.unary(b, "exp", ew.binary(b, "sub", scores, top))
        kept = ew.select(b, near, ew.binary(b, "mul", scores, ew.unary(b, "exp", ew.unary(b, "neg", top))), exponent)
        return ew.binary(b, "div", kept, reduction.reduce(b, "sum", kept, [scores.rank - 1], True))
    if kind == "PROBIT":
        return _probit(b, scores)
    raise NodeError(f'post_transform "{kind}" is unknown', f"use one of {', '.join(_TRANSFORMS)}")


def _probit(b: Builder, p: Tensor) -> Tensor:
    """sqrt(2) erfinv(2 p - 1), with Winitzki's approximation of erfinv and the constants that ONNX's reference and
    onnxruntime have: x -> sign(x) sqrt(sqrt(v^2 - l / 0.147) - v) where l = log(1 - x^2), v = 2 / (0.147 pi) + l / 2.
    """

    def scaled(x: Tensor, factor: float) -> Tensor:
        return ew.binary(b, "mul", x, b.like(factor, x))

    x = ew.binary(b, "sub", scaled(p, 2.0), b.like(1.0, p))
    one = b.like(1.0, x)
    log = ew.unary(b, "log", ew.binary(b, "mul", ew.binary(b, "sub", one, x), ew.binary(b, "add", one, x)))
    v = ew.binary(b, "add", b.like(2 / (3.14159 * 0.147), x), scaled(log, 0.5))
    root = ew.unary(b, "sqrt", ew.binary(b, "sub", ew.binary(b, "mul", v, v), scaled(log, 1 / 0.147)))
    squared = ew.binary(b, "div", scaled(log, -1 / 0.147), ew.binary(b, "add", root, v))  # root - v would cancel
    size = scaled(ew.unary(b, "sqrt", squared), 1.41421356)
    return ew.select(b, ew.compare(b, "lt", x, b.like(0.0, x)), ew.unary(b, "neg", size), size)


def labels_of(b: Builder, scores: Tensor, labels: Sequence[int | str], best: Tensor | None = None) -> Tensor:
    """The label of the best class, the one with the highest score if none is given."""
    best = reduction.arg_reduce(b, "max", scores, 1, False, False) if best is None else best
    if isinstance(labels[0], str):
        return indexing.gather(b, text.table(b, [str(label) for label in labels]), best, 0)
    return indexing.gather(b, b.constant(np.asarray(labels, np.int64)), best, 0)


@onnx_op("LinearRegressor", domain=ML)
def linear_regressor(g: GraphImporter, node: Node) -> Tensor:
    """x * coefficients + intercepts."""
    scores = _linear(g.b, node, int(node.attr("targets", 1)))
    return transformed(g.b, scores, node.attr("post_transform", "NONE"))


def _linear(b: Builder, node: Node, outputs: int) -> Tensor:
    x = _float(b, node[0])
    coefficients = np.asarray(node.required("coefficients")).reshape(outputs, -1)
    scores = linalg.matmul(b, x, b.constant(coefficients, x.dtype), transpose_rhs=True)
    intercepts = node.attr("intercepts")
    return ew.binary(b, "add", scores, b.constant(np.asarray(intercepts), x.dtype)) if intercepts else scores


@onnx_op("LinearClassifier", domain=ML)
def linear_classifier(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """The label with the best score, and the scores."""
    b = g.b
    labels, strings = node.attr("classlabels_ints") or [], node.attr("classlabels_strings") or []
    classes = max(len(labels), len(strings), 1)
    rows = max(len(node.attr("intercepts") or []), 1)
    scores = _linear(b, node, rows)
    kind = node.attr("post_transform", "NONE")
    if rows == 1 and classes == 2:
        scores = shape.concat(b, [ew.unary(b, "neg", scores), scores], 1)
    scores = transformed(b, scores, kind)
    if strings and scores.shape[1] != 1:
        return [labels_of(b, scores, strings), scores]
    if strings:
        raise NodeError(*STRINGS)
    if scores.shape[1] == 1:
        above = ew.compare(b, "ge", scores, b.like(0 if kind == "NONE" else 0.5, scores))
        label = ew.cast(b, above, "int64")
        flat = shape.reshape(b, label, [b.dim(label, 0)])
        return [ew.scaled(b, flat, labels[0]) if labels else flat, scores]
    return [labels_of(b, scores, labels or list(range(classes))), scores]


def _forest(node: Node, prefix: str, targets: int) -> Forest:
    """The trees of the classic encoding: nodes are named by (tree, node)."""
    forest = Forest(targets)
    modes = node.required("nodes_modes")
    names = list(zip(node.required("nodes_treeids"), node.required("nodes_nodeids"), strict=True))
    values = _vector(node, "nodes_values")
    thresholds = np.zeros(len(names)) if values is None else values
    missing = node.attr("nodes_missing_value_tracks_true") or [0] * len(names)
    features = node.attr("nodes_featureids") or [0] * len(names)
    numbers: dict[tuple[int, int], int] = {}
    for position, name in enumerate(names):
        mode = modes[position]
        if mode != "LEAF" and mode not in _MODES:
            raise NodeError(f'node mode "{mode}" is not supported')
        kind = LEAF if mode == "LEAF" else _MODES.index(mode)
        numbers[name] = forest.node(features[position], float(thresholds[position]), kind, bool(missing[position]))
    children = zip(names, node.required("nodes_truenodeids"), node.required("nodes_falsenodeids"), strict=True)
    seen = set()
    for (tree, own), true, false in children:
        number = numbers[tree, own]
        if tree not in seen:
            seen.add(tree)
            forest.roots.append(number)
        if forest.modes[number] != LEAF:
            forest.on_true[number], forest.on_false[number] = numbers[tree, true], numbers[tree, false]
    weights = _vector(node, f"{prefix}_weights")
    assert weights is not None
    places = zip(*(node.required(f"{prefix}_{part}") for part in ("treeids", "nodeids", "ids")), weights, strict=True)
    for tree, own, target, weight in places:
        forest.leaves.setdefault(numbers[tree, own], []).append((target, float(weight)))
    return forest


@onnx_op("TreeEnsembleRegressor", domain=ML)
def tree_regressor(g: GraphImporter, node: Node) -> Tensor:
    """The aggregated weights of the leaves."""
    forest = _forest(node, "target", int(node.attr("n_targets", 1)))
    base = _vector(node, "base_values")
    kind = node.attr("aggregate_function", "SUM").lower()
    scores = trees.aggregated(g.b, forest, _float(g.b, node[0]), kind, [] if base is None else base.tolist())
    return ew.cast(g.b, transformed(g.b, scores, node.attr("post_transform", "NONE")), "float32")


@onnx_op("TreeEnsembleClassifier", domain=ML)
def tree_classifier(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """The label with the best score, and the scores; two classes may share one column of weights."""
    b = g.b
    labels, strings = node.attr("classlabels_int64s") or [], node.attr("classlabels_strings") or []
    classes = max(len(labels), len(strings))
    forest = _forest(node, "class", classes)
    base = _vector(node, "base_values")
    scores = trees.aggregated(b, forest, _float(b, node[0]), "sum")
    kind = node.attr("post_transform", "NONE")
    best = None
    if len({target for entries in forest.leaves.values() for target, _ in entries}) == 1 and classes == 2:
        used = next(iter(forest.leaves.values()))[0][0]
        positive = shape.window(b, scores, 1, used, 1)
        if base is not None:
            positive = ew.binary(b, "add", positive, b.like(float(base[-1]), scores))
        # As onnxruntime decides: weights that are all positive are probabilities.
        probabilities = all(weight >= 0 for entries in forest.leaves.values() for _, weight in entries)
        above = ew.compare(b, "gt", positive, b.like(0.5 if probabilities else 0, positive))
        best = shape.reshape(b, ew.cast(b, above, "int64"), [b.dim(scores, 0)])
        one, shares = b.like(1, scores), probabilities and kind in ("NONE", "PROBIT")
        negative = ew.binary(b, "sub", one, positive) if shares else ew.unary(b, "neg", positive)
        scores = shape.concat(b, [negative, positive], 1)
    elif base is not None:
        scores = ew.binary(b, "add", scores, b.constant(np.asarray(base), scores.dtype))
    scores = ew.cast(b, transformed(b, scores, kind), "float32")
    return [labels_of(b, scores, strings or labels, best), scores]


@onnx_op("TreeEnsemble", domain=ML)
def tree_ensemble(g: GraphImporter, node: Node) -> Tensor:
    """The encoding of `ai.onnx.ml` 5: inner nodes and leaves in tables of their own; sets become chains of tests."""
    forest = _Tables(node).forest()
    x = _float(g.b, node[0])
    scores = trees.aggregated(g.b, forest, x, _AGGREGATES[int(node.attr("aggregate_function", 1))])
    return transformed(g.b, scores, _TRANSFORMS[int(node.attr("post_transform", 0))])


class _Tables:
    """Builds a forest from the tables of a `TreeEnsemble` node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.result = Forest(int(node.attr("n_targets", 1)))
        self.splits = onnx.numpy_helper.to_array(node.required("nodes_splits"))
        self.modes = onnx.numpy_helper.to_array(node.required("nodes_modes"))
        self.weights = onnx.numpy_helper.to_array(node.required("leaf_weights"))
        self.sets = self._sets()

    def _sets(self) -> dict[int, list[float]]:
        """The members that each set node tests for; NaN ends a set."""
        tensor = self.node.attr("membership_values")
        members: Any = [] if tensor is None else onnx.numpy_helper.to_array(tensor).ravel()
        groups: list[list[float]] = [[]]
        for value in members:
            if np.isnan(value):
                groups.append([])
            else:
                groups[-1].append(float(value))
        nodes = [number for number, mode in enumerate(self.modes) if mode == len(_MODES)]
        return dict(zip(nodes, groups, strict=False))

    def forest(self) -> Forest:
        """All trees."""
        for root in self.node.required("tree_roots"):
            self.result.roots.append(self._inner(int(root)))
        return self.result

    def _child(self, number: int, side: str) -> int:
        child = int(self.node.required(f"nodes_{side}nodeids")[number])
        if not self.node.required(f"nodes_{side}leafs")[number]:
            return self._inner(child)
        leaf = self.result.node(0, 0.0, LEAF, False)
        target = int(self.node.required("leaf_targetids")[child])
        self.result.leaves[leaf] = [(target, float(self.weights[child]))]
        return leaf

    def _inner(self, number: int) -> int:
        feature = int(self.node.required("nodes_featureids")[number])
        tracks = self.node.attr("nodes_missing_value_tracks_true")
        missing = bool(tracks[number]) if tracks else False
        true, false = self._child(number, "true"), self._child(number, "false")
        tests = [(int(self.modes[number]), float(self.splits[number]))]
        if number in self.sets:
            tests = [(_MODES.index("BRANCH_EQ"), value) for value in self.sets[number]]
        for mode, value in reversed(tests):
            test = self.result.node(feature, value, mode, missing)
            self.result.on_true[test], self.result.on_false[test] = true, false
            false = test
        return false
