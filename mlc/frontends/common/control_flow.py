"""Branches and loops as `scf` operations whose results are tensors.

The types of the results are known only once a body has been built, so bodies are built in a scratch operation first
and then moved into the final one. Where two paths give different static extents the result's is dynamic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from mlir import ir

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import shape, types
from mlc.frontends.common.builder import DYNAMIC, Builder, Size, Tensor
from mlc.frontends.report import NodeError

ForStep = Callable[[Tensor, Sequence[Tensor]], tuple[list[Tensor], list[Tensor]]]
WhileStep = Callable[[Tensor, Tensor, Sequence[Tensor]], tuple[Tensor, list[Tensor], list[Tensor]]]
_ATTEMPTS = 4


class RetypeError(Exception):
    """A loop's body needs another type for one of its arguments, see `Builder.wanted`."""


class PathError(NodeError):
    """Two paths give values that no tensor type covers."""


def extract(b: Builder, tensor: Tensor) -> ir.Value:
    """The element of a rank-0 tensor."""
    return ir.Operation.create("tensor.extract", [tensor.element], [tensor.value]).result


def joined(lhs: ir.Type, rhs: ir.Type) -> ir.Type:
    """The type that covers two tensor types; `NodeError` when ranks or element types differ."""
    if lhs == rhs:
        return lhs
    if not isinstance(lhs, ir.RankedTensorType) or not isinstance(rhs, ir.RankedTensorType):
        raise PathError(f"the paths give values of different types, {lhs} and {rhs}")
    if lhs.rank != rhs.rank or lhs.element_type != rhs.element_type:
        raise PathError(f"the paths give {lhs} and {rhs}", "they must agree in rank and element type")
    extents = [left if left == right else DYNAMIC for left, right in zip(lhs.shape, rhs.shape, strict=True)]
    return ir.RankedTensorType.get(extents, lhs.element_type)


def _scratch(arguments: Sequence[ir.Type]) -> tuple[ir.Operation, ir.Block]:
    """An operation whose only purpose is to hold a block while it is built."""
    operation = ir.Operation.create("scf.execute_region", regions=1)
    return operation, operation.regions[0].blocks.append(*arguments)


def _yield(b: Builder, block: ir.Block, values: Sequence[Tensor], kinds: Sequence[ir.Type]) -> None:
    with ir.InsertionPoint(block):
        cast = [b.cast_type(value, kind).value for value, kind in zip(values, kinds, strict=True)]
        ir.Operation.create("scf.yield", operands=cast)


def if_(b: Builder, condition: Tensor, branches: Sequence[Callable[[], list[Tensor]]]) -> list[Tensor]:
    """`scf.if` on a one-element `i1` tensor; `branches` build the values if true and if false."""
    flag = extract(b, shape.reshape(b, condition, []))
    built = []
    for branch in branches:
        holder, block = _scratch([])
        try:
            with ir.InsertionPoint(block):
                built.append((holder, block, branch()))
        except Exception:
            for unfinished in [holder, *(entry[0] for entry in built)]:
                unfinished.erase()
            raise
    (_, _, on_true), (_, _, on_false) = built
    if len(on_true) != len(on_false):
        raise NodeError(f"the branches have {len(on_true)} and {len(on_false)} outputs")
    try:
        kinds = [joined(left.value.type, right.value.type) for left, right in zip(on_true, on_false, strict=True)]
    except NodeError:
        for holder, _, _ in built:
            holder.erase()
        raise
    operation = ir.Operation.create("scf.if", kinds, [flag], regions=2)
    for region, (holder, block, values) in zip(operation.regions, built, strict=True):
        _yield(b, block, values, kinds)
        block.append_to(region)
        holder.erase()
    return [Tensor(result, value.unsigned) for result, value in zip(operation.results, on_true, strict=True)]


def require(b: Builder, condition: Tensor, expected: bool, message: str) -> None:
    """`mlc.check` that a one-element `i1` tensor is `expected`."""
    flag = shape.reshape(b, condition, [])
    flag = flag if expected else ew.unary(b, "not", flag)
    value = ir.Operation.create("arith.index_castui", [b.index], [extract(b, flag)]).result
    attributes = {"message": ir.StringAttr.get(message)}
    ir.Operation.create("mlc.check", operands=[extract(b, flag), value], attributes=attributes)


def _counter(b: Builder) -> Tensor:
    return replace(b.constant(np.array(0, np.int64)), known=None)


def _next(b: Builder, counter: Tensor) -> Tensor:
    return ew.binary(b, "add", counter, b.constant(np.array(1, np.int64)))


def take(b: Builder, x: Tensor, axis: int, position: Tensor, from_end: bool) -> Tensor:
    """The slice at a run-time position along `axis`, without that dimension."""
    index = b.element(position)
    if from_end:
        index = b.arith("subi", b.arith("subi", b.dim(x, axis), 1), index)
    return shape.squeeze(b, shape.window(b, x, axis, index, 1), [axis])


def for_(b: Builder, count: Size, initial: Sequence[Tensor], step: ForStep) -> list[Tensor]:
    """`scf.for` over `count` iterations; returns the carried values, then the stacked ones.

    `step` gets the iteration number (an `i64` scalar tensor) and the carried values, and returns the next ones and
    those to stack along a new first dimension.
    """
    kinds, parts, signs = _settled(b, initial, step)
    shapes = _first_shapes(b, count, initial, kinds, parts, step)
    return _for(b, count, initial, kinds, parts, signs, shapes, step)


def repeat(b: Builder, count: Size, initial: Tensor, step: Callable[[Size, Tensor], Tensor]) -> Tensor:
    """`scf.for` over `count` iterations that carries one value, whose type stays: `step` gets the number of the
    iteration, a size, and the value, and returns the next one.
    """
    bounds = [b.index_constant(0), b.as_index(count), b.index_constant(1)]
    kind = initial.value.type
    loop = ir.Operation.create("scf.for", [kind], [*bounds, initial.value], regions=1)
    block = loop.regions[0].blocks.append(b.index, kind)
    with ir.InsertionPoint(block):
        number, carried = (ir.Value(argument) for argument in block.arguments)
        _yield(b, block, [step(number, Tensor(carried, initial.unsigned))], [kind])
    return Tensor(loop.results[0], initial.unsigned)


def _first_shapes(
    b: Builder,
    count: Size,
    initial: Sequence[Tensor],
    kinds: Sequence[ir.Type],
    parts: Sequence[ir.Type],
    step: ForStep,
) -> list[list[Size]] | None:
    """The extents of what the first iteration stacks, which all others have as well, or nothing when there may be none.

    They come from a copy of the body. What it computes is dropped later, unless extents depend on it.
    """
    known = all(DYNAMIC not in ir.RankedTensorType(part).shape for part in parts)
    if known or not isinstance(count, int) or count < 1:
        return None
    starts = [b.cast_type(value, kind) for value, kind in zip(initial, kinds, strict=True)]
    _, items = step(_counter(b), starts)
    return [b.dims(item) for item in items]


def _settled(b: Builder, initial: Sequence[Tensor], step: ForStep) -> tuple[list[ir.Type], list[ir.Type], list[bool]]:
    """The types of the carried and of the stacked values: bodies are built for trial until they do not change."""
    kinds = [value.value.type for value in initial]
    for _ in range(_ATTEMPTS):
        wider, parts, signs = _trial(b, initial, kinds, step)
        if wider == kinds:
            return kinds, parts, signs
        kinds = wider
    raise NodeError("the types of the loop's values keep changing")


def _trial(
    b: Builder, initial: Sequence[Tensor], kinds: Sequence[ir.Type], step: ForStep
) -> tuple[list[ir.Type], list[ir.Type], list[bool]]:
    """Builds a body once to learn the types of its results."""
    holder, block = _scratch([ir.RankedTensorType.get([], types.element_type("int64")), *kinds])
    try:
        with ir.InsertionPoint(block):
            first, *rest = [ir.Value(argument) for argument in block.arguments]
            values = [Tensor(value, like.unsigned) for value, like in zip(rest, initial, strict=True)]
            carried, stacked = step(Tensor(first), values)
        wider = [joined(kind, value.value.type) for kind, value in zip(kinds, carried, strict=True)]
        return wider, [value.value.type for value in stacked], [value.unsigned for value in stacked]
    except RetypeError:
        wanted = [b.wanted.pop(value, kind) for value, kind in zip(rest, kinds, strict=True)]
        if wanted == list(kinds):
            b.wanted.clear()
            raise NodeError("a value in the body of the loop has a type that does not fit") from None
        return wanted, [], []
    finally:
        holder.erase()


def _for(
    b: Builder,
    count: Size,
    initial: Sequence[Tensor],
    kinds: Sequence[ir.Type],
    parts: Sequence[ir.Type],
    signs: Sequence[bool],
    shapes: Sequence[Sequence[Size]] | None,
    step: ForStep,
) -> list[Tensor]:
    starts = [b.cast_type(value, kind) for value, kind in zip(initial, kinds, strict=True)]
    stacks = [_stack(b, count, part, shapes and shapes[number]) for number, part in enumerate(parts)]
    operands = [_counter(b), *starts, *stacks]
    inits = [value.value for value in operands]
    bounds = [b.index_constant(0), b.as_index(count), b.index_constant(1)]
    results = [value.type for value in inits]
    loop = ir.Operation.create("scf.for", results, [*bounds, *inits], regions=1)
    block = loop.regions[0].blocks.append(b.index, *results)
    with ir.InsertionPoint(block):
        flags = [False, *(value.unsigned for value in starts), *signs]
        arguments = [
            Tensor(ir.Value(value), flag) for value, flag in zip(list(block.arguments)[1:], flags, strict=True)
        ]
        counter, values, stacked = arguments[0], arguments[1 : 1 + len(starts)], arguments[1 + len(starts) :]
        carried, items = step(counter, values)
        place = _append_or_put if shapes is None else _checked_put
        filled = [place(b, stack, counter, item) for stack, item in zip(stacked, items, strict=True)]
        following = [_next(b, counter), *carried, *filled]
    _yield(b, block, following, results)
    return [Tensor(result, flag) for result, flag in zip(list(loop.results)[1:], flags[1:], strict=True)]


def _stack(b: Builder, count: Size, part: ir.Type, shape_: Sequence[Size] | None) -> Tensor:
    """Where the values of a loop go: all of them at once, or a list that grows when their extents are not known."""
    kind = ir.RankedTensorType(part)
    extents = list(kind.shape)
    zero = shape.zero(b, types.dtype_name(kind.element_type))
    if shape_ is not None:
        full = shape.full(b, [count, *shape_], zero)
        return replace(b.cast_type(full, ir.RankedTensorType.get([count, *extents], kind.element_type)), known=None)
    if DYNAMIC not in extents:
        return replace(shape.full(b, [count, *extents], zero), known=None)
    empty = shape.full(b, [0, *(1 if extent == DYNAMIC else extent for extent in extents)], zero)
    grown = ir.RankedTensorType.get([DYNAMIC, *extents], kind.element_type)
    return replace(b.cast_type(empty, grown), known=None)


def _append_or_put(b: Builder, stack: Tensor, counter: Tensor, item: Tensor) -> Tensor:
    if DYNAMIC not in list(stack.type.shape)[1:]:
        return _put(b, stack, counter, item)
    return append(b, stack, counter, shape.unsqueeze(b, item, [0]))


def _put(b: Builder, stack: Tensor, counter: Tensor, item: Tensor) -> Tensor:
    row, where = shape.unsqueeze(b, item, [0]), shape.reshape(b, counter, [1, 1])
    return b.op("scatter_nd", [stack, where, row], reduction="none", unsigned=stack.unsigned)


def _checked_put(b: Builder, stack: Tensor, counter: Tensor, item: Tensor) -> Tensor:
    """`_put` of an item whose extents the run tells; those of all items are the same."""
    message = "the values that a loop stacks have different shapes"
    for axis in range(item.rank):
        shape.require_same(b, b.dim(item, axis), b.dim(stack, axis + 1), message)
    return _put(b, stack, counter, item)


def append(b: Builder, stack: Tensor, counter: Tensor, row: Tensor) -> Tensor:
    """A stack of unknown item extents grown by a row; the empty stack takes the row's extents."""
    if DYNAMIC not in list(stack.type.shape)[1:]:
        return shape.concat(b, [stack, row], 0)
    first = ew.compare(b, "eq", counter, b.constant(np.array(0, np.int64)))
    return if_(b, first, [lambda: [row], lambda: [shape.concat(b, [stack, row], 0)]])[0]


def while_(b: Builder, trip: Tensor | None, going: Tensor, initial: Sequence[Tensor], step: WhileStep) -> list[Tensor]:
    """`scf.while` while `going` holds and fewer than `trip` iterations were made; results as of `for_`."""
    flag = ir.RankedTensorType.get([], types.element_type("bool"))
    limit = None if trip is None else shape.reshape(b, trip, [])
    still = replace(going, known=None)
    kinds, parts, signs = _settled(b, initial, lambda counter, values: step(counter, still, values)[1:])
    starts = [b.cast_type(value, kind) for value, kind in zip(initial, kinds, strict=True)]
    stacks = [_growing(b, part) for part in parts]
    operands = [_counter(b), b.cast_type(going, flag), *starts, *stacks]
    flags = [False, False, *(value.unsigned for value in starts), *signs]
    loop = _while(b, limit, operands, flags, len(starts), step)
    return [Tensor(result, sign) for result, sign in zip(list(loop.results)[2:], flags[2:], strict=True)]


def _growing(b: Builder, part: ir.Type) -> Tensor:
    kind = ir.RankedTensorType(part)
    extents = [1 if extent == DYNAMIC else extent for extent in kind.shape]
    zero = shape.zero(b, types.dtype_name(kind.element_type))
    grown = ir.RankedTensorType.get([DYNAMIC, *kind.shape], kind.element_type)
    return b.cast_type(shape.full(b, [0, *extents], zero), grown)


def _while(
    b: Builder, limit: Tensor | None, operands: list[Tensor], flags: list[bool], carried: int, step: WhileStep
) -> ir.Operation:
    inits = [value.value for value in operands]
    kinds = [value.type for value in inits]
    loop = ir.Operation.create("scf.while", kinds, inits, regions=2)
    before = loop.regions[0].blocks.append(*kinds)
    with ir.InsertionPoint(before):
        arguments = [Tensor(ir.Value(value), sign) for value, sign in zip(before.arguments, flags, strict=True)]
        more = arguments[1]
        if limit is not None:
            inside = ew.compare(b, "lt", arguments[0], ew.cast(b, limit, "int64"))
            more = ew.binary(b, "and", more, inside)
        values = [value.value for value in arguments]
        ir.Operation.create("scf.condition", operands=[extract(b, more), *values])
    after = loop.regions[1].blocks.append(*kinds)
    with ir.InsertionPoint(after):
        arguments = [Tensor(ir.Value(value), sign) for value, sign in zip(after.arguments, flags, strict=True)]
        counter, state = arguments[0], arguments[2 : 2 + carried]
        again, following, items = step(counter, arguments[1], state)
        stacks = [
            append(b, stack, counter, shape.unsqueeze(b, item, [0]))
            for stack, item in zip(arguments[2 + carried :], items, strict=True)
        ]
        results = [_next(b, counter), shape.reshape(b, again, []), *following, *stacks]
    _yield(b, after, results, kinds)
    return loop
