"""What a kernel computes, as far as templates and schedules need to know."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.blocks import read_inside
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.common.padding import coordinate_shift

Exprs = list[ir.AffineExpr | None]


def reachable(values: Sequence[ir.Value]) -> Iterator[ir.Operation]:
    """The operations that `values` are computed by, each once, users before producers' producers."""
    seen: set[ir.Operation] = set()
    stack = [op for op in (defining_op(v) for v in values) if op is not None]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        yield op
        stack.extend(d for d in map(defining_op, read_inside(op)) if d is not None and d.block == op.block)


def is_contraction(op: ir.Operation) -> bool:
    """Is `op` a multiply-accumulate generic (docs/ir.md, linalg form)?"""
    return op.name == "linalg.generic" and "mlc.contraction" in op.attributes


def only_moves(values: Sequence[ir.Value], *, widening: bool = False) -> bool:
    """Is nothing computed for `values` by generics, which only say where their elements come from? With `widening`
    floats may become wider."""
    taken = {"linalg.yield", *(["arith.extf"] if widening else [])}
    generics = (op for op in reachable(values) if op.name == "linalg.generic")
    return all(o.operation.name in taken for op in generics for o in op.regions[0].blocks[0].operations)


def is_plain_fma(generic: ir.Operation) -> bool:
    """Is the body `acc + a * b` on f32 or f64 without casts?"""
    block = generic.regions[0].blocks[0]
    ops = [o.operation for o in block.operations]
    if [o.name for o in ops] != ["arith.mulf", "arith.addf", "linalg.yield"]:
        return False
    if not isinstance(block.arguments[2].type, ir.F32Type | ir.F64Type):
        return False
    return {defining_op(v) for v in ops[1].operands} >= {ops[0]}


def root_operation(source: KernelSource) -> ir.Operation:
    """The operation that gives a kernel its template: a contraction, else an opaque one, else the first result's."""
    ops = list(reachable(source.results))
    for op in ops:
        if is_contraction(op):
            return op
    for op in ops:
        if op.name.startswith("mlc.") and op.name != "mlc.constant":
            return op
    for op in ops:
        if op.name == "linalg.generic" and is_reduction(op):
            return op
    return ops[0] if ops else source.func.operation


@dataclass(frozen=True)
class Demand:
    """A reduction and the coordinates, as expressions over the domain, at which a kernel needs its result."""

    value: ir.Value
    exprs: tuple[ir.AffineExpr, ...]

    def depends_on(self, dims: Sequence[int]) -> bool:
        """Does any coordinate depend on one of the domain dimensions `dims`?"""
        return any(_mentions(e, d) for e in self.exprs for d in dims)


def _mentions(expr: ir.AffineExpr, dim: int) -> bool:
    expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
    if isinstance(expr, ir.AffineDimExpr):
        return expr.position == dim
    if isinstance(expr, ir.AffineBinaryExpr):
        return _mentions(expr.lhs, dim) or _mentions(expr.rhs, dim)
    return False


def mentions(expr: ir.AffineExpr, dim: int) -> bool:
    """Does `expr` depend on dimension `dim`?"""
    return _mentions(expr, dim)


def touches(generic: ir.Operation, operand: int, dim: int) -> bool:
    """Are other elements of an operand read at other points of the iteration dimension `dim`?"""
    return any(mentions(e, dim) for e in operand_map(generic, operand).results)


def reduction_demands(roots: Sequence[ir.Value]) -> list[Demand]:
    """Reductions below `roots` (not the roots themselves), producers before consumers.

    Only those reached through generics and casts, whose coordinates are expressions over the domain of the roots.
    """
    found: list[Demand] = []
    seen: set[tuple[int, str]] = set()

    def visit(value: ir.Value, exprs: Exprs, is_root: bool) -> None:
        op = defining_op(value)
        if op is None or op.name not in ("linalg.generic", "tensor.cast"):
            return
        if op.name == "tensor.cast":
            visit(op.operands[0], exprs, is_root)
            return
        key = (hash(value), str(exprs))
        if key in seen:
            return
        seen.add(key)
        rank = len(op.attributes["iterator_types"])
        dims: Exprs = [None] * rank
        out_map = operand_map(op, len(op.operands) - len(op.results) + ir.OpResult(value).result_number)
        for expr, at in zip(out_map.results, exprs, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                dims[expr.position] = at
        for i in range(len(op.operands) - len(op.results)):
            visit(op.operands[i], [_substitute(e, dims) for e in operand_map(op, i).results], False)
        if is_reduction(op) and not is_root and all(e is not None for e in exprs):
            found.append(Demand(value, tuple(e for e in exprs if e is not None)))

    for root in roots:
        rank = root.type.rank
        visit(root, [ir.AffineExpr.get_dim(i) for i in range(rank)], True)
    return found


def _substitute(expr: ir.AffineExpr, dims: Exprs) -> ir.AffineExpr | None:
    """`expr` with its dimensions replaced; None when it needs one that is unknown."""
    expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
    if isinstance(expr, ir.AffineConstantExpr):
        return expr
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    known: list[ir.AffineExpr] = [d if d is not None else ir.AffineExpr.get_constant(0) for d in dims]
    if any(d is None and _mentions(expr, i) for i, d in enumerate(dims)):
        return None
    return expr.compose(ir.AffineMap.get(len(known), 0, known))


def cuts(roots: Sequence[ir.Value], dim: int) -> list[int]:
    """Positions along domain dimension `dim` where the outcome of a comparison of coordinates with constants changes:
    between them a concatenation reads one input, and a padding lies inside or outside."""
    found: set[int] = set()
    seen: set[tuple[int, str]] = set()

    def visit(value: ir.Value, exprs: Exprs) -> None:
        op = defining_op(value)
        key = (hash(value), str(exprs))
        if op is None or op.name != "linalg.generic" or is_reduction(op) or key in seen:
            return
        seen.add(key)
        dims: Exprs = [None] * len(op.attributes["iterator_types"])
        out_map = operand_map(op, len(op.operands) - len(op.results) + ir.OpResult(value).result_number)
        for expr, at in zip(out_map.results, exprs, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                dims[expr.position] = at
        for d, position in compared_positions(op.regions[0]):
            at = dims[d]
            if isinstance(at, ir.AffineDimExpr) and at.position == dim:
                found.add(position)
        for i in range(len(op.operands) - len(op.results)):
            visit(op.operands[i], [_substitute(e, dims) for e in operand_map(op, i).results])

    for root in roots:
        visit(root, [ir.AffineExpr.get_dim(i) for i in range(root.type.rank)])
    return sorted(found)


def compared_positions(region: ir.Region) -> Iterator[tuple[int, int]]:
    """(dimension, position) of the comparisons of `linalg.index` plus a constant with a constant in a body: the first
    position of either outcome, for comparisons without a sign also where the coordinate is no longer negative."""
    for view in region.blocks[0].operations:
        op = view.operation
        for inner in op.regions:
            if len(inner.blocks):
                yield from compared_positions(inner)
        if op.name != "arith.cmpi" or not isinstance(op.operands[0].type, ir.IndexType):
            continue
        shift, limit = (coordinate_shift(v) for v in op.operands)
        if shift is not None and limit is not None and shift[0] is not None and limit[0] is None:
            yield shift[0], limit[1] - shift[1]
            yield shift[0], -shift[1]


def can_flatten(
    roots: Sequence[ir.Value], first: int, last: int, leaves: Collection[ir.Operation] = ()
) -> bool:
    """May domain dimensions `first..last` be walked as one linear dimension? The operands of `leaves` do not count.

    True when every operand that is reached has either all of them, adjacent and in order, or none, so that the linear
    coordinate in place of the last and zeros in place of the others addresses the same element.
    """
    if first == last:
        return True
    group = list(range(first, last + 1))
    stack = [(r, 0) for r in roots]
    seen: set[ir.Value] = set()
    while stack:
        value, shift = stack.pop()
        op = defining_op(value)
        if op is None or value in seen or op in leaves:
            continue
        seen.add(value)
        if op.name in ("tensor.empty", "linalg.fill", "arith.constant", "mlc.constant"):
            continue
        if op.name == "tensor.cast":
            stack.append((op.operands[0], shift))
            continue
        if op.name != "linalg.generic" or is_reduction(op) and not is_contraction(op) or _reads_indices(op):
            return False
        inner = _group_operands(op, [d - shift for d in group])
        if inner is None:
            return False
        for operand, offset in inner:
            stack.append((operand, shift + offset))
    return True


def can_flatten_reduction(op: ir.Operation, first: int, last: int) -> bool:
    """May iteration dimensions `first..last` of a reduction, all of them reduced, be walked as one?"""
    members = list(range(first, last + 1))
    inner = None if _reads_indices(op) else _operands_with(op, members, first)
    if inner is None:
        return False
    return all(can_flatten([value], first - shift, last - shift) for value, shift in inner)


def _group_operands(op: ir.Operation, group: list[int]) -> list[tuple[ir.Value, int]] | None:
    """Operands that hold the whole group, with the shift of its position; None when one holds a part of it."""
    out_map = operand_map(op, len(op.operands) - 1)
    if not all(isinstance(e, ir.AffineDimExpr) for e in out_map.results):
        return None
    order = [e.position for e in out_map.results]
    return _operands_with(op, [order[d] for d in group], group[0])


def holds_part(op: ir.Operation, first: int, last: int) -> bool:
    """Does an elementwise `op` read a tensor that has some of the dimensions `first..last` of its result, so that they
    cannot be walked as one?"""
    return _group_operands(op, list(range(first, last + 1))) is None


def _operands_with(op: ir.Operation, members: list[int], first: int) -> list[tuple[ir.Value, int]] | None:
    """Operands that hold all iteration dimensions `members`, with the shift of their position from `first`; None when
    one holds a part of them."""
    results = []
    for i in range(len(op.operands) - len(op.results)):
        exprs = list(operand_map(op, i).results)
        touching = [p for p, e in enumerate(exprs) if any(_mentions(e, m) for m in members)]
        if not touching:
            continue
        plain = [e.position if isinstance(e, ir.AffineDimExpr) else -1 for e in exprs]
        if [plain[p] for p in touching] != members or touching != list(range(touching[0], touching[-1] + 1)):
            return None
        results.append((op.operands[i], first - touching[0]))
    return results


def _reads_indices(op: ir.Operation) -> bool:
    """Does the body use coordinates, or load at computed addresses?"""
    names = {inner.operation.name for inner in op.regions[0].blocks[0].operations}
    return bool(names & {"linalg.index", "tensor.extract", "scf.if"})
