"""Complex numbers: what they are made of, what is made of them, and their arithmetic."""

from __future__ import annotations

import math

from mlc.frontends.common import elementwise, shape, signal
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import dtype_asked
from mlc.frontends.torch.complex_numbers import (
    PARTS,
    Complex,
    complex_form,
    knows_complex,
    part,
    parts,
    tensors,
)
from mlc.frontends.torch.registry import Call, Handler, Value, aten, called, promoted

knows_complex("view_as_real", "imag", "is_complex")


@aten("view_as_complex")
def view_as_complex(call: Call) -> Complex:
    """The last dimension, of extent 2, is the two parts."""
    return Complex(*signal.parts_of(call.b, call.tensor(0)))


@aten("view_as_real")
def view_as_real(call: Call) -> Tensor:
    """The parts side by side in a new last dimension."""
    z = _complex(call)
    return signal.pairs_of(call.b, [z.real, z.imag])


@aten("complex", "polar")
def made(call: Call) -> Complex:
    """Complex numbers of their parts, or of absolute values and angles."""
    b = call.b
    x, y = promoted(b, [call[0], call[1]])
    if call.op == "aten::polar":
        x, y = (_times(b, x, elementwise.unary(b, kind, y)) for kind in ("cos", "sin"))
    return Complex(*shape.broadcast_together(b, [x, y]))


@aten("real", "conj", "_conj", "_conj_physical", "conj_physical", "resolve_conj", "resolve_neg")
def of_real_numbers(call: Call) -> Tensor:
    """Real numbers are their own real part and conjugate."""
    return call.tensor(0)


@aten("is_complex")
def is_complex(call: Call) -> bool:
    """Known when it is asked."""
    return isinstance(call[0], Complex)


@aten("angle")
def angle(call: Call) -> Tensor:
    """Between -pi and pi, which negative numbers have."""
    b, x = call.b, elementwise.floating(call.b, call.tensor(0))
    is_negative = elementwise.compare(b, "lt", x, b.like(0, x))
    result = elementwise.select(b, is_negative, b.like(math.pi, x), b.like(0, x))
    return elementwise.select(b, elementwise.unary(b, "isnan", x), x, result)


@complex_form("real")
def real(call: Call, _: Handler) -> Tensor:
    """The real part."""
    return _complex(call).real


@aten("imag")
def imag(call: Call) -> Tensor:
    """The imaginary part."""
    return _complex(call).imag


@complex_form("conj", "_conj", "_conj_physical", "conj_physical")
def conj(call: Call, _: Handler) -> Complex:
    """The other sign of imaginary parts."""
    z = _complex(call)
    return Complex(z.real, elementwise.unary(call.b, "neg", z.imag))


@complex_form("resolve_conj", "resolve_neg")
def resolved(call: Call, _: Handler) -> Complex:
    """Signs are never put off here."""
    return _complex(call)


@complex_form("abs", "absolute")
def absolute(call: Call, _: Handler) -> Tensor:
    """The absolute value, of numbers too whose squares are no numbers of the dtype."""
    b, z = call.b, _complex(call)
    x, y = (elementwise.unary(b, "abs", value) for value in (z.real, z.imag))
    high, low = (elementwise.binary(b, kind, x, y) for kind in ("max", "min"))
    ratio = elementwise.binary(b, "div", low, high)
    one = elementwise.binary(b, "add", _times(b, ratio, ratio), b.like(1, ratio))
    result = _times(b, high, elementwise.unary(b, "sqrt", one))
    for edge in (0, math.inf):
        result = elementwise.select(b, elementwise.compare(b, "eq", high, b.like(edge, high)), high, result)
    return result


@complex_form("angle")
def argument(call: Call, _: Handler) -> Tensor:
    """Between -pi and pi."""
    z = _complex(call)
    return elementwise.binary(call.b, "atan2", z.imag, z.real)


@complex_form("add", "sub", "subtract", "rsub")
def add(call: Call, handler: Handler) -> Complex:
    """Part by part; a real operand has zeros for imaginary parts."""
    b, rest = call.b, [call[i] for i in range(2, len(call.arguments))]
    (x, xi), (y, yi) = parts(call[0]), parts(call[1])
    real: Tensor = called(call, handler, [x, y, *rest])
    imag: Tensor = called(call, handler, [0.0 if xi is None else xi, 0.0 if yi is None else yi, *rest])
    return Complex(real, shape.broadcast(b, elementwise.cast(b, imag, real.dtype), b.dims(real)))


@complex_form("div", "divide", "true_divide")
def div(call: Call, handler: Handler) -> Complex:
    """By real numbers part by part, else times the divisor's conjugate, whose larger part is made 1 first."""
    b, divisor = call.b, call[1]
    if not isinstance(divisor, Complex | complex):
        real, imag = (called(call, handler, [part(call[0], n), divisor]) for n in range(2))
        return Complex(real, imag)
    return _quotient(b, call[0], divisor)


@complex_form("reciprocal")
def reciprocal(call: Call, _: Handler) -> Complex:
    """1 over a complex number."""
    return _quotient(call.b, 1.0, call[0])


def _quotient(b: Builder, dividend: Value, divisor: Value) -> Complex:
    dtype = elementwise.floating(b, promoted(b, [part(dividend, 0), part(divisor, 0)])[0]).dtype
    x, y = (tensors(b, value, dtype) for value in (dividend, divisor))
    larger = elementwise.binary(b, "max", *(elementwise.unary(b, "abs", value) for value in (y.real, y.imag)))
    c, d = (elementwise.binary(b, "div", value, larger) for value in (y.real, y.imag))
    square = elementwise.binary(b, "add", _times(b, c, c), _times(b, d, d))
    real = elementwise.binary(b, "add", _times(b, x.real, c), _times(b, x.imag, d))
    imag = elementwise.binary(b, "sub", _times(b, x.imag, c), _times(b, x.real, d))
    scale = _times(b, larger, square)
    return Complex(*(elementwise.binary(b, "div", value, scale) for value in (real, imag)))


@complex_form("exp")
def exp(call: Call, _: Handler) -> Complex:
    """`exp(a) (cos b + i sin b)`."""
    b, z = call.b, _complex(call)
    scale = elementwise.unary(b, "exp", z.real)
    return Complex(*(_times(b, scale, elementwise.unary(b, kind, z.imag)) for kind in ("cos", "sin")))


@complex_form("square", "pow")
def square(call: Call, _: Handler) -> Complex:
    """`z * z`."""
    if call.op == "aten::pow" and call[1] != 2:
        raise NodeError(f"it raises complex numbers to the power {call[1]}", "multiply them, or use exp and angles")
    b, z = call.b, _complex(call)
    real = elementwise.binary(b, "sub", _times(b, z.real, z.real), _times(b, z.imag, z.imag))
    return Complex(real, elementwise.scaled(b, _times(b, z.real, z.imag), 2))


@complex_form("to", "_to_copy", "type_as")
def to(call: Call, handler: Handler) -> Value:
    """To another dtype: real numbers get zeros for imaginary parts, which real dtypes have no place for."""
    b, x, wanted = call.b, call[0], dtype_asked(call)
    if wanted is None:
        return x
    return tensors(b, x, PARTS[wanted]) if wanted in PARTS else elementwise.cast(b, part(x, 0), wanted)


def _times(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    return elementwise.binary(b, "mul", x, y)


def _complex(call: Call) -> Complex:
    value = call[0]
    if not isinstance(value, Complex):
        raise NodeError("it needs complex numbers, and gets real ones", "use torch.complex or torch.view_as_complex")
    return value
