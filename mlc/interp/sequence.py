"""Sequences (tuples of arrays) and optionals (`Maybe`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.interp.registry import Call, InterpError, Maybe, evaluates


def _position(position: np.ndarray | None, length: int, highest: int) -> int:
    """A scalar position with a negative one counted from the end; absent: the last allowed one."""
    if position is None:
        return highest
    at = int(np.asarray(position).reshape(()))
    at = at + length if at < 0 else at
    if not 0 <= at <= highest:
        raise InterpError(f"sequence position {int(position)} is out of range for {length} elements")
    return at


@evaluates("mlc.sequence_make", "inputs*")
def sequence_make(call: Call, inputs: list[Any]) -> list[Any]:
    """A sequence of the inputs."""
    return [tuple(inputs)]


@evaluates("mlc.sequence_at", "sequence position")
def sequence_at(call: Call, sequence: tuple[Any, ...], position: np.ndarray) -> list[Any]:
    """The element at a position."""
    return [sequence[_position(position, len(sequence), len(sequence) - 1)]]


@evaluates("mlc.sequence_insert", "sequence element position?")
def sequence_insert(call: Call, sequence: tuple[Any, ...], element: Any, position: np.ndarray | None) -> list[Any]:
    """The sequence with `element` inserted before a position, or at the end."""
    at = _position(position, len(sequence), len(sequence))
    return [(*sequence[:at], element, *sequence[at:])]


@evaluates("mlc.sequence_erase", "sequence position?")
def sequence_erase(call: Call, sequence: tuple[Any, ...], position: np.ndarray | None) -> list[Any]:
    """The sequence without the element at a position, or without the last one."""
    if not sequence:
        raise InterpError("mlc.sequence_erase: the sequence is empty")
    at = _position(position, len(sequence), len(sequence) - 1)
    return [(*sequence[:at], *sequence[at + 1 :])]


@evaluates("mlc.sequence_length", "sequence")
def sequence_length(call: Call, sequence: tuple[Any, ...]) -> np.ndarray:
    """How many elements a sequence has, an int64 scalar."""
    return np.asarray(len(sequence), np.int64)


@evaluates("mlc.optional_some", "value")
def optional_some(call: Call, value: Any) -> list[Any]:
    """An optional that holds `value`."""
    return [Maybe(value)]


@evaluates("mlc.optional_none", "")
def optional_none(call: Call) -> list[Any]:
    """An optional that holds nothing."""
    return [Maybe()]


@evaluates("mlc.optional_has", "optional")
def optional_has(call: Call, optional: Maybe) -> np.ndarray:
    """Whether an optional holds a value, a bool scalar."""
    return np.asarray(optional.value is not None)


@evaluates("mlc.optional_get", "optional")
def optional_get(call: Call, optional: Maybe) -> list[Any]:
    """The value of an optional."""
    if optional.value is None:
        raise InterpError("mlc.optional_get: the optional holds nothing")
    return [optional.value]
