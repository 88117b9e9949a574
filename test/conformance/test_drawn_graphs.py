"""Graphs of operators that are drawn by a seed compute what onnxruntime computes without its own optimizations.

The graphs of a few seeds are compiled here, for known extents and for any; `MLC_EVERY_CASE=1` draws ten times as many.
To look at one: `python test/conformance/test_drawn_graphs.py SEED [dynamic]` writes it to drawn.onnx.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import mlc

sys.path.insert(0, str(Path(__file__).parents[1]))
from contrib_cases import reference
from models.drawn_graphs import drawn_graph
from spread import EVERY

LIMIT = 2e-3
"""The largest difference, of the largest number of a result: some graphs subtract what is nearly equal."""
EACH = 10
"""Graphs in one test."""
STATIC, DYNAMIC = (range(0, 800), range(2000, 2400)) if EVERY else (range(0, 60), range(2000, 2030))


def assert_right(seed: int, dynamic: bool, folder: Path) -> None:
    """Compiles the graph of a seed, runs it, compares the results."""
    model, feeds = drawn_graph(seed, dynamic)
    wanted = reference(model, feeds)
    compiled = mlc.compile(model, output=folder / "model.so", cache=False, jobs=1)
    for output, got, want in zip(model.graph.output, compiled(**feeds), wanted, strict=True):
        where = f"seed {seed}, {output.name}"
        assert np.shape(got) == want.shape, where
        if np.isfinite(want).all():
            largest = max(float(np.abs(want).max(initial=0)), 1e-3)
            assert float(np.abs(got - want).max(initial=0)) <= LIMIT * largest, where


@pytest.mark.parametrize("first", STATIC[::EACH])
def test_known_extents(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + EACH):
        assert_right(seed, False, tmp_path)


@pytest.mark.parametrize("first", DYNAMIC[::EACH])
def test_any_extents(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + EACH):
        assert_right(seed, True, tmp_path)


def test_they_have_all_operators() -> None:
    """What is drawn is as different as it is meant to be."""
    graphs = [drawn_graph(seed, False)[0].graph for seed in range(80)]
    operators = {node.op_type for graph in graphs for node in graph.node}
    assert len(operators) >= 55
    assert sum(len(graph.node) for graph in graphs) >= 1000


if __name__ == "__main__":
    onnx.save(drawn_graph(int(sys.argv[1]), "dynamic" in sys.argv)[0], "drawn.onnx")
