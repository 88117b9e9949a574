"""Imports a model and compares what the module computes with a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from evaluate import run
from mlir import ir

from mlc.compiler_setup import new_context
from mlc.frontends.onnx import import_model
from mlc.interp import Maybe
from mlc.weights.store import Store


def imported(model: Any, **options: Any) -> tuple[ir.Module, Store]:
    """The module of a model and its weights."""
    store = Store()
    return import_model(model, new_context(), store=store, **options), store


def parsed(text: str) -> onnx.ModelProto:
    """A model from the text form of ONNX."""
    return onnx.parser.parse_model(text)


def signless(value: Any, kind: onnx.TypeProto | None = None) -> Any:
    """A value as the interpreter takes it: unsigned integers by their bits, sequences as tuples, optionals wrapped."""
    if kind is not None and kind.WhichOneof("value") == "optional_type":
        return Maybe(None if value is None else signless(value, kind.optional_type.elem_type))
    if isinstance(value, list | tuple):
        return tuple(signless(item) for item in value)
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    array = np.asarray(value)
    name = array.dtype.name
    if name in ("uint8", "uint16", "uint32", "uint64"):
        return array.view(name[1:])
    return array


def evaluated(model: Any, inputs: Mapping[str, Any], **options: Any) -> list[Any]:
    """The outputs of the imported model."""
    module, store = imported(model, **options)
    return list(run(module, store, {name: signless(value) for name, value in inputs.items()}).values())


def reference(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> Sequence[np.ndarray]:
    """The outputs that onnxruntime computes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    data = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    session = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
    return session.run(None, dict(inputs))


def assert_like(got: Any, want: Any, rtol: float = 1e-3, atol: float = 1e-5) -> None:
    """Equal shapes, dtypes and (nearly) elements; element by element for sequences."""
    if isinstance(got, Maybe):
        got = got.value
    if want is None or got is None:
        assert want is got
        return
    if isinstance(want, list | tuple):
        assert len(got) == len(want)
        for left, right in zip(got, want, strict=True):
            assert_like(left, right, rtol, atol)
        return
    want = onnx.numpy_helper.to_array(want) if isinstance(want, onnx.TensorProto) else np.asarray(want)
    got = np.asarray(got)
    assert got.shape == want.shape
    if want.dtype.kind in "OUST":  # strings
        assert got.tolist() == want.tolist()
        return
    assert got.dtype == want.dtype
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol, atol)
