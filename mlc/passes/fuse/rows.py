"""Row patterns: reductions over trailing dimensions together with what reads them along the same rows.

Softmax, layer normalisation and their relatives: every reduction is evaluated once per row, the row is read again while
it is in the cache, and nothing but the final values goes to memory. Column patterns are the same across memory, such as
a softmax over the middle dimension: where a target keeps a whole column near the threads that reduce it.
"""

from __future__ import annotations

from mlir import ir

from mlc.kernels.accepts import Keeps
from mlc.kernels.common.generics import is_identity, is_reduction, operand_map
from mlc.passes.fuse.graph import (
    BlockGraph,
    captured,
    has_identity_output,
    inputs_of,
    is_contraction,
    is_elementwise,
)


def _parallel_dims(op: ir.Operation) -> tuple[int, ...] | None:
    """The parallel dimensions of a reduction of one tensor over dimensions that lie together; None for others."""
    if op.name != "linalg.generic" or is_contraction(op) or not is_reduction(op) or len(op.results) != 1:
        return None
    kinds = ["reduction" in str(t) for t in op.attributes["iterator_types"]]
    first, count = kinds.index(True), kinds.count(True)
    if not all(kinds[first : first + count]) or not is_identity(op, 0):
        return None
    out = list(operand_map(op, len(op.operands) - 1).results)
    plain = [e.position for e in out if isinstance(e, ir.AffineDimExpr)]
    parallel = [d for d, is_reduced in enumerate(kinds) if not is_reduced]
    return tuple(parallel) if len(plain) == len(out) and plain == parallel else None


RowDims = tuple[int | None, ...]
"""For every dimension of a value per row, the row dimension that it lies along; None for an extent of 1."""


def _row_dims_of_view(op: ir.Operation, source: RowDims) -> RowDims | None:
    """The row dimensions of the result of a view that only adds or removes extents of 1; None for other views."""
    if op.name not in ("tensor.expand_shape", "tensor.collapse_shape"):
        return None
    expand = op.name == "tensor.expand_shape"
    wide = op.results[0].type if expand else op.operands[0].type
    result: list[int | None] = [None] * op.results[0].type.rank
    for narrow, group in enumerate(op.attributes["reassociation"]):
        dims = [a.value for a in group]
        moving = [d for d in dims if wide.is_dynamic_dim(d) or wide.get_dim_size(d) != 1]
        if len(moving) > 1:
            return None
        if expand and moving:
            result[moving[0]] = source[narrow]
        elif not expand:
            result[narrow] = source[moving[0]] if moving else None
    return tuple(result)


def _extent(op: ir.Operation, dim: int) -> int | None:
    """The extent of an iteration dimension of a generic with an identity output, when it is known."""
    type_ = op.results[0].type
    return None if type_.is_dynamic_dim(dim) else type_.get_dim_size(dim)


class _Rows:
    """The closure of one reduction: values per row, and values over the full domain. `parallel` are the dimensions that
    number the rows, or the columns that `keeps` takes."""

    def __init__(self, graph: BlockGraph, seed: int, parallel: tuple[int, ...], keeps: Keeps | None) -> None:
        op = graph.ops[seed]
        self.graph = graph
        self.parallel = parallel
        self.keeps = keeps
        self.row_values: dict[ir.Value, RowDims] = {op.results[0]: parallel}
        self.full_values = self._same_domain(op.operands[0])
        self.mine: set[ir.Value] = set(op.results)
        self.ops = [seed]
        self.inside = {seed}
        self.outside: set[int] = set()  # operations that depend on the rows and are not in the kernel

    def _same_domain(self, value: ir.Value) -> set[ir.Value]:
        """`value` and what it is computed from point by point."""
        found, work = {value}, [value]
        while work:
            n = self.graph.producer(work.pop())
            op = None if n is None else self.graph.ops[n]
            if op is None or op.name != "linalg.generic" or not is_elementwise(op) or not has_identity_output(op):
                continue
            below = [v for i, v in enumerate(inputs_of(op)) if is_identity(op, i) and v not in found]
            found.update(below)
            work.extend(below)
        return found

    def grow(self) -> None:
        """Add the operations after the seed that stay within the rows; behind the last one that reads them is none."""
        last, n = self._last_reader(self.ops[0]), self.ops[0]
        while n < last:
            n += 1
            op = self.graph.ops[n]
            returns = any(p in self.outside for p in self.graph.producers[n])
            if not returns and not any(p in self.inside for p in self.graph.producers[n]):
                continue
            if returns or n in self.graph.cluster or not self._grow_by(n, op):
                self.outside.add(n)
            else:
                last = max(last, self._last_reader(n))

    def _last_reader(self, n: int) -> int:
        """The last operation that reads operation `n`, but what ends the block."""
        end = len(self.graph.ops) - 1
        return max((user for user in self.graph.users[n] if user != end), default=n)

    def _grow_by(self, n: int, op: ir.Operation) -> bool:
        """Take operation `n`, which reads the rows and nothing that others make of them, if it stays within them."""
        dims = self._row_dims(op)
        if dims is not None:
            self.row_values.update(dict.fromkeys(op.results, dims))
        elif self._is_full_op(op):
            self.full_values.update(op.results)
        else:
            return False
        self._take(n)
        return True

    def _take(self, n: int) -> None:
        self.ops.append(n)
        self.inside.add(n)
        self.mine.update(self.graph.ops[n].results)

    def _row_dims(self, op: ir.Operation) -> RowDims | None:
        """What the dimensions of the result of a reduction, or of an operation on values per row, lie along."""
        if op.operands[0] in self.row_values and op.name.startswith("tensor."):
            return _row_dims_of_view(op, self.row_values[op.operands[0]])
        if self._is_reduction(op):
            return self.parallel
        if not is_elementwise(op) or op.name != "linalg.generic" or not has_identity_output(op):
            return None
        if any(v in self.full_values for v in inputs_of(op)) or not self._captures_nothing(op):
            return None
        found: list[int | None] = [None] * len(op.attributes["iterator_types"])
        for i, value in enumerate(inputs_of(op)):
            if value in self.row_values and not self._match(op, i, found):
                return None
        ones = [d for d, row in enumerate(found) if row is None]
        return tuple(found) if all(_extent(op, d) == 1 for d in ones) else None

    def _match(self, op: ir.Operation, operand: int, found: list[int | None]) -> bool:
        """Extend `found`, the row dimensions of the iteration dimensions of `op`, by what operand `operand` says."""
        dims = self.row_values[op.operands[operand]]
        for expr, row in zip(operand_map(op, operand).results, dims, strict=True):
            if not isinstance(expr, ir.AffineDimExpr):
                continue  # a constant: the extent is 1
            if row is not None and found[expr.position] not in (None, row):
                return False
            found[expr.position] = row if row is not None else found[expr.position]
        return True

    def _is_reduction(self, op: ir.Operation) -> bool:
        if op.operands[0] not in self.full_values or _parallel_dims(op) != self.parallel:
            return False
        return (self.keeps is None or self.keeps(op)) and self._operands_fit(op)

    def _is_full_op(self, op: ir.Operation) -> bool:
        if not is_elementwise(op) or op.name != "linalg.generic" or not has_identity_output(op):
            return False
        anchored = any(v in self.full_values and is_identity(op, i) for i, v in enumerate(inputs_of(op)))
        return (anchored or self._spreads(op)) and self._operands_fit(op)

    def _spreads(self, op: ir.Operation) -> bool:
        """Is the domain of `op` that of the rows because it reads values per row, and is as long as they are?"""
        domain = self.graph.ops[self.ops[0]].operands[0].type
        if op.results[0].type.rank != domain.rank:
            return False
        along: set[int | None] = set()
        for i, value in enumerate(inputs_of(op)):
            if value in self.row_values and self._along_rows(op, i):
                along.update(self.row_values[value])
        rest = [d for d in range(domain.rank) if d not in self.parallel]
        is_as_long = all(not domain.is_dynamic_dim(d) and _extent(op, d) == domain.get_dim_size(d) for d in rest)
        return along >= set(self.parallel) and is_as_long

    def _operands_fit(self, op: ir.Operation) -> bool:
        """Row values are read along their row, values of the full domain at the same point."""
        for i, value in enumerate(inputs_of(op)):
            if value in self.row_values and not self._along_rows(op, i):
                return False
            if value in self.full_values and value in self.mine and not is_identity(op, i):
                return False
        return self._captures_nothing(op)

    def _along_rows(self, op: ir.Operation, operand: int) -> bool:
        dims = self.row_values[op.operands[operand]]
        pairs = zip(operand_map(op, operand).results, dims, strict=True)
        return all(row is None or not isinstance(e, ir.AffineDimExpr) or e.position == row for e, row in pairs)

    def _captures_nothing(self, op: ir.Operation) -> bool:
        operands = list(op.operands)
        return not any(v in self.mine for v in captured(op) if v not in operands)

    def accept(self) -> bool:
        """Are the escaping values all over the full domain, and is the set one legal kernel?"""
        inside = self.inside
        escaping = [n for n in self.ops if any(u not in inside for u in self.graph.users[n])]
        if not escaping or any(r in self.row_values for n in escaping for r in self.graph.ops[n].results):
            return False
        return self.graph.legal(self.ops)


def find_rows(graph: BlockGraph, keeps: Keeps | None = None) -> None:
    """Make a cluster of every row pattern of the block, and of the column patterns that `keeps` takes."""
    for n, op in enumerate(graph.ops):
        parallel = None if n in graph.cluster else _parallel_dims(op)
        if parallel is None:
            continue
        is_row = parallel == tuple(range(len(parallel)))
        if not is_row and (keeps is None or not keeps(op)):
            continue
        rows = _Rows(graph, n, parallel, None if is_row else keeps)
        rows.grow()
        if len(rows.ops) > 1 and rows.accept():
            graph.new_cluster(rows.ops, "rows" if is_row else "columns")
