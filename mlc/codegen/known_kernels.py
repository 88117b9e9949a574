"""Objects of kernels that have been compiled before, found by what the kernels were before their expansion.

A template makes thousands of operations of a few; printing and hashing those is most of what a compilation costs whose
objects are all cached. So a kernel is looked up by its scheduled form too. An entry under that key says nothing but the
key of the object, and depends on the sources of the compiler: whoever edits a template gets its new expansion, and
the old object only if that is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .cache import ObjectCache
from .object import CompiledUnit, Target, cached_unit
from .symbols import ANONYMOUS, can_be_anonymous, renamed
from .version import source_version, toolchain_version


class KnownKernels:
    """The kernels of one program that need neither expansion nor code generation, by name, and how the others become
    known. `passes` are what will expand them.
    """

    def __init__(self, cache: ObjectCache, target: Target, passes: Sequence[str]) -> None:
        self.objects: dict[str, CompiledUnit] = {}
        self._cache = cache
        self._context = (target.text(), ",".join(passes))
        self._keys: dict[str, str] = {}

    def take(self, program: Any) -> None:
        """Looks up the scheduled kernels of the module operation `program`. Those that are known lose their functions:
        their modules stay, as the host refers to them.
        """
        sources = source_version(lately=True)
        if sources is None:
            return
        for view in program.regions[0].blocks[0].operations:
            kernel = view.operation
            if "mlc.kernel" not in kernel.attributes or "mlc.schedule" not in kernel.attributes:
                continue
            name = kernel.attributes["sym_name"].value
            if not can_be_anonymous(name):
                continue
            # (the phase before has verified it)
            text = renamed(kernel.get_asm(use_local_scope=True, assume_verified=True), name, ANONYMOUS)
            key = ObjectCache.key("scheduled", toolchain_version(), sources, *self._context, text)
            compiled = self._find(name, key)
            if compiled is None:
                self._keys[name] = key
                continue
            self.objects[name] = compiled
            for function in list(kernel.regions[0].blocks[0].operations):
                function.operation.erase()

    def _find(self, name: str, key: str) -> CompiledUnit | None:
        entry = self._cache.get(key)
        return None if entry is None else cached_unit(self._cache, name, entry.decode("ascii"))

    def remember(self, compiled: Iterable[CompiledUnit]) -> None:
        """Makes known what has been compiled, unless the compiler's sources have changed since `take`."""
        if not self._keys or source_version() is None:
            return
        for unit in compiled:
            if unit.name in self._keys:
                self._cache.put(self._keys[unit.name], unit.key.encode("ascii"))
