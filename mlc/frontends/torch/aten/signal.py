"""Fourier transforms, and the windows of their frames.

Source: PyTorch documentation, torch.fft, torch.stft, torch.istft and the windows (torch.hann_window and others).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlc.frontends.common import elementwise, shape, signal
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import dtype_given
from mlc.frontends.torch.complex_numbers import Complex, knows_complex, zeros
from mlc.frontends.torch.registry import Call, Value, aten, known_ints

Numbers = Tensor | Complex

_FORWARD = {None: 0.0, "backward": 0.0, "ortho": -0.5, "forward": -1.0}
_INVERSE = {None: -1.0, "backward": -1.0, "ortho": -0.5, "forward": 0.0}
_CODES = (0.0, -0.5, -1.0)
"""The power of the length that transforms are multiplied with: by `norm`, and by the number of decomposed programs."""

_COSINES = {"hann": (0.5, 0.5), "blackman": (0.42, 0.5, 0.08)}
"""Weights of the waves that a window is made of, which have their first crest in its middle."""

_ONE = ("fft_fft", "fft_ifft", "fft_rfft", "fft_irfft")
_TWO = ("fft_fft2", "fft_ifft2", "fft_rfft2", "fft_irfft2")
_ANY = ("fft_fftn", "fft_ifftn", "fft_rfftn", "fft_irfftn")
_DECOMPOSED = ("_fft_c2c", "_fft_r2c", "_fft_c2r")
knows_complex(*_ONE, *_TWO, *_ANY, *_DECOMPOSED, "fft_fftshift", "fft_ifftshift", "istft")


@aten(*_ONE)
def one(call: Call) -> Numbers:
    """Along one dimension."""
    return _transformed(call, [call.int(2)], None if call[1] is None else [call.int(1)], call[3])


@aten(*_TWO)
def two(call: Call) -> Numbers:
    """Along two dimensions, the last ones where none are named."""
    return _transformed(call, call.ints(2), None if call[1] is None else call.ints(1), call[3])


@aten(*_ANY)
def several(call: Call) -> Numbers:
    """Along all dimensions where none are named, or as many as have lengths."""
    lengths = None if call[1] is None else call.ints(1)
    if call[2] is not None:
        return _transformed(call, call.ints(2), lengths, call[3])
    rank = len(_shape(_numbers(call[0])))
    return _transformed(call, list(range(rank - (rank if lengths is None else len(lengths)), rank)), lengths, call[3])


@aten(*_DECOMPOSED)
def decomposed(call: Call) -> Numbers:
    """What PyTorch's own decompositions leave."""
    axes, power = _axes(call, call.ints(1)), _CODES[call.int(2)]
    sizes: list[int | None] = [None] * len(axes)
    if call.op == "aten::_fft_c2r":
        return _transform(call, axes, [*sizes[:-1], call.int(3)], power, inverse=True, is_real=True)
    if call.op == "aten::_fft_r2c":
        return _transform(call, axes, sizes, power, inverse=False, is_real=bool(call[3]))
    return _transform(call, axes, sizes, power, inverse=not call[3], is_real=False)


def _transformed(call: Call, dims: list[int], lengths: list[int] | None, norm: Value) -> Numbers:
    """The transform that the operator is called after, along `dims`."""
    name, axes = call.op.removeprefix("aten::fft_"), _axes(call, dims)
    inverse = "i" in name
    sizes = [n if n >= 0 else None for n in lengths or [-1] * len(axes)]
    return _transform(call, axes, sizes, (_INVERSE if inverse else _FORWARD)[norm], inverse, is_real="r" in name)


def _transform(
    call: Call, axes: list[int], sizes: list[int | None], power: float, inverse: bool, is_real: bool
) -> Numbers:
    """The transform along `axes`, with as many numbers as `sizes` (None: what there is). Of real numbers the last axis
    has the first half, in front of an inverse; else it is transformed first."""
    b, x, pairs = call.b, _numbers(call[0]), list(zip(axes, sizes, strict=True))
    last, length = pairs[-1]
    if is_real:
        pairs.pop()
    if is_real and not inverse:
        x = _along(b, _fitted(b, x, last, length), last, lambda v: _complex(b, v, inverse, power, half=True))
    for axis, size in pairs:
        x = _along(b, _fitted(b, x, axis, size), axis, lambda v: _complex(b, v, inverse, power))
    if is_real and inverse:
        length = 2 * (_extent(x, last) - 1) if length is None else length
        return _along(b, x, last, lambda v: _to_real(b, v, length, power))
    return x


def _numbers(value: Value) -> Numbers:
    if not isinstance(value, Tensor | Complex):
        raise NodeError(f"it needs a tensor, got {type(value).__name__}")
    return value


def _shape(x: Numbers) -> list[int | None]:
    return (x.real if isinstance(x, Complex) else x).shape


def _axes(call: Call, dims: list[int]) -> list[int]:
    return [shape.normalize_axis(axis, len(_shape(_numbers(call[0])))) for axis in dims]


def _extent(x: Numbers, axis: int) -> int:
    extent = _shape(x)[axis]
    if extent is None:
        raise NodeError("the length of the transform is known only at run time", "give it, or export it constant")
    return extent


def _each(x: Numbers, change: Callable[[Tensor], Tensor]) -> Numbers:
    return Complex(change(x.real), change(x.imag)) if isinstance(x, Complex) else change(x)


def _along(b: Builder, x: Numbers, axis: int, change: Callable[[Numbers], Numbers]) -> Numbers:
    """`change` of the last dimension, with `axis` there."""
    rank = len(_shape(x))
    order = list(range(rank))
    order[axis], order[-1] = rank - 1, axis
    return _each(change(_each(x, lambda v: shape.transpose(b, v, order))), lambda v: shape.transpose(b, v, order))


def _fitted(b: Builder, x: Numbers, axis: int, size: int | None) -> Numbers:
    """`axis` with `size` numbers."""
    if size is None:
        return x
    _extent(x, axis)
    return _along(b, x, axis, lambda v: _each(v, lambda t: signal.fit(b, t, t.rank - 1, size)))


def _complex(b: Builder, x: Numbers, inverse: bool, power: float, half: bool = False) -> Complex:
    """The transform of the last dimension, or its first half."""
    real, imag = (x.real, x.imag) if isinstance(x, Complex) else (elementwise.floating(b, x), None)
    kept: Size = b.dim(real, real.rank - 1)
    if half:
        kept = b.arith("addi", b.arith("floordivsi", kept, 2), 1)
    return Complex(*signal.fourier(b, real, imag, kept, inverse, power))


def _to_real(b: Builder, x: Numbers, length: int, power: float) -> Tensor:
    """The real signal of `length` numbers whose transform's first half is the last dimension."""
    if not isinstance(x, Complex):
        x = elementwise.floating(b, x)
        x = Complex(x, zeros(b, x))
    _extent(x, x.real.rank - 1)
    real, imag = (signal.fit(b, v, v.rank - 1, length // 2 + 1) for v in (x.real, x.imag))
    return signal.real_inverse(b, real, imag, length, power)


# -- what else goes with transforms ----------------------------------------------------------------------------------


@aten("fft_fftfreq", "fft_rfftfreq")
def frequencies(call: Call) -> Tensor:
    """The frequency of each number of a transform."""
    n, d = call.int(0), float(call.get("d", 1.0) or 1.0)
    values = np.fft.rfftfreq(n, d) if "rfftfreq" in call.op else np.fft.fftfreq(n, d)
    return call.b.constant(values, dtype_given(call, "float32"))


@aten("fft_fftshift", "fft_ifftshift")
def shifted(call: Call) -> Numbers:
    """The number of frequency 0 in the middle of each dimension, or back at its beginning."""
    b, x = call.b, _numbers(call[0])
    dims = call.get("dim")
    axes = _axes(call, list(range(len(_shape(x)))) if dims is None else known_ints(dims, call.op))

    def moved(v: Tensor, axis: int) -> Tensor:
        extent = b.dim(v, axis)
        half = b.arith("floordivsi", extent, 2)
        rest = b.arith("subi", extent, half)
        front, behind = (half, rest) if "ifft" in call.op else (rest, half)
        return shape.concat(b, [shape.window(b, v, axis, front, behind), shape.window(b, v, axis, 0, front)], axis)

    for axis in axes:
        x = _each(x, lambda v, axis=axis: moved(v, axis))  # type: ignore[misc]
    return x


# -- short-time transforms ------------------------------------------------------------------------------------------


@aten("stft")
def stft(call: Call) -> Value:
    """Transforms of overlapping frames, `[…, frequencies, frames]`."""
    b, x, n_fft = call.b, elementwise.floating(call.b, call.tensor(0)), call.int(1)
    if call.get("center", False):
        raise NodeError("it pads the signal itself", "call torch.stft, which pads it first")
    hop = _number(call, "hop_length", n_fft // 4)
    last = x.rank - 1
    framed = signal.frames(b, x, last, n_fft, hop)
    if (window := _window(call, n_fft)) is not None:
        framed = elementwise.binary(b, "mul", framed, elementwise.cast(b, window, framed.dtype))
    is_half = call.get("onesided") is not False
    power = -0.5 if call.get("normalized") else 0.0
    z = _complex(b, framed, False, power, half=is_half)
    order = [*range(last), last + 1, last]
    real, imag = (shape.transpose(b, v, order) for v in (z.real, z.imag))
    if call.get("return_complex"):
        return Complex(real, imag)
    return signal.pairs_of(b, [real, imag])


def _number(call: Call, name: str, default: int) -> int:
    """An argument that may be left out."""
    return default if call.get(name) is None else known_ints(call.get(name), call.op)[0]


def _window(call: Call, n_fft: int) -> Tensor | None:
    """The window, in the middle of as many zeros as a frame has more numbers; None: ones."""
    b, window = call.b, call.get("window")
    length = _number(call, "win_length", n_fft)
    if window is None:
        if length == n_fft:
            return None
        window = b.constant(np.ones([length]), "float32")
    before = (n_fft - length) // 2
    return shape.pad(b, elementwise.floating(b, window), [before], [n_fft - length - before])


@aten("istft")
def istft(call: Call) -> Tensor:
    """The signal whose overlapping frames have these transforms: frames times the window are added up, and divided by
    the sum of the squares of what they were multiplied with."""
    b, z, n_fft = call.b, call[0], call.int(1)
    if not isinstance(z, Complex):
        raise NodeError("it needs complex numbers, and gets real ones", "use torch.view_as_complex")
    if call.get("return_complex") or call.get("onesided") is False:
        raise NodeError("it makes a complex signal", "transform the one half of a real one")
    hop = _number(call, "hop_length", n_fft // 4)
    power = -0.5 if call.get("normalized") else -1.0
    order = [*range(z.real.rank - 2), z.real.rank - 1, z.real.rank - 2]
    real, imag = (shape.transpose(b, v, order) for v in (z.real, z.imag))
    framed = _to_real(b, Complex(real, imag), n_fft, power)
    window = _window(call, n_fft)
    window = b.constant(np.ones([n_fft]), framed.dtype) if window is None else elementwise.cast(b, window, framed.dtype)
    frames = b.dim(framed, framed.rank - 2)
    squares = shape.broadcast(b, elementwise.binary(b, "mul", window, window), [frames, n_fft])
    signal_ = _added(b, elementwise.binary(b, "mul", framed, window), hop)
    total = elementwise.binary(b, "div", signal_, _added(b, squares, hop))
    return _cut(call, total, frames, n_fft, hop)


def _cut(call: Call, total: Tensor, frames: Size, n_fft: int, hop: int) -> Tensor:
    """What was the signal before it was padded, of the length that is asked for."""
    b, last = call.b, total.rank - 1
    begin = n_fft // 2 if call.get("center", True) else 0
    whole = b.arith("addi", b.arith("muli", b.arith("subi", frames, 1), hop), n_fft)
    wanted = call.get("length")
    if wanted is None:
        return shape.window(b, total, last, begin, b.arith("subi", whole, 2 * begin))
    length = known_ints(wanted, call.op)[0]
    if not isinstance(whole, int):
        raise NodeError("it cuts a signal of unknown length", "cut the result instead")
    there = shape.window(b, total, last, begin, min(length, whole - begin))
    return signal.fit(b, there, last, length)


def _added(b: Builder, framed: Tensor, hop: int) -> Tensor:
    """The sum `[…, samples]` of frames `[…, frames, n]` that begin `hop` after each other."""
    n = framed.shape[framed.rank - 1]
    assert n is not None
    count = -(-n // hop)
    last = framed.rank - 1
    framed = signal.fit(b, framed, last, count * hop)
    sizes = b.dims(framed)
    total: Tensor | None = None
    for number in range(count):
        stretch = shape.window(b, framed, last, number * hop, hop)
        low: list[Size] = [0] * framed.rank
        high = list(low)
        low[last - 1], high[last - 1] = number, count - 1 - number
        moved = shape.pad(b, stretch, low, high)
        total = moved if total is None else elementwise.binary(b, "add", total, moved)
    assert total is not None
    samples = b.arith("muli", b.arith("addi", sizes[last - 1], count - 1), hop)
    return shape.reshape(b, total, [*sizes[: last - 1], samples])


@aten("hann_window", "hamming_window", "blackman_window", "bartlett_window")
def named_window(call: Call) -> Tensor:
    """A window of known length. One that is periodic is the symmetric one of a sample more, without its last."""
    length, name = call.int(0), call.op.removeprefix("aten::").removesuffix("_window")
    places = np.arange(length) / max(1, length - (0 if call.get("periodic", True) else 1))
    if name == "bartlett":
        values = 1 - np.abs(2 * places - 1)
    else:
        given = {"hamming": (call.get("alpha", 0.54), call.get("beta", 0.46))}
        values = sum(a * np.cos(2 * np.pi * k * (places + 0.5)) for k, a in enumerate((_COSINES | given)[name]))
    return call.b.constant(values if length > 1 else np.ones(length), dtype_given(call, "float32"))
