"""Each of ONNX's operators computes in every type that its schema allows what the reference or onnxruntime computes.

The suite has one type for most of its cases. Here their operands have another one: integers over the whole range of the
type in place of floats, so that signs, widths and unsigned halves count. Each operator meets one of its pairs of case and
type, another one each; `MLC_EVERY_CASE=1` computes all of them (half an hour). A result is right that is as one of the
two has it: they differ in a few types from each other.
"""

from __future__ import annotations

import contextlib
import fnmatch
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
from spread import EVERY

import mlc

sys.path.insert(0, str(Path(__file__).parent))
from onnx_suite import expected_failures
from operator_cases import Operator, is_valid, operators, retyped

WIDE = 2**40  # as far as integers of 64 bits go: sums of some of them fit
LIMITS = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-4, "float64": 1e-6}
"""The largest differences by type, of the largest number of the result."""
COMPUTED = {"bool", "double", "float", "float16", "bfloat16"} | {
    f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)
}
RANDOM_OPERATORS = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Dropout",
}
COUNTS = {("OneHot", "T2"), ("Range", "T"), ("TopK", "I")}  # how large the result is
"""Operators and their parameters, of which numbers over a whole range are no sensible values."""


def drawn(value: Any, kind: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """An operand of a case in another type: other numbers where it is a float that becomes an integer."""
    array = np.asarray(value)
    if array.dtype.kind == "f" and kind.kind in "iu":
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        return rng.integers(max(low, -WIDE), min(high, WIDE), array.shape, endpoint=True).astype(kind)
    with np.errstate(all="ignore"):
        return rng.integers(0, 2, array.shape).astype(bool) if kind.kind == "b" else array.astype(kind)


def variants(operator: Operator) -> Iterator[tuple[str, onnx.ModelProto, dict[str, np.ndarray]]]:
    """The cases of an operator in the types that they are not written for: label, model, inputs."""
    failing, rng = expected_failures(), np.random.default_rng(7)
    for case in operator.cases:
        if "_expanded" in case.name or case.name in failing or len(case.source.model.graph.node) != 1:
            continue
        inputs = case.source.data_sets[0][0]
        for parameter, kind, model in retyped(operator, case):
            if kind not in COMPUTED or (operator.name, parameter) in COUNTS or not is_valid(model):
                continue
            values = [v for v in model.graph.input if v.type.HasField("tensor_type")]
            arrays = [onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x for x in inputs]
            if len(values) != len(arrays) or not all(isinstance(x, np.ndarray | np.generic) for x in arrays):
                continue
            kinds = [onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in values]
            if any(k.kind in "OUS" for k in kinds) or any(np.asarray(x).dtype.kind in "OUS" for x in arrays):
                continue
            feeds = {v.name: drawn(x, k, rng) for v, x, k in zip(values, arrays, kinds, strict=True)}
            if operator.name in ("Div", "Mod"):  # by zero is an error here
                feeds = {name: np.where(x == 0, np.ones_like(x), x) for name, x in feeds.items()}
            yield f"{case.name} {parameter}={kind}", model, feeds


def references(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[list[Any]]:
    """What the reference and onnxruntime compute, as far as they take the types."""
    found: list[list[Any]] = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(Exception):  # whatever its kernels raise for types that they were not written for
            found.append(list(onnx.reference.ReferenceEvaluator(model).run(None, dict(feeds))))
        with contextlib.suppress(Exception):  # it is not installed, or has no kernel for the type
            from contrib_cases import reference

            found.append(reference(model, feeds))
    return found


def is_like(got: Any, want: Any, exact: bool = True) -> bool:
    """Whether a result has the extents, the type and the elements of another; integers if not `exact` nearly so."""
    if got is None or want is None:
        return got is want
    if isinstance(want, list | tuple):
        return len(got) == len(want) and all(is_like(*pair, exact) for pair in zip(got, want, strict=True))
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if got.dtype.kind in "OUSb" or got.dtype.kind in "iu" and exact:
        return bool(np.array_equal(got, want))
    x, y = got.astype(np.float64), want.astype(np.float64)
    if got.dtype.kind in "iu":
        return bool(np.allclose(x, y, rtol=2e-6, atol=1))
    limit = LIMITS.get(got.dtype.name, 0.0)
    numbers = np.abs(y[np.isfinite(y)])
    scale = float(numbers.max()) if numbers.size else 1.0
    return bool(np.allclose(x, y, rtol=limit, atol=limit * max(scale, 1e-2), equal_nan=True))


def difference(model: onnx.ModelProto, feeds: dict[str, np.ndarray], wanted: list[list[Any]], folder: Path) -> str:
    """What mlc has in place of what is wanted; "" where that is one of those."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = mlc.compile(model, output=folder / "model.so", cache=False, jobs=1)
        got = list(compiled(**feeds))
    except Exception as error:  # all of them are counted, to be shown together
        return f"{type(error).__name__}: {error}"
    exact = model.graph.node[0].op_type != "Resize"  # the reference rounds samples, onnxruntime cuts them
    return "" if any(is_like(got, want, exact) for want in wanted) else f"{got}, not one of {wanted}"


def known_differences() -> list[str]:
    """The lines of type_differences.txt without their reasons: operator, case, parameter and type."""
    lines = Path(__file__).with_name("type_differences.txt").read_text(encoding="utf-8").splitlines()
    return [line.split(": ")[0] for line in lines if line and not line.startswith("#")]


DIFFERENT = known_differences()
OPERATORS = [
    o for o in operators().values() if o.name not in RANDOM_OPERATORS | {"ImageDecoder"} and next(variants(o), None)
]


@pytest.mark.parametrize("place", range(len(OPERATORS)), ids=[operator.label for operator in OPERATORS])
def test_an_operator_in_another_type(place: int, tmp_path: Path) -> None:
    every, first = list(variants(OPERATORS[place])), place % 11
    wrong = []
    for label, model, feeds in every[first % len(every) :] + every[: first % len(every)]:
        if any(fnmatch.fnmatchcase(f"{OPERATORS[place].label} {label}", pattern) for pattern in DIFFERENT):
            continue
        wanted = references(model, feeds)
        if wanted:
            found = difference(model, feeds, wanted, tmp_path)
            wrong += [f"{label}: {found}"] if found else []
            if not EVERY:
                break
    assert not wrong, "\n".join(wrong)


# Pairs of a case and a type that were wrong once.
MENDED = [
    ("Attention", "test_attention_4d_attn_mask_4d U=uint8"),
    ("Attention", "test_attention_4d_with_qk_matmul_bias T1=float16"),
    ("Attention", "test_attention_4d_with_qk_matmul_bias T2=double"),
    ("Attention", "test_attention_4d_with_qk_matmul_bias U=int32"),
    ("CastLike", "test_castlike_FLOAT4E2M1_to_FLOAT T2=bool"),
    ("Col2Im", "test_col2im T=uint16"),
    ("Col2Im", "test_col2im_pads T=bool"),
    ("Einsum", "test_einsum_inner_prod T=uint8"),
    ("GridSample", "test_gridsample_bicubic T2=float16"),
    ("MatMul", "test_matmul_2d T=uint32"),
    ("Pow", "test_pow_bcast_scalar T1=uint8"),
    ("Resize", "test_resize_downsample_scales_linear T1=uint8"),
    ("Resize", "test_resize_upsample_scales_cubic T1=uint8"),
    ("Resize", "test_resize_upsample_scales_linear T1=uint16"),
    ("ScatterElements", "test_scatter_elements_with_axis T=uint8"),
    ("ScatterND", "test_scatternd_add T=bool"),
]


@pytest.mark.parametrize(("operator", "label"), MENDED, ids=[label for _, label in MENDED])
def test_what_was_wrong(operator: str, label: str, tmp_path: Path) -> None:
    [(model, feeds)] = [variant[1:] for variant in variants(operators()["", operator]) if variant[0] == label]
    wanted = references(model, feeds)
    assert wanted
    assert not difference(model, feeds, wanted, tmp_path)


def test_there_are_many() -> None:
    """Nearly all operators can be had in other types."""
    assert len(OPERATORS) >= 140
