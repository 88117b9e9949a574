"""Programs that have been lowered before, found by what was imported.

What all phases make of a model depends on the imported module, the model's weights, the passes and their options, and
the compiler. The hash of all that is the key of an entry with the lowered module, the keys of its objects and the hash
of its weights. A second compilation of the same model imports it, makes the weights and links.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .cache import ObjectCache
from .object import CompiledUnit, cached_unit
from .version import source_version, toolchain_version

_LENGTH_BYTES = 8  # of the description at the beginning of an entry


@dataclass(frozen=True)
class KnownProgram:
    """A lowered program: the bytecode of its module, its objects by the names of their modules, and the hash of its
    weight image.
    """

    module: bytes
    objects: Mapping[str, CompiledUnit]
    weights: bytes


class KnownPrograms:
    """Looks up, or makes known, the program that `passes` make of the module whose text is `imported`."""

    def __init__(self, cache: ObjectCache, imported: str, passes: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._cache = cache
        self._sources = source_version(lately=True)
        phases = json.dumps([[phase, list(names)] for phase, names in passes])
        self._parts = (toolchain_version(), self._sources or "", phases, imported)

    def has_module(self) -> bool:
        """Whether a program of the same imported module is known, with whatever weights: to be asked before the hash of
        the weights is waited for.
        """
        return self._sources is not None and self._cache.get(self._key("imported")) is not None

    def find(self, source: str) -> KnownProgram | None:
        """The program whose weights come from a source with the hash `source`; None unless all of it is there."""
        entry = self._cache.get(self._key("program", source)) if self._sources is not None else None
        if entry is None:
            return None
        size = int.from_bytes(entry[:_LENGTH_BYTES], "little")
        described = json.loads(entry[_LENGTH_BYTES : _LENGTH_BYTES + size])
        objects = {}
        for name, key, is_kernel in described["objects"]:
            unit = cached_unit(self._cache, name, key, is_kernel)
            if unit is None:
                return None
            objects[name] = unit
        return KnownProgram(entry[_LENGTH_BYTES + size :], objects, bytes.fromhex(described["weights"]))

    def remember(
        self, source: str, module: Any, objects: Iterable[CompiledUnit], kernels: set[str], weights: bytes
    ) -> None:
        """Makes the lowered `module` known with its `objects`, those of `kernels` among them, and the hash of its
        weight image, unless the compiler's sources have changed since the beginning.
        """
        if self._sources is None or source_version() != self._sources:
            return
        rows = [[unit.name, unit.key, unit.name in kernels] for unit in objects]
        described = json.dumps({"objects": rows, "weights": weights.hex()}).encode()
        entry = io.BytesIO()
        entry.write(len(described).to_bytes(_LENGTH_BYTES, "little") + described)
        module.operation.write_bytecode(entry)
        self._cache.put(self._key("program", source), entry.getvalue())
        self._cache.put(self._key("imported"), b"")

    def _key(self, kind: str, *more: str) -> str:
        return ObjectCache.key(kind, *self._parts, *more)
