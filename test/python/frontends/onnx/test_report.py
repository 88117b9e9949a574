"""Models that cannot be imported: one report, with every problem and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from harness import evaluated, imported, parsed
from onnx import TensorProto, helper, numpy_helper

from mlc.frontends.report import ModelError

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'


def report(source: object, **options: object) -> ModelError:
    """The report of a source that must fail."""
    with pytest.raises(ModelError) as caught:
        imported(source, **options)
    return caught.value


def test_missing_file(tmp_path: Path) -> None:
    """The name and the system's reason."""
    error = report(tmp_path / "none.onnx")
    assert "none.onnx" in str(error)
    assert "No such file" in str(error)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"PK\x03\x04 this is a zip archive", "not an ONNX model"),
        (b"\x08", "not an ONNX model"),
    ],
)
def test_not_onnx(tmp_path: Path, data: bytes, reason: str) -> None:
    """Wrong magic and empty files."""
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    assert reason in str(report(path))


def test_truncated(tmp_path: Path) -> None:
    """A model that ends in the middle of its weights."""
    weight = numpy_helper.from_array(np.ones([64, 64], np.float32), "w")
    model = parsed(f"{HEADER} main (float[2, 64] x) => (float[2, 64] y) {{ y = MatMul(x, w) }}")
    model.graph.initializer.append(weight)
    data = model.SerializeToString()
    assert "truncated" in str(report(data[: len(data) // 2]))


def test_what_an_import_does_without() -> None:
    """A graph without a name, outputs without types or shapes; the checker is still asked about everything else."""
    model = parsed(f"{HEADER} main (float[2] x) => (float[2] y, float[2] z) {{ y = Neg(x) z = Abs(x) }}")
    model.graph.name = ""
    model.graph.output[0].ClearField("type")
    model.graph.output[1].type.tensor_type.ClearField("shape")
    x = np.array([1, -2], np.float32)
    y, z = evaluated(model, {"x": x})
    np.testing.assert_array_equal(y, -x)
    np.testing.assert_array_equal(z, np.abs(x))
    model.graph.node[0].name = "first"
    model.graph.node[0].attribute.append(helper.make_attribute("unknown", 1))
    message = 'onnx.checker: Unrecognized attribute: unknown for operator Neg (node "first", Neg)'
    assert message in str(report(model))


def test_operators_of_onnxruntime_in_the_domain_of_onnx() -> None:
    """The checker does not know them; it is still asked about everything else."""
    x, scale = np.array([[3, 4]], np.float32), np.array([1, 2], np.float32)
    node = "y = SimplifiedLayerNormalization <axis: int = -1> (x, s)"
    model = parsed(f"{HEADER} main (float[1,2] x, float[2] s) => (float[1,2] y, float[1,2] z) {{ {node} z = Neg(x) }}")
    y, z = evaluated(model, {"x": x, "s": scale})
    np.testing.assert_allclose(y, x / np.sqrt(12.5 + 1e-5) * scale, rtol=1e-6)
    np.testing.assert_array_equal(z, -x)
    model.graph.node[1].attribute.append(helper.make_attribute("unknown", 1))
    assert "Unrecognized attribute: unknown for operator Neg" in str(report(model))


def test_cycle() -> None:
    """The nodes of the cycle are named."""
    text = f"{HEADER} main (float[4] x) => (float[4] y) {{ [one] a = Add(x, y) [two] y = Neg(a) }}"
    message = str(report(parsed(text)))
    assert "cycle" in message
    assert "one" in message
    assert "two" in message


def test_two_nodes_of_one_name() -> None:
    """What two nodes compute is named, and not taken for a cycle."""
    model = parsed(f"{HEADER} main (float[4] x) => (float[4] y) {{ a = Neg(x) y = Abs(a) }}")
    model.graph.node[1].output[0] = "a"
    model.graph.output[0].name = "a"
    assert 'two nodes compute "a"' in str(report(model))


def test_unsorted_nodes_are_sorted() -> None:
    """Order does not matter where there is no cycle."""
    model = parsed(f"{HEADER} main (float[4] x) => (float[4] y) {{ y = Neg(a) a = Abs(x) }}")
    x = np.array([-1, 2, -3, 4], np.float32)
    np.testing.assert_array_equal(evaluated(model, {"x": x})[0], -np.abs(x))


def test_all_problems_at_once() -> None:
    """Two unknown operators and a wrong shape; what follows from them is not a problem of its own."""
    model = parsed(
        f"{HEADER[:-1]} >"
        "main (float[4] x, float[2, 3] m) => (float[4] y, float[2, 5] z) {"
        "[a] p = Sparkle(x) [b] q = Glow(p) [c] y = Relu(q) [d] z = MatMul(m, m) }"
    )
    error = report(model)
    assert [(problem.node, problem.op) for problem in error.problems] == [
        ("a", "Sparkle"),
        ("b", "Glow"),
        ("d", "MatMul"),
    ]
    assert error.problems[2].shapes == "float32[2x3], float32[2x3]"
    assert "3 problems" in str(error)


def test_undefined_input() -> None:
    """A name that nothing defines."""
    message = str(report(parsed(f"{HEADER} main (float[4] x) => (float[4] y) {{ y = Add(x, nowhere) }}")))
    assert "nowhere" in message


def external(folder: Path, location: str, size: int = 64) -> onnx.ModelProto:
    """A model whose weight lives in a file."""
    model = parsed(f"{HEADER} main (float[4, 4] x) => (float[4, 4] y) {{ y = MatMul(x, w) }}")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    model.graph.initializer.append(tensor)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return model


def test_external_data(tmp_path: Path) -> None:
    """Data beside the model are read."""
    weight = np.random.default_rng(0).standard_normal([4, 4]).astype(np.float32)
    (tmp_path / "w.bin").write_bytes(weight.tobytes())
    external(tmp_path, "w.bin")
    x = np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(evaluated(tmp_path / "model.onnx", {"x": x})[0], weight)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("../outside.bin", "outside the model's folder"),
        ("/etc/hostname", "outside the model's folder"),
        ("gone.bin", "missing"),
        ("short.bin", "truncated"),
        ("link.bin", "outside the model's folder"),
    ],
)
def test_bad_external_data(tmp_path: Path, location: str, reason: str) -> None:
    """Data outside the folder (also through a link), missing or too short."""
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(64))
    (folder / "short.bin").write_bytes(bytes(10))
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    external(folder, location)
    message = str(report(folder / "model.onnx"))
    assert reason in message
    assert '"w"' in message


def test_external_data_of_bytes(tmp_path: Path) -> None:
    """Bytes have no folder."""
    assert "give the path" in str(report(external(tmp_path, "w.bin").SerializeToString()))


def test_options_that_do_not_fit() -> None:
    """Unknown inputs and outputs, wrong ranks, and contradictions with the model."""
    model = parsed(f"{HEADER} main (float[4, N] x) => (float[4, N] y) {{ y = Neg(x) }}")
    assert 'no input "z"' in str(report(model, input_shapes={"z": [1]}))
    assert "rank" in str(report(model, input_shapes={"x": [4]}))
    assert "fixes the shape" in str(report(model, input_shapes={"x": [5, 2]}))
    assert 'no value "nothing"' in str(report(model, outputs=["nothing"]))


def test_operators_of_the_future() -> None:
    """A newer opset than any that is known may give operators another meaning."""
    model = parsed("""<ir_version: 8, opset_import: ["" : 999]> main (float[4] x) => (float[4] y) { y = Neg(x) }""")
    assert "the model uses opset 999" in str(report(model))
    assert "is the newest that is known; export the model with opset_version=" in str(report(model))


def test_unknown_rank_needs_a_shape() -> None:
    """An input without a shape asks for one and then works."""
    model = parsed(f"{HEADER} main (float[4] x) => (float[4] y) {{ y = Neg(x) }}")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert "rank is unknown; give its shape with --input x=SHAPE" in str(report(model))
    assert 'no input "y"; the inputs are: x' in str(report(model, input_shapes={"y": [2]}))
    module, _ = imported(model, input_shapes={"x": [2, "N"]})
    assert "tensor<2x?xf32>" in str(module)


def test_unsupported_type() -> None:
    """Complex numbers have no element type."""
    node = helper.make_node("Identity", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.COMPLEX64, [2]) for name in ("x", "y")]
    model = helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]))
    assert "COMPLEX64" in str(report(model))


def test_an_attribute_that_no_check_knows_is_reported_with_its_node() -> None:
    """ONNX's checker takes any text for a mode."""
    text = """<ir_version: 8, opset_import: ["" : 17]> main (float[2] x, int64[2] p) => (float[N] y) {
      [odd] y = Pad<mode = "bogus">(x, p)
    }"""
    with pytest.raises(ModelError, match=r'node "odd": .*mode') as caught:
        imported(parsed(text))
    assert "check its attributes" in str(caught.value)
