"""Fourier transforms and filter banks."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import axes as run_time
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, linalg, shape
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


def dft(b: Builder, x: Tensor, length: int, kept: int, inverse: bool) -> Tensor:
    """The transform of the last-but-one dimension of `[…, length, 1 or 2]` as products with cosine and sine tables;
    `kept` frequencies of the result `[…, kept, 2]`."""
    angles = 2 * np.pi * (np.outer(np.arange(length), np.arange(kept)) % length) / length
    cosine = b.constant(np.cos(angles), x.dtype)
    sine = b.constant(np.sin(angles) * (1 if inverse else -1), x.dtype)
    axis = x.rank - 1
    last = x.rank - 2
    real = shape.squeeze(b, shape.window(b, x, axis, 0, 1), [axis])
    parts = [linalg.matmul(b, _row(b, real), cosine), linalg.matmul(b, _row(b, real), sine)]
    if x.shape[axis] == 2:
        other = _row(b, shape.squeeze(b, shape.window(b, x, axis, 1, 1), [axis]))
        parts[0] = ew.binary(b, "sub", parts[0], linalg.matmul(b, other, sine))
        parts[1] = ew.binary(b, "add", parts[1], linalg.matmul(b, other, cosine))
    sizes: list[Size] = [*b.dims(x)[:last], kept]
    columns = [shape.unsqueeze(b, shape.reshape(b, part, sizes), [axis]) for part in parts]
    result = shape.concat(b, columns, axis)
    return ew.scaled(b, result, 1 / length) if inverse else result


def _row(b: Builder, x: Tensor) -> Tensor:
    return shape.unsqueeze(b, x, [0]) if x.rank == 1 else x


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
    if length < extent:
        moved = shape.window(b, moved, x.rank - 2, 0, length)
    elif length > extent:
        zeros: list[Size] = [0] * x.rank
        high = list(zeros)
        high[x.rank - 2] = length - extent
        moved = shape.pad(b, moved, zeros, high)
    kept = length // 2 + 1 if onesided else length
    return shape.transpose(b, dft(b, moved, length, kept, inverse), list(np.argsort(order)))


def _real_inverse(b: Builder, x: Tensor, derived: bool, length: int) -> Tensor:
    """The real signal of a one-sided spectrum: the conjugate half is added, then the real part kept."""
    have = _static(x.shape[x.rank - 2], "length of the spectrum")
    size = 2 * (have - 1) if derived else length
    mirrored = size - have
    axis = x.rank - 2
    if size == 0:
        return shape.window(b, shape.window(b, x, axis, 0, 0), x.rank - 1, 0, 1)
    if mirrored > 0:
        tail = shape.slice_axes(b, x, [axis], [mirrored], [0], [-1])
        signs = b.constant(np.array([1, -1]), x.dtype)
        x = shape.concat(b, [x, ew.binary(b, "mul", tail, signs)], axis)
    full = dft(b, x, size, size, True)
    return shape.window(b, full, x.rank - 1, 0, 1)


@onnx_op("STFT")
def stft(g: GraphImporter, node: Node) -> Tensor:
    """Transforms of overlapping frames, windowed."""
    b, x = g.b, node[0]
    window, given = node.optional(2), node.optional(3)
    if window is not None and window.shape[0] is not None:
        length = window.shape[0]
    elif given is not None:
        length = _static(b.scalar(given), "frame length")
    else:
        raise NodeError("the length of its frames is unknown", "give a window, or a constant frame length")
    hop = shape.reshape(b, ew.cast(b, node[1], "int64"), [])
    frames = b.arith("addi", b.arith("floordivsi", b.arith("subi", b.dim(x, 1), length), b.element(hop)), 1)
    starts = ew.binary(b, "mul", shape.iota(b, [frames, 1], 0, "int64"), hop)
    places = ew.binary(b, "add", starts, shape.iota(b, [1, length], 1, "int64"))
    parts = x.shape[2] if x.rank == 3 else 1
    if x.rank == 2:
        x = shape.unsqueeze(b, x, [2])
    framed = indexing.gather(b, x, places, 1)
    if window is not None:
        framed = ew.binary(b, "mul", framed, shape.reshape(b, window, [1, 1, length, 1]))
    onesided = bool(node.attr("onesided", 1)) and parts == 1
    return dft(b, framed, length, length // 2 + 1 if onesided else length, False)


@onnx_op("MelWeightMatrix")
def mel_weights(g: GraphImporter, node: Node) -> Tensor:
    """The matrix that maps spectra to mel bands; all parameters must be constant."""
    values = []
    for position in range(5):
        constant = node[position].constant
        if constant is None:
            raise NodeError("a parameter is computed at run time", "make all inputs constant")
        values.append(constant.reshape(-1)[0].item())
    bands, length, rate, low, high = values
    to = node.attr("output_datatype", 1)
    return g.b.constant(_mel_matrix(int(bands), int(length), rate, low, high).astype(elem_dtype(to)))


def _mel_matrix(bands: int, length: int, rate: float, low: float, high: float) -> np.ndarray:
    """Triangles between neighbouring mel frequencies, on whole spectrum bins, as ONNX defines them."""
    bins = length // 2 + 1
    edges = np.arange(bands + 2)
    low_mel, high_mel = (2595 * np.log10(1 + frequency / 700) for frequency in (low, high))
    mels = edges * ((high_mel - low_mel) / edges.shape[0]) + low_mel
    places = ((length + 1) * (700 * (np.power(10, mels / 2595) - 1)) // rate).astype(int)
    matrix = np.zeros((bins, bands))
    for band in range(bands):
        left, middle, right = places[band : band + 3]
        if middle == left:
            matrix[middle, band] = 1
        for place in range(left, middle + 1):
            if middle != left:
                matrix[place, band] = (place - left) / (middle - left)
        for place in range(middle, right):
            if right != middle:
                matrix[place, band] = (right - place) / (right - middle)
    return matrix
