"""`mlc.interp` elementwise operations against NumPy and Python's exact arithmetic."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from onnx_oracle import check, interp, onnx_run

from mlc.interp import InterpError, ResultType, evaluate, evaluates, supported_ops

EDGE = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-30, 88.9, -100.0, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    ("kind", "reference"),
    [
        ("abs", np.abs),
        ("neg", np.negative),
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("round", np.round),
        ("trunc", np.trunc),
        ("sqrt", np.sqrt),
        ("rsqrt", lambda x: 1 / np.sqrt(x)),
        ("reciprocal", lambda x: 1 / x),
        ("exp", np.exp),
        ("exp2", np.exp2),
        ("expm1", np.expm1),
        ("log", np.log),
        ("log1p", np.log1p),
        ("tanh", np.tanh),
        ("asinh", np.arcsinh),
        ("erf", np.vectorize(math.erf)),
        ("sign", np.sign),
    ],
)
def test_unary_float(kind: str, reference: np.ufunc) -> None:
    with np.errstate(all="ignore"):
        want = reference(EDGE.astype(np.float64)).astype(np.float32)
    check("mlc.unary", [EDGE], {"kind": kind}, want, rtol=3e-7, atol=0)


def test_sigmoid_saturates_and_keeps_nan() -> None:
    (y,) = interp("mlc.unary", [EDGE], {"kind": "sigmoid"}, like=EDGE)
    assert y[-3] == 1 and y[-2] == 0 and np.isnan(y[-1]) and y[0] == 0.5
    assert 0 < y[9] < 1e-43


def test_narrow_floats_compute_in_float32_and_round_once() -> None:
    x = np.array([1.0, 3.0, 70000.0], np.float32).astype(ml_dtypes.bfloat16)
    (y,) = interp("mlc.binary", [x, x], {"kind": "mul"}, like=x)
    np.testing.assert_array_equal(y, (x.astype(np.float32) ** 2).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("kind", ["not", "popcount", "neg", "abs"])
def test_unary_int(kind: str) -> None:
    x = np.array([0, 1, -1, -128, 127], np.int8)
    want = {
        "not": [-1, -2, 0, 127, -128],
        "popcount": [0, 1, 8, 1, 7],
        "neg": [0, -1, 1, -128, -127],
        "abs": [0, 1, 1, -128, 127],
    }[kind]
    check("mlc.unary", [x], {"kind": kind}, np.array(want, np.int8))


def test_isinf_signs() -> None:
    want = np.isposinf(EDGE)
    check("mlc.unary", [EDGE], {"kind": "isinf", "negative": False}, want)
    check("mlc.unary", [EDGE], {"kind": "isnan"}, np.isnan(EDGE))


@pytest.mark.parametrize(
    ("kind", "lhs", "rhs", "want"),
    [
        ("div", [7, -7, 7, -7, -128], [2, 2, -2, -2, -1], [3, -3, -3, 3, -128]),
        ("mod", [7, -7, 7, -7], [3, 3, -3, -3], [1, 2, -2, -1]),
        ("fmod", [7, -7, 7, -7], [3, 3, -3, -3], [1, -1, 1, -1]),
        ("shl", [1, 1, -1], [3, 9, 1], [8, 0, -2]),
        ("shr", [-128, 64, -1], [3, 9, 40], [-16, 0, -1]),
        ("pow", [2, 3, -1, 2, 1, 0], [6, 4, -3, -1, -9, 0], [64, 81, -1, 0, 1, 1]),
        ("add", [127], [1], [-128]),
    ],
)
def test_binary_int8(kind: str, lhs: list[int], rhs: list[int], want: list[int]) -> None:
    check(
        "mlc.binary",
        [np.array(lhs, np.int8), np.array(rhs, np.int8)],
        {"kind": kind},
        np.array(want, np.int8),
    )


def test_binary_unsigned() -> None:
    x, y = np.array([200, 100], np.uint8).view(np.int8), np.array([3, 7], np.int8)
    for kind, want in {"div": [66, 14], "mod": [2, 2], "max": [200, 100], "shr": [25, 0]}.items():
        check("mlc.binary", [x, y], {"kind": kind, "unsigned": True}, np.array(want, np.uint8).view(np.int8))


def test_division_by_zero_is_an_error_for_integers_only() -> None:
    zero = np.zeros(2, np.int32)
    with pytest.raises(InterpError, match="division by zero"):
        interp("mlc.binary", [zero, zero], {"kind": "div"}, like=zero)
    one = np.ones(2, np.float32)
    check("mlc.binary", [one, 0 * one], {"kind": "div"}, np.array([np.inf, np.inf], np.float32))


def test_pow_mixed_types() -> None:
    x = np.array([2, 3], np.int32)
    check("mlc.binary", [x, np.array([0.5, 2.5], np.float32)], {"kind": "pow"}, np.array([1, 15], np.int32))
    base = np.array([-2.0, 2.0, 0.0], np.float32)
    check(
        "mlc.binary",
        [base, np.array([3, -2, 0], np.int64)],
        {"kind": "pow"},
        np.array([-8, 0.25, 1], np.float32),
    )


def test_max_propagates_nan_and_broadcasts() -> None:
    x, y = np.array([[1], [np.nan]], np.float32), np.array([0, 2, np.nan], np.float32)
    check("mlc.binary", [x, y], {"kind": "max"}, np.maximum(x, y))


def test_compare_and_select() -> None:
    x, y = np.array([1, np.nan], np.float32), np.array([[1], [2]], np.float32)
    for name, function in {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "ge": np.greater_equal}.items():
        check("mlc.compare", [x, y], {"predicate": name}, function(x, y))
    check("mlc.select", [np.array([True, False]), y, x], {}, np.where([True, False], y, x))
    check("mlc.compare", [np.int8([-1]), np.int8([1])], {"predicate": "gt", "unsigned": True}, np.array([True]))


@pytest.mark.parametrize(
    ("x", "dtype", "attrs", "want"),
    [
        (np.float32([1.9, -1.9, 300]), "i8", {}, np.int8([1, -1, 44])),
        (np.float32([1.9, -1.9, 300, np.nan]), "i8", {"saturate": True}, np.int8([1, -1, 127, 0])),
        (np.float32([200.7]), "i8", {"unsigned_out": True}, np.uint8([200]).view(np.int8)),
        (
            np.float32([-5, 300]),
            "i8",
            {"unsigned_out": True, "saturate": True},
            np.uint8([0, 255]).view(np.int8),
        ),
        (np.uint8([200]).view(np.int8), "f32", {"unsigned_in": True}, np.float32([200])),
        (np.float64([1e300, -1e300]), "i64", {"saturate": True}, np.int64([2**63 - 1, -(2**63)])),
        (np.float32([0.0, -0.5, np.nan]), "i1", {}, np.array([False, True, True])),
        (np.int64([300, -1]), "i8", {}, np.int8([44, -1])),
        (np.int64([300, -300]), "i8", {"saturate": True}, np.int8([127, -128])),
        (np.array([True, False]), "f16", {}, np.float16([1, 0])),
        (np.int32([9, -9]), "i4", {}, np.array([-7, 7], ml_dtypes.int4)),
    ],
)
def test_cast(x: np.ndarray, dtype: str, attrs: dict[str, bool], want: np.ndarray) -> None:
    (y,) = interp("mlc.cast", [x], attrs, results=[ResultType(x.shape, dtype)])
    np.testing.assert_array_equal(y, want)
    assert y.dtype == want.dtype


def test_cast_to_float8_saturates_or_overflows() -> None:
    x = np.float32([1000.0, -1000.0, np.inf, np.nan])
    (plain,) = interp("mlc.cast", [x], {}, results=[ResultType((4,), "f8E4M3FN")])
    assert np.isnan(plain.astype(np.float32)).all()
    (bounded,) = interp("mlc.cast", [x], {"saturate": True}, results=[ResultType((4,), "f8E4M3FN")])
    np.testing.assert_array_equal(bounded.astype(np.float32), np.float32([448, -448, 448, np.nan]))


def test_cast_to_powers_of_two_rounds_up() -> None:
    x = np.float32([1.0, 1.1, 4.0, 0.0, 3e-39, -1.0, np.inf])
    result = [ResultType(x.shape, "f8E8M0FNU")]
    (bounded,) = interp("mlc.cast", [x], {"saturate": True}, results=result)
    want = np.float32([1, 2, 4, 2.0**-127, 2.0**-127, np.nan, 2.0**127])
    np.testing.assert_array_equal(bounded.astype(np.float32), want)
    (plain,) = interp("mlc.cast", [x], {}, results=result)
    assert np.isnan(plain.astype(np.float32)[[3, 5, 6]]).all() and plain.astype(np.float32)[1] == 2


def test_bitcast() -> None:
    x = np.float32([[1.0, -0.0]])
    check("mlc.bitcast", [x], {}, x.view(np.int32))


@pytest.mark.parametrize(
    ("kind", "onnx_op", "attrs", "onnx_attrs"),
    [
        ("relu", "Relu", {}, {}),
        ("leaky_relu", "LeakyRelu", {"alpha": 0.2}, {"alpha": 0.2}),
        ("leaky_relu", "LeakyRelu", {}, {}),
        ("elu", "Elu", {"alpha": 1.5}, {"alpha": 1.5}),
        ("selu", "Selu", {}, {}),
        ("celu", "Celu", {"alpha": 0.5}, {"alpha": 0.5}),
        ("gelu", "Gelu", {}, {}),
        ("gelu_tanh", "Gelu", {}, {"approximate": "tanh"}),
        ("hard_sigmoid", "HardSigmoid", {}, {}),
        ("hard_swish", "HardSwish", {}, {}),
        ("softplus", "Softplus", {}, {}),
        ("softsign", "Softsign", {}, {}),
        ("mish", "Mish", {}, {}),
        ("thresholded_relu", "ThresholdedRelu", {"alpha": 0.7}, {"alpha": 0.7}),
        ("shrink", "Shrink", {"alpha": 0.1, "beta": 0.6}, {"bias": 0.1, "lambd": 0.6}),
    ],
)
def test_activation(kind: str, onnx_op: str, attrs: dict[str, float], onnx_attrs: dict[str, object]) -> None:
    x = np.linspace(-6, 6, 97, dtype=np.float32)
    (want,) = onnx_run(onnx_op, [x], **onnx_attrs)
    check("mlc.activation", [x], {"kind": kind, **attrs}, want, rtol=2e-6, atol=2e-6)


def test_clamp_and_prelu() -> None:
    x = np.float32([-3, 0, 3, np.nan])
    low = np.float32(-1)
    check("mlc.clamp", [x, low], {"operandSegmentSizes": [1, 1, 0]}, np.float32([-1, 0, 3, np.nan]))
    check("mlc.clamp", [x, low], {"operandSegmentSizes": [1, 0, 1]}, np.float32([-3, -1, -1, np.nan]))
    check("mlc.clamp", [x, None, low], {}, np.float32([-3, -1, -1, np.nan]))
    check("mlc.prelu", [x, np.float32([0.5])], {}, np.float32([-1.5, 0, 3, np.nan]))


def test_errors_name_the_operation() -> None:
    x = np.zeros(3, np.float32)
    with pytest.raises(InterpError, match="no evaluator for 'mlc.nothing'"):
        evaluate("mlc.nothing", [], {}, [])
    with pytest.raises(InterpError, match=r"mlc.unary: result 0 has shape \(3,\)"):
        evaluate("mlc.unary", [x], {"kind": "abs"}, [ResultType((4,), "f32")])
    with pytest.raises(InterpError, match="takes operands"):
        evaluate("mlc.unary", [x, x], {"kind": "abs"}, [ResultType((3,), "f32")])
    with pytest.raises(ValueError, match="two evaluators"):
        evaluates("mlc.unary", "input")(lambda call, x: x)


def test_every_operation_of_the_dialect_has_an_evaluator() -> None:
    import re
    from pathlib import Path

    import mlc.interp

    folder = Path(mlc.interp.__file__).parent.parent / "dialects"
    text = "".join(p.read_text() for p in folder.glob("*.td") if p.name not in ("base.td", "kernel.td"))
    names = {f"mlc.{n}" for n in re.findall(r"Mlc_(?:Infer|Typed)?Op<\"(\w+)\"", text)}
    assert len(names) > 60
    assert names - set(supported_ops()) == {"mlc.weight"}
