"""Code generation in process: kinds of output, targets, errors, threads."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlir import ir

import mlc.compiler_setup  # noqa: F401
from mlc import _native

X86 = "x86_64-unknown-linux-gnu"
# a * b + c on floats, without fast-math flags.
FMA = """
llvm.func @fma(%a: f32, %b: f32, %c: f32) -> f32 {
  %0 = llvm.fmul %a, %b : f32
  %1 = llvm.fadd %0, %c : f32
  llvm.return %1 : f32
}
"""
GPU_KERNEL = """
llvm.func @kernel(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %i = nvvm.read.ptx.sreg.tid.x : i32
  llvm.store %i, %p : i32, !llvm.ptr<1>
  llvm.return
}
"""


@pytest.fixture
def context() -> Iterator[ir.Context]:
    with ir.Context() as context:
        yield context


def emit(text: str, **options: object) -> bytes:
    return _native.emit(ir.Module.parse(text).operation, **options)


@pytest.mark.skipif(platform.system() != "Linux", reason="links with the C compiler of a Linux machine")
def test_an_object_for_this_machine_runs(context: ir.Context, tmp_path: Path) -> None:
    code = emit(FMA)
    assert code[:4] == b"\x7fELF"
    (tmp_path / "fma.o").write_bytes(code)
    subprocess.run(["cc", "-shared", tmp_path / "fma.o", "-o", tmp_path / "fma.so"], check=True)
    fma = ctypes.CDLL(str(tmp_path / "fma.so")).fma
    fma.restype, fma.argtypes = ctypes.c_float, [ctypes.c_float] * 3
    assert fma(2.0, 3.0, 4.0) == 10.0


def test_multiply_add_contracts(context: ir.Context) -> None:
    text = emit(FMA, triple=X86, cpu="x86-64-v3", kind="assembly").decode()
    assert "vfmadd" in text
    assert "vmulss" not in text
    plain = emit(FMA, triple=X86, cpu="x86-64", kind="assembly").decode()
    assert "mulss" in plain


def test_features_add_to_the_cpu(context: ir.Context) -> None:
    text = emit(FMA, triple=X86, cpu="x86-64", features="+avx,+fma", kind="assembly").decode()
    assert "vfmadd" in text


def test_llvm_ir(context: ir.Context) -> None:
    text = emit(FMA, triple=X86, cpu="x86-64-v3", kind="llvm-ir").decode()
    assert "define float @fma" in text
    assert '"target-cpu"="x86-64-v3"' in text
    assert X86 in text


def test_ptx(context: ir.Context) -> None:
    text = emit(
        GPU_KERNEL, triple="nvptx64-nvidia-cuda", cpu="sm_90a", features="+ptx80", kind="assembly"
    ).decode()
    assert ".target sm_90a" in text
    assert ".entry kernel" in text


ERRORS = [
    ({"cpu": "pentium9"}, "'pentium9' is no CPU of 'x86_64"),
    ({"features": "+avx9"}, r"'\+avx9' is no feature of 'x86_64"),
    ({"features": "avx2"}, r"a list like \+avx2,-fma"),
    ({"features": "+avx2,"}, "is no feature"),
    ({"triple": "z80-unknown-none", "cpu": ""}, "(?i)z80"),
    ({"triple": "nvptx64-nvidia-cuda", "cpu": "sm_90a", "kind": "object"}, "cannot be emitted as an object file"),
]


@pytest.mark.parametrize(("options", "message"), ERRORS)
def test_wrong_targets_are_errors(context: ir.Context, options: dict[str, str], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        emit(FMA, **{"triple": X86, "cpu": "x86-64", **options})


def test_an_unknown_kind_is_a_value_error(context: ir.Context) -> None:
    with pytest.raises(ValueError, match="kind is 'object', 'assembly' or 'llvm-ir', not 'exe'"):
        emit(FMA, kind="exe")


def test_a_module_of_another_dialect_is_an_error(context: ir.Context) -> None:
    text = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    with pytest.raises(RuntimeError, match="(?s)translation to LLVM IR failed.*func.func"):
        emit(text)


def test_bad_inline_assembly_is_an_error(context: ir.Context) -> None:
    text = 'llvm.func @f() { llvm.inline_asm has_side_effects "no_such_instruction", "" : () -> ()\n llvm.return }'
    with pytest.raises(RuntimeError, match="no_such_instruction|invalid instruction"):
        emit(text, triple=X86, cpu="x86-64")


def test_an_operation_without_code_is_an_error(context: ir.Context) -> None:
    """LLVM would end the process; and it works on afterwards."""
    with pytest.raises(RuntimeError, match="the code generator failed: .*[Cc]annot select"):
        emit(GPU_KERNEL.replace("attributes {nvvm.kernel}", ""), triple=X86, cpu="x86-64")
    assert emit(FMA, triple=X86, cpu="x86-64")


def test_threads_emit_the_same_code() -> None:
    codes: list[bytes] = []

    def work() -> None:
        with ir.Context():
            codes.append(emit(FMA, triple=X86, cpu="x86-64-v4"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(codes) == 4
    assert len(set(codes)) == 1


def test_host_info() -> None:
    info = _native.host_info()
    assert set(info) == {"triple", "cpu", "features"}
    assert platform.machine().replace("arm64", "aarch64") in info["triple"]
    assert all(feature[0] in "+-" for feature in info["features"])
    assert info["features"] == sorted(info["features"])


LOOP = """
module @k attributes {%s} {
  llvm.func @sum(%%from: !llvm.ptr, %%to: !llvm.ptr, %%n: i64) {
    %%zero = llvm.mlir.constant(0 : i64) : i64
    %%one = llvm.mlir.constant(1 : i64) : i64
    llvm.br ^loop(%%zero : i64)
  ^loop(%%i: i64):
    %%p = llvm.getelementptr %%from[%%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %%v = llvm.load volatile %%p : !llvm.ptr -> f32
    llvm.store volatile %%v, %%to : f32, !llvm.ptr
    %%next = llvm.add %%i, %%one : i64
    %%more = llvm.icmp "slt" %%next, %%n : i64
    llvm.cond_br %%more, ^loop(%%next : i64), ^done
  ^done:
%s    llvm.return
  }
}
"""
STORE = "    llvm.store volatile %from, %to : !llvm.ptr, !llvm.ptr\n"


@pytest.mark.parametrize(
    ("attribute", "stores", "unrolled"),
    [("mlc.kernel", 0, True), ("mlc.laid_out", 0, False), ("mlc.kernel", 1000, True), ("mlc.kernel", 21000, False)],
)
def test_loops_stay_as_their_template_made_them(attribute: str, stores: int, unrolled: bool) -> None:
    """LLVM unrolls a loop of unknown length where the kernel's template has not said that its loops are laid out, unless
    the module is so large that looking for it takes long."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(LOOP % (attribute, STORE * stores))
        text = _native.emit(module.operation, triple="x86_64", cpu="x86-64-v3", kind="llvm-ir").decode()
    assert (text.count("load volatile") > 1) == unrolled
