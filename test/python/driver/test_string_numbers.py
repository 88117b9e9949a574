"""Casts between strings and numbers, compiled and interpreted, against Python, NumPy and onnxruntime."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import mlc
from mlc.interp.registry import InterpError
from mlc.interp.text import _ROUTINES
from mlc.runtime import MlcError

FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    1 / 3,
    1e-4,
    9.999e-5,
    1e15,
    1e16,
    123456.7,
    2.0**-44,
    5e-324,
    1.7976931348623157e308,
]
FLOATS += [9007199254740993.0, 1e22, 1e23, 100.0, 0.001, 2.2250738585072014e-308, np.inf, -np.inf, np.nan]
TEXTS = [
    "1",
    " -2 ",
    "+3",
    "3.9",
    "-3.9",
    "100.5",
    "1e3",
    "1E-3",
    ".5",
    "5.",
    "-0",
    "0.1e1",
    "\t7\n",
    "00012",
    "1e-400",
]
WORDS = ["inf", "INF", "+Inf", "-INF", "NaN", "nan", "Infinity", "1e400", "-1e400", "0e99999999999999999999"]
WRONG = ["", " ", "abc", "1.5x", "1 2", "0x10", "1_0", "1e", "e5", ".", "+", "--1", "1e+", "1.2.3", "nanx", "١", "True"]


def strings(*texts: str) -> np.ndarray:
    return np.array(texts, dtype=object)


def cast_model(source: int, target: int) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, kind, ["n"]) for n, kind in (("x", source), ("y", target)))
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], name="cast", to=target)], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def cast(x: np.ndarray, source: int, target: int) -> np.ndarray:
    """The compiled model's result."""
    return mlc.compile(cast_model(source, target))(x=x)[0]


def routine(name: str, x: np.ndarray, *fields: str) -> np.ndarray:
    config = "".join(f"{len(field)}:{field}" for field in fields)
    return np.asarray(_ROUTINES[f"mlc_text_{name}"](config, [x])[0])


def plain(value: float) -> str:
    """Python's shortest text that reads back, without a `.0` that says nothing."""
    words = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}
    text = repr(float(value)).removesuffix(".0").replace(".0e", "e")
    return words.get(text, text)


def test_doubles_are_printed_as_python_does() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2**63, 20000, np.int64).view(np.float64)
    powers = 2.0 ** np.arange(-1074, 1024)
    x = np.concatenate([FLOATS, drawn, -rng.uniform(0, 1e9, 2000), np.round(rng.normal(size=2000), 3), powers])
    wanted = [plain(value) for value in x]
    assert cast(x, TensorProto.DOUBLE, TensorProto.STRING).tolist() == wanted
    assert routine("print", x, "float64").tolist() == wanted


def test_floats_are_printed_shortest_and_read_back() -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 20000, np.uint32)
    powers = np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32)
    with np.errstate(over="ignore"):
        listed = np.array(FLOATS).astype(np.float32)
    x = np.concatenate([listed, bits.view(np.float32), powers])
    got = cast(x, TensorProto.FLOAT, TensorProto.STRING)
    assert got.tolist() == routine("print", x, "float32").tolist()
    read = cast(got, TensorProto.STRING, TensorProto.FLOAT)
    held = ~np.isnan(x)
    assert np.array_equal(read[held].view(np.uint32), x[held].view(np.uint32)) and np.isnan(read[~held]).all()
    sample = np.array([0, -0.0, 1, 1.5, 0.1, 1 / 3, 1e-3, 65504, 100000, np.inf, -np.inf, np.nan], np.float32)
    peer = onnxruntime.InferenceSession(cast_model(TensorProto.FLOAT, TensorProto.STRING).SerializeToString())
    assert cast(sample, TensorProto.FLOAT, TensorProto.STRING).tolist() == peer.run(None, {"x": sample})[0].tolist()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_both_ways(dtype: str) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = [0, 1] if dtype == "bool" else [0, 1, 42, np.iinfo(dtype).min, np.iinfo(dtype).max]
    x = np.array(ends, dtype)
    texts = cast(x, kind, TensorProto.STRING)
    assert texts.tolist() == [str(int(value)) for value in x]
    np.testing.assert_array_equal(cast(texts, TensorProto.STRING, kind), x)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_texts_are_read_as_python_does(dtype: str) -> None:
    x = strings(*TEXTS, *WORDS, "0." + "0" * 400 + "17e399", "9" * 1000 + "e-995", "16777217.0000000001")
    wanted = np.array([float(text) for text in x])
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(cast(x, TensorProto.STRING, kind), wanted.astype(dtype))
    np.testing.assert_array_equal(routine("parse", x, "float64", dtype), wanted)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_texts_are_cut_off_to_integers(dtype: str) -> None:
    real = np.array([float(text) for text in TEXTS])
    wanted = real != 0 if dtype == "bool" else real.astype(np.int64).astype(dtype)
    got = cast(strings(*TEXTS), TensorProto.STRING, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    np.testing.assert_array_equal(got, wanted)


def test_what_is_no_number_is_named() -> None:
    models = {name: mlc.compile(cast_model(TensorProto.STRING, kind)) for name, kind in
              (("float32", TensorProto.FLOAT), ("int64", TensorProto.INT64), ("uint64", TensorProto.UINT64))}  # fmt: skip
    too_large = {"int64": ["9223372036854775808", "-9223372036854775809", "1e19"], "uint64": ["18446744073709551616"]}
    for name, model in models.items():
        wide = "float64" if name == "float32" else name
        wrong = WRONG if name == "float32" else [*WRONG, "nan", "inf", "1e400", *too_large[name]]
        for text in wrong:
            x = strings("1", text)
            with pytest.raises(MlcError) as failure:
                model(x=x)
            message = str(failure.value)
            assert "node 'cast'" in message and f"element 1, '{text}', is no number of type {name}" in message
            with pytest.raises(InterpError, match="element 1"):
                routine("parse", x, wide, name)
        assert model(x=strings("1"))[0].tolist() == [1]
    with pytest.raises(MlcError, match=r"element 0, 'ü{20}'\.\.\., is no number"):
        models["float32"](x=strings("ü" * 30))


def test_shapes_and_narrow_types() -> None:
    """Any rank, none of the elements, and types that numbers take on their way."""
    model = mlc.compile(
        onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
      g (string[n,2] x, bfloat16[1] w, float16 h) => (bfloat16[n,2] y, string z) {
        y = CastLike(x, w)
        z = CastLike(h, x)
      }""")
    )
    w = np.zeros(1, ml_dtypes.bfloat16)
    y, z = model(x=strings("1.5", "-2", "inf", "0.25").reshape(2, 2), w=w, h=np.array(0.5, np.float16))
    assert y.astype(np.float32).tolist() == [[1.5, -2.0], [np.inf, 0.25]]
    assert z.shape == () and z.item() == "0.5"
    y, z = model(x=np.empty((0, 2), object), w=w, h=np.array(-65504, np.float16))
    assert y.shape == (0, 2) and z.item() == "-65504"


READ_AND_PRINT = """
import ctypes, locale, sys
import numpy as np
from mlc.runtime import loader
locale.setlocale(locale.LC_NUMERIC, "comma.utf8")
libc = ctypes.CDLL(None)
text = ctypes.create_string_buffer(8)
libc.snprintf(text, 8, b"%.1f", ctypes.c_double(1.5))
model = loader.load(sys.argv[1])
print(text.value.decode(), *model(x=np.array(["1.25", "1e-7", "1234567.5", "1.5e+300"], object))[0])
"""


@pytest.mark.skipif(not Path("/usr/lib/locale/C.utf8/LC_NUMERIC").exists(), reason="there is no locale to change")
def test_decimal_commas_change_nothing(tmp_path: Path) -> None:
    """Numbers are read and printed alike when the C library writes decimal commas."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
      g (string[n] x) => (string[n] y) { d = Cast<to = 11>(x) y = Cast<to = 8>(d) }""")
    mlc.compile(model, output=tmp_path / "model.so")
    shutil.copytree("/usr/lib/locale/C.utf8", tmp_path / "comma.utf8")
    numeric = tmp_path / "comma.utf8/LC_NUMERIC"
    numeric.write_bytes(numeric.read_bytes().replace(b".", b",", 1).replace(b"\x2e\0\0\0", b"\x2c\0\0\0", 1))
    command = [sys.executable, "-c", READ_AND_PRINT, str(tmp_path / "model.so")]
    done = subprocess.run(command, env={**os.environ, "LOCPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1,5", "1.25", "1e-07", "1234567.5", "1.5e+300"]
