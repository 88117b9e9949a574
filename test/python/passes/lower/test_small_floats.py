"""Small floats: conversions in bodies against the interpreter, for every code and around every rounding."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from linalg_runner import context, entry, interpret
from mlir import ir
from mlir.passmanager import PassManager

TYPES = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}


def run(text: str, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowered function's result and the interpreter's; the arguments and results are bytes or f32."""
    from linalg_runner import execute

    from mlc.passes.lower.lower_to_linalg import lower_function

    with context(), ir.Location.name("node"):
        module = ir.Module.parse(text)
        expected = interpret(module, [array])[0]
        lower_function(entry(module))
        # Small floats stay inside of bodies: the JIT has no memory of four bits.
        PassManager.parse("builtin.module(func.func(linalg-fuse-elementwise-ops),canonicalize)").run(module.operation)
        return execute(module, [array])[0], np.asarray(expected)


@pytest.mark.parametrize("name", TYPES)
def test_every_code_widens(name: str) -> None:
    bits = name[1]
    narrow = f"%b = mlc.cast %x : tensor<256xi8> -> tensor<256xi{bits}>" if bits != "8" else ""
    text = f"""func.func @f(%x: tensor<256xi8>) -> tensor<256xf32> {{
      {narrow}
      %0 = mlc.bitcast {"%b" if narrow else "%x"} : tensor<256xi{bits}> -> tensor<256x{name}>
      %1 = mlc.cast %0 : tensor<256x{name}> -> tensor<256xf32>
      return %1 : tensor<256xf32> }}"""
    got, expected = run(text, np.arange(256, dtype=np.uint8).view(np.int8))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("saturate", ["{saturate}", ""])
def test_rounding_and_overflow(name: str, saturate: str) -> None:
    codes = np.arange((1 << int(name[1])) - 1 if name == "f8E8M0FNU" else 1 << (int(name[1]) - 1), dtype=np.uint8)
    finite = codes.view(TYPES[name]).astype(np.float32)
    finite = np.sort(finite[np.isfinite(finite)])
    middles = finite[1:] / 2 + finite[:-1] / 2
    near = np.concatenate([np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(0))])
    with np.errstate(over="ignore"):
        special = np.array([np.nan, np.inf, 1e30, 1e-30, finite[-1] * 1.01, finite[-1] * 1.2, 0.0], np.float32)
    values = np.concatenate([finite, middles, near, special]).astype(np.float32)
    values = np.concatenate([values, -values])
    kind = f"tensor<{len(values)}x"
    text = f"""func.func @f(%x: {kind}f32>) -> {kind}f32> {{
      %0 = mlc.cast %x {saturate} : {kind}f32> -> {kind}{name}>
      %1 = mlc.cast %0 : {kind}{name}> -> {kind}f32>
      return %1 : {kind}f32> }}"""
    got, expected = run(text, values)
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])
