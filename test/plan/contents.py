"""What tensors hold, as an interpreter that computes nothing sees it: which byte of which value.

Every byte of memory is a word of 64 bits. Byte `i` of a value is `base + i`, where the base is a hash of how the value
came about: the name of a weight, or a kernel and what it read. So a byte that was overwritten, or never written, or taken
from another place, is another word, and what is computed from it has another hash.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mlir.ir as ir
import numpy as np

UNWRITTEN = np.uint64(0)
_SHOWN = 4096  # elements of a constant whose values the host may ask for


class PlanError(AssertionError):
    """A program of buffers does not do what the program of tensors says, or touches what it must not."""


class CannotFollowError(Exception):
    """The interpreter does not know an operation, or a size depends on numbers that it does not compute."""


@dataclass
class Region:
    """A tensor or a buffer: `nbytes` bytes of `memory` from `offset`, with elements of `item` bytes."""

    memory: Memory
    offset: int
    shape: tuple[int, ...]
    item: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.item

    def words(self) -> np.ndarray:
        """The words of all bytes; writing to them writes to the memory."""
        words = self.memory.words()
        if self.offset < 0 or self.offset + self.nbytes > len(words):
            raise PlanError(f"{self} ends behind its buffer")
        return words[self.offset : self.offset + self.nbytes]

    def digest(self) -> str:
        """The hash of what is there; one that is quick to find for a whole value."""
        words = self.words()
        if not len(words):
            return "nothing"
        if words[0] != UNWRITTEN and (words - _counted(len(words)) == words[0]).all():
            return f"{words[0]}+{len(words)}"
        if (words == UNWRITTEN).any():
            raise PlanError(
                f"{self} is read, but {np.count_nonzero(words == UNWRITTEN)} of its bytes were never written"
            )
        return hashlib.sha256(words.tobytes()).hexdigest()

    def write(self, source: str) -> None:
        """Makes this the value that came about as `source` says."""
        if self.memory.read_only:
            raise PlanError(f"{self} is written")
        self.words()[:] = value_words(source, self.nbytes)

    def overlaps(self, other: Region) -> bool:
        """Whether the two share bytes, but are not the same ones."""
        if self.memory is not other.memory or not self.nbytes or not other.nbytes:
            return False
        mine, theirs = (self.offset, self.offset + self.nbytes), (other.offset, other.offset + other.nbytes)
        return mine != theirs and mine[0] < theirs[1] and theirs[0] < mine[1]

    def __str__(self) -> str:
        return f"{self.memory.name} [{self.offset}, {self.offset + self.nbytes})"


@dataclass
class Memory:
    """Something allocated; `space` is who can read it. The words of a `value` are made when they are first asked for."""

    name: str
    nbytes: int
    space: str = "host"
    value: str | None = None
    read_only: bool = False
    _words: np.ndarray | None = field(default=None, repr=False)

    def words(self) -> np.ndarray:
        if self._words is None:
            self._words = (
                np.zeros(self.nbytes, np.uint64) if self.value is None else value_words(self.value, self.nbytes)
            )
        return self._words


def base_of(source: str) -> np.uint64:
    """The word of the first byte of the value that came about as `source` says."""
    return np.uint64(int.from_bytes(hashlib.sha256(source.encode()).digest()[:8], "little") | 1 << 63)


def value_words(source: str, nbytes: int) -> np.ndarray:
    """The words of a whole value."""
    return base_of(source) + _counted(nbytes)


def _counted(number: int) -> np.ndarray:
    """0, 1, 2, … as words, which are not to be written: the beginning of the longest that was wanted."""
    if len(_longest[0]) < number:
        _longest[0] = np.arange(number, dtype=np.uint64)
    return _longest[0][:number]


_longest = [np.arange(0, dtype=np.uint64)]


class Numbers:
    """Integers that the host reads from tensors: those of constants are what they are, others any small ones.

    What a number is depends on its word only, so that both programs take the same way.
    """

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def constant(self, attribute: ir.Attribute, shape: Sequence[int], item: int) -> str:
        """Takes note of a constant's elements. Gives how it came about."""
        array = _elements(attribute)
        if array is None:
            return "constant " + str(attribute).rpartition(" : ")[0]
        source = f"constant {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()} {list(shape)}"
        if array.dtype.kind in "iub" and math.prod(shape) <= _SHOWN:
            flat = np.broadcast_to(array.reshape(()) if array.size == 1 else array, shape).reshape(-1)
            first = int(base_of(source))
            for number, value in enumerate(flat.tolist()):
                self._known[(first + number * item) % 2**64] = int(value)
        return source

    def scalar(self, value: Any) -> str:
        """How a number came about that the host has stored."""
        source = f"scalar {value}"
        self._known[int(base_of(source))] = value
        return source

    def at(self, region: Region, index: Sequence[int]) -> int:
        """The element `index`. Raises PlanError where none was written."""
        if any(not 0 <= i < n for i, n in zip(index, region.shape, strict=True)):
            raise CannotFollowError(f"element {list(index)} of {list(region.shape)}")
        flat = int(np.ravel_multi_index(tuple(index), region.shape)) if index else 0
        element = Region(region.memory, region.offset + flat * region.item, (1,), region.item)
        element.digest()
        word = int(element.words()[0])
        return self._known.get(word, word // 97 % 3 + 1)


def _elements(attribute: ir.Attribute) -> np.ndarray | None:
    """The elements of a dense constant, booleans as bytes; None for kinds of numbers that NumPy does not have."""
    if "xi1>" in str(attribute.type) or str(attribute.type) == "tensor<i1>":
        return np.array(attribute).astype(np.int8)
    try:
        return np.array(attribute)
    except (TypeError, ValueError, RuntimeError):
        return None
