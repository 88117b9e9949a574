"""Fourier transforms and filter banks."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import axes as run_time
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import shape, signal
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.reduction import constant_axes, is_run_time
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.onnx.values import elem_dtype
from mlc.frontends.report import NodeError


def _static(size: Size | None, what: str) -> int:
    if not isinstance(size, int):
        raise NodeError(f"the {what} is known only at run time", f"make the {what} constant")
    return size


def dft(b: Builder, x: Tensor, kept: Size, inverse: bool) -> Tensor:
    """The transform of the last-but-one dimension of `[…, length, 1 or 2]`; `kept` frequencies of the result
    `[…, kept, 2]`."""
    real, *imag = signal.parts_of(b, x)
    return signal.pairs_of(
        b, signal.fourier(b, real, imag[0] if imag else None, kept, inverse, -1 if inverse else 0)
    )


@onnx_op("DFT")
def dft_attribute(g: GraphImporter, node: Node) -> Tensor:
    """Opset 17: the axis as an attribute."""
    return _dft(g, node, int(node.attr("axis", 1)))


@onnx_op("DFT", since=20)
def dft_input(g: GraphImporter, node: Node) -> Tensor:
    """The axis as an input."""
    if is_run_time(node.optional(2)):
        return run_time.switch(g.b, node[2], node[0].rank - 1, lambda axis: _dft(g, node, axis))
    axes = constant_axes(node.optional(2), "axis")
    return _dft(g, node, -2 if axes is None else axes[0])


def _dft(g: GraphImporter, node: Node, given: int) -> Tensor:
    b, x = g.b, node[0]
    axis = shape.normalize_axis(given, x.rank)
    onesided, inverse = bool(node.attr("onesided", 0)), bool(node.attr("inverse", 0))
    wanted = node.optional(1)
    extent = _static(x.shape[axis], "length of the signal")
    length = extent if wanted is None else _static(b.scalar(wanted), "length of the transform")
    order = [dim for dim in range(x.rank - 1) if dim != axis] + [axis, x.rank - 1]
    moved = shape.transpose(b, x, order)
    if onesided and inverse:
        return shape.transpose(b, _real_inverse(b, moved, wanted is None, length), list(np.argsort(order)))
    moved = signal.fit(b, moved, x.rank - 2, length)
    kept = length // 2 + 1 if onesided else length
    return shape.transpose(b, dft(b, moved, kept, inverse), list(np.argsort(order)))


def _real_inverse(b: Builder, x: Tensor, derived: bool, length: int) -> Tensor:
    """The real signal of a one-sided spectrum."""
    axis = x.rank - 2
    size = 2 * (_static(x.shape[axis], "length of the spectrum") - 1) if derived else length
    if size == 0:
        return shape.window(b, shape.window(b, x, axis, 0, 0), x.rank - 1, 0, 1)
    real, imag = signal.parts_of(b, signal.fit(b, x, axis, size // 2 + 1))
    return signal.pairs_of(b, [signal.real_inverse(b, real, imag, size)])


@onnx_op("STFT")
def stft(g: GraphImporter, node: Node) -> Tensor:
    """Transforms of overlapping frames, windowed."""
    b, x = g.b, node[0]
    window, given = node.optional(2), node.optional(3)
    if window is not None and window.shape[0] is not None:
        length: Size = window.shape[0]
    elif given is not None:
        length = b.scalar(given)
    else:
        raise NodeError("the length of its frames is unknown", "give a window, or a constant frame length")
    hop = b.element(shape.reshape(b, ew.cast(b, node[1], "int64"), []))
    parts = x.shape[2] if x.rank == 3 else 1
    if x.rank == 2:
        x = shape.unsqueeze(b, x, [2])
    framed = signal.frames(b, x, 1, length, hop)
    if window is not None:
        framed = ew.binary(b, "mul", framed, shape.reshape(b, window, [1, 1, length, 1]))
    onesided = bool(node.attr("onesided", 1)) and parts == 1
    half = b.arith("addi", b.arith("floordivsi", length, 2), 1)
    return dft(b, framed, half if onesided else length, False)


@onnx_op("MelWeightMatrix")
def mel_weights(g: GraphImporter, node: Node) -> Tensor:
    """The matrix that maps spectra to mel bands: triangles between neighbouring mel frequencies, on whole bins."""
    b = g.b
    bands, length = b.scalar(node[0]), b.scalar(node[1])
    rate, low, high = (shape.reshape(b, ew.cast(b, node[position], "float64"), []) for position in (2, 3, 4))
    bins = b.arith("addi", b.arith("floordivsi", length, 2), 1)
    low_mel, high_mel = (_mel(b, frequency) for frequency in (low, high))
    count = b.arith("addi", bands, 2)
    step = ew.binary(
        b, "div", ew.binary(b, "sub", high_mel, low_mel), ew.cast(b, shape.size_scalar(b, count), "float64")
    )
    edges = ew.cast(b, shape.iota(b, [count], 0, "int64"), "float64")
    mels = ew.binary(b, "add", ew.binary(b, "mul", edges, step), low_mel)
    power = ew.binary(b, "pow", b.like(10, mels), ew.scaled(b, mels, 1 / 2595))
    hertz = ew.scaled(b, ew.binary(b, "sub", power, b.like(1, mels)), 700)
    whole = ew.cast(b, shape.size_scalar(b, b.arith("addi", length, 1)), "float64")
    places = ew.unary(b, "floor", ew.binary(b, "div", ew.binary(b, "mul", whole, hertz), rate))
    weights = _triangles(b, places, bands, bins)
    return ew.cast(b, weights, elem_dtype(int(node.attr("output_datatype", 1))))


def _mel(b: Builder, frequency: Tensor) -> Tensor:
    """2595 log10(1 + f / 700)."""
    ratio = ew.binary(b, "add", ew.scaled(b, frequency, 1 / 700), b.like(1, frequency))
    return ew.scaled(b, ew.unary(b, "log", ratio), 2595 / np.log(10))


def _triangles(b: Builder, places: Tensor, bands: Size, bins: Size) -> Tensor:
    """`[bins, bands]`: 1 at the middle of three neighbouring places, down to 0 at the outer two."""
    left, middle, right = (shape.window(b, places, 0, offset, bands) for offset in range(3))
    bin_ = ew.cast(b, shape.iota(b, [bins, 1], 0, "int64"), "float64")
    one, zero = b.like(1, places), b.like(0, places)

    def side(outer: Tensor, inner: Tensor) -> Tensor:
        width = ew.binary(b, "max", ew.unary(b, "abs", ew.binary(b, "sub", inner, outer)), one)
        return ew.binary(b, "div", ew.unary(b, "abs", ew.binary(b, "sub", bin_, outer)), width)

    def within(low: Tensor, high: Tensor, last: str) -> Tensor:
        return ew.binary(b, "and", ew.compare(b, "ge", bin_, low), ew.compare(b, last, bin_, high))

    rising = ew.select(b, within(left, middle, "lt"), side(left, middle), zero)
    falling = ew.select(b, within(middle, right, "lt"), side(right, middle), rising)
    return ew.select(b, ew.compare(b, "eq", bin_, middle), one, falling)
