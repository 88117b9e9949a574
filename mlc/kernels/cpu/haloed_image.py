"""A small padded input of a convolution as a copy on the stack, zeros around it.

Where lines are short, most rows of a tile have a tap outside of the image, and a kernel that asks for each of them
takes longer than its products. A work item copies the lines that it reads, but for those that are there from the ones
before it: a thread with a part of the work items copies a part of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.evaluate import lane_mask
from mlc.kernels.common.frame import Buffer, Frame, for_loop, if_then
from mlc.kernels.common.index import Idx, IdxMath, Scalar
from mlc.kernels.common.padding import Padding
from mlc.kernels.cpu.next_panel import number_of
from mlc.kernels.cpu.once import Once

_ALIGNMENT = 64  # bytes: lines of the cache


def first_axis(padding: Padding, coordinates: Sequence[ir.AffineExpr], dims: Sequence[int]) -> int:
    """The first axis of the copy: one that is padded, or one whose coordinate moves along one of the iteration
    dimensions `dims`: those that are summed over, and that of which a work item has several lines of the result.
    `coordinates` are those that the padded tensor is read at."""
    moving = [i for i, expr in enumerate(coordinates) if any(mentions(expr, dim) for dim in dims)]
    return min([*padding.dims, *moving])


def image_size(shape: Sequence[int], first: int, step: int, line: int = 0) -> int:
    """Elements of the copy of a tensor of the padded `shape` from axis `first` on, with channels up to a multiple of
    `step`, and `line` pixels from one line to the next where that is not 0."""
    width = shape[-2]
    return ((prod(shape[first:-2]) - 1) * (line or width) + width) * _pitch(shape, step)


def pixels_apart(padding: Padding, width: int) -> int:
    """How many pixels lie between two lines of a padded image of such a `width` where the zeros behind one line are
    those in front of the next one."""
    axis = len(padding.low) - 2
    low = padding.low[axis]
    return width - min(low, width - low - int(padding.source.type.shape[axis]))


def _pitch(shape: Sequence[int], step: int) -> int:
    return -(-shape[-1] // step) * step


class HaloedImage:
    """The copy of the image that a work item reads; `buffer` has the coordinates of the padded tensor, of which those
    in front of axis `first` do not count."""

    def __init__(self, frame: Frame, padded: ir.Value, padding: Padding, first: int, step: int, line: int = 0) -> None:
        """`padded`, of static shape, is what `padding` describes; `step` elements are a vector; `line` pixels lie from
        one line to the next (`pixels_apart`; 0: whole padded lines do). Emits into the prologue of `frame`."""
        shape = [int(n) for n in padded.type.shape]
        self.frame, self.padding, self.step = frame, padding, step
        self.first, self.pitch = first, _pitch(shape, step)
        source = frame.buffers[padding.source]
        self.copied = Once(frame)
        copy = frame.on_stack(source.element, image_size(shape, first, step, line))
        strides: list[Scalar] = [0] * self.first
        for axis in range(self.first, len(shape) - 2):
            strides.append(prod(shape[axis + 1 : -2]) * (line or shape[-2]) * self.pitch)
        strides.append(self.pitch)
        with frame.prologue():
            self.there = memref.AllocaOp(ir.MemRefType.get([2], ir.IndexType.get()), [], []).result
        self.buffer = Buffer(copy, source.element, list(shape), [*strides, 1])

    def fill(self, batch: Sequence[Idx], lines: tuple[Scalar, Scalar]) -> None:
        """Copies `lines` of the image at the `batch` coordinates, from one coordinate of the first axis to another, but
        for those that are there."""
        loops = [(at.base, extent) for at, extent in zip(batch, self.buffer.shape, strict=False)]
        self.copied.make(number_of(self.frame.math, loops), lambda: self._note(lines[0], lines[0]))
        c = self.frame.constants
        low, high = (c.index(line) for line in lines)
        begin, end = (memref.load(self.there, [c.index(place)]) for place in range(2))
        before = arith.cmpi(arith.CmpIPredicate.ult, low, begin)
        is_apart = arith.ori(before, arith.cmpi(arith.CmpIPredicate.ugt, low, end))
        end = arith.select(is_apart, low, end)
        self._lines(list(batch), None, (end, high))
        self._note(arith.select(is_apart, low, begin), arith.maxui(end, high))

    def _note(self, begin: Scalar, end: Scalar) -> None:
        """Lines from `begin` to `end` are there."""
        for place, value in enumerate((begin, end)):
            memref.store(self.frame.constants.index(value), self.there, [self.frame.constants.index(place)])

    def _lines(self, coords: list[Idx], inside: ir.Value | None, lines: tuple[Scalar, Scalar]) -> None:
        """Loops over the dimensions behind `coords`, around the channels of a pixel: over `lines` of the first axis.
        `inside` says whether those so far are."""
        axis, c = len(coords), self.frame.constants
        if axis == len(self.buffer.shape) - 1:
            assert inside is not None
            if_then(inside, lambda: self._pixel(coords, True), lambda: self._pixel(coords, False))
            return

        def body(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            here = inside
            if axis in self.padding.dims:
                at = c.index(self.frame.math.sub(variable, self.padding.low[axis]))
                extent = c.index(self.frame.extent(self.padding.source, axis))
                here = arith.cmpi(arith.CmpIPredicate.ult, at, extent)
                here = here if inside is None else arith.andi(inside, here)
            self._lines([*coords, Idx(variable, level=1)], here, lines)
            return []

        low, high = lines if axis == self.first else (0, self.buffer.shape[axis])
        for_loop(self.frame, low, high, 1, [], body)

    def _pixel(self, coords: list[Idx], is_inside: bool) -> None:
        """The channels of one pixel, or zeros; zeros behind the last channel."""
        channels = self.buffer.shape[-1]
        assert isinstance(channels, int)
        whole = channels // self.step * self.step

        def body(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self._vector(coords, variable, self.step if is_inside else 0)
            return []

        for_loop(self.frame, 0, whole, self.step, [], body)
        if whole < channels:
            self._vector(coords, whole, channels - whole if is_inside else 0)

    def _vector(self, coords: list[Idx], channel: Scalar, live: int) -> None:
        """A vector of channels, of which `live` are read and others zero."""
        frame, idx = self.frame, IdxMath(self.frame.math, 1)
        type_ = ir.VectorType.get([self.step], self.buffer.element)
        zero = 0.0 if isinstance(self.buffer.element, ir.FloatType) else 0
        value = vector.broadcast(type_, frame.constants.get(self.buffer.element, zero))
        if live:
            source, low = frame.buffers[self.padding.source], self.padding.low
            at = [idx.add(x, Idx(-n)) for x, n in zip([*coords, Idx(channel)], low, strict=True)]
            start = frame.constants.index(memory.address(source, at, idx).base)
            if live == self.step:
                value = vector.LoadOp(type_, source.memory, [start]).result
            else:
                mask = lane_mask(frame, self.step, frame.constants.index(live))
                value = vector.MaskedLoadOp(type_, source.memory, [start], mask, value).result
        place = memory.address(self.buffer, [*coords, Idx(channel)], idx).base
        vector.StoreOp(value, self.buffer.memory, [frame.constants.index(place)], alignment=_ALIGNMENT)
