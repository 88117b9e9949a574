"""A bounded, content-addressed cache of compiled objects on disk, safe for concurrent writers.

The folder is `MLC_CACHE_DIR`, or `mlc` under the user's cache folder. Every file is written beside its
final name and renamed, so a reader sees a whole object or none; the least recently used files go when the
folder outgrows its limit. A folder that cannot be written only costs the reuse, never the compilation.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from pathlib import Path

DEFAULT_LIMIT = 2 << 30
DIGEST_BYTES = 16  # at the end of each file
_SHARE = 16  # of the limit, which may be written before somebody looks whether it is kept
_UNIT = 1 << 16
_BLOCK = 1 << 12  # what even the smallest file takes
_ABANDONED = 3600  # seconds after which a file that was never finished is removed


def default_folder() -> Path:
    """The cache folder that this process uses unless told otherwise."""
    chosen = os.environ.get("MLC_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mlc"


def default_limit() -> int:
    """The size in bytes that the cache may have: `MLC_CACHE_LIMIT`, else 2 GB. Raises OSError for a limit that is no
    number.
    """
    text = os.environ.get("MLC_CACHE_LIMIT", "")
    if text and not text.isdecimal():
        raise OSError(f"MLC_CACHE_LIMIT is '{text}'; it must be a number of bytes")
    return int(text) if text else DEFAULT_LIMIT


class ObjectCache:
    """Objects by content hash: `get(key) -> bytes | None`, `put(key, data)`, `trim()`."""

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        self.folder = folder if folder is not None else default_folder()
        self.limit = limit if limit is not None else default_limit()
        self.hits = 0
        self.misses = 0
        self._written = 0

    @staticmethod
    def key(*parts: str) -> str:
        """The content hash of `parts`; the boundaries between parts count."""
        digest = hashlib.blake2b(digest_size=32)
        for part in parts:
            data = part.encode()
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
        return digest.hexdigest()

    def _path(self, key: str) -> Path:
        return self.folder / "objects" / key[:2] / f"{key[2:]}.o"

    def get(self, key: str) -> bytes | None:
        """The object stored under `key`, or None; a hit makes it the most recently used one. A damaged file counts as
        none.
        """
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        data, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
        if _digest(data) != digest:
            self.misses += 1
            return None
        self.hits += 1
        with contextlib.suppress(OSError):  # somebody else's folder
            os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Stores `data` under `key`; an unwritable folder is ignored."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.write(_digest(data))
            os.replace(temporary, path)
            self._written += len(data)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def trim(self) -> None:
        """Removes the least recently used objects until the folder is within its limit; called once a
        compilation. Looking through the folder takes longer than a small compilation, so it waits until a
        sixteenth of the limit has been written, by whomever: the file `written` has a byte for every 64 kB.
        """
        if not self._written:
            return
        from filelock import FileLock, Timeout

        written, self._written = -(-self._written // _UNIT), 0
        journal = self.folder / "written"
        try:
            with open(journal, "ab") as file:
                file.write(bytes(written))
                file.flush()
                if file.tell() * _UNIT <= self.limit // _SHARE:
                    return
            with FileLock(self.folder / "lock", timeout=5):
                self._evict(self.limit - self.limit // _SHARE)
                os.truncate(journal, 0)
        except (OSError, Timeout):
            return

    def _evict(self, limit: int) -> None:
        entries: list[tuple[float, int, Path]] = []
        for path in (self.folder / "objects").glob("*/*"):
            try:
                status = path.stat()
            except OSError:
                continue
            if path.suffix == ".o":
                entries.append((status.st_mtime, -(-status.st_size // _BLOCK) * _BLOCK, path))
            elif status.st_mtime < time.time() - _ABANDONED:
                path.unlink(missing_ok=True)  # whoever wrote it was killed
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= limit:
                return
            path.unlink(missing_ok=True)
            total -= size


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()
