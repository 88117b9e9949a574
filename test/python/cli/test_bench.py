"""`mlc-bench`: exit codes, messages and what it writes. No test looks at a time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models.few_bits import Weight
from models.perceptron import perceptron
from onnx import numpy_helper

from mlc.bench import engines
from mlc.cli import bench

Captured = pytest.CaptureFixture[str]
QUICK = ("--rounds", 2, "--burst", 0.001)

# Types of the fields; a tuple for several, a list for its items.
NUMBER = (int, float)
MAYBE = (int, float, type(None))
ENGINE = {
    "engine": str, "version": str, "precision": str, "status": str, "message": str, "median_ms": MAYBE,
    "best_ms": MAYBE, "rounds_ms": [float], "relative_error": MAYBE, "gflops": MAYBE, "share_of_peak": MAYBE,
    "ratio": MAYBE, "load_seconds": MAYBE, "memory_bytes": MAYBE, "file_bytes": MAYBE,
}  # fmt: skip
SCHEMA = {
    "schema": int, "compiler": str, "model": str, "precision": str, "static": bool, "reference": str,
    "machine": {"cpu": str, "processors": int, "system": str},
    "inputs": {"x": {"dtype": str, "shape": [int]}},
    "compiled": {
        "seconds": float, "peak_bytes": int, "stages": dict, "kernels": int, "weight_bytes": int, "arena_bytes": MAYBE,
        "file_bytes": int, "flops": MAYBE, "byte_flops": MAYBE,
    },
    "missing": [{"engine": str, "install": str}],
    "runs": [
        {
            "threads": int, "peak_gflops": MAYBE, "byte_peak_gflops": MAYBE, "best_peer": (str, type(None)),
            "ratio": MAYBE, "engines": [ENGINE],
        }
    ],
}  # fmt: skip


def check_schema(value: Any, schema: Any, where: str = "$") -> None:
    """Fails unless `value` has exactly the fields of `schema`, of its types."""
    if isinstance(schema, dict):
        assert set(value) == set(schema), where
        for name, kind in schema.items():
            check_schema(value[name], kind, f"{where}.{name}")
    elif isinstance(schema, list):
        assert isinstance(value, list), where
        for item in value:
            check_schema(item, schema[0], f"{where}[]")
    else:
        assert isinstance(value, schema), f"{where}: {value!r}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    model = perceptron()
    model.ir_version = 9
    onnx.save(model, tmp_path / "perceptron.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    code = bench.main([str(a) for a in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def test_table_json_and_chart(folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    gone = replace(engines.ENGINES["iree"], modules=("no_such_module.of_iree",))
    monkeypatch.setitem(engines.ENGINES, "iree", gone)
    options = ("--threads", "1,2", "--peers", "onnxruntime,iree", "--dim", "batch=4", "--chart", "c.html")
    code, out, err = call(capsys, "perceptron.onnx", *QUICK, *options, "--json", "o.json")
    assert (code, err) == (0, "")
    assert "iree: not installed (pip install iree-base-compiler iree-base-runtime)" in out
    assert "x float32[4,24]" in out and "1 thread\n" in out and "2 threads\n" in out
    data = json.loads(Path("o.json").read_text())
    check_schema(data, SCHEMA)
    assert [run["threads"] for run in data["runs"]] == [1, 2]
    assert data["reference"] == "onnxruntime" and data["inputs"]["x"] == {"dtype": "float32", "shape": [4, 24]}
    assert data["missing"][0]["engine"] == "iree"
    # Two products of 24x32 and 32x5, and a little more for bias, activation and softmax.
    assert 4 * 2 * (24 * 32 + 32 * 5) < data["compiled"]["flops"] < 4 * 3 * (24 * 32 + 32 * 5)
    assert data["compiled"]["arena_bytes"] == 4 * 192
    for run in data["runs"]:
        assert run["best_peer"] == "onnxruntime" and run["ratio"] > 0
        assert [e["engine"] for e in run["engines"]] == ["mlc", "onnxruntime"]
        for engine in run["engines"]:
            assert engine["status"] == "ok" and len(engine["rounds_ms"]) == 2 and engine["relative_error"] < 1e-5
    page = Path("c.html").read_text()
    assert page.count("<svg") == 2 and page.count("<rect") == 4
    assert not re.search(r"(src|href)=|https?://", page)  # needs nothing else


def test_half_precision_has_a_larger_tolerance(folder: Path) -> None:
    """A weight makes it one; rounding to bf16 allows for more."""
    model = onnx.load("perceptron.onnx")
    assert bench.allowed_error(None, Path("perceptron.onnx"), "fp32") == 1e-3
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.float16), "halves"))
    onnx.save(model, "halves.onnx")
    assert bench.allowed_error(None, Path("halves.onnx"), "fp32") == 1e-2
    assert bench.allowed_error(None, Path("halves.onnx"), "bf16") == 5e-2
    assert bench.allowed_error(0.0, Path("halves.onnx"), "fp32") == 0


def test_memory_is_that_of_the_engine() -> None:
    """Not what the process that starts it has: 400 MB here."""
    held = np.ones(400 << 20, np.uint8)
    code = "from mlc.bench.worker import peak_memory; print(peak_memory())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 1 << 20 < int(done.stdout) < held.nbytes


def test_outputs_in_the_memory_of_inputs(folder: Path, capsys: Captured) -> None:
    """A cache that two engines update where it lies; a model without one."""
    pytest.importorskip("onnxruntime")
    names = {"cache": (onnx.TensorProto.FLOAT, [2, 6, 8]), "new": (onnx.TensorProto.FLOAT, [2, 1, 8])}
    given = [onnx.helper.make_tensor_value_info(name, *of) for name, of in names.items()]
    starts = onnx.helper.make_tensor("starts", onnx.TensorProto.INT64, [2], [1, 4])
    nodes = [
        onnx.helper.make_node("TensorScatter", ["cache", "new", "starts"], ["next"], axis=1),
        onnx.helper.make_node("Neg", ["next"], ["y"]),
    ]
    made = [onnx.helper.make_tensor_value_info(name, *names["cache"]) for name in ("next", "y")]
    graph = onnx.helper.make_graph(nodes, "cache", given, made, [starts])
    opsets = [onnx.helper.make_opsetid("", 24)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=11), "cache.onnx")
    code, out, err = call(capsys, "cache.onnx", *QUICK, "--peers", "onnxruntime", "--share", "--json", "o.json")
    assert (code, err) == (0, ""), out
    [run] = json.loads(Path("o.json").read_text())["runs"]
    assert [engine["relative_error"] for engine in run["engines"]] == [0, 0]
    code, _, err = call(capsys, "perceptron.onnx", *QUICK, "--share", "--peers", "none")
    assert code != 0 and "--share: no output of this model continues an input" in err


def test_products_of_bytes_have_a_peak_of_their_own(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A weight of four bits whose rows are rounded; a share of what floats reach would be above one."""
    monkeypatch.chdir(tmp_path)
    rates = {"fp32": 100.0, "int8": 400.0}
    monkeypatch.setattr("mlc.bench.peak.Peak.best", property(lambda peak: rates[peak._command[2]]))
    proto, _ = Weight(4, 32, 512, 640).model(20, 4)
    onnx.save(proto, "bytes.onnx")
    code, out, err = call(capsys, "bytes.onnx", *QUICK, "--peers", "none", "--tolerance", 0.1, "--json", "o.json")
    assert (code, err) == (0, "")
    assert "no peer to compare with; peak 100 GFLOP/s, of bytes 400" in out
    data = json.loads(Path("o.json").read_text())
    flops, of_bytes = data["compiled"]["flops"], data["compiled"]["byte_flops"]
    assert of_bytes == 2 * 20 * 512 * 640 and of_bytes < flops < 1.1 * of_bytes
    (run,) = data["runs"]
    (engine,) = run["engines"]
    least = (of_bytes / 400 + (flops - of_bytes) / 100) * 1e-6
    assert engine["share_of_peak"] == pytest.approx(least / engine["median_ms"])


def test_another_folder_of_the_name(folder: Path, capsys: Captured) -> None:
    """In a checkout the package's sources lie in the current folder, without the native modules."""
    (folder / "mlc").mkdir()
    (folder / "mlc" / "__init__.py").write_text("raise ImportError('the wrong package')")
    code, _, said = call(capsys, "perceptron.onnx", "--peers", "none", *QUICK)
    assert (code, said) == (0, "")


def test_results_that_differ(folder: Path, capsys: Captured) -> None:
    """Products of bfloat16 are not within a tolerance for float32."""
    options = ("--precision", "bf16", "--tolerance", 1e-6, "--peers", "none", "--json", "o.json")
    code, out, err = call(capsys, "perceptron.onnx", *QUICK, *options)
    assert code == 1
    assert err.startswith("mlc-bench: the compiled model's outputs differ from the reference (relative error ")
    assert "DIFFERS" in out and "no peer to compare with" in out
    assert json.loads(Path("o.json").read_text())["runs"][0]["engines"][0]["status"] == "differs"


def test_static_model_in_bf16_without_a_c_compiler(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlc.bench.peak.find_compiler", lambda: None)
    options = ("--static", "--input", "x=3x24:0:1", "--precision", "bf16", "--peers", "none", "--json", "o.json")
    code, out, err = call(capsys, "perceptron.onnx", *QUICK, *options)
    assert (code, err) == (0, "")
    assert "mlc bf16" in out and "of peak" in out
    data = json.loads(Path("o.json").read_text())
    check_schema(data, SCHEMA)
    (run,) = data["runs"]
    assert data["static"] and run["peak_gflops"] is None and run["engines"][0]["share_of_peak"] is None
    assert run["engines"][0]["relative_error"] > 1e-6  # rounded to bfloat16 indeed
    assert data["inputs"]["x"]["shape"] == [3, 24]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.onnx"], 1, "there is no file 'missing.onnx'"),
        (["model.so"], 2, "mlc-bench takes models that others can run too"),
        (["perceptron.onnx", "--peers", "tvm"], 2, "there is no peer 'tvm'"),
        (["perceptron.onnx", "--threads", "1,0"], 2, "--threads 1,0"),
        (["perceptron.onnx", "--rounds", "0"], 2, "--rounds"),
        (["perceptron.onnx", "--precision", "int8"], 2, "--precision int8"),
        (["perceptron.onnx", "--chart", "c.pdf"], 2, "an .html or a .png file"),
        (["perceptron.onnx", "--json", "nowhere/o.json"], 1, "nowhere"),
        (["perceptron.onnx", "--json", "./perceptron.onnx"], 2, "is the model itself"),
        (["perceptron.onnx", "--json", "/dev/null"], 1, "no file that can be replaced"),
        (["perceptron.onnx", "--dim", "batch=few"], 2, "--dim batch=few"),
        (["perceptron.onnx", "--input", "x"], 2, "--input x"),
        (["perceptron.onnx", "--static"], 2, "give --dim batch=N"),
        (["perceptron.onnx", "--torch", "missing.pt"], 1, "missing.pt"),
        (["damaged.onnx", "--static"], 1, "damaged"),
        (["damaged.onnx"], 1, "mlc-compile: "),
        (["perceptron.onnx", "--input", "x=3x3"], 2, "a shape 3x3 does not fit"),
        (["perceptron.onnx", "--peers", "torch"], 2, "give its TorchScript with --torch"),
        (["perceptron.onnx", "--peers", "inductor"], 2, "give its program of torch.export with --torch"),
        (["--no-such-option"], 2, "No such option"),
    ],
)
def test_what_is_wrong_in_one_line(
    folder: Path, capsys: Captured, arguments: list[str], code: int, message: str
) -> None:
    Path("damaged.onnx").write_bytes(b"\x08\x07" + b"\xff" * 90)
    found, out, err = call(capsys, *arguments)
    assert (found, out) == (code, "")
    assert message in err and err.startswith("mlc-bench: ") and err.count("\n") == 1
