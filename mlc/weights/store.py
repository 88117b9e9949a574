"""The weight store: named arrays that are there, that a function makes, or that a recipe computes, all
read lazily.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from mlc.interp import InterpError, mlir_dtype, numpy_dtype
from mlc.interp.dtypes import signed_view, unsigned_dtype
from mlc.weights.recipe import Recipe
from mlc.weights.safetensors import DIGEST, SafetensorsFile, Tensor, atomic_file, byte_chunks, header_bytes

DEFAULT_CACHE_BYTES = 1 << 30

CONSTANT_PREFIX = "mlc.constant."
"""What the names of weights begin with that are constants of the model's code, which no weight file of its own has."""


class WeightError(Exception):
    """A weight that does not exist, cannot be computed, or does not have its declared type."""


@dataclass(frozen=True)
class WeightInfo:
    """Type of a weight: `dtype` in MLIR spelling; narrow types take a whole byte an element."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Size in memory and in files."""
        return int(np.prod(self.shape, dtype=np.int64)) * numpy_dtype(self.dtype).itemsize


@dataclass(frozen=True)
class _Entry:
    info: WeightInfo
    array: np.ndarray | None = None
    make: Callable[[], np.ndarray] | None = None
    recipe: Recipe | None = None


def _dtype_name(dtype: str) -> str:
    """MLIR's name of a dtype given as MLIR or NumPy spell it (`"f32"`, `"float32"`, `"uint8"`)."""
    try:
        numpy_dtype(dtype)
    except ValueError:
        return mlir_dtype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    return dtype


class Store:
    """A mapping from names to weights, safe for use from several threads.

    Arrays that are given or lie in a file are not copied. What functions and recipes make is kept while
    it fits into
    `cache_bytes`, least recently used first out. `key` names the store in IR (`mlc.store`), see
    `mlc.weights.registry`.
    """

    def __init__(self, key: str = "", cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.key = key
        self._entries: dict[str, _Entry] = {}
        self._hashes: dict[str, str] = {}
        self._cache: OrderedDict[str, np.ndarray] = OrderedDict()
        self._cache_bytes = cache_bytes
        self._lock = threading.RLock()
        self._evaluating = threading.local()

    # -- contents ------------------------------------------------------------------------------------
    # --------------

    def add(
        self,
        name: str,
        value: np.ndarray | Callable[[], np.ndarray],
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
    ) -> str:
        """Adds an array, or a function that makes one (then `shape` and `dtype` say its type). Returns
        `name`.

        Raises `WeightError` when the name is taken, or when an array is not of the given type.
        """
        if callable(value):
            if shape is None or dtype is None:
                raise WeightError(f"weight '{name}': a function needs the shape and dtype of what it makes")
            self._insert(name, _Entry(WeightInfo(tuple(shape), _dtype_name(dtype)), make=value))
            return name
        array = signed_view(np.asarray(value))
        info = WeightInfo(array.shape, mlir_dtype(array.dtype))
        wanted = WeightInfo(
            info.shape if shape is None else tuple(shape), info.dtype if dtype is None else _dtype_name(dtype)
        )
        self._insert(name, _Entry(wanted, array=_checked(name, array, wanted)))
        return name

    def add_recipe(self, name: str, recipe: Recipe | Mapping[str, Any]) -> str:
        """Adds a weight that `recipe` (or its JSON form) computes from weights that are there. Returns
        `name`.
        """
        return self.add_recipes({name: recipe})[0]

    def add_recipes(self, recipes: Mapping[str, Recipe | Mapping[str, Any]]) -> list[str]:
        """Adds recipes that may read each other, in any order. A name whose equal recipe is there already
        is skipped.

        Raises `WeightError` when a name is taken by something else, an input is missing or recipes form a
        cycle.
        """
        parsed = {n: r if isinstance(r, Recipe) else Recipe.from_json(r) for n, r in recipes.items()}
        new = {n: r for n, r in parsed.items() if not self._has_equal_recipe(n, r)}
        for name in _topological(new):
            recipe = new[name]
            missing = [i for i in recipe.inputs() if i not in self._entries]
            if missing:
                raise WeightError(f"the recipe of weight '{name}' reads '{missing[0]}', which is not in the store")
            info = WeightInfo(recipe.type.shape, recipe.type.dtype)
            self._insert(name, _Entry(info, recipe=recipe))
        return list(parsed)

    def _has_equal_recipe(self, name: str, recipe: Recipe) -> bool:
        entry = self._entries.get(name)
        return entry is not None and entry.recipe is not None and entry.recipe.digest() == recipe.digest()

    def _insert(self, name: str, entry: _Entry) -> None:
        with self._lock:
            if name in self._entries:
                raise WeightError(f"the store has a weight named '{name}' already")
            self._entries[name] = entry

    def unique_name(self, base: str) -> str:
        """`base`, or `base.1`, `base.2`, ... when that is taken."""
        name, number = base, 0
        while name in self._entries:
            number += 1
            name = f"{base}.{number}"
        return name

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def names(self) -> list[str]:
        """All names, in order of addition."""
        return list(self._entries)

    def info(self, name: str) -> WeightInfo:
        """Shape and dtype, without evaluating anything."""
        return self._entry(name).info

    def recipe(self, name: str) -> Recipe | None:
        """The recipe of a weight that has one."""
        return self._entry(name).recipe

    def _entry(self, name: str) -> _Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise WeightError(f"no weight named '{name}' in the store") from None

    # -- evaluation
    # ------------------------------------------------------------------------------------------------

    def get(self, name: str) -> np.ndarray:
        """The array of a weight, read-only by convention. Raises `WeightError` when it cannot be had. Threads evaluate
        side by side; two that want the same weight at once may both do it.
        """
        with self._lock:
            if name in self._cache:
                self._cache.move_to_end(name)
                return self._cache[name]
        array = self.evaluate(name)
        if self._entry(name).array is None:
            with self._lock:
                self._remember(name, array)
        return array

    def evaluate(self, name: str) -> np.ndarray:
        """As `get`, for somebody who wants it once: the array is not kept."""
        entry = self._entry(name)
        return entry.array if entry.array is not None else _checked(name, self._make(name, entry), entry.info)

    def _make(self, name: str, entry: _Entry) -> np.ndarray:
        active: list[str] = self._evaluating.__dict__.setdefault("names", [])
        if name in active:
            raise WeightError(f"the recipe of weight '{name}' reads itself: {' -> '.join(active)}")
        active.append(name)
        try:
            if entry.make is not None:
                return np.asarray(entry.make())
            assert entry.recipe is not None
            return entry.recipe.evaluate(self.get)
        except InterpError as error:
            node = f"node '{entry.recipe.node}': " if entry.recipe and entry.recipe.node else ""
            raise WeightError(f"{node}the recipe of weight '{name}' fails: {error}") from error
        finally:
            active.pop()

    def _remember(self, name: str, array: np.ndarray) -> None:
        if array.nbytes > self._cache_bytes:
            return
        self._cache[name] = array
        self._cache.move_to_end(name)
        total = sum(a.nbytes for a in self._cache.values())
        while total > self._cache_bytes:
            total -= self._cache.popitem(last=False)[1].nbytes

    def hash(self, name: str) -> str:
        """Content hash: of type and bytes, or for a recipe of its text and its inputs' hashes (nothing
        is evaluated).
        """
        if name not in self._hashes:
            entry = self._entry(name)
            digest = hashlib.blake2b(f"{entry.info.dtype}{list(entry.info.shape)}".encode(), digest_size=32)
            if entry.recipe is not None:
                digest.update(entry.recipe.digest().encode())
                for source in entry.recipe.inputs():
                    digest.update(self.hash(source).encode())
            else:
                for chunk in byte_chunks(self.get(name)):
                    digest.update(chunk)
            self._hashes[name] = digest.hexdigest()
        return self._hashes[name]

    # -- files ---------------------------------------------------------------------------------------
    # --------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a `.weights` file: arrays as safetensors, recipes as metadata. One array is in memory at
        a time.

        The file appears whole or not at all, and is the same for the same contents in any order of addition.
        """
        data = sorted(name for name, entry in self._entries.items() if entry.recipe is None)
        tensors: list[Tensor] = []
        end = 0
        for name in data:
            info = self.info(name)
            tensors.append(Tensor(name, info.dtype, info.shape, end, end + info.nbytes))
            end += info.nbytes
        recipes = {n: e.recipe.to_json() for n, e in sorted(self._entries.items()) if e.recipe is not None}
        metadata = {"mlc.store": self.key, "mlc.recipes": json.dumps(recipes, separators=(",", ":"))}
        digest = hashlib.blake2b(digest_size=32)
        with atomic_file(path) as file:
            file.write(header_bytes(tensors, metadata | {DIGEST: "0" * 64}))
            for name in data:
                for chunk in byte_chunks(self.get(name)):
                    digest.update(chunk)
                    file.write(chunk)
            file.seek(0)
            file.write(header_bytes(tensors, metadata | {DIGEST: digest.hexdigest()}))

    @staticmethod
    def load(path: str | os.PathLike[str], cache_bytes: int = DEFAULT_CACHE_BYTES, *, check: bool = False) -> Store:
        """The store that `save` wrote, or one of the tensors of any safetensors file; arrays are mapped,
        not read, unless `check` asks whether they are undamaged.

        Raises `FormatError` (a `ValueError`) for a malformed file, `OSError` for one that cannot be read.
        """
        file = SafetensorsFile(path)
        if check:
            file.check()
        store = Store(file.metadata.get("mlc.store", ""), cache_bytes)
        for name, tensor in file.tensors.items():
            store.add(name, file.array(name), tensor.shape, tensor.dtype)
        store.add_recipes(json.loads(file.metadata.get("mlc.recipes", "{}")))
        return store


def _checked(name: str, array: np.ndarray, info: WeightInfo) -> np.ndarray:
    """`array` with the bits of its declared type. Raises `WeightError` when shape or dtype differ."""
    dtype = numpy_dtype(info.dtype)
    if array.dtype == unsigned_dtype(dtype):
        array = signed_view(array)
    if array.shape != info.shape or array.dtype != dtype:
        raise WeightError(
            f"weight '{name}' is {array.dtype}{list(array.shape)}, its type says {info.dtype}{list(info.shape)}"
        )
    return array


def _topological(recipes: Mapping[str, Recipe]) -> list[str]:
    """Names in an order in which each comes after those that its recipe reads. Raises `WeightError` on
    a cycle.
    """
    order: list[str] = []
    state: dict[str, bool] = {}
    for root in recipes:
        stack: list[tuple[str, Iterator[str]]] = [] if root in state else [(root, iter(recipes[root].inputs()))]
        if stack:
            state[root] = False
        while stack:
            name, rest = stack[-1]
            child = next((c for c in rest if c in recipes and state.get(c) is not True), None)
            if child is None:
                stack.pop()
                state[name] = True
                order.append(name)
            elif child in state:
                raise WeightError(f"the recipes of '{name}' and '{child}' read each other")
            else:
                state[child] = False
                stack.append((child, iter(recipes[child].inputs())))
    return order
