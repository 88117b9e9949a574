"""Random numbers: compiled, against the interpreter's, and their moments."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import mlc
from mlc.interp import ResultType, evaluate

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g ({dtype}[rows,cols] x) => ({dtype}[rows,cols] y) {{ y = Random{kind}Like<seed = 3.5>(x) }}
"""


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("kind", ["Uniform", "Normal"])
def test_like_the_interpreter(kind: str, dtype: str) -> None:
    proto = onnx.parser.parse_model(TEXT.format(kind=kind, dtype=dtype))
    width = {"float": "32", "double": "64", "float16": "16"}[dtype]
    seed = np.array(np.array(3.5, np.float32).view(np.uint32), np.int64)
    got = mlc.compile(proto)(x=np.zeros((300, 41), f"float{width}"))[0]
    attributes = {"kind": kind.lower(), "static_sizes": [300, 41]}
    [want] = evaluate("mlc.random", [seed], attributes, [ResultType([300, 41], f"f{width}")])
    if kind == "Uniform":
        np.testing.assert_array_equal(got, want)
        assert 0 <= got.min() < 0.01
        assert 0.99 < got.max() <= 1
    else:
        np.testing.assert_allclose(
            got, want, rtol=2e-3 if width == "16" else 1e-5, atol=1e-3 if width == "16" else 1e-6
        )
        wide = got.astype(np.float64)
        assert abs(wide.mean()) < 0.03
        assert abs(wide.std() - 1) < 0.02
        assert abs((wide**4).mean() - 3) < 0.2
