"""Pass `mlc-group-heads`: attention whose keys and values are repeated for groups of heads reads them once.

    %r = mlc.reshape %k [2, 8, 1, 64, 16]                                      : 2x8x64x16 -> 2x8x1x64x16
    %b = mlc.broadcast %r [2, 8, 4, 64, 16]                                    : … -> 2x8x4x64x16
    %h = mlc.reshape %b [2, 32, 64, 16]                                        : … -> 2x32x64x16
    %y = mlc.attention %q, %h, …
becomes `mlc.attention %q, %k, …`: the heads of keys and values are a divisor of the query's. Models of PyTorch write it
(`repeat_kv` of Hugging Face): a token would copy whole caches for it. In models that write an attention as products,
    %t = mlc.transpose %h, %s = mlc.binary mul %t, %factor                     : 2x32x16x64
    %y = mlc.matmul %q, %s                                                     : 2x32x5x16, 2x32x16x64 -> 2x32x5x64
becomes a product whose `rhs` broadcasts along the members of each group:
    %g = mlc.reshape %q [2, 8, 4, 5, 16]
    %y = mlc.matmul %g, (mlc.transpose %r) * %factor                           : 2x8x4x5x16, 2x8x1x16x64 -> 2x8x4x5x64
The heads may be joined with the batch on the way, as exporters write a transposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.dims import DimAnalysis, constant_of
from mlc.passes.adaptor import OpAdaptor, defining_op, shape_of
from mlc.passes.base import Pass
from mlc.passes.decompose import build as b
from mlc.passes.simplify.rewrite import replace
from mlc.passes.walk import functions, operations

_HEADS, _EACH = 1, 2  # dimensions of a tensor [batch, heads, each, keys, dim]
_FACTORS = ("mlc.binary", "mlc.unary", "mlc.cast")

_Axes = tuple[int, ...]  # dimensions that one dimension joins; those of extent 1 are left out


class GroupHeads(Pass):
    """Lets attention read keys and values without the repetition of their heads."""

    dialects = ("mlc",)
    statistics = {
        "grouped": "attentions that read their keys without repetition",
        "products": "products that read their right side without repetition",
    }

    def run(self, root: ir.OpView) -> None:
        for function in functions(root):
            found = [op for op in operations(function) if op.name in ("mlc.attention", "mlc.matmul")]
            if not any(_may_repeat(op) for op in found):  # an analysis of all extents takes long
                continue
            analysis = DimAnalysis(function)
            for op in found:
                if op.name == "mlc.attention":
                    self.count("grouped", _group_attention(analysis, op))
                else:
                    self.count("products", _group_product(analysis, op))


@dataclass
class _Repetition:
    """`source`, `[batch, heads, 1, keys, dim]` or `[batch, 1, keys, dim]`, repeated along its dimension of extent 1,
    with the last two dimensions `swapped` or not; `factors` are applied to each element, the first one first.
    """

    source: ir.Value
    factors: list[ir.Operation]
    swapped: bool

    def once(self) -> ir.Value:
        """The tensor without the repetition, of the rank of `source`."""
        value = self.source
        if self.swapped:
            value = b.transpose_matrices(value)
        for op in self.factors:
            main = _main_operand(op)
            operands = [value if operand == main else operand for operand in op.operands]
            attributes = {key: op.attributes[key] for key in op.attributes}
            type_ = ir.RankedTensorType.get(value.type.shape, op.results[0].type.element_type)
            value = b.operation(op.name.removeprefix("mlc."), operands, attributes, types=[type_])[0]
        return value


def _group_attention(analysis: DimAnalysis, op: ir.Operation) -> bool:
    """Gives `op` the keys and values that its own are repetitions of, if both are, and as often."""
    key, value = (_repetition(analysis, operand) for operand in list(op.operands)[1:3])
    if key is None or value is None or key.swapped or value.swapped:
        return False
    if not analysis.equal(*(analysis.dims(found.source)[_HEADS] for found in (key, value))):
        return False
    with ir.InsertionPoint(op), op.location:
        for number, found in enumerate((key, value), 1):
            once = found.once()
            op.operands[number] = once if once.type.rank == 4 else b.drop_dim(once, _EACH)
    return True


def _group_product(analysis: DimAnalysis, op: ir.Operation) -> bool:
    """Lets a product read what its right side repeats, if it does."""
    lhs, rhs = op.operands
    found = _repetition(analysis, rhs)
    if found is None or lhs.type.rank != 4 or not 0 < shape_of(lhs)[_HEADS] == shape_of(rhs)[_HEADS]:
        return False
    attributes = {key: op.attributes[key] for key in op.attributes}
    with ir.InsertionPoint(op), op.location:
        once = found.once()
        if once.type.rank == 4:  # a single head broadcasts as it is
            product = b.operation("matmul", [lhs, once], attributes)[0]
        else:
            batch, _, *matrix = b.sizes(lhs)
            heads, shared = shape_of(lhs)[_HEADS], shape_of(once)[_HEADS]
            split = b.reshape(lhs, [batch, shared, heads // shared, *matrix])
            product = b.operation("matmul", [split, once], attributes)[0]
            sizes = b.sizes(product)
            product = b.reshape(product, [sizes[0], heads, *sizes[_EACH + 1 :]])
        replace(op, [product])
    return True


def _main_operand(op: ir.Operation) -> ir.Value | None:
    """The operand whose elements `op` moves, or computes one by one with the same numbers for all; None: no such."""
    if op.name in ("mlc.reshape", "mlc.transpose", "mlc.unary", "mlc.cast"):
        return op.operands[0]
    if op.name != "mlc.binary":
        return None
    tensors = [operand for operand in op.operands if any(extent != 1 for extent in shape_of(operand))]
    return tensors[0] if len(tensors) == 1 and tensors[0].type.rank == op.results[0].type.rank else None


def _path(tensor: ir.Value) -> tuple[ir.Operation | None, list[ir.Operation]]:
    """The broadcast that `tensor` comes from, and what moves or scales its elements on the way, the last one first."""
    path: list[ir.Operation] = []
    op = defining_op(tensor)
    while op is not None and (main := _main_operand(op)) is not None:
        path.append(op)
        op = defining_op(main)
    return (op if op is not None and op.name == "mlc.broadcast" else None), path


def _may_repeat(op: ir.Operation) -> bool:
    return op.operands[1].type.rank == 4 and _path(op.operands[1])[0] is not None


def _repetition(analysis: DimAnalysis, tensor: ir.Value) -> _Repetition | None:
    """What `tensor` `[batch, heads, keys, dim]` repeats the heads of; None: nothing."""
    broadcast, path = _path(tensor)
    if broadcast is None or tensor.type.rank != 4:
        return None
    source, result = broadcast.operands[0], broadcast.results[0]
    before, after = analysis.dims(source), analysis.dims(result)
    rank, place = len(after), _EACH if len(after) == 5 else _HEADS
    if len(before) != rank or rank not in (4, 5) or constant_of(before[place]) != 1:
        return None
    if constant_of(after[place]) in (None, 1) or source.type.is_dynamic_dim(_HEADS):
        return None
    if not all(analysis.equal(x, y) for i, (x, y) in enumerate(zip(before, after, strict=True)) if i != place):
        return None
    axes = [_without_units(after, (i,)) for i in range(rank)]
    heads = _without_units(after, tuple(range(_HEADS, rank - 2)))
    keys, dim = axes[-2:]
    moved = _moved(analysis, path, after, axes)
    for swapped in (False, True):
        if moved == [axes[0], heads, *((dim, keys) if swapped else (keys, dim))]:
            factors = [op for op in reversed(path) if op.name in _FACTORS]
            return _Repetition(source, factors, swapped)
    return None


def _without_units(extents: Sequence[ir.AffineExpr], axes: _Axes) -> _Axes:
    return tuple(axis for axis in axes if constant_of(extents[axis]) != 1)


def _moved(
    analysis: DimAnalysis, path: Sequence[ir.Operation], extents: Sequence[ir.AffineExpr], axes: list[_Axes]
) -> list[_Axes] | None:
    """Which dimensions, of `extents`, each dimension of the result joins behind `path`, its last operation first."""
    for op in reversed(path):
        if op.name == "mlc.transpose":
            axes = [axes[i] for i in OpAdaptor(op).ints("permutation")]
        elif op.name == "mlc.reshape":
            flat = [axis for joined in axes for axis in joined]
            regrouped = _regrouped(analysis, flat, extents, analysis.dims(op.results[0]))
            if regrouped is None:
                return None
            axes = regrouped
    return axes


def _regrouped(
    analysis: DimAnalysis, axes: list[int], extents: Sequence[ir.AffineExpr], shape: Sequence[ir.AffineExpr]
) -> list[_Axes] | None:
    """`axes` in order, divided among the dimensions of `shape`; None where one of them is divided itself."""
    joins = [constant_of(extent) != 1 for extent in shape]
    wanted = [extent for extent, joined in zip(shape, joins, strict=True) if joined]
    groups = analysis.joined([extents[axis] for axis in axes], wanted)
    if groups is None:
        return None
    found = iter(groups)
    return [tuple(axes[place] for place in next(found)) if joined else () for joined in joins]
