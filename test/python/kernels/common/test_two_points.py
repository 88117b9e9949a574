"""Results that one operation reads at two points: each result of a kernel is at its own point, the other is none of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from contrib_cases import reference

import mlc

# What makes p, [40, 40], of x, [40, 40].
MADE = {
    "product": "p = MatMul(x, x)",
    "product and its function": "m = MatMul(x, x) p = Tanh(m)",
    "softmax": "p = Softmax<axis = 1>(x)",
    "softmax of columns": "p = Softmax<axis = 0>(x)",
    "norm": "p = LayerNormalization(x, one)",
    "sums": "u = Unsqueeze(x, second) v = Mul(u, x) p = ReduceSum<keepdims = 0>(v, second)",
    "running sums": "p = CumSum(x, across)",
    "pool": "a = Unsqueeze(x, ends) b = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(a) p = Squeeze(b, ends)",
    "convolution": "a = Unsqueeze(x, ends) b = Conv<pads = [1, 1, 1, 1]>(a, filter) p = Squeeze(b, ends)",
    "images": "a = Unsqueeze(x, first) b = Conv<pads = [1, 1]>(a, filters) p = Squeeze(b, first)",
    "function": "p = Tanh(x)",
}
# What reads it.
READ = {
    "its transpose": "t = Transpose<perm = [1, 0]>(p) y = Add(t, p)",
    "its row": "g = Gather<axis = 0>(p, at) y = Sub(g, p)",
    "its column": "g = Gather<axis = 1>(p, column) y = Sub(p, g)",
    "its end": "f = Slice(p, last, far, first, back) y = Sub(p, f)",
    "its elements": "g = GatherElements<axis = 0>(p, places) y = Mul(p, g)",
    "its moved lines": "g = Gather<axis = 0>(p, order) y = Sub(p, g)",
}
HEADER = '<ir_version: 9, opset_import: ["" : 20]> two_points (float[40, 40] x) => (float[40, 40] y)'
NUMBERS = """<int64 at = {3}, int64 across = {1}, int64[1] column = {7}, int64[1] first = {0}, int64[1] second = {1}, int64[2] ends = {0, 1},
int64[1] last = {-1}, int64[1] far = {-1000}, int64[1] back = {-1}>"""


@pytest.mark.parametrize("made", MADE)
def test_two_points(made: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    arrays = {
        "one": np.ones(40, np.float32),
        "filter": rng.standard_normal((1, 1, 3, 3)).astype(np.float32),
        "filters": rng.standard_normal((40, 40, 3)).astype(np.float32),
        "places": rng.integers(0, 40, (40, 40)),
        "order": rng.permutation(40),
    }
    x = rng.standard_normal((40, 40)).astype(np.float32)
    for read, body in READ.items():
        model = onnx.parser.parse_model(f"{HEADER} {NUMBERS} {{ {MADE[made]} {body} }}")
        used = {name for node in model.graph.node for name in node.input}
        model.graph.initializer.extend(
            onnx.numpy_helper.from_array(array, name) for name, array in arrays.items() if name in used
        )
        want = reference(model, {"x": x})[0]
        got = mlc.compile(model, output=tmp_path / "model.so", cache=False)(x)[0]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max(), err_msg=read)
