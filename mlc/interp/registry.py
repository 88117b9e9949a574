"""Registration of evaluators by operation name, operand binding, and the checks around a call.

An evaluator states its operands as the operation does: `@evaluates("mlc.pad", "input value? low* high*")`
(`?` optional, `*` variadic) and gets them by name, after the `Call` that holds attributes and result types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.interp.dtypes import DYNAMIC, narrow, numpy_dtype, signed_view


class InterpError(Exception):
    """An operation that cannot be evaluated: a run-time error of the model, or an operand that breaks the
    contract.
    """


@dataclass(frozen=True)
class ResultType:
    """Type of one result: `shape` with -1 for an unknown extent, `dtype` in MLIR spelling (`"f32"`,
    `"i64"`, ...).

    Sequences and optionals have the dtype `"!mlc.seq"` / `"!mlc.optional"` (anything after it is ignored).
    """

    shape: tuple[int, ...]
    dtype: str

    def __init__(self, shape: Iterable[int], dtype: str) -> None:
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "dtype", dtype)


@dataclass(frozen=True)
class Maybe:
    """A value of type `!mlc.optional<T>`; `value` is None when it is absent."""

    value: Any = None


@dataclass(frozen=True)
class Call:
    """Everything but the operands of the operation under evaluation."""

    op: str
    attrs: Mapping[str, Any]
    results: Sequence[ResultType]

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute `name`, or `default` when it is absent; unit attributes are True."""
        value = self.attrs.get(name)
        return default if value is None else value

    def need(self, name: str) -> Any:
        """The attribute `name`. Raises `InterpError` when it is absent."""
        value = self.attrs.get(name)
        if value is None:
            raise InterpError(f"{self.op}: attribute '{name}' is missing")
        return value

    def ints(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """An integer list attribute."""
        value = self.attrs.get(name)
        if value is None and default is not None:
            return list(default)
        return [int(v) for v in self.need(name)]

    def mixed(self, name: str, operands: Sequence[int]) -> list[int]:
        """The mixed list `static_<name>` with its dynamic entries taken in order from `operands`."""
        rest = iter(operands)
        try:
            values = [int(next(rest)) if v == DYNAMIC else int(v) for v in self.need(f"static_{name}")]
        except StopIteration:
            raise InterpError(f"{self.op}: too few '{name}' operands for static_{name}") from None
        if next(rest, None) is not None:
            raise InterpError(f"{self.op}: too many '{name}' operands for static_{name}")
        return values

    def dtype(self, result: int = 0) -> np.dtype:
        """NumPy dtype of a result."""
        return numpy_dtype(self.results[result].dtype)

    @property
    def unsigned(self) -> bool:
        """True when the operation reads its integers as unsigned."""
        return bool(self.attrs.get("unsigned"))


@dataclass(frozen=True)
class _Evaluator:
    function: Callable[..., Any]
    operands: tuple[str, ...]


_EVALUATORS: dict[str, _Evaluator] = {}


def evaluates(op: str, operands: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the decorated function as the evaluator of `op`.

    It is called with the `Call` and each operand of the blank-separated list `operands` by position: an
    array (or an
    int for an `index` operand), None for an absent `name?`, a list for `name*`. It returns an array or a
    list of them.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if op in _EVALUATORS:
            raise ValueError(f"'{op}' has two evaluators")
        _EVALUATORS[op] = _Evaluator(function, tuple(operands.split()))
        return function

    return register


def supported_ops() -> list[str]:
    """Names of all operations with an evaluator, sorted."""
    return sorted(_EVALUATORS)


def _segment_sizes(op: str, names: Sequence[str], count: int, attrs: Mapping[str, Any]) -> list[int]:
    """How many of `count` flat operands belong to each of the operands `names`."""
    explicit = attrs.get("operandSegmentSizes")
    if explicit is not None:
        return [int(n) for n in explicit]
    sizes = [1 if name[-1] not in "?*" else 0 for name in names]
    free_list = -1
    for i, name in enumerate(names):
        if name[-1] == "*":
            static = attrs.get(f"static_{name[:-1]}")
            if static is None:
                free_list = i
            else:
                sizes[i] = sum(v == DYNAMIC for v in static)
    for i, name in enumerate(names):
        if name[-1] == "?" and sum(sizes) < count:
            sizes[i] = 1
    if free_list >= 0:
        sizes[free_list] = max(0, count - sum(sizes))
    if sum(sizes) != count:
        raise InterpError(f"{op}: takes operands ({' '.join(names)}), got {count}")
    return sizes


def _bind(op: str, names: Sequence[str], inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Any]:
    bound: list[Any] = []
    position = 0
    for name, size in zip(names, _segment_sizes(op, names, len(inputs), attrs), strict=True):
        part = list(inputs[position : position + size])
        position += size
        bound.append(part if name[-1] == "*" else part[0] if part else None)
    return bound


def _check_result(op: str, number: int, value: Any, expected: ResultType) -> Any:
    if expected.dtype.startswith("!"):
        return value
    value = signed_view(np.asarray(value))
    fits = value.ndim == len(expected.shape) and all(
        want in (-1, have) or want == DYNAMIC for want, have in zip(expected.shape, value.shape, strict=True)
    )
    if not fits:
        raise InterpError(f"{op}: result {number} has shape {value.shape}, its type says {expected.shape}")
    dtype = numpy_dtype(expected.dtype)
    return value if value.dtype == dtype else narrow(value, dtype)


def evaluate(op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], results: Sequence[ResultType]) -> list[Any]:
    """Evaluates one operation.

    `op` is the full name (`"mlc.unary"`); `inputs` are the operands in order: arrays, ints for `index`
    operands, tuples of arrays for sequences, `Maybe` for optionals. An absent optional operand is either None or simply
    missing (then `operandSegmentSizes` in `attrs` tells which, where that is ambiguous). `attrs` holds plain
    Python values. Returns one array per entry of `results`, rounded to its dtype. Raises `InterpError` for an
    unknown operation, for operands that break the contract, and for what would be a run-time error of the
    model (index out of range, division by zero).
    """
    evaluator = _EVALUATORS.get(op)
    if evaluator is None:
        raise InterpError(f"no evaluator for '{op}'")
    with np.errstate(all="ignore"):
        try:
            operands = _bind(op, evaluator.operands, inputs, attrs)
            values = evaluator.function(Call(op, attrs, results), *operands)
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            raise InterpError(f"{op}: {error}") from error
    if not isinstance(values, list):
        values = [values]
    if len(values) != len(results):
        raise InterpError(f"{op}: evaluated to {len(values)} results, {len(results)} are expected")
    return [_check_result(op, i, v, r) for i, (v, r) in enumerate(zip(values, results, strict=True))]
