"""Inputs for a model out of short descriptions, as `mlc-run --input` takes them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import read_arrays
from .dim_sums import extent_by
from .dtypes import DTYPES, numpy_dtype
from .errors import ArgumentError
from .loader import DimInfo, Entry, Model
from .values import ValueInfo

# Integers stand for indices, masks or tokens more often than for quantities: two values are valid for all of these.
DEFAULT_INTEGERS = (0, 2)
_MOST_BYTES = 1 << 47  # the addresses of a process


def make_inputs(
    model: Model, entry: Entry, specs: Mapping[str, str], dims: Mapping[str, int], seed: int = 0
) -> dict[str, Any]:
    """All inputs of `entry`. What `specs` does not name is the input's default, or random.

    A spec is `@FILE.npy`, `@FILE.npz` (the array of the input's name), `@FILE.npz:NAME`, `random`, `random:LOW:HIGH`
    (integers below HIGH; floats), `zeros`, `ones`, a number, or a shape `2x3x224` of a random array. Dimensions without
    an extent in `dims`, a file or a shape get the smallest that the model allows, but 1. Raises ArgumentError.
    """
    names = [info.name for info in entry.inputs]
    for name in specs:
        if name not in names:
            raise ArgumentError(f"entry '{entry.name}' has no input '{name}'; its inputs are: {', '.join(names)}")
    for name in dims:
        if name not in model.dims:
            known = ", ".join(model.dims) or "none"
            raise ArgumentError(f"the model has no dimension '{name}'; its dimensions are: {known}")
    files = {name: _read(spec[1:], name) for name, spec in specs.items() if spec.startswith("@")}
    shapes = {name: shape for name, spec in specs.items() if (shape := _parse_shape(spec)) is not None}
    extents = dict(dims)
    for info in entry.inputs:
        if info.name in files:
            _bind(info, np.shape(files[info.name]), extents)
        elif info.name in shapes:
            _bind(info, shapes[info.name], extents)
    random = np.random.default_rng(seed)
    result = {}
    for info in entry.inputs:
        if info.name in files:
            result[info.name] = files[info.name]
            continue
        shape = shapes.get(info.name)
        if shape is None:
            shape = _shape(info, extents, model.dims)
        _check_size(info, shape)
        if info.default is not None and info.name not in specs:
            result[info.name] = np.full(shape, info.default, numpy_dtype(info.dtype))
            continue
        spec = specs.get(info.name, "random")
        result[info.name] = _make(info, "random" if info.name in shapes else spec, shape, random)
    return result


def _check_size(info: ValueInfo, shape: tuple[int, ...]) -> None:
    """Raises ArgumentError for a shape that NumPy would call a wrong value, or the lack of memory of another array."""
    size = math.prod(shape) * numpy_dtype(info.dtype).itemsize
    if size > _MOST_BYTES:
        extents = ",".join(map(str, shape))
        raise ArgumentError(f"input '{info.name}': {info.dtype}[{extents}] takes more memory than any machine has")


def parse_assignments(items: Sequence[str], option: str) -> dict[str, str]:
    """["a=1", "b=2"] as a dictionary. ArgumentError for anything else."""
    result = {}
    for item in items:
        name, found, value = item.partition("=")
        if not found or not name or not value:
            raise ArgumentError(f"{option} {item}: expected NAME=VALUE")
        result[name] = value
    return result


def _parse_shape(spec: str) -> tuple[int, ...] | None:
    if re.fullmatch(r"\d+([x,]\d+)+", spec):
        return tuple(int(part) for part in re.split("[x,]", spec))
    return None


def _read(text: str, name: str) -> Any:
    path, _, key = text.partition(":") if ".npz:" in text else (text, "", "")
    try:
        content = read_arrays(Path(path))
    except ArgumentError as error:
        raise ArgumentError(f"input '{name}': {error}") from error
    if isinstance(content, np.ndarray):
        return content
    if (key or name) not in content:
        raise ArgumentError(f"input '{name}': '{path}' has no array '{key or name}'; it has {', '.join(content)}")
    return content[key or name]


def _bind(info: ValueInfo, shape: tuple[int, ...], extents: dict[str, int]) -> None:
    for dim, extent in zip(info.dims or (), shape, strict=False):
        if isinstance(dim, str):
            extents.setdefault(dim, extent)


def _shape(info: ValueInfo, extents: Mapping[str, int], known: Mapping[str, DimInfo]) -> tuple[int, ...]:
    def extent(name: str) -> int:
        return extents[name] if name in extents else smallest(known[name])

    shape = []
    for dim in info.dims or ():
        if isinstance(dim, int):
            shape.append(dim)
        elif isinstance(dim, str):
            shape.append(extent(dim) if dim in extents else extent_by(dim, known, extent))
        else:
            shape.append(1)
    return tuple(shape)


def smallest(dim: DimInfo) -> int:
    """The smallest extent that is allowed and not 0."""
    step = max(dim.multiple, 1)
    return max(-(-dim.lowest // step) * step, step)


def _make(info: ValueInfo, spec: str, shape: tuple[int, ...], random: np.random.Generator) -> Any:
    if info.kind[0] == "optional":
        return None if spec == "random" else _make_tensor(info, spec, shape, random)
    if info.kind[0] == "sequence":
        return [_make_tensor(info, spec, shape, random) for _ in range(2)]
    return _make_tensor(info, spec, shape, random)


def _make_tensor(info: ValueInfo, spec: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    if info.dtype == "string":
        return np.full(shape, "text" if spec == "random" else spec, dtype=object)
    dtype = numpy_dtype(info.dtype)
    if spec == "zeros":
        return np.zeros(shape, dtype)
    if spec == "ones":
        return np.ones(shape, dtype)
    if spec == "random" or spec.startswith("random:"):
        return _random(info, spec, shape, random)
    try:
        return np.full(shape, complex(spec) if info.dtype.startswith("complex") else float(spec)).astype(dtype)
    except ValueError as error:
        raise ArgumentError(
            f"input '{info.name}': '{spec}' is none of @FILE, random, random:LOW:HIGH, zeros, ones, a number, a shape"
        ) from error


def _random(info: ValueInfo, spec: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    dtype = numpy_dtype(info.dtype)
    bounds = spec.split(":")[1:]
    try:
        limits = [float(bound) for bound in bounds]
    except ValueError as error:
        raise ArgumentError(f"input '{info.name}': '{spec}': the bounds are numbers") from error
    if len(limits) not in (0, 2) or (limits and not limits[0] < limits[1]):
        raise ArgumentError(f"input '{info.name}': '{spec}': expected random:LOW:HIGH with LOW below HIGH")
    if info.dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if DTYPES[info.dtype][0] in (0, 1):
        low, high = limits or DEFAULT_INTEGERS
        return random.integers(int(low), int(high), shape).astype(dtype)
    values = random.uniform(limits[0], limits[1], shape) if limits else random.standard_normal(shape)
    if info.dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return np.asarray(values).astype(dtype)
