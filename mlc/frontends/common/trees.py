"""Decision trees as gathers: every tree takes one step at a time, all rows and trees at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor

PREDICATES = ("le", "lt", "ge", "gt", "eq", "ne")
LEAF = -1


@dataclass
class Forest:
    """Nodes of all trees in one table. A leaf's children are itself; `weights[node, target]` is what it contributes."""

    targets: int
    roots: list[int] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    modes: list[int] = field(default_factory=list)
    on_true: list[int] = field(default_factory=list)
    on_false: list[int] = field(default_factory=list)
    missing_true: list[bool] = field(default_factory=list)
    leaves: dict[int, list[tuple[int, float]]] = field(default_factory=dict)

    def node(self, feature: int, threshold: float, mode: int, missing_true: bool) -> int:
        """A new inner node, whose children are set later, or a leaf (`mode` `LEAF`)."""
        number = len(self.features)
        self.features.append(feature)
        self.thresholds.append(threshold)
        self.modes.append(mode)
        self.on_true.append(number)
        self.on_false.append(number)
        self.missing_true.append(missing_true)
        return number

    @property
    def depth(self) -> int:
        """The number of steps after which every row is at a leaf."""
        depth = 0
        level = set(self.roots)
        while level:
            level = {
                child
                for node in level
                if self.modes[node] != LEAF
                for child in (self.on_true[node], self.on_false[node])
            }
            depth += bool(level)
        return depth


def contributions(b: Builder, forest: Forest, x: Tensor, missing: float) -> Tensor:
    """`[rows, trees, targets]`: what each tree gives to each target, `missing` where its leaf says nothing."""
    rows = b.dim(x, 0)
    at = shape.broadcast(b, b.constant(np.array([forest.roots], np.int64)), [rows, len(forest.roots)])
    tables = {
        name: b.constant(np.asarray(getattr(forest, name), np.int64))
        for name in ("features", "modes", "on_true", "on_false")
    }
    splits = b.constant(np.asarray(forest.thresholds), x.dtype)
    tracks = b.constant(np.asarray(forest.missing_true, bool))
    for _ in range(forest.depth):
        value = indexing.gather_elements(b, x, indexing.gather(b, tables["features"], at, 0), 1)
        hit = _compared(b, forest, value, indexing.gather(b, splits, at, 0), indexing.gather(b, tables["modes"], at, 0))
        if any(forest.missing_true):
            lost = ew.binary(b, "and", ew.unary(b, "isnan", value), indexing.gather(b, tracks, at, 0))
            hit = ew.binary(b, "or", hit, lost)
        at = ew.select(
            b, hit, indexing.gather(b, tables["on_true"], at, 0), indexing.gather(b, tables["on_false"], at, 0)
        )
    weights = np.full([len(forest.features), forest.targets], missing)
    for leaf, entries in forest.leaves.items():
        for target, weight in entries:
            weights[leaf, target] = weight if weights[leaf, target] == missing else weights[leaf, target] + weight
    return indexing.gather(b, b.constant(weights, x.dtype), at, 0)


def _compared(b: Builder, forest: Forest, value: Tensor, split: Tensor, mode: Tensor) -> Tensor:
    """The test of each node; only the kinds of tests that occur are built."""
    used = sorted(set(forest.modes) - {LEAF}) or [0]
    result = ew.compare(b, PREDICATES[used[0]], value, split)
    for number in used[1:]:
        here = ew.compare(b, "eq", mode, b.constant(np.array(number, np.int64)))
        result = ew.select(b, here, ew.compare(b, PREDICATES[number], value, split), result)
    return result


def aggregated(b: Builder, forest: Forest, x: Tensor, kind: str, base: Sequence[float] = ()) -> Tensor:
    """`[rows, targets]`: the `sum`, `average`, `min` or `max` over all trees, plus the base values."""
    if kind in ("sum", "average"):
        total = reduction.reduce(b, "sum", contributions(b, forest, x, 0.0), [1], False)
        if kind == "average":
            total = ew.binary(b, "div", total, b.like(len(forest.roots), x))
    else:
        missing = float("inf") if kind == "min" else float("-inf")
        total = reduction.reduce(b, kind, contributions(b, forest, x, missing), [1], False)
        silent = ew.unary(b, "isinf", total)
        total = ew.select(b, silent, b.like(0, x), total)
    if len(base):
        total = ew.binary(b, "add", total, b.constant(np.asarray(base), x.dtype))
    return total
