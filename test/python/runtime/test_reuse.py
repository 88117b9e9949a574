"""Memory of large results is used again when nobody has them any more, and only then."""

from __future__ import annotations

import numpy as np
import pytest

from mlc.runtime.reuse import PAGE, ResultMemory

FLOAT = np.dtype(np.float32)
ROWS, COLUMNS = 300, 1000


def _run(memory: ResultMemory, rows: int = ROWS) -> np.ndarray:
    memory.begin()
    return memory.array((rows, COLUMNS), FLOAT)


def _place(array: np.ndarray) -> int:
    return int(array.ctypes.data)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.complex64])
@pytest.mark.parametrize("shape", [(1 << 18,), (5, 1 << 18), (1 << 18, 1)], ids=str)
def test_arrays_begin_at_a_page(shape: tuple[int, ...], dtype: type) -> None:
    memory = ResultMemory()
    memory.begin()
    array = memory.array(shape, np.dtype(dtype))
    assert array.shape == shape and array.dtype == dtype and array.flags.carray
    assert _place(array) % PAGE == 0
    array[...] = 3
    assert (array == 3).all()


def test_a_result_that_is_gone_makes_room() -> None:
    memory = ResultMemory()
    first = _run(memory)
    place = _place(first)
    assert _place(_run(memory)) != place  # the first one is still there
    del first
    assert _place(_run(memory)) == place


@pytest.mark.parametrize(
    "view", [lambda a: a[5:8, ::2], lambda a: a.T.reshape(-1, order="F"), memoryview, np.lib.stride_tricks.as_strided,
             lambda a: np.frombuffer(a, np.uint8), np.from_dlpack],
)  # fmt: skip
def test_a_view_keeps_it(view: object) -> None:
    memory = ResultMemory()
    result = _run(memory)
    result[...] = 7
    place, kept = _place(result), view(result)
    before = np.asarray(kept).copy()
    del result
    for _ in range(4):  # for as long as memory is looked at again, and beyond
        new = _run(memory)
        assert _place(new) != place
        new[...] = -1
    assert (np.asarray(kept) == before).all()


def test_results_that_are_handed_in_again() -> None:
    """As a decoder's caches, which grow: the results of the run before are there, those before them are not."""
    memory = ResultMemory()
    old, places = _run(memory), set()
    for step in range(20):
        new = _run(memory, ROWS + step)
        assert not np.shares_memory(old, new)
        places.add(_place(new))
        old = new
    assert len(places) <= 3


def test_memory_of_another_size_is_not_taken() -> None:
    memory = ResultMemory()
    place = _place(_run(memory, 3 * ROWS))
    assert _place(_run(memory, ROWS)) != place


def test_memory_that_is_not_used_goes() -> None:
    memory = ResultMemory()
    held = [_run(memory) for _ in range(8)]
    held.clear()
    for _ in range(3):
        small = _run(memory, ROWS // 8)
        del small
    assert [block.size < ROWS * COLUMNS for _, block in memory._blocks] == [True]
