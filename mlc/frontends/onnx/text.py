"""Text operators that work on token numbers; those on strings are not imported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import linalg, reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError


@dataclass(frozen=True)
class _Grams:
    """All n-grams of one length, `[grams, length]`, and the output column of each."""

    tokens: np.ndarray
    columns: np.ndarray


@onnx_op("TfIdfVectorizer")
def tfidf(g: GraphImporter, node: Node) -> Tensor:
    """Counts of n-grams, also with gaps between their tokens, weighted as `mode` says."""
    b, x = g.b, node[0]
    if not node.attr("pool_int64s") or x.dtype not in ("int32", "int64"):
        raise NodeError("TfIdfVectorizer on strings is not supported", "map tokens to numbers outside the model")
    tables = _tables(node)
    rows = ew.cast(b, shape.unsqueeze(b, x, [0]) if x.rank == 1 else x, "int64")
    width = int(max(node.required("ngram_indexes"))) + 1
    weights, first = node.attr("weights"), 0
    total: Tensor | None = None
    for length, grams in tables.items():
        count = len(grams.columns)
        scale = np.asarray(weights[first : first + count], np.float32) if weights else np.ones(count, np.float32)
        first += count
        if count == 0 or not node.required("min_gram_length") <= length <= node.required("max_gram_length"):
            continue
        score = _scored(
            b, node.required("mode"), _counts(b, rows, grams, length, node.required("max_skip_count")), scale
        )
        place = np.zeros([count, width], np.float32)
        place[np.arange(count), grams.columns] = 1
        part = linalg.matmul(b, score, b.constant(place))
        total = part if total is None else ew.binary(b, "add", total, part)
    if total is None:
        total = shape.full(b, [b.dim(rows, 0), width], b.constant(np.float32(0)))
    return shape.reshape(b, total, [width]) if x.rank == 1 else total


def _tables(node: Node) -> dict[int, _Grams]:
    """The n-grams of each length, in the order of the pool."""
    pool = np.asarray(node.required("pool_int64s"), np.int64)
    starts = [*node.required("ngram_counts"), len(pool)]
    columns = np.asarray(node.required("ngram_indexes"))
    tables, first = {}, 0
    for length in range(1, len(starts)):
        tokens = pool[starts[length - 1] : starts[length]].reshape(-1, length)
        tables[length] = _Grams(tokens, columns[first : first + len(tokens)])
        first += len(tokens)
    return tables


def _counts(b: Builder, rows: Tensor, grams: _Grams, length: int, max_skip: int) -> Tensor:
    """How often each n-gram occurs in each row, `f32 [rows, grams]`, over all gaps."""
    total: Tensor | None = None
    for skip in range(1 if length == 1 else max_skip + 1):
        reach = (length - 1) * (skip + 1)
        positions = b.arith("maxsi", b.arith("subi", b.dim(rows, 1), reach), 0)
        hit: Tensor | None = None
        for number in range(length):
            # Rows that are shorter than the n-gram have no position: the windows then are empty.
            offset: Size = b.arith("minsi", number * (skip + 1), b.dim(rows, 1))
            tokens = shape.unsqueeze(b, shape.window(b, rows, 1, offset, positions), [2])
            same = ew.compare(b, "eq", tokens, b.constant(grams.tokens[:, number]))
            hit = same if hit is None else ew.binary(b, "and", hit, same)
        assert hit is not None
        part = reduction.reduce(b, "sum", ew.cast(b, hit, "float32"), [1], False)
        total = part if total is None else ew.binary(b, "add", total, part)
    assert total is not None
    return total


def _scored(b: Builder, mode: str, counts: Tensor, weights: np.ndarray) -> Tensor:
    if mode == "TF":
        return counts
    if mode == "IDF":
        present = ew.cast(b, ew.compare(b, "gt", counts, b.like(0, counts)), "float32")
        return ew.binary(b, "mul", present, b.constant(weights))
    if mode == "TFIDF":
        return ew.binary(b, "mul", counts, b.constant(weights))
    raise NodeError(f'mode "{mode}"', "use TF, IDF or TFIDF")
