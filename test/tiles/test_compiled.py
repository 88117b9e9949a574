"""Code with matrix tiles, from MLIR through LLVM to what runs here; libraries for a CPU that this machine is not."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import ml_dtypes
import mlir.ir as ir
import numpy as np
import pytest
from mlir.passmanager import PassManager
from models.perceptron import expected, perceptron
from tiles.emulated import Tiles, are_here

import mlc
import mlc.compiler_setup
from mlc import _native, compilation
from mlc.codegen.object import Target, Unit, compile_unit, pipeline_text
from mlc.packaging import build_program
from mlc.runtime.errors import DeviceError
from mlc.targets.cpu import resolve

PASSES = ["convert-scf-to-cf", "convert-arith-to-llvm", "convert-func-to-llvm", "convert-cf-to-llvm"]
# types of A and B, the instruction, how many elements of the sum it multiplies for each of the result
KINDS = {
    "bf16": (ml_dtypes.bfloat16, ml_dtypes.bfloat16, "tdpbf16ps", 2),
    "i8": (np.int8, np.int8, "tdpbssd", 4),
    "u8": (np.uint8, np.int8, "tdpbusd", 4),
}


def kernel(instruction: str, rows: int, columns: int, steps: int) -> str:
    """C [rows, columns] += A [rows, steps, 32 bytes] * B [steps, 8, columns, 4 bytes], where one tile of C goes through
    a loop. (The conversions of the dialect `amx` leave tiles between blocks as they are, and LLVM takes none of those.)
    """

    def call(name: str, operands: str, types: str, result: str = "!llvm.x86_amx") -> str:
        return f'llvm.call_intrinsic "llvm.x86.{name}.internal"({operands}) : ({types}) -> {result}'

    load, shape = "i16, i16, !llvm.ptr, i64", "i16, i16, i16, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx"
    return f"""
func.func @product(%A: !llvm.ptr, %B: !llvm.ptr, %C: !llvm.ptr) {{
  %m = arith.constant {rows} : i16
  %n = arith.constant {4 * columns} : i16
  %k = arith.constant 32 : i16
  %depth = arith.constant 8 : i16
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %steps = arith.constant {steps} : i64
  %of_a = arith.constant {32 * steps} : i64
  %of_b = arith.constant {4 * columns} : i64
  %start = {call("tileloadd64", "%m, %n, %C, %of_b", load)}
  %sum = scf.for %i = %zero to %steps step %one iter_args(%s = %start) -> !llvm.x86_amx : i64 {{
    %from_a = llvm.getelementptr %A[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<32 x i8>
    %from_b = llvm.getelementptr %B[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<{32 * columns} x i8>
    %a = {call("tileloadd64", "%m, %k, %from_a, %of_a", load)}
    %b = {call("tileloadd64", "%depth, %n, %from_b, %of_b", load)}
    %t = {call(instruction, "%m, %n, %k, %s, %a, %b", shape)}
    scf.yield %t : !llvm.x86_amx
  }}
  {call("tilestored64", "%m, %n, %C, %of_b, %sum", f"{load}, !llvm.x86_amx", "()")}
  return
}}"""


def built(text: str, cpu: str, opt_level: int, folder: Path) -> ctypes.CDLL:
    """The library that LLVM makes of `text` for `cpu`."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        PassManager.parse(pipeline_text(PASSES)).run(module.operation)
        text = str(module)
    target = resolve(cpu, _native.host_info())
    code = compile_unit(Unit("product", text, False), Target(target.triple, target.cpu, target.features, opt_level))
    (folder / "product.o").write_bytes(code)
    subprocess.run(["cc", "-shared", folder / "product.o", "-o", folder / "product.so"], check=True)
    return ctypes.CDLL(str(folder / "product.so"))


@pytest.mark.parametrize("opt_level", [3, 1, 0], ids=lambda level: f"O{level}")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(16, 16, 1), (5, 3, 7)], ids=str)
def test_products(tiles: Tiles, tmp_path: Path, kind: str, shape: tuple[int, int, int], opt_level: int) -> None:
    (rows, columns, steps), rng = shape, np.random.default_rng(0)
    left, right, instruction, n = KINDS[kind]
    a = rng.integers(0, 16, (rows, 8 * n * steps)) - (0 if left == np.uint8 else 8)
    b = rng.integers(-8, 8, (8 * n * steps, columns))
    c = rng.integers(-8, 8, (rows, columns)).astype(np.float32 if n == 2 else np.int32)
    want = c + a @ b
    library = built(kernel(instruction, rows, columns, steps), tiles.cpu, opt_level, tmp_path)
    packed = np.ascontiguousarray(b.reshape(-1, n, columns).swapaxes(1, 2))
    operands = [a.astype(left), packed.astype(right), c]
    library.product(*(ctypes.c_void_p(array.ctypes.data) for array in operands))
    np.testing.assert_array_equal(c, want)  # of small integers, whose sums are exact
    assert tiles.count(instruction) == steps
    assert not tiles.configured


def test_libraries_for_a_cpu_with_tiles_load_here(tiles: Tiles, tmp_path: Path) -> None:
    proto = perceptron()
    model = mlc.compile(proto, output=tmp_path / "model.so", cpu=tiles.cpu)
    x = np.random.default_rng(0).standard_normal((5, 24)).astype(np.float32)
    np.testing.assert_allclose(model(x)[0], expected(proto, x), rtol=1e-5, atol=1e-6)


def test_libraries_ask_for_tiles(tiles: Tiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the fixture takes away for the time of a test is the only thing that keeps this library from loading."""
    if are_here():
        pytest.skip("this machine has tiles")
    monkeypatch.setattr(compilation, "build_program", build_program)
    with pytest.raises(DeviceError, match="lacks amx-tile, amx-bf16, amx-int8,"):
        mlc.compile(perceptron(), output=tmp_path / "model.so", cpu=tiles.cpu)
