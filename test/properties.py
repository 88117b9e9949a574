"""What the property tests share: models with dynamic dimensions, compiled once each, and arrays drawn to be difficult.

`check(graph, feeds)` compiles a graph (remembered by its text), runs it on `feeds` and on ONNX's reference evaluator,
and compares all outputs. A graph declares ranks only, so that one library serves every drawn shape.

A test draws the same few examples in every run; with `MLC_PROPERTY_EXAMPLES=500` it draws that many, others every time.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

import mlc.onnx_backend as backend
from mlc.runtime.errors import MlcError

OPSET = 21
FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
_WIDE = {"bfloat16": ml_dtypes.bfloat16}
_DIGITS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-11}

_EXAMPLES = os.environ.get("MLC_PROPERTY_EXAMPLES", "")

seeds = st.integers(0, 2**32 - 1)
extents = st.sampled_from([0, 1, 1, 2, 3, 5, 17])
"""Sizes of one dimension: empty, one, and what is no multiple of a vector."""


def drawn(test: Callable[..., None]) -> Callable[..., None]:
    """A property: the test's `data` draws what it needs."""
    # Explaining a failure, and a deadline, cost more than they tell where an example may compile a model.
    chosen = settings(
        max_examples=int(_EXAMPLES or 9),
        derandomize=not _EXAMPLES,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )
    return chosen(given(data=st.data())(test))


def dtype_of(name: str) -> np.dtype:
    """The NumPy type of a name, those of ml_dtypes too."""
    return np.dtype(_WIDE.get(name, name))


def elem_type(name: str) -> int:
    """The number that ONNX has for a type."""
    return int(helper.np_dtype_to_tensor_dtype(dtype_of(name)))


def shapes(rank: int, least: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of one rank whose extents are `least` or more."""
    return st.tuples(*[extents.filter(lambda extent: extent >= least)] * rank)


@st.composite
def broadcasting(draw: st.DrawFn, ranks: Sequence[int]) -> list[tuple[int, ...]]:
    """Shapes of the given ranks that NumPy broadcasts with one another: any of them may have 1 in any place."""
    whole = draw(shapes(max(ranks)))
    return [tuple(draw(st.sampled_from([extent, 1])) for extent in whole[len(whole) - rank :]) for rank in ranks]


def array(name: str, shape: Sequence[int], seed: int, special: bool = True) -> np.ndarray:
    """Elements that find mistakes: ordinary numbers among which stand extremes, zeros of both signs, NaN and infinities
    (of integers the least and the largest, so that sums and products overflow); `special=False` leaves those out."""
    rng = np.random.default_rng(seed)
    dtype = dtype_of(name)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low = max(info.min, -9)
        values = np.asarray(rng.integers(low, 10, shape)).astype(dtype)
        odd = np.array([info.min, info.max, info.max - 1, 0, 1], dtype)
    else:
        values = np.asarray(rng.standard_normal(shape) * 3).astype(dtype)
        top = float(ml_dtypes.finfo(dtype).max)
        tiny = float(ml_dtypes.finfo(dtype).smallest_normal)
        with np.errstate(over="ignore"):
            odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, top, -top, tiny, 1.0, -1.0, 0.5, 2.5], dtype)
    if special and values.size:
        places = rng.random(values.shape) < 0.3
        values[places] = odd[rng.integers(0, len(odd), int(places.sum()))]
    return values


# --- Models -----------------------------------------------------------------------------------------------------------


def node(op: str, inputs: Sequence[str], outputs: Sequence[str] = ("y",), **attributes: Any) -> onnx.NodeProto:
    """A node; `domain` among the attributes chooses another set of operators."""
    return helper.make_node(op, list(inputs), list(outputs), **attributes)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[str, int | Sequence[int | None]]],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = OPSET,
) -> bytes:
    """A serialised model. `inputs` gives type and rank of each (all dimensions dynamic), or type and extents with `None`
    where dynamic; the types of outputs are inferred."""
    values = []
    for name, (kind, form) in inputs.items():
        shape: list[Any] = [None] * form if isinstance(form, int) else list(form)
        shape = [f"{name}_{axis}" if extent is None else extent for axis, extent in enumerate(shape)]
        values.append(helper.make_tensor_value_info(name, elem_type(kind), shape))
    initializers = [onnx.numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    body = helper.make_graph(list(nodes), "property", values, results, initializers)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    model = onnx.shape_inference.infer_shapes(model)
    for output in model.graph.output:  # not all function bodies let types through
        if not output.type.WhichOneof("value"):
            output.type.tensor_type.elem_type = elem_type(next(iter(inputs.values()))[0])
    return model.SerializeToString(deterministic=True)


@lru_cache(maxsize=64)
def _compiled(model: bytes) -> Any:
    """The compiled model, or why there is none: a failure is not looked for again while an example is made smaller."""
    try:
        return backend.prepare(onnx.load_from_string(model), cache=False, jobs=1)
    except Exception as error:
        return error


@lru_cache(maxsize=64)
def _reference(model: bytes) -> ReferenceEvaluator:
    return ReferenceEvaluator(onnx.load_from_string(model))


def run(model: bytes, feeds: Mapping[str, np.ndarray]) -> tuple[Any, ...]:
    """The outputs of the compiled model."""
    compiled = _compiled(model)
    if isinstance(compiled, Exception):
        raise compiled
    return compiled.run(dict(feeds))


def expected(model: bytes, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """The outputs of the reference evaluator."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(_reference(model).run(None, dict(feeds)))


def check(model: bytes, feeds: Mapping[str, np.ndarray], rtol: float | None = None, atol: float | None = None) -> None:
    """AssertionError unless the compiled model and the reference agree: shapes, types, and elements within `rtol` (by
    default some units in the last place of the type) of each other or of the largest element; integers are equal."""
    for have, want in zip(run(model, feeds), expected(model, feeds), strict=True):
        same(np.asarray(have), np.asarray(want), rtol, atol)


def same(have: np.ndarray, want: np.ndarray, rtol: float | None = None, atol: float | None = None) -> None:
    """AssertionError unless two arrays are equal within the tolerance of `check`."""
    assert have.shape == want.shape, f"shape {have.shape}, not {want.shape}"
    assert have.dtype == want.dtype, f"{have.dtype}, not {want.dtype}"
    if want.dtype.kind in "biuOSU":
        np.testing.assert_array_equal(have, want)
        return
    near = _DIGITS[want.dtype.name] if rtol is None else rtol
    have, want = have.astype(np.float64), want.astype(np.float64)
    np.testing.assert_allclose(have, want, rtol=near, atol=near if atol is None else atol)


def refused(model: bytes, feeds: Mapping[str, np.ndarray]) -> str:
    """The message with which the compiled model refuses data; AssertionError when it does not."""
    try:
        run(model, feeds)
    except MlcError as error:
        return str(error)
    raise AssertionError("data that has no meaning was processed")
