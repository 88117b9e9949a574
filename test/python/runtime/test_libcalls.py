"""What LLVM calls on a processor without the instructions: the archive has it, with the registers that LLVM uses."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from .conftest import ROOT

pytest.importorskip("mlc._native")
ml_dtypes = pytest.importorskip("ml_dtypes")

MODULE = """
llvm.func @convert(%n: i64, %f: !llvm.ptr, %d: !llvm.ptr, %out: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^loop(%zero : i64)
^loop(%i: i64):
  %pf = llvm.getelementptr %f[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %pd = llvm.getelementptr %d[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %po = llvm.getelementptr %out[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>
  %vf = llvm.load %pf : !llvm.ptr -> f32
  %vd = llvm.load %pd : !llvm.ptr -> f64
  %a = llvm.fptrunc %vf : f32 to f16
  %b = llvm.fptrunc %vd : f64 to f16
  %c = llvm.fptrunc %vf : f32 to bf16
  %e = llvm.fptrunc %vd : f64 to bf16
  %wide = llvm.fpext %a : f16 to f32
  %exponent = llvm.mlir.constant(-3 : i32) : i32
  %power = llvm.intr.powi(%vf, %exponent) : (f32, i32) -> f32
  %bits = llvm.bitcast %vd : f64 to i64
  %ones = llvm.intr.ctpop(%bits) : (i64) -> i64
  %s0 = llvm.mlir.undef : !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>
  %s1 = llvm.insertvalue %a, %s0[0] : !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>
  %s2 = llvm.insertvalue %b, %s1[1] : !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>
  %s3 = llvm.insertvalue %c, %s2[2] : !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>
  %s4 = llvm.insertvalue %e, %s3[3] : !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>
  %s5 = llvm.insertvalue %wide, %s4[4] : !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>
  %s6 = llvm.insertvalue %power, %s5[5] : !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>
  %s7 = llvm.insertvalue %ones, %s6[6] : !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>
  llvm.store %s7, %po : !llvm.struct<(f16, f16, bf16, bf16, f32, f32, i64)>, !llvm.ptr
  %next = llvm.add %i, %one : i64
  %more = llvm.icmp "slt" %next, %n : i64
  llvm.cond_br %more, ^loop(%next : i64), ^done
^done:
  llvm.return
}
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory, runtime: Path) -> Path:
    """MODULE for the oldest processor, linked with the archive and nothing else that could define the functions."""
    import mlir.ir as ir

    import mlc.compiler_setup  # noqa: F401
    from mlc import _native

    folder = tmp_path_factory.mktemp("libcalls")
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE)
        data = _native.emit(module.operation, triple="", cpu="x86-64", opt_level=2)
    (folder / "code.o").write_bytes(data)
    flags = ["-shared", "-nostdlib", "-Wl,-z,defs", "-o", "code.so"]
    archive = [str(runtime / "libmlc_rt.a"), str(runtime / "stubs/libc.stub.so"), str(runtime / "stubs/libm.stub.so")]
    subprocess.run(["cc", *flags, "code.o", *archive], cwd=folder, check=True)
    return folder


def test_calls_are_resolved_inside(code: Path) -> None:
    undefined = subprocess.run(["nm", "-u", "code.o"], cwd=code, check=True, capture_output=True, text=True).stdout
    called = set(re.findall(r"U (__\w+)", undefined))
    assert {"__truncsfhf2", "__truncdfhf2", "__truncsfbf2", "__truncdfbf2", "__extendhfsf2"} <= called
    exported = subprocess.run(["nm", "-D", "code.so"], cwd=code, check=True, capture_output=True, text=True).stdout
    assert re.findall(r" [TW] (\S+)", exported) == ["convert"]


def test_values(code: Path) -> None:
    rng = np.random.default_rng(1)
    floats = np.concatenate([np.float32([0, -0.0, 1, -2.5, 65504, 65520, 1e-7, 6e-8, 3e-8, 1e30, np.inf, -np.inf]),
                             rng.standard_normal(5000).astype(np.float32)])  # fmt: skip
    doubles = floats.astype(np.float64) * (1 + 2.0**-30)
    fields = [("a", "f2"), ("b", "f2"), ("c", ml_dtypes.bfloat16), ("e", ml_dtypes.bfloat16), ("wide", "f4"),
              ("power", "f4"), ("ones", "i8")]  # fmt: skip
    out = np.zeros(len(floats), dtype=fields)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (floats, doubles, out)]
    ctypes.CDLL(str(code / "code.so")).convert(ctypes.c_int64(len(floats)), *pointers)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out["a"], floats.astype(np.float16))
        np.testing.assert_array_equal(out["b"], doubles.astype(np.float16))
        np.testing.assert_array_equal(out["c"].view(np.uint16), floats.astype(ml_dtypes.bfloat16).view(np.uint16))
        np.testing.assert_array_equal(out["wide"], floats.astype(np.float16).astype(np.float32))
        np.testing.assert_allclose(out["power"], floats.astype(np.float64) ** -3, rtol=1e-6, atol=1e-38)
    np.testing.assert_array_equal(out["ones"], [bin(b).count("1") for b in doubles.view(np.uint64).tolist()])


def test_stubs_match_the_c_library(runtime: Path) -> None:
    """Every function of the stubs exists in this machine's C library under the same symbol version."""
    import ctypes.util

    for name in ("libc", "libm"):
        listed = (ROOT / f"mlc/runtime/stubs/{name}.map").read_text()
        library = ctypes.CDLL(f"{name}.so.6")
        dlvsym = ctypes.CDLL(None).dlvsym
        dlvsym.restype, dlvsym.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        sections = re.findall(r"(GLIBC_[\d.]+) \{\s+global:([^}]*)\}", listed)
        assert sections
        for version, body in sections:
            for symbol in re.findall(r"\w+", body):
                assert dlvsym(library._handle, symbol.encode(), version.encode()), f"{symbol}@{version}"
