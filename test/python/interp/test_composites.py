"""Normalisation, attention, recurrence, resampling, detection, quantisation, random numbers and sequences."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx_oracle import check, interp, onnx_run

from mlc.interp import InterpError, Maybe, ResultType
from mlc.interp.random import philox
from mlc.interp.text import register_routine

RNG = np.random.default_rng(3)


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_softmax() -> None:
    x = rand(2, 5, 3) * 100
    for log, op in ((False, "Softmax"), (True, "LogSoftmax")):
        (want,) = onnx_run(op, [x], axis=1)
        check("mlc.softmax", [x], {"axis": 1, "log": log}, want, rtol=1e-5)
    (y,) = interp("mlc.softmax", [np.float32([0, -np.inf])], {"axis": 0}, like=np.zeros(2, np.float32))
    np.testing.assert_array_equal(y, [1, 0])
    (y,) = interp("mlc.softmax", [np.float32([0, -71, -72, -100])], {"axis": 0}, like=np.zeros(4, np.float32))
    assert y[1] > 0 and (y[2:] == 0).all()  # as in kernels, and no subnormal numbers


def test_norms() -> None:
    x = rand(2, 6, 4, 3)
    scale, bias, mean, var = rand(6), rand(6), rand(6), np.abs(rand(6))
    (want,) = onnx_run("BatchNormalization", [x, scale, bias, mean, var], opset=14, epsilon=1e-3)
    check("mlc.batch_norm", [x, scale, bias, mean, var], {"epsilon": 1e-3}, want, rtol=1e-4, atol=1e-5)
    (want,) = onnx_run("LayerNormalization", [x, x[0, 0], x[1, 1]], axis=2, epsilon=1e-4)
    check("mlc.layer_norm", [x, x[0, 0], x[1, 1]], {"axis": 2, "epsilon": 1e-4}, want, rtol=1e-4, atol=1e-5)
    (want,) = onnx_run("RMSNormalization", [x, x[0, 0, 0]], opset=23, reference=True, axis=-1, epsilon=1e-4)
    attrs = {"axis": 3, "epsilon": 1e-4, "rms": True}
    check("mlc.layer_norm", [x, x[0, 0, 0]], attrs, want, rtol=1e-4, atol=1e-5)
    (want,) = onnx_run("GroupNormalization", [x, scale, bias], opset=21, reference=True, num_groups=3)
    check("mlc.group_norm", [x, scale, bias], {"groups": 3, "epsilon": 1e-5}, want, rtol=1e-4, atol=1e-5)
    (want,) = onnx_run("LRN", [x], size=3, alpha=0.1, beta=0.6, bias=1.5)
    attrs = {"size": 3, "alpha": 0.1, "beta": 0.6, "bias": 1.5}
    check("mlc.lrn", [x], attrs, want, rtol=1e-4)
    for p in (1, 2):
        (want,) = onnx_run("LpNormalization", [x], axis=1, p=p)
        check("mlc.lp_normalize", [x], {"axis": 1, "p": p}, want)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, "bool", "float"])
@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_attention(causal: bool, mask: str | None, softcap: float) -> None:
    q, k, v = rand(2, 4, 5, 8), rand(2, 2, 6, 8), rand(2, 2, 6, 3)
    keep = RNG.random((5, 6)) > 0.4
    keep[2] = False
    masks = {None: None, "bool": keep, "float": rand(2, 1, 5, 6)}
    attrs: dict[str, Any] = {"is_causal": int(causal), "softcap": softcap}
    want = onnx_run("Attention", [q, k, v, masks[mask]], opset=23, reference=True, **attrs)[0]
    inputs = [q, k, v] + ([] if mask is None else [masks[mask]])
    check("mlc.attention", inputs, {"causal": causal, "softcap": softcap}, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("linear", [0, 1])
def test_recurrent(kind: str, direction: str, linear: int) -> None:
    if linear and kind != "gru":
        pytest.skip("linear_before_reset is an attribute of gru")
    gates, dirs, hidden = {"rnn": 1, "gru": 3, "lstm": 4}[kind], 2 if direction == "bidirectional" else 1, 3
    x, w, r = rand(5, 2, 4), rand(dirs, gates * hidden, 4), rand(dirs, gates * hidden, hidden)
    b, lengths, h = rand(dirs, 2 * gates * hidden), np.int32([5, 3]), rand(dirs, 2, hidden)
    inputs, onnx_attrs = [x, w, r, b, lengths, h], {"hidden_size": hidden, "direction": direction}
    attrs: dict[str, Any] = {"kind": kind, "direction": direction, "activations": [], "clip": 0.7}
    if kind == "gru":
        onnx_attrs["linear_before_reset"], attrs["linear_before_reset"] = linear, bool(linear)
    if kind == "lstm":
        inputs += [rand(dirs, 2, hidden), rand(dirs, 3 * hidden)]
    outputs = 3 if kind == "lstm" else 2
    want = onnx_run(kind.upper(), inputs, outputs=outputs, opset=14, clip=0.7, **onnx_attrs)
    like = [*want, want[1]][:3]
    have = interp("mlc.recurrent", inputs + [None] * (8 - len(inputs)), attrs, like=like)
    for got, expected in zip(have, want, strict=False):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["tanh", "relu", "gru", "lstm"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_recurrence(kind: str, direction: str) -> None:
    """The steps behind the product of the inputs, with all biases that can be added to that."""
    gates, dirs, hidden = {"gru": 3, "lstm": 4}.get(kind, 1), 2 if direction == "bidirectional" else 1, 3
    rows = gates * hidden
    x, w, r = rand(5, 2, 4), rand(dirs, rows, 4), rand(dirs, rows, hidden) * np.float32(0.4)
    b, lengths, h = rand(dirs, 2, rows), np.int32([5, 3]), rand(dirs, 2, hidden)
    states = [h, rand(dirs, 2, hidden)] if kind == "lstm" else [h]
    onnx_attrs: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if kind in ("tanh", "relu"):
        onnx_attrs["activations"] = [kind.capitalize()] * dirs
    if kind == "gru":
        onnx_attrs["linear_before_reset"] = 1
    op = kind.upper() if kind in ("gru", "lstm") else "RNN"
    given = [x, w, r, b.reshape(dirs, -1), lengths, *states]
    want = onnx_run(op, given, outputs=len(states) + 1, opset=14, **onnx_attrs)
    own = b[:, 1].copy()
    if kind == "gru":
        own[:, 2 * hidden :] = 0
    inputs = np.einsum("sbi,dri->sbdr", x, w) + b[:, 0] + own
    more = [b[:, 1, 2 * hidden :] if kind == "gru" else None, lengths, *states, *[None] * (2 - len(states))]
    like = [want[0].transpose(0, 2, 1, 3), want[1], want[-1]]
    attrs = {"kind": kind, "direction": direction}
    have = interp("mlc.recurrence", [inputs.reshape(5, 2, -1), r, *more], attrs, like=like)
    for got, expected in zip(have, like, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    rounded = interp("mlc.recurrence", [inputs.reshape(5, 2, -1), r.astype(ml_dtypes.bfloat16), *more], attrs, like=like)
    assert 1e-5 < np.max(np.abs(rounded[0] - like[0])) < 0.1


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "coordinate", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
)
@pytest.mark.parametrize("size", [(7, 3), (2, 9), (1, 5)])
def test_resize(mode: str, coordinate: str, size: tuple[int, int]) -> None:
    x = rand(1, 2, 4, 5)
    sizes = np.int64([1, 2, *size])
    attrs = {"mode": mode, "coordinate": coordinate}
    (want,) = onnx_run(
        "Resize",
        [x, None, None, sizes],
        opset=19,
        reference=True,
        mode=mode,
        coordinate_transformation_mode=coordinate,
    )
    scales = (sizes / np.array(x.shape)).astype(np.float32)
    check("mlc.resize", [x, scales], {"static_sizes": sizes.tolist(), **attrs}, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_resize_nearest_modes_and_cubic_options(nearest: str) -> None:
    x = rand(1, 1, 4, 4)
    scales = np.float32([1, 1, 1.5, 0.6])
    want = onnx_run("Resize", [x, None, scales], opset=19, mode="nearest", nearest_mode=nearest)[0]
    attrs = {"mode": "nearest", "nearest_mode": nearest, "static_sizes": list(want.shape)}
    check("mlc.resize", [x, scales], attrs, want)
    options = {"cubic_coeff_a": -0.5, "exclude_outside": 1}
    want = onnx_run("Resize", [x, None, scales], opset=19, mode="cubic", **options)[0]
    attrs = {"mode": "cubic", "cubic_coeff": -0.5, "exclude_outside": True, "static_sizes": list(want.shape)}
    check("mlc.resize", [x, scales], attrs, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("center", [0, 1])
def test_nms(center: int) -> None:
    boxes = RNG.random((2, 40, 4)).astype(np.float32)
    scores = RNG.random((2, 3, 40)).astype(np.float32)
    limits = [np.int64([7]), np.float32([0.3]), np.float32([0.4])]
    (want,) = onnx_run("NonMaxSuppression", [boxes, scores, *limits], center_point_box=center)
    inputs = [boxes, scores, 7, np.float32(0.3), np.float32(0.4)]
    result = [ResultType((-1, 3), "i64")]
    (have,) = interp("mlc.nms", inputs, {"center_point_box": bool(center)}, results=result)
    np.testing.assert_array_equal(have, want)
    (none,) = interp("mlc.nms", [*inputs[:4], np.float32(2)], {}, results=result)
    assert none.shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantize_per_axis_and_blocked(dtype: type) -> None:
    x = rand(4, 6) * 50
    unsigned = {"unsigned": True} if dtype is np.uint8 else {}
    for axis, block, scale_shape in ((1, 0, (6,)), (0, 0, (4,)), (1, 3, (4, 2)), (0, 0, ())):
        scale = np.abs(rand(*scale_shape)) + np.float32(0.1)
        zero = RNG.integers(0, 100, scale_shape).astype(dtype)
        attrs = {"axis": axis, "block_size": block}
        (want,) = onnx_run("QuantizeLinear", [x, scale, zero], **attrs)
        check("mlc.quantize", [x, scale, zero.view(np.int8)], {**attrs, **unsigned}, want)
        (back,) = onnx_run("DequantizeLinear", [want, scale, zero], **attrs)
        check("mlc.dequantize", [want.view(np.int8), scale, zero.view(np.int8)], {**attrs, **unsigned}, back)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_unpack(bits: int) -> None:
    """Against the description, a code at a time."""
    words = np.random.default_rng(bits).integers(0, 256, (2, 3, 5, 4)).astype(np.uint8)
    want = np.empty((2, 3 * 32 // bits, 5), np.int8)
    for word in range(3):
        for k in range(32 // bits):
            shift = bits * (k // 4)
            want[:, word * 32 // bits + k] = (words[:, word, :, k % 4] >> shift & ((1 << bits) - 1)).astype(np.int8)
    check("mlc.unpack", [words.view(np.int8)], {"bits": bits}, want)


def test_quantize_narrow_types() -> None:
    x = np.float32([-100, -7.5, 2.5, 100])
    (y,) = interp("mlc.quantize", [x, np.float32(1)], {}, results=[ResultType((4,), "i4")])
    np.testing.assert_array_equal(y, np.array([-8, -8, 2, 7], ml_dtypes.int4))
    (y,) = interp("mlc.quantize", [x, np.float32(1)], {"unsigned": True}, results=[ResultType((4,), "i4")])
    np.testing.assert_array_equal(y.view(ml_dtypes.uint4), np.array([0, 0, 2, 15], ml_dtypes.uint4))
    (y,) = interp("mlc.quantize", [x * 10, np.float32(1)], {}, results=[ResultType((4,), "f8E4M3FN")])
    np.testing.assert_array_equal(y.astype(np.float32), [-448, -72, 24, 448])


def test_philox_known_answer() -> None:
    # Random123's kat_vectors: philox4x32 10 with counter 0 and key 0.
    assert [int(word[0]) for word in philox(0, 1)] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
def test_random_distributions(dtype: str) -> None:
    attrs = {"kind": "uniform", "static_sizes": [20000]}
    (u,) = interp("mlc.random", [np.int64(7)], attrs, results=[ResultType((20000,), dtype)])
    assert u.min() >= 0 and u.max() <= 1 and abs(u.mean(dtype=np.float64) - 0.5) < 0.01
    (n,) = interp("mlc.random", [np.int64(7)], {**attrs, "kind": "normal"}, results=[ResultType((20000,), dtype)])
    assert abs(n.mean(dtype=np.float64)) < 0.03 and abs(n.std(dtype=np.float64) - 1) < 0.02
    (again,) = interp(
        "mlc.random", [np.int64(7)], {**attrs, "static_sizes": [100]}, results=[ResultType((100,), dtype)]
    )
    np.testing.assert_array_equal(again, u[:100])


def test_sequences() -> None:
    seq = [ResultType((), "!mlc.seq")]
    x, y = np.float32([1]), np.float32([2, 3])
    (s,) = interp("mlc.sequence_make", [x, y], results=seq)
    (s,) = interp("mlc.sequence_insert", [s, x + 8, np.int64(-1)], results=seq)
    assert [len(e) for e in s] == [1, 1, 2] and s[1][0] == 9
    check("mlc.sequence_length", [s], {}, np.array(3))
    check("mlc.sequence_at", [s, np.int64(-1)], {}, y)
    (s,) = interp("mlc.sequence_erase", [s], results=seq)
    assert len(s) == 2
    with pytest.raises(InterpError, match="out of range for 2 elements"):
        interp("mlc.sequence_at", [s, np.int64(2)], like=x)
    (some,) = interp("mlc.optional_some", [x], results=seq)
    check("mlc.optional_has", [some], {}, np.array(True))
    check("mlc.optional_get", [some], {}, x)
    with pytest.raises(InterpError, match="holds nothing"):
        interp("mlc.optional_get", [Maybe()], like=x)


def test_check_and_extern() -> None:
    assert interp("mlc.check", [True, 3], {"message": "m"}) == []
    with pytest.raises(InterpError, match=r"axis too long \(value 3\)"):
        interp("mlc.check", [np.array(False), 3], {"message": "axis too long"})
    register_routine("test_twice", lambda config, inputs: [inputs[0] * int(config)])
    check("mlc.extern", [np.int64([4])], {"callee": "test_twice", "config": "2"}, np.int64([8]))
    with pytest.raises(InterpError, match="no Python function is registered for the routine 'absent'"):
        interp("mlc.extern", [], {"callee": "absent"})
