"""Distinct elements: compiled, against the interpreter's rule (NumPy's)."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import mlc
from mlc.interp import ResultType, evaluate

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g ({dtype}[n] x) => ({dtype}[m] values, int64[m] first, int64[n] inverse, int64[m] counts)
{{ values, first, inverse, counts = Unique<sorted = {ordered}>(x) }}
"""


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize("dtype", ["float", "int64", "uint8"])
def test_like_numpy(dtype: str, ordered: int) -> None:
    """Many repetitions, one, and no element; NaNs count as equal, and the first of two zeros represents them."""
    rng = np.random.default_rng(5)
    model = mlc.compile(onnx.parser.parse_model(TEXT.format(dtype=dtype, ordered=ordered)))
    for count in (200, 1, 0):
        x = rng.integers(0, 256, count) // 3 * 3 if dtype == "uint8" else rng.integers(-9, 9, count)
        x = x.astype({"float": np.float32}.get(dtype, dtype))
        if dtype == "float" and count > 1:
            x[[3, 50, 51]] = np.nan
            x[[7, 90]] = -0.0
        attributes = {"sorted": bool(ordered), "unsigned": dtype == "uint8"}
        bits = x.view(np.int8) if dtype == "uint8" else x
        kinds = [ResultType([-1], {"float": "f32", "int64": "i64", "uint8": "i8"}[dtype])] + [ResultType([-1], "i64")] * 3
        wanted = evaluate("mlc.unique", [bits], attributes, kinds)
        for got, want in zip(model(x=x), wanted, strict=True):
            np.testing.assert_array_equal(got, want.view(np.uint8) if want.dtype == np.int8 else want)
