"""A library of two entries, called from C: one mapping of the weights, eight threads with a context each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import mlir.ir as ir
import numpy as np
import onnx
import pytest
from models.perceptron import expected, perceptron
from onnx import numpy_helper

import mlc
import mlc.compiler_setup

HERE = Path(__file__).resolve().parent
INCLUDE = Path(mlc.__file__).resolve().parent / "runtime" / "include"


def two_entries(folder: Path) -> Path:
    """IR with the entries `forward` (the whole model) and `encode` (up to the hidden layer), which share weights."""
    onnx.save(perceptron(), folder / "p.onnx")
    stages = [
        mlc.compile(folder / "p.onnx", output=folder / f"{name}.mlir", emit="import", outputs=[name])
        for name in ("y", "hidden")
    ]
    with ir.Context(), ir.Location.unknown():
        whole, part = (ir.Module.parse(stage.read_text()) for stage in stages)
        encode = next(op for op in part.body.operations if op.operation.name == "func.func").operation.clone()
        encode.attributes["sym_name"] = ir.StringAttr.get("encode")
        whole.body.append(encode)
        stages[0].write_text(whole.operation.get_asm(enable_debug_info=True))
    return stages[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two_entries")
    mlc.compile(two_entries(folder), output=folder / "model.so", weights="external")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}"]
    source, program = HERE / "two_entries.c", folder / "two_entries"
    subprocess.run(["cc", *flags, str(source), "-o", str(program), "-ldl", "-pthread"], check=True)
    return folder


def test_two_entries_on_one_mapping(folder: Path) -> None:
    weights = folder / "model.safetensors"
    command = [str(folder / "two_entries"), str(folder / "model.so"), str(weights)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 9 and lines[-1] == "1"
    model = perceptron()
    own = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    index = np.arange(3 * 24)
    for number, line in enumerate(lines[:8]):
        x = (((index * 37 + number * 11) % 101).astype(np.float32) / np.float32(101) - np.float32(0.5)).reshape(3, 24)
        outputs = (expected(model, x), np.maximum(x @ own["w"] + own["b"], 0))
        want = [float((np.arange(1, y.size + 1) * y.ravel().astype(np.float64)).sum()) for y in outputs]
        np.testing.assert_allclose([float(word) for word in line.split()], want, rtol=1e-5)


def test_both_entries_from_python(folder: Path) -> None:
    model = mlc.load(folder / "model.so")
    assert list(model.entries) == ["forward", "encode"]
    x = np.random.default_rng(0).standard_normal((5, 24)).astype(np.float32)
    np.testing.assert_allclose(model(x)[0], expected(perceptron(), x), rtol=1e-5, atol=1e-6)
    assert model.entry("encode")(x)[0].shape == (5, 32)


def test_a_missing_weight_file_is_reported(folder: Path) -> None:
    command = [str(folder / "two_entries"), str(folder / "model.so"), str(folder / "none.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "cannot read the weight file" in done.stderr and "none.safetensors" in done.stderr
