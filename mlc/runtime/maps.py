"""Maps between Python's dictionaries and the tensors that stand for them (docs/abi.md, section 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .dtypes import numpy_dtype
from .errors import ArgumentError, InputError
from .values import ValueInfo


def dictionaries(keys: Sequence[int | str], rows: Any) -> list[dict[int | str, Any]]:
    """A dictionary for each row of a matrix, with a key for each column."""
    return [dict(zip(keys, row, strict=True)) for row in np.asarray(rows).tolist()]


def as_matrix(value: Any, ordered: bool = False) -> Any:
    """A list of dictionaries as the matrix of their values, if asked in the order of keys; anything else as it is."""
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        keys = sorted(value[0]) if ordered else list(value[0])
        return np.array([[row[key] for key in keys] for row in value])
    return value


def split_maps(
    inputs: Sequence[ValueInfo], arrays: Sequence[Any], named: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call with the dictionaries among them as keys and values, which are inputs of their own.

    Raises ArgumentError for a dictionary where no map is wanted, and InputError for entries of wrong types.
    """
    maps: dict[str, list[ValueInfo]] = {}
    for info in inputs:
        if info.map:
            maps.setdefault(info.map, []).append(info)
    by_place: list[Any] = []
    for value in arrays:
        if not isinstance(value, Mapping):
            by_place.append(value)
            continue
        place = len(by_place)
        wanted = maps.get(inputs[place].map) if place < len(inputs) else None
        if not wanted or wanted[0] is not inputs[place]:
            raise ArgumentError(f"argument {place} is a dictionary, but no map is wanted there")
        by_place.extend(_parts(value, wanted))
    result = {}
    for name, value in named.items():
        if name in maps and isinstance(value, Mapping):
            result.update({info.name: part for info, part in zip(maps[name], _parts(value, maps[name]), strict=True)})
        else:
            result[name] = value
    return by_place, result


def _parts(value: Mapping[Any, Any], infos: Sequence[ValueInfo]) -> list[np.ndarray]:
    """The keys and the values of a dictionary as arrays."""
    return [_vector(items, info) for items, info in zip((list(value), list(value.values())), infos, strict=True)]


def _vector(items: list[Any], info: ValueInfo) -> np.ndarray:
    wanted = str if info.dtype == "string" else (int, float, np.number)
    if not all(isinstance(item, wanted) for item in items):
        found = next(type(item).__name__ for item in items if not isinstance(item, wanted))
        raise InputError(f"input '{info.map}': expected a map, {info.name} {info.dtype}, got {found}")
    return np.array(items, numpy_dtype(info.dtype))
