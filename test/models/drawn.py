"""Large weights by what they were drawn from: a name and a number stand for them, on any machine with NumPy.

A model file says how its filters were drawn (`note`), so that a few kilobytes (`compact`) give its weights back
(`expanded`), bit by bit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

_KEY = "drawn"


def filters(seed: int, name: str, shape: tuple[int, ...], deviation: float) -> np.ndarray:
    """Normal numbers in f32, which depend on `seed` and `name` only."""
    key = int.from_bytes(hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest(), "little")
    random = np.random.default_rng(key)
    return random.standard_normal(shape, np.float32) * np.float32(deviation)


def note(model: Any, seed: int, deviations: Mapping[str, float]) -> None:
    """Writes into the ONNX model how its filters were drawn."""
    model.metadata_props.add(key=_KEY, value=json.dumps([seed, dict(deviations)]))


def is_drawn(model: Any) -> bool:
    """Does the ONNX model say how its filters were drawn?"""
    return any(prop.key == _KEY for prop in model.metadata_props)


def compact(model: Any) -> dict[str, Any]:
    """The weights of an ONNX model by name: seed, shape and deviation of those that were drawn, others as arrays."""
    from onnx import numpy_helper

    said = {prop.key: prop.value for prop in model.metadata_props}
    seed, deviations = json.loads(said.get(_KEY, "[0, {}]"))
    found: dict[str, Any] = {}
    for tensor in model.graph.initializer:
        drawn = deviations.get(tensor.name)
        found[tensor.name] = (
            numpy_helper.to_array(tensor) if drawn is None else (seed, tuple(tensor.dims), float(drawn))
        )
    return found


def expanded(weights: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays that `compact` was told of."""
    return {
        name: filters(what[0], name, what[1], what[2]) if isinstance(what, tuple) else what
        for name, what in weights.items()
    }
