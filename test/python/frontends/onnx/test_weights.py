"""Initializers as constants and weights, and the weights that the zoo makes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from harness import evaluated, imported, parsed
from models import samples
from models.weights import reweight
from models.zoo import MissingModelError, light_input, package_file
from onnx import TensorProto, helper, numpy_helper

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
RNG = np.random.default_rng(13)


def branch(name: str, weight: np.ndarray) -> onnx.GraphProto:
    """A graph that adds its own initializer, always called "w", to the captured input."""
    output = helper.make_tensor_value_info(name, TensorProto.FLOAT, [100])
    node = helper.make_node("Add", ["x", "w"], [name])
    return helper.make_graph([node], name, [], [output], [numpy_helper.from_array(weight, "w")])


def test_equal_names_in_branches() -> None:
    """Nested graphs may call different weights the same."""
    weights = RNG.standard_normal([2, 100]).astype(np.float32)
    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("t", weights[0]), else_branch=branch("e", weights[1])
    )
    inputs = [
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [100]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [100])
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, [output]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    x = RNG.standard_normal(100).astype(np.float32)
    for flag, weight in ((True, weights[0]), (False, weights[1])):
        np.testing.assert_array_equal(evaluated(model, {"c": np.array(flag), "x": x})[0], x + weight)


def test_small_tensors_are_constants_and_unused_ones_vanish() -> None:
    """At most 64 elements: a constant; more: a weight; none of what nothing reads."""
    model = parsed(f"{HEADER} main (float[N, 8] x) => (float[N, 8] y) {{ t = MatMul(x, small) y = Add(t, x) }}")
    small, large = (RNG.standard_normal(shape).astype(np.float32) for shape in ([8, 8], [9, 9]))
    model.graph.initializer.extend([numpy_helper.from_array(small, "small"), numpy_helper.from_array(large, "large")])
    module, store = imported(model)
    assert "mlc.constant" in str(module)
    assert "large" not in store


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int4", "uint4", "int2", "uint8", "bool", "int64"])
def test_dtypes_of_weights(dtype: str) -> None:
    """What goes into the store comes out with the same elements."""
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = np.arange(100).reshape(10, 10) % 2 if dtype in ("bool", "int4", "uint4", "int2") else np.ones([10, 10])
    weight = numpy_helper.from_array(array.astype(kind), "w")
    value = helper.make_tensor_value_info("y", weight.data_type, [10, 10])
    node = helper.make_node("Identity", ["w"], ["y"])
    graph = helper.make_graph([node], "g", [], [value], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    module, store = imported(model)
    assert 'mlc.weight "w"' in str(module)
    np.testing.assert_array_equal(np.asarray(store.get("w")).astype(np.float64), array.astype(np.float64))


def test_reweighted_models_vary() -> None:
    """The same seed gives the same weights, another one others, and no two channels are equal."""
    try:
        model = onnx.load(package_file("onnx", "backend/test/data/light/light_squeezenet.onnx"))
    except MissingModelError as error:
        pytest.skip(str(error))
    image = samples.photo(1)
    first, again, other = (reweight(model, seed, image) for seed in (1, 1, 2))
    assert first == again
    assert light_input(first) == "data_0"
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in first.graph.initializer}
    changed = {tensor.name: numpy_helper.to_array(tensor) for tensor in other.graph.initializer}
    filters = [name for name, value in weights.items() if value.ndim == 4]
    assert len(filters) == 26
    for name in filters:
        assert weights[name].std() > 0
        assert not np.array_equal(weights[name], changed[name])
        assert len(np.unique(weights[name].reshape(len(weights[name]), -1), axis=0)) == len(weights[name])
