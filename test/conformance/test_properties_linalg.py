"""Products, convolutions, pools and quantization on drawn shapes, windows and paddings, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import properties as p
import pytest
from hypothesis import strategies as st


def _floats(data: st.DataObject, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return p.array(dtype, shape, data.draw(p.seeds), special=False)


@p.drawn
def test_matmul(data: st.DataObject) -> None:
    """Vectors, matrices, broadcast batches; of nothing the sum is zero."""
    ranks = data.draw(st.sampled_from([(2, 2), (3, 3), (1, 2), (2, 1), (1, 1), (3, 2), (4, 3)]))
    dtype = data.draw(st.sampled_from(["float32", "float64", "int32"]))
    m, n, k = data.draw(p.shapes(3))
    batches = data.draw(p.broadcasting([max(rank - 2, 0) for rank in ranks]))
    left = (*batches[0], m, k) if ranks[0] > 1 else (k,)
    right = (*batches[1], k, n) if ranks[1] > 1 else (k,)
    model = p.graph([p.node("MatMul", ["a", "b"])], {"a": (dtype, ranks[0]), "b": (dtype, ranks[1])})
    p.check(model, {"a": _floats(data, left, dtype), "b": _floats(data, right, dtype)}, rtol=1e-4, atol=1e-4)


@p.drawn
def test_gemm(data: st.DataObject) -> None:
    turned = data.draw(st.sampled_from([(0, 0), (1, 0), (0, 1), (1, 1)]))
    m, n, k = data.draw(p.shapes(3, 1))
    model = p.graph(
        [p.node("Gemm", ["a", "b", "c"], alpha=0.5, beta=2.0, transA=turned[0], transB=turned[1])],
        {"a": ("float32", 2), "b": ("float32", 2), "c": ("float32", 2)},
    )
    bias = tuple(data.draw(st.sampled_from([extent, 1])) for extent in (m, n))
    feeds = {"a": _floats(data, (k, m) if turned[0] else (m, k)), "b": _floats(data, (n, k) if turned[1] else (k, n))}
    p.check(model, feeds | {"c": _floats(data, bias)}, rtol=1e-4, atol=1e-4)


@p.drawn
def test_einsum(data: st.DataObject) -> None:
    equation, ranks = data.draw(
        st.sampled_from([("bij,bjk->bik", "bij bjk"), ("ij,kj->ik", "ij kj"), ("bhid,bhjd->bhij", "bhid bhjd"), ("ij,j->i", "ij j")])
    )
    extents = {letter: data.draw(st.sampled_from([1, 2, 3, 5])) for letter in "bhijkd"}
    names = ["a", "b"]
    shapes = [tuple(extents[letter] for letter in part) for part in ranks.split()]
    model = p.graph(
        [p.node("Einsum", names, equation=equation)], {n: ("float32", len(s)) for n, s in zip(names, shapes, strict=True)}
    )
    p.check(model, {n: _floats(data, s) for n, s in zip(names, shapes, strict=True)}, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2, 4])
@p.drawn
def test_convolution(groups: int, data: st.DataObject) -> None:
    """Windows, strides, dilations and paddings are the model's, the image's extents and the batch are drawn."""
    kernel, strides, dilations, pads = data.draw(
        st.sampled_from([
            ([3, 3], [1, 1], [1, 1], [1, 1, 1, 1]),
            ([1, 1], [2, 2], [1, 1], [0, 0, 0, 0]),
            ([3, 2], [2, 1], [1, 2], [0, 1, 2, 0]),
        ])
    )  # fmt: skip
    height, width = data.draw(st.integers(5, 12)), data.draw(st.integers(5, 20))
    rng = np.random.default_rng(3)
    filters = rng.standard_normal([8, 4 // groups, *kernel]).astype(np.float32)
    model = p.graph(
        [p.node("Conv", ["x", "w", "b"], strides=strides, dilations=dilations, pads=pads, group=groups)],
        {"x": ("float32", [None, 4, None, None])},
        constants={"w": filters, "b": rng.standard_normal(8).astype(np.float32)},
    )
    p.check(model, {"x": _floats(data, (data.draw(st.integers(1, 3)), 4, height, width))}, rtol=1e-3, atol=1e-3)


@p.drawn
def test_pools(data: st.DataObject) -> None:
    """Maxima and means, padding counted and not; NaN is a maximum."""
    named = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    nodes = [
        p.node("MaxPool", ["x"], ["max"], **named),
        p.node("AveragePool", ["x"], ["mean"], **named),
        p.node("AveragePool", ["x"], ["whole"], count_include_pad=1, **named),
        p.node("GlobalAveragePool", ["x"], ["global"]),
    ]
    names = [n.output[0] for n in nodes]
    shape = (*data.draw(p.shapes(2, 1)), data.draw(st.integers(3, 9)), data.draw(st.integers(3, 9)))
    p.check(p.graph(nodes, {"x": ("float32", 4)}, names), {"x": _floats(data, shape)}, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
@p.drawn
def test_quantize_and_back(dtype: str, data: st.DataObject) -> None:
    """What lies outside of the range saturates; halves round to even."""
    nodes = [p.node("QuantizeLinear", ["x", "s", "z"], ["q"]), p.node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    model = p.graph(nodes, {"x": ("float32", 2), "s": ("float32", 0), "z": (dtype, 0)}, ["q", "y"])
    x = _floats(data, data.draw(p.shapes(2))) * np.float32(data.draw(st.sampled_from([1, 1000, 1e6])))
    zero = p.array(dtype, (), data.draw(p.seeds), special=False)
    p.check(model, {"x": x, "s": np.array(data.draw(st.sampled_from([0.5, 0.25, 2.0])), np.float32), "z": zero})


@p.drawn
def test_integer_products(data: st.DataObject) -> None:
    """Sums of bytes with zero points, in 32 bits."""
    kinds = data.draw(st.sampled_from([("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")]))
    m, n, k = data.draw(p.shapes(3))
    names = ["a", "b", "az", "bz"]
    inputs = dict(zip(names, [(kinds[0], 2), (kinds[1], 2), (kinds[0], 0), (kinds[1], 0)], strict=True))
    shapes = [(m, k), (k, n), (), ()]
    feeds = {name: p.array(inputs[name][0], shape, data.draw(p.seeds)) for name, shape in zip(names, shapes, strict=True)}
    p.check(p.graph([p.node("MatMulInteger", names)], inputs), feeds)
