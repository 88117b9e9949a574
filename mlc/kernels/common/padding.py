"""Recognising constant padding: a generic that reads a tensor where its coordinates lie inside, else a constant."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_identity


@dataclass(frozen=True)
class Padding:
    """`result[c] = source[c - low]` where that lies inside of `source` in the dimensions `dims`, else `value`.

    `low` has an entry for every dimension, 0 for those that are not padded.
    """

    source: ir.Value
    low: tuple[int, ...]
    dims: tuple[int, ...]
    value: ir.Attribute


def padding_of(op: ir.Operation) -> Padding | None:
    """The padding that `op` computes; None when it is anything else, or its amounts are known at run time only."""
    if op.name != "linalg.generic" or len(op.results) != 1 or len(op.operands) != 1:
        return None
    branch = _branch(op)
    extract, value = (None, None) if branch is None else _sides(branch)
    if branch is None or extract is None or value is None:
        return None
    source = extract.operands[0]
    shifts = [coordinate_shift(c) for c in list(extract.operands)[1:]]
    rank = op.results[0].type.rank
    if source.type.rank != rank or any(s is None for s in shifts):
        return None
    low = []
    for i, shift in enumerate(shifts):
        dim, amount = shift if shift is not None else (None, 0)
        unit = dim is None and amount == 0 and source.type.shape[i] == op.results[0].type.shape[i] == 1
        if dim != i and not unit:
            return None
        low.append(-amount)
    limits = _comparisons(branch.operands[0])
    if limits is None or not all(_is_extent(limit.operands[1], source, dim) for limit, dim in limits):
        return None
    return Padding(source, tuple(low), tuple(sorted({dim for _, dim in limits})), value)


def padded_tensor(op: ir.Operation) -> ir.Value | None:
    """The tensor that `op` reads, each dimension at its own coordinate plus a constant, wherever a condition on the
    coordinates holds, beside one number; None when it is anything else."""
    if op.name != "linalg.generic" or len(op.results) != 1 or not is_identity(op, len(op.operands) - 1):
        return None
    branch = _branch(op)
    if branch is None or any(v.type.rank for v in list(op.operands)[:-1]):
        return None
    inside, outside = ([o.operation for o in r.blocks[0].operations] for r in branch.regions)
    if [o.name for o in inside] != ["tensor.extract", "scf.yield"] or [o.name for o in outside] != ["scf.yield"]:
        return None
    source, *coordinates = inside[0].operands
    shape = source.type.shape
    if len(shape) != op.results[0].type.rank or inside[1].operands[0] != inside[0].results[0]:
        return None
    shifts = [coordinate_shift(c) for c in coordinates]
    own = (s is not None and s[0] == i or shape[i] == 1 for i, s in enumerate(shifts))
    return source if all(own) else None


def _branch(op: ir.Operation) -> ir.Operation | None:
    """The branch, on coordinates, whose result is all that the body of a generic gives."""
    ops = [o.operation for o in op.regions[0].blocks[0].operations]
    branches = [o for o in ops if o.name == "scf.if"]
    names = {o.name for o in ops} - {"scf.if", "linalg.index", "linalg.yield", "arith.constant", "arith.addi"}
    if len(branches) != 1 or names - {"arith.subi", "arith.cmpi", "arith.andi"}:
        return None
    return branches[0] if list(ops[-1].operands) == list(branches[0].results) else None


def _sides(branch: ir.Operation) -> tuple[ir.Operation | None, ir.Attribute | None]:
    """The load of the first side and the constant of the second."""
    inside, outside = ([o.operation for o in r.blocks[0].operations] for r in branch.regions)
    if [o.name for o in inside] != ["tensor.extract", "scf.yield"] or [o.name for o in outside] != ["scf.yield"]:
        return None, None
    constant = defining_op(outside[0].operands[0])
    if constant is None or constant.name != "arith.constant" or inside[1].operands[0] != inside[0].results[0]:
        return None, None
    return inside[0], constant.attributes["value"]


def coordinate_shift(value: ir.Value) -> tuple[int | None, int] | None:
    """`value` as (dimension, constant) of `linalg.index dimension + constant`; the dimension is None for constants."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "linalg.index":
        return ir.IntegerAttr(op.attributes["dim"]).value, 0
    if op.name == "arith.constant":
        return None, ir.IntegerAttr(op.attributes["value"]).value
    if op.name not in ("arith.addi", "arith.subi"):
        return None
    a, b = (coordinate_shift(v) for v in op.operands)
    if a is None or b is None or b[0] is not None:
        return None
    return a[0], a[1] + b[1] if op.name == "arith.addi" else a[1] - b[1]


def limits_of(op: ir.Operation) -> tuple[ir.Value, list[tuple[ir.Operation, int]]]:
    """The source of the padding `op`, and the comparisons with an extent of it, each with the dimension."""
    branch = _branch(op)
    extract = None if branch is None else _sides(branch)[0]
    limits = None if branch is None else _comparisons(branch.operands[0])
    assert extract is not None and limits is not None
    return extract.operands[0], limits


def _comparisons(condition: ir.Value) -> list[tuple[ir.Operation, int]] | None:
    """What has to hold for `condition`, if that is coordinates below something: each with its dimension."""
    op = defining_op(condition)
    if op is None:
        return None
    if op.name == "arith.andi":
        sides = [_comparisons(v) for v in op.operands]
        return None if sides[0] is None or sides[1] is None else sides[0] + sides[1]
    if op.name != "arith.cmpi" or ir.IntegerAttr(op.attributes["predicate"]).value != _ULT:
        return None
    shift = coordinate_shift(op.operands[0])
    return None if shift is None or shift[0] is None else [(op, shift[0])]


def _is_extent(value: ir.Value, source: ir.Value, dim: int) -> bool:
    """Is `value` the extent of dimension `dim` of `source`, or what that was made with?"""
    if not source.type.is_dynamic_dim(dim):
        return coordinate_shift(value) == (None, source.type.shape[dim])
    op = defining_op(value)
    if op is not None and op.name == "tensor.dim" and op.operands[0] == source:
        return coordinate_shift(op.operands[1]) == (None, dim)
    size = _size_of(source, dim)
    return size is not None and size == value


def _size_of(tensor: ir.Value, dim: int) -> ir.Value | None:
    """The size that a dynamic dimension of `tensor` was made with; None where that is not seen."""
    op = defining_op(tensor)
    if op is None:
        return None
    before = sum(tensor.type.is_dynamic_dim(i) for i in range(dim))
    if op.name == "tensor.empty":
        return op.operands[before]
    if op.name == "tensor.expand_shape":
        return op.operands[1 + before]
    if op.name == "tensor.collapse_shape":
        source = op.operands[0]
        group = [a.value for a in op.attributes["reassociation"][dim] if source.type.shape[a.value] != 1]
        return _size_of(source, group[0]) if len(group) == 1 else None
    if op.name.startswith("linalg.") or op.name == "mlc.launch":
        return _size_of(op.operands[len(op.operands) - len(op.results) + ir.OpResult(tensor).result_number], dim)
    return None


_ULT = 6  # arith.cmpi ult
