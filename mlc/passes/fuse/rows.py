"""Row patterns: reductions over trailing dimensions together with what reads them along the same rows.

Softmax, layer normalisation and their relatives: every reduction is evaluated once per row, the row is read again while
it is in the cache, and nothing but the final values goes to memory.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.evaluate import is_reduction, operand_map
from mlc.passes.fuse.graph import BlockGraph, captured, has_identity_output, is_contraction, is_elementwise, is_identity


def _row_rank(op: ir.Operation) -> int | None:
    """Number of leading parallel dimensions of a reduction over all trailing dimensions, else None."""
    if op.name != "linalg.generic" or is_contraction(op) or not is_reduction(op) or len(op.results) != 1:
        return None
    kinds = ["reduction" in str(t) for t in op.attributes["iterator_types"]]
    rank = kinds.index(True)
    if not all(kinds[rank:]) or not is_identity(op, 0):
        return None
    out = list(operand_map(op, len(op.operands) - 1).results)
    plain = [e.position for e in out if isinstance(e, ir.AffineDimExpr)]
    return rank if len(plain) == len(out) and plain == list(range(rank)) else None


def _is_prefix(op: ir.Operation, operand: int, rank: int) -> bool:
    """Does the operand's map read only the first `rank` dimensions?"""
    exprs = list(operand_map(op, operand).results)
    positions = [e.position for e in exprs if isinstance(e, ir.AffineDimExpr)]
    constants = sum(isinstance(e, ir.AffineConstantExpr) for e in exprs)
    return len(positions) + constants == len(exprs) and all(p < rank for p in positions)


def _is_unit_view(op: ir.Operation) -> bool:
    """A view that only adds or removes unit dimensions."""
    if op.name not in ("tensor.expand_shape", "tensor.collapse_shape"):
        return False
    wide = op.results[0] if op.name == "tensor.expand_shape" else op.operands[0]
    for group in op.attributes["reassociation"]:
        extents = [wide.type.is_dynamic_dim(a.value) or wide.type.get_dim_size(a.value) != 1 for a in group]
        if sum(extents) > 1:
            return False
    return True


class _Rows:
    """The closure of one reduction: values per row, and values over the full domain."""

    def __init__(self, graph: BlockGraph, seed: int, rank: int) -> None:
        op = graph.ops[seed]
        self.graph = graph
        self.rank = rank
        self.kinds = [str(t) for t in op.attributes["iterator_types"]]
        self.row_values: set[ir.Value] = set(op.results)
        self.full_values: set[ir.Value] = {op.operands[0]}
        self.mine: set[ir.Value] = set(op.results)
        self.ops = [seed]

    def grow(self) -> None:
        """Add the operations after the seed that stay within the rows."""
        for n in range(self.ops[0] + 1, len(self.graph.ops)):
            op = self.graph.ops[n]
            if n in self.graph.cluster or not any(v in self.mine for v in op.operands):
                continue
            if _is_unit_view(op) and op.operands[0] in self.row_values or self._is_reduction(op) or self._is_row_op(op):
                self._take(n, row=True)
            elif self._is_full_op(op):
                self._take(n, row=False)

    def _take(self, n: int, row: bool) -> None:
        self.ops.append(n)
        results = self.graph.ops[n].results
        self.mine.update(results)
        (self.row_values if row else self.full_values).update(results)

    def _is_reduction(self, op: ir.Operation) -> bool:
        if _row_rank(op) != self.rank or [str(t) for t in op.attributes["iterator_types"]] != self.kinds:
            return False
        return op.operands[0] in self.full_values and self._operands_fit(op)

    def _is_row_op(self, op: ir.Operation) -> bool:
        if not is_elementwise(op) or op.name != "linalg.generic" or not has_identity_output(op):
            return False
        inputs = _inputs(op)
        if any(v in self.full_values for v in inputs) or not self._operands_fit(op):
            return False
        return any(v in self.row_values and is_identity(op, i) for i, v in enumerate(inputs))

    def _is_full_op(self, op: ir.Operation) -> bool:
        if not is_elementwise(op) or op.name != "linalg.generic" or not has_identity_output(op):
            return False
        anchored = any(v in self.full_values and is_identity(op, i) for i, v in enumerate(_inputs(op)))
        return anchored and self._operands_fit(op)

    def _operands_fit(self, op: ir.Operation) -> bool:
        """Row values are read along their row, values of the full domain at the same point."""
        for i, value in enumerate(_inputs(op)):
            if value in self.row_values and not _is_prefix(op, i, self.rank):
                return False
            if value in self.full_values and value in self.mine and not is_identity(op, i):
                return False
        operands = list(op.operands)
        return not any(v in self.mine for v in captured(op) if v not in operands)

    def accept(self) -> bool:
        """Are the escaping values all over the full domain, and is the set one legal kernel?"""
        inside = set(self.ops)
        escaping = [n for n in self.ops if any(u not in inside for u in self.graph.users[n])]
        if not escaping or any(r in self.row_values for n in escaping for r in self.graph.ops[n].results):
            return False
        return self.graph.legal(self.ops)


def _inputs(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[: len(op.operands) - len(op.results)]


def find_rows(graph: BlockGraph) -> None:
    """Make a cluster of every row pattern of the block."""
    for n, op in enumerate(graph.ops):
        rank = None if n in graph.cluster else _row_rank(op)
        if rank is None:
            continue
        rows = _Rows(graph, n, rank)
        rows.grow()
        if len(rows.ops) > 1 and rows.accept():
            graph.new_cluster(rows.ops, "rows")
