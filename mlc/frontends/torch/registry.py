"""The importers of aten operators, found by the operator's name without its overload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from mlir import ir

from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError

Value = Any
"""What a TorchScript value is at import: a Tensor, a number, a Size, a string, None, a list of those, or a module."""

Handler = Callable[["Call"], Value]
_Handler = TypeVar("_Handler", bound=Handler)

_HANDLERS: dict[str, Handler] = {}


class Literal(Tensor):
    """A scalar that stands in the graph: a number of the traced program, which arithmetic must take as one."""


class _Arguments(list[Value]):
    """Arguments that remember which of them have been read."""

    def __init__(self, values: Sequence[Value]) -> None:
        super().__init__(values)
        self.read: set[int] = set()

    def __getitem__(self, place: Any) -> Any:
        self.read.update(range(len(self))[place] if isinstance(place, slice) else [range(len(self))[place]])
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[Value]:
        self.read.update(range(len(self)))
        return super().__iter__()


@dataclass
class Call:
    """One node: its operator, arguments in the schema's order, and the builder."""

    b: Builder
    op: str
    arguments: list[Value]
    names: list[str]
    outputs: int = 1

    def __post_init__(self) -> None:
        self.arguments = _Arguments(self.arguments)

    def given(self) -> list[Value]:
        """The arguments; asking here does not count as reading them."""
        return list(list.__iter__(self.arguments))

    def unread(self) -> list[int]:
        """The places of the arguments that nobody has asked for."""
        assert isinstance(self.arguments, _Arguments)
        return [place for place in range(len(self.arguments)) if place not in self.arguments.read]

    def __getitem__(self, position: int) -> Value:
        return self.arguments[position]

    def get(self, name: str, default: Value = None) -> Value:
        """The argument called `name` in the operator's schema, or `default` where the overload has none."""
        return self.arguments[self.names.index(name)] if name in self.names else default

    def tensor(self, position: int) -> Tensor:
        """Argument `position`, which must be a tensor; numbers become scalars."""
        return as_tensor(self.b, self.arguments[position])

    def ints(self, position: int) -> list[int]:
        """Argument `position` as a list of known integers."""
        return known_ints(self.arguments[position], self.op)

    def sizes(self, position: int) -> list[Size]:
        """Argument `position` as a list of sizes, known or not."""
        value = self.arguments[position]
        return [as_size(self.b, item) for item in (value if isinstance(value, list) else [value])]

    def int(self, position: int) -> int:
        """Argument `position` as a known integer."""
        return known_ints(self.arguments[position], self.op)[0]


@dataclass(frozen=True)
class Quotient:
    """The true quotient of two sizes of which the run knows one: most models round it at once to a size again."""

    dividend: Size
    divisor: Size

    def truncated(self, b: Builder) -> Size:
        """The quotient towards zero."""
        return b.arith("divsi", self.dividend, self.divisor)

    def tensor(self, b: Builder) -> Tensor:
        """The quotient as a scalar of float32."""
        from mlc.frontends.common import elementwise

        parts = [elementwise.cast(b, as_tensor(b, size), "float32") for size in (self.dividend, self.divisor)]
        return elementwise.binary(b, "div", *parts)


def as_tensor(b: Builder, value: Value) -> Tensor:
    """A tensor as it is; a Python number as a scalar of the default dtype, a size as one of int64."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, ir.Value):
        from mlc.frontends.common import shape

        return shape.size_scalar(b, value)
    if isinstance(value, Quotient):
        return value.tensor(b)
    if isinstance(value, bool | int | float):
        dtype = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
        return b.constant(value, dtype)
    raise NodeError(f"it needs a tensor, got {type(value).__name__}")


def like(b: Builder, value: Value, reference: Tensor) -> Tensor:
    """A number, size or scalar tensor in the dtype of `reference`."""
    from mlc.frontends.common import elementwise

    if isinstance(value, bool | int | float):
        return b.like(value, reference)
    return elementwise.cast(b, as_tensor(b, value), reference.dtype)


def as_size(b: Builder, value: Value) -> Size:
    """A number, or a size known at run time; scalars of integers are read."""
    if isinstance(value, Quotient):
        raise NodeError("it needs a whole number, and gets the quotient of two sizes", "round it, or divide with //")
    return b.scalar(value) if isinstance(value, Tensor) else value


def known_ints(value: Value, op: str) -> list[int]:
    """A number or a list of numbers known at import. Raises NodeError otherwise."""
    items = value if isinstance(value, list) else [value]
    result = []
    for item in items:
        if isinstance(item, Tensor) and item.constant is not None and item.constant.size == 1:
            item = int(item.constant.reshape(-1)[0])
        if not isinstance(item, int):
            raise NodeError(f"{op} has a parameter that is known at run time only", "trace the model with it constant")
        result.append(int(item))
    return result


def aten(*names: str) -> Callable[[_Handler], _Handler]:
    """Registers an importer for `aten::<name>` of each of `names`, and for the in-place form with a trailing `_`."""

    def register(handler: _Handler) -> _Handler:
        for name in names:
            key = name if "::" in name else f"aten::{name}"
            _HANDLERS[key] = handler
            _HANDLERS.setdefault(key + "_", handler)
        return handler

    return register


def called(call: Call, handler: Handler, arguments: Sequence[Value]) -> Value:
    """What an importer makes of other arguments in the places of those of `call`; those it reads are read."""
    inner = replace(call, arguments=list(arguments))
    result = handler(inner)
    call.arguments.read.update(inner.arguments.read)  # type: ignore[attr-defined]
    return result


def find(op: str) -> Handler | None:
    """The importer of an operator, such as `aten::relu`."""
    return _HANDLERS.get(op)


def supported() -> list[str]:
    """All operators that have an importer."""
    return sorted(_HANDLERS)


def promoted(b: Builder, values: Sequence[Value]) -> list[Tensor]:
    """Operands of a common dtype by PyTorch's rules: a tensor with dimensions before a scalar tensor before a number,
    within that bool before integers before floats, then the wider one.

    Source: PyTorch documentation, "Tensor Attributes", torch.dtype, type promotion.
    """
    from mlc.frontends.common import elementwise

    def category(dtype: str) -> int:
        return 0 if dtype == "bool" else 1 if "int" in dtype else 2

    ranked: list[tuple[int, str]] = []
    values = [as_tensor(b, value) if isinstance(value, Quotient) else value for value in values]
    for value in values:
        if isinstance(value, Tensor):
            ranked.append((2 if value.rank else 1, value.dtype))
        else:
            kind = "bool" if isinstance(value, bool) else "float32" if isinstance(value, float) else "int64"
            ranked.append((0, kind))
    best = max(category(d) for _, d in ranked)
    level = max(p for p, d in ranked if category(d) == best)
    chosen = [d for p, d in ranked if category(d) == best and p == level]
    dtype = max(chosen, key=_width)
    return [
        b.constant(value, dtype)
        if isinstance(value, bool | int | float)
        else elementwise.cast(b, as_tensor(b, value), dtype)
        for value in values
    ]


def operands(b: Builder, lhs: Value, rhs: Value) -> list[Tensor]:
    """The two operands of sums, products and quotients: a fraction of the traced program is a Python number.

    (The file has it as a scalar of float64, which would make more of integers than the float32 of PyTorch.)
    """

    def number(value: Value) -> Value:
        known = value.constant if isinstance(value, Literal) else None
        return float(known) if known is not None and known.dtype == np.float64 else value

    both = isinstance(lhs, Literal) and isinstance(rhs, Literal)
    return promoted(b, [lhs, rhs] if both else [number(lhs), number(rhs)])


def _width(dtype: str) -> tuple[int, str]:
    digits = "".join(c for c in dtype if c.isdigit())
    return (int(digits) if digits else 1, dtype)
