"""`mlc.compile`: results, signature, options, determinism, and what it says when something is wrong."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from models.perceptron import expected
from onnx import TensorProto, helper

import mlc
from mlc.frontends.report import ModelError
from mlc.options import PHASES, InternalError, UsageError


def _input(batch: int) -> np.ndarray:
    return np.random.default_rng(batch).standard_normal((batch, 24)).astype(np.float32)


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_results_for_any_batch(model: onnx.ModelProto, batch: int) -> None:
    compiled = mlc.compile(model)
    x = _input(batch)
    (y,) = compiled(x)
    want = expected(model, x)
    assert want.std() > 0.05
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


def test_signature_and_metadata(model: onnx.ModelProto) -> None:
    compiled = mlc.compile(model, dims={"batch": (1, 16)}, cpu="x86-64-v3")
    assert [(v.name, v.dtype, list(v.dims)) for v in compiled.inputs] == [("x", "float32", ["batch", 24])]
    assert [(v.name, v.dtype, list(v.dims)) for v in compiled.outputs] == [("y", "float32", ["batch", 5])]
    assert (compiled.dims["batch"].lowest, compiled.dims["batch"].highest) == (1, 16)
    metadata = compiled.metadata
    assert metadata["target"]["cpu"] == "x86-64-v3"
    assert "+avx2" in metadata["cpu_features"] and "avx512" not in metadata["cpu_features"]
    nodes = {node for kernel in metadata["kernels"] for node in kernel["nodes"]}
    assert {"first", "second"} <= nodes
    batch = 5
    assert eval(metadata["memory"]["forward"], {"batch": batch}) >= batch * 32 * 4
    with pytest.raises(ValueError, match="batch"):
        compiled(_input(17))


def test_static_dimension_and_chosen_outputs(model: onnx.ModelProto) -> None:
    compiled = mlc.compile(model, dims={"batch": 3}, outputs=["hidden", "y"])
    assert list(compiled.inputs[0].dims) == [3, 24]
    x = _input(3)
    hidden, y = compiled(x)
    assert hidden.shape == (3, 32) and (hidden >= 0).all() and hidden.max() > 1
    np.testing.assert_allclose(y, expected(model, x), rtol=1e-5, atol=1e-6)


def test_two_step_compiles_give_the_same_bytes(model_file: Path, tmp_path: Path) -> None:
    whole = tmp_path / "model.so"
    mlc.compile(model_file, output=whole)
    for phase in PHASES:
        stage = mlc.compile(model_file, output=tmp_path / f"{phase}.mlir", emit=phase)
        mlc.compile(stage, output=tmp_path / "again.so", from_phase=phase)
        assert (tmp_path / "again.so").read_bytes() == whole.read_bytes(), phase


def test_cache_and_jobs_change_nothing(model_file: Path, tmp_path: Path) -> None:
    variants = [{"cache": False, "jobs": 1}, {"cache": False, "jobs": 3}, {}, {}]
    files = [tmp_path / f"{i}.so" for i in range(len(variants))]
    for file, options in zip(files, variants, strict=True):
        mlc.compile(model_file, output=file, **options)
    assert len({file.read_bytes() for file in files}) == 1
    assert list((tmp_path / "cache" / "objects").glob("*/*.o"))


def test_concurrent_compiles_of_one_model(model_file: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.so" for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda file: mlc.compile(model_file, output=file), files))
    assert len({file.read_bytes() for file in files}) == 1


def test_external_weights(model: onnx.ModelProto, model_file: Path, tmp_path: Path) -> None:
    compiled = mlc.compile(model_file, output=tmp_path / "model.so", weights="external")
    weights = tmp_path / "model.safetensors"
    assert compiled.metadata["weights"]["file"] == weights.name
    x = _input(4)
    np.testing.assert_allclose(compiled(x)[0], expected(model, x), rtol=1e-5, atol=1e-6)
    data = bytearray(weights.read_bytes())
    data[-200] ^= 1
    weights.write_bytes(data)
    with pytest.raises(OSError, match="hash"):
        mlc.load(tmp_path / "model.so")


def test_dump_ir(model_file: Path, tmp_path: Path) -> None:
    mlc.compile(model_file, output=tmp_path / "model.so", dump_ir=tmp_path / "ir")
    names = sorted(path.name for path in (tmp_path / "ir").iterdir())
    assert names == [f"{i:02}-{phase}.mlir" for i, phase in enumerate(PHASES)]
    assert "mlc.matmul" in (tmp_path / "ir" / "00-import.mlir").read_text()
    assert "mlc_rt_launch" in (tmp_path / "ir" / "09-llvm.mlir").read_text()


def test_progress_names_every_stage(model_file: Path, tmp_path: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}
    mlc.compile(
        model_file, output=tmp_path / "m.so", progress=lambda stage, done, total, _: seen.update({stage: (done, total)})
    )
    assert list(seen)[0] == "import" and list(seen)[-1] == "library"
    assert all(done == total for done, total in seen.values())
    assert seen["object"][1] >= 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": "nowhere"}, "emit 'nowhere' is not one of: import"),
        ({"target": "abacus"}, "target 'abacus'"),
        ({"cpu": "z80"}, "unknown CPU 'z80'; known are native, x86-64"),
        ({"weights": "external"}, "external weights need an output file"),
        ({"emit": "linalg"}, "needs an output file"),
        ({"load": False}, "not loaded needs an output file"),
        ({"dims": {"batch": (4, 2)}}, "dimension 'batch': 4..2"),
        ({"frobnicate": 1}, "unknown option 'frobnicate'"),
        ({"from_phase": "linalg"}, "needs an .mlir file"),
        ({"dtypes": {"x": "int8"}}, "input 'x' is float32 in the model, not int8"),
        ({"dtypes": {"z": "int8"}}, "the model has no input 'z'; its inputs are x"),
    ],
)
def test_usage_errors(model: onnx.ModelProto, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mlc.compile(model, **options)  # type: ignore[arg-type]


def test_going_on_checks_the_phase_and_the_target(model_file: Path, tmp_path: Path) -> None:
    stage = mlc.compile(model_file, output=tmp_path / "x.mlir", emit="kernels", cpu="x86-64-v3")
    with pytest.raises(UsageError, match="has completed phase 'kernels', not 'linalg'"):
        mlc.compile(stage, from_phase="linalg")
    with pytest.raises(UsageError, match="was made for CPU 'x86-64-v3', not for 'x86-64'"):
        mlc.compile(stage, cpu="x86-64")
    assert mlc.compile(stage).metadata["target"]["cpu"] == "x86-64-v3"


def test_all_problems_of_a_model_at_once() -> None:
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("NoSuchOperator", ["x"], ["a"], name="one"),
        helper.make_node("NeitherThisOne", ["a"], ["y"], name="two"),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [1])], [value("y", TensorProto.FLOAT, [1])])
    with pytest.raises(ModelError) as caught:
        mlc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert "NoSuchOperator" in str(caught.value)


def test_a_failing_pass_leaves_a_reproducer(tmp_path: Path) -> None:
    source = tmp_path / "broken.mlir"
    source.write_text(
        'module attributes {mlc.phase = "tile"} {\n'
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %y = scf.execute_region -> tensor<4xf32> { scf.yield %x : tensor<4xf32> }\n"
        "  return %y : tensor<4xf32>\n}\n}\n"
    )
    reproducer = tmp_path / "reproducer.mlir"
    with pytest.raises(InternalError, match="scf.execute_region") as caught:
        mlc.compile(source, output=tmp_path / "m.so", reproducer=reproducer)
    assert caught.value.stage == "buffers" and caught.value.reproducer == reproducer
    text = reproducer.read_text()
    assert text.startswith("// mlc-opt --pass-pipeline=") and "execute_region" in text
    assert not (tmp_path / "m.so").exists()


def test_an_error_in_a_run_names_the_node() -> None:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "indices"], ["y"], name="lookup")],
        "g",
        [value("table", TensorProto.FLOAT, ["n", 3]), value("indices", TensorProto.INT64, ["k"])],
        [value("y", TensorProto.FLOAT, ["k", 3])],
    )
    compiled = mlc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(compiled(table, np.array([3, -1, 0]))[0], table[[3, -1, 0]])
    with pytest.raises(RuntimeError, match="node 'lookup': index 4 is out of range"):
        compiled(table, np.array([0, 4]))


@pytest.mark.parametrize("phase", ["import", "simplify", "tile", "llvm"])
def test_an_interrupt_inside_a_pass(model_file: Path, tmp_path: Path, phase: str) -> None:
    """Ctrl-C reaches the caller as such, not as the failure of the pass that it came in."""
    started = threading.Event()

    def progress(stage: str, done: int, total: int, _: float) -> None:
        if stage == phase and done < total and not started.is_set():
            started.set()
            threading.Timer(0.002, signal.raise_signal, [signal.SIGINT]).start()

    with pytest.raises(KeyboardInterrupt):
        mlc.compile(model_file, output=tmp_path / "m.so", progress=progress, cache=False)
    assert started.is_set() and not (tmp_path / "m.so").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    mlc.compile(model_file, output=tmp_path / "m.so")


def test_a_library_for_a_gpu_is_written_without_one(model_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.so"
    assert mlc.compile(model_file, output=output, target="cuda", load=False) == output
    assert output.read_bytes()[:4] == b"\x7fELF"
