"""Runs one ONNX operator with onnxruntime (or the reference evaluator), to compare `mlc.interp` with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from mlc.interp import ResultType, evaluate, mlir_dtype


def onnx_run(
    op: str,
    inputs: Sequence[np.ndarray | None],
    outputs: int = 1,
    opset: int = 21,
    reference: bool = False,
    **attributes: Any,
) -> list[np.ndarray]:
    """The outputs of operator `op` (all of them fed as inputs of a one-node model)."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
        if x is not None
    ]
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name=r) for r in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    feeds = {n: np.asarray(x) for n, x in zip(names, inputs, strict=True) if x is not None}
    if reference:
        from onnx.reference import ReferenceEvaluator

        return list(ReferenceEvaluator(model).run(None, feeds))
    import onnxruntime

    model = onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def interp(
    op: str,
    inputs: Sequence[Any],
    attrs: dict[str, Any] | None = None,
    like: Sequence[np.ndarray] | np.ndarray | None = None,
    results: Sequence[ResultType] | None = None,
) -> list[Any]:
    """Evaluates `op` with the result types of `results`, or of the arrays `like`."""
    if results is None:
        arrays = [like] if isinstance(like, np.ndarray) else list(like or [])
        results = [ResultType(a.shape, mlir_dtype(a.dtype)) for a in arrays]
    return evaluate(op, inputs, attrs or {}, results)


def check(
    op: str,
    inputs: Sequence[Any],
    attrs: dict[str, Any],
    expected: Any,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """Asserts that `op` gives `expected` (one array or several), with its shapes and dtypes."""
    wanted = [np.asarray(e) for e in (expected if isinstance(expected, list | tuple) else [expected])]
    for have, want in zip(interp(op, inputs, attrs, like=wanted), wanted, strict=True):
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(have, want.view(have.dtype) if want.dtype.kind == "u" else want)
        else:
            np.testing.assert_allclose(have.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol)
