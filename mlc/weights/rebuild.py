"""Weight files without the compiler: the metadata of a library with external weights says how its weight image is made
of the model's own weights, so any machine with NumPy and ml_dtypes can make one.

```json
{"placements": [["w#1f0c2a77", 0, 8192]],
 "weights": {"w": ["f32", [64, 32]]},
 "recipes": {"w#1f0c2a77": {"steps": [...], "result": [0, 0]}}}
```
`placements` are name, offset and size in the image; `weights` the model's own, which the recipes (`Recipe`'s JSON form)
start from. Constants of the model's code, as tables of positions and masks, are there themselves, if they are small:
`"constants": {"mlc.constant.0a1b": ["i1", [128, 128], "eJx…"]}` has their bytes compressed (zlib, base 64).
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlc.interp.dtypes import numpy_dtype
from mlc.weights.image import Digest, Placement, WeightImage
from mlc.weights.store import CONSTANT_PREFIX, Store, WeightError, WeightInfo

_CARRIED = 1 << 20  # bytes of a constant that the metadata carry


def describe(image: WeightImage) -> dict[str, Any]:
    """How `image` is made, as JSON data: the same for the same image."""
    store = image.store
    weights: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    recipes: dict[str, Any] = {}
    pending = [place.name for place in image.placements]
    while pending:
        name = pending.pop()
        recipe = store.recipe(name)
        if name in weights or name in constants or name in recipes:
            continue
        if recipe is None:
            info = store.info(name)
            described = [info.dtype, list(info.shape)]
            if name.startswith(CONSTANT_PREFIX) and info.nbytes <= _CARRIED:
                packed = zlib.compress(np.ascontiguousarray(store.get(name)).tobytes(), 9)
                constants[name] = [*described, base64.b64encode(packed).decode()]
            else:
                weights[name] = described
        else:
            recipes[name] = recipe.to_json()
            pending += recipe.inputs()
    return {
        "placements": [[place.name, place.offset, place.size] for place in image.placements],
        "weights": weights,
        "recipes": recipes,
        **({"constants": constants} if constants else {}),
    }


def rebuild(description: Mapping[str, Any], size: int, weights: Store, path: Path, digest: Digest) -> bytes:
    """Writes the weight file `path` of an image of `size` bytes from the model's own weights; returns what `digest`
    says of the image. Raises WeightError when a weight is missing or has another type.
    """
    store = Store()
    for name, (dtype, shape) in description["weights"].items():
        wanted = WeightInfo(tuple(shape), dtype)
        if name not in weights:
            have = ", ".join(weights.names()[:5]) + (", …" if len(weights) > 5 else "")
            raise WeightError(
                f"the model's weight '{name}' ({_type(wanted)}) is not among those given: {have or 'none'}"
            )
        if weights.info(name) != wanted:
            raise WeightError(f"weight '{name}' is {_type(weights.info(name))}, the model's is {_type(wanted)}")
        store.add(name, _getter(weights, name), wanted.shape, wanted.dtype)
    for name, (dtype, shape, text) in description.get("constants", {}).items():
        data = zlib.decompress(base64.b64decode(text))
        store.add(name, np.frombuffer(data, numpy_dtype(dtype)).reshape(shape), tuple(shape), dtype)
    store.add_recipes(description["recipes"])
    places = [Placement(*row) for row in description["placements"]]
    return WeightImage(store, places, size).write_safetensors(path, digest=digest)


def _getter(weights: Store, name: str) -> Callable[[], np.ndarray]:
    return lambda: weights.get(name)


def _type(info: WeightInfo) -> str:
    return f"{info.dtype}[{','.join(map(str, info.shape))}]"


def weights_of_file(path: str | os.PathLike[str]) -> Store:
    """The arrays of a `.safetensors`, `.weights` or `.npz` file by name. Raises WeightError or OSError."""
    path = Path(path)
    if path.suffix != ".npz":
        return Store.load(path, check=True)
    store = Store()
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                store.add(name, archive[name])
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise WeightError(f"'{path}' is not an .npz file: {error}") from error
    return store


def random_weights(description: Mapping[str, Any], seed: int) -> Store:
    """Weights that keep activations in range: floats of rank 2 and more are normal with a variance of one over the
    elements of a row, others lie between 0.5 and 1.5; integers and bools are 0, which is a valid index. What a weight
    is depends on the seed and its name only.
    """
    store = Store()
    for name, (dtype, shape) in description["weights"].items():
        store.add(name, _maker(name, dtype, tuple(shape), seed), shape, dtype)
    return store


def _maker(name: str, dtype: str, shape: tuple[int, ...], seed: int) -> Callable[[], np.ndarray]:
    def make() -> np.ndarray:
        kind = numpy_dtype(dtype)
        if dtype.startswith(("i", "u")):
            return np.zeros(shape, kind)
        key = int.from_bytes(hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest(), "little")
        random = np.random.default_rng(key)
        if len(shape) < 2:
            return random.uniform(0.5, 1.5, shape).astype(kind)
        return (random.standard_normal(shape) / math.sqrt(math.prod(shape[1:]) or 1)).astype(kind)

    return make
