"""What follows an If whose branches give values of different ranks: imported once for each branch.

A tensor has one rank. Where a condition that only the run knows decides about it, as ONNX allows, the rest of the body
is part of both branches, and its results have one rank again (else the model is refused).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import onnx
from mlir import ir

from mlc.frontends.common import control_flow
from mlc.frontends.common.builder import Tensor
from mlc.frontends.report import NodeError

if TYPE_CHECKING:
    from mlc.frontends.onnx.graph import ForkError, GraphImporter

_DEEPEST = 4  # each fork doubles what is behind it


def follow(g: GraphImporter, fork: ForkError, nodes: Sequence[onnx.NodeProto], results: Sequence[str]) -> None:
    """Imports `nodes`, the first of which forks, and defines `results` in the current scope. Problems are collected."""
    from mlc.frontends.onnx.graph import PoisonedError, name_of

    first, rest = nodes[0], nodes[1:]
    before = len(g.problems)
    g.forks += 1
    try:
        if g.forks > _DEEPEST:
            raise fork.error
        branches = [_Path(g, branch, first, rest, results) for branch in fork.branches]
        with ir.Location.name(g.scope.prefix + name_of(first)):
            values = _chosen(g, fork, branches)
        g.scope.names.update(zip(results, values, strict=True))
    except NodeError:
        del g.problems[before:]
        g.report(first, name_of(first), fork.error)
        g.scope.poisoned.update(results)
    except PoisonedError:
        g.scope.poisoned.update(results)
    finally:
        g.forks -= 1


class _Path:
    """Imports one branch and everything behind it when called, and forgets the names of both."""

    def __init__(
        self,
        g: GraphImporter,
        branch: Callable[[], list[Tensor]],
        first: onnx.NodeProto,
        rest: Sequence[onnx.NodeProto],
        results: Sequence[str],
    ) -> None:
        self.g, self.branch, self.first, self.rest, self.results = g, branch, first, rest, results
        self.problems = 0

    def __call__(self) -> list[Tensor]:
        """The results."""
        g, scope = self.g, self.g.scope
        names, poisoned, before = dict(scope.names), set(scope.poisoned), len(g.problems)
        try:
            g.define(self.first, self.branch())
            g.body(self.rest, self.results)
            values = [scope.lookup(name) for name in self.results]
        finally:
            scope.names, scope.poisoned = names, poisoned
            self.problems = len(g.problems) - before
        if any(value is None for value in values):
            raise NodeError("one of the results is absent")
        return [value for value in values if value is not None]


def _chosen(g: GraphImporter, fork: ForkError, paths: Sequence[_Path]) -> list[Tensor]:
    """The results of the path that is taken."""
    return control_flow.if_(g.b, fork.condition, paths)
