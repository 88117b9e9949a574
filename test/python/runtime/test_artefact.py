"""Compiled models as files: what they need, what they depend on, and where they run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import onnx
import pytest
from models.perceptron import expected, perceptron
from onnx import helper

import mlc

ROOT = Path(mlc.__file__).resolve().parents[1]


def _compile(folder: Path, *arguments: str, **environment: str) -> None:
    command = [sys.executable, "-m", "mlc.cli.compile", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def _without_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """Nodes without names are called after something else: not after the file."""
    for node in model.graph.node:
        node.name = ""
    return model


def _divider() -> onnx.ModelProto:
    """Checks at run time, whose messages name nodes."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Gather", ["t", "i"], ["g"]), helper.make_node("Div", ["g", "d"], ["y"])]
    inputs = [value("t", onnx.TensorProto.INT64, ["n", 3]), value("i", onnx.TensorProto.INT64, ["k"])]
    graph = helper.make_graph(
        nodes, "g", [*inputs, value("d", onnx.TensorProto.INT64, [3])], [value("y", onnx.TensorProto.INT64, ["k", 3])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("weights", ["embed", "external"])
@pytest.mark.parametrize("make", [perceptron, lambda: _without_names(perceptron()), _divider], ids=["p", "n", "d"])
def test_bytes_do_not_depend_on_the_surroundings(tmp_path: Path, make: object, weights: str) -> None:
    """Another folder and file name, user, clock, locale, hash seed, number of jobs, cache, and age of the file."""
    one, two = tmp_path / "one", tmp_path / "somewhere" / "else entirely"
    one.mkdir()
    two.mkdir(parents=True)
    onnx.save(make(), one / "model.onnx")  # type: ignore[operator]
    shutil.copy(one / "model.onnx", two / "änderer name.onnx")
    os.utime(two / "änderer name.onnx", (1, 1))
    common = ["--weights", weights, "--cpu", "x86-64-v3"]
    here = {"MLC_CACHE_DIR": str(tmp_path / "c1"), "PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC", "USER": "a"}
    there = {"MLC_CACHE_DIR": str(tmp_path / "c2"), "PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}
    _compile(one, "model.onnx", "-o", "out.so", *common, "--jobs", "1", **here)
    _compile(tmp_path, str(two / "änderer name.onnx"), "-o", str(two / "out.so"), *common, "--jobs", "3",
             HOME=str(two), USER="b", **there)  # fmt: skip
    names = {path.name for path in one.iterdir()} - {"model.onnx"}
    assert names == {path.name for path in two.iterdir()} - {"änderer name.onnx"}
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    content = (one / "out.so").read_bytes()
    for text in (str(tmp_path), str(ROOT), "model.onnx"):
        assert text.encode() not in content


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artefact")
    mlc.compile(perceptron(), output=folder / "model.so", cpu="x86-64-v3")
    return folder / "model.so"


def test_what_a_compiled_model_needs(library: Path) -> None:
    def readelf(option: str) -> str:
        return subprocess.run(
            ["readelf", "-W", option, str(library)], check=True, capture_output=True, text=True
        ).stdout

    rows = [line.split() for line in readelf("--dyn-syms").splitlines() if line.strip()[:1].isdigit()]
    assert [row[7] for row in rows if row[6] != "UND"] == ["mlc_model_query"]
    assert set(re.findall(r"NEEDED.*\[(.*)\]", readelf("-d"))) <= {"libc.so.6", "libm.so.6", "libpthread.so.0"}
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", readelf("-V"))]
    assert versions and max(versions) <= (2, 35)
    weights = mlc.load(library).metadata["weights"]["size"]
    assert library.stat().st_size - weights < 300_000


@pytest.fixture(scope="module")
def thin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new virtual environment that has NumPy and the package, but nothing that the package needs."""
    folder = tmp_path_factory.mktemp("thin")
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    own = Path(np.__file__).resolve().parents[1]
    for part in own.glob("numpy*"):
        (packages / part.name).symlink_to(part)
    (packages / "mlc").symlink_to(Path(mlc.__file__).resolve().parent)
    return folder / "bin" / "python"


def _python(python: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-I", "-c", program], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin"}
    )


def test_a_machine_with_numpy_only(library: Path, thin: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((6, 24)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    program = f"""
import sys
import numpy as np
import mlc
model = mlc.load({str(library)!r})
np.save({str(tmp_path / "y.npy")!r}, model(np.load({str(tmp_path / "x.npy")!r}))[0])
print(sorted(m for m in ("mlir", "onnx", "ml_dtypes", "typer", "rich") if m in sys.modules))
"""
    done = _python(thin, program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected(perceptron(), x), rtol=1e-5, atol=1e-6)


def test_what_a_machine_without_the_compiler_says(thin: Path) -> None:
    done = _python(thin, "import mlc\ntry: mlc.compile('m.onnx')\nexcept ImportError as e: print(e)")
    assert "lacks the compiler's package 'mlir': install mlc with its dependencies" in done.stdout, done.stderr
    done = _python(thin, "import mlc.cli.run")
    assert done.returncode == 1 and done.stderr.startswith("mlc-run: needs typer and rich") and done.stderr[-1] == "\n"
