"""Which logits and which scores an element of an attention's result comes from, and how its operands lie in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from mlc.kernels.common.accesses import input_accesses
from mlc.kernels.common.attention import Attention
from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.frame import Frame
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx


def points_below(
    attention: Attention, frame: Frame, lanes: int, dims: Sequence[Idx]
) -> tuple[list[Idx], dict[int, Idx]]:
    """The leading coordinates of the logits, and the batch dimensions of the scores, that belong to the point `dims` of
    the result's iteration: through whatever views lie between, so both are asked for and note where.
    """
    out, scores = attention.output, attention.scores
    zero = frame.constants.get(ir.F32Type.get(), 0.0)
    of_rows = (attention.maximum.results[0], attention.total.results[0], attention.shift)
    rows: dict[ir.Value, Override] = {value: lambda _: zero for value in of_rows}
    point = [Evaluator(frame, lanes).idx.affine(e, dims) for e in operand_map(out.op, 0).results]
    logits = coordinates_below(frame, lanes, out.op.operands[0], point, attention.logits, rows)
    below = coordinates_below(frame, lanes, attention.logits, logits, scores.op.results[0])
    return logits[:-2], dict(zip(scores.order[:-2], below[:-2], strict=True))


def coordinates_below(
    frame: Frame,
    lanes: int,
    value: ir.Value,
    point: Sequence[Idx],
    below: ir.Value,
    known: Mapping[ir.Value, Override] | None = None,
) -> list[Idx]:
    """Where `below` is asked for when `value` is at `point`; `known` are values that need not be computed."""
    seen: list[Idx] = []

    def note(coords: Sequence[Idx]) -> ir.Value:
        seen[:] = coords
        return frame.constants.get(below.type.element_type, 0.0)

    Evaluator(frame, lanes, overrides={**(known or {}), below: note}).tensor(value, point)
    return seen


def contiguous_dim(op: ir.Operation, operand: int) -> int | None:
    """The iteration dimension of a contraction along which what an operand is computed from lies in memory."""
    accesses = input_accesses([op.operands[operand]]) or {}
    exprs = list(operand_map(op, operand).results)
    for found in accesses.values():
        for access in found:
            last = access[-1] if access else None
            if isinstance(last, ir.AffineDimExpr) and isinstance(exprs[last.position], ir.AffineDimExpr):
                return ir.AffineDimExpr(exprs[last.position]).position
    return None
