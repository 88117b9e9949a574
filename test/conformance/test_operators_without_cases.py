"""Operators for which ONNX's backend suite has no case of its own, compared with onnxruntime; random ones by their
distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from contrib_cases import Case, check, codes, floats, identifier, prepared, reference
from onnx import TensorProto, helper

from mlc.frontends.report import ModelError
from mlc.runtime.errors import ModelError as RunError

ML = "ai.onnx.ml"
X = floats(7, 4)
VECTORS = floats(6, 4)
COEFFICIENTS = floats(12).tolist()
REGIONS = np.array([[0, 0, 0, 4, 4], [0, 1, 2, 5, 6], [1, 3, 3, 3, 3]], np.float32)
WORDS = np.array([["cat", "dog"], ["bird", "eel"]], object)


def machine(name: str, kernel: str, **attributes: Any) -> Case:
    """A support vector machine for regression."""
    given = {"kernel_type": kernel, "kernel_params": [0.4, 0.3, 2.0], "rho": [0.2], **attributes}
    return Case(name, "SVMRegressor", [X], given, domain=ML)


def elected(name: str, labels: int, kernel: str, **attributes: Any) -> Case:
    """A support vector machine for classification: two vectors a class."""
    count = 2 * labels
    given = {
        "kernel_type": kernel,
        "kernel_params": [0.4, 0.3, 2.0],
        "support_vectors": VECTORS[:count].ravel().tolist(),
        "vectors_per_class": [2] * labels,
        "coefficients": COEFFICIENTS[: (labels - 1) * count],
        "rho": floats(labels * (labels - 1) // 2).tolist(),
        "classlabels_ints": list(range(5, 5 + labels)),
        **attributes,
    }
    return Case(name, "SVMClassifier", [X], given, outputs=("label", "scores"), domain=ML)


def blocks(name: str, image: list[int], block: list[int], starts: int, **attributes: Any) -> Case:
    """Blocks of two images of three channels, summed."""
    columns = floats(2, 3 * int(np.prod(block)), starts)
    return Case(name, "Col2Im", [columns, np.array(image), np.array(block)], attributes, [1, 2], domain="", opset=18)


def filtered(name: str, size: list[int], mode: str, **attributes: Any) -> Case:
    """A resize by a filter as wide as the output's pixels."""
    given = {"mode": mode, "antialias": 1, **attributes}
    image, sizes = floats(2, 3, 13, 17), np.array([2, 3, *size])
    return Case(name, "Resize", [image, None, None, sizes], given, [3], domain="", opset=18)


SUPPORT = {"n_supports": 6, "support_vectors": VECTORS.ravel().tolist(), "coefficients": COEFFICIENTS[:6]}
CASES = [
    Case("norm", "GlobalLpPool", [floats(2, 3, 4, 5)], {"p": 2}, domain=""),
    Case("regions", "MaxRoiPool", [floats(2, 3, 8, 8), REGIONS], {"pooled_shape": [2, 2]}, [1], domain=""),
    *(machine(kernel.lower(), kernel, **SUPPORT) for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")),
    blocks("rows", [6, 7], [3, 2], 4 * 6),
    blocks("padded", [6, 7], [3, 3], 6 * 7, pads=[1, 1, 1, 1]),
    blocks("dilated", [8, 9], [2, 3], 6 * 5, dilations=[2, 2]),
    blocks("strided", [9, 12], [4, 3], 3 * 6, strides=[2, 2], pads=[0, 0, 0, 1]),
    blocks("apart", [9, 11], [2, 2], 3 * 3, strides=[3, 4]),
    blocks("scattered", [9, 9], [2, 2], 4 * 4, strides=[2, 2], dilations=[2, 2]),
    blocks("line", [12], [5], 4, strides=[3], pads=[1, 1]),
    filtered("smaller", [5, 6], "linear"),
    filtered("larger", [20, 17], "linear"),
    filtered("cubic", [5, 30], "cubic"),
    filtered("cubic_inside", [4, 6], "cubic", exclude_outside=1),
    filtered("one", [1, 2], "linear"),
    machine("linear", "LINEAR", coefficients=COEFFICIENTS[:4]),
    machine("one_class", "RBF", one_class=1, **SUPPORT),
    *(elected(kernel.lower(), 3, kernel) for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID")),
    elected("two", 2, "RBF"),
    elected("two_likely", 2, "RBF", prob_a=[-1.3], prob_b=[0.2]),
    elected("likely", 3, "RBF", prob_a=[-1.3, -0.4, -2.0], prob_b=[0.2, 0.1, -0.3]),
    elected("likely_softmax", 3, "LINEAR", prob_a=[-1.3, -0.4, -2.0], prob_b=[0.2, 0.1, -0.3], post_transform="SOFTMAX"),
    Case("features", "FeatureVectorizer", [floats(3, 2), floats(3, 3)], {"inputdimensions": [2, 3]}, domain=ML),
    Case("numbers", "OneHotEncoder", [np.array([1, 3, 9], np.int64)], {"cats_int64s": [3, 1]}, domain=ML),
    Case("words", "OneHotEncoder", [WORDS], {"cats_strings": ["dog", "cat"]}, domain=ML),
    Case(
        "words", "CategoryMapper", [WORDS],
        {"cats_strings": ["dog", "cat"], "cats_int64s": [7, 8], "default_int64": -3}, domain=ML,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=identifier)
def test_matches_onnxruntime(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("have, length", [(6, None), (6, 11), (6, 9), (6, 4), (6, 14), (3, 1)])
def test_signals_of_half_spectra(have: int, length: int | None) -> None:
    """A length may leave numbers of the half out, or want zeros behind it (onnxruntime has no such inverse)."""
    from mlc import onnx_backend

    given = "" if length is None else f"<int64 n = {{{length}}}>"
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
    half (float[2, {have}, 2] x) => (float[a, b, c] y) {given}
    {{ y = DFT <axis = 1, inverse = 1, onesided = 1> (x{", n" if given else ""}) }}""")
    spectrum = floats(2, have, 2)
    y = onnx_backend.prepare(model, cache=False, jobs=1).run([spectrum])[0]
    want = np.fft.irfft(spectrum[..., 0] + 1j * spectrum[..., 1], length, axis=1)
    np.testing.assert_allclose(y[..., 0], want, rtol=1e-5, atol=1e-6)


def test_numbers_become_words() -> None:
    attributes = {"cats_strings": ["dog", "cat"], "cats_int64s": [7, 8], "default_string": "none"}
    y = _run("CategoryMapper", [np.array([[8, 7], [1, 8]], np.int64)], TensorProto.STRING, ML, **attributes)
    assert y.tolist() == [["cat", "dog"], ["none", "cat"]]


def test_labels_that_are_words() -> None:
    weights = floats(3, 4)
    case = Case(
        "words", "LinearClassifier", [X],
        {"coefficients": weights.ravel().tolist(), "intercepts": [0.0] * 3, "classlabels_strings": ["a", "b", "c"]},
        outputs=("label", "scores"), domain=ML,
    )  # fmt: skip
    from contrib_cases import feeds_of, model_of

    model = model_of(case)
    wanted = reference(model, feeds_of(case))
    got = prepared(model, [np.array(["a"], object), wanted[1]]).run(feeds_of(case))
    assert list(got[0]) == list(wanted[0])
    np.testing.assert_allclose(got[1], wanted[1], rtol=1e-4)


# --- Sequences --------------------------------------------------------------------------------------------------------

SEQUENCES = """<ir_version: 8, opset_import: ["" : 17]>
main (float[N, 3] a, float[N, 3] b, float[M, 3] c, int64 at) => (float[P, 3] joined, float[Q, N, 3] stacked, float[R, 3]
    second, int64 length, int64 none, bool there) {
  pair = SequenceConstruct(a, b)
  three = SequenceInsert(pair, c, at)
  joined = ConcatFromSequence<axis = 0>(three)
  stacked = ConcatFromSequence<axis = 0, new_axis = 1>(pair)
  second = SequenceAt(three, at)
  fewer = SequenceErase(three, at)
  length = SequenceLength(fewer)
  empty = SequenceEmpty<dtype = 1>()
  none = SequenceLength(empty)
  perhaps = Optional(c)
  there = OptionalHasElement(perhaps)
}"""


def test_sequences() -> None:
    model = onnx.parser.parse_model(SEQUENCES)
    for rows, more, at in ((2, 4, 1), (1, 1, -1), (3, 2, 0)):
        feeds = {"a": floats(rows, 3), "b": floats(rows, 3), "c": floats(more, 3), "at": np.array(at, np.int64)}
        wanted = reference(model, feeds)
        for got, want in zip(prepared(model, wanted).run(feeds), wanted, strict=True):
            np.testing.assert_array_equal(got, want)


# --- Loops whose values grow -------------------------------------------------------------------------------------------

LOOPS = """<ir_version: 8, opset_import: ["" : 17]>
main (float[1, 2] one, float[N, 3] x, float[5, 3] y, float[M, 3] z) => (float[P, 2] grown, float[5, N] near,
    float[M, N] far) <int64 three = {3}> {
  grown = Loop(three, , one) <body = add (int64 i, bool c, float[R, 2] v) => (bool d, float[S, 2] w) {
    d = Identity(c)
    w = Concat<axis = 0>(v, one)
  }>
  kept, near = Scan<num_scan_inputs = 1, body = row (float[N, 3] all, float[3] r) => (float[N, 3] same, float[N] s) {
    same = Identity(all)
    t = Sub(all, r)
    s = ReduceSumSquare<axes = [1], keepdims = 0>(t)
  }>(x, y)
  kept2, far = Scan<num_scan_inputs = 1, body = row (float[N, 3] all, float[3] r) => (float[N, 3] same, float[N] s) {
    same = Identity(all)
    t = Sub(all, r)
    s = ReduceSumSquare<axes = [1], keepdims = 0>(t)
  }>(x, z)
}"""


def test_values_of_loops_grow() -> None:
    """A carried tensor that is longer after every iteration, and rows whose length only the run tells: of a known number
    (stored in place) and of an unknown one (appended)."""
    model = onnx.parser.parse_model(LOOPS)
    for rows, more in ((4, 3), (1, 1), (2, 7)):
        feeds = {"one": floats(1, 2), "x": floats(rows, 3), "y": floats(5, 3), "z": floats(more, 3)}
        wanted = reference(model, feeds)
        for got, want in zip(prepared(model, wanted).run(feeds), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


# --- Random numbers ---------------------------------------------------------------------------------------------------


def _run(op: str, given: Sequence[np.ndarray], kind: int, domain: str = "", **attributes: Any) -> np.ndarray:
    names = [f"x{i}" for i in range(len(given))]
    node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)
        for name, value in zip(names, given, strict=True)
    ]
    graph = helper.make_graph([node], op, inputs, [helper.make_tensor_value_info("y", kind, None)])
    domains = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=8)
    from mlc import onnx_backend

    return np.asarray(onnx_backend.prepare(model, cache=False, jobs=1).run(list(given))[0])


SHAPE = [40, 50]


@pytest.mark.parametrize("like", [False, True])
def test_normal_numbers(like: bool) -> None:
    """Mean and deviation as asked for, another seed gives other numbers, the same seed the same."""
    name, given = ("RandomNormalLike", [codes("int32", *SHAPE)]) if like else ("RandomNormal", [])
    named: dict[str, Any] = {"mean": 2.0, "scale": 0.5, "dtype": 1} | ({} if like else {"shape": SHAPE})
    one, same, other = (_run(name, given, TensorProto.FLOAT, seed=s, **named) for s in (1.0, 1.0, 2.0))
    assert one.shape == tuple(SHAPE)
    assert abs(one.mean() - 2) < 0.07
    assert abs(one.std() - 0.5) < 0.05
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("like", [False, True])
def test_uniform_numbers(like: bool) -> None:
    name, given = ("RandomUniformLike", [floats(*SHAPE)]) if like else ("RandomUniform", [])
    y = _run(name, given, TensorProto.FLOAT, low=-1.0, high=3.0, seed=4.0, **({} if like else {"shape": SHAPE}))
    assert y.min() >= -1
    assert y.max() < 3
    counts, _ = np.histogram(y, bins=8, range=(-1, 3))
    assert abs(counts - y.size / 8).max() < 6 * np.sqrt(y.size / 8)


def test_draws_from_categories() -> None:
    """As often as the logarithms of the probabilities say."""
    chances = np.array([0.5, 0.3, 0.2])
    y = _run("Multinomial", [np.log(chances)[None].astype(np.float32)], TensorProto.INT32, sample_size=3000, seed=5.0)
    assert y.shape == (1, 3000)
    counts = np.bincount(y[0], minlength=3)
    assert abs(counts - 3000 * chances).max() < 6 * np.sqrt(3000 * 0.25)


# --- Ranks that the run decides ---------------------------------------------------------------------------------------

FORK = """<ir_version: 8, opset_import: ["" : 17]>
main (float[N, 3] x, bool flag) => (float y, float[K] z) <int64[1] axis = {1}, int64[1] all = {-1}> {
  a = If(flag) <then_branch = t () => (float[] p) { p = ReduceSum<keepdims = 0>(x, axis) },
                else_branch = e () => (float[] q) { q = ReduceSum<keepdims = 1>(x, axis) }>
  b = Mul(a, a)
  c = Reshape(b, all)
  z = Relu(c)
  y = ReduceSum<keepdims = 0>(b)
}"""


def test_what_follows_branches_of_two_ranks() -> None:
    model = onnx.parser.parse_model(FORK)
    for flag in (True, False):
        feeds = {"x": floats(4, 3), "flag": np.array(flag)}
        wanted = reference(model, feeds)
        for got, want in zip(prepared(model, wanted).run(feeds), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_results_of_two_ranks_are_refused() -> None:
    model = onnx.parser.parse_model(FORK.replace("float y, float[K] z", "float[] b"))
    with pytest.raises(ModelError, match="must agree in rank"):
        prepared(model)


# --- Sequences whose elements are not what the model says -------------------------------------------------------------

ELEMENTS = """<ir_version: 8, opset_import: ["" : 17]>
main (seq(float[2, N]) s, int64 at) => (float[2, N] y) {
  z = SequenceAt(s, at)
  y = Relu(z)
}"""


def test_elements_of_another_shape_are_refused() -> None:
    """Nothing is read behind the end of what a caller passes."""
    library = prepared(onnx.parser.parse_model(ELEMENTS))
    good = floats(2, 5)
    [y] = library.run({"s": [good, floats(2, 1)], "at": np.array(0)})
    np.testing.assert_array_equal(y, np.maximum(good, 0))
    for bad, found in ((floats(1, 5), "extent of .*value 1"), (floats(7), "rank of .*value 1")):
        with pytest.raises(RunError, match=rf"SequenceAt.*must have the shape \[2,\?\]; found an? {found}"):
            library.run({"s": [bad], "at": np.array(0)})
