"""Complex numbers: a tensor of them is two tensors, their real and their imaginary parts.

The dialect has real numbers only. What moves elements or adds them up does the same with both parts, and what is linear
in each of two operands is four products of parts: importers of real tensors do that here. Others have a form of their
own (`complex_form`). Nothing is stored in pairs before a model asks for them (`torch.view_as_real`), so that
parts fuse like other tensors. Source: PyTorch documentation, "Complex Numbers".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mlc.frontends.common import elementwise, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, Handler, Value, as_tensor, called

PARTS = {"complex64": "float32", "complex128": "float64"}
"""The dtypes of complex numbers, and those of their parts."""


@dataclass(frozen=True)
class Complex:
    """Complex numbers: two tensors of one shape and dtype."""

    real: Tensor
    imag: Tensor

    @property
    def dtype(self) -> str:
        """The dtype name."""
        return next(name for name, of in PARTS.items() if of == self.real.dtype)


Form = Callable[[Call, Handler], Value]
_Form = TypeVar("_Form", bound=Form)
_FORMS: dict[str, Form] = {}

_EACH = {
    "alias", "chunk", "clone", "constant_pad_nd", "contiguous", "cumsum", "detach", "diagonal", "expand", "expand_as",
    "flatten", "flip", "gather", "index", "index_select", "lift_fresh_copy", "mean", "movedim", "mT", "narrow", "neg",
    "pad", "permute", "repeat", "repeat_interleave", "reshape", "roll", "select", "slice", "split", "split_with_sizes",
    "squeeze", "sum", "swapaxes", "t", "tensor_split", "tile", "transpose", "unbind", "unflatten", "unfold",
    "unsqueeze", "view", "view_as", "_unsafe_view",
}  # fmt: skip
"""What does the same with both parts."""
_JOINED = {
    "cat": [0], "concat": [0], "stack": [0], "where": [1, 2], "slice_scatter": [0, 1], "select_scatter": [0, 1],
    "copy": [0, 1], "index_put": [0, 2],
}  # fmt: skip
"""What does the same with both parts of several operands, at these places, of which some may be real."""
_PRODUCTS = {"mul", "multiply", "matmul", "mm", "bmm", "mv", "dot", "einsum"}
_FILLED = {
    "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones",
    "new_full", "new_empty", "scalar_tensor",
}  # fmt: skip


def complex_form(*names: str) -> Callable[[_Form], _Form]:
    """Registers what `aten::<name>` does with complex numbers: it gets the importer for real ones."""

    def register(form: _Form) -> _Form:
        _FORMS.update(dict.fromkeys(names, form))
        return form

    return register


def knows_complex(*names: str) -> None:
    """Says that the importers of `aten::<name>` of each of `names` take complex numbers themselves."""

    @complex_form(*names)
    def form(call: Call, handler: Handler) -> Value:
        return handler(call)


def imported(call: Call, handler: Handler) -> Value:
    """What `handler`, the importer of an operator, makes of its arguments, or what it means for complex ones.

    Raises NodeError where nothing is known about complex numbers.
    """
    arguments = call.given()
    if not any(_is_complex(value) for value in arguments):
        return handler(call)
    name = call.op.removeprefix("aten::")
    if name in _FORMS:
        return _FORMS[name](call, handler)
    if name in _FILLED:
        return _filled(call, handler, arguments)
    if name in _JOINED:
        places = _JOINED[name]
        arguments = [_joined(call.b, v) if place in places else v for place, v in enumerate(arguments)]
        return each(call, handler, arguments)
    if name in _PRODUCTS:
        return _product(call, handler, arguments)
    if name in _EACH:
        if not _is_complex(arguments[0]):
            if not any(isinstance(v, str) and v in PARTS for v in arguments):
                return called(call, handler, [part(v, 0) for v in arguments])  # of real numbers, like complex ones
            arguments[0] = _joined(call.b, arguments[0])
        return each(call, handler, arguments)
    raise NodeError("there is no importer for it with complex numbers", "compute with real and imaginary parts")


def _is_complex(value: Value) -> bool:
    if isinstance(value, list):
        return any(_is_complex(item) for item in value)
    return isinstance(value, Complex | complex) or isinstance(value, str) and value in PARTS


def each(call: Call, handler: Handler, arguments: Sequence[Value]) -> Value:
    """The same with real and with imaginary parts."""
    if call.op in ("aten::pad", "aten::constant_pad_nd") and call.get("value"):
        raise NodeError("it pads complex numbers with a number other than 0", "pad both parts")
    real, imag = (called(call, handler, [part(v, n) for v in arguments]) for n in range(2))
    if isinstance(real, list):
        return [Complex(*pair) for pair in zip(real, imag, strict=True)]
    return Complex(real, imag)


def part(value: Value, number: int) -> Value:
    """The real parts (0) or the imaginary ones (1) of complex numbers, the dtype that parts have in place of a complex
    one, and what else there is as it is."""
    if isinstance(value, str):
        return PARTS.get(value, value)
    if isinstance(value, list):
        return [part(item, number) for item in value]
    if isinstance(value, Complex | complex):
        return value.imag if number else value.real
    return value


def parts(value: Value) -> tuple[Value, Value]:
    """Real and imaginary parts of a tensor or a number; None in place of the latter where it is real."""
    return (value.real, value.imag) if isinstance(value, Complex | complex) else (value, None)


def tensors(b: Builder, value: Value, dtype: str) -> Complex:
    """A tensor or a number as complex numbers, with parts of `dtype`."""
    real, imag = (None if x is None else elementwise.cast(b, as_tensor(b, x), dtype) for x in parts(value))
    assert real is not None
    return Complex(real, zeros(b, real) if imag is None else imag)


def zeros(b: Builder, x: Tensor) -> Tensor:
    """Zeros of the extents of a tensor."""
    return shape.full(b, b.dims(x), b.like(0, x))


def _joined(b: Builder, value: Value) -> Value:
    if isinstance(value, list):
        return [_joined(b, item) for item in value]
    if isinstance(value, int | float):
        return complex(value)
    return Complex(value, zeros(b, value)) if isinstance(value, Tensor) else value


def _product(call: Call, handler: Handler, arguments: list[Value]) -> Value:
    """What is linear in each of two operands."""
    is_listed = call.op == "aten::einsum"
    factors = arguments[1] if is_listed else arguments[:2]
    if len(factors) == 1:
        return each(call, handler, arguments)
    if len(factors) > 2:
        raise NodeError("it multiplies more than two tensors of complex numbers", "multiply two at a time")

    def product(x: Value, y: Value) -> Tensor:
        given = [arguments[0], [x, y], *arguments[2:]] if is_listed else [x, y, *arguments[2:]]
        result: Tensor = called(call, handler, given)
        return result

    (a, ai), (c, ci) = (parts(value) for value in factors)
    if ai is None or ci is None:
        return Complex(product(a, c), product(a, ci) if ai is None else product(ai, c))
    b = call.b
    real = elementwise.binary(b, "sub", product(a, c), product(ai, ci))
    return Complex(real, elementwise.binary(b, "add", product(a, ci), product(ai, c)))


def _filled(call: Call, handler: Handler, arguments: list[Value]) -> Complex:
    """A new tensor, of numbers that are all the same."""
    given = [v for v in arguments if isinstance(v, complex)]
    real: Tensor = called(call, handler, [part(v, 0) for v in arguments])
    imag = zeros(call.b, real)
    return Complex(real, elementwise.binary(call.b, "add", imag, call.b.like(given[0].imag, imag)) if given else imag)
