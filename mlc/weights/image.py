"""The weight image: all weights that the compiled code reads, at aligned offsets in one block of bytes."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np

from mlc.weights.safetensors import Tensor, atomic_file, byte_chunks, header_bytes
from mlc.weights.store import Store, WeightError

ALIGNMENT = 64
_PIECE = 1 << 22
_SCRATCH = threading.local()
_ZEROS = bytes(1 << 16)


class Digest(Protocol):
    """A hash in the making, as `hashlib` has them."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Appends `data`."""

    def digest(self) -> bytes:
        """The hash."""


@dataclass(frozen=True)
class Placement:
    """One weight of the image: `size` bytes at `offset`."""

    name: str
    offset: int
    size: int


class WeightImage:
    """A layout of weights of a store, written out piece by piece: few weights are in memory at a time. One is evaluated
    while the one before it is hashed and written.

    `placements` are in ascending order and do not overlap; `size` may exceed the last one's end.
    """

    def __init__(self, store: Store, placements: Iterable[Placement], size: int | None = None) -> None:
        self.store = store
        self.placements = list(placements)
        end = 0
        for place in self.placements:
            if place.offset < end:
                raise WeightError(f"weight '{place.name}' overlaps the one before it in the weight image")
            if store.info(place.name).nbytes != place.size:
                have = store.info(place.name).nbytes
                raise WeightError(f"weight '{place.name}' has {have} bytes, the weight image has room for {place.size}")
            end = place.offset + place.size
        self.size = _aligned(end) if size is None else size
        if self.size < end:
            raise WeightError(f"the weight image of {self.size} bytes is too small for {end} bytes of weights")

    @staticmethod
    def of(store: Store, names: Iterable[str]) -> WeightImage:
        """The weights `names`, each once, in that order, at multiples of 64 bytes."""
        placements, offset = [], 0
        for name in dict.fromkeys(names):
            size = store.info(name).nbytes
            placements.append(Placement(name, offset, size))
            offset = _aligned(offset + size)
        return WeightImage(store, placements)

    def offsets(self) -> dict[str, int]:
        """Offset of each weight."""
        return {place.name: place.offset for place in self.placements}

    def chunks(self) -> Iterator[bytes | memoryview]:
        """All bytes of the image in order, gaps as zeros."""
        at = 0
        for place in self.placements:
            yield from _zeros(place.offset - at)
            yield from byte_chunks(self.store.get(place.name))
            at = place.offset + place.size
        yield from _zeros(self.size - at)

    def fill(self, buffer: np.ndarray, position: int) -> None:
        """Writes the weight `placements[position]` to its place in `buffer`, `size` bytes. Threads may fill a buffer
        together.
        """
        place = self.placements[position]
        array = self.store.evaluate(place.name)
        target = buffer[place.offset : place.offset + place.size].view(array.dtype).reshape(array.shape)
        np.copyto(target, array)

    def write_at(self, file: int, base: int, position: int) -> None:
        """Writes the weight `placements[position]` to its place in the image that begins at `base` of the open file
        number `file`. Threads may write a file together.
        """
        place = self.placements[position]
        at = base + place.offset
        for chunk in _pieces(self.store.evaluate(place.name)):
            while chunk.nbytes:
                done = os.pwrite(file, chunk, at)
                at, chunk = at + done, chunk[done:]

    def hash(self) -> bytes:
        """BLAKE2b-256 of the image (evaluates every weight; `write_to` gives it for nothing)."""
        digest = hashlib.blake2b(digest_size=32)
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.digest()

    def write_to(self, file: BinaryIO, digest: Digest | None = None) -> bytes:
        """Writes the image at the file's position. Returns its BLAKE2b-256, or the hash that `digest` computes."""
        digest = digest or hashlib.blake2b(digest_size=32)
        with ThreadPoolExecutor(1) as evaluator, ThreadPoolExecutor(1) as hasher:
            hashed: deque[Future[None]] = deque()
            for chunk in _ahead(self.chunks(), evaluator):
                hashed.append(hasher.submit(digest.update, chunk))
                file.write(chunk)
                if len(hashed) > 2:
                    hashed.popleft().result()
            for future in hashed:
                future.result()
        return digest.digest()

    def write_safetensors(
        self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None, digest: Digest | None = None
    ) -> bytes:
        """Writes the image as a `.safetensors` file whose data part is the image, and returns its
        BLAKE2b-256, or the hash of another kind that `digest` computes.

        The data begin at a multiple of 4096 bytes. Gaps become tensors of bytes, as the format allows no
        holes.
        """
        with atomic_file(path) as file:
            file.write(self.safetensors_header(metadata))
            return self.write_to(file, digest)

    def safetensors_header(self, metadata: Mapping[str, str] | None = None) -> bytes:
        """What a `.safetensors` file whose data part is the image begins with."""
        tensors: list[Tensor] = []
        end = 0
        for place in self.placements:
            tensors += _gap(len(tensors), end, place.offset)
            info = self.store.info(place.name)
            end = place.offset + place.size
            tensors.append(Tensor(place.name, info.dtype, info.shape, place.offset, end))
        tensors += _gap(len(tensors), end, self.size)
        return header_bytes(tensors, metadata or {})


def _pieces(array: np.ndarray) -> Iterator[memoryview]:
    """The bytes of `array`, row-major; each piece is good until the next one is asked for. What is not in order already
    goes through a small buffer that the thread keeps: memory that the process has not had before costs more than the
    copy.
    """
    if array.flags.c_contiguous:
        yield from byte_chunks(array)
        return
    if not hasattr(_SCRATCH, "buffer"):
        _SCRATCH.buffer = np.empty(_PIECE, np.uint8)
    for part in _parts(array):
        piece = _SCRATCH.buffer[: part.nbytes]
        np.copyto(piece.view(array.dtype).reshape(part.shape), part)
        yield piece.data


def _parts(array: np.ndarray) -> Iterator[np.ndarray]:
    """Views of `array`, row-major, of at most the bytes of a piece."""
    if array.nbytes <= _PIECE:
        yield array
        return
    rows = _PIECE * len(array) // array.nbytes
    for i in range(0, len(array), max(rows, 1)):
        yield from (array[i : i + rows],) if rows else _parts(array[i])


def _ahead(chunks: Iterator[bytes | memoryview], thread: Executor) -> Iterator[bytes | memoryview]:
    """`chunks`, each made by `thread` while the one before it is being used."""
    following = thread.submit(next, chunks, None)
    while (chunk := following.result()) is not None:
        following = thread.submit(next, chunks, None)
        yield chunk


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _zeros(count: int) -> Iterator[bytes]:
    while count > 0:
        yield _ZEROS[: min(count, len(_ZEROS))]
        count -= len(_ZEROS)


def _gap(number: int, begin: int, end: int) -> list[Tensor]:
    return [Tensor(f"__gap.{number}", "i8", (end - begin,), begin, end)] if end > begin else []
