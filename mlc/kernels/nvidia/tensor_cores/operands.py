"""Operands of a tensor core kernel: how their tiles lie in memory, and the copies that bring them to shared memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from mlir import ir
from mlir.dialects import arith, llvm, nvvm

from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import IndexMath, Scalar
from mlc.kernels.common.padding import padding_of
from mlc.kernels.common.roles import Roles
from mlc.kernels.nvidia.tensor_cores.tiles import ROW, Tile
from mlc.kernels.nvidia.tensor_cores.words import Words
from mlc.kernels.nvidia.tensor_maps import LARGEST_RANK, Axis, MapWindow, Product, TensorMap, extents_of

SUM, TAPS, ROWS, FIXED = "sum", "taps", "rows", "fixed"
_NEAREST, _FARTHEST = -128, 127  # what a map of two-dimensional windows can say of their ends
_LARGEST_STEP = 8


@dataclass(frozen=True)
class Point:
    """Where a tile begins: its row, its step of the sum (`taps` are linear), the outer coordinates by dimension, and
    the column of the result, of whose group it may be."""

    row: Scalar
    step: Scalar
    tap: Scalar
    outer: Mapping[int, Scalar]
    column: Scalar = 0


@dataclass(frozen=True)
class _Dim:
    """A dimension of an operand in memory: `role` is the sum, its taps, its matrix's rows, an outer iteration
    dimension, or that only coordinate `at` of it is read. `inner` lies in every one of its elements where both are one
    dimension of `axis`."""

    role: str | int
    axis: Axis
    at: int = 0
    inner: _Dim | None = None

    def place(self, math: IndexMath, places: Mapping[str, Scalar], outer: Mapping[int, Scalar]) -> Scalar:
        """Where in the dimension a copy begins."""
        own: Scalar = self.at
        if self.role != FIXED:
            own = places[self.role] if isinstance(self.role, str) else outer[self.role]
        if self.inner is None:
            return own
        return math.add(math.mul(own, self.inner.axis.extent.factor), self.inner.place(math, places, outer))

    def may_have(self, inner: _Dim) -> bool:
        """May it be one dimension with its neighbour `inner`, of which a copy takes one element, too?"""
        one = all(d.role == FIXED or isinstance(d.role, int) for d in (self, inner))
        return one and not inner.axis.extent.words


@dataclass(frozen=True)
class Operand:
    """An operand of a contraction as the copy engine sees it: dimensions of more than one element, contiguous first."""

    value: ir.Value
    dims: tuple[_Dim, ...]

    @property
    def across(self) -> bool:
        """Is it contiguous along the rows of its matrix?"""
        return self.dims[0].role == ROWS

    def problem(self, size: int) -> str | None:
        """Why the copy engine cannot read it, with elements of `size` bytes; None when it can."""
        if self.dims[0].role not in (SUM, ROWS):
            return "its contiguous dimension is neither summed over nor one of the result's matrix"
        if len(self.dims) > LARGEST_RANK:
            return f"it has more than {LARGEST_RANK} dimensions"
        roles = [d.role for d in self.dims if d.role != FIXED]
        if len(set(roles)) != len(roles):
            return "its dimensions of one role do not lie together"
        if any(d.axis.stride.factor * size % 16 for d in self.dims[1:]):
            return "its rows are not a multiple of 16 bytes apart"
        return None

    def alignment(self, size: int) -> int:
        """The bytes, at most a cache line's, that the places where its rows begin are multiples of, with elements of
        `size` bytes. Rows shorter than lines are read whole."""
        strides = [d.axis.stride.factor * size for d in self.dims[1:]]
        return gcd(ROW, *(stride for stride in strides if stride > ROW))

    def _width(self, tile: Tile) -> int:
        """Rows of one copy: not more than there are, since what lies outside takes the copy engine longer than the
        rest. Where only a run counts them, its maps are for no more (`fitted`).

        The rows of the tile behind them hold anything; so do their rows of the product, which are not stored.
        """
        if self.across:
            return tile.row_bytes // tile.bytes_each
        rows = next((d.axis.extent for d in self.dims if d.role == ROWS), Product(1))
        return tile.rows if rows.words else min(tile.rows, rows.factor)

    def bytes(self, words: Words, tile: Tile, rows: Scalar) -> Scalar:
        """What the copies of a tile bring, of a matrix of `rows` rows."""
        return tile.size // tile.cut if self.across else words.math.mul(words.math.minimum(rows, tile.rows), ROW)

    def map(self, number: int, tile: Tile, element: str) -> TensorMap:
        """The tensor map for copies of `tile`."""
        boxes = {SUM: tile.depth // tile.cut, ROWS: self._width(tile)}
        box = tuple(boxes.get(d.role, 1) if isinstance(d.role, str) else 1 for d in self.dims)
        counted = [i for i, d in enumerate(self.dims) if d.role == ROWS and d.axis.extent.words and not self.across]
        return TensorMap(number, element, tile.bytes_each, tuple(d.axis for d in self.dims), box, tile.row_bytes,
                         fitted=tuple(counted))  # fmt: skip

    def load(self, words: Words, copy: Copy, at: Point) -> None:
        """The tile at `at`. What lies outside of the tensor is zero."""
        for block in range(copy.tile.rows // self._width(copy.tile) if self.across else 1):
            first = words.math.add(at.row, block * self._width(copy.tile))
            places: dict[str, Scalar] = {SUM: at.step, TAPS: at.tap, ROWS: first}
            where = [d.place(words.math, places, at.outer) for d in self.dims]
            target = words.math.add(copy.offset, block * copy.tile.block if self.across else 0)
            emit_copy(words, copy.pointer, copy.barrier, target, where, blocks=copy.blocks)


@dataclass(frozen=True)
class Pixels:
    """The input of a convolution as the copy engine sees it: windows of pixels, with padding that is nowhere stored.

    `extents` are those of the tensor, images first and channels last; `out` those of the result's pixels; `low` is the
    padding in front of each dimension of the window. `joined` pixels of a line are summed over like one with the
    channels of all of them: such pixels overlap.
    """

    value: ir.Value
    extents: tuple[Product, ...]
    out: tuple[int, ...]
    low: tuple[int, ...]
    roles: Roles
    taps: tuple[int, ...]
    joined: int = 1
    across: bool = False

    @property
    def depth(self) -> int:
        """Elements that are summed over at a tap."""
        return self.extents[-1].factor * self.joined

    @property
    def _pixels(self) -> list[Product]:
        """The extents of images in pixels, overlapping ones."""
        *others, last = self.extents[1:-1]
        return [*others, Product(last.factor - self.joined + 1, last.words)]

    @property
    def windows(self) -> tuple[MapWindow, ...]:
        """Innermost dimension first."""
        found = []
        for window, out, low, extent in zip(self.roles.windows, self.out, self.low, self._pixels, strict=True):
            last = (out - 1) * window.stride - low
            found.append(MapWindow(-low, last - (extent.factor - 1), window.stride))
        return tuple(reversed(found))

    def problem(self, size: int) -> str | None:
        """Why the copy engine cannot read it, with elements of `size` bytes; None when it can."""
        if any(e.words for e in self.extents[1:]):
            return "its pixels or channels are known at run time only"
        if not 3 <= len(self.extents) <= 4:
            return "its windows have more than two dimensions"
        if self.extents[-1].factor * size % 16:
            return "its pixels are not a multiple of 16 bytes apart"
        if any(w.low < _NEAREST or not _NEAREST <= w.high <= _FARTHEST for w in self.windows):
            return "its windows reach too far beyond the edge"
        return "its windows are too far apart" if any(w.step > _LARGEST_STEP for w in self.windows) else None

    def alignment(self, size: int) -> int:
        """Of pixels, as of rows: what those cost that begin within cache lines is not known."""
        return ROW

    def bytes(self, words: Words, tile: Tile, rows: Scalar) -> Scalar:
        """What the copy of a tile brings."""
        return tile.size

    def map(self, number: int, tile: Tile, element: str) -> TensorMap:
        """The tensor map for copies of `tile`."""
        axes, stride = [], Product(1)
        shown = [self.extents[0], *self._pixels, Product(self.depth)]
        for extent, seen in zip(reversed(self.extents), reversed(shown), strict=True):
            axes.append(Axis(seen, stride))
            stride = stride.times(extent)
        box = (tile.depth, *[1] * (len(axes) - 1))
        return TensorMap(number, element, tile.bytes_each, tuple(axes), box, ROW, tile.rows, self.windows)

    def load(self, words: Words, copy: Copy, at: Point) -> None:
        """The tile at `at`: the elements at one tap of the windows of consecutive pixels, over the ends of lines and
        images."""
        math = words.math
        image, *pixel = math.delinearize(at.row, [0, *self.out])
        taps = math.delinearize(at.tap, list(self.taps))
        begin = [
            math.sub(math.mul(place, window.stride), low)
            for place, window, low in zip(pixel, self.roles.windows, self.low, strict=True)
        ]
        shifts = [math.mul(tap, window.dilation) for tap, window in zip(taps, self.roles.windows, strict=True)]
        i16 = ir.IntegerType.get_signless(16)
        offsets = [arith.trunci(i16, words.value(s)) for s in reversed(shifts)]
        filters, channels = self.roles.group
        channel = math.add(at.step, math.mul(math.div(at.column, filters), channels)) if filters else at.step
        place = [channel, *reversed(begin), image]
        emit_copy(words, copy.pointer, copy.barrier, copy.offset, place, offsets, copy.blocks)


@dataclass(frozen=True)
class Copy:
    """A copy of a tile: by the map `pointer`, to byte `offset` of the shared memory; `barrier` gets the bytes. With
    `blocks`, a bit for each block of the cluster, it goes to the same place of all of them."""

    tile: Tile
    pointer: ir.Value
    offset: Scalar
    barrier: ir.Value
    blocks: ir.Value | None = None


def emit_copy(
    words: Words,
    pointer: ir.Value,
    barrier: ir.Value,
    offset: Scalar,
    at: Sequence[Scalar],
    shifts: Sequence[ir.Value] = (),
    blocks: ir.Value | None = None,
) -> None:
    """A copy by the map `pointer` from coordinates `at` to byte `offset` of the shared memory; `barrier` gets the
    bytes. `shifts` are the taps of windows, `blocks` those of a cluster that get it."""
    address = llvm.PtrToIntOp(words.i32, words.place(offset)).result
    target = llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr<7>"), llvm.ZExtOp(words.i64, address).res).result
    coordinates = [words.value(x) for x in at]
    mode = ir.Attribute.parse(f"#nvvm.tma_load_mode<{'im2col' if shifts else 'tile'}>")
    nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp(
        target, pointer, coordinates, barrier, list(shifts), multicastMask=blocks, mode=mode
    )


def operands_of(source: KernelSource, root: ir.Operation, roles: Roles) -> tuple[Operand | Pixels, Operand] | None:
    """The left and the right operand of the contraction; None when the kernel computes one."""
    right = _plain(source, root, roles.right, roles)
    left = _pixels(source, root, roles) if roles.windows else _plain(source, root, roles.left, roles)
    return None if left is None or right is None else (left, right)


def _plain(source: KernelSource, root: ir.Operation, number: int, roles: Roles) -> Operand | None:
    rows = roles.rows if number == roles.left else roles.columns
    return plain_operand(source, root, number, lambda dim: _role(dim, roles, rows))


def plain_operand(
    source: KernelSource, root: ir.Operation, number: int, role: Callable[[int], str | int]
) -> Operand | None:
    """Operand `number` of a contraction whose iteration dimensions have a `role`; None when the kernel computes it or
    reads it at computed addresses."""
    value = root.operands[number]
    exprs = list(operand_map(root, number).results)
    if value not in source.tensors or not all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in exprs):
        return None
    places = [(role(e.position), 0) if isinstance(e, ir.AffineDimExpr) else (FIXED, e.value) for e in exprs]
    return _operand(source, value, places)


def result_operand(source: KernelSource, destination: ir.Value, roles: Sequence[str | int]) -> Operand:
    """A destination whose dimensions have `roles`."""
    return _operand(source, destination, [(role, 0) for role in roles])


def _operand(source: KernelSource, value: ir.Value, places: Sequence[tuple[str | int, int]]) -> Operand:
    """A tensor argument by the role of each dimension, with the coordinate of fixed ones."""
    dims: list[_Dim] = []
    stride = Product(1)
    for extent, (role, at) in reversed(list(zip(extents_of(source, value), places, strict=True))):
        if extent != Product(1):
            dims.append(_Dim(role, Axis(extent, stride), at))
        stride = stride.times(extent)
    return Operand(value, tuple(_merged(dims)))


def _pixels(source: KernelSource, root: ir.Operation, roles: Roles) -> Pixels | None:
    value, low = root.operands[roles.left], [0] * root.operands[roles.left].type.rank
    padded = defining_op(value)
    padding = None if padded is None else padding_of(padded)
    if padding is not None and padding.value.value == 0:
        value, low = padding.source, list(padding.low)
    shape = root.results[0].type.shape
    positions = [w.position for w in roles.windows]
    taps = _tap_extents(root, roles)
    static = all(e >= 0 for e in [*taps, *(shape[p] for p in positions)])
    if value not in source.tensors or low[0] or low[-1] or not static:
        return None
    out, lows = tuple(shape[p] for p in positions), tuple(low[p] for p in positions)
    joined = [_filter_extent(root, roles, d) for d in roles.reduced[:-1]]
    extents = tuple(extents_of(source, value))
    return Pixels(value, extents, out, lows, roles, tuple(taps), joined[0] if joined else 1)


def _tap_extents(root: ir.Operation, roles: Roles) -> list[int]:
    """The extents of the windows."""
    return [1 if w.tap is None else _filter_extent(root, roles, w.tap) for w in roles.windows]


def _filter_extent(root: ir.Operation, roles: Roles, dim: int) -> int:
    """The extent of the filter along an iteration dimension."""
    exprs = list(operand_map(root, roles.right).results)
    dims = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in exprs]
    return int(root.operands[roles.right].type.shape[dims.index(dim)])


def _role(dim: int, roles: Roles, rows: Sequence[int]) -> str | int:
    if dim in roles.reduced:
        return SUM
    if dim in roles.taps:
        return TAPS
    return ROWS if dim in rows else dim


def _merged(dims: Sequence[_Dim]) -> list[_Dim]:
    """Neighbours of one role as one dimension: contiguous tensors have no gaps between them."""
    result: list[_Dim] = []
    for dim in dims:
        if result and result[-1].role == dim.role != FIXED:
            last = result[-1].axis
            result[-1] = _Dim(dim.role, Axis(last.extent.times(dim.axis.extent), last.stride))
        else:
            result.append(dim)
    while len(result) > LARGEST_RANK and (joined := _joined(result)) is not None:
        result = joined
    return result or [_Dim(SUM, Axis(Product(1), Product(1)))]


def _joined(dims: Sequence[_Dim]) -> list[_Dim] | None:
    """`dims` with two neighbours as one, of both of which a copy takes one element; None where there are none."""
    for i in reversed(range(1, len(dims))):
        inner, dim = dims[i - 1], dims[i]
        if dim.may_have(inner):
            axis = Axis(inner.axis.extent.times(dim.axis.extent), inner.axis.stride)
            return [*dims[: i - 1], replace(dim, axis=axis, inner=inner), *dims[i + 1 :]]
    return None
