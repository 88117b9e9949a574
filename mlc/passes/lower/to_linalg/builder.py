"""Building `linalg.generic`s: sizes, sources with affine or run-time access, pointwise and reducing loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.dialects import linalg
from mlc.passes.adaptor import DYNAMIC, Size, defining_op, element, splat_attr
from mlc.passes.lower.to_linalg import scalar
from mlc.passes.lower.to_linalg.sizes import extent, sizes_of

Body = Callable[[list[ir.Value]], "ir.Value | Sequence[ir.Value]"]


@dataclass
class Source:
    """A tensor read at `exprs` of the iteration point; at the positions `dynamic`, where the extent may turn out to be
    1 at run time, the coordinate is then 0."""

    value: ir.Value
    exprs: list[ir.AffineExpr]
    dynamic: set[int] = field(default_factory=set)


def dim(position: int) -> ir.AffineExpr:
    return ir.AffineDimExpr.get(position)


def dims(rank: int) -> list[ir.AffineExpr]:
    return [dim(i) for i in range(rank)]


def const(value: int) -> ir.AffineExpr:
    return ir.AffineConstantExpr.get(value)


def identity(value: ir.Value) -> Source:
    """`value` read at the iteration point itself."""
    return Source(value, dims(value.type.rank))


def tensor_type(sizes: Sequence[Size], element_type: ir.Type) -> ir.RankedTensorType:
    return ir.RankedTensorType.get([s if isinstance(s, int) else DYNAMIC for s in sizes], element_type)


def empty(sizes: Sequence[Size], element_type: ir.Type) -> ir.Value:
    """An uninitialised tensor."""
    return tensor.empty(list(sizes), element_type)


def filled(sizes: Sequence[Size], element_type: ir.Type, value: float | int) -> ir.Value:
    """A tensor with `value` in every element."""
    return linalg.fill(scalar.constant(element_type, value), outs=[empty(sizes, element_type)])


def size_value(size: Size) -> ir.Value:
    """A size as an `index` value."""
    return scalar.index(size) if isinstance(size, int) else size


def peel(source: Source) -> Source:
    """Reads through views that only insert or drop unit dimensions."""
    while not source.dynamic:
        op = defining_op(source.value)
        if op is None or op.name not in ("tensor.expand_shape", "tensor.collapse_shape"):
            return source
        expand = op.name == "tensor.expand_shape"
        inner, outer = op.operands[0], op.results[0]
        exprs = _peeled(op, source.exprs, list((outer if expand else inner).type.shape), expand)
        if exprs is None:
            return source
        source = Source(inner, exprs)
    return source


def _peeled_sources(sources: Sequence[Source], out_exprs: Sequence[ir.AffineExpr], rank: int) -> list[Source]:
    """`sources` read through views, unless then no map would say how far a dimension of the iteration space goes."""
    peeled = [peel(s) for s in sources]
    covered = _covers([*(e for s in peeled for e in s.exprs), *out_exprs], rank)
    return peeled if covered else list(sources)


def _covers(exprs: Sequence[ir.AffineExpr], rank: int) -> bool:
    """Does every dimension of an iteration space occur plainly?"""
    return len({e.position for e in exprs if isinstance(e, ir.AffineDimExpr)}) == rank


def _peeled(op: ir.Operation, exprs: list[ir.AffineExpr], shape: list[int], expand: bool) -> list[ir.AffineExpr] | None:
    if not exprs and not expand:
        return [const(0)] * len(shape)
    result: list[ir.AffineExpr] = []
    for number, group in enumerate(op.attributes["reassociation"]):
        positions = [a.value for a in group]
        moving = [p for p in positions if shape[p] != 1]
        if len(moving) > 1:
            return None
        if expand:
            result.append(exprs[moving[0]] if moving else const(0))
        else:
            result += [exprs[number] if p in moving else const(0) for p in positions]
    return result


def generic(
    outs: Sequence[ir.Value],
    out_maps: Sequence[Sequence[ir.AffineExpr]],
    iterators: str,
    sources: Sequence[Source],
    body: Body,
    attributes: dict[str, ir.Attribute] | None = None,
    *,
    window: tuple[Sequence[int], Sequence[ir.AffineExpr]] | None = None,
) -> list[ir.Value]:
    """A `linalg.generic`; `iterators` has a `p` or an `r` for each dimension.

    The body gets an element per source, then the old element of each output, and returns the new ones. Constant
    sources become scalar constants in the body, sources with run-time broadcasting `tensor.extract`s. `window` gives
    the extents of dimensions that no tensor has.
    """
    out_exprs = [e for m in out_maps for e in m] + list(window[1] if window is not None else [])
    sources = _peeled_sources(sources, out_exprs, len(iterators))
    constants = [_scalar_of(s.value) for s in sources]
    reads = [e for s, c in zip(sources, constants, strict=True) if c is None for e in s.exprs]
    # A contraction keeps both its operands, and so does what has its extents from a constant.
    if "mlc.contraction" in (attributes or {}) or not _covers([*reads, *out_exprs], len(iterators)):
        constants = [None] * len(sources)
    limits = [_limits(s) for s in sources]
    ins = [s for s, c in zip(sources, constants, strict=True) if c is None and not s.dynamic]
    values, exprs = [s.value for s in ins], [s.exprs for s in ins]
    if window is not None:
        values.append(empty(window[0], ir.F32Type.get()))
        exprs.append(list(window[1]))
    rank = len(iterators)
    maps = [_map(rank, e) for e in [*exprs, *out_maps]]
    op = ir.Operation.create(
        "linalg.generic",
        [v.type for v in outs],
        [*values, *outs],
        {
            "indexing_maps": ir.ArrayAttr.get(maps),
            "iterator_types": ir.ArrayAttr.get([_iterator(k) for k in iterators]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(values), len(outs)]),
            **(attributes or {}),
        },
        regions=1,
    )
    block = op.regions[0].blocks.append(*(element(v) for v in [*values, *outs]))
    with ir.InsertionPoint(block):
        passed = iter(list(block.arguments)[: len(ins)])
        args = []
        for source, make, limit in zip(sources, constants, limits, strict=True):
            if make is not None:
                args.append(make())
            else:
                args.append(_extract_dynamic(source, limit) if source.dynamic else next(passed))
        result = body(args + list(block.arguments)[len(values) :])
        linalg.YieldOp([result] if isinstance(result, ir.Value) else list(result))
    return list(op.results)


def _scalar_of(value: ir.Value) -> Callable[[], ir.Value] | None:
    """How a body makes the element of a tensor whose elements are all one constant, or one size; None for others."""
    attr = splat_attr(value)
    if attr is not None:
        return lambda: scalar.constant(element(value), attr.value)
    op = defining_op(value)
    if op is None or op.name != "tensor.from_elements" or len(op.operands) != 1:
        return None
    cast = defining_op(op.operands[0])
    if cast is None or cast.name != "arith.index_cast" or not isinstance(cast.operands[0].type, ir.IndexType):
        return None
    return lambda: arith.index_cast(element(value), cast.operands[0])


def pointwise(
    sizes: Sequence[Size], element_type: ir.Type, sources: Sequence[Source], body: Callable[[list[ir.Value]], ir.Value]
) -> ir.Value:
    """One result element for each iteration point, from the elements of `sources`."""
    rank = len(sizes)
    if any(isinstance(s, int) and s == 0 for s in sizes):
        return empty(sizes, element_type)
    return generic([empty(sizes, element_type)], [dims(rank)], "p" * rank, sources, lambda args: body(args[:-1]))[0]


def elementwise(value: ir.Value, element_type: ir.Type, body: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """`body` on every element of `value`."""
    return pointwise(sizes_of(value), element_type, [identity(value)], lambda args: body(args[0]))


def indices(rank: int) -> list[ir.Value]:
    """Coordinates of the iteration point, inside a body."""
    return [linalg.IndexOp(i).result for i in range(rank)]


def _map(rank: int, exprs: Sequence[ir.AffineExpr]) -> ir.AffineMapAttr:
    return ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, list(exprs)))


def _iterator(kind: str) -> ir.Attribute:
    name = {"p": "parallel", "r": "reduction"}[kind]
    return ir.Attribute.parse(f"#linalg.iterator_type<{name}>")


def _limits(source: Source) -> dict[int, ir.Value]:
    """Extents of the dimensions that may broadcast at run time, computed outside the body."""
    return {i: size_value(extent(source.value, i)) for i in source.dynamic}


def _extract_dynamic(source: Source, limits: dict[int, ir.Value]) -> ir.Value:
    coordinates = []
    for position, expr in enumerate(source.exprs):
        coordinate = coordinate_value(expr)
        if position in limits:
            is_one = arith.cmpi(scalar.I.eq, limits[position], scalar.index(1))
            coordinate = arith.select(is_one, scalar.index(0), coordinate)
        coordinates.append(coordinate)
    return tensor.extract(source.value, coordinates)


def coordinate_value(expr: ir.AffineExpr) -> ir.Value:
    """A plain affine expression as arithmetic on `linalg.index`, inside a body."""
    if isinstance(expr, ir.AffineConstantExpr):
        return scalar.index(expr.value)
    if isinstance(expr, ir.AffineDimExpr):
        return linalg.IndexOp(expr.position).result
    left, right = coordinate_value(expr.lhs), coordinate_value(expr.rhs)
    if isinstance(expr, ir.AffineAddExpr):
        return arith.addi(left, right)
    if isinstance(expr, ir.AffineMulExpr):
        return arith.muli(left, right)
    raise ValueError(f"no arithmetic for {expr}")
