"""Operators of onnxruntime's own domain, `com.microsoft`, compiled with dynamic dimensions and compared with onnxruntime.

Operators that onnxruntime runs on GPUs only are compared with NumPy.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from contrib_cases import Case, check, codes, feeds_of, floats, identifier, model_of, prepared, scalar
from onnx import helper

RNG = np.random.default_rng(6)
X = floats(2, 5, 8)
ELEMENTWISE = [
    Case("gelu", "Gelu", [X]),
    Case("bias_gelu", "BiasGelu", [X, floats(8)]),
    Case("fast_gelu", "FastGelu", [X]),
    Case("fast_gelu_bias", "FastGelu", [X, floats(8)], atol=1e-4),
    Case("quick_gelu", "QuickGelu", [X], {"alpha": 1.5}),
    Case("quick_gelu_default", "QuickGelu", [X]),
    Case("trilu", "Trilu", [floats(4, 4), scalar(1, "int64")], {"upper": 0}),
    Case("expand_dims", "ExpandDims", [X, scalar(1, "int32")], fixed=[1]),
    Case("range", "Range", [scalar(1.0), scalar(4.0), scalar(0.5)]),
    Case("gather_nd", "GatherND", [X, np.array([[1, 2], [0, 4]], np.int64)]),
    Case("pad", "Pad", [floats(3, 4), np.array([1, 0, 0, 2], np.int64), scalar(1.5)], {"mode": "constant"}),
    Case("unique", "Unique", [np.array([2, 1, 3, 2, 1], np.float32)], outputs=("y", "i", "c")),
    Case("grid_sample", "GridSample", [floats(1, 2, 4, 5), floats(1, 3, 3, 2, scale=0.5)]),
]
LINALG = [
    Case("fused_matmul", "FusedMatMul", [floats(2, 4, 5), floats(2, 5, 3)], {"alpha": 0.5}),
    Case("fused_matmul_t", "FusedMatMul", [floats(2, 5, 4), floats(2, 3, 5)], {"transA": 1, "transB": 1}),
    Case("fused_matmul_batch", "FusedMatMul", [floats(4, 2, 5), floats(5, 2, 3)], {"transBatchA": 1, "transBatchB": 1}),
    Case("transpose_matmul", "TransposeMatMul", [floats(4, 5), floats(3, 5)], {"transB": 1}),
    Case("fused_gemm", "FusedGemm", [floats(4, 5), floats(5, 3), floats(3)], {"activation": "Relu"}),
    Case(
        "fused_gemm_alpha", "FusedGemm", [floats(4, 5), floats(3, 5), floats(3)],
        {"activation": "LeakyRelu", "activation_alpha": 0.3, "alpha": 2.0, "beta": 0.5, "transB": 1},
    ),
    Case("fused_conv", "FusedConv", [floats(1, 3, 6, 6), floats(4, 3, 3, 3), floats(4)], {"activation": "Relu"}, [1, 2]),
    Case(
        "fused_conv_sum", "FusedConv", [floats(1, 3, 6, 6), floats(4, 3, 3, 3), floats(4), floats(1, 4, 4, 4)],
        {"activation": "Clip", "activation_params": [-0.5, 3.0]}, [1, 2],
    ),
    Case(
        "fused_conv_hard_sigmoid", "FusedConv", [floats(1, 2, 5, 5), floats(2, 1, 3, 3)],
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4], "group": 2, "pads": [1, 1, 1, 1]}, [1],
    ),
    Case("nhwc_max_pool", "NhwcMaxPool", [codes("uint8", 1, 6, 6, 3)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("distances", "CDist", [floats(4, 3), floats(5, 3)], {"metric": "euclidean"}),
    Case("square_distances", "CDist", [floats(4, 3), floats(5, 3)], {"metric": "sqeuclidean"}),
]  # fmt: skip
FOUR = ("y", "mean", "inverse", "sum")
IDS = RNG.integers(0, 20, (2, 4)).astype(np.int32)
TABLES = [floats(20, 8), floats(6, 8), floats(2, 8), floats(8), floats(8)]
SEGMENTS = (IDS % 2).astype(np.int32)
MASK = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
TINY = [codes("uint8", 20, 8), codes("uint8", 6, 8), codes("uint8", 2, 8), codes("uint8", 8), codes("uint8", 8)]
NORMALIZATION = [
    Case("skip", "SkipLayerNormalization", [X, floats(2, 5, 8), floats(8), floats(8)], {"epsilon": 1e-5}),
    Case(
        "skip_sum", "SkipLayerNormalization", [X, floats(2, 5, 8), floats(8), floats(8), floats(8)],
        {"epsilon": 1e-5}, outputs=("y", "", "", "sum"),
    ),
    Case("skip_broadcast", "SkipLayerNormalization", [X, floats(5, 8), floats(8), None, floats(8)]),
    Case("simple_skip", "SkipSimplifiedLayerNormalization", [X, floats(2, 5, 8), floats(8)], {"epsilon": 1e-6}),
    Case(
        "simple_skip_sum", "SkipSimplifiedLayerNormalization", [X, floats(2, 5, 8), floats(8), floats(8)],
        {"epsilon": 1e-6}, outputs=("y", "", "", "sum"),
    ),
    Case("simple", "SimplifiedLayerNormalization", [X, floats(8)], {"epsilon": 1e-6, "axis": -1}, domain=""),
    Case(
        "embed", "EmbedLayerNormalization", [IDS, SEGMENTS, *TABLES, MASK], {"epsilon": 1e-6},
        fixed=range(2, 7), outputs=("y", "lengths", "sum"),
    ),
    Case(
        "embed_plain", "EmbedLayerNormalization", [IDS, None, *TABLES[:2], None, *TABLES[3:]], fixed=range(2, 7),
        outputs=("y", "lengths"),
    ),
    Case(
        "embed_positions", "EmbedLayerNormalization",
        [IDS, SEGMENTS, *TABLES, None, np.array([[3, 1, 2, 0], [0, 1, 2, 5]], np.int32)],
        fixed=range(2, 7), outputs=("y", "lengths"),
    ),
    Case(
        "quantized_embed", "QEmbedLayerNormalization",
        [IDS, SEGMENTS, *TINY, MASK, *[scalar(0.02)] * 5, *[scalar(120, "uint8")] * 5],
        {"epsilon": 1e-5}, fixed=range(2, 7), outputs=("y", "lengths"), atol=1e-4,
    ),
]  # fmt: skip

CODES = codes("uint8", 2, 3, 6, 6)
ONE = [scalar(0.02), scalar(130, "uint8")]
OTHER = [scalar(0.03), scalar(110, "uint8")]
OUT = [scalar(0.05), scalar(128, "uint8")]
FILTER = [codes("int8", 4, 3, 3, 3), scalar(0.01), scalar(0, "int8")]
BLOCKS = [codes("uint8", 6, 4, 8), np.abs(floats(6 * 4)).astype(np.float32)]
NBITS = {"K": 64, "N": 6, "block_size": 16, "bits": 4}
QUANTIZED = [
    Case("sum", "QLinearAdd", [CODES, *ONE, codes("uint8", 2, 3, 6, 6), *OTHER, *OUT]),
    Case("product", "QLinearMul", [CODES, *ONE, codes("uint8", 1, 3, 1, 1), *OTHER, *OUT]),
    Case("sigmoid", "QLinearSigmoid", [CODES, *ONE, scalar(1 / 256), scalar(0, "uint8")], fixed=range(1, 5)),
    Case("leaky", "QLinearLeakyRelu", [CODES, *ONE, *OUT], {"alpha": 0.2}, fixed=range(1, 5)),
    Case("global_pool", "QLinearGlobalAveragePool", [CODES, *ONE, *OUT]),
    Case("concat", "QLinearConcat", [*OUT, CODES, *ONE, codes("uint8", 2, 2, 6, 6), *OTHER], {"axis": 1}),
    Case("softmax", "QLinearSoftmax", [CODES, *ONE, scalar(1 / 256), scalar(0, "uint8")], {"opset": 13}, range(1, 5)),
    Case("where", "QLinearWhere", [CODES > 100, CODES, *ONE, codes("uint8", 2, 3, 6, 6), *OTHER, *OUT], fixed=range(8, 9)),
    Case("pool", "QLinearAveragePool", [CODES, *ONE, *OUT], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case(
        "conv_last", "QLinearConv", [codes("uint8", 1, 6, 6, 3), *ONE, *FILTER, *OUT], {"channels_last": 1}, range(3, 6)
    ),
    Case("gemm", "QGemm", [codes("uint8", 4, 8), *ONE, codes("int8", 8, 6), scalar(0.01), scalar(0, "int8")]),
    Case(
        "gemm_codes", "QGemm",
        [codes("uint8", 4, 8), *ONE, codes("int8", 8, 6), scalar(0.01), scalar(0, "int8"), codes("int8", 6).astype("i4"), *OUT],
    ),
    Case(
        "to_float", "MatMulIntegerToFloat",
        [codes("uint8", 4, 8), codes("int8", 8, 6), scalar(0.02), scalar(0.01), scalar(130, "uint8"), scalar(3, "int8")],
        atol=1e-4,
    ),
    Case("dynamic", "DynamicQuantizeMatMul", [floats(4, 8), codes("int8", 8, 6), scalar(0.01)], fixed=[1, 2], atol=2e-3),
    Case("quantize", "QuantizeLinear", [floats(3, 4), *ONE]),
    Case("dequantize", "DequantizeLinear", [CODES, *ONE]),
    Case("bits", "MatMulNBits", [floats(3, 64), *BLOCKS], NBITS, [1, 2], atol=2e-3),
    Case("bits_zeros", "MatMulNBits", [floats(3, 64), *BLOCKS, codes("uint8", 12)], NBITS, [1, 2, 3], atol=2e-3),
    Case("bits_bias", "MatMulNBits", [floats(3, 64), *BLOCKS, None, None, floats(6)], NBITS, [1, 2, 5], atol=2e-3),
    Case("bits_float_zeros", "MatMulNBits", [floats(3, 64), *BLOCKS, floats(24, scale=3)], NBITS, [1, 2, 3], atol=2e-3),
    Case(
        "bits_order", "MatMulNBits", [floats(3, 64), *BLOCKS, None, RNG.permutation(64).astype(np.int32) // 16],
        NBITS, [1, 2, 4], atol=2e-3,
    ),
    Case(
        "bytes", "MatMulNBits", [floats(3, 64), codes("uint8", 6, 4, 16), BLOCKS[1]], NBITS | {"bits": 8}, [1, 2], atol=2e-2
    ),
    Case(
        "gather", "GatherBlockQuantized", [codes("uint8", 10, 16), IDS % 10, np.abs(floats(10, 2))],
        {"block_size": 16, "bits": 4, "quantize_axis": 1, "gather_axis": 0}, [0, 2],
    ),
    Case(
        "gather_zeros", "GatherBlockQuantized",
        [codes("uint8", 10, 16), IDS % 10, np.abs(floats(10, 2)), codes("uint8", 10, 1)],
        {"block_size": 16, "bits": 4, "quantize_axis": 1, "gather_axis": 0}, [0, 2, 3],
    ),
]  # fmt: skip


def lstm(name: str, directions: int, **attributes: object) -> Case:
    """A quantized LSTM of four hidden units; its state is rounded to eight bits in onnxruntime, and not here."""
    weights = [codes("int8", directions, 6, 16), codes("int8", directions, 4, 16), floats(directions, 32)]
    states = [None, floats(directions, 2, 4, scale=0.3), floats(directions, 2, 4, scale=0.3), None]
    scales = [np.full(directions, 0.004, np.float32), np.zeros(directions, np.int8)] * 2
    given = [floats(5, 2, 6), *weights, *states, *scales]
    direction = "bidirectional" if directions == 2 else "forward"
    named = {"hidden_size": 4, "direction": direction, **attributes}
    outputs = ("y", "h", "c")
    return Case(name, "DynamicQuantizeLSTM", given, named, [1, 2, 3, 8, 9, 10, 11], outputs, rtol=0.02, atol=0.01)


LSTM = [lstm("forward", 1), lstm("both", 2), lstm("coupled", 1, input_forget=1)]


HEADS = {"q_num_heads": 2, "kv_num_heads": 2}
LINEAR = [floats(2, 3, 8), floats(2, 3, 8, scale=0.3), floats(2, 3, 6)]
STATE = floats(2, 2, 4, 3)
DECAY, RATE = -np.abs(floats(2, 3, 2)), np.abs(floats(2, 3, 2, scale=0.3))
BOTH = ("y", "state")
STATEFUL = [
    Case("first", "CausalConvWithState", [floats(2, 6, 5), floats(6, 1, 4)], {}, [1], BOTH),
    Case(
        "next", "CausalConvWithState", [floats(2, 6, 1), floats(6, 1, 4), floats(6), floats(2, 6, 3)],
        {"activation": "silu", "ndim": 1}, [1, 2], BOTH,
    ),
    Case("linear", "LinearAttention", LINEAR, HEADS | {"update_rule": "linear"}, outputs=BOTH),
    Case("gated", "LinearAttention", [*LINEAR, STATE, DECAY], HEADS | {"update_rule": "gated"}, outputs=BOTH),
    Case("gated_delta", "LinearAttention", [*LINEAR, STATE, DECAY, RATE], HEADS, outputs=BOTH),
]  # fmt: skip


@pytest.mark.parametrize("case", [*ELEMENTWISE, *LINALG, *NORMALIZATION, *QUANTIZED, *LSTM, *STATEFUL], ids=identifier)
def test_matches_onnxruntime(case: Case) -> None:
    check(case)


def computed(case: Case) -> list[np.ndarray]:
    """What the compiled node computes."""
    return list(prepared(model_of(case)).run(feeds_of(case)))


def test_the_largest_codes_are_multiplied_exactly() -> None:
    """Two products of them do not fit into 16 bits."""
    rng = np.random.default_rng(0)
    a = rng.choice(np.array([0, 254, 255], np.uint8), (4, 32), p=[0.2, 0.4, 0.4])
    b = rng.choice(np.array([-128, -127, 127], np.int8), (32, 6))
    given = [a, b, scalar(0.5), scalar(0.25), scalar(130, "uint8"), scalar(3, "int8")]
    [y] = computed(Case("largest", "MatMulIntegerToFloat", given))
    np.testing.assert_array_equal(y, (a.astype(int) - 130) @ (b.astype(int) - 3) * 0.125)


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def _silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def _group_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray, groups: int) -> np.ndarray:
    """Of `[N, H, W, C]`."""
    parts = x.astype(np.float64).reshape(x.shape[0], -1, groups, x.shape[3] // groups)
    mean, variance = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
    return ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * scale + shift


def test_sums_for_diffusion_models() -> None:
    bias, skip = floats(8), floats(2, 5, 8)
    [y] = computed(Case("add", "BiasAdd", [X, bias, skip]))
    np.testing.assert_allclose(y, X + bias + skip, rtol=1e-6)
    [y] = computed(Case("split", "BiasSplitGelu", [X, bias]))
    left, right = np.split((X + bias).astype(np.float64), 2, axis=2)
    np.testing.assert_allclose(y, left * _gelu(right), rtol=1e-4, atol=1e-5)
    [y] = computed(Case("dropout", "BiasDropout", [X, bias, skip]))
    np.testing.assert_allclose(y, X + bias + skip, rtol=1e-6)
    [y] = computed(Case("gemm", "GemmFastGelu", [floats(3, 4), np.eye(4, dtype=np.float32), floats(4)]))
    assert y.shape == (3, 4)


@pytest.mark.parametrize("inner", [0, 1])
def test_softmax_of_a_sum(inner: int) -> None:
    x, bias = floats(2, 3, 4, 5), floats(2, 1, 1, 5) if inner else floats(1, 1, 4, 5)
    [y] = computed(Case("softmax", "BiasSoftmax", [x, bias], {"axis": 3, "is_inner_broadcast": inner}))
    powers = np.exp((x + bias).astype(np.float64))
    np.testing.assert_allclose(y, powers / powers.sum(3, keepdims=True), rtol=1e-5)


def test_convolution_of_the_last_dimension() -> None:
    x, filter_, bias = floats(1, 5, 5, 2), floats(4, 1, 1, 2), floats(4)
    [y] = computed(Case("conv", "NhwcConv", [x, filter_, bias], fixed=[1, 2]))
    np.testing.assert_allclose(y, x @ filter_[:, 0, 0].T + bias, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", [0, 1])
def test_group_norms(activation: int) -> None:
    x, skip, scale, shift, bias = floats(2, 3, 3, 6), floats(2, 3, 3, 6), floats(6), floats(6), floats(6)
    named = {"groups": 3, "activation": activation, "epsilon": 1e-5}
    after = _silu if activation else lambda y: y
    [y] = computed(Case("group", "GroupNorm", [x, scale, shift], named, [1, 2]))
    np.testing.assert_allclose(y, after(_group_norm(x, scale, shift, 3)), rtol=1e-4, atol=1e-5)
    case = Case("skip", "SkipGroupNorm", [x, scale, shift, skip, bias], named, [1, 2, 4], ("y", "s"))
    y, total = computed(case)
    np.testing.assert_allclose(total, x + skip + bias, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y, after(_group_norm(total, scale, shift, 3)), rtol=1e-4, atol=1e-5)


def test_an_operator_that_is_not_there_is_named() -> None:
    from mlc.frontends.report import ModelError

    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", mark=0, pad_value="", mincharnum=1)
    case = Case("tokens", "Tokenizer", [floats(2, 2)])
    model = model_of(case)
    model.graph.node[0].CopyFrom(node)
    model.graph.node[0].input[0] = "x0"
    with pytest.raises(ModelError, match="Tokenizer"):
        prepared(model)


def test_gates_of_linear_attention() -> None:
    """Written for GPUs: sums, norms and rates behind gates."""
    x, y, gate = floats(2, 3, 8), floats(2, 3, 8), floats(2, 3, 1)
    np.testing.assert_allclose(computed(Case("add", "GatedAdd", [x, y, gate]))[0], x + y * gate, rtol=1e-5, atol=1e-6)
    scale = floats(4)
    case = Case("norm", "GatedRMSNorm", [x, scale, y], {"epsilon": 1e-3, "activation": "silu"})
    groups = x.reshape(2, 3, 2, 4)
    normal = groups / np.sqrt((groups**2).mean(-1, keepdims=True) + 1e-3) * scale
    np.testing.assert_allclose(computed(case)[0], normal.reshape(x.shape) * y / (1 + np.exp(-y)), rtol=1e-4, atol=1e-6)
    a, bias, factor, b = floats(2, 3, 4), floats(4), -np.abs(floats(4)), floats(2, 3, 4)
    decay, beta = computed(Case("gates", "LinearAttentionGate", [a, bias, factor, b], outputs=("decay", "beta")))
    np.testing.assert_allclose(decay, factor * np.log1p(np.exp(a + bias)), rtol=1e-4)
    np.testing.assert_allclose(beta, 1 / (1 + np.exp(-b)), rtol=1e-5)
