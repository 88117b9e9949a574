"""Pass `mlc-lift-reductions`: reductions come before a transpose that would put what they reduce side by side.

    %t = mlc.transpose %x {permutation = array<i64: 2, 0, 3, 4, 1>} : 16x196x3x4x48 -> 3x16x4x48x196
    %q = mlc.slice %t [0, 0, 0, 0, 0] [1, 16, 4, 48, 196]
    %s = mlc.reduce sum (mlc.binary mul %q, %q) {axes = array<i64: 4>}
becomes
    %q = mlc.slice %x [0, 0, 0, 0, 0] [16, 196, 1, 4, 48]
    %s = mlc.reshape (mlc.reduce sum (mlc.binary mul %q, %q) {axes = array<i64: 1>})

Elements that lie together stay so: columns are reduced as fast as rows, and the transpose has one reader less. Others
may be products only, which read any order: what is computed in the new order element by element needs it anyway, and
has rows of its own then. Slices, dimensions of one element that come or go, and functions of the elements may lie in
between. Takes tensors of known shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, readers, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import erase_unread
from mlc.passes.walk import functions, operations

_MOVES = ("mlc.reshape", "mlc.transpose", "mlc.cast")
_LOOKED_THROUGH = ("mlc.transpose", "mlc.slice", "mlc.reshape")
_FUNCTIONS = ("mlc.unary", "mlc.binary", "mlc.cast", "mlc.activation")


class LiftReductions(Pass):
    """Reduces tensors in the order that they have in memory."""

    dialects = ("mlc",)
    statistics = {"lifted": "reductions that read what a transpose reads"}

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            for op in [op for op in operations(function) if op.name == "mlc.reduce"]:
                leaf = _leaf(op)
                found = None if leaf is None else _transpose(leaf, OpAdaptor(op).ints("axes"))
                if leaf is not None and found is not None:
                    _lift(op, leaf, found)
                    self.count("lifted")


def _leaf(op: ir.Operation) -> ir.Value | None:
    """The tensor of whose elements, one by one, what an operation reduces is computed, for nothing else."""
    leaves: list[ir.Value] = []
    computing: set[ir.Operation] = {op}
    pending = [op.operands[0]]
    while pending:
        value = pending.pop()
        source = defining_op(value)
        if source is not None and source.name in _FUNCTIONS and computing.issuperset(readers(value)):
            computing.add(source)
            pending += [v for v in source.operands if v.type.rank and prod(v.type.shape) != 1]
        else:
            leaves.append(value)
    first = leaves[0] if leaves else None
    if first is None or not first.type.has_static_shape or any(leaf != first for leaf in leaves):
        return None
    is_free = all(r in computing or _multiplies(r) for r in readers(first))
    return first if is_free and shape_of(first) == shape_of(op.operands[0]) else None


def _multiplies(op: ir.Operation) -> bool:
    """Is this a product, or a movement whose result products read only?"""
    return op.name == "mlc.matmul" or (op.name in _MOVES and all(map(_multiplies, readers(op.results[0]))))


@dataclass
class _Transpose:
    """The tensor before a transpose, the dimensions of it that are reduced, and the part of it that is: the first
    element and the number of them along each dimension."""

    source: ir.Value
    permutation: list[int]
    axes: list[int]
    offsets: list[int]
    sizes: list[int]


def _transpose(leaf: ir.Value, axes: list[int]) -> _Transpose | None:
    """The transpose behind which `leaf` is, if it has put the reduced dimensions last."""
    value, offsets, sizes = leaf, [0] * leaf.type.rank, shape_of(leaf)
    while (op := defining_op(value)) is not None and op.name in _LOOKED_THROUGH:
        if not op.operands[0].type.has_static_shape:
            return None
        if op.name == "mlc.transpose":
            return _lifted(op, axes, offsets, sizes)
        if op.name == "mlc.slice" and all(s == 1 for s in OpAdaptor(op).ints("static_strides")):
            first = OpAdaptor(op).ints("static_offsets")
            if any(n < 0 for n in first):
                return None
            offsets = [low + more for low, more in zip(offsets, first, strict=True)]
        elif op.name == "mlc.reshape" and (dims := _places(shape_of(op.operands[0]), shape_of(value))) is not None:
            rank = op.operands[0].type.rank
            axes = [dims[axis] for axis in axes if axis in dims]
            kept = {dims[i]: (offsets[i], sizes[i]) for i in dims}
            offsets, sizes = ([kept.get(i, (0, 1))[part] for i in range(rank)] for part in range(2))
        else:
            return None
        value = op.operands[0]
    return None


def _places(old: list[int], new: list[int]) -> dict[int, int] | None:
    """Where dimensions of a reshaped tensor were before, if only those of one element have come or gone."""
    kept, had = [i for i, e in enumerate(new) if e != 1], [i for i, e in enumerate(old) if e != 1]
    return dict(zip(kept, had, strict=True)) if [new[i] for i in kept] == [old[i] for i in had] else None


def _lifted(op: ir.Operation, axes: list[int], offsets: list[int], sizes: list[int]) -> _Transpose | None:
    permutation = OpAdaptor(op).ints("permutation")
    rank, back = len(permutation), {dim: i for i, dim in enumerate(permutation)}
    reduced = sorted(permutation[axis] for axis in axes)
    moving = [i for i in range(rank) if sizes[back[i]] != 1]
    was_last = bool(moving) and max(i for i in range(rank) if sizes[i] != 1) in axes
    if not was_last or moving[-1] in reduced:
        return None
    return _Transpose(
        op.operands[0], permutation, reduced, *([part[back[i]] for i in range(rank)] for part in (offsets, sizes))
    )


def _lift(op: ir.Operation, leaf: ir.Value, found: _Transpose) -> None:
    with ir.InsertionPoint(op), op.location:
        part = found.source
        if found.sizes != shape_of(part):
            part = b.slice_(part, found.offsets, found.sizes)
        value = _computed(op.operands[0], leaf, part)
        shape = [1 if i in found.axes else extent for i, extent in enumerate(shape_of(value))]
        changes = {"axes": b.integers(found.axes), "keepdims": ir.BoolAttr.get(True)}
        reduced = b.again(op, [value], shape, changes=changes)
        result = b.reshape(b.transpose(reduced, found.permutation), shape_of(op.results[0]))
    op.results[0].replace_all_uses_with(result)
    erase_unread(op)


def _computed(value: ir.Value, leaf: ir.Value, part: ir.Value) -> ir.Value:
    """A function of the elements of `leaf`, of those of `part` instead."""
    if value == leaf:
        return part
    op = defining_op(value)
    assert op is not None
    if op.name not in _FUNCTIONS or shape_of(value) != shape_of(leaf):
        return value
    return b.again(op, [_computed(v, leaf, part) for v in op.operands], shape_of(part))
