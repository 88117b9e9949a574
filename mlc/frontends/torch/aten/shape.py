"""Views, joins and tensors made from sizes."""

from __future__ import annotations

import numpy as np
from mlir import ir

from mlc.frontends.common import elementwise, indexing, reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import dtype_given, dtype_of
from mlc.frontends.torch.registry import (
    Call,
    Handler,
    Value,
    as_size,
    as_tensor,
    aten,
    called,
    known_ints,
    like,
    promoted,
)


def as_vectors(handler: Handler) -> Handler:
    """An importer that is given vectors of one element in place of scalars, and whose results become scalars again.

    PyTorch takes dimension 0 or -1 of a scalar for that of such a vector.
    """

    def of_scalar(call: Call) -> Value:
        x = call[0]
        if not isinstance(x, Tensor) or x.rank:
            return handler(call)
        raised = [shape.unsqueeze(call.b, item, [0]) if _is_scalar(item) else item for item in call.given()]
        result = called(call, handler, raised)
        if isinstance(result, list):
            return [shape.reshape(call.b, item, []) for item in result]
        return shape.reshape(call.b, result, [])

    return of_scalar


def _is_scalar(value: Value) -> bool:
    return isinstance(value, Tensor) and value.rank == 0


@aten("view", "reshape", "_unsafe_view", "unflatten", "_reshape_alias", "view_as", "reshape_as", "ravel")
def view(call: Call) -> Tensor:
    """Another shape; −1 stands for what is left."""
    x = call.tensor(0)
    if call.op == "aten::ravel":
        return shape.reshape_codes(call.b, x, [-1])
    if call.op in ("aten::view_as", "aten::reshape_as"):
        return shape.reshape(call.b, x, call.b.dims(call.tensor(1)))
    if call.op == "aten::view" and "dtype" in call.names:
        raise NodeError("a view of the same bits as another dtype", "convert it with to()")
    if call.op == "aten::unflatten":
        axis = shape.normalize_axis(call.int(1), x.rank)
        dims = call.b.dims(x)
        return shape.reshape_codes(call.b, x, [*dims[:axis], *call.sizes(2), *dims[axis + 1 :]], zero_copies=False)
    return shape.reshape_codes(call.b, x, call.sizes(1), zero_copies=False)


@aten("flatten")
def flatten(call: Call) -> Tensor:
    """Dimensions `start` to `end` as one."""
    b, x = call.b, call.tensor(0)
    if x.rank == 0:
        return shape.unsqueeze(b, x, [0])
    start, end = (shape.normalize_axis(call.int(i), x.rank) for i in (1, 2))
    dims = b.dims(x)
    return shape.reshape(b, x, [*dims[:start], b.product(dims[start : end + 1]), *dims[end + 1 :]])


@aten("permute")
def permute(call: Call) -> Tensor:
    """Dimensions in another order."""
    x = call.tensor(0)
    return shape.transpose(call.b, x, [shape.normalize_axis(axis, x.rank) for axis in call.ints(1)])


@aten("transpose", "swapaxes", "swapdims", "t", "numpy_T", "adjoint", "mT")
@as_vectors
def transpose(call: Call) -> Tensor:
    """Two dimensions exchanged."""
    x = call.tensor(0)
    order = list(range(x.rank))
    if call.op in ("aten::adjoint", "aten::mT"):
        return shape.transpose(call.b, x, [*order[:-2], order[-1], order[-2]])
    if len(call.arguments) == 1:
        return shape.transpose(call.b, x, order[::-1])
    i, j = (shape.normalize_axis(call.int(n), x.rank) for n in (1, 2))
    order[i], order[j] = order[j], order[i]
    return shape.transpose(call.b, x, order)


@aten("movedim", "moveaxis")
def movedim(call: Call) -> Tensor:
    """Some dimensions at other places, the rest in order."""
    x = call.tensor(0)
    sources, targets = ([shape.normalize_axis(axis, x.rank) for axis in call.ints(i)] for i in (1, 2))
    rest = iter(axis for axis in range(x.rank) if axis not in sources)
    placed = dict(zip(targets, sources, strict=True))
    return shape.transpose(call.b, x, [placed[i] if i in placed else next(rest) for i in range(x.rank)])


@aten("unsqueeze")
def unsqueeze(call: Call) -> Tensor:
    """A dimension of extent 1 more."""
    x = call.tensor(0)
    return shape.unsqueeze(call.b, x, [shape.normalize_axis(call.int(1), x.rank + 1)])


@aten("squeeze")
@as_vectors
def squeeze(call: Call) -> Tensor:
    """Without dimensions of extent 1."""
    x = call.tensor(0)
    axes = list(range(x.rank)) if len(call.arguments) == 1 else shape.normalize_axes(call.ints(1), x.rank)
    gone = [a for a in axes if x.shape[a] == 1]
    return shape.squeeze(call.b, x, gone) if gone else x


@aten("cat", "concat", "concatenate")
def concat(call: Call) -> Tensor:
    """Tensors after each other."""
    tensors = promoted(call.b, [t for t in call[0] if t.shape != [0]] or call[0])
    return shape.concat(call.b, tensors, shape.normalize_axis(int(call.get("dim", 0)), tensors[0].rank))


@aten("stack")
def stack(call: Call) -> Tensor:
    """Tensors along a new dimension; numbers make a vector."""
    tensors = promoted(call.b, [as_tensor(call.b, t) for t in call[0]])
    axis = shape.normalize_axis(int(call.get("dim", 0)), tensors[0].rank + 1)
    return shape.concat(call.b, [shape.unsqueeze(call.b, t, [axis]) for t in tensors], axis)


@aten("hstack", "vstack", "dstack")
def stacks(call: Call) -> Tensor:
    """Tensors beside, below or behind each other."""
    b, name = call.b, call.op.removeprefix("aten::")
    tensors = promoted(b, call[0])
    least = {"hstack": 1, "vstack": 2, "dstack": 3}[name]
    raised = []
    for x in tensors:
        if name == "dstack" and x.rank == 1:
            x = shape.unsqueeze(b, x, [0])
        while x.rank < least:
            x = shape.unsqueeze(b, x, [0] if name != "dstack" else [x.rank])
        raised.append(x)
    return shape.concat(b, raised, {"hstack": min(1, raised[0].rank - 1), "vstack": 0, "dstack": 2}[name])


@aten("slice")
def slice_(call: Call) -> Tensor | list[Value]:
    """`x[start:end:step]` along a dimension; of a list, Python's slice."""
    if isinstance(call[0], list):
        start, end, step = call.arguments[1:4]
        return list(call[0][start:end:step])
    x = call.tensor(0)
    axis = shape.normalize_axis(call.int(1), x.rank)
    start = 0 if call[2] is None else as_size(call.b, call[2])
    end = 2**63 - 1 if call[3] is None else as_size(call.b, call[3])
    return shape.slice_axes(call.b, x, [axis], [start], [end], [call.int(4)])


@aten("select")
def select(call: Call) -> Tensor:
    """One slice, without its dimension."""
    b, x = call.b, call.tensor(0)
    axis = shape.normalize_axis(call.int(1), x.rank)
    position = as_size(b, call[2])
    if isinstance(position, int) and position < 0:
        position = b.arith("addi", b.dim(x, axis), position)
    return shape.squeeze(b, shape.window(b, x, axis, position, 1), [axis])


@aten("narrow")
def narrow(call: Call) -> Tensor:
    """`length` elements of a dimension from `start`."""
    x = call.tensor(0)
    axis = shape.normalize_axis(call.int(1), x.rank)
    return shape.window(call.b, x, axis, call.sizes(2)[0], call.sizes(3)[0])


@aten("tensor_split")
def tensor_split(call: Call) -> list[Tensor]:
    """A number of pieces of nearly the same size, or pieces between positions."""
    b, x = call.b, call.tensor(0)
    axis = shape.normalize_axis(int(call.get("dim", 0)), x.rank)
    extent = x.shape[axis]
    if extent is None:
        raise NodeError("the extent of the split dimension is known at run time only", "fix it with --dim")
    known = _number_of(call[1]) if isinstance(call[1], Tensor) and call[1].rank == 0 else call[1]
    if isinstance(known, int):
        long = extent % known
        return shape.split(b, x, axis, [extent // known + (i < long) for i in range(known)])
    if isinstance(known, Tensor) and known.constant is not None:
        known = known.constant.tolist()
    places = known_ints(known, call.op)
    cuts = [0, *(min(cut + extent if cut < 0 else cut, extent) for cut in places), extent]
    return shape.split(b, x, axis, [max(0, high - low) for low, high in zip(cuts, cuts[1:], strict=False)])


@aten("chunk", "split", "split_with_sizes", "unbind", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes")
def split(call: Call) -> list[Tensor]:
    """Pieces along a dimension, whose extent must be known."""
    b, x, name = call.b, call.tensor(0), call.op.removeprefix("aten::").removeprefix("unsafe_")
    axis = shape.normalize_axis(int(call.get("dim", 0)), x.rank)
    extent = x.shape[axis]
    if name == "split_with_sizes" or isinstance(call.arguments[1], list):
        return shape.split_whole(b, x, axis, call.sizes(1))
    if extent is None:
        raise NodeError("the extent of the split dimension is known at run time only", "fix it with --dim")
    if name == "unbind":
        return [shape.squeeze(b, part, [axis]) for part in shape.split(b, x, axis, [1] * extent)]
    size = -(-extent // call.int(1)) if name == "chunk" else call.int(1)
    sizes: list[Size] = [min(size, extent - i) for i in range(0, extent, size)]
    return shape.split(b, x, axis, sizes)


@aten("expand", "expand_as", "broadcast_to")
def expand(call: Call) -> Tensor:
    """Extents of 1 repeated; −1 keeps an extent."""
    b, x = call.b, call.tensor(0)
    wanted = b.dims(call.tensor(1)) if call.op == "aten::expand_as" else call.sizes(1)
    lead = len(wanted) - x.rank
    sizes = [b.dim(x, i - lead) if isinstance(s, int) and s == -1 else s for i, s in enumerate(wanted)]
    return shape.expand(b, x, sizes)


@aten("repeat", "tile")
def repeat(call: Call) -> Tensor:
    """Copies along every dimension."""
    x, counts = call.tensor(0), call.sizes(1)
    lead = len(counts) - x.rank
    if lead > 0:
        x = shape.unsqueeze(call.b, x, list(range(lead)))
    return shape.tile(call.b, x, [1] * (x.rank - len(counts)) + counts)


@aten("flip")
def flip(call: Call) -> Tensor:
    """Dimensions in reverse order."""
    x = call.tensor(0)
    axes = shape.normalize_axes(call.ints(1), x.rank)
    end = -(2**63) + 1
    return shape.slice_axes(call.b, x, axes, [-1] * len(axes), [end] * len(axes), [-1] * len(axes))


@aten("constant_pad_nd", "pad")
def pad(call: Call) -> Tensor:
    """Padding given from the last dimension on, low before high."""
    mode = str(call.get("mode", "constant"))
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in names:
        raise NodeError(f'padding mode "{mode}"', f"the modes are {', '.join(names)}")
    value = call.get("value")
    return _padded(call, names[mode], call.b.like(value or 0, call.tensor(0)) if mode == "constant" else None)


@aten(*(f"{kind}_pad{rank}d" for kind in ("reflection", "replication") for rank in (1, 2, 3)))
def pad_of_mode(call: Call) -> Tensor:
    """Padding with elements of the tensor, of decomposed programs."""
    return _padded(call, "reflect" if "reflection" in call.op else "edge")


def _padded(call: Call, mode: str, value: Tensor | None = None) -> Tensor:
    x, amounts = call.tensor(0), call.sizes(1)
    low: list[Size] = [0] * x.rank
    high: list[Size] = [0] * x.rank
    for i in range(len(amounts) // 2):
        low[x.rank - 1 - i], high[x.rank - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
    if mode == "wrap" and any(isinstance(size, int) and size < 0 for size in amounts):
        x, low, high = _cropped(call.b, x, low, high)
    return shape.pad(call.b, x, low, high, mode=mode, value=value)


def _cropped(b: Builder, x: Tensor, low: list[Size], high: list[Size]) -> tuple[Tensor, list[Size], list[Size]]:
    """`x` without what negative padding takes away, and the padding that is left."""
    sizes = b.dims(x)
    offsets: list[Size] = [0] * x.rank
    for axis, pair in enumerate(zip(low, high, strict=True)):
        before, after = (-size if isinstance(size, int) and size < 0 else 0 for size in pair)
        offsets[axis], sizes[axis] = before, b.arith("subi", sizes[axis], before + after)
    kept = [[0 if isinstance(size, int) and size < 0 else size for size in side] for side in (low, high)]
    return shape.slice_(b, x, offsets, sizes, [1] * x.rank), kept[0], kept[1]


@aten(
    "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones",
    "new_full", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted",
)  # fmt: skip
def filled(call: Call) -> Tensor:
    """One value everywhere."""
    b, name = call.b, call.op.removeprefix("aten::")
    for order in ("stride", "physical_layout"):  # in memory
        call.get(order)
    template = call.tensor(0) if "like" in name or name.startswith("new_") else None
    sizes = b.dims(template) if template is not None and "like" in name else call.sizes(1 if template else 0)
    value = call.get("fill_value", 0.0 if "one" not in name else 1.0)
    default = template.dtype if template is not None else "float32"
    if name == "full" and not isinstance(value, float):
        default = "bool" if isinstance(value, bool) else "int64"
    return shape.full(b, sizes, elementwise.cast(b, as_tensor(b, value), dtype_given(call, default)))


@aten("tensor", "scalar_tensor", "as_tensor", "prims::scalar_tensor")
def tensor(call: Call) -> Tensor:
    """A number or a list of numbers as a tensor."""
    b, value, wanted = call.b, call[0], call.get("dtype")

    def built(item: Value) -> Tensor:
        if not isinstance(item, list):
            return as_tensor(b, item)
        parts = promoted(b, [built(part) for part in item]) if item else []
        if not parts:
            return b.constant(np.zeros([0], np.float32))
        return shape.concat(b, [shape.unsqueeze(b, part, [0]) for part in parts], 0)

    result = built(value)
    return result if wanted is None else elementwise.cast(b, result, dtype_of(wanted))


@aten("arange")
def arange(call: Call) -> Tensor:
    """`start, start + step, …` below `end`."""
    b = call.b
    count = next((i for i, n in enumerate(call.names) if n == "dtype"), len(call.names))
    values = [_number_of(value) for value in call.arguments[:count]]
    start, end, step = ([0, *values, 1] if len(values) == 1 else [*values, 1] if len(values) == 2 else values)[:3]
    numbers = [start, end, step]
    floats = any(isinstance(v, float) for v in numbers)
    dtype = dtype_given(call, "float32" if floats else "int64")
    if floats:
        length: Size = max(0, int(-(-(end - start) // step)))
    else:
        length = b.arith("ceildivsi", b.arith("subi", as_size(b, end), as_size(b, start)), as_size(b, step))
    ramp = shape.iota(b, [length], 0, dtype)
    if step != 1:
        ramp = elementwise.binary(b, "mul", ramp, like(b, step, ramp))
    return ramp if start == 0 else elementwise.binary(b, "add", ramp, like(b, start, ramp))


def _number_of(value: Value) -> Value:
    """A known scalar as a number."""
    if isinstance(value, Tensor) and value.constant is not None:
        return value.constant.reshape(-1)[0].item()
    return value


@aten("linspace")
def linspace(call: Call) -> Tensor:
    """Numbers at equal distances, both ends included."""
    b, count = call.b, call.sizes(2)[0]
    start, end = (_number_of(call[i]) for i in (0, 1))
    dtype = dtype_given(call, "float32")
    wide = "float64" if dtype == "float64" else "float32"
    if not all(isinstance(value, int | float) for value in (start, end, count)):
        ends = [as_tensor(b, value) for value in (start, end)]
        if "int" in dtype:
            ends = [elementwise.cast(b, value, dtype) for value in ends]
        ends = [elementwise.cast(b, value, wide) for value in ends]
        return elementwise.cast(b, _line(b, ends[0], ends[1], count), dtype)
    if "int" in dtype:
        start, end = int(start), int(end)
    return elementwise.cast(b, b.constant(np.linspace(start, end, count, dtype=wide)), dtype)


def _line(b: Builder, start: Tensor, end: Tensor, count: Size) -> Tensor:
    """`count` numbers from the scalar `start` to `end`, in halves that begin at the ends, as in PyTorch."""
    places = shape.iota(b, [count], 0, "int64")
    last = shape.size_scalar(b, b.arith("subi", count, 1))
    gaps = elementwise.binary(b, "max", last, b.like(1, last))
    step = elementwise.binary(b, "sub", end, start)
    step = elementwise.binary(b, "div", step, elementwise.cast(b, gaps, start.dtype))

    def steps(number: Tensor) -> Tensor:
        return elementwise.binary(b, "mul", elementwise.cast(b, number, start.dtype), step)

    left = elementwise.binary(b, "sub", last, places)
    ascending = elementwise.binary(b, "add", start, steps(places))
    descending = elementwise.binary(b, "sub", end, steps(left))
    first = elementwise.compare(b, "lt", places, elementwise.binary(b, "max", left, b.like(1, left)))
    return elementwise.select(b, first, ascending, descending)


@aten("eye")
def eye(call: Call) -> Tensor:
    """Ones on the diagonal."""
    b = call.b
    rows = call.sizes(0)[0]
    columns = call.sizes(1)[0] if "m" in call.names else rows
    lines = [shape.iota(b, [rows, columns], axis, "int64") for axis in (0, 1)]
    equal = elementwise.compare(b, "eq", *lines)
    return elementwise.cast(b, equal, dtype_given(call, "float32"))


@aten("meshgrid")
def meshgrid(call: Call) -> list[Tensor]:
    """The coordinates of a grid, a tensor for each of its lines."""
    b, lines = call.b, [shape.reshape_codes(call.b, line, [-1]) for line in call[0]]
    swap = call.get("indexing", "ij") == "xy" and len(lines) > 1
    places = [1, 0, *range(2, len(lines))] if swap else list(range(len(lines)))
    sizes: list[Size] = [0] * len(lines)
    for place, line in zip(places, lines, strict=True):
        sizes[place] = b.dim(line, 0)
    others = [[axis for axis in range(len(lines)) if axis != place] for place in places]
    return [shape.broadcast(b, shape.unsqueeze(b, line, axes), sizes) for line, axes in zip(lines, others, strict=True)]


@aten("diff")
def diff(call: Call) -> Tensor:
    """Differences of neighbours along a dimension, a number of times."""
    b, x = call.b, call.tensor(0)
    axis = shape.normalize_axis(int(call.get("dim", -1)), x.rank)
    ends = [call.get("prepend"), x, call.get("append")]
    x = shape.concat(b, promoted(b, [part for part in ends if part is not None]), axis)
    for _ in range(int(call.get("n", 1))):
        count = b.arith("subi", b.dim(x, axis), 1)
        low, high = shape.window(b, x, axis, 0, count), shape.window(b, x, axis, 1, count)
        x = elementwise.binary(b, "xor", high, low) if x.is_bool else elementwise.binary(b, "sub", high, low)
    return x


@aten("unfold")
def unfold(call: Call) -> Tensor:
    """Windows of a dimension; what is in them becomes the last dimension."""
    b, x, size, step = call.b, call.tensor(0), call.int(2), call.int(3)
    axis = shape.normalize_axis(call.int(1), max(x.rank, 1))
    if x.rank == 0:
        return shape.window(b, shape.unsqueeze(b, x, [0]), 0, 0, size)
    count = b.arith("addi", b.arith("floordivsi", b.arith("subi", b.dim(x, axis), size), step), 1)
    starts, inside = (shape.iota(b, [count, size], place, "int64") for place in (0, 1))
    places = elementwise.binary(b, "add", elementwise.binary(b, "mul", starts, b.like(step, starts)), inside)
    windows = indexing.gather(b, x, places, axis)
    order = [*(i for i in range(windows.rank) if i != axis + 1), axis + 1]
    return shape.transpose(b, windows, order)


@aten("diagonal", "diag")
def diagonal(call: Call) -> Tensor:
    """Elements whose positions in two dimensions differ by a number; of a vector, the matrix that has them there."""
    b, x = call.b, call.tensor(0)
    offset = int(call.get("offset", call.get("diagonal", 0)))
    if call.op == "aten::diag" and x.rank == 1:
        size = b.arith("addi", b.dim(x, 0), abs(offset))
        lines = [shape.iota(b, [size, size], axis, "int64") for axis in (0, 1)]
        on = elementwise.compare(b, "eq", elementwise.binary(b, "sub", lines[1], lines[0]), b.like(offset, lines[0]))
        low = [max(0, offset), max(0, -offset)]
        wide = shape.unsqueeze(b, shape.pad(b, x, [low[0]], [low[1]]), [0])
        return elementwise.select(b, on, wide, b.like(0, x))
    turned, points, _ = _diagonal(call, x, offset)
    found = b.op("gather_nd", [turned, points], batch_dims=0, unsigned=x.unsigned)
    return shape.transpose(b, found, [*range(1, found.rank), 0])


@aten("diagonal_scatter")
def diagonal_scatter(call: Call) -> Tensor:
    """A copy with other elements where positions in two dimensions differ by a number."""
    b, x = call.b, call.tensor(0)
    source = elementwise.cast(b, call.tensor(1), x.dtype)
    turned, points, order = _diagonal(call, x, int(call.get("offset", 0)))
    source = shape.transpose(b, source, [source.rank - 1, *range(source.rank - 1)])
    result = indexing.scatter_nd(b, turned, points, source)
    return shape.transpose(b, result, [int(place) for place in np.argsort(order)])


def _diagonal(call: Call, x: Tensor, offset: int) -> tuple[Tensor, Tensor, list[int]]:
    """`x` with its two dimensions in front, where the diagonal is in those, `[count, 2]`, and the order of them all."""
    b = call.b
    first, second = (shape.normalize_axis(int(call.get(name, i)), x.rank) for i, name in enumerate(("dim1", "dim2")))
    order = [first, second, *(axis for axis in range(x.rank) if axis not in (first, second))]
    turned = shape.transpose(b, x, order)
    rows, columns = (b.arith("subi", b.dim(turned, i), max(0, -offset if i == 0 else offset)) for i in (0, 1))
    count = b.arith("maxsi", b.arith("minsi", rows, columns), 0)
    line = shape.iota(b, [count], 0, "int64")
    places = [elementwise.binary(b, "add", line, b.like(max(0, move), line)) for move in (-offset, offset)]
    return turned, shape.concat(b, [shape.unsqueeze(b, place, [1]) for place in places], 1), order


@aten("as_strided")
def as_strided(call: Call) -> Tensor:
    """Elements of the memory of a tensor whose elements lie in order: a size and a distance for each dimension.

    Source: PyTorch documentation, `torch.as_strided`.
    """
    b = call.b
    flat = shape.reshape_codes(b, _in_order(call.tensor(0)), [-1])
    return indexing.gather(b, flat, _strided(call, 1), 0)


@aten("as_strided_scatter")
def as_strided_scatter(call: Call) -> Tensor:
    """A copy with other elements where `as_strided` reads."""
    b, x, places = call.b, _in_order(call.tensor(0)), _strided(call, 2)
    source = elementwise.cast(b, call.tensor(1), x.dtype)
    flat, places, source = (shape.reshape_codes(b, tensor, [-1]) for tensor in (x, places, source))
    result = indexing.scatter(b, flat, places, source, 0)
    return shape.reshape(b, result, b.dims(x))


def _in_order(x: Tensor) -> Tensor:
    """`x`, unless it is itself a view whose elements lie elsewhere: what is imported has no strides."""
    value = x.value
    while not isinstance(value.owner, ir.Block):
        name = value.owner.operation.name
        if name in ("mlc.transpose", "mlc.broadcast", "mlc.slice"):
            raise NodeError("a view by strides of a view", "take it of the whole tensor, or index with positions")
        if name != "mlc.reshape":
            break
        value = value.owner.operands[0]
    return x


def _strided(call: Call, position: int) -> Tensor:
    """The places in memory of the elements of a view, from its sizes, strides and offset in the arguments."""
    b = call.b
    sizes, strides = call.sizes(position), call.sizes(position + 1)
    start = call.get("storage_offset")
    places = shape.full(b, sizes, shape.size_scalar(b, 0 if start is None else as_size(b, start)))
    for axis, stride in enumerate(strides):
        line = elementwise.binary(b, "mul", shape.iota(b, sizes, axis, "int64"), shape.size_scalar(b, stride))
        places = elementwise.binary(b, "add", places, line)
    return places


@aten("resize")
def resize(call: Call) -> Tensor:
    """The first elements in memory in another shape; those that there are too few of are zeros."""
    if call.op == "aten::resize_":
        raise NodeError("it changes the extents of a tensor in place", "use a slice, pad or reshape")
    b, sizes = call.b, call.sizes(1)
    flat = shape.reshape_codes(b, _in_order(call.tensor(0)), [-1])
    count = b.product(sizes)
    more = b.arith("maxsi", b.arith("subi", count, b.dim(flat, 0)), 0)
    return shape.reshape(b, shape.window(b, shape.pad(b, flat, [0], [more]), 0, 0, count), sizes)


@aten("broadcast_tensors")
def broadcast_tensors(call: Call) -> list[Tensor]:
    """All in the extents that they have in common."""
    return shape.broadcast_together(call.b, call[0])


@aten("roll")
def roll(call: Call) -> Tensor:
    """Elements shifted around along dimensions."""
    b, x = call.b, call.tensor(0)
    if not call.ints(2):  # of all elements as one line
        flat = shape.reshape_codes(b, x, [-1])
        line: Tensor = called(call, roll, [flat, call[1], [0]])
        return shape.reshape(b, line, b.dims(x))
    for amount, given in zip(call.ints(1), call.ints(2), strict=True):
        axis = shape.normalize_axis(given, x.rank)
        extent = b.dim(x, axis)
        if isinstance(extent, int):
            cut: Size = extent - amount % extent if extent else 0
        else:  # -amount, counted from the front
            turned = b.arith("addi", b.arith("remsi", b.index_constant(-amount), extent), extent)
            cut = b.arith("remsi", turned, extent)
        first = shape.window(b, x, axis, cut, b.arith("subi", extent, cut))
        x = shape.concat(b, [first, shape.window(b, x, axis, 0, cut)], axis)
    return x


def _repeated(b: Builder, counts: Tensor) -> Tensor:
    """Each position as often as its count: how many running sums of the counts do not exceed a place of the result."""
    ends = reduction.scan(b, "sum", elementwise.cast(b, counts, "int64"), 0, False, False)
    total = b.element(reduction.reduce(b, "sum", elementwise.cast(b, counts, "int64"), [0], False))
    place = shape.unsqueeze(b, shape.iota(b, [total], 0, "int64"), [1])
    passed = elementwise.cast(b, elementwise.compare(b, "le", ends, place), "int64")
    return reduction.reduce(b, "sum", passed, [1], False)


@aten("repeat_interleave")
def repeat_interleave(call: Call) -> Tensor:
    """Every element a number of times in a row."""
    call.get("output_size")  # what the counts add up to
    b, x = call.b, call.tensor(0)
    if call[2] is None:
        x = shape.reshape_codes(b, x, [-1])
    axis = 0 if call[2] is None else shape.normalize_axis(call.int(2), x.rank)
    if isinstance(call[1], Tensor) and call[1].shape != [1]:
        return indexing.gather(b, x, _repeated(b, call[1]), axis)
    times = call.int(1)
    extent = b.dim(x, axis)
    positions = shape.iota(b, [b.arith("muli", extent, times)], 0, "int64")
    return indexing.gather(b, x, elementwise.binary(b, "div", positions, b.like(times, positions)), axis)


@aten("tril_indices", "triu_indices")
def triangle_indices(call: Call) -> Tensor:
    """The positions in a triangle of a matrix, row by row."""
    rows, columns, offset = call.int(0), call.int(1), int(call.get("offset", 0))
    places = (np.tril_indices if "tril" in call.op else np.triu_indices)(rows, offset, columns)
    return call.b.constant(np.stack(places), dtype_given(call, "int64"))
