"""`mlc-run` as a user calls it: output, exit codes, messages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mlc
from mlc.cli import run
from mlc.runtime.compare import compare

pytest.importorskip("typer")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def command(model_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return model_path


def call(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    code = run.main([str(a) for a in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def test_info(command: Path, capsys: Captured) -> None:
    code, out, err = call(capsys, command, "--info", "--threads", 3)
    assert (code, err) == (0, "")
    for text in ("entry forward", "float32[batch,4]", "sequence(float32[...])", "1 to 4096", "4 or more", "threads: 3"):
        assert text in out


def test_lines_are_not_broken_where_no_terminal_reads_them(
    command: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    broken = call(capsys, command, "--info")[1]
    monkeypatch.delenv("COLUMNS")
    whole = call(capsys, command, "--info")[1]
    assert len(whole.splitlines()) < len(broken.splitlines())


def test_run_and_save(command: Path, capsys: Captured, tmp_path: Path) -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.save(tmp_path / "x.npy", x)
    code, out, _ = call(capsys, command, "--input", "x=@x.npy", "--save", "out.npz")
    assert code == 0 and "float32[2,3]" in out
    expected = x @ np.arange(12, dtype=np.float32).reshape(4, 3) + 100
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], expected)
    assert f"{expected.min():.6g}" in out and f"{expected.max():.6g}" in out
    assert call(capsys, command, "-i", "x=@x.npy", "--check", "out.npz")[0] == 0
    np.savez(tmp_path / "inputs.npz", x=x, other=x + 1)
    assert call(capsys, command, "-i", "x=@inputs.npz", "--check", "out.npz")[0] == 0
    code, out, err = call(capsys, command, "-i", "x=@inputs.npz:other", "--check", "out.npz")
    assert code == 1 and "6 of 6  differs" in out and "the outputs differ from those of 'out.npz'" in err


def test_saved_lists_and_strings(command: Path, capsys: Captured, tmp_path: Path) -> None:
    call(capsys, command, "--entry", "reverse", "-i", "extra=2", "--save", "r.npz")
    with np.load(tmp_path / "r.npz") as archive:
        assert sorted(archive.files) == ["extra_out", "reversed.0", "reversed.1"]
        assert archive["extra_out"].tolist() == [2, 2]
    call(capsys, command, "--entry", "shout", "-i", "words=abc", "--dim", "n=2", "--save", "s.npz")
    assert np.load(tmp_path / "s.npz")["loud"].tolist() == ["ABC", "ABC"]


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [
        ([], "[1,3]"),
        (["--dim", "batch=5"], "[5,3]"),
        (["--input", "x=7x4"], "[7,3]"),
        (["-i", "x=zeros", "--dim", "batch=2"], "[2,3]"),
        (["--entry", "checked", "-i", "x=ones"], "[4]"),
    ],
)
def test_shapes(command: Path, capsys: Captured, arguments: list[str], shape: str) -> None:
    code, out, err = call(capsys, command, *arguments)
    assert code == 0, err
    assert f"float32{shape}" in out


def test_seed(command: Path, capsys: Captured) -> None:
    first, second, other = (call(capsys, command, "--seed", n)[1] for n in (1, 1, 2))
    assert first == second != other


def test_bench_and_profile(command: Path, capsys: Captured) -> None:
    code, out, _ = call(capsys, command, "--bench=7", "--profile", "--threads", 1)
    assert code == 0
    assert "7 runs, 1 thread: min " in out
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line}
    assert rows["row_product"][6:] == ["loops", "enc[0]/MatMul", "and", "2", "more"]
    assert rows["row_product"][1:3] == ["1", "1"] and rows["copy"][1:3] == ["1", "3"]
    assert float(rows["total"][1]) >= float(rows["copy"][3]) >= 0
    code, out, _ = call(capsys, command, "--bench")
    assert code == 0 and int(out.splitlines()[-1].split()[0]) > 100


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--entry", "nope"], 2, "the model has no entry 'nope'; it has forward, select"),
        (["-i", "z=ones"], 2, "entry 'forward' has no input 'z'; its inputs are: x"),
        (["-i", "x"], 2, "--input x: expected NAME=VALUE"),
        (["-i", "x=wat"], 2, "input 'x': 'wat' is none of @FILE, random"),
        (["-i", "x=random:5:1"], 2, "expected random:LOW:HIGH with LOW below HIGH"),
        (["-i", "x=@none.npy"], 2, "input 'x': there is no file 'none.npy'"),
        (["--dim", "z=3"], 2, "the model has no dimension 'z'; its dimensions are: batch, n, k, m"),
        (["--dim", "batch=-1"], 2, "an extent is a number"),
        (["--threads", "0"], 2, "threads"),
        (["--frob"], 2, "No such option: --frob"),
        (["--dim", "batch=5000"], 1, "dimension 'batch' is 5000 in float32[5000,4]; the model was compiled for 1 to"),
        (["-i", "x=2x5"], 1, "input 'x': expected float32[batch,4], got float32[2,5]"),
        (["--entry", "select", "-i", "indices=9"], 1, "node 'encoder/Gather': index 9 is out of range"),
        (["--check", "none.npz"], 2, "there is no file 'none.npz'"),
        (["--check", __file__], 2, "a reference is an .npz or an .onnx file"),
        (["--save", "no/such/folder.npz"], 1, "No such file or directory"),
        (["--save", "."], 1, "'.' is no file that can be replaced"),
        (["--save", "/proc/out.npz"], 1, "cannot write to the folder '/proc'"),
        (["--seed", "-1"], 2, "--seed"),
        (["--bench=-3"], 2, "--bench"),
        (["--bench=few"], 2, "--bench"),
        (["--rtol", "x"], 2, "--rtol"),
        (["--dim", "batch=99999999999"], 1, "Unable to allocate"),
        (["--dim", "batch=9223372036854775807"], 2, "float32[9223372036854775807,4] takes more memory than any machine"),
    ],
)
def test_faults(command: Path, capsys: Captured, arguments: list[str], code: int, message: str) -> None:
    got, _, err = call(capsys, command, *arguments)
    assert got == code and message in err
    assert err.startswith("mlc-run: ") and err.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n", b"PK\x03\x04", None], ids=["empty", "png", "zip", "cut"])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_damaged_arrays(command: Path, capsys: Captured, tmp_path: Path, content: bytes | None, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    if content is None:
        arrays = {"x": np.ones((2, 4), np.float32), "y": np.ones((2, 3), np.float32)}
        np.savez(path, **arrays) if suffix == "npz" else np.save(path, arrays["x"])
        content = path.read_bytes()[:-30]
    path.write_bytes(content)
    options = [["-i", f"x=@{path}"]] + ([["--check", str(path)]] if suffix == "npz" else [])
    for option in options:
        code, _, err = call(capsys, command, *option)
        assert code == 2 and f"'{path}' is not a .npy or .npz file: " in err and err.count("\n") == 1


def test_saved_files_are_like_others(command: Path, capsys: Captured, tmp_path: Path) -> None:
    """Their permissions are those that any new file has, and a pipe is not replaced by one."""
    (tmp_path / "other").touch()
    assert call(capsys, command, "--save", str(tmp_path / "out.npz"))[0] == 0
    assert (tmp_path / "out.npz").stat().st_mode == (tmp_path / "other").stat().st_mode
    os.mkfifo(tmp_path / "pipe.npz")
    code, _, err = call(capsys, command, "--save", str(tmp_path / "pipe.npz"))
    assert code == 1 and "pipe.npz' is no file that can be replaced" in err and (tmp_path / "pipe.npz").is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other", "out.npz", "pipe.npz"]


def test_not_a_model(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "x.so").write_text("no")
    assert call(capsys, tmp_path / "x.so")[0] == 1
    assert call(capsys)[0] == 2
    code, out, _ = call(capsys, "--help")
    assert code == 0 and "--profile" in out


def test_a_bug_leaves_a_report(command: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(run, "_print_outputs", broken)
    code, _, err = call(capsys, command)
    assert code == 3 and "a bug in mlc: ZeroDivisionError: oops; please report it with the file " in err
    report = Path(err.split("the file ")[1].strip())
    assert "command: mlc-run" in report.read_text() and "in broken" in report.read_text()
    report.unlink()


def test_check_against_onnx(tmp_path: Path, command: Path, capsys: Captured) -> None:
    onnx = pytest.importorskip("onnx")
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("MatMul", ["x", "w"], ["p"]),
            onnx.helper.make_node("Add", ["p", "b"], ["y"]),
        ],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, ["batch", 4])],
        [onnx.helper.make_tensor_value_info("y", 1, ["batch", 3])],
        [onnx.numpy_helper.from_array(weight, "w"), onnx.numpy_helper.from_array(np.float32(100), "b")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(tmp_path / "same.onnx"))
    code, out, err = call(capsys, command, "--dim", "batch=6", "--check", "same.onnx")
    assert (code, err) == (0, "") and "0 of 18  ok" in out
    (tmp_path / "bad.onnx").write_text("nonsense")
    code, _, err = call(capsys, command, "--check", "bad.onnx")
    assert code == 2 and "onnxruntime cannot run 'bad.onnx'" in err


def test_interrupt(command: Path, tmp_path: Path) -> None:
    """Ctrl-C during a benchmark: no traceback, status 130."""
    program = [sys.executable, "-m", "mlc.cli.run", str(command), "--bench=100000000"]
    root = Path(run.__file__).parents[2]
    process = subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(root)}
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130 and err == "mlc-run: interrupted\n"


def test_needs_no_compiler(command: Path) -> None:
    program = f"""
import sys
for name in ("mlir", "onnx", "onnxruntime", "ml_dtypes"):
    sys.modules[name] = None
from mlc.cli.run import main
sys.exit(main([{str(command)!r}, "--info"]) or main([{str(command)!r}, "--bench=2", "--profile"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""


# --- Comparison ----------------------------------------------------------------------------------------------


def test_compare() -> None:
    one, nan, inf = np.float32(1), np.float32(np.nan), np.float32(np.inf)

    def check(a: object, b: object, rtol: float = 1e-3, atol: float = 0.0) -> bool:
        return compare("y", a, b, rtol, atol).passed

    assert check(np.array([one, nan, inf, -inf]), np.array([one, nan, inf, -inf]))
    for other in (nan, inf, -inf, one + 0.1):
        assert not check(np.array([one]), np.array([other])) and not check(np.array([other]), np.array([one]))
    assert not check(np.array([inf]), np.array([-inf]), rtol=10)
    assert compare("y", np.array([nan]), np.array([nan]), 0, 0).reason == "ok, but no element is finite"
    assert check(np.array([1.0005]), np.array([1.0])) and not check(np.array([1.002]), np.array([1.0]))
    assert check(np.array([3]), np.array([3])) and not check(np.array([1000]), np.array([1001]), rtol=1)
    assert not check(np.zeros(3), np.zeros(4)) and not check(np.zeros((3, 1)), np.zeros(3))
    assert check(np.zeros((0, 3)), np.zeros((0, 3)))
    assert check(np.array(["a"], object), np.array(["a"])) and not check(np.array(["a"]), np.array(["b"]))
    assert check([np.zeros(2), np.ones(1)], [np.zeros(2), np.ones(1)])
    assert not check([np.zeros(2)], [np.ones(2)]) and not check([np.zeros(2)], []) and not check([], np.zeros(1))
    assert check(None, None) and not check(None, np.zeros(1))
    assert check(np.array([1 + 1j]), np.array([1 + 1j])) and not check(np.array([1 + 1j]), np.array([1 - 1j]))
    difference = compare("y", np.array([1.0, 2.5]), np.array([1.0, 2.0]), 0, 0)
    assert (difference.absolute, difference.relative, difference.wrong) == (0.5, 0.25, 1)


def test_extents_that_nobody_gave(tmp_path: Path, capsys: Captured) -> None:
    """Where a model refuses inputs that were made for it, the message says with which extents."""
    onnx = pytest.importorskip("onnx")
    text = """<ir_version: 10, opset_import: ["" : 21]> window (float[1, 1, n] x) => (float[1, 1, m] y)
      <float[1, 1, 5] w = {1, 1, 1, 1, 1}> { y = Conv(x, w) }"""
    library = mlc.compile(onnx.parser.parse_model(text), output=tmp_path / "window.so", load=False)
    code, _, err = call(capsys, library)
    reason = "node 'Conv:y': dimension 2 of the result would be negative (value -3)"
    assert (code, err) == (1, f"mlc-run: {reason}; the input was made with n=1: choose others with --dim\n")
    code, _, err = call(capsys, library, "--dim", "n=3")
    assert (code, err) == (1, f"mlc-run: {reason.replace('-3', '-1')}\n")
    assert call(capsys, library, "--dim", "n=5")[0] == 0
