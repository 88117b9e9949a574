"""Operations on shapes: reshape, slice, pad, concat, split, broadcast, and sizes taken from tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from mlc.frontends.common import elementwise, text, types
from mlc.frontends.common.builder import KNOWN_LIMIT, Builder, Size, Tensor, split_sizes
from mlc.frontends.report import NodeError

INT64_MAX = 2**63 - 1


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` counted from the front; `NodeError` when it is outside `[-rank, rank)`."""
    if not -rank <= axis < rank:
        raise NodeError(f"{what} {axis} is out of range for rank {rank}")
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Sequence[int], rank: int) -> list[int]:
    """`normalize_axis` of each, sorted and without repetitions."""
    normal = sorted({normalize_axis(int(axis), rank) for axis in axes})
    if len(normal) != len(list(axes)):
        raise NodeError(f"the axes {list(axes)} name one dimension twice")
    return normal


def _is_shape_of(x: Tensor, sizes: Sequence[Size]) -> bool:
    """Whether `sizes` are the extents of `x`, as far as can be seen from how they are computed."""
    if len(sizes) != x.rank:
        return False
    for axis, (size, extent) in enumerate(zip(sizes, x.shape, strict=True)):
        same = size == extent if isinstance(size, int) else _dim_of(size) == (x.value, axis)
        if not same:
            return False
    return True


def reshape(b: Builder, x: Tensor, sizes: Sequence[Size]) -> Tensor:
    """`mlc.reshape` to complete sizes (no 0 or -1 codes)."""
    if _is_shape_of(x, sizes):
        return x
    static, dynamic = split_sizes(sizes)
    folded = None
    if x.known is not None and not dynamic and int(np.prod(static)) == x.known.size:
        folded = x.known.reshape(static)
    return b.op("reshape", [x, dynamic], static_sizes=static, unsigned=x.unsigned, known=folded)


def reshape_codes(b: Builder, x: Tensor, codes: Sequence[Size], zero_copies: bool = True) -> Tensor:
    """Reshape with the codes of ONNX and PyTorch: -1 is inferred, 0 (when `zero_copies`) keeps the input's extent."""
    if any(_may_be_code(code) for code in codes):
        return _reshape_run_time(b, x, codes, zero_copies)
    sizes: list[Size] = []
    hole = None
    for axis, code in enumerate(codes):
        if isinstance(code, int) and code == 0 and zero_copies:
            if axis >= x.rank:
                raise NodeError(f"the shape has a 0 at position {axis}, but the input has rank {x.rank}")
            sizes.append(b.dim(x, axis))
        elif isinstance(code, int) and code == -1:
            if hole is not None:
                raise NodeError(f"the shape {show(codes)} has more than one -1")
            hole = axis
            sizes.append(-1)
        elif isinstance(code, int) and code < 0:
            raise NodeError(f"the shape {show(codes)} has a negative extent")
        else:
            sizes.append(code)
    if hole is not None:
        sizes[hole] = _inferred(b, x, [size for axis, size in enumerate(sizes) if axis != hole], codes)
    elif all(isinstance(size, int) for size in sizes) and None not in x.shape:
        _check_count(x, codes, sizes)
    return reshape(b, x, sizes)


def _may_be_code(size: Size) -> bool:
    """Whether a size is an element of data, which may be 0 or -1; extents and what is computed from them are not."""
    if isinstance(size, int):
        return False
    owner = size.owner
    return isinstance(owner, ir.Operation | ir.OpView) and owner.name.startswith("arith.index_cast")


def _reshape_run_time(b: Builder, x: Tensor, codes: Sequence[Size], zero_copies: bool) -> Tensor:
    """Reshape with codes that show only at run time."""
    sizes: list[Size] = []
    for axis, code in enumerate(codes):
        if zero_copies and axis < x.rank and _may_be_code(code):
            code = b.choose(b.compare_index("eq", code, 0), b.dim(x, axis), code)
        elif zero_copies and isinstance(code, int) and code == 0:
            code = b.dim(x, axis)
        sizes.append(code)
    holes = [b.compare_index("eq", size, -1) for size in sizes]
    others = b.product([b.choose(hole, 1, size) for hole, size in zip(holes, sizes, strict=True)])
    # Without a hole the quotient is unused, and a zero among the extents must not divide.
    rest = b.arith("divsi", b.product(b.dims(x)), b.arith("maxsi", others, 1))
    final: list[Size] = []
    for hole, size in zip(holes, sizes, strict=True):
        final.append(size if isinstance(size, int) and size != -1 else b.choose(hole, rest, size))
    return reshape(b, x, final)


def _check_count(x: Tensor, codes: Sequence[Size], sizes: Sequence[Size]) -> None:
    have, want = int(np.prod(x.shape)), int(np.prod(sizes))  # type: ignore[arg-type]
    if have != want:
        raise NodeError(f"{x} has {have} elements and cannot take the shape {show(codes)}")


def _inferred(b: Builder, x: Tensor, others: list[Size], codes: Sequence[Size]) -> Size:
    """The extent that -1 stands for: equal factors of both sides cancel first, so that names of dims survive."""
    extents: list[Size] = b.dims(x)
    rest: list[Size] = []
    for size in others:
        match = next((position for position, extent in enumerate(extents) if same_size(extent, size)), None)
        if match is None:
            rest.append(size)
        else:
            extents.pop(match)
    total, divisor = b.product(extents), b.product(rest)
    if isinstance(divisor, int):
        if divisor == 0:
            raise NodeError(f"-1 in the shape {show(codes)} is ambiguous: the other extents have a zero")
        if isinstance(total, int) and total % divisor:
            raise NodeError(f"{x} cannot take the shape {show(codes)}")
    return b.arith("divsi", total, divisor)


def same_size(lhs: Size, rhs: Size) -> bool:
    """Whether two sizes are certainly equal: the same value, or the same dimension of the same tensor."""
    if isinstance(lhs, int) or isinstance(rhs, int):
        return isinstance(lhs, int) and isinstance(rhs, int) and lhs == rhs and lhs != 0
    if lhs == rhs:
        return True
    left, right = _dim_of(lhs), _dim_of(rhs)
    return left is not None and left == right


def _dim_of(size: ir.Value) -> tuple[ir.Value, int] | None:
    owner = size.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name != "tensor.dim":
        return None
    axis = owner.operands[1].owner
    return owner.operands[0], ir.IntegerAttr(axis.attributes["value"]).value


def show(sizes: Sequence[Size]) -> str:
    """Sizes for a message, `?` where they are run-time values."""
    return "[" + ", ".join(str(size) if isinstance(size, int) else "?" for size in sizes) + "]"


def squeeze(b: Builder, x: Tensor, axes: Sequence[int] | None) -> Tensor:
    """Without the dimensions `axes`.

    With `None`, without all of extent 1: an extent that only the run tells is taken for a larger one, as the rank of
    the result would be unknown otherwise, and the run fails where it is 1.
    """
    if axes is None:
        for axis in (axis for axis, extent in enumerate(x.shape) if extent is None):
            _require_larger(b, b.dim(x, axis), axis)
        axes = [axis for axis, extent in enumerate(x.shape) if extent == 1]
    chosen = normalize_axes(axes, x.rank)
    for axis in chosen:
        if x.shape[axis] not in (1, None):
            raise NodeError(f"dimension {axis} of {x} has extent {x.shape[axis]} and cannot be squeezed")
    return reshape(b, x, [b.dim(x, axis) for axis in range(x.rank) if axis not in chosen])


def _require_larger(b: Builder, extent: Size, axis: int) -> None:
    """`mlc.check` that a run-time extent is not 1."""
    message = f"dimension {axis} was compiled as one that stays: give axes to Squeeze, or fix the input's shape"
    require(b, "ne", extent, 1, message)


def require_same(b: Builder, extent: Size, other: Size, message: str) -> None:
    """`mlc.check` that two extents are equal, unless they certainly are."""
    if not same_size(extent, other):
        require(b, "eq", extent, other, message)


def require(b: Builder, predicate: str, extent: Size, other: Size, message: str) -> None:
    """`mlc.check` that two sizes compare so (`eq ne slt sle sgt sge`)."""
    attributes = {"message": ir.StringAttr.get(message)}
    operands = [b.compare_index(predicate, extent, other), b.as_index(extent)]
    ir.Operation.create("mlc.check", operands=operands, attributes=attributes)


def require_axis(b: Builder, axis: Size, rank: int) -> None:
    """`mlc.check` that a run-time axis is one of a tensor of a rank; it may count from the end."""
    if not isinstance(axis, int):
        message = f"an axis is out of range for rank {rank}"
        require(b, "sge", axis, -rank, message)
        require(b, "slt", axis, rank, message)


def unsqueeze(b: Builder, x: Tensor, axes: Sequence[int]) -> Tensor:
    """With new dimensions of extent 1 at the positions `axes` of the result."""
    chosen = normalize_axes(axes, x.rank + len(axes))
    extents = iter(b.dims(x))
    return reshape(b, x, [1 if axis in chosen else next(extents) for axis in range(x.rank + len(chosen))])


def flatten(b: Builder, x: Tensor, axis: int) -> Tensor:
    """Two dimensions: those before `axis`, and the rest."""
    extents = b.dims(x)
    return reshape(b, x, [b.product(extents[:axis]), b.product(extents[axis:])])


def transpose(b: Builder, x: Tensor, permutation: Sequence[int]) -> Tensor:
    """`mlc.transpose`; nothing is built for the identity."""
    if list(permutation) == list(range(x.rank)):
        return x
    folded = None if x.known is None else x.known.transpose(permutation)
    return b.op("transpose", [x], permutation=list(permutation), unsigned=x.unsigned, known=folded)


def broadcast(b: Builder, x: Tensor, sizes: Sequence[Size]) -> Tensor:
    """`mlc.broadcast` to complete sizes."""
    if _is_shape_of(x, sizes):
        return x
    static, dynamic = split_sizes(sizes)
    folded = None
    if x.known is not None and not dynamic and int(np.prod(static)) <= KNOWN_LIMIT:
        folded = np.broadcast_to(x.known, static)
    return b.op("broadcast", [x, dynamic], static_sizes=static, unsigned=x.unsigned, known=folded)


def expand(b: Builder, x: Tensor, sizes: Sequence[Size]) -> Tensor:
    """ONNX Expand: both the input and `sizes` may have extents of 1 that stretch to the other's."""
    common = broadcast_sizes(b, [b.dims(x), sizes])
    for size, extent in zip(sizes, common[len(common) - len(sizes) :], strict=True):
        if not isinstance(size, int) and not same_size(size, extent):
            stretched = b.choose(b.compare_index("eq", size, 1), extent, size)
            require(b, "eq", stretched, extent, "a size to expand to is neither 1 nor the input's extent")
    return broadcast(b, x, common)


def broadcast_together(b: Builder, tensors: Sequence[Tensor]) -> list[Tensor]:
    """All tensors in the extents that they have in common."""
    sizes = broadcast_sizes(b, [b.dims(tensor) for tensor in tensors])
    return [broadcast(b, tensor, sizes) for tensor in tensors]


def broadcast_sizes(b: Builder, shapes: Sequence[Sequence[Size]]) -> list[Size]:
    """The common extents of shapes, aligned at their last dimensions."""
    rank = max(len(sizes) for sizes in shapes)
    common: list[Size] = [1] * rank
    for sizes in shapes:
        for axis, extent in enumerate(sizes, rank - len(sizes)):
            common[axis] = broadcast_size(b, common[axis], extent)
    return common


def broadcast_size(b: Builder, lhs: Size, rhs: Size) -> Size:
    """The common extent of two that are equal or 1."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        if lhs != rhs and 1 not in (lhs, rhs):
            raise NodeError(f"extents {lhs} and {rhs} do not broadcast")
        return rhs if lhs == 1 else lhs
    for one, other in ((lhs, rhs), (rhs, lhs)):
        if isinstance(one, int):
            return other if one == 1 else one
    if same_size(lhs, rhs):
        return lhs
    return b.choose(b.compare_index("eq", lhs, 1), rhs, lhs)


def concat(b: Builder, tensors: Sequence[Tensor], axis: int) -> Tensor:
    """`mlc.concat` along the normalised `axis`."""
    if len(tensors) == 1:
        return tensors[0]
    folded = None
    parts = [tensor.known for tensor in tensors]
    if tensors[0].rank == 1 and all(part is not None for part in parts):
        mixed = any(part is not None and part.dtype == object for part in parts)
        arrays = [part.astype(object) if mixed else part for part in parts if part is not None]
        folded = np.concatenate(arrays, axis)
    return b.op("concat", [list(tensors)], axis=axis, unsigned=tensors[0].unsigned, known=folded)


def slice_(b: Builder, x: Tensor, offsets: Sequence[Size], sizes: Sequence[Size], strides: Sequence[Size]) -> Tensor:
    """`mlc.slice` with normalised offsets, one entry a dimension; nothing is built for the whole tensor."""
    if set(offsets) <= {0} and set(strides) <= {1} and _is_shape_of(x, sizes):
        return x
    static_offsets, dynamic_offsets = split_sizes(offsets)
    static_sizes, dynamic_sizes = split_sizes(sizes)
    static_strides, dynamic_strides = split_sizes(strides)
    folded = None
    if x.known is not None and not (dynamic_offsets or dynamic_sizes or dynamic_strides):
        ranges = zip(static_offsets, static_sizes, static_strides, strict=True)
        folded = x.known[np.ix_(*(start + step * np.arange(count) for start, count, step in ranges))]
    return b.op(
        "slice",
        [x, dynamic_offsets, dynamic_sizes, dynamic_strides],
        static_offsets=static_offsets,
        static_sizes=static_sizes,
        static_strides=static_strides,
        unsigned=x.unsigned,
        known=folded,
    )


def slice_range(b: Builder, extent: Size, start: Size, end: Size, step: int) -> tuple[Size, Size]:
    """Offset and size of `[start:end:step]` in `extent` elements, with Python's wrapping and clamping.

    `start` and `end` may be negative, or beyond the ends (`INT64_MAX` means the end).
    """
    low: Size = 0 if step > 0 else -1
    high: Size = extent if step > 0 else b.arith("subi", extent, 1)
    offset = _clamped(b, extent, start, 0 if step > 0 else low, high)
    limit = _clamped(b, extent, end, low, high)
    span = b.arith("subi", limit, offset) if step > 0 else b.arith("subi", offset, limit)
    count = span if abs(step) == 1 else b.arith("ceildivsi", span, abs(step))
    if count is extent:
        return offset, count
    return offset, b.arith("maxsi", count, 0)


def _clamped(b: Builder, extent: Size, position: Size, low: Size, high: Size) -> Size:
    """A slice bound, wrapped when negative, then clamped into `[low, high]`."""
    if isinstance(position, int):
        if position >= 2**31 - 1:
            return high
        if position <= -(2**31) + 1:
            return low
        if position == 0 and isinstance(low, int) and low == 0:
            return 0
        wrapped = b.arith("addi", position, extent) if position < 0 else position
        if position < 0:
            return b.arith("maxsi", wrapped, low)
        return b.arith("minsi", wrapped, high)
    wrapped = b.choose(b.compare_index("slt", position, 0), b.arith("addi", position, extent), position)
    return b.arith("minsi", b.arith("maxsi", wrapped, low), high)


def slice_axes(
    b: Builder, x: Tensor, axes: Sequence[int], starts: Sequence[Size], ends: Sequence[Size], steps: Sequence[int]
) -> Tensor:
    """Python-style slices of some dimensions."""
    offsets: list[Size] = [0] * x.rank
    sizes: list[Size] = list(b.dims(x))
    strides: list[Size] = [1] * x.rank
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step == 0:
            raise NodeError("a step of 0")
        offsets[axis], sizes[axis] = slice_range(b, sizes[axis], start, end, step)
        strides[axis] = step
    return slice_(b, x, offsets, sizes, strides)


def window(b: Builder, x: Tensor, axis: int, offset: Size, size: Size) -> Tensor:
    """`size` elements of one dimension from `offset`, which must lie inside."""
    offsets: list[Size] = [0] * x.rank
    sizes: list[Size] = list(b.dims(x))
    offsets[axis], sizes[axis] = offset, size
    return slice_(b, x, offsets, sizes, [1] * x.rank)


def split(b: Builder, x: Tensor, axis: int, sizes: Sequence[Size]) -> list[Tensor]:
    """Consecutive windows of one dimension."""
    parts = []
    offset: Size = 0
    for size in sizes:
        parts.append(window(b, x, axis, offset, size))
        offset = b.arith("addi", offset, size)
    return parts


def split_whole(b: Builder, x: Tensor, axis: int, sizes: Sequence[Size]) -> list[Tensor]:
    """The same, of windows that make up the dimension: where only the run tells, it is asked."""
    total: Size = 0
    for size in sizes:
        total = b.arith("addi", total, size)
    extent = b.dim(x, axis)
    if isinstance(total, int) and isinstance(extent, int) and total != extent:
        raise NodeError(f"the sizes {show(sizes)} do not add up to the extent {extent} of dimension {axis} of {x}")
    require_same(b, extent, total, f"the sizes {show(sizes)} do not add up to the extent of dimension {axis}")
    return split(b, x, axis, sizes)


def pad(
    b: Builder,
    x: Tensor,
    low: Sequence[Size],
    high: Sequence[Size],
    mode: str = "constant",
    value: Tensor | None = None,
) -> Tensor:
    """`mlc.pad`; the value defaults to zero of the dtype of `x` (or empty); nothing is built for zero padding."""
    if all(isinstance(size, int) and size == 0 for size in [*low, *high]):
        return x
    if mode == "constant" and value is None:
        value = reshape(b, text.table(b, [""]), []) if x.dtype == "string" else b.like(0, x)
    static_low, dynamic_low = split_sizes(low)
    static_high, dynamic_high = split_sizes(high)
    return b.op(
        "pad",
        [x, value if mode == "constant" else None, dynamic_low, dynamic_high],
        static_low=static_low,
        static_high=static_high,
        mode=mode,
        unsigned=x.unsigned,
    )


def shape_of(b: Builder, x: Tensor) -> Tensor:
    """The extents of `x` as a 1-d `i64` tensor."""
    extents = b.dims(x)
    static = all(isinstance(extent, int) for extent in extents)
    if static:
        return b.constant(np.array(extents, np.int64))
    folded = np.empty(len(extents), object)
    folded[:] = extents
    return b.op("shape_of", [x], known=folded)


def iota(b: Builder, sizes: Sequence[Size], axis: int, dtype: str) -> Tensor:
    """0, 1, 2, … along `axis`."""
    static, dynamic = split_sizes(sizes)
    result = ir.RankedTensorType.get(static, types.element_type(dtype))
    folded = None
    if not dynamic and int(np.prod(static)) <= KNOWN_LIMIT and dtype in ("int32", "int64"):
        line = np.arange(static[axis], dtype=dtype)
        folded = np.broadcast_to(line.reshape([-1 if dim == axis else 1 for dim in range(len(static))]), static)
    return b.op(
        "iota",
        [dynamic],
        [result],
        static_sizes=static,
        axis=axis,
        unsigned=types.is_unsigned(dtype),
        known=folded,
    )


def zero(b: Builder, dtype: str) -> Tensor:
    """The scalar zero; of strings the empty one."""
    return text.constant(b, np.array("", object)) if dtype == "string" else b.constant(0, dtype)


def full(b: Builder, sizes: Sequence[Size], value: Tensor) -> Tensor:
    """A tensor of copies of the scalar `value`."""
    return broadcast(b, value, sizes)


def tile(b: Builder, x: Tensor, repeats: Sequence[Size]) -> Tensor:
    """`numpy.tile` with one repeat a dimension."""
    if all(isinstance(repeat, int) and repeat == 1 for repeat in repeats):
        return x
    extents = b.dims(x)
    doubled: list[Size] = [size for extent in extents for size in (1, extent)]
    spread: list[Size] = [size for pair in zip(repeats, extents, strict=True) for size in pair]
    stretched = broadcast(b, reshape(b, x, doubled), spread)
    products = [b.arith("muli", repeat, extent) for repeat, extent in zip(repeats, extents, strict=True)]
    return reshape(b, stretched, products)


def size_tensor(b: Builder, x: Tensor, axis: int) -> Tensor:
    """The extent of one dimension as an `i64` scalar tensor."""
    line = shape_of(b, x)
    return reshape(b, slice_(b, line, [axis], [1], [1]), [])


def size_scalar(b: Builder, size: Size) -> Tensor:
    """A size as an `i64` scalar tensor."""
    if isinstance(size, int):
        return b.constant(np.array(size, np.int64))
    return size_tensor(b, iota(b, [size], 0, "int64"), 0)


def element_count(b: Builder, x: Tensor) -> Tensor:
    """The number of elements as an `i64` scalar tensor."""
    count = b.product(b.dims(x))
    if isinstance(count, int):
        return b.constant(np.array(count, np.int64))
    result = b.constant(np.array(1, np.int64))
    for axis in range(x.rank):
        result = elementwise.binary(b, "mul", result, size_tensor(b, x, axis))
    return result
