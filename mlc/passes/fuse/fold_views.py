"""Read and write through views instead of copying: transposes and slices become part of the indexing maps.

```mlir
%t = linalg.generic … (i, j, k) -> (j, i, k) yield %in   ins(%x)           %m = linalg.generic … reads %x through a map
%m = linalg.generic … {mlc.contraction} ins(%t, %w)                  →     and writes in the order of %p
%p = linalg.generic … (i, j, k) -> (j, i, k) yield %in   ins(%m)
```
A reader's operand is followed through movements and reshapes as far as the element that is read stays a dimension, or a
dimension plus a constant, of what remains; reshapes that split dimensions are views and stay. Elementwise readers take
a movement that nobody else reads; contractions are asked (`accepts` of the template with the new map). A transpose of
a contraction's result becomes its output map where the template accepts it, and one in front of a padding moves behind.
What reads computed coordinates, as a padding does, reads those of the tensor that its input is cut out of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlir import ir
from mlir.dialects import arith, tensor

from mlc.dialects import linalg
from mlc.kernels.accepts import accepts_of
from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.blocks import ancestor_in, blocks_of
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.fusion import Accepts, Dims
from mlc.kernels.common.generics import is_identity, is_reduction, operand_map
from mlc.kernels.common.moves import Move, move_of, turned_dim
from mlc.kernels.common.padding import padding_of
from mlc.passes.adaptor import DYNAMIC
from mlc.passes.base import Pass
from mlc.passes.fuse.graph import host_blocks

VECTOR_BITS = 128  # of an access of a GPU's thread
_NUMBERS = (ir.IntegerType, ir.FloatType)


class FoldViews(Pass):
    """Read and write through views instead of copying."""

    dialects = ("linalg", "tensor", "arith")
    statistics = {"folded": "operands and results that are accessed through a view"}

    target: str = "cpu"
    "Whose templates are asked: cpu, cuda (Hopper's) or cuda-mma (other chips'), with -tf32 where f32 may be rounded"

    def run(self, root: ir.OpView) -> None:
        self.accepts = accepts_of(self.target)["contraction"]
        for block in host_blocks(root.operation):
            generics = [o.operation for o in block.operations if o.operation.name == "linalg.generic"]
            for op in generics:
                self.count("folded", int(_fold_padding(op, self.accepts)))
            for op in generics:
                self.count("folded", _fold_extracts(op))
            for op in generics:
                self.count("folded", _fold_operands(op, self.accepts, is_shared=self.target != "cpu"))
            for op in generics:
                self.count("folded", int(_fold_result(op, self.accepts)))
            _erase_unused(block)


def _erase_unused(block: ir.Block) -> None:
    for op in reversed([o.operation for o in block.operations]):
        view = op.name in ("tensor.expand_shape", "tensor.collapse_shape", "tensor.empty", "linalg.fill")
        moves = move_of(op) is not None or turned_dim(op) is not None or padding_of(op) is not None
        if (view or moves) and not _users(op):
            op.erase()


def _users(op: ir.Operation) -> list[tuple[ir.Operation, int]]:
    return [(u.owner.operation, u.operand_number) for u in op.results[0].uses]


# -- operands ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """A part of a dimension: `dim + offset` (`offset` alone where `dim` is None, `offset - dim` where it is `turned`)
    within `extent`; `size` is the extent of the reader's dimension. An unknown extent is None."""

    extent: int | None
    dim: int | None
    offset: int
    size: int | None
    turned: bool = False

    @property
    def is_expressible(self) -> bool:
        """Does an indexing map say it? A plain dimension claims that the extents are equal."""
        return self.dim is None or self.offset != 0 or self.turned or self.extent == self.size

    @property
    def expr(self) -> ir.AffineExpr:
        constant = ir.AffineExpr.get_constant(self.offset)
        if self.dim is None:
            return constant
        return ir.AffineExpr.get_dim(self.dim) * (-1 if self.turned else 1) + constant

    def after(self, offset: int, extent: int) -> Factor:
        """The same part behind `offset` elements of a dimension of `extent`."""
        return replace(self, extent=extent, offset=self.offset + offset)


Access = list[list[Factor]]
"""For every dimension of a value, outermost first, the factors that the coordinate is made of."""

_UNIT = Factor(1, None, 0, 1)


def _extents(type_: ir.RankedTensorType) -> list[int | None]:
    return [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def _product(factors: list[Factor]) -> int | None:
    total = 1
    for factor in factors:
        if factor.extent is None:
            return factors[0].extent if len(factors) == 1 else None
        total *= factor.extent
    return total


def _access(op: ir.Operation, operand: int) -> Access | None:
    """How a generic reads an operand; None where its map has other expressions than dimensions and constants."""
    access: Access = []
    for expr, extent in zip(operand_map(op, operand).results, _extents(op.operands[operand].type), strict=True):
        if isinstance(expr, ir.AffineDimExpr):
            access.append([Factor(extent, expr.position, 0, extent)])
        elif isinstance(expr, ir.AffineConstantExpr):
            access.append([Factor(extent, None, expr.value, 1)])
        else:
            return None
    return access


def _through(op: ir.Operation, access: Access) -> tuple[ir.Value, Access] | None:
    """The same element before `op`, a movement or a reshape; None where it is no such operation or too irregular."""
    if op.name == "tensor.expand_shape":
        groups = [[a.value for a in group] for group in op.attributes["reassociation"]]
        return op.operands[0], [_joined([f for d in group for f in access[d]]) for group in groups]
    if op.name == "tensor.collapse_shape":
        return _through_collapse(op, access)
    move = move_of(op)
    if move is None:
        return _through_turn(op, access)
    own, result = _extents(move.source.type), _extents(op.results[0].type)
    before: Access = []
    for at, ((dim, constant), extent) in enumerate(zip(move.coordinates, own, strict=True)):
        if dim is None:
            before.append([Factor(extent, None, constant, 1)])
            continue
        is_whole = extent == result[dim]
        if extent is None:
            is_whole = is_whole and _is_same_extent(move.source, at, op.results[0], dim)
        if constant == 0 and (move.is_plain or is_whole):
            before.append(access[dim])
            continue
        part = _sliced(access[dim], constant, extent)
        if part is None:
            return None
        before.append(part)
    return move.source, before


def _is_same_extent(one: ir.Value, dim: int, other: ir.Value, of_other: int) -> bool:
    """Are two dynamic extents surely equal: is it one value that both tensors have been made with?"""
    first, second = _extent_value(one, dim), _extent_value(other, of_other)
    return first is not None and first == second


def _extent_value(value: ir.Value, dim: int) -> ir.Value | None:
    """The value that is the dynamic extent `dim` of what a generic computes."""
    op = defining_op(value)
    while op is not None and op.name in ("linalg.generic", "linalg.fill"):
        op = defining_op(op.operands[len(op.operands) - 1])
    sizes = None if op is None else _sizes(op.results[0])
    size = None if sizes is None else sizes[dim]
    while isinstance(size, ir.Value):
        chosen = defining_op(size)
        if chosen is None or chosen.name != "arith.select" or chosen.operands[1] != chosen.operands[2]:
            return size
        size = chosen.operands[1]
    return None


def _through_turn(op: ir.Operation, access: Access) -> tuple[ir.Value, Access] | None:
    """The same element before one dimension of a tensor was turned around."""
    turned = turned_dim(op)
    if turned is None:
        return None
    extent = op.results[0].type.shape[turned]
    factor = access[turned][0]
    if len(access[turned]) != 1 or factor.extent != extent:
        return None
    mirrored = replace(factor, offset=extent - 1 - factor.offset, turned=factor.dim is not None and not factor.turned)
    return op.operands[0], [*access[:turned], [mirrored], *access[turned + 1 :]]


def _joined(factors: list[Factor]) -> list[Factor]:
    return [f for f in factors if f.extent != 1] or [_UNIT]


def _through_collapse(op: ir.Operation, access: Access) -> tuple[ir.Value, Access] | None:
    extents = _extents(op.operands[0].type)
    before: Access = []
    for group, factors in zip(op.attributes["reassociation"], access, strict=True):
        rest = list(factors)
        parts: list[list[Factor]] = []
        for dim in reversed([a.value for a in group]):
            part: list[Factor] = []
            while rest and extents[dim] != 1 and (not part or _product(part) != extents[dim]):
                part.insert(0, rest.pop())
            if extents[dim] != 1 and (not part or _product(part) != extents[dim]):
                return None
            parts.insert(0, part or [_UNIT])
        if any(f.extent != 1 for f in rest):
            return None
        before.extend(parts)
    return op.operands[0], before


def _sliced(factors: list[Factor], offset: int, extent: int | None) -> list[Factor] | None:
    """`factors` in a dimension of `extent` elements of which they start at `offset`."""
    total = _product(factors)
    if extent is None or total is None:
        return None
    if len(factors) == 1:
        return [factors[0].after(offset, extent)]
    if offset % total == 0 and extent % total == 0:
        return [Factor(extent // total, None, offset // total, 1), *factors]
    inner = _product(factors[1:])
    if not inner or offset % inner or extent % inner:
        return None
    return [factors[0].after(offset // inner, extent // inner), *factors[1:]]


def _fold_operands(op: ir.Operation, accepts: Accepts, *, is_shared: bool) -> int:
    """Let `op` read what its operands are moved from; gives how many it does. With `is_shared` it may read through
    movements that others read too, where elements that lie together stay so: a GPU's threads then read as many bytes
    of the source as they would of a copy."""
    folded = 0
    if is_reduction(op) and not is_contraction(op):
        return 0
    for operand in range(len(op.operands) - len(op.results)):
        access = _access(op, operand)
        if access is not None:
            folded += _fold_operand(op, operand, access, accepts, is_shared)
    return folded


def _fold_operand(op: ir.Operation, operand: int, access: Access, accepts: Accepts, is_shared: bool) -> int:
    contraction = is_contraction(op)
    is_bound = not contraction and not _reads_once(op, access)
    if is_bound and not is_shared:
        return 0
    value, best = op.operands[operand], None
    while True:
        producer = defining_op(value)
        if producer is None or producer.block != op.block:
            break
        step = _through(producer, access)
        if step is None:
            break
        is_free = is_shared and _lies_together(op, *step)
        if not contraction and not is_free and (is_bound or not _only_moved(producer)):
            break
        value, access = step
        if move_of(producer) is None and turned_dim(producer) is None:
            continue
        for way in (access, _in_parts(access)) if contraction else (access,):
            through = _map(op, operand, value, way)
            if through is None:
                continue
            if not contraction or accepts("producer", producer, Dims(op, op, operand, through)) is None:
                best = value, way, through
                break
    if best is None:
        return 0
    value, access, through = best
    maps = list(op.attributes["indexing_maps"])
    maps[operand] = ir.AffineMapAttr.get(through)
    with ir.InsertionPoint(op), op.location:
        op.operands[operand] = _split(value, access)
    op.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    return 1


def _in_parts(access: Access) -> Access:
    """The same with parts that have equal neighbours as one of them: `dim + 32` of 96 is part 1 of 3."""
    return [[p for factor in factors for p in _part(factor)] for factors in access]


def _part(factor: Factor) -> list[Factor]:
    size, extent, offset = factor.size, factor.extent, factor.offset
    if factor.dim is None or factor.turned or not size or extent in (None, size) or offset % size or extent % size:
        return [factor]
    return [Factor(extent // size, None, offset // size, 1), Factor(size, factor.dim, 0, size)]


def _map(op: ir.Operation, operand: int, value: ir.Value, access: Access) -> ir.AffineMap | None:
    """The indexing map with which a generic reads an operand so, from `value`; None where none says it."""
    if not _is_expressible(value, access):
        return None
    through = ir.AffineMap.get(len(op.attributes["iterator_types"]), 0, [f.expr for fs in access for f in fs])
    return through if _says_all(op, operand, through) else None


def _says_all(op: ir.Operation, operand: int, through: ir.AffineMap) -> bool:
    """Do the maps say the extent of every dimension, if `operand` is read through this one? A dimension of one element
    of which both operands of a product lose their part is in none."""
    maps = [through if place == operand else operand_map(op, place) for place in range(len(op.operands))]
    said = {expr.position for map_ in maps for expr in map_.results if isinstance(expr, ir.AffineDimExpr)}
    return len(said) == len(op.attributes["iterator_types"])


def _only_moved(producer: ir.Operation) -> bool:
    """Is there one reader, or does everyone only move parts of the result?"""
    users = [ancestor_in(producer.block, user) for user, _ in _users(producer)]
    views = ("tensor.expand_shape", "tensor.collapse_shape")
    return len(users) == 1 or all(user.name in views or move_of(user) is not None for user in users)


def _lies_together(op: ir.Operation, value: ir.Value, access: Access) -> bool:
    """Are the elements of whole vectors neighbours in `value` that are neighbours in the result of `op`?"""
    last = access[-1][-1] if access else _UNIT
    rank, extents = len(op.attributes["iterator_types"]), _extents(op.results[0].type)
    inner = max((d for d, extent in enumerate(extents) if extent != 1), default=rank - 1)
    if last.dim != inner or last.turned or last.size is None or last.extent is None:
        return False
    lanes = VECTOR_BITS // value.type.element_type.width if isinstance(value.type.element_type, _NUMBERS) else 0
    return bool(lanes) and all(n % lanes == 0 for n in (last.size, last.extent, last.offset))


def _reads_once(op: ir.Operation, access: Access) -> bool:
    """Is every element read at one point only, so that nothing is gained by putting the elements in order first?"""
    extents = _extents(op.results[0].type)
    used = {f.dim for factors in access for f in factors}
    return all(d in used or extent == 1 for d, extent in enumerate(extents))


def _is_expressible(value: ir.Value, access: Access) -> bool:
    if any(len(factors) > 1 and None in [f.extent for f in factors] for factors in access):
        return False
    return all(f.is_expressible for factors in access for f in factors)


def _split(value: ir.Value, access: Access) -> ir.Value:
    """`value` with a dimension for every factor: a view."""
    if all(len(factors) == 1 for factors in access):
        return value
    shape = [DYNAMIC if f.extent is None else f.extent for factors in access for f in factors]
    groups, position = [], 0
    for factors in access:
        groups.append(list(range(position, position + len(factors))))
        position += len(factors)
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    index = ir.IndexType.get()
    sizes = [
        tensor.dim(value, arith.constant(index, i)) for i in range(value.type.rank) if value.type.is_dynamic_dim(i)
    ]
    return tensor.ExpandShapeOp(type_, value, groups, sizes, shape).result


# -- results -----------------------------------------------------------------------------------------------------------


def _fold_result(op: ir.Operation, accepts: Accepts) -> bool:
    """Let the contraction that `op` transposes the result of write in that order."""
    move = move_of(op)
    order = None if move is None else move.permutation
    root, between = (None, []) if move is None else _contraction_below(move.source)
    if root is None or order is None or root.block != op.block:
        return False
    init = defining_op(root.operands[len(root.operands) - 1])
    old = None if init is None or init.name != "linalg.fill" else _sizes(init.operands[1])
    if init is None or old is None:
        return False
    number = len(root.operands) - 1
    exprs = list(operand_map(root, number).results)
    position = {result: source for source, result in enumerate(order)}
    out = ir.AffineMap.get(len(root.attributes["iterator_types"]), 0, [exprs[position[i]] for i in range(len(exprs))])
    if accepts("consumer", op, Dims(root, op, 0, out)) is not None:
        return False
    shape, sizes = list(op.results[0].type.shape), [old[position[i]] for i in range(len(exprs))]
    with ir.InsertionPoint(root), root.location:
        empty = tensor.empty(sizes, root.results[0].type.element_type)
        root.operands[number] = linalg.fill(init.operands[0], outs=[empty])
    for computed in between:
        with ir.InsertionPoint(computed), computed.location:
            computed.operands[1] = tensor.empty(sizes, computed.results[0].type.element_type)
    for written in (root, *between):
        written.results[0].set_type(ir.RankedTensorType.get(shape, written.results[0].type.element_type))
    maps = list(root.attributes["indexing_maps"])
    maps[number] = ir.AffineMapAttr.get(out)
    root.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    last = between[0] if between else root
    for user, at in _users(op):
        user.operands[at] = last.results[0]
    return True


def _sizes(value: ir.Value) -> list[int | ir.Value] | None:
    """The extents of a `tensor.empty`; None for other tensors."""
    empty = defining_op(value)
    if empty is None or empty.name != "tensor.empty":
        return None
    dynamic = iter(empty.operands)
    type_ = empty.results[0].type
    return [next(dynamic) if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]


def _contraction_below(value: ir.Value) -> tuple[ir.Operation | None, list[ir.Operation]]:
    """The contraction that `value` is computed from by functions of one tensor, and those, last first; each has no
    other reader."""
    between: list[ir.Operation] = []
    while True:
        op = defining_op(value)
        if op is None or len(_users(op)) != 1:
            return None, []
        if is_contraction(op):
            return op, between
        if not _is_function(op):
            return None, []
        between.append(op)
        value = op.operands[0]


def _is_function(op: ir.Operation) -> bool:
    """Does a generic compute each element of its only tensor on its own, wherever that is?"""
    if op.name != "linalg.generic" or len(op.operands) != 2 or not (is_identity(op, 0) and is_identity(op, 1)):
        return False
    names = {inner.operation.name for inner in op.regions[0].blocks[0].operations}
    empty = defining_op(op.operands[1])
    plain = not names & {"linalg.index", "tensor.extract", "scf.if"}
    return plain and empty is not None and empty.name == "tensor.empty"


# -- padding -----------------------------------------------------------------------------------------------------------


def _fold_padding(op: ir.Operation, accepts: Accepts) -> bool:
    """Pad a transposed tensor before it is transposed, so that the contractions that read it can read through."""
    padding = padding_of(op)
    moved = None if padding is None else defining_op(padding.source)
    move = None if moved is None else move_of(moved)
    order = None if move is None else move.permutation
    sizes = _sizes(op.operands[0])
    if moved is None or move is None or order is None or sizes is None:
        return False
    users = _users(op)
    if not users or not all(is_contraction(user) and user.block == op.block for user, _ in users):
        return False
    maps = {}
    for user, number in users:
        exprs = list(operand_map(user, number).results)
        maps[number] = ir.AffineMap.get(len(user.attributes["iterator_types"]), 0, [exprs[d] for d in order])
        if accepts("producer", moved, Dims(user, user, number, maps[number])) is not None:
            return False
    padded = _pad_before(op, move.source, [sizes[d] for d in order], order)
    for user, number in users:
        user.operands[number] = padded
        all_maps = list(user.attributes["indexing_maps"])
        exprs = list(operand_map(user, number).results)
        all_maps[number] = ir.AffineMapAttr.get(
            ir.AffineMap.get(len(user.attributes["iterator_types"]), 0, [exprs[d] for d in order])
        )
        user.attributes["indexing_maps"] = ir.ArrayAttr.get(all_maps)
    return True


def _pad_before(op: ir.Operation, source: ir.Value, sizes: list[int | ir.Value], order: list[int]) -> ir.Value:
    """The padding `op` of `source` itself, whose dimension `i` is `order[i]` after the transpose; it has `sizes`."""
    old = op.results[0].type
    type_ = ir.RankedTensorType.get([old.shape[d] for d in order], old.element_type)
    clone = op.clone(ir.InsertionPoint(op))
    with ir.InsertionPoint(clone), op.location:
        clone.operands[0] = tensor.empty(sizes, type_.element_type)
    clone.results[0].set_type(type_)
    i64 = ir.IntegerType.get_signless(64)
    for inner in _all_operations(clone):
        if inner.name == "linalg.index":
            dim = ir.IntegerAttr(inner.attributes["dim"]).value
            inner.attributes["dim"] = ir.IntegerAttr.get(i64, order.index(dim))
        elif inner.name == "tensor.extract":
            coordinates = list(inner.operands)[1:]
            inner.operands[0] = source
            for i, dim in enumerate(order):
                inner.operands[1 + i] = coordinates[dim]
    return clone.results[0]


def _fold_extracts(op: ir.Operation) -> int:
    """Let the body of `op` read elements where they were before parts were cut out of a tensor, as a padding of a slice
    does; gives how many of its reads do. Contractions skip what they know to be a padding of a whole tensor."""
    if not op.results or any(is_contraction(user) for user, _ in _users(op)):
        return 0
    folded = 0
    for inner in _all_operations(op):
        producer = defining_op(inner.operands[0]) if inner.name == "tensor.extract" else None
        move = None if producer is None or producer.block != op.block else move_of(producer)
        if move is None or not _cuts_out(move, inner.operands[0].type.rank):
            continue
        at = list(inner.operands)[1:]
        with ir.InsertionPoint(inner), inner.location:
            index = ir.IndexType.get()
            coordinates = []
            for dim, constant in move.coordinates:
                place = arith.constant(index, constant) if dim is None else at[dim]
                if dim is not None and constant:
                    place = arith.addi(place, arith.constant(index, constant))
                coordinates.append(place)
            inner.results[0].replace_all_uses_with(tensor.extract(move.source, coordinates))
        inner.erase()
        folded += 1
    return folded


def _cuts_out(move: Move, rank: int) -> bool:
    """Does a movement keep dimensions in their order, the last one included?"""
    dims = [dim for dim, _ in move.coordinates if dim is not None]
    return dims == sorted(dims) and bool(dims) and dims[-1] == rank - 1


def _all_operations(op: ir.Operation) -> list[ir.Operation]:
    found = []
    for block in blocks_of(op):
        for inner in block.operations:
            found.append(inner.operation)
            found.extend(_all_operations(inner.operation))
    return found
