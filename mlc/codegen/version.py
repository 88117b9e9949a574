"""Which compiler this is, for the keys of its caches: its native module, the toolchain below it, its Python sources.

An entry of a cache must never outlive a change of what made it, also not while somebody edits a template.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import time
from functools import cache
from pathlib import Path

import mlc

_ROOT = Path(__file__).parent.parent
_LIBRARIES = ("mlir/_mlir_libs/libMLIRPythonCAPI.so", "llvm/lib/libLLVM.so")
Stamps = tuple[tuple[str, int, int], ...]


def _stamps() -> Stamps:
    """Path, time of change and size of every file of the compiler that decides something, Python and what was measured,
    in the order of the paths."""
    found: list[tuple[str, int, int]] = []
    folders = [str(_ROOT)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".json")):
                    status = entry.stat()
                    found.append((entry.path, status.st_mtime_ns, status.st_size))
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return tuple(sorted(found))


# Taken when the compiler is loaded: what this process runs is at most this old.
_LOADED = _stamps()
_RECENT = 1.0  # seconds
_seen = -math.inf
"""When (`time.monotonic`) the sources were last seen to be those that were loaded."""


@cache
def toolchain_version() -> str:
    """The version, with a hash of the native module and of which MLIR and LLVM it is linked to."""
    from mlc import _native

    digest = hashlib.blake2b(digest_size=8)
    native = Path(_native.__file__)
    with io.FileIO(native) as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    import mlir

    packages = Path(next(iter(mlir.__path__))).parent
    for library in (packages / name for name in _LIBRARIES):
        if library.is_file():
            status = library.stat()
            digest.update(f"{library.name} {status.st_size} {status.st_mtime_ns}".encode())
    return f"{mlc.__version__}-{digest.hexdigest()}"


def source_version(*, lately: bool = False) -> str | None:
    """A hash of the Python sources; None once one has changed, as nobody knows then which of them this process runs.

    With `lately` the answer may be a second old, which is enough for what is looked up, not for what becomes known:
    to ask for the state of every file is a tenth of the compilation of a small model.
    """
    global _seen
    now = time.monotonic()
    if lately and now - _seen < _RECENT:
        return _source_hash()
    if _stamps() != _LOADED:
        _seen = -math.inf
        return None
    _seen = now
    return _source_hash()


@cache
def _source_hash() -> str | None:
    digest = hashlib.blake2b(digest_size=16)
    for path, _, size in _LOADED:
        try:
            content = Path(path).read_bytes()
        except OSError:
            return None
        digest.update(f"{os.path.relpath(path, _ROOT)} {size}\n".encode())
        digest.update(content)
    return digest.hexdigest() if _stamps() == _LOADED else None
