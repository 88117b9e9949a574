"""Transpositions in registers against the NumPy interpreter: every edge of a square, element types, fused operations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from spread import spread
from test_templates import check, draw

import mlc
from mlc import _native
from mlc.targets import cpu

Movement = tuple[Sequence["int | str"], Sequence[int]]

_HOST = cpu.resolve("native", _native.host_info())


@pytest.fixture(autouse=True)
def without_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walks of CPUs that gain nothing from fetching what they write, wherever the tests run."""
    monkeypatch.setitem(cpu._TRAITS, "claims", set())


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch, without_claims: None) -> None:
    """The others' walks."""
    monkeypatch.setitem(cpu._TRAITS, "claims", {_HOST.cpu})


def _type(extents: Sequence[int | str], dtype: str) -> str:
    return f"tensor<{''.join(f'{e}x' for e in extents)}{dtype}>"


def _static(extents: Sequence[int | str], dynamic: int) -> list[int]:
    return [dynamic if e == "?" else int(e) for e in extents]


def writes_this_only(model: mlc.Model, data: np.ndarray, expected: np.ndarray, behind_line: int = 0) -> None:
    """A model of `data` writes `expected` and nothing around it, where a buffer begins `behind_line` bytes behind the
    beginning of a line of the cache.
    """
    buffer = np.full(expected.nbytes + 128 + behind_line, 77, np.uint8)
    start = 64 - buffer.ctypes.data % 64 + behind_line
    result = buffer[start : start + expected.nbytes].view(expected.dtype).reshape(expected.shape)
    model.run([data], out=[result])
    assert result.tobytes() == np.ascontiguousarray(expected).tobytes()
    assert np.all(buffer[:start] == 77) and np.all(buffer[start + expected.nbytes :] == 77)


SHORT: list[Movement] = [
    ((32, 48), (1, 0)),
    ((17, 100), (1, 0)),
    ((3, 70), (1, 0)),
    ((70, 3), (1, 0)),
    ((2, 5, 33, 1), (0, 2, 1, 3)),
    ((2, 40, 3, 19), (3, 0, 2, 1)),
    (("?", 100), (1, 0)),
    ((50, "?"), (1, 0)),
    (("?", "?", 7), (2, 0, 1)),
]


@pytest.mark.parametrize(("dtype", "form"), spread(SHORT, "f32", ["f64", "i64", "i8", "i1"], 3), ids=str)
def test_transpose(tmp_path: Path, form: Movement, dtype: str) -> None:
    extents, permutation = form
    t, o = _type(extents, dtype), _type([extents[p] for p in permutation], dtype)
    order = ", ".join(map(str, permutation))
    body = f"%r = mlc.transpose %a0 {{permutation = array<i64: {order}>}} : {t} -> {o}\nreturn %r : {o}"
    sizes = (1, 15, 16, 65) if "?" in extents else (0,)
    check(tmp_path, body, [t], [o], [(draw(_static(extents, n), dtype),) for n in sizes])


@pytest.mark.parametrize(
    "extents, permutation, dtype",
    [
        ((37, 256), (1, 0), "f32"),
        ((256, 48), (1, 0), "f32"),
        ((3, 512, 80), (0, 2, 1), "f32"),
        ((2304, 272), (1, 0), "f32"),
        ((3, 70, 256), (2, 0, 1), "f32"),
        ((40, 128), (1, 0), "f64"),
        ((65, 1024), (1, 0), "i8"),
        ((70, 2048), (1, 0), "i1"),
        ((2, 40, 7, 9), (0, 2, 3, 1), "f32"),
        ((2, 7, 9, 40), (0, 3, 1, 2), "f32"),
        ((2, "?", 7, 9), (0, 2, 3, 1), "f32"),
        ((2, 21, "?", 9), (0, 2, 3, 1), "f32"),
        ((37, 1024), (1, 0), "f32"),
        ((3, 19, 515), (0, 2, 1), "f32"),
        ((599, 134), (1, 0), "f32"),
        ((70, 268), (1, 0), "f64"),
        ((64, 300), (1, 0), "i8"),
        ((2, 30, 515), (0, 2, 1), "i8"),
        ((32, 130), (1, 0), "i16"),
        ((197, 192), (1, 0), "i8"),
        ((197, 136), (1, 0), "i16"),
        ((197, 68), (1, 0), "f32"),
        ((37, 66), (1, 0), "i64"),
        ((512, 49), (1, 0), "f32"),
        ((2, 512, 100), (0, 2, 1), "f32"),
        ((320, 512), (1, 0), "i8"),
        ((300, 256), (1, 0), "f32"),
        ((49, 259), (1, 0), "f64"),
        ((49, 512), (1, 0), "f32"),
        ((3, 512, 96), (0, 2, 1), "f32"),
        ((1024, 64), (1, 0), "f32"),
    ],
    ids=str,
)
def test_lines_that_collide_and_dimensions_walked_as_one(
    tmp_path: Path, extents: Sequence[int | str], permutation: Sequence[int], dtype: str
) -> None:
    t, o = _type(extents, dtype), _type([extents[p] for p in permutation], dtype)
    order = ", ".join(map(str, permutation))
    body = f"%r = mlc.transpose %a0 {{permutation = array<i64: {order}>}} : {t} -> {o}\nreturn %r : {o}"
    sizes = (1, 17) if "?" in extents else (0,)
    check(tmp_path, body, [t], [o], [(draw(_static(extents, n), dtype),) for n in sizes])


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "i1"])
@pytest.mark.parametrize("extents", [(3, 224, 9), (2, 100), (4, 17, 5), (7, 300), (3, "?", 9), (5, 4, "?")], ids=str)
def test_lines_of_few_elements(tmp_path: Path, extents: Sequence[int | str], dtype: str) -> None:
    turned = [*extents[1:], extents[0]]
    t, o = _type(extents, dtype), _type(turned, dtype)
    order = ", ".join(map(str, [*range(1, len(extents)), 0]))
    body = f"%r = mlc.transpose %a0 {{permutation = array<i64: {order}>}} : {t} -> {o}\nreturn %r : {o}"
    sizes = (1, 16, 333) if "?" in extents else (0,)
    model = check(tmp_path, body, [t], [o], [(draw(_static(extents, n), dtype),) for n in sizes])
    assert [k["template"] for k in model.metadata["kernels"]] == ["interleave"]


def test_lines_of_few_elements_with_what_follows(tmp_path: Path) -> None:
    """As an image is normalized: other inputs along the channels and along the pixels, two results."""
    t, o = "tensor<3x21x19xf32>", "tensor<21x19x3xf32>"
    body = f"""
      %r = mlc.transpose %a0 {{permutation = array<i64: 1, 2, 0>}} : {t} -> {o}
      %s = mlc.binary add %r, %a1 : {o}, tensor<3xf32> -> {o}
      %m = mlc.binary mul %s, %a2 : {o}, tensor<21x19x1xf32> -> {o}
      return %s, %m : {o}, {o}"""
    inputs = (draw((3, 21, 19)), draw((3,), seed=1), draw((21, 19, 1), seed=2))
    check(tmp_path, body, [t, "tensor<3xf32>", "tensor<21x19x1xf32>"], [o, o], [inputs])


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["f32", "i8"])
@pytest.mark.parametrize(
    "extents, low, high",
    [
        ((3, 9, 224), (0, 3, 3), (0, 3, 3)),
        ((3, 5, 61), (0, 0, 1), (0, 2, 2)),
        ((1, 3, 4, 130), (0, 0, 1, 64), (0, 0, 0, 70)),
        ((4, 70, 66), (1, 0, 2), (0, 1, 0)),
        ((3, 2, "?"), (0, 1, 2), (0, 1, 3)),
    ],
    ids=str,
)
def test_padded_lines_of_few_elements(
    tmp_path: Path, extents: Sequence[int | str], low: Sequence[int], high: Sequence[int], dtype: str, cpu: str
) -> None:
    """As a quantized image is laid out for its first convolution: around it is one number, an input."""
    around = [e if e == "?" else int(e) + a + b for e, a, b in zip(extents, low, high, strict=True)]
    first = len(extents) - 3
    order = [*range(first), first + 1, first + 2, first]
    t, p, o = _type(extents, dtype), _type(around, dtype), _type([around[d] for d in order], dtype)
    body = f"""
      %p = mlc.pad constant %a0 low {list(low)} high {list(high)} value(%a1 : tensor<{dtype}>) : {t} -> {p}
      %r = mlc.transpose %p {{permutation = array<i64: {", ".join(map(str, order))}>}} : {p} -> {o}
      return %r : {o}"""
    sizes = (1, 63, 200) if "?" in extents else (0,)
    number = draw((), dtype, seed=1)
    inputs = [(draw(_static(extents, n), dtype), number) for n in sizes]
    model = check(tmp_path, body, [t, f"tensor<{dtype}>"], [o], inputs, cpu=cpu)
    if cpu == "native" and _HOST.vector_bits == 512:
        assert [k["template"] for k in model.metadata["kernels"]] == ["interleave"]


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize(
    "rows, columns, dtype", [(2048, 1600, "f32"), (2064, 1537, "f32"), (1248, 1601, "f32"), (1248, 1601, "f64")]
)
def test_results_past_the_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, dtype: str, threads: str
) -> None:
    """Large ones: where a line of the caches begins, and where none does; the last squares are no whole ones. Results
    of 8 MB go past the caches of one thread only.
    """
    monkeypatch.setenv("MLC_NUM_THREADS", threads)
    t, o = _type((rows, columns), dtype), _type((columns, rows), dtype)
    body = f"""
      %r = mlc.transpose %a0 {{permutation = array<i64: 1, 0>}} : {t} -> {o}
      %s = mlc.unary neg %r : {o}
      return %s : {o}"""
    data = draw((rows, columns), dtype)
    model = check(tmp_path, body, [t], [o], [(data,)])
    buffer = np.zeros(rows * columns + 16, data.dtype)
    start = -buffer.ctypes.data % 64 // data.itemsize
    for shift in (0, 4):
        result = buffer[start + shift : start + shift + rows * columns].reshape(columns, rows)
        model.run([data], out=[result])
        np.testing.assert_array_equal(result, -data.T)


@pytest.mark.parametrize(
    "extents, permutation, dtype",
    [
        ((2100, 1100), (1, 0), "f32"),
        ((1037, 2050), (1, 0), "f32"),
        ((3, 700, 1008), (0, 2, 1), "f32"),
        ((1031, 1030), (1, 0), "i64"),
        ((2069, 1024), (1, 0), "f32"),
    ],
    ids=str,
)
def test_lines_that_begin_anywhere_past_the_caches(
    tmp_path: Path, extents: Sequence[int], permutation: Sequence[int], dtype: str
) -> None:
    """Columns that are joined to whole lines of the cache: rests of lines and of columns, threads that share a line,
    another input along either dimension, and buffers that begin where no line of the cache does.
    """
    t, o = _type(extents, dtype), _type([extents[p] for p in permutation], dtype)
    order = ", ".join(map(str, permutation))
    along, across = _type([extents[-2]], dtype), _type([extents[-1], 1], dtype)
    body = f"""
      %r = mlc.transpose %a0 {{permutation = array<i64: {order}>}} : {t} -> {o}
      %s = mlc.binary add %r, %a1 : {o}, {along} -> {o}
      %m = mlc.binary mul %s, %a2 : {o}, {across} -> {o}
      return %m : {o}"""
    data = draw(extents, dtype), draw((extents[-2],), dtype, 1), draw((extents[-1], 1), dtype, 2)
    model = check(tmp_path, body, [t, along, across], [o], [data])
    assert [k["template"] for k in model.metadata["kernels"]] == ["transpose"]
    [expected] = model.run(list(data)).values()
    size = expected.dtype.itemsize
    buffer = np.zeros(expected.size + 2 * (64 // size), expected.dtype)
    start = -buffer.ctypes.data % 64 // size
    for shift in (0, 3):
        buffer[:] = 77
        result = buffer[start + shift : start + shift + expected.size].reshape(expected.shape)
        model.run(list(data), out=[result])
        np.testing.assert_array_equal(result, expected)
        assert np.all(buffer[: start + shift] == 77) and np.all(buffer[start + shift + expected.size :] == 77)


@pytest.mark.parametrize(
    "extents, permutation, dtype, widest_only",
    [
        ((256, 512), (1, 0), "i8", True),
        ((448, 256), (1, 0), "i8", True),
        ((1024, 1088), (1, 0), "i8", False),
        ((160, 384), (1, 0), "i16", True),
        ((2, 1024, 768), (0, 2, 1), "i8", False),
        ((768, 768), (1, 0), "i16", False),
        ((3, 512, 4, 128), (2, 0, 3, 1), "i16", False),
        ((1024, 1280), (1, 0), "i8", False),
        ((1280, 1024), (1, 0), "i1", False),
        ((1024, 80), (1, 0), "f32", True),
        ((1024, 768), (1, 0), "f32", True),
        ((1024, 1024), (1, 0), "f32", False),
        ((2064, 1552), (1, 0), "f32", True),
        ((3, 512, 1024), (0, 2, 1), "f64", False),
    ],
    ids=str,
)
def test_lines_that_share_sets_go_through_a_buffer(
    tmp_path: Path, extents: Sequence[int], permutation: Sequence[int], dtype: str, widest_only: bool
) -> None:
    """Tiles that are cut, several matrices, every size of element; `widest_only`: with vectors of 64 bytes alone."""
    t, o = _type(extents, dtype), _type([extents[p] for p in permutation], dtype)
    order = ", ".join(map(str, permutation))
    turned = f"%r = mlc.transpose %a0 {{permutation = array<i64: {order}>}} : {t} -> {o}"
    data = draw(extents, dtype)
    model = check(tmp_path, f"{turned}\nreturn %r : {o}", [t], [o], [(data,)])
    staged = _HOST.vector_bits == 512 or (_HOST.vector_bits == 256 and not widest_only)
    assert [k["template"] for k in model.metadata["kernels"]] == ["staged_transpose" if staged else "transpose"]
    [expected] = model.run([data]).values()
    assert expected.tobytes() == np.ascontiguousarray(data.transpose(permutation)).tobytes()


def test_what_follows_a_transposition_through_a_buffer(tmp_path: Path) -> None:
    """Other inputs along either dimension, and two results past the caches."""
    t, o = "tensor<1536x2048xf32>", "tensor<2048x1536xf32>"
    body = f"""
      %r = mlc.transpose %a0 {{permutation = array<i64: 1, 0>}} : {t} -> {o}
      %s = mlc.binary add %r, %a1 : {o}, tensor<1536xf32> -> {o}
      %m = mlc.binary mul %s, %a2 : {o}, tensor<2048x1xf32> -> {o}
      return %s, %m : {o}, {o}"""
    data = draw((1536, 2048)), draw((1536,), seed=1), draw((2048, 1), seed=2)
    model = check(tmp_path, body, [t, "tensor<1536xf32>", "tensor<2048x1xf32>"], [o, o], [data])
    staged = _HOST.vector_bits >= 256
    assert [k["template"] for k in model.metadata["kernels"]] == ["staged_transpose" if staged else "transpose"]


@pytest.mark.parametrize(
    "extents, permutation, dtype",
    [
        ((3001, 2503), (1, 0), "i8"),
        ((1915, 2734), (1, 0), "i16"),
        ((3, 2051, 1400), (0, 2, 1), "i8"),
        ((40000, 190), (1, 0), "i8"),
        ((190, 40000), (1, 0), "i8"),
        ((2501, 3072), (1, 0), "i8"),
    ],
    ids=str,
)
def test_small_elements_that_come_from_memory(
    tmp_path: Path, extents: Sequence[int], permutation: Sequence[int], dtype: str
) -> None:
    """Lines that begin anywhere, of squares that are fetched to be read and to be written: nothing else is."""
    t, o = _type(extents, dtype), _type([extents[p] for p in permutation], dtype)
    order = ", ".join(map(str, permutation))
    body = f"%r = mlc.transpose %a0 {{permutation = array<i64: {order}>}} : {t} -> {o}\nreturn %r : {o}"
    data = draw(extents, dtype)
    model = check(tmp_path, body, [t], [o], [(data,)])
    writes_this_only(model, data, data.transpose(permutation), behind_line=2)


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize(
    "extents, permutation, dtype",
    [
        ((197, 401), (1, 0), "f32"),
        ((47, 33), (1, 0), "i8"),
        ((33, 47), (1, 0), "i16"),
        ((3, 19, 515), (0, 2, 1), "i64"),
        ((2, 40, 16), (0, 2, 1), "f32"),
        ((5, 300), (1, 0), "i8"),
        ((300, 17), (1, 0), "i8"),
        ((500, 700), (1, 0), "i1"),
        ((1024, 1088), (1, 0), "i8"),
        ((513, 512), (1, 0), "f32"),
        ((2048, 1600), (1, 0), "f32"),
    ],
    ids=str,
)
def test_narrower_vectors(
    tmp_path: Path, extents: Sequence[int], permutation: Sequence[int], dtype: str, cpu: str
) -> None:
    """Vectors of two registers, and squares that begin earlier where they would be cut: nothing else is written."""
    t, o = _type(extents, dtype), _type([extents[p] for p in permutation], dtype)
    order = ", ".join(map(str, permutation))
    body = f"%r = mlc.transpose %a0 {{permutation = array<i64: {order}>}} : {t} -> {o}\nreturn %r : {o}"
    data = draw(extents, dtype)
    model = check(tmp_path, body, [t], [o], [(data,)], cpu=cpu)
    writes_this_only(model, data, data.transpose(permutation))


def test_copies_past_the_caches(tmp_path: Path) -> None:
    """Whole lines that change places, where a line of the caches begins and where none does."""
    t, o = _type((2, 512, 25, 128), "f32"), _type((2, 25, 512, 128), "f32")
    body = f"%r = mlc.transpose %a0 {{permutation = array<i64: 0, 2, 1, 3>}} : {t} -> {o}\nreturn %r : {o}"
    data = draw((2, 512, 25, 128))
    model = check(tmp_path, body, [t], [o], [(data,)])
    assert [k["template"] for k in model.metadata["kernels"]] == ["loops"]
    buffer = np.zeros(data.size + 16, np.float32)
    start = -buffer.ctypes.data % 64 // 4
    for shift in (0, 4):
        result = buffer[start + shift : start + shift + data.size].reshape(2, 25, 512, 128)
        model.run([data], out=[result])
        np.testing.assert_array_equal(result, data.transpose(0, 2, 1, 3))


@pytest.mark.parametrize("extents", [(40, 70), ("?", 70), (40, "?")], ids=str)
def test_transpose_with_what_follows(tmp_path: Path, extents: Sequence[int | str]) -> None:
    """Other inputs along either dimension, and two results."""
    rows, columns = extents
    t, o = _type(extents, "f32"), _type([columns, rows], "f32")
    along, across = _type([rows], "f32"), _type([columns, 1], "f32")
    body = f"""
      %r = mlc.transpose %a0 {{permutation = array<i64: 1, 0>}} : {t} -> {o}
      %s = mlc.binary add %r, %a1 : {o}, {along} -> {o}
      %m = mlc.binary mul %s, %a2 : {o}, {across} -> {o}
      return %s, %m : {o}, {o}"""
    runs = []
    for n in (1, 31, 64):
        height, width = _static(extents, n)
        runs.append((draw((height, width)), draw((height,), seed=1), draw((width, 1), seed=2)))
    check(tmp_path, body, [t, along, across], [o, o], runs)


@pytest.mark.parametrize("dtype", ["i8", "i1"])
@pytest.mark.parametrize("columns", [81, 33, 18])
def test_results_that_are_narrower_are_no_longer_than_their_line(tmp_path: Path, columns: int, dtype: str) -> None:
    """LLVM widens the store of a lane that is alone (81 and 33 leave one over), beyond the end of its line."""
    t, m, o = f"tensor<2x{columns}x16xf32>", f"tensor<2x16x{columns}xf32>", f"tensor<2x16x{columns}x{dtype}>"
    body = (
        f"%t = mlc.transpose %a0 {{permutation = array<i64: 0, 2, 1>}} : {t} -> {m}\n"
        f"%r = mlc.cast %t : {m} -> {o}\nreturn %r : {o}"
    )
    check(tmp_path, body, [t], [o], [(draw([2, columns, 16], "f32"),)])


@pytest.mark.usefixtures("claims")
@pytest.mark.parametrize(
    "extents, permutation, dtype",
    [
        ((197, 192), (1, 0), "f32"),
        ((70, 81), (1, 0), "f32"),
        ((3, 49, 65), (0, 2, 1), "f32"),
        ((2, 40, 7, 9), (0, 2, 3, 1), "f32"),
        ((1031, 530), (1, 0), "f32"),
        ((256, 256), (1, 0), "f32"),
        ((768, 768), (1, 0), "f32"),
        ((512, 1024), (1, 0), "f32"),
        ((1024, 49), (1, 0), "f32"),
        ((97, 66), (1, 0), "i64"),
        ((197, 136), (1, 0), "i16"),
        ((1003, 1100), (1, 0), "i8"),
        ((1024, 1088), (1, 0), "i8"),
        ((1024, 1024), (1, 0), "i16"),
        ((1024, 3008), (1, 0), "f32"),
        (("?", 100), (1, 0), "f32"),
        ((150, "?"), (1, 0), "i8"),
        (("?", 197, 64), (0, 2, 1), "f32"),
        ((2, 130, "?", 9), (0, 2, 3, 1), "f32"),
    ],
    ids=str,
)
def test_lines_of_results_that_are_fetched_to_be_written(
    tmp_path: Path, extents: Sequence[int | str], permutation: Sequence[int], dtype: str
) -> None:
    """Strips and buffers that fetch what they write next; with something that follows, and two results."""
    turned = [extents[p] for p in permutation]
    t, o = _type(extents, dtype), _type(turned, dtype)
    order = ", ".join(map(str, permutation))
    body = f"""
      %r = mlc.transpose %a0 {{permutation = array<i64: {order}>}} : {t} -> {o}
      %s = mlc.binary add %r, %a1 : {o}, {_type([1], dtype)} -> {o}
      return %r, %s : {o}, {o}"""
    sizes = (1, 17, 300) if "?" in extents else (0,)
    runs = [(draw(_static(extents, n), dtype), draw((1,), dtype, 1)) for n in sizes]
    check(tmp_path, body, [t, _type([1], dtype)], [o, o], runs)
