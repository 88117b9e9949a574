"""Non-maximum suppression: compiled, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import mlc
from mlc.kernels.cpu.suppress import NEAR

ort = pytest.importorskip("onnxruntime", reason="the reference; pip install mlc[ort]")

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch,n,4] boxes, float[batch,classes,n] scores, int64 limit, float overlap, float least)
=> (int64[found,3] rows) {{ rows = NonMaxSuppression<center_point_box = {center}>(boxes, scores, limit, overlap, least) }}
"""


@pytest.mark.parametrize("center", [0, 1])
def test_matches_onnxruntime(center: int) -> None:
    """Random boxes, equal scores among them, limits that do and do not bind, more that stay than the stack
    has, scores of minus infinity, and no box at all."""
    rng = np.random.default_rng(center)
    proto = onnx.parser.parse_model(TEXT.format(center=center))
    model = mlc.compile(proto)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for batch, classes, count, limit in [
        (2, 3, 60, 100), (1, 2, 33, 4), (3, 1, 7, 0), (2, 2, 0, 5), (1, 2, 2000, 2000), (1, 1, 2000, 600),
    ]:  # fmt: skip
        boxes = rng.random((batch, count, 4), np.float32) * 10
        if count > NEAR:  # small ones, of which most stay
            boxes[..., 2:] = rng.random((batch, count, 2), np.float32) * 0.1 + (0 if center else boxes[..., :2])
        elif center:
            boxes[..., 2:] += 0.5
        scores = rng.integers(0, 20, (batch, classes, count)).astype(np.float32) / 20
        scores[..., 5::17] = -np.inf
        inputs = {
            "boxes": boxes,
            "scores": scores,
            "limit": np.array(limit, np.int64),
            "overlap": np.array(0.3, np.float32),
            "least": np.array(0.25, np.float32),
        }
        [wanted] = session.run(None, inputs)
        np.testing.assert_array_equal(model(**inputs)[0], wanted)
        assert limit == 0 or count == 0 or len(wanted) > 3
        assert count <= NEAR or len(wanted) > NEAR
