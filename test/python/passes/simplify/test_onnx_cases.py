"""ONNX's own operator cases, imported and interpreted: they give the expected outputs before and after `simplify`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from conformance.onnx_loader import load_tests
from mlir import ir
from onnx import numpy_helper

from mlc.compiler_setup import new_context
from mlc.frontends.onnx import ModelError, import_model
from mlc.interp import Maybe
from mlc.interp.module import run_function
from mlc.passes.base import run_pipeline
from mlc.passes.simplify.weight_recipes import store_of
from mlc.pipelines.cpu import phases
from mlc.targets.cpu import CpuTarget
from mlc.weights import Store, registry

SHARES = 8
STRIDE = 4  # every fourth case: all of them take a minute
RANDOM = ("test_bernoulli", "test_training_dropout")
"""Their expected outputs are one draw of a random generator."""


@cache
def cases() -> list[Any]:
    """The operator cases whose outputs are a function of their inputs."""
    return [case for case in load_tests("node") if not case.name.startswith(RANDOM)][::STRIDE]


def simplify_passes() -> list[str]:
    """The passes of the phase, as the pipeline has them."""
    return next(passes for name, passes in phases(CpuTarget("", "", "", "")) if name == "simplify")


def value(data: Any, info: onnx.ValueInfoProto) -> Any:
    """An input or output of a case as the interpreter has it."""
    if isinstance(data, onnx.TensorProto):
        data = numpy_helper.to_array(data)
    if info.type.HasField("optional_type"):
        return Maybe(tuple(data) if isinstance(data, list) else None if data is None else np.asarray(data))
    if info.type.HasField("sequence_type"):
        return tuple(np.asarray(item) for item in data)
    return np.asarray(data)


def compare(have: Any, want: Any) -> None:
    """Asserts that a result is the expected one, with tolerances by dtype."""
    if isinstance(want, Maybe):
        assert isinstance(have, Maybe) and (have.value is None) == (want.value is None)
        if want.value is not None:
            compare(have.value, want.value)
    elif isinstance(want, tuple):
        assert len(have) == len(want)
        for one, other in zip(have, want, strict=True):
            compare(one, other)
    else:
        have = have.view(want.dtype) if have.dtype.itemsize == want.dtype.itemsize else have
        assert have.shape == want.shape
        tolerance = 1e-4 if want.dtype in (np.float32, np.float64) else 2e-2
        np.testing.assert_allclose(have.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance)


def check(case: Any) -> str | None:
    """Runs a case; None when all is well, "skipped" for what cannot be imported or interpreted, else the problem."""
    inputs, outputs = case.data_sets[0]
    graph = case.model.graph
    inputs = [value(data, info) for data, info in zip(inputs, graph.input, strict=False)]
    outputs = [value(data, info) for data, info in zip(outputs, graph.output, strict=True)]
    if any(isinstance(v, np.ndarray) and v.dtype.kind in "OUT" for v in [*inputs, *outputs]):
        return "skipped"
    store = Store(case.name)
    with new_context() as context, ir.Location.unknown():
        try:
            module = import_model(case.model, context, store=store)
        except ModelError:
            return "skipped"
        registry.register(store)
        module.operation.attributes["mlc.store"] = ir.StringAttr.get(store.key)
        try:
            for passes in ([], simplify_passes()):
                run_pipeline(module, passes or "canonicalize")
                function = next(op for op in module.body.operations if op.operation.name == "func.func")
                for have, want in zip(run_function(function, inputs, store_of(module)), outputs, strict=True):
                    compare(have, want)
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:300]}"
        finally:
            registry.release(store.key)
    return None


@pytest.mark.parametrize("share", range(SHARES))
def test_cases(share: int) -> None:
    mine = cases()[share::SHARES]
    results = {case.name: check(case) for case in mine}
    problems = {name: text for name, text in results.items() if text not in (None, "skipped")}
    assert not problems
    assert sum(text is None for text in results.values()) > 0.75 * len(mine)
