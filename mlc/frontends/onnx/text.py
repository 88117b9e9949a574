"""Text operators: those on token numbers as tensor operations, those on strings as calls of C routines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mlir import ir

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import linalg, reduction, regex, shape, text, types
from mlc.frontends.common.builder import DYNAMIC, Builder, Size, Tensor
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
    if x.dtype == "string":
        # The number of a token's first place in the pool stands for it; what is not there has one that no n-gram has.
        pool = list(node.required("pool_strings"))
        numbers, x = [pool.index(token) for token in pool], text.lookup(b, x, pool)
    else:
        numbers = list(node.required("pool_int64s"))
    tables = _tables(node, numbers)
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


def _tables(node: Node, numbers: list[int]) -> dict[int, _Grams]:
    """The n-grams of each length, in the order of the pool, whose tokens are `numbers`."""
    pool = np.asarray(numbers, np.int64)
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


# --- Strings: routines of the runtime (docs/abi.md, section 2) --------------------------------------------------------


def _require_strings(node: Node, *positions: int) -> None:
    for position in positions:
        if node[position].dtype != "string":
            raise NodeError(f"input {position} is {node[position].dtype}", "the operator takes strings")


@onnx_op("StringConcat")
def string_concat(g: GraphImporter, node: Node) -> Tensor:
    """Strings joined in pairs, with broadcasting."""
    _require_strings(node, 0, 1)
    return text.routine(g.b, "concat", [node[0], node[1]], [text.broadcast_type(node[0], node[1], "string")])[0]


@onnx_op("StringSplit")
def string_split(g: GraphImporter, node: Node) -> list[Tensor]:
    """The parts of each string, filled up with empty ones, and their number."""
    _require_strings(node, 0)
    shape_ = list(node[0].type.shape)
    results = [
        ir.RankedTensorType.get([*shape_, DYNAMIC], types.element_type("string")),
        ir.RankedTensorType.get(shape_, types.element_type("int64")),
    ]
    delimiter = node.attr("delimiter", "")
    config = text.config_of(_decoded(delimiter), int(node.attr("maxsplit", -1)))
    return text.routine(g.b, "split", [node[0]], results, config)


@onnx_op("StringNormalizer")
def string_normalizer(g: GraphImporter, node: Node) -> Tensor:
    """Words that are no stopwords, in upper or lower case."""
    _require_strings(node, 0)
    x = node[0]
    if x.rank not in (1, 2) or (x.rank == 2 and x.type.shape[0] != 1):
        raise NodeError(f"its input has the shape {list(x.type.shape)}", "the operator takes [C] or [1, C]")
    change = {"NONE": 0, "LOWER": 1, "UPPER": 2}[_decoded(node.attr("case_change_action", "NONE"))]
    words = [_decoded(word) for word in node.attr("stopwords", [])]
    kind = ir.RankedTensorType.get([1, DYNAMIC][2 - x.rank :], types.element_type("string"))
    config = text.config_of(change, int(node.attr("is_case_sensitive", 0)), *words)
    return text.routine(g.b, "normalize", [x], [kind], config)[0]


@onnx_op("RegexFullMatch")
def regex_full_match(g: GraphImporter, node: Node) -> Tensor:
    """Whether all of each string matches a pattern."""
    _require_strings(node, 0)
    program = regex.program(_decoded(node.attr("pattern", "")))
    kind = ir.RankedTensorType.get(node[0].type.shape, types.element_type("bool"))
    return text.routine(g.b, "match", [node[0]], [kind], text.config_of(*program))[0]


def _decoded(given: str | bytes) -> str:
    return given.decode() if isinstance(given, bytes) else given
