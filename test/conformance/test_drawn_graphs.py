"""Graphs of operators that are drawn by a seed compute what onnxruntime computes without its own optimizations.

The graphs of a few seeds are compiled here, for known extents and for any; `MLC_EVERY_CASE=1` draws twenty times as many.
To look at one: `python test/conformance/test_drawn_graphs.py SEED [all] [dynamic]` writes it to drawn.onnx.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException

import mlc
from mlc.runtime.errors import InputError, ModelError

sys.path.insert(0, str(Path(__file__).parents[1]))
from contrib_cases import reference
from models.drawn_graphs import FAMILIES, FLOATS, drawn_graph, other_inputs
from spread import EVERY

LIMIT = 2e-3
"""The largest difference, of the largest number of a result: some graphs subtract what is nearly equal."""
LIMIT_OF_HALVES = 2e-2
REFUSED = (Fail, InvalidArgument, RuntimeException)
EACH = 10
"""Graphs in one test."""
STATIC, DYNAMIC = (range(0, 800), range(2000, 2400)) if EVERY else (range(0, 40), range(2000, 2020))
MIXED = range(4000, 6000 if EVERY else 4040)
OTHERS = range(14000, 14400 if EVERY else 14020)


def nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Those of a graph and of the bodies in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes(attribute.g)


def assert_same(model: onnx.ModelProto, got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], what: str) -> None:
    """Integers are equal, floats nearly; where a computed number is quantized a few may lie a step apart."""
    operators = {node.op_type for node in nodes(model.graph)}
    casts = {a.i for node in nodes(model.graph) for a in node.attribute if a.name == "to"}
    types = casts | {value.type.tensor_type.elem_type for value in model.graph.input}
    limit = LIMIT_OF_HALVES if TensorProto.FLOAT16 in types else LIMIT
    rounds = any("Quantize" in operator or "QLinear" in operator for operator in operators)
    for output, result, want in zip(model.graph.output, got, wanted, strict=True):
        where = f"{what}, {output.name}"
        assert (np.shape(result), result.dtype) == (want.shape, want.dtype), where
        if want.dtype.kind in "iub":
            apart = int(np.count_nonzero(result != want))
            assert apart <= (max(1, want.size // 100) if rounds else 0), where
        elif np.isfinite(want).all():
            largest = max(float(np.abs(want).max(initial=0)), 1e-3)
            differences = np.abs(result.astype(np.float64) - want).reshape(-1) / largest
            if rounds and differences.size:
                assert np.quantile(differences, 0.97) <= 10 * limit, where
                assert differences.max() <= 0.3, where
            else:
                assert differences.max(initial=0) <= limit, where


def compiled(model: onnx.ModelProto, folder: Path) -> mlc.Model:
    """The model's library, loaded."""
    return mlc.compile(model, output=folder / "model.so", cache=False, jobs=1)


def assert_right(seed: int, dynamic: bool, folder: Path, families: Sequence[str] = FLOATS) -> None:
    """Compiles the graph of a seed, runs it, compares the results."""
    model, feeds = drawn_graph(seed, dynamic, families)
    wanted = reference(model, feeds)
    assert_same(model, compiled(model, folder)(**feeds), wanted, f"seed {seed}")


@pytest.mark.parametrize("first", STATIC[::EACH])
def test_known_extents(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + EACH):
        assert_right(seed, False, tmp_path)


@pytest.mark.parametrize("first", DYNAMIC[::EACH])
def test_any_extents(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + EACH):
        assert_right(seed, True, tmp_path)


@pytest.mark.parametrize("first", MIXED[::EACH])
def test_all_families(first: int, tmp_path: Path) -> None:
    """Integers, truth values and halves, quantized operators, branches and loops, computed shapes; every other for any
    extents.
    """
    for seed in range(first, first + EACH):
        assert_right(seed, seed % 2 == 0, tmp_path, tuple(FAMILIES))


@pytest.mark.parametrize("first", OTHERS[::EACH])
def test_other_extents(first: int, tmp_path: Path) -> None:
    """What was compiled for any extents is right for other ones than those it was drawn with, or refuses them when
    onnxruntime does: nothing is read that is not there.
    """
    for seed in range(first, first + EACH):
        model, feeds = drawn_graph(seed, True, ("floats", "movements", "sizes", "with_itself"))
        library = compiled(model, tmp_path)
        for turn in range(3):
            feeds = other_inputs(model, feeds, 3 * seed + turn)
            where = f"seed {seed}, turn {turn}: {[x.shape for x in feeds.values()]}"
            try:
                wanted = reference(model, feeds)
            except REFUSED:
                if not accepted_without_unused(model, feeds):
                    with pytest.raises((InputError, ModelError)):
                        library(**feeds)
                        pytest.fail(where)
                continue
            assert_same(model, library(**feeds), wanted, where)


def accepted_without_unused(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> bool:
    """Whether onnxruntime runs the model when it leaves out nodes that nobody reads, as mlc does."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    try:
        session.run(None, dict(feeds))
    except REFUSED:
        return False
    return True


def test_they_have_all_operators() -> None:
    """What is drawn is as different as it is meant to be."""
    floats = [drawn_graph(seed, False)[0].graph for seed in range(80)]
    assert len({node.op_type for graph in floats for node in nodes(graph)}) >= 55
    assert sum(len(graph.node) for graph in floats) >= 1000
    mixed = [drawn_graph(seed, False, tuple(FAMILIES))[0].graph for seed in range(200)]
    assert len({node.op_type for graph in mixed for node in nodes(graph)}) >= 90


if __name__ == "__main__":
    chosen = tuple(FAMILIES) if "all" in sys.argv else FLOATS
    onnx.save(drawn_graph(int(sys.argv[1]), "dynamic" in sys.argv, chosen)[0], "drawn.onnx")
