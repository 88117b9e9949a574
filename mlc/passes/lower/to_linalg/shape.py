"""Data movement with a fixed pattern: `reshape` is a view, everything else a pointwise `linalg.generic`."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, scf, tensor

from mlc.dialects import linalg
from mlc.dims import SymbolTable
from mlc.passes.adaptor import DYNAMIC, Size, defining_op, element, shape_of
from mlc.passes.lower.to_linalg import lowers, scalar
from mlc.passes.lower.to_linalg.builder import Source, const, dim, indices, pointwise, size_value
from mlc.passes.lower.to_linalg.context import Extents, Lowering, emit_check
from mlc.passes.lower.to_linalg.sizes import extent, plus, product, simplified, sizes_of
from mlc.passes.lower.to_linalg.views import Groups, cast_to, collapse, expand, unit_groups
from mlc.passes.lower.to_linalg.windows import shifted


def _first(args: list[ir.Value]) -> ir.Value:
    return args[0]


@lowers("mlc.transpose")
def transpose(op: Lowering) -> ir.Value:
    """The input read at permuted coordinates; a view where only unit dimensions move."""
    permutation, value = op.ints("permutation"), op.operand(0)
    shape = shape_of(value)
    moving = [p for p in permutation if shape[p] != 1]
    if moving == sorted(moving):
        return _reshape_static_order(value, op.sizes())
    exprs: list[ir.AffineExpr] = [const(0)] * len(permutation)
    for result, source in enumerate(permutation):
        exprs[source] = dim(result)
    return pointwise(op.sizes(), element(value), [Source(value, exprs)], _first)


def _reshape_static_order(value: ir.Value, sizes: list[Size]) -> ir.Value:
    """A reshape that only moves unit dimensions."""
    if shape_of(value) == [s if isinstance(s, int) else DYNAMIC for s in sizes]:
        return value
    groups = [[i for i, s in enumerate(shape_of(value)) if s != 1], [i for i, s in enumerate(sizes) if s != 1]]
    inner = collapse(value, _grouped_by(groups[0], value.type.rank))
    return expand(inner, sizes, _grouped_by(groups[1], len(sizes)))


def _grouped_by(moving: Sequence[int], rank: int) -> Groups:
    """Groups with one of the `moving` dimensions each, units around them."""
    return unit_groups([i not in moving for i in range(rank)])


@lowers("mlc.reshape")
def reshape(op: Lowering) -> ir.Value:
    """`collapse_shape` to the dimensions that both shapes share, then `expand_shape`."""
    value, sizes = op.operand(0), op.sizes()
    result = [s if isinstance(s, int) else DYNAMIC for s in sizes]
    if shape_of(value) == result and result.count(DYNAMIC) <= 1:
        return value
    elements = _elements(value)
    if elements is not None and DYNAMIC not in result:
        return tensor.FromElementsOp(op.types[0], elements).result
    if value.type.rank == 0:
        return expand(value, sizes, [])
    if len(sizes) == 0:
        _check_counts(op, [list(range(value.type.rank))], [[]], sizes)
        return collapse(cast_to(value, ir.RankedTensorType.get([1] * value.type.rank, element(value))), [])
    facts = op.facts
    inputs, outputs = matching_groups(facts.symbols, facts.operand(op.op, 0), facts.result(op.op, 0))
    _check_counts(op, inputs, outputs, sizes)
    joined = collapse(value, inputs)
    return expand(joined, sizes, outputs)


def _elements(value: ir.Value) -> list[ir.Value] | None:
    """The operands of a `tensor.from_elements`, None for any other value."""
    op = defining_op(value)
    return list(op.operands) if op is not None and op.name == "tensor.from_elements" else None


def _check_counts(op: Lowering, inputs: Groups, outputs: Groups, sizes: Sequence[Size]) -> None:
    """A run-time check of every group whose element counts are not known to be equal."""
    facts, symbols, own = op.facts, op.facts.symbols, sizes_of(op.operand(0))
    before, after = facts.operand(op.op, 0), facts.result(op.op, 0)
    for group_in, group_out in zip(inputs, outputs, strict=True):
        counts = [_count(symbols, [side[i] for i in g]) for side, g in ((before, group_in), (after, group_out))]
        if counts[0] == counts[1]:
            continue
        have, want = product([own[i] for i in group_in]), product([sizes[i] for i in group_out])
        fits = arith.cmpi(scalar.I.eq, size_value(have), size_value(want))
        emit_check(fits, size_value(want), "the element count of the new shape is wrong")


def _count(symbols: SymbolTable, extents: Extents) -> ir.AffineExpr:
    return _prefixes(symbols, extents)[-1] if extents else symbols.constant(1)


def matching_groups(symbols: SymbolTable, inputs: Extents, outputs: Extents) -> tuple[Groups, Groups]:
    """Neighbouring dimensions of the two shapes of a reshape in groups of equal element counts; one group of all where
    nothing is known."""
    groups_in: Groups = []
    groups_out: Groups = []
    start_in = start_out = 0
    while start_in < len(inputs) or start_out < len(outputs):
        end_in, end_out = _next_cut(symbols, inputs, outputs, start_in, start_out)
        groups_in.append(list(range(start_in, end_in)))
        groups_out.append(list(range(start_out, end_out)))
        start_in, start_out = end_in, end_out
    return _without_empty(groups_in, groups_out)


def _without_empty(inputs: Groups, outputs: Groups) -> tuple[Groups, Groups]:
    """A group of unit dimensions on one side only joins its neighbour."""
    both = list(zip(inputs, outputs, strict=True))
    merged: list[tuple[list[int], list[int]]] = []
    for group_in, group_out in both:
        if merged and (not group_in or not group_out or not merged[-1][0] or not merged[-1][1]):
            last = merged.pop()
            merged.append((last[0] + group_in, last[1] + group_out))
        else:
            merged.append((group_in, group_out))
    return [m[0] for m in merged], [m[1] for m in merged]


def _next_cut(symbols: SymbolTable, left: Extents, right: Extents, start_in: int, start_out: int) -> tuple[int, int]:
    """The nearest pair of ends at which both products agree; the ends of both shapes where there is none."""
    if start_in == len(left) or start_out == len(right):
        return len(left), len(right)
    products_in, products_out = _prefixes(symbols, left[start_in:]), _prefixes(symbols, right[start_out:])
    zero = symbols.constant(0)
    for total in range(2, len(products_in) + len(products_out) + 1):
        for i in range(1, total):
            j = total - i
            if i > len(products_in) or j > len(products_out) or products_in[i - 1] == zero:
                continue
            if products_in[i - 1] == products_out[j - 1]:
                return start_in + i, start_out + j
    return len(left), len(right)


def _prefixes(symbols: SymbolTable, factors: Extents) -> Extents:
    products = [factors[0]]
    for factor in factors[1:]:
        products.append(symbols.mul(products[-1], factor))
    return products


@lowers("mlc.broadcast")
def broadcast(op: Lowering) -> ir.Value:
    """`numpy.broadcast_to`: extents of 1 are read at 0, unknown ones decide at run time."""
    value, sizes = op.operand(0), op.sizes()
    rank, own = len(sizes), value.type.rank
    exprs: list[ir.AffineExpr] = []
    dynamic: set[int] = set()
    facts_in, facts_out = op.facts.operand(op.op, 0), op.facts.result(op.op, 0)
    for i, size in enumerate(shape_of(value)):
        position = rank - own + i
        same = size == sizes[position] if size != DYNAMIC else False
        if size == 1 and not same:
            exprs.append(const(0))
            continue
        exprs.append(dim(position))
        if size == DYNAMIC and facts_in[i] != facts_out[position]:
            dynamic.add(i)
    return pointwise(sizes, element(value), [Source(value, exprs, dynamic)], _first)


@lowers("mlc.concat")
def concat(op: Lowering) -> ir.Value:
    """Each result element picks its input by its coordinate along `axis`; inputs without elements are never read."""
    axis = op.int("axis")
    inputs = [v for v in op.operands if shape_of(v)[axis] != 0]
    if len(inputs) <= 1:
        return inputs[0] if inputs else op.operand(0)
    lists = [_elements(v) for v in inputs]
    if op.types[0].rank == 1 and None not in lists:
        return tensor.FromElementsOp(op.types[0], [e for values in lists for e in values or []]).result
    starts: list[Size] = [0]
    for value in inputs:
        starts.append(plus(starts[-1], extent(value, axis)))
    ends = [size_value(s) for s in starts[1:]]
    offsets = [size_value(s) for s in starts[:-1]]

    def choose(number: int, coordinates: list[ir.Value]) -> ir.Value:
        if number == len(inputs) - 1:
            return read(number, coordinates)
        inside = arith.cmpi(scalar.I.ult, coordinates[axis], ends[number])
        branch = scf.IfOp(inside, [element(inputs[number])], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([read(number, coordinates)])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([choose(number + 1, coordinates)])
        return branch.results[0]

    def read(number: int, coordinates: list[ir.Value]) -> ir.Value:
        own = list(coordinates)
        if number:
            own[axis] = arith.subi(own[axis], offsets[number])
        return tensor.extract(inputs[number], own)

    rank = op.types[0].rank
    return pointwise(op.sizes(), op.types[0].element_type, [], lambda args: choose(0, indices(rank)))


@lowers("mlc.slice")
def slice_(op: Lowering) -> ir.Value:
    """The input read at `offset + coordinate * stride`: through the index map where that is static, else through
    arithmetic in the body."""
    value = op.operand(0)
    _, offsets_in, _, strides_in = op.segments()
    offsets = [simplified(s) for s in op.mixed("offsets", offsets_in)]
    strides = [simplified(s) for s in op.mixed("strides", strides_in)]
    sizes, shape = op.sizes(), shape_of(value)
    picked = _picked_elements(op, offsets, strides)
    if picked is not None:
        return picked
    whole = [o == 0 and s == 1 for o, s in zip(offsets, strides, strict=True)]
    if all(w and n == m and n != DYNAMIC for w, n, m in zip(whole, shape, sizes, strict=True)):
        return value
    if _is_affine(op, offsets, strides, sizes):
        exprs = [
            const(o) if sizes[i] == 1 else dim(i) * s + o for i, (o, s) in enumerate(zip(offsets, strides, strict=True))
        ]
        return pointwise(sizes, element(value), [Source(value, exprs)], _first)
    offset_values = [None if isinstance(o, int) else o for o in offsets]

    def body(args: list[ir.Value]) -> ir.Value:
        coordinates = []
        for i, coordinate in enumerate(indices(len(sizes))):
            if strides[i] != 1:
                coordinate = arith.muli(coordinate, size_value(strides[i]))
            if offsets[i] != 0:
                offset = offset_values[i]
                coordinate = arith.addi(coordinate, offset if offset is not None else scalar.index(offsets[i]))
            coordinates.append(coordinate)
        return tensor.extract(value, coordinates)

    return pointwise(sizes, element(value), [], body)


def _picked_elements(op: Lowering, offsets: list[Size], strides: list[Size]) -> ir.Value | None:
    """A static slice of a `tensor.from_elements` takes its operands."""
    elements, type_ = _elements(op.operand(0)), op.types[0]
    if elements is None or type_.rank != 1 or not type_.has_static_shape:
        return None
    if not isinstance(offsets[0], int) or not isinstance(strides[0], int):
        return None
    picked = [elements[offsets[0] + i * strides[0]] for i in range(type_.shape[0])]
    return tensor.FromElementsOp(type_, picked).result if picked else tensor.empty([0], type_.element_type)


def _is_affine(op: Lowering, offsets: list[Size], strides: list[Size], sizes: list[Size]) -> bool:
    """A plain `d` in a map claims that the extents are equal, so a crop at the end alone is not affine."""
    shape = shape_of(op.operand(0))
    facts_in, facts_out = op.facts.operand(op.op, 0), op.facts.result(op.op, 0)
    for i, (offset, stride) in enumerate(zip(offsets, strides, strict=True)):
        if not isinstance(offset, int) or not isinstance(stride, int):
            return False
        if stride < 1 and not _is_turned(shape[i], offset, stride, sizes[i]):
            return False
        if stride < 1 and i == len(shape) - 1:
            return False  # vectors are read forwards
        if offset == 0 and stride == 1 and sizes[i] != 1:
            dynamic = shape[i] == DYNAMIC
            equal = facts_in[i] == facts_out[i] if dynamic else shape[i] == sizes[i]
            if not equal:
                return False
    return True


def _is_turned(extent: int, offset: int, stride: int, size: Size) -> bool:
    """Is a whole dimension read from its end?"""
    return extent == size and offset == extent - 1 and stride == -1


@lowers("mlc.pad")
def pad(op: Lowering) -> ir.Value:
    """Constant padding tests bounds; the other modes compute the coordinate that is repeated."""
    value, (_, fill, lows, highs) = op.operand(0), op.segments()
    low = [simplified(s) for s in op.mixed("low", lows)]
    high = [simplified(s) for s in op.mixed("high", highs)]
    mode = op.text("mode")
    changed = [i for i in range(len(low)) if low[i] != 0 or high[i] != 0]
    if not changed:
        return value
    if mode == "constant":
        guarded = [i for i in changed if not (_crops(low[i]) and _crops(high[i]))]
        return shifted(value, op.sizes(), low, guarded, fill[0] if fill else 0)
    limits = {i: size_value(extent(value, i)) for i in changed}
    offsets = {i: size_value(low[i]) for i in changed}

    def body(args: list[ir.Value]) -> ir.Value:
        coordinates = indices(len(low))
        for i in changed:
            repeated = _repeated_once if _is_near(mode, value.type.shape[i], low[i], high[i]) else _repeated
            coordinates[i] = repeated(mode, arith.subi(coordinates[i], offsets[i]), limits[i])
        return tensor.extract(value, coordinates)

    return pointwise(op.sizes(), element(value), [], body)


def _crops(size: Size) -> bool:
    return isinstance(size, int) and size <= 0


def _is_near(mode: str, extent_: int, low: Size, high: Size) -> bool:
    """Is the padding known to be no wider than what is repeated, so that no coordinate needs a division?"""
    if extent_ == DYNAMIC or not isinstance(low, int) or not isinstance(high, int):
        return False
    return max(low, high) <= (extent_ - 1 if mode == "reflect" else extent_)


def _repeated_once(mode: str, position: ir.Value, extent_: ir.Value) -> ir.Value:
    """`_repeated` of positions that lie less than one width outside. Comparisons with constants are where a loop along
    vectors is cut (`analysis.cuts`), so that in each part the position is known up to a constant."""
    zero = scalar.index(0)
    negative, below = (arith.cmpi(scalar.I.slt, position, bound) for bound in (zero, extent_))
    if mode == "reflect":
        turn = arith.muli(arith.subi(extent_, scalar.index(1)), scalar.index(2))
        before, behind = arith.subi(zero, position), arith.subi(turn, position)
    elif mode == "wrap":
        before, behind = arith.addi(position, extent_), arith.subi(position, extent_)
    else:
        before, behind = zero, arith.subi(extent_, scalar.index(1))
    return arith.select(negative, before, arith.select(below, position, behind))


def _repeated(mode: str, position: ir.Value, extent_: ir.Value) -> ir.Value:
    zero, one = scalar.index(0), scalar.index(1)
    last = arith.subi(extent_, one)
    if mode == "edge":
        return arith.minsi(arith.maxsi(position, zero), last)
    if mode == "wrap":
        return _modulo(position, extent_)
    # reflect: a triangle wave of period 2 * (extent - 1)
    period = arith.maxsi(arith.muli(last, scalar.index(2)), one)
    phase = _modulo(position, period)
    return arith.minsi(phase, arith.subi(period, phase)) if mode == "reflect" else phase


def _modulo(value: ir.Value, modulus: ir.Value) -> ir.Value:
    remainder = arith.remsi(value, modulus)
    negative = arith.cmpi(scalar.I.slt, remainder, scalar.index(0))
    return arith.select(negative, arith.addi(remainder, modulus), remainder)


@lowers("mlc.shape_of")
def shape_of_(op: Lowering) -> ir.Value:
    """The extents as `tensor.from_elements`."""
    i64 = ir.IntegerType.get_signless(64)
    sizes = [size_value(s) for s in sizes_of(op.operand(0))]
    if not sizes:
        return tensor.empty([0], i64)
    return tensor.FromElementsOp(op.types[0], [arith.index_cast(i64, s) for s in sizes]).result


@lowers("mlc.iota")
def iota(op: Lowering) -> ir.Value:
    """The coordinate along `axis`, converted to the element type."""
    axis, to = op.int("axis"), op.types[0].element_type
    i64 = ir.IntegerType.get_signless(64)

    def body(args: list[ir.Value]) -> ir.Value:
        position = arith.index_cast(i64, linalg.IndexOp(axis).result)
        return scalar.convert(position, to) if to != i64 else position

    return pointwise(op.sizes(), to, [], body)
