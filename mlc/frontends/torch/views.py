"""Operators whose results share memory with their first operand, and the way back from a view to what it looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mlc.frontends.common import indexing, shape
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.memory import Link, Memory
from mlc.frontends.torch.registry import Call, Handler, Value, as_size

_SAME = {"detach", "alias", "lift_fresh", "identity", "dropout", "feature_dropout", "alpha_dropout", "view_as_real"}
_RESHAPES = {"view", "_reshape_alias", "view_as", "unflatten", "squeeze", "unsqueeze"}
_MAY_COPY = {"reshape", "flatten", "contiguous", "reshape_as", "ravel"}
_CONVERSIONS = {"to", "type_as", "float", "int", "long", "bool", "half", "double"}
_PARTS = {"chunk", "split", "split_with_sizes", "tensor_split", "unbind"}
_UNFOLLOWED = {"meshgrid", "broadcast_tensors"}
_UNORDERED = {"einsum", "scaled_dot_product_attention", "sort", "topk", "lstm", "gru", "stft", "movedim"}
"""Operators whose results may lie in another order than their extents', whatever their operands."""


def results(memory: Memory, call: Call, handler: Handler, base: Value, result: Value, aliases: bool) -> Value:
    """The handles of an operator's results.

    `call` has the current tensors of its arguments; `base` is the handle of the first one; `aliases` is what the schema
    says of the results.
    """
    name = call.op.removeprefix("aten::")
    if isinstance(base, Tensor) and (name in _SAME or (aliases and name in _CONVERSIONS)):
        return base if result is call[0] and call.get("copy") is not True else memory.fresh(result, [base], dense=True)
    arguments = [base, *call.arguments[1:]] if call.arguments else []
    if not aliases or not isinstance(base, Tensor):
        # clone and what computes element by element keep the order in memory of their operands
        return memory.fresh(result, arguments, dense=name not in _UNORDERED)
    if name in _MAY_COPY:
        return _maybe(memory, call, handler, base, result)
    if isinstance(result, list):
        return [memory.view(base, _part(call, handler, result, i), item, False) for i, item in enumerate(result)]
    return memory.view(base, _link(call, handler), result, dense=name in _RESHAPES)


def _maybe(memory: Memory, call: Call, handler: Handler, base: Tensor, result: Tensor) -> Tensor:
    """Of an operator that copies where it must: a view where the elements lie in order, else nobody knows."""
    if memory.is_dense(base):
        return base if result is call[0] else memory.view(base, _link(call, handler), result, dense=True)
    return memory.doubt(base, result, dense=call.op == "aten::contiguous")


def _link(call: Call, handler: Handler) -> Link:
    name = call.op.removeprefix("aten::")
    back = _WRITERS.get(name, _reshaped if name in _RESHAPES | _MAY_COPY else None)

    def read(base: Tensor) -> Tensor:
        return handler(_on(call, base))

    def write(base: Tensor, new: Tensor) -> Tensor:
        if back is None:
            raise NodeError(f"it writes through the view that {name} makes", "write the whole tensor, or use clone()")
        return back(_on(call, base), new)

    return Link(read, write)


def _part(call: Call, handler: Handler, parts: list[Tensor], number: int) -> Link:
    """The view that is number `number` of several along one dimension."""
    name = call.op.removeprefix("aten::")

    def read(base: Tensor) -> Tensor:
        return handler(_on(call, base))[number]

    def write(base: Tensor, new: Tensor) -> Tensor:
        if name not in _PARTS:
            raise NodeError(f"it writes through a view that {name} makes", "write the whole tensor, or use clone()")
        b, axis = call.b, shape.normalize_axis(int(call.get("dim", 0)), base.rank)
        if name == "unbind":
            return _put(_on(call, base), axis, number, 1, shape.unsqueeze(b, new, [axis]))
        offset: Size = 0
        for part in parts[:number]:
            offset = b.arith("addi", offset, b.dim(part, axis))
        return _put(_on(call, base), axis, offset, 1, new)

    return Link(read, write)


def _on(call: Call, base: Tensor) -> Call:
    return replace(call, arguments=[base, *call.arguments[1:]])


def _reshaped(call: Call, new: Tensor) -> Tensor:
    return shape.reshape(call.b, new, call.b.dims(call.tensor(0)))


def _permuted(call: Call, new: Tensor) -> Tensor:
    axes = [shape.normalize_axis(axis, new.rank) for axis in call.ints(1)]
    return shape.transpose(call.b, new, [int(place) for place in np.argsort(axes)])


def _transposed(call: Call, new: Tensor) -> Tensor:
    order = list(range(new.rank))
    if len(call.arguments) == 1:
        return shape.transpose(call.b, new, order[::-1])
    i, j = (shape.normalize_axis(call.int(n), new.rank) for n in (1, 2))
    order[i], order[j] = order[j], order[i]
    return shape.transpose(call.b, new, order)


def _selected(call: Call, new: Tensor) -> Tensor:
    b, base = call.b, call.tensor(0)
    axis = shape.normalize_axis(call.int(1), base.rank)
    position = as_size(b, call[2])
    if isinstance(position, int) and position < 0:
        position = b.arith("addi", b.dim(base, axis), position)
    return _put(call, axis, position, 1, shape.unsqueeze(b, new, [axis]))


def _sliced(call: Call, new: Tensor) -> Tensor:
    b, base = call.b, call.tensor(0)
    axis = shape.normalize_axis(call.int(1), base.rank)
    start = 0 if call[2] is None else as_size(b, call[2])
    end = shape.INT64_MAX if call[3] is None else as_size(b, call[3])
    offset, _ = shape.slice_range(b, b.dim(base, axis), start, end, call.int(4))
    return _put(call, axis, offset, call.int(4), new)


def _narrowed(call: Call, new: Tensor) -> Tensor:
    axis = shape.normalize_axis(call.int(1), new.rank)
    return _put(call, axis, call.sizes(2)[0], 1, new)


def _put(call: Call, axis: int, offset: Size, step: int, new: Tensor) -> Tensor:
    """The first operand with `new` at `offset`, `offset + step`, … of a dimension."""
    b, base = call.b, call.tensor(0)
    extent, count = b.dim(base, axis), b.dim(new, axis)
    if offset == 0 and step == 1 and shape.same_size(extent, count):
        return new
    if step != 1:
        line = shape.iota(b, [count], 0, "int64")
        places = _line(call, line, offset, step, axis, new)
        return indexing.scatter(b, base, places, new, axis)
    end = b.arith("addi", offset, count)
    before = shape.window(b, base, axis, 0, offset)
    after = shape.window(b, base, axis, end, b.arith("subi", extent, end))
    return shape.concat(b, [part for part in (before, new, after) if part.shape[axis] != 0], axis)


def _line(call: Call, line: Tensor, offset: Size, step: int, axis: int, new: Tensor) -> Tensor:
    """`offset + step * line` along `axis`, with the extents of `new`."""
    from mlc.frontends.common import elementwise

    b = call.b
    scaled = elementwise.binary(b, "mul", line, b.like(step, line))
    moved = elementwise.binary(b, "add", scaled, indexing.as_indices(b, shape.size_scalar(b, offset)))
    stood = shape.unsqueeze(b, moved, [i for i in range(new.rank) if i != axis])
    return shape.broadcast(b, stood, b.dims(new))


_WRITERS: dict[str, Callable[[Call, Tensor], Tensor]] = {
    "permute": _permuted,
    "transpose": _transposed,
    "swapaxes": _transposed,
    "t": _transposed,
    "numpy_T": _transposed,
    "select": _selected,
    "slice": _sliced,
    "narrow": _narrowed,
}
