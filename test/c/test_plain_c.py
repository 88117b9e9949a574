"""A compiled model called from a C program that knows nothing but mlc.h."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc

HERE = Path(__file__).resolve().parent
INCLUDE = Path(mlc.__file__).resolve().parent / "include"
EXTENT = 5


def write_model(path: Path) -> None:
    """`scores = relu(x @ w) + bias` and `best = argmax(scores)`, over a named batch dimension."""
    generator = np.random.default_rng(7)
    weight = generator.standard_normal((24, 10)).astype(np.float32)
    bias = generator.standard_normal(10).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"], name="product"),
        helper.make_node("Relu", ["product"], ["positive"], name="positive"),
        helper.make_node("Add", ["positive", "bias"], ["scores"], name="scores"),
        helper.make_node("ArgMax", ["scores"], ["best"], name="best", axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "plain_c",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 24])],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10]),
            helper.make_tensor_value_info("best", TensorProto.INT64, ["batch"]),
        ],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "bias")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def build(folder: Path) -> Path:
    program = folder / "run_model"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}"]
    subprocess.run(["cc", *flags, str(HERE / "run_model.c"), "-o", str(program), "-ldl"], check=True)
    return program


def output_of(*command: str) -> str:
    """What a command printed; raises when it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain_c")
    write_model(folder / "model.onnx")
    mlc.compile(folder / "model.onnx", output=folder / "model.so")
    build(folder)
    return folder


def test_c_program_gets_the_values_of_onnxruntime(folder: Path) -> None:
    """The program prints each output's shape, then its elements; its input formula is repeated here."""
    shown = output_of(str(folder / "run_model"), str(folder / "model.so"), str(EXTENT)).splitlines()
    assert shown[0] == "input x -1 24"

    index = np.arange(EXTENT * 24)
    x = ((index * 37 % 101).astype(np.float32) / np.float32(101) - np.float32(0.5)).reshape(EXTENT, 24)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    scores, best = session.run(None, {"x": x})

    start = shown.index("output scores -1 10")
    assert shown[start + 1] == f"shape {EXTENT} 10"
    got = np.array([float(line) for line in shown[start + 2 : start + 2 + scores.size]]).reshape(scores.shape)
    np.testing.assert_allclose(got, scores, rtol=1e-5, atol=1e-5)
    assert [int(line) for line in shown[-EXTENT:]] == best.tolist()


def test_library_needs_nothing_but_libc(folder: Path) -> None:
    """`model.so` names no library beyond libc, libm and the dynamic loader, and exports one symbol."""
    dynamic = output_of("readelf", "-dW", str(folder / "model.so"))
    needed = {line.split("[")[1].split("]")[0] for line in dynamic.splitlines() if "(NEEDED)" in line}
    assert needed <= {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "libdl.so.2"}
    exported = output_of("nm", "-D", "--defined-only", "--format=just-symbols", str(folder / "model.so"))
    assert exported.split() == ["mlc_model_query"]


def test_a_wrong_library_is_refused_with_a_message(folder: Path) -> None:
    broken = folder / "broken.so"
    broken.write_bytes(b"this is no shared library")
    command = [str(folder / "run_model"), str(broken)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 1
    assert "broken.so" in result.stderr
