"""`reduce` and `arg_reduce`: a filled output and a `linalg.generic` with reduction iterators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith

from mlc.dialects import linalg
from mlc.passes.adaptor import element
from mlc.passes.lower.to_linalg import lowers, scalar
from mlc.passes.lower.to_linalg.builder import dim, elementwise, filled, generic, identity
from mlc.passes.lower.to_linalg.context import Lowering
from mlc.passes.lower.to_linalg.sizes import sizes_of
from mlc.passes.lower.to_linalg.views import drop_unit_dims, insert_unit_dims


def combiner(kind: str, unsigned: bool) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """The associative function of a reduction `kind`."""
    return {
        "sum": scalar.add,
        "prod": scalar.mul,
        "max": lambda a, b: scalar.maximum(a, b, unsigned),
        "min": lambda a, b: scalar.minimum(a, b, unsigned),
        "and": arith.andi,
        "or": arith.ori,
    }[kind]


def start_value(kind: str, type_: ir.Type, unsigned: bool) -> float | int:
    """The identity of a reduction `kind`."""
    if kind in ("max", "min"):
        return scalar.lowest(type_, unsigned) if kind == "max" else scalar.highest(type_, unsigned)
    return {"sum": 0, "prod": 1, "and": -1, "or": 0}[kind]


def reduce_axes(value: ir.Value, axes: Sequence[int], kind: str, unsigned: bool = False) -> ir.Value:
    """`value` reduced over `axes`, which disappear; narrow floats accumulate (and stay) in `f32`, unless all axes have
    extent 1."""
    units = [i for i in axes if value.type.shape[i] == 1]
    if units:
        # One element is its own reduction.
        rest = [i for i in range(value.type.rank) if i not in units]
        value, axes = drop_unit_dims(value, units), [rest.index(i) for i in axes if i not in units]
        if not axes:
            return value
    rank = value.type.rank
    accumulator = scalar.compute_type(element(value))
    kept = [i for i in range(rank) if i not in axes]
    sizes = sizes_of(value)
    out = filled([sizes[i] for i in kept], accumulator, start_value(kind, accumulator, unsigned))
    combine = combiner(kind, unsigned)
    iterators = "".join("r" if i in axes else "p" for i in range(rank))
    return generic(
        [out],
        [[dim(i) for i in kept]],
        iterators,
        [identity(value)],
        lambda args: combine(args[1], scalar.widen(args[0])),
    )[0]


@lowers("mlc.reduce")
def reduce(op: Lowering) -> ir.Value:
    """Reduction over `axes`; kept unit dimensions are a view."""
    axes, value = op.ints("axes"), op.operand(0)
    result = op.types[0].element_type
    if axes:
        value = reduce_axes(value, axes, op.text(), op.flag("unsigned"))
    if element(value) != result:
        value = elementwise(value, result, lambda x: scalar.narrow(x, result))
    return insert_unit_dims(value, axes) if op.flag("keepdims") else value


@lowers("mlc.arg_reduce")
def arg_reduce(op: Lowering) -> ir.Value:
    """Extreme value and its position in one generic with two results; a NaN is the extreme value. Positions have
    32 bits while they are compared, unless the axis might be too long."""
    value, axis = op.operand(0), op.int("axis")
    rank, unsigned = value.type.rank, op.flag("unsigned")
    element_type, i64 = element(value), ir.IntegerType.get_signless(64)
    short = not value.type.is_dynamic_dim(axis) and value.type.shape[axis] < 1 << 31
    place = ir.IntegerType.get_signless(32) if short else i64
    kind, last = op.text(), op.flag("select_last")
    compute = scalar.compute_type(element_type)
    kept = [i for i in range(rank) if i != axis]
    sizes = [s for i, s in enumerate(sizes_of(value)) if i != axis]
    start = scalar.lowest(compute, unsigned) if kind == "max" else scalar.highest(compute, unsigned)
    predicate = {"max": "gt", "min": "lt"}[kind] if not last else {"max": "ge", "min": "le"}[kind]

    def body(args: list[ir.Value]) -> list[ir.Value]:
        x, best, where = args
        x = scalar.widen(x)
        if not scalar.is_float(compute):
            better = scalar.compare(predicate, x, best, unsigned)
        elif last:
            better = arith.ori(scalar.compare(predicate, x, best), scalar.is_nan(x))
        else:  # greater or a NaN, where the best one is a number
            unordered = {"gt": arith.CmpFPredicate.UGT, "lt": arith.CmpFPredicate.ULT}[predicate]
            number = arith.cmpf(arith.CmpFPredicate.ORD, best, best)
            better = arith.andi(arith.cmpf(unordered, x, best), number)
        position = arith.index_cast(place, linalg.IndexOp(axis).result)
        return [arith.select(better, x, best), arith.select(better, position, where)]

    outs = [filled(sizes, compute, start), filled(sizes, place, 0)]
    out_map = [dim(i) for i in kept]
    iterators = "".join("r" if i == axis else "p" for i in range(rank))
    marks: dict[str, ir.Attribute] = {"mlc.arg_reduce": ir.StringAttr.get(_vector_kind(kind, compute, unsigned))}
    if last:
        marks["mlc.select_last"] = ir.UnitAttr.get()
    result = generic(outs, [out_map, out_map], iterators, [identity(value)], body, marks)[1]
    if short:
        result = elementwise(result, i64, lambda position: arith.extsi(i64, position))
    return insert_unit_dims(result, [axis]) if op.flag("keepdims") else result


def _vector_kind(kind: str, type_: ir.Type, unsigned: bool) -> str:
    """The name of an extreme as `vector.kind` has it."""
    if scalar.is_float(type_):
        return f"{kind}imumf"
    return f"{kind}{'ui' if unsigned or type_.width == 1 else 'si'}"
