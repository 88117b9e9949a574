"""What is known of small tensors at import: NumPy on arrays whose elements may be `index` values.

Shape computations (`Shape`, `Gather`, `Mul`, `Concat`, …) run here beside the operations that are built, so that a
`Reshape` at their end sees integers, or the `index` values themselves, and the types of its result are as static as
they can be. The operations that nothing uses afterwards are dropped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlc.frontends.common.builder import KNOWN_LIMIT, Builder, Size

_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": np.abs,
    "neg": np.negative,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "reciprocal": lambda x: (1 / x).astype(x.dtype),
    "not": np.invert,
}


def _truncated_division(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    if lhs.dtype.kind not in "iu":
        return lhs / rhs
    quotient = np.floor_divide(lhs, rhs)
    return quotient + ((np.remainder(lhs, rhs) != 0) & ((lhs < 0) != (rhs < 0))).astype(lhs.dtype)


_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _truncated_division,
    "mod": np.mod,
    "fmod": np.fmod,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_INDEX = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "div": "divsi",
    "fmod": "remsi",
    "max": "maxsi",
    "min": "minsi",
}
_COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def unary(kind: str, operand: np.ndarray | None) -> np.ndarray | None:
    """The known elements of `mlc.unary`."""
    if operand is None or operand.dtype == object or kind not in _UNARY:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(_UNARY[kind](operand), operand.dtype)


def binary(b: Builder, kind: str, lhs: np.ndarray | None, rhs: np.ndarray | None) -> np.ndarray | None:
    """The known elements of `mlc.binary`; sizes are combined with index arithmetic."""
    if lhs is None or rhs is None or not _small(lhs, rhs):
        return None
    if lhs.dtype != object and rhs.dtype != object:
        if kind not in _BINARY or (kind in ("div", "mod", "fmod") and rhs.dtype.kind in "iu" and not rhs.all()):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(_BINARY[kind](lhs, rhs), lhs.dtype)
    if kind not in _INDEX:
        return None

    def combine(left: object, right: object) -> Size:
        return b.arith(_INDEX[kind], _size(left), _size(right))

    return np.asarray(np.frompyfunc(combine, 2, 1)(lhs, rhs), object)


def compare(predicate: str, lhs: np.ndarray | None, rhs: np.ndarray | None) -> np.ndarray | None:
    """The known elements of `mlc.compare`, only when all of them are constants."""
    if lhs is None or rhs is None or not _small(lhs, rhs):
        return None
    if lhs.dtype != object and rhs.dtype != object:
        return np.asarray(_COMPARE[predicate](lhs, rhs))
    pairs = [_compare_sizes(predicate, *pair) for pair in np.broadcast(lhs, rhs)]
    if any(item is None for item in pairs):
        return None
    return np.array(pairs, bool).reshape(np.broadcast_shapes(lhs.shape, rhs.shape))


def _compare_sizes(predicate: str, lhs: object, rhs: object) -> bool | None:
    if not isinstance(lhs, ir.Value) and not isinstance(rhs, ir.Value):
        return bool(_COMPARE[predicate](np.asarray(lhs), np.asarray(rhs)))
    if isinstance(lhs, ir.Value) and isinstance(rhs, ir.Value):
        return predicate in ("eq", "le", "ge") if lhs == rhs else None
    if isinstance(rhs, ir.Value):
        mirrored = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(predicate, predicate)
        return _compare_sizes(mirrored, rhs, lhs)
    assert isinstance(lhs, ir.Value) and isinstance(rhs, int | np.integer)
    # An extent is never negative; nothing else is known of it.
    if not is_extent(lhs) or rhs > 0 or (rhs == 0 and predicate not in ("lt", "ge")):
        return None
    return predicate in ("ne", "gt", "ge")


def is_extent(value: ir.Value) -> bool:
    """Whether an `index` value is the extent of a tensor."""
    owner = value.owner
    return isinstance(owner, ir.Operation | ir.OpView) and owner.name == "tensor.dim"


def select(condition: np.ndarray | None, on_true: np.ndarray | None, on_false: np.ndarray | None) -> np.ndarray | None:
    """The known elements of `mlc.select`."""
    if condition is None or on_true is None or on_false is None or condition.dtype == object:
        return None
    if not _small(condition, on_true, on_false):
        return None
    dtype = on_true.dtype if on_true.dtype == on_false.dtype else object
    return np.asarray(np.where(condition, on_true.astype(object), on_false.astype(object)), dtype)


def cast(operand: np.ndarray | None, dtype: str) -> np.ndarray | None:
    """The known elements of `mlc.cast`: sizes stay sizes in any integer type."""
    if operand is None:
        return None
    if operand.dtype == object:
        return operand if dtype in ("int32", "int64", "uint32", "uint64") else None
    try:
        with np.errstate(all="ignore"):
            return operand.astype(np.dtype(dtype))
    except TypeError:
        return None


def _size(item: object) -> Size:
    return item if isinstance(item, ir.Value) else int(item)  # type: ignore[call-overload]


def _small(*arrays: np.ndarray) -> bool:
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    return int(np.prod(shape)) <= KNOWN_LIMIT
