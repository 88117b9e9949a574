"""Modules to objects: the exported functions, errors that name the module, order and determinism."""

from __future__ import annotations

from pathlib import Path

import mlir.ir as ir
import pytest

import mlc.compiler_setup  # noqa: F401
from mlc import _native
from mlc.codegen import object as codegen
from mlc.codegen.cache import ObjectCache
from mlc.codegen.object import KERNEL_TO_LLVM, CodegenError, Target, Unit, compile_unit, compile_units, lowering
from mlc.codegen.symbols import ANONYMOUS, kernel_symbol
from mlc.targets.cpu import resolve


def _kernel(name: str, value: float = 1.0) -> Unit:
    text = f"""
module @{name} attributes {{mlc.kernel}} {{
  memref.global "private" constant @table : memref<2xf32> = dense<[{value}, 2.0]>
  func.func @{name}(%o: memref<f32> {{llvm.noalias}}, %n: index, %error: memref<2xi64>, %begin: index, %end: index) {{
    %t = memref.get_global @table : memref<2xf32>
    %v = memref.load %t[%begin] : memref<2xf32>
    memref.store %v, %o[] : memref<f32>
    return
  }}
  func.func @{name}_grid(%n: index) -> index {{
    return %n : index
  }}
}}"""
    return Unit(name, text)


@pytest.fixture
def target() -> Target:
    native = resolve("x86-64-v3", _native.host_info())
    return Target(native.triple, native.cpu, native.features)


def test_objects_come_in_order_and_are_the_same_for_any_number_of_threads(target: Target) -> None:
    units = [_kernel(f"k{i}", float(i)) for i in range(6)]
    first = compile_units(units, target, version="test", jobs=1)
    second = compile_units(units, target, version="test", jobs=4)
    assert [unit.name for unit in first] == [f"k{i}" for i in range(6)]
    assert [unit.data for unit in first] == [unit.data for unit in second]
    assert all(unit.data[:4] == b"\x7fELF" and not unit.cached for unit in first)


def _kernel_with(body: str) -> Unit:
    """A kernel on 64 numbers at %m, with `body` for what it does with eight of them."""
    text = f"""
module @k attributes {{mlc.kernel}} {{
  func.func @k(%o: memref<f32> {{llvm.noalias}}, %error: memref<2xi64>, %begin: index, %end: index) {{
    %m = memref.reinterpret_cast %o to offset: [0], sizes: [64], strides: [1] : memref<f32> to memref<64xf32>
    %zero = arith.constant 0.0 : f32
    {body}
    return
  }}
  func.func @k_grid() -> index {{
    %n = arith.constant 1 : index
    return %n : index
  }}
}}"""
    return Unit("k", text)


_LOAD = "%v = vector.load %m[%begin] : memref<64xf32>, vector<8xf32>\n"
_STORE = "vector.store %r, %m[%begin] : memref<64xf32>, vector<8xf32>"
_BODIES = {
    "arithmetic": f"{_LOAD} %r = arith.mulf %v, %v : vector<8xf32> {_STORE}",
    "math": f"{_LOAD} %r = math.sqrt %v : vector<8xf32> {_STORE}",
    "libm": f"""{_LOAD} %w = arith.extf %v : vector<8xf32> to vector<8xf64> %s = math.sin %w : vector<8xf64>
        %r = arith.truncf %s : vector<8xf64> to vector<8xf32> {_STORE}""",
    "transfer": """%v = vector.transfer_read %m[%begin], %zero : memref<64xf32>, vector<8xf32>
        vector.transfer_write %v, %m[%end] : vector<8xf32>, memref<64xf32>""",
    "view": """%w = memref.subview %m[%begin] [16] [1] : memref<64xf32> to memref<16xf32, strided<[1], offset: ?>>
        memref.store %zero, %w[%end] : memref<16xf32, strided<[1], offset: ?>>""",
    "affine": """%i = affine.apply affine_map<(d0) -> (d0 mod 7)>(%begin)
        memref.store %zero, %m[%i] : memref<64xf32>""",
    "index": "%i = index.mul %begin, %end memref.store %zero, %m[%i] : memref<64xf32>",
}


@pytest.mark.parametrize("body", _BODIES.values(), ids=_BODIES)
def test_passes_without_work_are_left_out(target: Target, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = _kernel_with(body)
    assert len(lowering(unit.text)) < len(KERNEL_TO_LLVM)
    few = compile_unit(unit, target)
    monkeypatch.setattr(codegen, "lowering", lambda _: KERNEL_TO_LLVM)
    assert few == compile_unit(unit, target)


def test_only_the_two_functions_are_global(target: Target) -> None:
    (compiled,) = compile_units([_kernel("k7")], target, version="test")
    symbol = kernel_symbol("k7").encode()
    assert symbol + b"_grid\0" in compiled.data and symbol + b"\0" in compiled.data
    # The kernel's own functions are inlined and its constants are local.
    assert b".body" not in compiled.data and ANONYMOUS.encode() not in compiled.data


def test_a_kernel_is_cached_under_its_content_not_its_name(target: Target, tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    (first,) = compile_units([_kernel("k1")], target, version="test", cache=cache)
    second, other = compile_units([_kernel("k12"), _kernel("k1", 5.0)], target, version="test", cache=cache)
    assert (first.cached, second.cached, other.cached) == (False, True, False)
    assert second.data == first.data.replace(kernel_symbol("k1").encode(), kernel_symbol("k12").encode())
    assert compile_units([_kernel("k12")], target, version="test")[0].data == second.data
    (fresh,) = compile_units([_kernel("k1")], target, version="another", cache=cache)
    assert not fresh.cached


def test_long_names_keep_their_own_symbol(target: Target) -> None:
    (compiled,) = compile_units([_kernel("a_kernel_with_a_long_name")], target, version="test")
    assert kernel_symbol("a_kernel_with_a_long_name").encode() + b"_grid\0" in compiled.data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module @k {}", "has no function @k"),
        (
            "module @k { func.func @k(%x: index) { return } func.func private @k_grid() -> index }",
            "must end with the arguments",
        ),
        (
            "module @k { func.func @k(%n: index, %a: memref<f32>, %e: memref<2xi64>, %b: index, %f: index) { return }\n"
            "func.func @k_grid(%n: index) -> index { return %n : index } }",
            "tensors before its index values",
        ),
        ("module @k { nonsense }", "nonsense"),
    ],
)
def test_a_module_that_breaks_the_contract_is_named(target: Target, text: str, message: str) -> None:
    with pytest.raises(CodegenError, match="code generation of 'k' failed") as caught:
        compile_units([_kernel("fine"), Unit("k", text)], target, version="test")
    assert message in str(caught.value) and caught.value.unit.text == text


def test_contexts_are_independent_of_the_callers(target: Target) -> None:
    with ir.Context(), ir.Location.unknown():
        (compiled,) = compile_units([_kernel("k")], target, version="test")
    assert compiled.data
