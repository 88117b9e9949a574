"""Do reductions in two steps, the first with many results, where `mlc.parts` says so.

```mlir
%s = linalg.generic … sum over %x : 100000x4 {mlc.parts = 200}
// becomes
%a = tensor.expand_shape %x [[0, 1], [2]] output_shape [200, 500, 4] : tensor<100000x4xf32> into tensor<200x500x4xf32>
%b = linalg.generic … sum over %a : tensor<200x4xf32>
%s = linalg.generic … sum over %b : tensor<4xf32>
```
`mlc-plan-splits` decides. Elementwise operations that the reduction alone reads are done in parts too, and stay in its
kernel. Elements behind the last of equal parts are one more reduction, whose result joins that of the parts. Sums and
products of floats narrower than 32 bits are rounded once, at the end: what the first step makes has the type that the
reduction computes in. The parts of the position of an extreme value are that value and its position among all elements;
of parts with the same value the first one counts, or the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.dialects import linalg
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.positions import EXTREME, LAST, finds_position
from mlc.kernels.common.reduce import combiner
from mlc.passes.base import Pass
from mlc.passes.fuse.chains import Chain, Cut, Group
from mlc.passes.fuse.graph import host_blocks
from mlc.passes.fuse.plan_splits import PARTS, reduced

_F, _I = arith.CmpFPredicate, arith.CmpIPredicate
_BETTER = {
    "maximumf": (_F.UGT, _F.OGE), "minimumf": (_F.ULT, _F.OLE), "maxsi": (_I.sgt, _I.sge), "minsi": (_I.slt, _I.sle),
    "maxui": (_I.ugt, _I.uge), "minui": (_I.ult, _I.ule),
}  # fmt: skip


class SplitReductions(Pass):
    """Do reductions in two steps where mlc.parts says so."""

    dialects = ("linalg", "tensor", "arith")
    statistics = {"split": "reductions done in two steps"}

    def run(self, root: ir.OpView) -> None:
        for block in host_blocks(root.operation):
            for op in [view.operation for view in block.operations]:
                if PARTS in op.attributes:
                    with ir.InsertionPoint(op), op.location:
                        _split(op, ir.IntegerAttr(op.attributes[PARTS]).value)
                    self.count("split", 1)


def _split(op: ir.Operation, parts: int) -> None:
    found = reduced(op)
    if found is None or not 0 < parts <= found.length:
        raise ValueError(f"mlc-split-reductions: a reduction with {PARTS} = {parts} cannot be done in parts: {op}")
    del op.attributes[PARTS]
    chain, short = Chain(op, found.group), found.length // parts
    rest = found.length - parts * short
    several = _reduce(chain, Cut(0, (parts, short), is_all=rest == 0), found.group)
    total = _second(op, several, found.group[0])
    if rest:
        total = _joined(op, total, _reduce(chain, Cut(parts * short, (rest,), is_all=False), found.group))
    for old, new in zip(op.results, total, strict=False):
        old.replace_all_uses_with(new)
    _erase([op, *(other for other in chain.groups if other != op)])


def _erase(ops: Sequence[ir.Operation]) -> None:
    """Those that nobody reads any more, readers first."""
    for op in ops:
        if not any(list(r.uses) for r in op.results):
            op.erase()


def _reduce(chain: Chain, cut: Cut, group: Group) -> list[ir.Value]:
    """The reduction of a cut: of the dimensions in place of the group, only the last one is reduced."""
    op, kinds = chain.root, [*["parallel"] * (cut.count - 1), "reduction"]
    kept, outs = list(cut.extents[:-1]), []
    for out in list(op.operands)[1:]:
        shape, fill = list(out.type.shape), defining_op(out)
        assert fill is not None
        empty = tensor.empty([*shape[: group[0]], *kept, *shape[group[0] :]], out.type.element_type)
        outs.append(linalg.fill(fill.operands[0], outs=[empty]))
    made = chain.recut(cut).generic(op, group, outs, kinds)
    rank = len(made.attributes["iterator_types"])
    reduced_dim = group[0] + len(kept)
    exprs = [ir.AffineExpr.get_dim(i) for i in range(rank) if i != reduced_dim]
    maps = list(made.attributes["indexing_maps"])
    maps[1:] = [ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, exprs))] * len(outs)
    made.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    return list(made.results)


def _second(op: ir.Operation, parts: Sequence[ir.Value], at: int) -> list[ir.Value]:
    """`parts`, which the dimension `at` numbers, as one."""
    outs = list(op.operands)[1:]
    rank = parts[0].type.rank
    inner = ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(i) for i in range(rank) if i != at])
    maps = [ir.AffineMap.get_identity(rank)] * len(parts) + [inner] * len(outs)
    kinds = ["reduction" if i == at else "parallel" for i in range(rank)]
    generic = _generic(parts, outs, maps, kinds)
    for name in (EXTREME, LAST):
        if name in op.attributes:
            generic.attributes[name] = op.attributes[name]
    with ir.InsertionPoint(generic.regions[0].blocks[0]):
        arguments = list(generic.regions[0].blocks[0].arguments)
        linalg.YieldOp(_both(op, arguments[len(parts) :], arguments[: len(parts)]))
    return list(generic.results)


def _joined(op: ir.Operation, parts: Sequence[ir.Value], rest: Sequence[ir.Value]) -> list[ir.Value]:
    """Results, from those of all parts and those of the elements behind these."""
    wanted = len(parts) - 1  # of a position and its value only the position is read
    type_ = parts[wanted].type
    maps = [ir.AffineMap.get_identity(type_.rank)] * (2 * len(parts) + 1)
    out = tensor.empty(list(type_.shape), type_.element_type)
    generic = _generic([*parts, *rest], [out], maps, ["parallel"] * type_.rank)
    block = generic.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        arguments = list(block.arguments)
        both = _both(op, arguments[: len(parts)], arguments[len(parts) : 2 * len(parts)])
        linalg.YieldOp([both[wanted]])
    return [*parts[:wanted], generic.results[0]]


def _generic(
    ins: Sequence[ir.Value], outs: Sequence[ir.Value], maps: Sequence[ir.AffineMap], kinds: Sequence[str]
) -> ir.Operation:
    """A generic whose body is empty yet."""
    iterators = ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds])
    attribute = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
    generic = linalg.GenericOp([v.type for v in outs], list(ins), list(outs), attribute, iterators)
    generic.regions[0].blocks.append(*(v.type.element_type for v in [*ins, *outs]))
    return generic.operation


def _both(op: ir.Operation, first: Sequence[ir.Value], second: Sequence[ir.Value]) -> list[ir.Value]:
    """Two parts of the reduction `op` as one; those of a position as `mlc.arg_reduce` takes one element after the other
    (a NaN is the extreme value)."""
    if not finds_position(op):
        combine = combiner(op)
        assert combine is not None
        return [ir.Operation.create(combine.op, [first[0].type], [first[0], second[0]]).results[0]]
    (best, where), (value, place) = first, second
    last = LAST in op.attributes
    predicate = _BETTER[ir.StringAttr(op.attributes[EXTREME]).value][last]
    if not isinstance(best.type, ir.FloatType):
        better = arith.cmpi(predicate, value, best)
    elif last:
        better = arith.ori(arith.cmpf(predicate, value, best), arith.cmpf(_F.UNO, value, value))
    else:
        better = arith.andi(arith.cmpf(predicate, value, best), arith.cmpf(_F.ORD, best, best))
    return [arith.select(better, value, best), arith.select(better, place, where)]
