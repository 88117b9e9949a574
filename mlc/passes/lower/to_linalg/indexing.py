"""`gather gather_elements gather_nd`: pointwise reads at coordinates that come from a tensor.

Negative indices count from the end. An index out of range is reported through `cf.assert`; the address is then clamped,
so that memory stays safe until the run ends with the error.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, scf, tensor

from mlc.passes.adaptor import DYNAMIC, Size, element, shape_of
from mlc.passes.lower.to_linalg import lowers, scalar
from mlc.passes.lower.to_linalg.builder import Source, dim, indices, pointwise, size_value
from mlc.passes.lower.to_linalg.context import Lowering
from mlc.passes.lower.to_linalg.sizes import extent


def _position(raw: ir.Value, extent_: ir.Value, node: str, in_range: bool = False) -> ir.Value:
    """`raw` normalised to `[0, extent)`, checked and clamped; as it is when it is promised to be in range."""
    raw = scalar.to_index(raw)
    if in_range:
        return raw
    zero = scalar.index(0)
    lowest = arith.subi(zero, extent_)
    inside = arith.andi(arith.cmpi(scalar.I.sge, raw, lowest), arith.cmpi(scalar.I.slt, raw, extent_))
    scalar.check(inside, f"index out of range in node {node}")
    wrapped = arith.addi(raw, extent_)
    position = arith.select(arith.cmpi(scalar.I.slt, raw, zero), wrapped, raw)
    last = arith.subi(extent_, scalar.index(1))
    return arith.maxsi(arith.minsi(position, last), zero)


def _read(value: ir.Value, coordinates: list[ir.Value], nonempty: ir.Value | None) -> ir.Value:
    """`value` at `coordinates`; nothing is read of a tensor that may be empty and is."""
    if nonempty is None:
        return tensor.extract(value, coordinates)
    branch = scf.IfOp(nonempty, [element(value)], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([tensor.extract(value, coordinates)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([scalar.constant(element(value), 0)])
    return branch.results[0]


def _nonempty(sizes: list[Size]) -> ir.Value | None:
    """Is every one of `sizes` above zero? None where that is known."""
    result = None
    for size in sizes:
        if isinstance(size, int) and size > 0:
            continue
        positive = arith.cmpi(scalar.I.sgt, size_value(size), scalar.index(0))
        result = positive if result is None else arith.andi(result, positive)
    return result


@lowers("mlc.gather")
def gather(op: Lowering) -> ir.Value:
    """Result dimensions: those of the input before `axis`, those of the indices, those of the input after it."""
    value, positions, axis = op.operand(0), op.operand(1), op.int("axis")
    count, rank = positions.type.rank, op.types[0].rank
    limit = extent(value, axis)
    limit_value, nonempty, node = size_value(limit), _nonempty([limit]), op.node

    def body(args: list[ir.Value]) -> ir.Value:
        coordinates = indices(rank)
        position = _position(args[0], limit_value, node, op.has("mlc.in_range"))
        return _read(value, [*coordinates[:axis], position, *coordinates[axis + count :]], nonempty)

    sources = [Source(positions, [dim(axis + i) for i in range(count)])]
    return pointwise(op.sizes(), element(value), sources, body)


@lowers("mlc.gather_elements")
def gather_elements(op: Lowering) -> ir.Value:
    """The coordinate along `axis` comes from the indices, the others are the result's."""
    value, positions, axis = op.operand(0), op.operand(1), op.int("axis")
    rank, limit = op.types[0].rank, extent(value, axis)
    limit_value, nonempty, node = size_value(limit), _nonempty([limit]), op.node

    def body(args: list[ir.Value]) -> ir.Value:
        coordinates = indices(rank)
        coordinates[axis] = _position(args[0], limit_value, node)
        return _read(value, coordinates, nonempty)

    sources = [Source(positions, [dim(i) for i in range(rank)])]
    return pointwise(op.sizes(), element(value), sources, body)


@lowers("mlc.gather_nd")
def gather_nd(op: Lowering) -> ir.Value:
    """The last dimension of the indices holds the leading coordinates after the batch dimensions."""
    value, positions = op.operand(0), op.operand(1)
    batch, rank = op.int("batch_dims", 0), op.types[0].rank
    depth, outer = shape_of(positions)[-1], positions.type.rank - 1
    if depth == DYNAMIC:
        raise ValueError(f"{op.node}: GatherND needs indices whose last dimension is known when compiling")
    limits = [extent(value, batch + i) for i in range(depth)]
    limit_values, nonempty, node = [size_value(s) for s in limits], _nonempty(limits), op.node

    def body(args: list[ir.Value]) -> ir.Value:
        coordinates = indices(rank)
        chosen = []
        for i in range(depth):
            where = [*coordinates[:outer], scalar.index(i)]
            raw = tensor.extract(positions, where)
            chosen.append(_position(raw, limit_values[i], node, op.has("mlc.in_range")))
        return _read(value, [*coordinates[:batch], *chosen, *coordinates[outer:]], nonempty)

    return pointwise(op.sizes(), element(value), [], body)
