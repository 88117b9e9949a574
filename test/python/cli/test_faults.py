"""What the command lines say about bad input and bad places: one message, the right code, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from models.perceptron import perceptron
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.cli.compile import main
from mlc.weights import Store

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200)
Compile = Callable[..., tuple[int, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "cache"))
    onnx.save(perceptron(), "perceptron.onnx")
    return tmp_path


@pytest.fixture
def compile_(folder: Path, capsys: pytest.CaptureFixture[str]) -> Compile:
    """Runs mlc-compile in this process: its code and its message. A failure leaves the folder as it was."""

    def run(*arguments: str) -> tuple[int, str]:
        before = _files(folder)
        code = main(arguments)
        lines = capsys.readouterr().err.splitlines()
        first = next((i for i, line in enumerate(lines) if line.startswith("mlc-compile: ")), len(lines))
        if code:
            assert _files(folder) == before, arguments
            assert "Traceback" not in "".join(lines) and sum(x.startswith("mlc-compile:") for x in lines) == 1
        return code, "\n".join(lines[first:])

    return run


def _files(folder: Path) -> dict[str, bytes]:
    paths = [p for p in folder.rglob("*") if p.is_file() and "cache" not in p.relative_to(folder).parts]
    return {str(p.relative_to(folder)): p.read_bytes() for p in paths}


# --- Models --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.onnx", None, "cut.onnx: not an ONNX model, or truncated"),
        ("png.onnx", PNG, "png.onnx: not an ONNX model"),
        ("empty.onnx", b"", "empty.onnx: the file is empty"),
        ("png.pt", PNG, "png.pt: "),
        ("png.mlir", PNG, "png.mlir: is no IR: it is not a text file"),
        ("half.mlir", b"func.func @f( {", "half.mlir: is no valid IR: line 1: expected non-function type"),
    ],
)
def test_files_that_are_no_models(compile_: Compile, name: str, content: bytes | None, message: str) -> None:
    Path(name).write_bytes(Path("perceptron.onnx").read_bytes()[:700] if content is None else content)
    code, text = compile_(name, "-o", "out.so")
    assert code == 1 and message in text


@pytest.mark.parametrize("name", ["none.onnx", "none.pt", "none.mlir", "folder.onnx", "folder.mlir"])
def test_files_that_cannot_be_read(compile_: Compile, name: str) -> None:
    if name.startswith("folder"):
        Path(name).mkdir()
    code, text = compile_(name, "-o", "out.so")
    assert code == 1 and f"{name}: cannot be read: " in text


def _gather(table: np.ndarray, index: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Gather", ["t", "i"], ["y"], name="encoder/lookup")]
    weights = [numpy_helper.from_array(table, "t"), numpy_helper.from_array(np.array([0, index]), "i")]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(nodes, "g", [], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("rows", [4, 300], ids=["constant", "weight"])
def test_a_constant_index_out_of_range(compile_: Compile, rows: int) -> None:
    """Found when the weights are evaluated; a weight of the model's own size is no different from a small constant."""
    onnx.save(_gather(np.ones((rows, 3), np.float32), rows), "gather.onnx")
    code, text = compile_("gather.onnx", "-o", "out.so")
    assert code == 1 and f"index {rows} is out of range for {rows} elements" in text
    assert "node 'encoder/lookup'" in text


# --- Going on from files -------------------------------------------------------------------------------------


def test_a_tensor_that_no_machine_could_hold(compile_: Compile) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 20]> main (float[1] x) => (float[N, M] y)
        <int64[2] shape = {1099511627776, 1099511627776}> { y = Expand(x, shape) }"""
    )
    onnx.save(model, "huge.onnx")
    code, text = compile_("huge.onnx", "-o", "out.so")
    assert code == 1 and 'node "Expand:y" (mlc.broadcast): its result has more than 2^56 elements' in text


@pytest.fixture
def stage(compile_: Compile) -> Path:
    assert compile_("perceptron.onnx", "--emit", "schedule", "-o", "stage.mlir")[0] == 0
    return Path("stage.mlir")


def _other_model(weights: Path) -> None:
    store = Store("another")
    store.add("w", np.ones((3, 3), np.float32))
    store.save(weights)


def _flip(weights: Path) -> None:
    data = bytearray(weights.read_bytes())
    data[-50] ^= 1
    weights.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda w: w.unlink(), "its weights 'stage.weights' are missing"),
        (lambda w: w.write_bytes(w.read_bytes()[:300]), "its header is incomplete"),
        (lambda w: w.write_bytes(w.read_bytes()[:-100]), "cut short"),
        (lambda w: w.write_bytes(PNG), "not a safetensors file"),
        (_other_model, "belong to another model"),
        (_flip, "stage.weights is damaged"),
    ],
)
def test_weights_that_do_not_fit(
    compile_: Compile, stage: Path, damage: Callable[[Path], object], message: str
) -> None:
    damage(stage.with_suffix(".weights"))
    code, text = compile_("stage.mlir", "-o", "out.so")
    assert code == 1 and text.startswith("mlc-compile: stage.mlir: ") and message in text


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ('mlc.phase = "schedule"', 'mlc.phase = "llvm"', 1, "after phase 'llvm' the IR breaks its contract"),
        ('mlc.phase = "schedule"', 'mlc.phase = "lunch"', 2, "has completed 'lunch', which is no phase of target"),
        ("mlc.schedule = ", "mlc.scheduled = ", 1, "has no mlc.schedule"),
        ('mlc.target = "cpu:', 'mlc.target = "nvidia:', 2, "was made for target 'nvidia:"),
    ],
)
def test_ir_that_was_edited(compile_: Compile, stage: Path, old: str, new: str, code: int, message: str) -> None:
    assert old in stage.read_text()
    stage.write_text(stage.read_text().replace(old, new))
    got, text = compile_("stage.mlir", "-o", "out.so")
    assert got == code and message in text


# --- Places --------------------------------------------------------------------------------------------------


def test_the_output_is_not_the_input(compile_: Compile) -> None:
    code, text = compile_("perceptron.onnx", "-o", "./perceptron.onnx")
    assert code == 2 and "is the input: name another one" in text


def test_the_output_is_a_folder(compile_: Compile) -> None:
    Path("there").mkdir()
    for output in (".", "there"):
        assert compile_("perceptron.onnx", "-o", output) == (1, f"mlc-compile: the output '{output}' is a folder")


def test_a_device_is_not_replaced(compile_: Compile) -> None:
    os.mkfifo("pipe.so")
    code, text = compile_("perceptron.onnx", "-o", "pipe.so")
    assert code == 1 and "the output 'pipe.so' is neither a file nor a folder" in text
    assert Path("pipe.so").is_fifo()


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs a folder in which nobody can write")
def test_a_folder_that_cannot_be_written(compile_: Compile) -> None:
    code, text = compile_("perceptron.onnx", "-o", "/proc/out.so")
    assert code == 1 and "cannot write to the folder '/proc': " in text and "import" not in text


@contextlib.contextmanager
def _limited_files(size: int) -> Iterator[None]:
    """Files cannot grow beyond `size` bytes: writing more fails as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        (["-o", "out.so"], 20_000),
        (["-o", "out.so", "--weights", "external"], 6_000),
        (["--emit", "linalg", "-o", "out.mlir"], 3_000),
        (["--emit", "linalg", "-o", "out.mlir"], 7_000),
        (["--dump-ir", ".", "-o", "out.so"], 1_000),
    ],
)
def test_a_full_disk(compile_: Compile, arguments: list[str], size: int) -> None:
    with _limited_files(size):
        code, text = compile_("perceptron.onnx", *arguments)
    assert code == 1 and ("File too large" in text or "the linker" in text)


@pytest.mark.parametrize("blocked", ["/proc/none", "perceptron.onnx"])
def test_a_cache_that_cannot_be_written(compile_: Compile, monkeypatch: pytest.MonkeyPatch, blocked: str) -> None:
    monkeypatch.setenv("MLC_CACHE_DIR", blocked)
    assert compile_("perceptron.onnx", "-o", "out.so")[0] == 0
    monkeypatch.setenv("MLC_CACHE_LIMIT", "2GB")
    code, text = compile_("perceptron.onnx", "-o", "other.so")
    assert code == 1 and "MLC_CACHE_LIMIT is '2GB'; it must be a number of bytes" in text


def test_a_damaged_cache(compile_: Compile, folder: Path) -> None:
    assert compile_("perceptron.onnx", "-o", "one.so")[0] == 0
    files = list(folder.glob("cache/objects/*/*.o"))
    assert files
    for number, file in enumerate(files):
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2] if number % 2 else b"\0" + data[1:])
    assert compile_("perceptron.onnx", "-o", "two.so")[0] == 0
    assert Path("one.so").read_bytes() == Path("two.so").read_bytes()


# --- Options -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tune=soon"], "--tune=soon: expected a number of seconds"),
        (["--tune=0"], "tune takes a number of seconds above 0"),
        (["--calibrate", "data.npz"], "--calibrate: this version does not quantise models"),
        (["--precision", "int8"], "precision 'int8' is not one of: fp32"),
        (["--verify=-1"], "verify must be at least 1"),
        (["--verify=many"], "Invalid value for '--verify'"),
        (["--dim", "batch=9..3"], "dimension 'batch': 9..3"),
        (["--dim", "batch=0..8/0"], "dimension 'batch': 0..8 in steps of 0"),
        (["--weights", "inside"], "weights 'inside' is not one of: auto, embed, external"),
        (["--cpu", "z80"], "unknown CPU 'z80'"),
        (["--jobs", "0"], "jobs must be at least 1"),
    ],
)
def test_usage(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["perceptron.onnx", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not Path("perceptron.so").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dim", "time=8"], 'there is no dimension "time"; the named dimensions are: batch'),
        (["--outputs", "nothing"], 'there is no value "nothing" to return'),
        (["--input", "z=1x24"], 'there is no input "z"; the inputs are: x'),
        (["--input", "x=2x25"], "perceptron.onnx: "),
    ],
)
def test_options_that_do_not_fit_the_model(compile_: Compile, arguments: list[str], message: str) -> None:
    code, text = compile_("perceptron.onnx", *arguments)
    assert code in (1, 2) and message in text


def test_verify_alone_means_three_runs(compile_: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlc import verification

    seen: list[int] = []
    real = verification.random_inputs

    def counted(model: mlc.runtime.Model, infos: list, run: int) -> dict[str, np.ndarray]:
        seen.append(run)
        return real(model, infos, run)

    monkeypatch.setattr(verification, "random_inputs", counted)
    assert compile_("perceptron.onnx", "--verify")[0] == 0 and seen == [0, 1, 2]
    assert compile_("perceptron.onnx", "--verify=1")[0] == 0 and seen == [0, 1, 2, 0]


# --- Who reads what is printed --------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["2>&1 | true", "2>/dev/full", "2>&-"])
def test_progress_that_nobody_reads(folder: Path, end: str) -> None:
    program = f"{sys.executable} -m mlc.cli.compile perceptron.onnx -o out.so {end}"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {program}"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert mlc.load("out.so").inputs[0].name == "x"


# --- mlc-opt -------------------------------------------------------------------------------------------------


def _opt(*arguments: str, script: str = "") -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -m mlc.cli.opt {' '.join(arguments)} {script}"
    return subprocess.run(["bash", "-c", f"set -o pipefail; {program}"], capture_output=True, text=True, timeout=60)


def test_opt_ends_quietly_when_its_reader_does(compile_: Compile) -> None:
    assert compile_("perceptron.onnx", "--emit", "llvm", "-o", "stage.mlir")[0] == 0
    done = _opt("stage.mlir", script="| head -c 100")
    assert done.stderr == "" and len(done.stdout) == 100
    done = _opt("--help", script="| head -1")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["half.mlir"], "half.mlir:1:14: error: expected non-function type"),
        (["none.mlir"], "cannot open input file 'none.mlir': No such file"),
        (["good.mlir", "--no-such-pass"], "Unknown command line argument '--no-such-pass'"),
        (["good.mlir", "--pass-pipeline='builtin.module(none)'"], "'none' does not refer to a registered pass"),
        (["good.mlir", "-o", "/proc/out"], "cannot open output file"),
    ],
)
def test_opt_reports(folder: Path, arguments: list[str], message: str) -> None:
    Path("half.mlir").write_text("func.func @f( {")
    Path("good.mlir").write_text("func.func private @f()\n")
    done = _opt(*arguments)
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
