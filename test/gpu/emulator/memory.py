"""Memory of the machine. Every access must lie within a buffer and be aligned; what is read of the GPU's memory must have
been written."""

from __future__ import annotations

import functools

import numpy as np

Array = np.ndarray
_HOLE, _EMPTY, _WRITTEN, _CONSTANT = range(4)  # states of a byte
BASE = 0x7_0000_0000
_GAP = 256
_WIDEST = 16  # bytes of an access


class EmulationError(Exception):
    """What a GPU would stop at, or do something undefined with."""


class Bytes:
    """Bytes from address `base` on."""

    def __init__(self, base: int, size: int) -> None:
        self.base = base
        self.data = np.full(size, 0xFF, np.uint8)

    def places(self, addresses: Array, size: int, what: str, alignment: int | None = None) -> Array:
        """Where the bytes of accesses lie in `data`: a row for each."""
        first = addresses.astype(np.int64, copy=False) - self.base
        if first.min() < 0 or first.max() + size > self.data.size:
            bad = addresses[(first < 0) | (first + size > self.data.size)][0]
            raise EmulationError(f"{what} {size} bytes at {int(bad):#x}, where nothing is")
        odd = first % (alignment or size)
        if odd.any():
            raise EmulationError(f"{what} {size} bytes at {int(addresses[odd != 0][0]):#x}, which is not aligned")
        return first[:, None] + _counted(size)

    def read(self, addresses: Array, size: int, alignment: int | None = None) -> Array:
        """`size` bytes from each of the `addresses` on: a matrix."""
        if not addresses.size:
            return np.zeros((0, size), np.uint8)
        places = self.places(addresses, size, "reads", alignment)
        self.check_read(places, addresses)
        return self.data[places]

    def write(self, addresses: Array, values: Array, alignment: int | None = None) -> None:
        """Writes a row of the matrix `values` to each of the `addresses`, in their order."""
        if not addresses.size:
            return
        places = self.places(addresses, values.shape[1], "writes", alignment)
        self.check_write(places, addresses)
        self.data[places] = values

    def check_read(self, places: Array, addresses: Array) -> None:
        """Raises EmulationError where nobody may read, or nobody has written."""

    def check_write(self, places: Array, addresses: Array) -> None:
        """Raises EmulationError where nobody may write; notes what is written."""


@functools.cache
def _counted(size: int) -> Array:
    return np.arange(size)


class Memory(Bytes):
    """Memory of the whole GPU: buffers with gaps between them."""

    def __init__(self, size: int) -> None:
        super().__init__(BASE, size)
        self.state = np.full(size, _HOLE, np.uint8)
        self.end = _GAP

    def check_read(self, places: Array, addresses: Array) -> None:
        state = self.state[places]
        for wrong, said in ((_HOLE, "is in no buffer"), (_EMPTY, "nobody has written")):
            if (state == wrong).any():
                raise EmulationError(f"reads at {int(addresses[(state == wrong).any(1)][0]):#x}, which {said}")

    def check_write(self, places: Array, addresses: Array) -> None:
        state = self.state[places]
        wrong = (state == _HOLE) | (state == _CONSTANT)
        if wrong.any():
            at = int(addresses[wrong.any(1)][0])
            raise EmulationError(f"writes at {at:#x}, which is an input or in no buffer")
        self.state[places] = _WRITTEN

    def allocate(self, content: bytes | int, *, constant: bool = False, alignment: int = 16) -> int:
        """The address of a new buffer with `content`, or of so many bytes that nobody has written. It is a multiple of
        `alignment` and of no more."""
        size = content if isinstance(content, int) else len(content)
        start = -(-self.end // (2 * alignment)) * 2 * alignment + alignment
        self.end = start + size + _GAP
        if self.end > self.data.size:
            raise MemoryError(f"{self.end} bytes of {self.data.size}")
        place = slice(start, start + size)
        self.state[place] = _EMPTY
        if not isinstance(content, int):
            self.data[place] = np.frombuffer(content, np.uint8)
            self.state[place] = _CONSTANT if constant else _WRITTEN
        return self.base + start

    def workspace(self, zeros: int, size: int) -> int:
        """The address of a new buffer of `size` bytes, of which the first `zeros` are 0."""
        address = self.allocate(max(size, zeros), alignment=256)
        self.write(np.array([address]), np.zeros((1, zeros), np.uint8), 256)
        return address

    def copy(self, target: int, source: int, size: int) -> None:
        """Copies a buffer."""
        here, there = target - self.base, source - self.base
        self.data[here : here + size] = self.data[there : there + size]
        self.state[here : here + size] = _WRITTEN

    def contents(self, address: int, size: int) -> bytes:
        """What a buffer has; ValueError where nobody has written some of it."""
        place = slice(address - self.base, address - self.base + size)
        missing = int((self.state[place] == _EMPTY).sum())
        if missing:
            raise ValueError(f"nobody has written {missing} of {size} bytes")
        return self.data[place].tobytes()


class SharedMemory(Bytes):
    """Shared memory of a block. What nobody has written is there, and no number."""

    ADDRESS = 0x400

    def __init__(self, size: int) -> None:
        super().__init__(self.ADDRESS, -(-size // _WIDEST) * _WIDEST)  # wide loads may reach over what is used
