"""GPU architectures beside Hopper: what the assembler says of their code, and which code a library loads where."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from gpu.assembled import OTHERS
from gpu.stand_in import RUN, Outcome, run_with
from onnx import helper, numpy_helper
from spread import EVERY
from toolchain import needs_ptxas

from mlc.targets.nvidia import NAMED

pytestmark = [needs_ptxas, pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")]


def _model(rows: int | str = "n") -> onnx.ModelProto:
    """Attention of one head over the rows of x, and a layer."""
    rng = np.random.default_rng(0)
    arrays = {"w": rng.standard_normal((64, 128)), "b": rng.standard_normal(128)}
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["scores"], name="scores"),
        helper.make_node("Softmax", ["scores"], ["p"], name="softmax"),
        helper.make_node("MatMul", ["p", "x"], ["a"], name="values"),
        helper.make_node("MatMul", ["a", "w"], ["c"], name="layer"),
        helper.make_node("Add", ["c", "b"], ["d"], name="bias"),
        helper.make_node("Relu", ["d"], ["y"], name="relu"),
    ]
    values = [helper.make_tensor_value_info(n, 1, [rows, d]) for n, d in (("x", 64), ("y", 128))]
    constants = [numpy_helper.from_array(a.astype("f4"), n) for n, a in arrays.items()]
    graph = helper.make_graph(nodes, "model", values[:1], values[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _compile(model: onnx.ModelProto, output: Path, **options: object) -> Path:
    from mlc.compilation import Compilation
    from mlc.options import make_options

    return Compilation(make_options(target="cuda", cache=False, **options)).run(model, output)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
@pytest.mark.parametrize("arch", OTHERS)
def test_ptxas_takes_a_model(arch: str, precision: str, tmp_path: Path) -> None:
    folder = _compile(_model(96), tmp_path / "model", gpu=arch, precision=precision, emit="cubin")
    for kernel in json.loads((folder / "launch.json").read_text()):
        assert kernel["warnings"] == [] and kernel["maps"] == []
        assert kernel["shared"] <= NAMED[arch].shared_memory_per_block
        resources = kernel["resources"]
        assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0), kernel["name"]


@pytest.mark.parametrize(
    ("arch", "version"), [("sm_80", "8.0"), ("sm_89", "8.0"), ("sm_90a", "8.0"), ("sm_100a", "8.6")]
)
def test_ptx_is_as_old_as_it_can_be(arch: str, version: str, tmp_path: Path) -> None:
    folder = _compile(_model(), tmp_path / "model", gpu=arch, emit="ptx")
    for path in folder.glob("*.ptx"):
        text = path.read_text()
        assert f".version {version}\n" in text and f".target {arch}\n" in text


# --- Which code a library loads ---------------------------------------------------------------------------------------


def _loads(driver: Path, library: Path, capability: str, **settings: str) -> Outcome:
    return run_with(driver, [sys.executable, "-c", RUN, library], FAKE_CUDA_CAPABILITY=capability, **settings)


def _loaded(outcome: Outcome) -> set[str]:
    assert outcome.code == 0, outcome.said
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    return {line for line in outcome.log if line.startswith("load ")}


def test_machine_code_is_the_familys_and_ptx_for_later_chips(driver: Path, tmp_path: Path) -> None:
    library = _compile(_model(), tmp_path / "model.so", gpu="sm_80", precision="bf16")
    assert _loaded(_loads(driver, library, "8.0")) == {"load cubin"}
    assert _loaded(_loads(driver, library, "8.6")) == {"load cubin"}
    assert _loaded(_loads(driver, library, "9.0")) == {"load ptx"}
    assert _loaded(_loads(driver, library, "12.0")) == {"load ptx"}


def _message(outcome: Outcome) -> str:
    assert outcome.code == 1
    assert outcome.log == [] or outcome.log[-1] == "0 blocks, 0 modules, 0 streams, events and graphs left"
    return outcome.said.strip().splitlines()[-1]


def test_what_no_code_is_for(driver: Path, tmp_path: Path) -> None:
    """An older chip; a later one, for which there is no PTX of Hopper's instructions; an old driver."""
    older = _compile(_model(), tmp_path / "older.so", gpu="sm_86")
    said = _message(_loads(driver, older, "8.0"))
    assert "GPU 0 (Fake GPU 0) has compute capability 8.0; this model was compiled for sm_86 and needs 8.6" in said
    hopper = _compile(_model(), tmp_path / "hopper.so", gpu="sm_90a", precision="bf16")
    said = _message(_loads(driver, hopper, "10.0"))
    assert "has compute capability 10.0; kernel 'k" in said and "was compiled for sm_90a, whose instructions" in said
    assert said.endswith("no other chip has: compile the model for this GPU")
    plain = _compile(_model(), tmp_path / "plain.so", gpu="sm_90a")
    assert _loaded(_loads(driver, plain, "10.0")) == {"load ptx"}
    blackwell = _compile(_model(), tmp_path / "blackwell.so", gpu="sm_100a")
    said = _message(_loads(driver, blackwell, "10.0", FAKE_CUDA_VERSION="12040"))
    assert "the NVIDIA driver is too old: it speaks CUDA 12.4, this model needs 12.7" in said


# --- Several architectures in one library -----------------------------------------------------------------------------


def test_the_best_code_is_taken(driver: Path, tmp_path: Path) -> None:
    """Machine code of the chip or its family before PTX, later PTX before earlier; each has launches of its own."""
    library = _compile(_model(), tmp_path / "model.so", gpu="sm_90a,sm_80,sm_89", precision="bf16", verify_each=True)
    taken = {}
    for capability in ("8.0", "8.6", "8.9", "9.0", "10.0"):
        outcome = _loads(driver, library, capability)
        kernels = {line.split()[1] for line in outcome.log if line.startswith("launch ")}
        (suffix,) = {name[2:] for name in kernels}
        taken[capability] = *_loaded(outcome), suffix
    assert taken == {
        "8.0": ("load cubin", "_sm_80"), "8.6": ("load cubin", "_sm_80"), "8.9": ("load cubin", "_sm_89"),
        "9.0": ("load cubin", ""), "10.0": ("load ptx", "_sm_89"),
    }  # fmt: skip
    logs = [_loads(driver, library, capability).log for capability in ("8.0", "9.0")]
    ampere, hopper = ([line for line in log if line.startswith("launch ")] for log in logs)
    assert len(ampere) == len(hopper) and [line.replace("_sm_80", "") for line in ampere] != hopper
    said = _message(_loads(driver, library, "7.5"))
    assert said.endswith("this model was compiled for sm_90a, sm_80, sm_89 and needs 8.0 or newer")


def test_a_driver_for_some_of_the_code(driver: Path, tmp_path: Path) -> None:
    library = _compile(_model(), tmp_path / "model.so", gpu="sm_100a,sm_80")
    assert _loaded(_loads(driver, library, "8.0", FAKE_CUDA_VERSION="12000")) == {"load cubin"}
    said = _message(_loads(driver, library, "10.0", FAKE_CUDA_VERSION="12000"))
    assert "it speaks CUDA 12.0, this model needs 12.7" in said


@pytest.mark.slow
def test_going_on_from_any_phase_gives_the_same_bytes(tmp_path: Path) -> None:
    from mlc.options import CUDA_PHASES

    options = {"gpu": "sm_90a,sm_80", "precision": "bf16"}
    whole = _compile(_model(), tmp_path / "whole.so", **options).read_bytes()
    for phase in CUDA_PHASES if EVERY else CUDA_PHASES[::2]:  # each, for one of them: test_library.py
        stage = _compile(_model(), tmp_path / f"{phase}.mlir", emit=phase, **options)
        assert _compile(stage, tmp_path / "again.so").read_bytes() == whole, phase


def test_lists_that_are_wrong(tmp_path: Path) -> None:
    from mlc.options import UsageError

    for names, message in (
        ("sm_90a,sm_75", "unknown GPU 'sm_75'; known are h100, h200, sm_80"),
        ("h200,sm_80,sm_90a", "GPU 'sm_90a' has the code of 'h200': name one of them"),
    ):
        with pytest.raises(UsageError, match=message):
            _compile(_model(), tmp_path / "model.so", gpu=names)


def test_what_has_never_run_says_so(tmp_path: Path) -> None:
    from mlc.runtime.loader import load

    assert NAMED["sm_100a"].status == "compiled, never run"
    library = _compile(_model(), tmp_path / "model.so", gpu="sm_100a")
    if not shutil.which("nvidia-smi"):
        with pytest.raises(Exception, match="there is no NVIDIA driver"):
            load(library)
    assert b'"status": "compiled, never run"' in library.read_bytes()
