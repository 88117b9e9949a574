"""Single nodes of onnxruntime's own domain, `com.microsoft`: as models with dynamic dimensions, and what onnxruntime
computes for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

import mlc.onnx_backend as backend

RNG = np.random.default_rng(5)
DOMAIN = "com.microsoft"


def floats(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Normal numbers."""
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def codes(dtype: str, *shape: int) -> np.ndarray:
    """Values of an integer type: any, but half of the range of int8. Where a processor has AVX2 and no VNNI, onnxruntime
    adds two products of uint8 and int8 in 16 bits, and what is beyond them is cut off."""
    low, high = (-64, 63) if dtype == "int8" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return RNG.integers(low, high, shape, dtype, endpoint=True)


def scalar(value: float, dtype: str = "float32") -> np.ndarray:
    """A tensor of rank 0."""
    return np.array(value, dtype)


@dataclass(frozen=True)
class Case:
    """One node. `given` are its operands in order (None: absent); those in `fixed` (by position) are part of the model."""

    name: str
    op: str
    given: Sequence[np.ndarray | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    fixed: Sequence[int] = ()
    outputs: Sequence[str] = ("y",)
    rtol: float = 1e-4
    atol: float = 1e-5
    domain: str = DOMAIN
    opset: int = 17


def model_of(case: Case) -> onnx.ModelProto:
    """The node as a model whose inputs have no fixed extents but for the last dimension; results have no type."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(case.given)]
    node = helper.make_node(case.op, names, list(case.outputs), domain=case.domain, **case.attributes)
    inputs, constants = [], []
    for place, value in enumerate(case.given):
        if value is None:
            continue
        if place in case.fixed:
            constants.append(onnx.numpy_helper.from_array(value, names[place]))
            continue
        shape: list[Any] = [f"d{place}_{axis}" for axis in range(value.ndim)]
        shape[-1:] = value.shape[-1:]
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        inputs.append(helper.make_tensor_value_info(names[place], kind, shape))
    results = [onnx.ValueInfoProto(name=name) for name in case.outputs if name]
    graph = helper.make_graph([node], case.name, inputs, results, constants)
    domains = [helper.make_opsetid("", case.opset), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What onnxruntime computes, without changing the graph."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(feeds))


def prepared(model: onnx.ModelProto, results: Sequence[np.ndarray] = ()) -> backend.MlcBackendRep:
    """The compiled model, whose results have the types of those given (by default float32)."""
    for number, output in enumerate(model.graph.output):
        dtype = results[number].dtype if results else np.dtype(np.float32)
        output.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(dtype)
    return backend.prepare(model, jobs=1)


def feeds_of(case: Case) -> dict[str, np.ndarray]:
    """What the model of a case takes."""
    return {f"x{i}": v for i, v in enumerate(case.given) if v is not None and i not in case.fixed}


def check(case: Case) -> None:
    """Compiles, runs and compares one case."""
    model, feeds = model_of(case), feeds_of(case)
    wanted = reference(model, feeds)
    compare(prepared(model, wanted).run(feeds), wanted, case)


def identifier(case: Case) -> str:
    """How a test of the case is called."""
    return f"{case.op}-{case.name}"


def compare(got: Sequence[Any], wanted: Sequence[np.ndarray], case: Case) -> None:
    """Codes may differ by one step: what lies half-way rounds by the last bit of a float."""
    for have, want in zip(got, wanted, strict=True):
        assert have.shape == want.shape
        assert have.dtype == want.dtype
        if want.dtype.name in ("int8", "uint8"):
            assert np.max(np.abs(have.astype(int) - want.astype(int)), initial=0) <= 1
        else:
            np.testing.assert_allclose(have, want, rtol=case.rtol, atol=case.atol)
