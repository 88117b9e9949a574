"""Weight files made without the compiler, from what the library's metadata say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from models.perceptron import expected, perceptron
from onnx import helper, numpy_helper

import mlc
from mlc.cli import run
from mlc.runtime.loader import read_metadata
from mlc.weights import Store

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiled model with external weights, its weight file moved to `original`; and its weights in `own.npz`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "cache"))
    model = perceptron()
    mlc.compile(model, output="model.so", weights="external")
    Path("model.safetensors").rename("original")
    own = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    np.savez("own.npz", **own)
    np.save("x.npy", np.random.default_rng(1).standard_normal((4, 24)).astype(np.float32))
    return tmp_path


def test_the_models_own_weights_give_the_same_file(folder: Path, capsys: Captured) -> None:
    assert run.main(["model.so", "--init-weights", "own.npz"]) == 0
    assert "those compiled with)" in capsys.readouterr().err
    assert Path("model.safetensors").read_bytes() == Path("original").read_bytes()
    x = np.load("x.npy")
    np.testing.assert_allclose(mlc.load("model.so")(x)[0], expected(perceptron(), x), rtol=1e-5, atol=1e-6)


def test_other_weights_are_packed_the_same_way(folder: Path, capsys: Captured) -> None:
    """Fine-tuned weights: the library computes with them what the model would."""
    model = perceptron()
    store = Store("tuned")
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.name != "b":  # small ones are constants of the code
            array = array + np.float32(0.25)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        store.add(tensor.name, array)
    store.save("tuned.safetensors")
    assert run.main(["model.so", "--init-weights", "tuned.safetensors", "--weights", "other.safetensors"]) == 0
    assert "run it with --trust-weights" in capsys.readouterr().err
    x = np.load("x.npy")
    loaded = mlc.load("model.so", weights="other.safetensors", verify_weights=False)
    np.testing.assert_allclose(loaded(x)[0], expected(model, x), rtol=1e-5, atol=1e-6)
    assert run.main(["model.so", "--weights", "other.safetensors"]) == 1
    assert "the hash differs" in capsys.readouterr().err
    assert run.main(["model.so", "--weights", "other.safetensors", "--trust-weights"]) == 0


def test_constants_of_the_code_are_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that has no name in the model: it is in no file of weights, and random weights do not change it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table, weight = rng.standard_normal((16, 32)).astype("f4"), rng.standard_normal((32, 32)).astype("f4")
    nodes = [
        helper.make_node("Constant", [], ["list"], value_floats=table.reshape(-1).tolist()),
        helper.make_node("Constant", [], ["shape"], value_ints=[16, 32]),
        helper.make_node("Reshape", ["list", "shape"], ["table"]),
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Mul", ["p", "z"], ["n"]),
        helper.make_node("Add", ["n", "table"], ["y"]),
    ]
    x, z, y = (helper.make_tensor_value_info(name, 1, [16, 32]) for name in "xzy")
    graph = helper.make_graph(nodes, "table", [x, z], [y], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    mlc.compile(model, output="model.so", weights="external")
    original = Path("model.safetensors").read_bytes()
    Path("model.safetensors").unlink()
    np.savez("own.npz", w=weight)
    assert run.main(["model.so", "--init-weights", "own.npz"]) == 0
    assert Path("model.safetensors").read_bytes() == original
    assert run.main(["model.so", "--init-weights", "1", "--weights", "random.safetensors"]) == 0
    zeros = np.zeros((16, 32), "f4")
    (result,) = mlc.load("model.so", weights="random.safetensors", verify_weights=False)(zeros, zeros)
    np.testing.assert_array_equal(result, table)


def test_random_weights(folder: Path) -> None:
    """The same for the same seed; outputs depend on the input."""
    for seed, name in (("3", "a"), ("3", "b"), ("4", "c")):
        assert run.main(["model.so", "--init-weights", seed, "--weights", f"{name}.safetensors"]) == 0
    files = [Path(f"{name}.safetensors").read_bytes() for name in "abc"]
    assert files[0] == files[1] != files[2]
    x = np.load("x.npy")
    (y,) = mlc.load("model.so", weights="a.safetensors", verify_weights=False)(x)
    assert np.isfinite(y).all() and y.std(axis=0).max() > 0.01


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--init-weights", "none.npz"], 1, "'none.npz': No such file or directory"),
        (["--init-weights", "x.npy"], 1, "x.npy is not a safetensors file"),
        (["--init-weights", "cut.npz"], 1, "'cut.npz' is not an .npz file"),
        (["--init-weights", "half.npz"], 1, "the model's weight 'v' (f32[32,5]) is not among those given: w"),
        (["--init-weights", "wrong.npz"], 1, "weight 'w' is f32[24,3], the model's is f32[24,32]"),
        (["--init-weights", "1", "--weights", "original"], 2, "'original' exists already"),
        (["--init-weights", "1", "--weights", "no/such/folder"], 1, "no/such/folder': No such file"),
    ],
)
def test_faults(folder: Path, capsys: Captured, arguments: list[str], code: int, message: str) -> None:
    own = dict(np.load("own.npz"))
    np.savez("half.npz", w=own["w"])
    np.savez("wrong.npz", v=own["v"], w=own["w"][:, :3])
    Path("cut.npz").write_bytes(Path("own.npz").read_bytes()[:-30])
    before = sorted(p.name for p in folder.iterdir())
    assert run.main(["model.so", *arguments]) == code
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1
    assert sorted(p.name for p in folder.iterdir()) == before


def test_embedded_weights_cannot_be_made(folder: Path, capsys: Captured) -> None:
    mlc.compile(perceptron(), output="embedded.so")
    assert run.main(["embedded.so", "--init-weights", "1"]) == 2
    assert "has no external weights" in capsys.readouterr().err
    assert "weight_image" not in read_metadata("embedded.so")
    assert run.main(["embedded.so", "--weights", "original"]) == 2
    assert "embedded.so' are inside of it: it cannot read 'original'" in capsys.readouterr().err


def test_it_needs_no_compiler(folder: Path) -> None:
    program = """
import sys
for name in ("mlir", "onnx", "onnxruntime", "torch", "mlc._native"):
    sys.modules[name] = None
from mlc.cli.run import main
sys.exit(main(["model.so", "--init-weights", "own.npz", "--bench=2"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert Path("model.safetensors").read_bytes() == Path("original").read_bytes()


def test_what_goes_external(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto`: weights above the limit get a file of their own, and only those."""
    from mlc import compilation

    onnx.save(perceptron(), tmp_path / "p.onnx")
    for limit, external in ((1 << 20, False), (1000, True)):
        monkeypatch.setattr(compilation, "EMBEDDED_LIMIT", limit)
        mlc.compile(tmp_path / "p.onnx", output=tmp_path / "m.so")
        assert (tmp_path / "m.safetensors").exists() == external
        assert bool(read_metadata(tmp_path / "m.so")["weights"]["file"]) == external
    # Without an output file nothing can lie beside it.
    assert mlc.compile(tmp_path / "p.onnx").metadata["weights"]["file"] is None
