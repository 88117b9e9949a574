"""How extents and `index` values follow through each operation, for `mlc.dims.DimAnalysis`: one rule an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from mlc.dims import DYNAMIC, DimAnalysis, constant_of, infer, is_integer, is_shaped

Rule = Callable[[DimAnalysis, ir.Operation], None]
_RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            _RULES[name] = function
        return function

    return register


def transfer(op: ir.Operation) -> Rule | None:
    """The rule of an operation; None for one whose results are unknown."""
    name = op.name
    if name in _RULES:
        return _RULES[name]
    if name.startswith("mlc."):
        return _mlc
    return _destinations if name.startswith("linalg.") else None


# -- mlc and linalg ----------------------------------------------------------------------------------------------------

_BROADCASTING = ("mlc.binary", "mlc.compare", "mlc.select", "mlc.clamp", "mlc.prelu")


def _mlc(analysis: DimAnalysis, op: ir.Operation) -> None:
    inferred = infer(analysis, op)
    if inferred is None:
        return
    for result, dims in zip(op.results, inferred, strict=True):
        if op.name in _BROADCASTING:
            dims = [d if d is not None else _broadcast(analysis, op, len(dims) - i) for i, d in enumerate(dims)]
        analysis.set_dims(result, dims)


def _broadcast(analysis: DimAnalysis, op: ir.Operation, from_end: int) -> ir.AffineExpr:
    """The extent that unknown ones broadcast to: the same symbol for the same set of them."""
    parts: set[ir.AffineExpr] = set()
    for operand in op.operands:
        dims = analysis.dims(operand)
        if len(dims) >= from_end and constant_of(dims[-from_end]) != 1:
            parts |= analysis.symbols.broadcast_parts(dims[-from_end])
    return analysis.symbols.broadcast(frozenset(parts))


@_rule("mlc.launch")
def _launch(analysis: DimAnalysis, op: ir.Operation) -> None:
    _destinations(analysis, op)


def _destinations(analysis: DimAnalysis, op: ir.Operation) -> None:
    """Results have the extents of the destinations, the last shaped operands."""
    count = len(op.results)
    if count == 0:
        return
    destinations = list(op.operands)[-count:]
    for result, destination in zip(op.results, destinations, strict=True):
        if is_shaped(result) and is_shaped(destination):
            analysis.set_dims(result, analysis.dims(destination))


# -- tensor ------------------------------------------------------------------------------------------------------------


def _mixed(analysis: DimAnalysis, op: ir.Operation, static: str, dynamic: Sequence[ir.Value]) -> list[ir.AffineExpr]:
    rest = iter(dynamic)
    return [analysis.expr(next(rest) if v == DYNAMIC else v) for v in ir.DenseI64ArrayAttr(op.attributes[static])]


def _segments(op: ir.Operation) -> list[list[ir.Value]]:
    values, groups = list(op.operands), []
    for size in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]):
        groups.append(values[:size])
        values = values[size:]
    return groups


@_rule("tensor.dim", "memref.dim")
def _dim(analysis: DimAnalysis, op: ir.Operation) -> None:
    position = constant_of(analysis.expr(op.operands[1]))
    dims = analysis.dims(op.operands[0])
    if position is not None and 0 <= position < len(dims):
        analysis.set_expr(op.results[0], dims[position])
    else:
        analysis.set_expr(op.results[0], analysis.symbols.new())


@_rule("tensor.empty", "bufferization.alloc_tensor", "tensor.generate", "tensor.splat")
def _empty(analysis: DimAnalysis, op: ir.Operation) -> None:
    sizes = iter([v for v in op.operands if isinstance(v.type, ir.IndexType)])
    shape = ir.ShapedType(op.results[0].type).shape
    analysis.set_dims(op.results[0], [analysis.expr(next(sizes)) if n == DYNAMIC else None for n in shape])


@_rule("tensor.cast", "bufferization.materialize_in_destination")
def _same(analysis: DimAnalysis, op: ir.Operation) -> None:
    if is_shaped(op.operands[0]):
        analysis.set_dims(op.results[0], analysis.dims(op.operands[0]))


@_rule("tensor.extract_slice")
def _extract_slice(analysis: DimAnalysis, op: ir.Operation) -> None:
    sizes = _mixed(analysis, op, "static_sizes", _segments(op)[2])
    shape = list(ir.ShapedType(op.results[0].type).shape)
    kept: list[ir.AffineExpr] = []
    for number, size in enumerate(sizes):
        surplus = (len(sizes) - number) - (len(shape) - len(kept))
        want = shape[len(kept)] if len(kept) < len(shape) else None
        if surplus > 0 and constant_of(size) == 1 and want != 1:
            continue
        kept.append(size)
    # Units that could as well be kept are dropped from the end.
    while len(kept) > len(shape):
        kept.remove(next(k for k in reversed(kept) if constant_of(k) == 1))
    analysis.set_dims(op.results[0], kept)


@_rule("tensor.insert_slice", "tensor.insert", "tensor.scatter")
def _insert(analysis: DimAnalysis, op: ir.Operation) -> None:
    analysis.set_dims(op.results[0], analysis.dims(op.operands[1]))


@_rule("tensor.expand_shape")
def _expand_shape(analysis: DimAnalysis, op: ir.Operation) -> None:
    sizes = _mixed(analysis, op, "static_output_shape", list(op.operands)[1:])
    analysis.set_dims(op.results[0], sizes)


@_rule("tensor.collapse_shape")
def _collapse_shape(analysis: DimAnalysis, op: ir.Operation) -> None:
    source = analysis.dims(op.operands[0])
    dims = []
    for group in ir.ArrayAttr(op.attributes["reassociation"]):
        extent = analysis.symbols.constant(1)
        for position in ir.ArrayAttr(group):
            extent = analysis.symbols.mul(extent, source[ir.IntegerAttr(position).value])
        dims.append(extent)
    analysis.set_dims(op.results[0], dims)


@_rule("tensor.pad")
def _pad(analysis: DimAnalysis, op: ir.Operation) -> None:
    source, low, high = _segments(op)
    add = analysis.symbols.add
    widths = zip(
        analysis.dims(source[0]),
        _mixed(analysis, op, "static_low", low),
        _mixed(analysis, op, "static_high", high),
        strict=True,
    )
    analysis.set_dims(op.results[0], [add(add(extent, before), after) for extent, before, after in widths])


@_rule("tensor.concat")
def _concat(analysis: DimAnalysis, op: ir.Operation) -> None:
    axis = ir.IntegerAttr(op.attributes["dim"]).value
    inputs = [analysis.dims(v) for v in op.operands]
    dims = list(inputs[0])
    for other in inputs[1:]:
        dims[axis] = analysis.symbols.add(dims[axis], other[axis])
    analysis.set_dims(op.results[0], dims)


# -- index arithmetic --------------------------------------------------------------------------------------------------


def _arithmetic(*names: str) -> Callable[[Callable[..., ir.AffineExpr | None]], Rule]:
    """A rule for operations on integers: computes the result from the operands' expressions, None if unknown."""

    def decorate(function: Callable[..., ir.AffineExpr | None]) -> Rule:
        @_rule(*[f"{dialect}.{name}" for name in names for dialect in ("arith", "index")])
        def rule(analysis: DimAnalysis, op: ir.Operation) -> None:
            if not is_integer(op.results[0]) or not all(is_integer(v) for v in op.operands):
                return
            value = function(analysis, *[analysis.expr(v) for v in op.operands])
            if value is not None:
                analysis.set_expr(op.results[0], value)

        return rule

    return decorate


@_rule("arith.constant", "index.constant")
def _constant(analysis: DimAnalysis, op: ir.Operation) -> None:
    if is_integer(op.results[0]):
        analysis.set_expr(op.results[0], analysis.symbols.constant(ir.IntegerAttr(op.attributes["value"]).value))


@_arithmetic("addi", "add")
def _add(analysis: DimAnalysis, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
    return analysis.symbols.add(lhs, rhs)


@_arithmetic("subi", "sub")
def _sub(analysis: DimAnalysis, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
    return analysis.symbols.sub(lhs, rhs)


@_arithmetic("muli", "mul")
def _mul(analysis: DimAnalysis, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
    return analysis.symbols.mul(lhs, rhs)


@_arithmetic("index_cast", "index_castui", "casts", "castu")
def _cast(analysis: DimAnalysis, value: ir.AffineExpr) -> ir.AffineExpr:
    return value


@_arithmetic("floordivsi", "floordivs")
def _floordiv(analysis: DimAnalysis, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
    return analysis.symbols.div(lhs, rhs)


@_arithmetic("ceildivsi", "ceildivs", "ceildivui", "ceildivu")
def _ceildiv(analysis: DimAnalysis, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
    return analysis.symbols.div(lhs, rhs, "ceil")


def _not_negative(analysis: DimAnalysis, expr: ir.AffineExpr) -> bool:
    low = analysis.symbols.range(expr)[0]
    return low is not None and low >= 0


@_arithmetic("divsi", "divui", "divs", "divu")
def _div(analysis: DimAnalysis, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
    """Rounds toward zero: down, unless the dividend may be negative."""
    if _not_negative(analysis, lhs):
        return analysis.symbols.div(lhs, rhs)
    return analysis.symbols.opaque(("truncdiv", lhs, rhs))


@_arithmetic("remsi", "remui", "rems", "remu")
def _rem(analysis: DimAnalysis, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
    if _not_negative(analysis, lhs):
        return analysis.symbols.mod(lhs, rhs)
    return analysis.symbols.opaque(("rem", lhs, rhs))


@_arithmetic("maxsi", "maxs", "maxui", "maxu")
def _max(analysis: DimAnalysis, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
    return analysis.symbols.extreme(lhs, rhs, largest=True)


@_arithmetic("minsi", "mins", "minui", "minu")
def _min(analysis: DimAnalysis, lhs: ir.AffineExpr, rhs: ir.AffineExpr) -> ir.AffineExpr:
    return analysis.symbols.extreme(lhs, rhs, largest=False)


def _decide(analysis: DimAnalysis, condition: ir.Value) -> bool | tuple[object, ...] | ir.Value:
    """What an `i1` is: known, or a key that is equal for equal conditions."""
    op = None if isinstance(condition.owner, ir.Block) else condition.owner.operation
    if op is None:
        return condition
    if op.name == "arith.constant":
        return bool(ir.IntegerAttr(op.attributes["value"]).value)
    if op.name != "arith.cmpi" or not is_integer(op.operands[0]):
        return condition
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    lhs, rhs = (analysis.expr(v) for v in op.operands)
    low, high = analysis.symbols.range(analysis.symbols.sub(lhs, rhs))
    zero = low == 0 and high == 0
    apart = (low is not None and low > 0) or (high is not None and high < 0)
    less = True if high is not None and high < 0 else False if low is not None and low >= 0 else None
    at_most = True if high is not None and high <= 0 else False if low is not None and low > 0 else None
    answers: dict[int, bool | None] = {
        0: True if zero else False if apart else None,
        1: False if zero else True if apart else None,
        2: less,
        3: at_most,
        4: None if at_most is None else not at_most,
        5: None if less is None else not less,
    }
    answer = answers.get(predicate)
    return ("cmp", predicate, lhs, rhs) if answer is None else answer


@_rule("arith.select")
def _select(analysis: DimAnalysis, op: ir.Operation) -> None:
    condition, on_true, on_false = op.operands
    decision = _decide(analysis, condition) if isinstance(condition.type, ir.IntegerType) else condition
    if isinstance(decision, bool):
        chosen = on_true if decision else on_false
        if is_integer(chosen):
            analysis.set_expr(op.results[0], analysis.expr(chosen))
        elif is_shaped(chosen):
            analysis.set_dims(op.results[0], analysis.dims(chosen))
    elif is_integer(on_true):
        left, right = analysis.expr(on_true), analysis.expr(on_false)
        value = left if left == right else _either(analysis, decision, left, right)
        analysis.set_expr(op.results[0], value)
    elif is_shaped(on_true):
        pairs = zip(analysis.dims(on_true), analysis.dims(on_false), strict=True)
        analysis.set_dims(op.results[0], [a if a == b else None for a, b in pairs])


def _either(analysis: DimAnalysis, key: object, left: ir.AffineExpr, right: ir.AffineExpr) -> ir.AffineExpr:
    (low_l, high_l), (low_r, high_r) = analysis.symbols.range(left), analysis.symbols.range(right)
    low = None if low_l is None or low_r is None else min(low_l, low_r)
    high = None if high_l is None or high_r is None else max(high_l, high_r)
    return analysis.symbols.opaque(("select", key, left, right), (low, high))


@_rule("affine.apply")
def _apply(analysis: DimAnalysis, op: ir.Operation) -> None:
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    if map_.n_symbols:
        return
    values = ir.AffineMap.get(0, len(analysis.symbol_names), [analysis.expr(v) for v in op.operands])
    analysis.set_expr(op.results[0], analysis.symbols.canonical(map_.results[0].compose(values)))


# -- control flow ------------------------------------------------------------------------------------------------------

Facts = list["ir.AffineExpr | None"]


def _facts(analysis: DimAnalysis, value: ir.Value) -> list[ir.AffineExpr]:
    """Extents or value, as a list."""
    if is_shaped(value):
        return analysis.dims(value)
    return [analysis.expr(value)] if is_integer(value) else []


def _set_facts(analysis: DimAnalysis, value: ir.Value, facts: Facts) -> None:
    if is_shaped(value):
        analysis.set_dims(value, facts)
    elif is_integer(value):
        if facts[0] is None:
            analysis.set_unknown(value)
        else:
            analysis.set_expr(value, facts[0])


def _meet(left: Sequence[ir.AffineExpr], right: Sequence[ir.AffineExpr]) -> Facts:
    return [a if a == b else None for a, b in zip(left, right, strict=True)]


def _terminator(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


@_rule("scf.if")
def _if(analysis: DimAnalysis, op: ir.Operation) -> None:
    blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
    for block in blocks:
        analysis.walk(block)
    if not len(op.results):
        return
    then_values, else_values = (list(_terminator(block).operands) for block in blocks)
    for result, left, right in zip(op.results, then_values, else_values, strict=True):
        if is_shaped(result) or is_integer(result):
            _set_facts(analysis, result, _meet(_facts(analysis, left), _facts(analysis, right)))


def _loop(
    analysis: DimAnalysis,
    arguments: Sequence[ir.Value],
    initial: Sequence[ir.Value],
    body: Callable[[], Sequence[ir.Value]],
) -> list[Facts]:
    """The facts that hold in every iteration: assumes that those of the initial values do, and drops what a walk of the
    body refutes until nothing is left to drop."""
    assumed: list[Facts] = [list(_facts(analysis, value)) for value in initial]
    while True:
        mark = analysis.mark()
        for argument, facts in zip(arguments, assumed, strict=True):
            _set_facts(analysis, argument, facts)
        following = body()
        refuted = False
        for number, (argument, value) in enumerate(zip(arguments, following, strict=True)):
            pairs = zip(_facts(analysis, argument), _facts(analysis, value), strict=True)
            for position, (have, next_value) in enumerate(pairs):
                if assumed[number][position] is not None and have != next_value:
                    assumed[number][position] = None
                    refuted = True
        if not refuted:
            return assumed
        analysis.rollback(mark)


@_rule("scf.for")
def _for(analysis: DimAnalysis, op: ir.Operation) -> None:
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)

    def body() -> Sequence[ir.Value]:
        analysis.set_unknown(arguments[0])
        analysis.walk(block)
        return list(_terminator(block).operands)

    facts = _loop(analysis, arguments[1:], list(op.operands)[3:], body)
    for result, invariant in zip(op.results, facts, strict=True):
        if is_shaped(result) or is_integer(result):
            _set_facts(analysis, result, invariant)


@_rule("scf.while")
def _while(analysis: DimAnalysis, op: ir.Operation) -> None:
    before, after = (region.blocks[0] for region in op.regions)

    def body() -> Sequence[ir.Value]:
        analysis.walk(before)
        forwarded = list(_terminator(before).operands)[1:]
        for argument, value in zip(after.arguments, forwarded, strict=True):
            _set_facts(analysis, argument, list(_facts(analysis, value)))
        analysis.walk(after)
        return list(_terminator(after).operands)

    _loop(analysis, list(before.arguments), list(op.operands), body)
    for result, value in zip(op.results, list(_terminator(before).operands)[1:], strict=True):
        if is_shaped(result) or is_integer(result):
            _set_facts(analysis, result, list(_facts(analysis, value)))
