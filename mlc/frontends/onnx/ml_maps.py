"""Operators on maps (`ai.onnx.ml`): scores with a key for each class, and maps as vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, reduction, shape, text
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.common.maps import Map, Rows
from mlc.frontends.onnx.elementwise import converted
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.ml import ML
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

_CASTS = {"TO_FLOAT": "float32", "TO_STRING": "string", "TO_INT64": "int64"}


@onnx_op("ZipMap", domain=ML)
def zip_map(g: GraphImporter, node: Node) -> Tensor:
    """The input as it is; what calls the entry learns the keys of its columns."""
    keys = tuple(node.attr("classlabels_int64s") or node.attr("classlabels_strings") or ())
    if not keys:
        raise NodeError("it has no keys", "give classlabels_int64s or classlabels_strings")
    x = node[0]
    rows = shape.unsqueeze(g.b, x, [0]) if x.rank == 1 else x
    if rows.rank != 2 or rows.shape[1] not in (None, len(keys)):
        raise NodeError(f"{len(keys)} keys for {x}", "it takes a key for each column of a matrix")
    return Rows(rows.value, rows.unsigned, keys=keys)


def _map(node: Node) -> Map:
    value = node[0]
    if not isinstance(value, Map):
        raise NodeError(f"its input is {value}, no map")
    return value


def _spread(b: Builder, values: Tensor, places: Tensor, count: int, zero: Tensor) -> Tensor:
    """A row of `count` copies of `zero` with each of `values` at its place, at `count` none. `[1, count]`."""
    zeros = shape.full(b, [count + 1], zero)
    line = indexing.scatter(b, zeros, places, values, 0)
    return shape.unsqueeze(b, shape.window(b, line, 0, 0, count), [0])


@onnx_op("DictVectorizer", domain=ML)
def vectorizer(g: GraphImporter, node: Node) -> Tensor:
    """A row with the value of each key of the vocabulary, zero where the map has none."""
    b, given = g.b, _map(node)
    vocabulary: Sequence[int | str] = node.attr("int64_vocabulary") or node.attr("string_vocabulary") or []
    if not vocabulary or isinstance(vocabulary[0], str) != (given.dtype == "string"):
        raise NodeError(f"its vocabulary does not fit {given}", "vocabulary and keys must have one type")
    if given.dtype == "string":
        places = text.lookup(b, given, [str(key) for key in vocabulary])
    else:
        keys = shape.unsqueeze(b, given, [1])
        equal = ew.compare(b, "eq", keys, b.constant(np.asarray(vocabulary, np.int64)))
        numbers = b.constant(np.arange(len(vocabulary)))
        found = ew.select(b, equal, numbers, b.constant(np.int64(len(vocabulary))))
        places = reduction.reduce(b, "min", found, [1], False)
    return _spread(b, given.values, places, len(vocabulary), shape.zero(b, given.values.dtype))


@onnx_op("CastMap", domain=ML)
def cast_map(g: GraphImporter, node: Node) -> Tensor:
    """The values in the order of their keys; with `map_form` SPARSE each at the place that its key says."""
    b, given = g.b, _map(node)
    if given.dtype != "int64":
        raise NodeError(f"its input is {given}", "its keys must be int64")
    values = converted(b, given.values, _CASTS[node.attr("cast_to", "TO_FLOAT")])
    if node.attr("map_form", "DENSE") == "DENSE":
        _, order = indexing.sort(b, given)
        return shape.unsqueeze(b, indexing.gather(b, values, order, 0), [0])
    count = int(node.attr("max_map", 1))
    # As onnxruntime: keys outside of [0, max_map) are dropped.
    limit = b.constant(np.int64(count))
    outside = ew.binary(b, "or", ew.compare(b, "lt", given, b.like(0, given)), ew.compare(b, "ge", given, limit))
    zero = text.constant(b, np.array("0", object)) if values.dtype == "string" else b.constant(0, values.dtype)
    return _spread(b, values, ew.select(b, outside, limit, given), count, zero)
