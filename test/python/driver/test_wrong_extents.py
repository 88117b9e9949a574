"""Inputs of extents that a model cannot have are refused: by the signature where that can say it, else by a check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import mlc
from mlc.runtime.errors import InputError, ModelError


def _compile(signature: str, constants: str, body: str, folder: Path, **options: object) -> mlc.Model:
    declared = f"<{constants}>" if constants else ""
    text = f'<ir_version: 10, opset_import: ["" : 21]> wrong ({signature}) => (float y) {declared} {{ {body} }}'
    model = onnx.parser.parse_model(text)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return mlc.compile(model, output=folder / "model.so", cache=False, jobs=1, **options)


def _ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def _weight(name: str, *shape: int) -> str:
    numbers = ",".join(["1"] * int(np.prod(shape)))
    return f"float[{','.join(map(str, shape))}] {name} = {{{numbers}}}"


def test_what_a_weight_decides_is_in_the_signature(tmp_path: Path) -> None:
    body = "c = Conv(x, w) y = Relu(c)"
    model = _compile("float[n, c, h, w] x", _weight("w", 2, 3, 1, 1), body, tmp_path)
    [entry] = model.entries.values()
    assert entry.inputs[0].dims == ("n", 3, "h", "w")
    assert model(x=_ones(2, 3, 4, 5))[0].shape == (2, 2, 4, 5)
    with pytest.raises(InputError, match=r"input 'x': expected float32\[n,3,h,w\], got float32\[1,5,4,4\]"):
        model(x=_ones(1, 5, 4, 4))


def test_extents_that_must_be_equal_have_one_name(tmp_path: Path) -> None:
    model = _compile("float[n, k] a, float[m, p] b", "", "y = MatMul(a, b)", tmp_path)
    [entry] = model.entries.values()
    assert [i.dims for i in entry.inputs] == [("n", "k"), ("k", "p")]
    assert model(a=_ones(2, 3), b=_ones(3, 4))[0].tolist() == [[3] * 4] * 2
    with pytest.raises(InputError, match=r"dimension 'k' is 4 in float32\[4,4\], but 3 in input 'a'"):
        model(a=_ones(2, 3), b=_ones(4, 4))


@pytest.mark.parametrize(
    ("signature", "constants", "body", "good", "wrong", "message"),
    [
        pytest.param(
            "float[n] x",
            "int64[2] shape = {2, -1}, " + _weight("w", 4, 1),
            "r = Reshape(x, shape) y = MatMul(r, w)",
            (8,),
            (10,),
            "node 'MatMul:y': contraction extents of 2x[?] and 4x1 differ: 4 is needed .value 5.",
            id="quotient",
        ),
        pytest.param(
            "float[n, m] x",
            "int64[2] shape = {3, 4}",
            "y = Reshape(x, shape)",
            (2, 6),
            (2, 7),
            "node 'Reshape:y': the input cannot be reshaped to 12 elements .value 14.",
            id="reshape",
        ),
        pytest.param(
            "float[n] x",
            "int64[2] shape = {3, 4}",
            "y = Expand(x, shape)",
            (4,),
            (2,),
            "node 'Expand:y': shape [?] does not broadcast to 3x4 .value 2.",
            id="expand",
        ),
        pytest.param(
            "float[n] x",
            "int64[2] pads = {2, 2}",
            'y = Pad <mode = "reflect"> (x, pads)',
            (3,),
            (2,),
            "node 'Pad:y': dimension 0 reflects more elements than it has behind one .value 2.",
            id="reflection",
        ),
        pytest.param(
            "float[n, m] x",
            "int64[2,2] at = {0, 1, 1, 0}",
            "y = GatherElements <axis = 1> (x, at)",
            (3, 2),
            (1, 2),
            "node 'GatherElements:y': indices are longer than the input in 2x2 and [?]x[?] .value 1.",
            id="indices",
        ),
        pytest.param(
            "float[n] x",
            "int64[1] two = {2}, int64[1] five = {5}, int64[1] axis = {0}, int64[2] pads = {2, 0}",
            "t = Slice(x, two, five, axis) u = Pad(t, pads) y = Mul(x, u)",
            (5,),
            (31,),
            "node 'Mul:y': shapes cannot be broadcast .value 5.",
            id="two-or-more",
        ),
        pytest.param(
            "float[n] x",
            "bool[3] chosen = {1, 0, 1}",
            "y = Compress <axis = 0> (x, chosen)",
            (4,),
            (2,),
            "node 'Compress:y': the condition is longer than dimension 0 .value 2.",
            id="condition",
        ),
        pytest.param(
            "float[n] x",
            "int64[1] k = {3}",
            "y, at = TopK(x, k)",
            (3,),
            (2,),
            "node 'TopK:y': k is more than the extent of the axis in [?] .value 2.",
            id="top",
        ),
        pytest.param(
            "float[1, 1, n] x",
            _weight("w", 1, 1, 5),
            "y = Conv(x, w)",
            (1, 1, 5),
            (1, 1, 3),
            "node 'Conv:y': dimension 2 of the result would be negative .value -1.",
            id="window",
        ),
    ],
)
def test_the_run_stops_where_the_signature_cannot_say_it(
    signature: str, constants: str, body: str, good: Sequence[int], wrong: Sequence[int], message: str, tmp_path: Path
) -> None:
    model = _compile(signature, constants, body, tmp_path)
    model(x=_ones(*good))
    with pytest.raises(ModelError, match=message):
        model(x=_ones(*wrong))
    model(x=_ones(*good))  # and goes on


@pytest.mark.parametrize("product", ['Einsum <equation = "ab,bz->az">', "MatMul"])
def test_an_extent_that_data_decide(product: str, tmp_path: Path) -> None:
    """The weight's rows are as many as elements of `m` are not zero, or the run stops."""
    body = f"""places = NonZero(m) zero = Constant <value = int64[1] {{0}}> () line = Squeeze(places, zero)
      g = Gather <axis = 1> (x, line) y = {product} (g, w)"""
    model = _compile("float[5, 9] x, float[9] m", _weight("w", 4, 3), body, tmp_path)
    mask = np.arange(9) % 2
    [y] = model(x=np.arange(45, dtype=np.float32).reshape(5, 9), m=mask.astype(np.float32))
    np.testing.assert_array_equal(y, np.arange(45).reshape(5, 9)[:, 1::2].sum(1, keepdims=True).repeat(3, 1))
    with pytest.raises(ModelError, match=r"4 is needed .value 5."):
        model(x=_ones(5, 9), m=(1 - mask).astype(np.float32))


def test_sizes_of_a_split_add_up(tmp_path: Path) -> None:
    model = _compile(
        "float[n, m] x", "int64[2] sizes = {1, 4}", "a, b = Split <axis = 1> (x, sizes) y = Neg(b)", tmp_path
    )
    [entry] = model.entries.values()
    assert entry.inputs[0].dims == ("n", 5)
    with pytest.raises(InputError, match=r"expected float32\[n,5\], got float32\[2,6\]"):
        model(x=_ones(2, 6))


def test_a_size_that_is_rounded_up_has_its_memory(tmp_path: Path) -> None:
    """`x` padded to a multiple of four: -4 * (-n // 4) elements, which once had none in the arena."""
    constants = "int64[1] zero = {0}, int64[1] four = {4}"
    body = """s = Shape(x) minus = Neg(s) missing = Mod(minus, four) pads = Concat <axis = 0> (zero, missing)
      p = Pad(x, pads) mean = ReduceMean <keepdims = 1> (p, zero) q = Mul(p, mean) y = Softmax <axis = 0> (q)"""
    model = _compile("float[n] x", constants, body, tmp_path)
    for n in (1, 4, 7, 1001):
        [y] = model(x=np.arange(n, dtype=np.float32))
        assert y.shape == (n + -n % 4,)
        padded = np.pad(np.arange(n, dtype=np.float64), (0, -n % 4))
        wanted = np.exp(padded * padded.mean() - (padded * padded.mean()).max())
        np.testing.assert_allclose(y, wanted / wanted.sum(), rtol=1e-3, atol=1e-6)


_SLICE = ("float[n] x, int64[1] a, int64[1] b, int64[1] axis, int64[1] step", "y = Slice(x, a, b, axis, step)")


@pytest.mark.parametrize(
    ("signature", "body", "good", "wrong", "message"),
    [
        pytest.param(
            *_SLICE,
            {"x": _ones(6), "a": [5], "b": [-9], "axis": [-1], "step": [-2]},
            {"step": [0]},
            "node 'Slice:y': a step is 0",
            id="step",
        ),
        pytest.param(
            *_SLICE,
            {"x": _ones(6), "a": [5], "b": [-(2**63)], "axis": [0], "step": [-(2**63)]},
            {"axis": [1]},
            "node 'Slice:y': an axis is out of range for rank 1 .value 1.",
            id="axis",
        ),
        pytest.param(
            "float[n, m] x, int64 axis",
            "y = CumSum(x, axis)",
            {"x": _ones(2, 3), "axis": -2},
            {"axis": 2},
            "node 'CumSum:y': an axis is out of range for rank 2 .value 2.",
            id="axis-of-a-sum",
        ),
        pytest.param(
            "float[n] x, int64[2] shape",
            "y = Expand(x, shape)",
            {"x": _ones(6), "shape": [3, 1]},
            {"shape": [3, 5]},
            "node 'Expand:y': a size to expand to is neither 1 nor the input's extent .value 5.",
            id="expand",
        ),
        pytest.param(
            "float[n] x, int64[2] pads",
            'y = Pad <mode = "wrap"> (x, pads)',
            {"x": _ones(6), "pads": [20, 13]},
            {"x": _ones(0)},
            "node 'Pad:y': dimension 0 has no elements to be padded with",
            id="nothing-to-wrap",
        ),
        pytest.param(
            "float[n] x, int64[2] pads",
            "y = Pad(x, pads)",
            {"x": _ones(6), "pads": [-4, 3]},
            {"pads": [-4, -4]},
            "node 'Pad:y': dimension 0 of the result would be negative .value -2.",
            id="cut-too-much",
        ),
        pytest.param(
            "int64 a, int64 b, int64 step",
            "r = Range(a, b, step) y = Cast <to = 1> (r)",
            {"a": 5, "b": 0, "step": -2},
            {"step": 0},
            "node 'Range:r': delta is 0",
            id="range",
        ),
        pytest.param(
            "float[n] x, int64[2] sizes",
            "a, c = Split(x, sizes) y = Neg(c)",
            {"x": _ones(6), "sizes": [0, 6]},
            {"sizes": [-1, 7]},
            "node 'Split:a': a slice of dimension 0 must lie inside of its input .value -1.",
            id="split",
        ),
        pytest.param(
            "float[1, 1, h, w] x, int64[4] sizes",
            'n = Constant <value = float[0] {}> () y = Resize <mode = "linear"> (x, n, n, sizes)',
            {"x": _ones(1, 1, 4, 4), "sizes": [1, 1, 8, 8]},
            {"x": _ones(1, 1, 0, 4)},
            "node 'Resize:y': dimension 2 has no elements to be resized",
            id="resize",
        ),
    ],
)
def test_values_that_say_sizes(
    signature: str, body: str, good: Mapping[str, Any], wrong: Mapping[str, Any], message: str, tmp_path: Path
) -> None:
    """What an input says about places and sizes, and cannot be."""
    model = _compile(signature, "", body, tmp_path)

    def feeds(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return {n: v if isinstance(v, np.ndarray) else np.array(v, np.int64) for n, v in {**good, **values}.items()}

    model(**feeds({}))
    with pytest.raises(ModelError, match=message):
        model(**feeds(wrong))
    model(**feeds({}))
