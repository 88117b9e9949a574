"""GPU kernels up to machine code: what the PTX contains, that ptxas takes it, and the messages of failures."""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import pytest
from mlir import ir
from models.gpu_cases import Case, build, normal, ten_operators
from toolchain import needs_ptxas

import mlc
import mlc.compiler_setup
from mlc import _native
from mlc.cli.doctor import OPTIONAL, check_ptxas
from mlc.codegen.ptx import GpuKernel, GpuTarget, compile_kernels, emit_ptx
from mlc.codegen.ptxas import AssemblyError, PtxasError, Resources, assemble, find_ptxas, read_resources
from mlc.codegen.ptxas_faults import FAULTS
from mlc.options import UsageError
from mlc.passes.lower.lower_to_nvvm import DATA_LAYOUT, TRIPLE

TARGET = GpuTarget("sm_90a", "+ptx80")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "cache"))


def _compile(case: Case, folder: Path, emit: str, **options: object) -> Path:
    model = folder / f"{case.name}.onnx"
    onnx.save(build(case), model)
    output = folder / f"{case.name}.{emit}"
    mlc.compile(model, target="cuda", emit=emit, output=output, **options)
    return output


def _gpu_kernels(case: Case) -> int:
    """How many kernels of `ten_operators` the GPU runs: NonZero of a size that nobody knows is the host's."""
    return 8 if case.dims is None else 7


def _own(names: Iterable[str]) -> list[str]:
    """Those of kernels, without copies for few rows (`k1_64`)."""
    return [name for name in names if "_" not in name]


def _body(ptx: str) -> list[str]:
    """The instructions of PTX text without their operands."""
    return re.findall(r"^\s*(?:@!?%p\d+ )?([a-z][a-z0-9_.]*)", ptx, re.MULTILINE)


@pytest.mark.parametrize("case", [ten_operators(16, False), ten_operators(5, True)], ids=["static", "dynamic"])
def test_ptx_of_the_ten_operators(case: Case, tmp_path: Path) -> None:
    folder = _compile(case, tmp_path, "ptx")
    launches = {k["name"]: k for k in json.loads((folder / "launch.json").read_text())}
    texts = {path.stem: path.read_text() for path in folder.glob("*.ptx")}
    assert set(texts) == set(launches) and len(_own(launches)) == _gpu_kernels(case)
    for name, text in texts.items():
        kernel = launches[name]
        assert f".entry {name}(" in text and "sm_90a" in text
        assert text.count(".param .u64") == kernel["tensors"] + kernel["indices"] + 2
        assert f".maxntid {kernel['threads']}" in text
        memory = {i for i in _body(text) if i.startswith(("ld.", "st."))}
        assert memory and all(i.split(".")[1] in ("global", "param", "shared") for i in memory), memory
        assert "call" not in _body(text)
    product, softmax = texts["k0"], texts["k1"]
    assert "ld.global.v4" in product and "st.global.v4" in product and "fma.rn.f32" in product
    stores = softmax.count("st.global.v4")
    assert stores and softmax.count("ld.global.v4") == stores, "the row stays in registers: it is read once"
    assert "shfl.sync.bfly" in softmax


@needs_ptxas
@pytest.mark.parametrize("case", [ten_operators(16, False), ten_operators(5, True)], ids=["static", "dynamic"])
def test_ptxas_takes_every_kernel(case: Case, tmp_path: Path) -> None:
    folder = _compile(case, tmp_path, "cubin")
    launches = json.loads((folder / "launch.json").read_text())
    assert len(_own(k["name"] for k in launches)) == _gpu_kernels(case)
    for kernel in launches:
        assert (folder / f"{kernel['name']}.cubin").read_bytes()[:4] == b"\x7fELF"
        resources = kernel["resources"]
        assert 0 < resources["registers"] <= 128
        assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)
        assert kernel["warnings"] == []


@needs_ptxas
@pytest.mark.parametrize("taps", [3, 5])
@pytest.mark.parametrize("shape", [(32, 96, 112, 2), (32, 144, 56, 1), (1, 960, 7, 1), (1, 32, 112, 1)])
def test_depthwise_convolutions_stay_in_registers(shape: tuple[int, int, int, int], taps: int, tmp_path: Path) -> None:
    images, channels, size, stride = shape
    attributes = {"group": channels, "pads": [taps // 2] * 4, "strides": [stride] * 2}
    feeds = {"x": np.zeros((images, channels, size, size), np.float32)}
    filters = {"w": normal(channels, 1, taps, taps)}
    case = Case("depthwise", [("Conv", ["x", "w"], ["y"], attributes)], lambda: feeds, lambda _: [],
                {"y": "float32"}, constants=filters)  # fmt: skip
    folder = _compile(case, tmp_path, "cubin", precision="bf16")
    for kernel in json.loads((folder / "launch.json").read_text()):
        resources = kernel["resources"]
        assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)


def test_going_on_gives_the_same_ptx(tmp_path: Path) -> None:
    case = ten_operators(5, True)
    whole = _compile(case, tmp_path, "ptx", jobs=2)
    tiled = tmp_path / "tiled.mlir"
    mlc.compile(tmp_path / f"{case.name}.onnx", target="cuda", emit="tile", output=tiled)
    again = tmp_path / "again"
    mlc.compile(tiled, target="cuda", emit="ptx", output=again, jobs=1, cache=False)
    names = sorted(path.name for path in whole.iterdir())
    assert names == sorted(path.name for path in again.iterdir())
    assert all((whole / n).read_bytes() == (again / n).read_bytes() for n in names)


def test_the_data_layout_is_the_back_ends() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("module { llvm.func @f() { llvm.return } }")
        text = _native.emit(module.operation, triple=TRIPLE, cpu="sm_90a", features="+ptx80", kind="llvm-ir").decode()
    assert f'target datalayout = "{DATA_LAYOUT}"' in text


def test_messages_for_the_command_line(tmp_path: Path) -> None:
    case = ten_operators(5, True)
    with pytest.raises(UsageError, match="unknown GPU 'h300'; known are h100, h200"):
        _compile(case, tmp_path, "ptx", gpu="h300")
    with pytest.raises(UsageError, match="chosen for target 'cuda'"):
        mlc.compile(build(case), gpu="h200")
    with pytest.raises(UsageError, match="emit 'object' is not one of"):
        mlc.compile(build(case), target="cuda", emit="object", output=tmp_path / "x")
    tiled = tmp_path / "tiled.mlir"
    mlc.compile(build(case), target="cuda", emit="tile", output=tiled)
    with pytest.raises(UsageError, match="made for target 'nvidia:h200', not for 'cpu'"):
        mlc.compile(tiled, output=tmp_path / "x.so")


def test_functions_of_float64_are_the_hosts(tmp_path: Path) -> None:
    nodes = [("Exp", ["x"], ["a"]), ("Mul", ["a", "x"], ["b"]), ("MatMul", ["b", "b"], ["y"])]
    case = Case(
        "double", nodes, lambda: {"x": normal(4, 4, dtype="float64")}, lambda a: [np.tanh(a["x"])], {"y": "float64"}
    )
    folder = _compile(case, tmp_path, "ptx")
    kernels = json.loads((folder / "launch.json").read_text())
    assert [kernel["name"] for kernel in kernels] == ["k1"]  # the product; k0 computes the exponentials on the host


# --- ptxas ------------------------------------------------------------------------------------------------------------


def _fake_ptxas(folder: Path, version: str, messages: str = "", status: int = 0) -> Path:
    """A program that says it is ptxas `version` and answers every assembly with `messages`."""
    path = folder / "ptxas"
    path.write_text(
        f"""#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release {version}, V{version}.1"; exit 0; fi
while [ "$#" -gt 0 ]; do if [ "$1" = -o ]; then echo cubin > "$2"; fi; shift; done
cat >&2 <<'TEXT'
{messages}
TEXT
exit {status}
"""
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_ptxas_is_found_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chosen").mkdir()
    (tmp_path / "path").mkdir()
    chosen, on_path = _fake_ptxas(tmp_path / "chosen", "13.1"), _fake_ptxas(tmp_path / "path", "13.3")
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    monkeypatch.delenv("PTXAS", raising=False)
    assert find_ptxas().path == on_path
    monkeypatch.setenv("PTXAS", str(chosen))
    assert (find_ptxas().path, find_ptxas().version) == (chosen, (13, 1, 1))


def test_ptxas_that_is_missing_or_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PTXAS", raising=False)
    with pytest.raises(PtxasError, match=r"was not found; install it with `pip install nvidia-cuda-nvcc`"):
        find_ptxas()
    old = _fake_ptxas(tmp_path, "12.2")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(PtxasError, match=re.escape(f"12.9 or newer is needed, but '{old}' is 12.2.1, which is known")):
        find_ptxas()
    monkeypatch.setenv("PTXAS", str(tmp_path / "nothing"))
    with pytest.raises(PtxasError, match=r"\$PTXAS names .*nothing', which cannot be run"):
        find_ptxas()


@pytest.mark.parametrize(
    ("version", "source"), [("11.4", "54633"), ("12.3", "xla/pull/7344"), ("12.6", "4826023"), ("12.9", "triton/pull/11781")]
)
def test_ptxas_that_makes_wrong_code_is_refused(
    version: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with who has found out, and the next candidate is taken."""
    bad = _fake_ptxas(tmp_path, version)
    monkeypatch.setenv("PTXAS", str(bad))
    with pytest.raises(PtxasError, match=rf"is {version}\.1, which is known to make wrong code: .*{source}.*pip install"):
        find_ptxas()
    finding = check_ptxas()
    assert finding.status == OPTIONAL and source in finding.text
    good = tmp_path / "nvidia" / "cu13" / "bin"
    good.mkdir(parents=True)
    _fake_ptxas(good, "13.4")
    monkeypatch.delenv("PTXAS")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_ptxas().path == good / "ptxas"


def test_the_ptxas_of_triton_serves_where_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch for GPUs comes with it. A toolkit's wheel is taken first."""
    folder = tmp_path / "triton" / "backends" / "nvidia" / "bin"
    folder.mkdir(parents=True)
    (tmp_path / "triton" / "__init__.py").write_text("raise ImportError('it takes seconds')")
    _fake_ptxas(folder, "13.4")
    monkeypatch.delenv("PTXAS", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert find_ptxas().path == folder / "ptxas"
    wheel = tmp_path / "nvidia" / "cu13" / "bin"
    wheel.mkdir(parents=True)
    _fake_ptxas(wheel, "13.4")
    assert find_ptxas().path == wheel / "ptxas"


def test_the_doctor_names_known_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXAS", str(_fake_ptxas(tmp_path, "13.0")))
    text = check_ptxas().text
    assert "13.0.1; known faults, for sm_90, fixed in 13.3.0" in text and "triton/issues/9433" in text
    monkeypatch.setenv("PTXAS", str(_fake_ptxas(tmp_path, "13.9")))
    assert "sm_90" not in check_ptxas().text


def test_faults_are_data_with_sources() -> None:
    assert all((f.fixed is None or f.first < f.fixed) and f.what and f.source.startswith("https://") for f in FAULTS)
    assert all(name.startswith("sm_") for f in FAULTS for name in f.architectures)


def test_serialised_wgmma_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warning = (
        "ptxas info : (C7513) Potential Performance Loss: wgmma.mma_async instructions are serialized\n"
        "ptxas warning : something harmless\n"
        "ptxas info : Used 40 registers"
    )
    monkeypatch.setenv("PTXAS", str(_fake_ptxas(tmp_path, "13.0", warning)))
    with pytest.raises(AssemblyError, match=r"'k7': wgmma instructions are serialised\n.*C7513") as caught:
        assemble("k7", "// text", "sm_90a", find_ptxas())
    assert caught.value.ptx == "// text"
    harmless = warning.splitlines()[1:]
    monkeypatch.setenv("PTXAS", str(_fake_ptxas(tmp_path, "13.0", "\n".join(harmless))))
    cubin = assemble("k7", "// text", "sm_90a", find_ptxas())
    assert cubin.warnings == ("ptxas warning : something harmless",) and cubin.resources.registers == 40


def test_what_ptxas_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXAS", str(_fake_ptxas(tmp_path, "13.0", "kernel.ptx, line 3; error : no", status=255)))
    with pytest.raises(AssemblyError, match=r"ptxas failed on kernel 'k1': .*line 3; error : no"):
        assemble("k1", "nonsense", "sm_90a", find_ptxas())


def test_resources() -> None:
    text = """ptxas info    : Function properties for k0
    1552 bytes stack frame, 1540 bytes spill stores, 1544 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 1552 bytes cumulative stack size, 128 bytes smem"""
    assert read_resources(text) == Resources(168, 128, 1552, 1540, 1544)


def test_a_kernel_that_is_no_llvm_is_a_bug_with_its_name() -> None:
    from mlc.codegen.ptx import PtxError

    kernel = GpuKernel("k9", "module @k9 { func.func @k9() { return } }", 128, 1, 0, 0)
    with pytest.raises(PtxError, match="'k9'"):
        emit_ptx(kernel, TARGET)
    with pytest.raises(PtxError, match="'k9'"):
        compile_kernels([kernel], {"": TARGET}, version="1", assembled=False)
