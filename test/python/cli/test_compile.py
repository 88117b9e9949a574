"""`mlc-compile` as a process: exit codes, messages, what it writes and what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from models.perceptron import expected, perceptron

import mlc
from mlc.cli.compile import parse_dim, parse_input
from mlc.options import UsageError

COMMAND = [sys.executable, "-m", "mlc.cli.compile"]


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "MLC_CACHE_DIR": str(folder / "cache")}


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=_environment(folder), capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(perceptron(), tmp_path / "perceptron.onnx")
    return tmp_path


def test_compiles_beside_the_caller_with_a_line_per_stage(folder: Path) -> None:
    done = _run(folder, "perceptron.onnx", "--dim", "batch=1..64")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stderr.splitlines()][-3:] == ["object", "library", "wrote"]
    model = mlc.load(folder / "perceptron.so")
    assert model.dims["batch"].highest == 64
    x = np.random.default_rng(3).standard_normal((9, 24)).astype(np.float32)
    np.testing.assert_allclose(model(x)[0], expected(perceptron(), x), rtol=1e-5, atol=1e-6)


def test_stops_and_goes_on(folder: Path) -> None:
    assert _run(folder, "perceptron.onnx", "--emit", "kernels").returncode == 0
    assert (folder / "perceptron.mlir").exists() and (folder / "perceptron.weights").exists()
    done = _run(folder, "perceptron.mlir", "--from", "kernels", "-o", "out.so")
    assert done.returncode == 0, done.stderr
    assert (folder / "out.so").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.onnx"], 1, "missing.onnx"),
        (["broken.onnx"], 1, "broken.onnx"),
        (["perceptron.onnx", "-o", "nowhere/x.so"], 1, "folder 'nowhere'"),
        (["perceptron.onnx", "--emit", "nonsense"], 2, "emit 'nonsense'"),
        (["perceptron.onnx", "--precision", "int8"], 2, "precision 'int8' is not one of: fp32, bf16"),
        (["perceptron.onnx", "--precision", "tf32"], 2, "is not one of: fp32, bf16"),
        (["perceptron.onnx", "--dim", "batch"], 2, "--dim 'batch'"),
        (["perceptron.onnx", "--input", "x=3xfish-cake"], 2, "'fish-cake'"),
        (["perceptron.onnx", "--no-such-option"], 2, "--no-such-option"),
        (["perceptron.onnx", "--from", "linalg"], 2, "needs an .mlir file"),
        (["buggy.mlir", "--from", "tile"], 3, "this is a bug in mlc"),
    ],
)
def test_exit_codes(folder: Path, arguments: list[str], code: int, message: str) -> None:
    (folder / "broken.onnx").write_bytes(b"\x08\x09 this is no model")
    (folder / "buggy.mlir").write_text(
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %y = scf.execute_region -> tensor<4xf32> { scf.yield %x : tensor<4xf32> }\n"
        "  return %y : tensor<4xf32>\n}\n"
    )
    done = _run(folder, *arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr and "Traceback (most recent call last)" not in done.stderr.split("mlc-compile:")[0]
    assert not list(folder.glob("**/*.so"))
    assert (folder / "buggy.reproducer.mlir").exists() == (code == 3)


@pytest.mark.parametrize("stage", ["import", "linalg", "tile", "llvm", "object"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminate"])
def test_an_interrupt_leaves_nothing_behind(folder: Path, stage: str, number: signal.Signals) -> None:
    temporary = folder / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "perceptron.onnx", "-o", "out.so", "--weights", "external"],
        cwd=folder, env={**_environment(folder), "TMPDIR": str(temporary)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    while not process.stderr.readline().startswith(stage):
        assert process.poll() is None
    process.send_signal(number)
    _, text = process.communicate(timeout=60)
    left = {path.name for path in folder.iterdir()} - {"cache", "tmp", "perceptron.onnx"}
    # The last stages may be over before the signal arrives: then everything is there.
    if not (stage in ("llvm", "object") and left):
        word = "interrupted" if number == signal.SIGINT else "terminated"
        assert process.returncode == 128 + number and f"mlc-compile: {word}" in text, text
        assert not left
    else:
        assert left == {"out.so", "out.safetensors"}
    assert "Traceback" not in text
    assert not list(temporary.iterdir()) and not list((folder / "cache").glob("**/.new-*"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x=1x3x224", ("x", (1, 3, 224), None)),
        ("image=batchx3:uint8", None),
        ("image=batch,3,8:uint8", ("image", ("batch", 3, 8), "uint8")),
        ("scalar=", ("scalar", (), None)),
        ("a:b/c=2xN:float32", ("a:b/c", (2, "N"), "float32")),
        ("mask=1,past+2*new:float32", ("mask", (1, "past + 2*new"), "float32")),
    ],
)
def test_input_syntax(text: str, value: tuple[object, ...] | None) -> None:
    if value is None:
        # "batchx3" is one name to people and two parts to the program: commas are the way to say it.
        assert parse_input(text)[1] == ("batch", 3)
    else:
        assert parse_input(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n=8", ("n", (8, 8, 1))),
        ("n=1..512", ("n", (1, 512, 1))),
        ("n=1..", ("n", (1, None, 1))),
        ("n=8..512/8", ("n", (8, 512, 8))),
    ],
)
def test_dim_syntax(text: str, value: tuple[object, ...]) -> None:
    assert parse_dim(text) == value


@pytest.mark.parametrize("text", ["", "n", "n=", "n=a..b", "n=1...3"])
def test_dim_syntax_errors(text: str) -> None:
    with pytest.raises(UsageError, match="--dim"):
        parse_dim(text)
