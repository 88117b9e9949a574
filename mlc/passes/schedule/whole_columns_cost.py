"""Choosing blocks, threads and what they keep for columns that are reduced and written.

`column_times` estimates what takes the least time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from mlc.kernels.common.analysis import is_contraction, mentions, reachable, reduction_demands
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import is_reduction
from mlc.kernels.nvidia.column_shares import all_shares, some_shares
from mlc.kernels.nvidia.combinations import combination
from mlc.passes.schedule.column_times import ColumnWork, microseconds
from mlc.passes.schedule.gpu_shapes import ACCESS, reduced_extents, shape_of, widest_lanes
from mlc.targets.nvidia import NvidiaTarget

Schedule = dict[str, int | str]

REGISTERS = 65536  # of a multiprocessor
MANY = 1024  # matrices, where their number is not known
HELD = 64  # registers of a thread beside what it keeps


def choose_whole_columns(source: KernelSource, target: NvidiaTarget) -> Schedule | None:
    """The schedule of a kernel whose results lie as what it reduces across memory does; None for other kernels."""
    results = source.results
    reductions = [op for op in reachable(results) if op.name == "linalg.generic" and is_reduction(op)]
    if not reductions or any(is_contraction(op) or combination(op) is None for op in reductions):
        return None
    shape = shape_of(results[0].type)
    dims = _reduced_dims(results, reductions, len(shape))
    if dims is None:
        return None
    depth, inner = (_known(shape[slice(*part)]) for part in ((dims[0], dims[1] + 1), (dims[1] + 1, len(shape))))
    if depth is None or inner is None or any(reduced_extents(op) != depth for op in reductions):
        return None  # among others where results have one element along what is reduced
    size, tensors = ACCESS // widest_lanes(source), _tensors(source)
    outer = prod(e if e is not None else MANY for e in shape[: dims[0]])
    work = ColumnWork(outer, prod(depth), prod(inner), size, tensors)
    choices = all_shares(prod(depth), inner, size, tensors) or [some_shares(inner, size, tensors)]
    found = min(choices, key=lambda s: microseconds(work, s, target.sms))
    registers = HELD + found.kept * found.lanes * tensors * max(1, size // 4)
    return {
        "template": "whole_columns",
        "first": dims[0],
        "last": dims[1],
        "lanes": found.lanes,
        "width": found.width,
        "split": found.split,
        "kept": found.kept,
        "threads": found.threads,
        "blocks": max(1, REGISTERS // (found.threads * registers)),
    }


def _tensors(source: KernelSource) -> int:
    """How many inputs lie as the results do: a thread may have its part of each of them at a time."""
    shape = source.results[0].type.shape
    inputs = [t for t in source.tensors if t not in source.destinations and any(True for _ in t.uses)]
    return max(1, sum(t.type.shape == shape for t in inputs))


def _known(extents: Sequence[int | None]) -> list[int] | None:
    """The extents, where all are known."""
    known = [e for e in extents if e is not None]
    return known if len(known) == len(extents) else None


def _reduced_dims(results: Sequence[ir.Value], reductions: Sequence[ir.Operation], rank: int) -> tuple[int, int] | None:
    """The dimensions of the results, first and last, that all `reductions` reduce and none is needed at, in front of
    dimensions that are not reduced; None where that is not so."""
    demands = reduction_demands(results)
    found = [defining_op(d.value) for d in demands]
    if any(op not in found for op in reductions):
        return None
    kinds = {tuple("reduction" in str(t) for t in op.attributes["iterator_types"]) for op in reductions}
    kind = kinds.pop()
    if kinds or len(kind) != rank or kind[-1]:
        return None
    first, count = kind.index(True), kind.count(True)
    dims = range(first, first + count)
    if not all(kind[d] for d in dims) or any(mentions(e, d) for demand in demands for e in demand.exprs for d in dims):
        return None
    return first, first + count - 1
