"""Reductions that threads do together, each once for each place where it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from mlc.kernels.common.analysis import reachable
from mlc.kernels.common.evaluate import Override
from mlc.kernels.common.generics import is_reduction
from mlc.kernels.common.index import Idx
from mlc.kernels.nvidia.threads import Values

Share = Callable[[ir.Operation, Sequence[Idx]], Values]
"""The results of a reduction at coordinates, in every thread that shares it; raises ValueError where threads cannot."""


class SharedReductions:
    """What `share` has found, by reduction and coordinates."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._known: dict[tuple[object, ...], Values] = {}

    def overrides(
        self, results: Sequence[ir.Value], takes: Callable[[ir.Operation], bool] = is_reduction
    ) -> dict[ir.Value, Override]:
        """How an evaluator reads the reductions behind `results` that `takes` takes."""
        found: dict[ir.Value, Override] = {}
        for op in reachable(results):
            if op.name == "linalg.generic" and takes(op):
                found.update({result: self._reading(op, number) for number, result in enumerate(op.results)})
        return found

    def _reading(self, op: ir.Operation, number: int) -> Override:
        return lambda coords: self._at(op, coords)[number]

    def _at(self, op: ir.Operation, coords: Sequence[Idx]) -> Values:
        key = (hash(op.results[0]), *(c.key() for c in coords))
        if key not in self._known:
            self._known[key] = self._share(op, coords)
        return self._known[key]
