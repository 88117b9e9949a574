"""Results that differ from the suite's and yet are right: random numbers, and numbers that the suite has less exactly.

Both are looked at anew in every run. A name alone excuses nothing: random results must have the right shape, type, values
and frequencies; others must be nearer to what float64 gives than the suite's are.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

RANDOM = "random"
NEARER = "nearer"
_SIGMAS = 6.0


def judge(name: str, single: onnx.ModelProto, inputs: list[Any], got: list[Any], wanted: list[Any]) -> str:
    """`random` or `nearer` where that is so, else nothing. `single` is the one-node model that a case is about."""
    if "bernoulli" in name:
        return RANDOM if _is_bernoulli(inputs, got, wanted) else ""
    if "training_dropout" in name:
        return RANDOM if _is_dropout(inputs, got, wanted) else ""
    if not {"DFT", "Attention"} & {node.op_type for node in single.graph.node}:
        return ""
    exact = in_float64(single, inputs)
    pairs = zip(got, wanted, exact, strict=True)
    return NEARER if all(_error(g, e) <= _error(w, e) for g, w, e in pairs) else ""


def _fits(got: list[Any], wanted: list[Any]) -> bool:
    return all(g.shape == w.shape and g.dtype == w.dtype for g, w in zip(got, wanted, strict=True))


def _is_bernoulli(inputs: list[Any], got: list[Any], wanted: list[Any]) -> bool:
    """Zeros and ones, as often as the probabilities say."""
    [chance], [drawn] = inputs, got
    if not _fits(got, wanted) or not np.isin(drawn, [0, 1]).all():
        return False
    spread = np.sqrt(np.sum(chance * (1 - chance)))
    return bool(abs(float(np.sum(drawn)) - float(np.sum(chance))) <= _SIGMAS * spread + 1e-6)


def _is_dropout(inputs: list[Any], got: list[Any], wanted: list[Any]) -> bool:
    """What is kept is scaled, what is dropped is zero and (where there is a mask) marked, as often as the ratio says."""
    x, ratio = inputs[0], float(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else 0.5
    if not _fits(got, wanted):
        return False
    kept = got[1] if len(got) > 1 else got[0] != 0
    scaled = np.where(kept, x / (1 - ratio), 0)
    count = int(np.sum(kept))
    usual = abs(count - x.size * (1 - ratio)) <= _SIGMAS * np.sqrt(x.size * ratio * (1 - ratio))
    return bool(usual and np.allclose(got[0], scaled, rtol=1e-6))


def in_float64(model: onnx.ModelProto, inputs: list[Any]) -> list[np.ndarray]:
    """The outputs of a one-node model whose floats are float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
    for value in [*wide.graph.input, *wide.graph.output]:
        if value.type.tensor_type.elem_type in floats:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    names = [value.name for value in wide.graph.input]
    arrays = [np.asarray(value) for value in inputs]
    feeds = {n: a if a.dtype.kind in "biu" else a.astype(np.float64) for n, a in zip(names, arrays, strict=False)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(ReferenceEvaluator(wide).run(None, feeds))


def _error(result: Any, exact: np.ndarray) -> float:
    """The sum of all errors."""
    return float(np.sum(np.abs(np.asarray(result, np.float64) - exact)))
