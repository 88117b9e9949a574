"""Maps over the ABI: ZipMap, DictVectorizer and CastMap compared with onnxruntime, as scikit-learn's exporters write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from contrib_cases import floats
from onnx import TensorProto as T
from onnx import helper as h

import mlc
from mlc.frontends.report import ModelError
from mlc.runtime.errors import ArgumentError, InputError, MlcError

ML = "ai.onnx.ml"


def map_type(key: int, value: int) -> onnx.TypeProto:
    """A map of scalars."""
    return h.make_map_type_proto(key, h.make_tensor_type_proto(value, []))


def model_of(nodes: Sequence[onnx.NodeProto], inputs: Any, outputs: Any) -> onnx.ModelProto:
    graph = h.make_graph(nodes, "maps", inputs, outputs)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid(ML, 3)], ir_version=8)


def reference(model: onnx.ModelProto, feeds: Any) -> list[Any]:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


def classifier(keys: Sequence[int | str], key: int) -> onnx.ModelProto:
    """As skl2onnx exports a logistic regression."""
    word = isinstance(keys[0], str)
    nodes = [
        h.make_node(
            "LinearClassifier", ["x"], ["label", "scores"], domain=ML, multi_class=1, post_transform="SOFTMAX",
            coefficients=floats(3, 4).ravel().tolist(), intercepts=[0.1, 0.2, 0.3],
            **{"classlabels_strings" if word else "classlabels_ints": keys},
        ),
        h.make_node("Normalizer", ["scores"], ["shares"], domain=ML, norm="L1"),
        h.make_node(
            "ZipMap", ["shares"], ["maps"], domain=ML,
            **{"classlabels_strings" if word else "classlabels_int64s": keys},
        ),
    ]  # fmt: skip
    kind = h.make_sequence_type_proto(map_type(key, T.FLOAT))
    outputs = [h.make_tensor_value_info("label", key, [None]), h.make_value_info("maps", kind)]
    return model_of(nodes, [h.make_tensor_value_info("x", T.FLOAT, [None, 4])], outputs)


@pytest.mark.parametrize(("keys", "key"), [((3, 1, 7), T.INT64), (("no", "yes", "perhaps"), T.STRING)])
def test_a_classifier_gives_maps(keys: Sequence[int | str], key: int) -> None:
    model, x = classifier(keys, key), floats(5, 4)
    compiled = mlc.compile(model, cache=False)
    got, want = compiled.run({"x": x}), reference(model, {"x": x})
    assert got["label"].tolist() == want[0].tolist()
    assert [list(row) for row in got["maps"]] == [list(keys)] * 5
    for have, row in zip(got["maps"], want[1], strict=True):
        np.testing.assert_allclose(list(have.values()), [row[key] for key in keys], rtol=1e-5)
    # A caller of its own, as one in C, gets the matrix.
    buffer = np.empty((5, 3), np.float32)
    assert compiled.run({"x": x}, out={"maps": buffer})["maps"] is buffer
    assert [dict(zip(keys, row, strict=True)) for row in buffer.tolist()] == got["maps"]
    assert compiled.metadata["entries"][0]["outputs"][1]["keys"] == list(keys)


def test_maps_are_read_by_few() -> None:
    model = classifier((3, 1, 7), T.INT64)
    model.graph.node.append(h.make_node("SequenceLength", ["maps"], ["count"]))
    model.graph.output.append(h.make_tensor_value_info("count", T.INT64, []))
    with pytest.raises(ModelError, match="one of its inputs is a map"):
        mlc.compile(model, cache=False)


def vectorizer(key: int, value: int, **attributes: Any) -> onnx.ModelProto:
    node = h.make_node("DictVectorizer", ["d"], ["y"], domain=ML, **attributes)
    given = h.make_value_info("d", map_type(key, value))
    return model_of([node], [given], [h.make_tensor_value_info("y", value, [1, None])])


MAPS = [
    (T.STRING, T.FLOAT, {"string_vocabulary": ["a", "b", "c"]}, {"c": 2.5, "a": 1.0, "z": 9.0}),
    (T.STRING, T.INT64, {"string_vocabulary": ["a", "b", "c"]}, {"b": 7}),
    (T.INT64, T.FLOAT, {"int64_vocabulary": [7, -1, 3]}, {3: 0.5, 8: 1.0, 7: 2.0}),
    (T.INT64, T.STRING, {"int64_vocabulary": [7, -1, 3]}, {3: "three"}),
]


@pytest.mark.parametrize(("key", "value", "attributes", "given"), MAPS)
def test_a_map_becomes_a_row(key: int, value: int, attributes: dict[str, Any], given: dict[Any, Any]) -> None:
    model = vectorizer(key, value, **attributes)
    compiled = mlc.compile(model, cache=False)
    vocabulary = attributes.get("string_vocabulary") or attributes["int64_vocabulary"]
    want = np.array([[given.get(name, "" if value == T.STRING else 0) for name in vocabulary]])
    if value == T.FLOAT:  # onnxruntime's Python takes no other values
        assert reference(model, {"d": given})[0].tolist() == want.tolist()
    for got in (compiled.run({"d": given})["y"], compiled(given)[0]):
        assert got.shape == want.shape
        assert got.tolist() == want.tolist()
    # As in C: keys and values are inputs of their own.
    arrays = [np.array(list(items)) for items in (given, given.values())]
    arrays = [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]
    assert compiled(*arrays)[0].tolist() == want.tolist()


def test_wrong_maps_are_named() -> None:
    compiled = mlc.compile(vectorizer(T.STRING, T.FLOAT, string_vocabulary=["a", "b"]), cache=False)
    with pytest.raises(InputError, match="'d': expected a map, d.keys string, got int"):
        compiled.run({"d": {1: 2.0}})
    with pytest.raises(ArgumentError, match="no map is wanted"):
        compiled([1.0], {"a": 1.0})
    with pytest.raises(MlcError, match="d.size"):
        compiled(np.array(["a", "b"]), np.ones(3, np.float32))


@pytest.mark.parametrize("form", ["DENSE", "SPARSE"])
@pytest.mark.parametrize("target", ["TO_FLOAT", "TO_INT64", "TO_STRING"])
def test_maps_are_cast(form: str, target: str) -> None:
    kinds = {"TO_FLOAT": T.FLOAT, "TO_INT64": T.INT64, "TO_STRING": T.STRING}
    node = h.make_node("CastMap", ["d"], ["y"], domain=ML, cast_to=target, map_form=form, max_map=6)
    given = h.make_value_info("d", map_type(T.INT64, T.FLOAT))
    model = model_of([node], [given], [h.make_tensor_value_info("y", kinds[target], [1, None])])
    feeds = {"d": {4: 12.0, 0: -3.0, 2: 7.5}}
    got, want = mlc.compile(model, cache=False).run(feeds)["y"], reference(model, feeds)[0]
    if target == "TO_STRING":  # how numbers are printed is each engine's own
        assert [float(text) for text in got[0]] == [float(text.replace("0.f", "0")) for text in want[0]]
    else:
        assert got.tolist() == want.tolist()


def test_words_are_cast() -> None:
    node = h.make_node("CastMap", ["d"], ["y"], domain=ML, cast_to="TO_INT64")
    given = h.make_value_info("d", map_type(T.INT64, T.STRING))
    model = model_of([node], [given], [h.make_tensor_value_info("y", T.INT64, [1, None])])
    compiled = mlc.compile(model, cache=False)
    assert compiled.run({"d": {4: "12", 0: "-3", 2: "7"}})["y"].tolist() == [[-3, 7, 12]]


TEXTS = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
main (int64[N] at, int64[2] sizes) => (string[N] words, string[2] fixed, string[?, ?] many)
  <string[3] names = {"no", "yes", "perhaps"}> {
  words = Gather(names, at)
  fixed = Constant<value_strings = ["a", "b"]>()
  many = Expand(names2, sizes)
  names2 = Constant<value_string = "x">()
}"""


def test_strings_are_constants() -> None:
    model = onnx.parser.parse_model(TEXTS)
    feeds = {"at": np.array([2, 0, 2]), "sizes": np.array([1, 2])}
    got = mlc.compile(model, cache=False).run(feeds)
    assert got["words"].tolist() == ["perhaps", "no", "perhaps"]
    assert got["fixed"].tolist() == ["a", "b"]
    assert got["many"].tolist() == [["x", "x"]]
