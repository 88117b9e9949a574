"""How a kernel reads its inputs, as expressions over the domain of its results."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.common.padding import padded_tensor

Exprs = tuple[ir.AffineExpr, ...]
_PLAIN = ("tensor.empty", "linalg.fill", "arith.constant", "mlc.constant")


def input_accesses(results: Sequence[ir.Value], root: ir.Operation | None = None) -> dict[ir.Value, set[Exprs]] | None:
    """The coordinates at which each argument is read for an element of the results, not counting what `root` reads.

    None for kernels that reduce (except in `root`), read computed addresses, or reach an argument through a view.
    """
    found, is_all = _accesses(results, root)
    return found if is_all else None


def accesses_beside_padding(results: Sequence[ir.Value]) -> dict[ir.Value, set[Exprs]] | None:
    """Those of `input_accesses`, where what is padded counts as read at its own coordinates, as if there were none."""
    found, is_all = _accesses(results, None, past_padding=True)
    return found if is_all else None


def plain_accesses(results: Sequence[ir.Value]) -> dict[ir.Value, set[Exprs]]:
    """Those of `input_accesses` that no reduction, view or computed address is in between of."""
    return _accesses(results, None)[0]


def _accesses(
    results: Sequence[ir.Value], root: ir.Operation | None, *, past_padding: bool = False
) -> tuple[dict[ir.Value, set[Exprs]], bool]:
    """The accesses that are found, and whether they are all: results of another rank than the first have elements of
    their own, which its dimensions say nothing of."""
    rank = results[0].type.rank
    alike = [r for r in results if r.type.rank == rank]
    is_all = len(alike) == len(results)
    found: dict[ir.Value, set[Exprs]] = {}
    stack = [(r, tuple(ir.AffineExpr.get_dim(i) for i in range(rank))) for r in alike]
    seen = set(stack)  # values with several readers make more paths than anyone can walk
    while stack:
        value, exprs = stack.pop()
        op = defining_op(value)
        if op is None:
            found.setdefault(value, set()).add(exprs)
            continue
        if root is not None and op == root:
            continue
        if op.name == "tensor.cast":
            read = [(op.operands[0], exprs)]
        elif op.name == "linalg.generic" and not is_reduction(op) and _only_computes(op):
            read = _operands(op, value, exprs, rank)
        elif past_padding and (padded := padded_tensor(op)) is not None:
            read = [(padded, exprs)]
        else:
            is_all &= op.name in _PLAIN
            continue
        fresh = [place for place in dict.fromkeys(read) if place not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return found, is_all


def _only_computes(op: ir.Operation) -> bool:
    """Is the body arithmetic on its arguments, without branches, loads or assertions?"""
    names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    return all(name.startswith(("arith.", "math.")) or name == "linalg.yield" for name in names)


def _operands(op: ir.Operation, value: ir.Value, exprs: Exprs, rank: int) -> list[tuple[ir.Value, Exprs]]:
    """The inputs of a generic that its body uses, and where they are read for the element `exprs` of `value`.

    `rank` is the number of dimensions that expressions may mention.
    """
    inputs = len(op.operands) - len(op.results)
    out_map = operand_map(op, inputs + ir.OpResult(value).result_number)
    dims: list[ir.AffineExpr] = [ir.AffineExpr.get_constant(0)] * len(op.attributes["iterator_types"])
    for place, expr in zip(out_map.results, exprs, strict=True):
        if isinstance(place, ir.AffineDimExpr):
            dims[place.position] = expr
    arguments = op.regions[0].blocks[0].arguments
    used = [i for i in range(inputs) if any(True for _ in arguments[i].uses)]
    at = ir.AffineMap.get(rank, 0, dims)
    return [(op.operands[i], tuple(_at(e, at) for e in operand_map(op, i).results)) for i in used]


def _at(expr: ir.AffineExpr, dims: ir.AffineMap) -> ir.AffineExpr:
    """`expr` with its dimensions replaced, as an instance of its own class."""
    return expr.compose(dims).maybe_downcast()


def write_dim(shape: Sequence[int | None]) -> int:
    """The dimension that a result of this shape is contiguous along; -1 when it has one element."""
    return max((i for i, extent in enumerate(shape) if extent != 1), default=-1)


def read_dim(argument: ir.Value, accesses: set[tuple[ir.AffineExpr, ...]], write: int) -> int | None:
    """The result dimension that an input is contiguous along, where that is not `write` although the input has it."""
    if len(accesses) != 1:
        return None
    (exprs,) = accesses
    dims = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in exprs]
    moving = [d for d, e in zip(dims, argument.type.shape, strict=True) if e != 1]
    if None in moving or len(set(moving)) != len(moving) or write not in moving or moving[-1] == write:
        return None
    return moving[-1]
