"""Arrays for results, in memory of results that nobody has any more.

Memory that the system gives out anew costs a fault and zeros for each page, which is a fifth of the time that a decoder
with caches of some megabytes takes for a token; what the C library keeps of freed memory is bounded. The runtime does
the same for results whose shapes only the run can tell (`results.h`; decision 025).
"""

from __future__ import annotations

import ctypes
import math
from sys import getrefcount
from typing import Any

import numpy as np

PAGE = 4096  # bytes of a page of memory
_RUNS = 2  # whose memory is kept: a caller may hand the results of the last one in, as a decoder's caches
_MOST = 2  # times the size of a result that its memory may have
_ROOM = 8  # memory is larger by this part than what it is made for: such caches grow

_Blocks = list[tuple[int, np.ndarray]]

# The address of a buffer: a third of the time that `__array_interface__` takes, but only of memory that may be written,
# has a size, and a type that C knows. Here by their names, as every attribute counts.
address: Any = ctypes.addressof
as_buffer: Any = ctypes.c_char.from_buffer


def _references(blocks: _Blocks, n: int) -> int:
    return getrefcount(blocks[n][1])


_UNUSED = _references([(0, np.empty(0, np.uint8))], 0)
"""References to memory that nobody else has: that of a list, and what this version of Python counts for asking."""


class ResultMemory:
    """The memory of one entry's large results in one context. Not thread-safe, as those are not; but any thread may
    drop a result.

    An array refers to its memory as its base, and so do all views of it: what has no other reference is free.
    """

    def __init__(self) -> None:
        self._run = 0
        self._blocks: _Blocks = []  # by the last run that used them

    def begin(self) -> None:
        """A run begins."""
        self._run += 1
        while self._blocks and self._blocks[0][0] < self._run - _RUNS:
            del self._blocks[0]

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """An array without contents that begins at a page."""
        size = math.prod(shape) * dtype.itemsize
        memory = self._unused(size)
        if memory is None:
            memory = np.empty(size + size // _ROOM + PAGE, np.uint8)
        self._blocks.append((self._run, memory))
        return np.ndarray(shape, dtype, memory, -address(as_buffer(memory)) % PAGE)

    def _unused(self, size: int) -> np.ndarray | None:
        for n in range(len(self._blocks)):
            if _references(self._blocks, n) == _UNUSED:
                memory = self._blocks[n][1]
                if size <= memory.size - PAGE <= _MOST * size:
                    del self._blocks[n]
                    return memory
        return None
