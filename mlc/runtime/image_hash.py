"""The hash of a weight image, as the runtime computes it (mlc/runtime/src/weights.cpp)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

LEAF_BYTES = 1 << 20
DIGEST_BYTES = 32


class ImageHash:
    """BLAKE2b-256 over the BLAKE2b-256 digests of the image's leaves of one MiB, so that threads can share the work.

    Fed with `update` in pieces of any size; `digest()` may be asked for once, at the end.
    """

    def __init__(self) -> None:
        self._leaf = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._room = LEAF_BYTES
        self._root = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def update(self, data: bytes | bytearray | memoryview) -> None:
        """Appends `data`."""
        view = memoryview(data).cast("B")
        while len(view):
            piece, view = view[: self._room], view[self._room :]
            self._leaf.update(piece)
            self._room -= len(piece)
            if not self._room:
                self._close_leaf()

    def digest(self) -> bytes:
        """The 32 bytes of the hash."""
        if self._room < LEAF_BYTES:
            self._close_leaf()
        return self._root.digest()

    def _close_leaf(self) -> None:
        self._root.update(self._leaf.digest())
        self._leaf = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._room = LEAF_BYTES


def hash_image(pieces: Iterable[bytes | bytearray | memoryview]) -> bytes:
    """The hash of the image that `pieces` make up."""
    result = ImageHash()
    for piece in pieces:
        result.update(piece)
    return result.digest()
