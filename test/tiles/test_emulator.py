"""The emulator of matrix tiles: every instruction against NumPy, bit by bit, every way to write an address, every fault.
On a machine that has tiles these are asked instead, and show that what is expected here is what they do."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tiles.emulated import INSTRUCTIONS, Tiles, are_here, build

# rows, columns, and depth in elements of four bytes
SHAPES = [(16, 16, 16), (1, 1, 1), (16, 1, 16), (1, 16, 3), (5, 7, 11), (3, 16, 16), (13, 2, 1), (8, 12, 16)]
INTEGERS = {
    "tdpbssd": (np.int8, np.int8),
    "tdpbsud": (np.int8, np.uint8),
    "tdpbusd": (np.uint8, np.int8),
    "tdpbuud": (np.uint8, np.uint8),
}
COPIES = [
    *("plain", "scale_8", "scale_4_r9", "scale_2_r12", "base_r12", "base_r13", "base_and_index"),
    *("near", "near_below", "far", "far_below"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, tile_library: Path) -> Path:
    """The functions of `instructions.c`."""
    del tile_library  # skips where they cannot run
    flags = ("-O1", "-mavx", "-mamx-tile", "-mamx-bf16", "-mamx-int8")
    return build("instructions.c", tmp_path_factory.mktemp("instructions") / "instructions.so", *flags)


@pytest.fixture
def functions(library: Path, tiles: Tiles) -> ctypes.CDLL:
    del tiles  # on for the time of the test
    return ctypes.CDLL(str(library))


def configuration(tiles: Sequence[tuple[int, int]], **changes: int) -> bytes:
    """64 bytes that give tiles rows and bytes a row, in order; `changes` puts values at `b<byte>`."""
    data = bytearray(64)
    data[0] = 1
    for number, (rows, colsb) in enumerate(tiles):
        data[16 + 2 * number : 18 + 2 * number] = colsb.to_bytes(2, "little")
        data[48 + number] = rows
    for place, value in changes.items():
        data[int(place[1:])] = value
    return bytes(data)


def for_product(rows: int, columns: int, depth: int) -> bytes:
    """Tiles 0, 1 and 2 for C, A and B."""
    return configuration([(rows, 4 * columns), (rows, 4 * depth), (depth, 4 * columns)])


def strided(array: np.ndarray, stride: int) -> np.ndarray:
    """A copy of a matrix whose rows are `stride` bytes apart."""
    raw = np.full((array.shape[0], stride), 0xA5, np.uint8)
    copy = np.ndarray(array.shape, array.dtype, raw, strides=(stride, array.itemsize))
    copy[:] = array
    return copy


def call(function: ctypes._CFuncPtr, *arrays: np.ndarray) -> int:
    """Calls a function of pointers and strides, each of which belongs to a matrix."""
    arguments: list[object] = []
    for array in arrays:
        arguments += [ctypes.c_void_p(array.ctypes.data), ctypes.c_long(array.strides[0])]
    return int(function(*arguments))


def four(b: np.ndarray, size: int) -> np.ndarray:
    """A matrix [depth, columns] as the instructions want it: `size` elements of a column side by side."""
    depth, columns = b.shape
    return np.ascontiguousarray(b.reshape(depth // size, size, columns).swapaxes(1, 2)).reshape(depth // size, -1)


def fused(a: np.ndarray, b: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """`a * b + sums` of float32 with one rounding; right where float64 holds the exact sum, as it does here."""
    return (a.astype(np.float64) * b + sums).astype(np.float32)


def product_of_pairs(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What `tdpbf16ps` computes of float32 [rows, columns], bfloat16 [rows, 2 depth] and [2 depth, columns]."""
    sums = np.zeros((2, *c.shape), np.float32)
    for k in range(a.shape[1]):
        sums[k % 2] = fused(a[:, k : k + 1].astype(np.float32), b[k : k + 1].astype(np.float32), sums[k % 2])
    return c + (sums[0] + sums[1])


def floats(rng: np.random.Generator, shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Numbers of both signs between 2^-4 and 2^4, so that the exact sums of their products fit into float64."""
    return (rng.choice([-1, 1], shape) * 2 ** rng.uniform(-4, 4, shape)).astype(dtype)


def operands(rng: np.random.Generator, rows: int, columns: int, depth: int) -> list[np.ndarray]:
    """C, A and B, this one in its own order, of a product of bfloat16."""
    shapes = [((rows, columns), np.float32), ((rows, 2 * depth), ml_dtypes.bfloat16)]
    return [floats(rng, *kind) for kind in [*shapes, ((2 * depth, columns), ml_dtypes.bfloat16)]]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_bfloat16(functions: ctypes.CDLL, tiles: Tiles, shape: tuple[int, int, int]) -> None:
    c, a, b = operands(np.random.default_rng(0), *shape)
    d = np.full((shape[0] + 1, 20), 7, np.float32)  # what is behind the tile has to stay as it is
    functions.configure(for_product(*shape))
    call(functions.tdpbf16ps, strided(c, 80), strided(a, 96), strided(four(b, 2), 64), d)
    np.testing.assert_array_equal(d[:-1, : shape[1]], product_of_pairs(c, a, b))
    assert np.all(d[-1] == 7) and np.all(d[:, shape[1] :] == 7)
    once = ("ldtilecfg", "tileloaddt1", "tdpbf16ps", "tilestored")
    assert tiles.counts == {"tileloadd": 2, **dict.fromkeys(once, 1)}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_bytes(functions: ctypes.CDLL, tiles: Tiles, name: str, shape: tuple[int, int, int]) -> None:
    (rows, columns, depth), rng = shape, np.random.default_rng(0)
    kinds = [np.iinfo(kind) for kind in INTEGERS[name]]
    a = rng.integers(kinds[0].min, kinds[0].max, (rows, 4 * depth), INTEGERS[name][0], endpoint=True)
    b = rng.integers(kinds[1].min, kinds[1].max, (4 * depth, columns), INTEGERS[name][1], endpoint=True)
    c = rng.integers(-(2**31), 2**31, (rows, columns), np.int32)  # sums wrap around
    d = np.zeros((rows, columns), np.int32)
    functions.configure(for_product(*shape))
    call(getattr(functions, name), c, a, four(b, 4), d)
    np.testing.assert_array_equal(d, (c + a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32))
    assert tiles.count(name) == 1


def test_denormals_are_zeros_and_rounding_is_to_nearest_even(functions: ctypes.CDLL) -> None:
    """Whatever MXCSR says, and it keeps what it says."""
    small, one = 2.0**-130, 2.0**-126
    c = np.array([[small, 1, 1 + 2.0**-23, 1.5 * one]], np.float32)
    a = np.array([[one, 2.0**-24]], ml_dtypes.bfloat16)
    b = np.array([[small * 2.0**120, 0, 0, -1], [0, 1, 1, 0]], ml_dtypes.bfloat16)
    d = np.zeros_like(c)
    functions.configure(for_product(1, 4, 1))
    assert call(functions.rounding_up, c, a, four(b, 2), d)
    # C and a product that are denormal; halves of a unit, down and up; a difference that is denormal
    np.testing.assert_array_equal(d, [[0, 1, 1 + 2 * 2.0**-23, 0]])
    denormal = np.full((1, 2), small, ml_dtypes.bfloat16)
    call(functions.tdpbf16ps, np.ones_like(c), denormal, four(np.full((2, 4), 2.0**127), 2).astype(b.dtype), d)
    np.testing.assert_array_equal(d, np.ones_like(c))


def test_infinities_and_nans(functions: ctypes.CDLL) -> None:
    c = np.array([[1, np.inf, 1, 1]], np.float32)
    a = np.array([[1, 2]], ml_dtypes.bfloat16)
    b = np.array([[np.inf, -np.inf, np.nan, 3e38], [0, 0, 0, 3e38]], ml_dtypes.bfloat16)
    d = np.zeros_like(c)
    functions.configure(for_product(1, 4, 1))
    call(functions.tdpbf16ps, c, a, four(b, 2), d)
    np.testing.assert_array_equal(d, [[np.inf, np.nan, np.nan, np.inf]])


def test_tiles_of_all_numbers(functions: ctypes.CDLL) -> None:
    c, a, b = operands(np.random.default_rng(1), 6, 10, 4)
    shapes = [(1, 4)] * 8
    shapes[7], shapes[3], shapes[5] = (6, 40), (6, 16), (4, 40)
    d = np.zeros_like(c)
    functions.configure(configuration(shapes))
    call(functions.other_tiles, c, a, four(b, 2), d)
    np.testing.assert_array_equal(d, product_of_pairs(c, a, b))


def test_zeros(functions: ctypes.CDLL) -> None:
    data = np.full((4, 23), 3, np.uint8)
    functions.configure(configuration([(3, 20)]))
    functions.zeros(ctypes.c_void_p(data.ctypes.data), ctypes.c_void_p(data.ctypes.data), ctypes.c_long(23))
    assert not data[:3, :20].any() and np.all(data[3] == 3) and np.all(data[:, 20:] == 3)


@pytest.mark.parametrize("stride", [64, 128, -72, 0])
@pytest.mark.parametrize("name", COPIES)
def test_addresses(functions: ctypes.CDLL, name: str, stride: int) -> None:
    """Rows go where they are read from; the rows of stride 0 are one."""
    source = np.random.default_rng(2).integers(0, 256, 4096, np.uint8)
    target = np.zeros_like(source)
    functions.configure(configuration([(9, 60)]))
    pointers = [ctypes.c_void_p(array.ctypes.data + 2048) for array in (source, target)]
    getattr(functions, name)(*pointers, ctypes.c_long(stride))
    want = np.zeros_like(source)
    for row in range(9):
        place = slice(2048 + row * stride, 2048 + row * stride + 60)
        want[place] = source[place]
    np.testing.assert_array_equal(target, want)


def test_without_an_index_all_rows_are_one(functions: ctypes.CDLL) -> None:
    source, target = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    functions.configure(configuration([(16, 24)]))
    functions.no_index(ctypes.c_void_p(source.ctypes.data), ctypes.c_void_p(target.ctypes.data))
    np.testing.assert_array_equal(target, np.where(source < 24, source, 0))


def test_registers_are_kept(functions: ctypes.CDLL) -> None:
    data = np.zeros((16, 64), np.uint8)
    functions.configure(for_product(16, 16, 16))
    pointer = ctypes.c_void_p(data.ctypes.data)
    assert functions.registers(pointer, pointer, ctypes.c_long(64))


def test_the_configuration_is_stored(functions: ctypes.CDLL, tiles: Tiles) -> None:
    stored = np.full(64, 9, np.uint8)
    pointer = ctypes.c_void_p(stored.ctypes.data)
    functions.stored_configuration(pointer)
    assert not stored.any() and not tiles.configured
    config = for_product(5, 6, 7)
    functions.configure(config)
    functions.stored_configuration(pointer)
    assert stored.tobytes() == config and tiles.configured
    functions.configure(bytes(64))  # palette 0
    assert not tiles.configured
    functions.configure(config)
    functions.release()
    functions.stored_configuration(pointer)
    assert not stored.any() and not tiles.configured
    functions.relative(pointer)
    functions.what_was_written.restype = ctypes.c_void_p
    small = configuration([(3, 8)])
    assert stored.tobytes() == small == ctypes.string_at(functions.what_was_written(), 64) and tiles.configured


def test_each_thread_has_tiles_of_its_own(functions: ctypes.CDLL, tiles: Tiles) -> None:
    shapes = [(16, 16, 16), (3, 5, 2)]
    barrier = threading.Barrier(len(shapes))
    right: list[bool] = []

    def work(shape: tuple[int, int, int]) -> None:
        c, a, b = operands(np.random.default_rng(3), *shape)
        d = np.zeros_like(c)
        functions.configure(for_product(*shape))
        for _ in range(50):
            barrier.wait()
            call(functions.tdpbf16ps, c, a, four(b, 2), d)
            right.append(np.array_equal(d, product_of_pairs(c, a, b)))

    threads = [threading.Thread(target=work, args=(shape,)) for shape in shapes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 100 and tiles.count("tdpbf16ps") == 100
    assert not tiles.configured, "this thread has none"


def test_counts(functions: ctypes.CDLL, tiles: Tiles) -> None:
    functions.configure(configuration([(1, 4)]))
    functions.release()
    assert tiles.counts == {"ldtilecfg": 1, "tilerelease": 1}
    assert [tiles.count(name) for name in INSTRUCTIONS] == [1, 0, 1] + [0] * 9
    with pytest.raises(KeyError, match="tdpfp16ps"):
        tiles.count("tdpfp16ps")
    functions.configure(configuration([(1, 4)]))
    tiles.stop()
    tiles.start()
    assert not tiles.counts and not tiles.configured, "nothing is left of another start"


WHOLE = configuration([(16, 64)] * 3)
FAULTS = {
    "two palettes": (configuration([(1, 4)], b0=2), "release", "ldtilecfg: there is no palette 2"),
    "start row": (configuration([(1, 4)], b1=3), "release", "the configuration starts in row 3"),
    "reserved first": (configuration([(1, 4)], b15=1), "release", "reserved byte 15 of the configuration is 1"),
    "reserved shape": (configuration([(1, 4)], b32=8), "release", "reserved byte 32 of the configuration is 8"),
    "reserved rows": (configuration([(1, 4)], b56=1), "release", "reserved byte 56 of the configuration is 1"),
    "wide": (configuration([(1, 4), (1, 65)]), "release", "tile 1 has 65 bytes a row, more than 64"),
    "very wide": (configuration([(1, 256)]), "release", "tile 0 has 256 bytes a row, more than 64"),
    "high": (configuration([(17, 4)]), "release", "tile 0 has 17 rows, more than 16"),
    "rows without bytes": (configuration([(2, 0)]), "release", "tile 0 has 2 rows of 0 bytes"),
    "bytes without rows": (configuration([(0, 8)]), "release", "tile 0 has 0 rows of 8 bytes"),
    "no palette": (bytes(64), "multiply", "tdpbssd: no tiles are configured"),
    "zero without tile": (WHOLE, "zero_7", "tilezero: tile 7 is not configured"),
    "load without tile": (WHOLE, "load_7", "tileloadd: tile 7 is not configured"),
    "store without tile": (WHOLE, "store_7", "tilestored: tile 7 is not configured"),
    "product without tile": (configuration([(16, 64)] * 2), "multiply", "tdpbssd: tile 2 is not configured"),
    "load of tile 8": (WHOLE, "load_8", "tileloadd: there is no tile 8"),
    "product with tile 8": (WHOLE, "multiply_8", "tdpbssd: there is no tile 8"),
    "operands": (WHOLE, "same_operands", "tdpbssd: tile 1 stands for two operands"),
    "no SIB": (WHOLE, "no_sib", "tileloadd: the operand in memory has no SIB byte"),
    "third operand": (WHOLE, "third_operand", "tilezero: VEX.vvvv is 1, not unused"),
    "bytes": (configuration([(16, 62), (16, 64), (16, 62)]), "multiply", "tile 0 has 62 bytes a row, no multiple of 4"),
    "bytes to load": (configuration([(3, 4)] * 7 + [(3, 17)]), "load_7", "tile 7 has 17 bytes a row, no multiple of 4"),
    "bytes to store": (
        configuration([(3, 4)] * 7 + [(3, 18)]),
        "store_7",
        "tile 7 has 18 bytes a row, no multiple of 4",
    ),
    "rows of A": (configuration([(16, 64), (8, 64), (16, 64)]), "multiply_floats", "C has 16 rows, A has 8"),
    "bytes of B": (configuration([(16, 64), (16, 64), (16, 60)]), "multiply", "C has 64 bytes a row, B has 60"),
    "depth": (configuration([(16, 64), (16, 64), (8, 64)]), "multiply", "A has 64 bytes a row, B has 8 rows"),
}
RUN = """
import ctypes, faulthandler, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
emulator, functions = (ctypes.CDLL(path) for path in sys.argv[1:3])
if "dump" in sys.argv:
    faulthandler.enable()
emulator.tiles_start()
functions.configure(bytes.fromhex(sys.argv[3]))
if "stop" in sys.argv:
    emulator.tiles_stop()
getattr(functions, sys.argv[4])()
"""


def run(emulator: Path, library: Path, config: bytes, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A function of `instructions.c` with tiles that are configured, in a process of its own."""
    command = [sys.executable, "-c", RUN, str(emulator), str(library), config.hex(), name, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS)
def test_faults(tile_library: Path, library: Path, case: tuple[bytes, str, str]) -> None:
    config, name, message = case
    done = run(tile_library, library, config, name)
    if are_here():  # which take a row to start in, of an instruction that was interrupted; no program has a use for it
        wanted = (0,) if "starts in row" in message else (-signal.SIGILL, -signal.SIGSEGV)
        assert done.returncode in wanted
        return
    assert done.returncode == -signal.SIGABRT
    assert done.stderr.startswith("tile emulator: ") and done.stderr.endswith(f"{message}\n")


@pytest.mark.parametrize("name", ["undefined", "another_extension"])
def test_other_instructions_stay_illegal(tile_emulator: Path, library: Path, name: str) -> None:
    assert run(tile_emulator, library, WHOLE, name).returncode == -signal.SIGILL
    dumped = run(tile_emulator, library, WHOLE, name, "dump")
    assert dumped.returncode == -signal.SIGILL and "Fatal Python error: Illegal instruction" in dumped.stderr


def test_nothing_is_emulated_after_the_end(tile_emulator: Path, library: Path) -> None:
    assert run(tile_emulator, library, WHOLE, "multiply").returncode == 0
    assert run(tile_emulator, library, WHOLE, "multiply", "stop").returncode == -signal.SIGILL
