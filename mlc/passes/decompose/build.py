"""Short builders of `mlc` operations at the current insertion point; result types are inferred."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, defining_op, element
from mlc.passes.walk import behind


def operation(
    name: str,
    operands: Sequence[ir.Value],
    attributes: dict[str, ir.Attribute] | None = None,
    *,
    types: Sequence[ir.Type] | None = None,
    segments: Sequence[int] | None = None,
) -> list[ir.Value]:
    """Results of a new operation `mlc.<name>`; `segments` groups the operands of one that has several lists."""
    attrs = dict(attributes or {})
    if segments is not None:
        attrs["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(list(segments))
    op = ir.Operation.create(f"mlc.{name}", types, list(operands), attrs, infer_type=types is None)
    return list(op.results)


def again(
    op: ir.Operation,
    operands: Sequence[ir.Value],
    shape: Sequence[int],
    element_: ir.Type | None = None,
    changes: dict[str, ir.Attribute] | None = None,
) -> ir.Value:
    """The result of the same operation on other operands, of which it has this shape, and its own type of elements
    unless another is given; `changes` are attributes that differ."""
    type_ = ir.RankedTensorType.get(list(shape), element_ or element(op.results[0]))
    attributes = {name: op.attributes[name] for name in op.attributes} | (changes or {})
    return ir.Operation.create(op.name, [type_], list(operands), attributes).results[0]


def text(value: str) -> ir.StringAttr:
    return ir.StringAttr.get(value)


def integer(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def integers(values: Sequence[int]) -> ir.DenseI64ArrayAttr:
    return ir.DenseI64ArrayAttr.get(list(values))


def number(value: float) -> ir.FloatAttr:
    return ir.FloatAttr.get(ir.F64Type.get(), value)


def unit(present: bool, name: str) -> dict[str, ir.Attribute]:
    """The unit attribute `name`, or nothing."""
    return {name: ir.UnitAttr.get()} if present else {}


def i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def f32() -> ir.Type:
    return ir.F32Type.get()


def is_float(type_: ir.Type) -> bool:
    return isinstance(type_, ir.FloatType)


def is_bool(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width == 1


# ---- constants and sizes ---------------------------------------------------------------------------------------------


def scalar(value: float | int, type_: ir.Type) -> ir.Value:
    """A rank-0 constant."""
    if is_float(type_):
        attr: ir.Attribute = ir.FloatAttr.get(type_, float(value))
    elif type_.width == 1:
        attr = ir.BoolAttr.get(bool(value))
    else:
        attr = ir.IntegerAttr.get(type_, int(value))
    dense = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], type_), attr)
    return operation("constant", [], {"value": dense})[0]


def like(x: ir.Value, value: float | int) -> ir.Value:
    """A rank-0 constant of the element type of `x`."""
    return scalar(value, element(x))


def size(x: ir.Value, position: int) -> Size:
    """Extent of `x`: a number, or an `index` value."""
    known = x.type.shape[position]
    return known if known != DYNAMIC else tensor.dim(x, index(position))


def sizes(x: ir.Value) -> list[Size]:
    return [size(x, i) for i in range(x.type.rank)]


def index(value: Size) -> ir.Value:
    """A size as an `index` value."""
    return value if isinstance(value, ir.Value) else arith.constant(ir.IndexType.get(), value)


def size_scalar(x: ir.Value, position: int, type_: ir.Type) -> ir.Value:
    """An extent as a rank-0 tensor."""
    known = x.type.shape[position]
    if known != DYNAMIC:
        return scalar(known, type_)
    shape = operation("shape_of", [x])[0]
    return cast(reshape(slice_(shape, [position], [1]), []), type_)


def _mixed(what: str, values: Sequence[Size]) -> tuple[dict[str, ir.Attribute], list[ir.Value]]:
    statics = [v if isinstance(v, int) else DYNAMIC for v in values]
    return {f"static_{what}": integers(statics)}, [v for v in values if isinstance(v, ir.Value)]


# ---- elementwise -----------------------------------------------------------------------------------------------------


def unary(kind: str, x: ir.Value) -> ir.Value:
    return operation("unary", [x], {"kind": text(kind)})[0]


def binary(kind: str, a: ir.Value, b: ir.Value | float, unsigned: bool = False) -> ir.Value:
    """`b` may be a number: it becomes a constant of the element type of `a`."""
    other = b if isinstance(b, ir.Value) else like(a, b)
    return operation("binary", [a, other], {"kind": text(kind), **unit(unsigned, "unsigned")})[0]


def add(a: ir.Value, b: ir.Value | float) -> ir.Value:
    return binary("add", a, b)


def sub(a: ir.Value, b: ir.Value | float) -> ir.Value:
    return binary("sub", a, b)


def mul(a: ir.Value, b: ir.Value | float) -> ir.Value:
    return binary("mul", a, b)


def div(a: ir.Value, b: ir.Value | float) -> ir.Value:
    return binary("div", a, b)


def maximum(a: ir.Value, b: ir.Value | float, unsigned: bool = False) -> ir.Value:
    return binary("max", a, b, unsigned)


def minimum(a: ir.Value, b: ir.Value | float, unsigned: bool = False) -> ir.Value:
    return binary("min", a, b, unsigned)


def clip(x: ir.Value, low: float, high: float) -> ir.Value:
    return minimum(maximum(x, low), high)


def compare(predicate: str, a: ir.Value, b: ir.Value | float) -> ir.Value:
    other = b if isinstance(b, ir.Value) else like(a, b)
    return operation("compare", [a, other], {"predicate": text(predicate)})[0]


def select(condition: ir.Value, on_true: ir.Value, on_false: ir.Value) -> ir.Value:
    return operation("select", [condition, on_true, on_false])[0]


def cast_behind(x: ir.Value, type_: ir.Type) -> ir.Value:
    """`x` with another element type, behind where it is defined: for all that read it."""
    op = defining_op(x)
    with behind(x), ir.Location.unknown() if op is None else op.location:
        return cast(x, type_)


def cast(
    x: ir.Value,
    type_: ir.Type,
    *,
    unsigned_in: bool = False,
    unsigned_out: bool = False,
    saturate: bool = False,
) -> ir.Value:
    """`x` with another element type; `x` itself when it has that type."""
    if element(x) == type_:
        return x
    flags = {
        **unit(unsigned_in, "unsigned_in"),
        **unit(unsigned_out, "unsigned_out"),
        **unit(saturate, "saturate"),
    }
    return operation("cast", [x], flags, types=[ir.RankedTensorType.get(x.type.shape, type_)])[0]


# ---- reductions and contractions -------------------------------------------------------------------------------------


def reduce(kind: str, x: ir.Value, axes: Sequence[int], keepdims: bool = True) -> ir.Value:
    attributes = {"kind": text(kind), "axes": integers(axes), "keepdims": ir.BoolAttr.get(keepdims)}
    return operation("reduce", [x], attributes)[0]


def count(x: ir.Value, axes: Sequence[int], type_: ir.Type) -> ir.Value:
    """How many elements a reduction over `axes` takes together, as a rank-0 tensor."""
    known, result = 1, None
    for axis in axes:
        extent = x.type.shape[axis]
        if extent != DYNAMIC:
            known *= extent
            continue
        factor = size_scalar(x, axis, type_)
        result = factor if result is None else mul(result, factor)
    if result is None:
        return scalar(known, type_)
    return result if known == 1 else mul(result, known)


def mean(x: ir.Value, axes: Sequence[int], keepdims: bool = True) -> ir.Value:
    """The arithmetic mean; a multiplication by the reciprocal would lose an ulp."""
    return div(reduce("sum", x, axes, keepdims), count(x, axes, element(x)))


def matmul(a: ir.Value, b: ir.Value, *, transpose_rhs: bool = False) -> ir.Value:
    return operation("matmul", [a, b], unit(transpose_rhs, "transpose_rhs"))[0]


def wide_matmul(a: ir.Value, b: ir.Value, *, transpose_rhs: bool = False) -> ir.Value:
    """A product that keeps its accumulators, of f32 for narrower floats."""
    widen = unit(wide_type(element(a)) != element(a), "widen")
    return operation("matmul", [a, b], {**unit(transpose_rhs, "transpose_rhs"), **widen})[0]


# ---- shapes ----------------------------------------------------------------------------------------------------------


def reshape(x: ir.Value, to: Sequence[Size]) -> ir.Value:
    statics, dynamic = _mixed("sizes", to)
    return operation("reshape", [x, *dynamic], statics)[0]


def expand_dims(x: ir.Value, positions: Sequence[int]) -> ir.Value:
    """Unit dimensions at `positions` of the result."""
    own = iter(sizes(x))
    rank = x.type.rank + len(positions)
    return reshape(x, [1 if i in positions else next(own) for i in range(rank)])


def drop_dim(x: ir.Value, position: int) -> ir.Value:
    """Without a dimension of extent 1."""
    return reshape(x, [s for i, s in enumerate(sizes(x)) if i != position])


def channelwise(x: ir.Value, rank: int, axis: int = 1) -> ir.Value:
    """A `[C]` tensor as `[1, C, 1, …]`, to broadcast along `axis`."""
    return expand_dims(x, [i for i in range(rank) if i != axis])


def transpose(x: ir.Value, permutation: Sequence[int]) -> ir.Value:
    return operation("transpose", [x], {"permutation": integers(permutation)})[0]


def transpose_matrices(x: ir.Value) -> ir.Value:
    """The last two dimensions in each other's place."""
    rank = x.type.rank
    return transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def broadcast(x: ir.Value, to: Sequence[Size]) -> ir.Value:
    statics, dynamic = _mixed("sizes", to)
    return operation("broadcast", [x, *dynamic], statics)[0]


def concat(values: Sequence[ir.Value], axis: int) -> ir.Value:
    return values[0] if len(values) == 1 else operation("concat", values, {"axis": integer(axis)})[0]


def slice_(x: ir.Value, offsets: Sequence[Size], to: Sequence[Size], strides: Sequence[Size] | None = None) -> ir.Value:
    parts = [_mixed("offsets", offsets), _mixed("sizes", to), _mixed("strides", strides or [1] * len(to))]
    statics = {name: attr for attrs, _ in parts for name, attr in attrs.items()}
    operands = [v for _, values in parts for v in values]
    return operation("slice", [x, *operands], statics, segments=[1, *(len(v) for _, v in parts)])[0]


def slice_dim(x: ir.Value, axis: int, offset: Size, extent: Size) -> ir.Value:
    """`extent` elements from `offset` on along one dimension."""
    offsets: list[Size] = [0] * x.type.rank
    offsets[axis] = offset
    to = [extent if i == axis else s for i, s in enumerate(sizes(x))]
    return slice_(x, offsets, to)


def pad(x: ir.Value, low: Sequence[Size], high: Sequence[Size], value: float | None = None) -> ir.Value:
    """Constant padding, zero unless `value` is given."""
    parts = [_mixed("low", low), _mixed("high", high)]
    statics = {name: attr for attrs, _ in parts for name, attr in attrs.items()}
    fill = [] if value is None else [like(x, value)]
    operands = [v for _, values in parts for v in values]
    counts = [1, len(fill), *(len(v) for _, v in parts)]
    return operation("pad", [x, *fill, *operands], {**statics, "mode": text("constant")}, segments=counts)[0]


def iota(to: Sequence[Size], axis: int, type_: ir.Type) -> ir.Value:
    """Coordinates along `axis`."""
    statics, dynamic = _mixed("sizes", to)
    shape = [s if isinstance(s, int) else DYNAMIC for s in to]
    types = [ir.RankedTensorType.get(shape, type_)]
    return operation("iota", dynamic, {**statics, "axis": integer(axis)}, types=types)[0]


def arange(extent: Size, type_: ir.Type) -> ir.Value:
    """`0 … extent - 1`."""
    return iota([extent], 0, type_)


def gather(x: ir.Value, positions: ir.Value, axis: int, *, in_range: bool = False) -> ir.Value:
    """`numpy.take`; `in_range` promises that no position is out of range, so that none is checked."""
    attributes = {"axis": integer(axis), **unit(in_range, "mlc.in_range")}
    return operation("gather", [x, positions], attributes)[0]


def scatter_nd(x: ir.Value, positions: ir.Value, updates: ir.Value) -> ir.Value:
    """`x` with `updates` written at `positions`."""
    return operation("scatter_nd", [x, positions, updates], {"reduction": text("none")})[0]


# ---- precision -------------------------------------------------------------------------------------------------------


def wide_type(type_: ir.Type) -> ir.Type:
    """The type that a composite computes in: `f32` for narrower floats."""
    return f32() if is_float(type_) and type_.width < 32 else type_


def widened(rule: Callable[[OpAdaptor, ir.Value], ir.Value]) -> Callable[[OpAdaptor], ir.Value]:
    """A decomposition of one tensor that computes narrow floats in `f32` and rounds once, at the end."""

    @wraps(rule)
    def apply(op: OpAdaptor) -> ir.Value:
        x = op.operand(0)
        return cast(rule(op, cast(x, wide_type(element(x)))), op.types[0].element_type)

    return apply
