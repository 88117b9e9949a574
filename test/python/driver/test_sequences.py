"""Sequences and optionals as inputs, outputs and inside a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import mlc
from mlc.frontends.report import ModelError
from mlc.runtime import MlcError

SEQ = "!mlc.seq<tensor<?xf32>>"


def _compile(tmp_path: Path, function: str) -> mlc.runtime.loader.Model:  # type: ignore[name-defined]
    source = tmp_path / "program.mlir"
    source.write_text(f'module attributes {{mlc.phase = "tile"}} {{\n{function}\n}}\n')
    return mlc.compile(source)  # type: ignore[return-value]


def _vectors() -> list[np.ndarray]:
    return [np.arange(n, dtype=np.float32) + 10 * n for n in (3, 1, 4)]


def test_insert_read_erase_and_count(tmp_path: Path) -> None:
    model = _compile(
        tmp_path,
        f"""
func.func @f(%s: {SEQ} {{mlc.name = "s"}}, %x: tensor<?xf32> {{mlc.name = "x"}}, %i: tensor<i64> {{mlc.name = "i"}})
    -> ({SEQ}, tensor<?xf32>, tensor<i64>) {{
  %a = mlc.sequence_insert %s, %x at (%i : tensor<i64>) : {SEQ}, tensor<?xf32>
  %b = mlc.sequence_insert %a, %x : {SEQ}, tensor<?xf32>
  %t = mlc.sequence_at %b, %i : {SEQ}, tensor<i64> -> tensor<?xf32>
  %c = mlc.sequence_erase %b : {SEQ}
  %n = mlc.sequence_length %b : {SEQ}
  return %c, %t, %n : {SEQ}, tensor<?xf32>, tensor<i64>
}}""",
    )
    vectors, x = _vectors(), np.array([7, 8], np.float32)
    for position in (0, 2, -1):
        kept, at, count = model(vectors, x, np.int64(position))
        want = list(vectors)
        want.insert(position, x)
        assert [v.tolist() for v in kept] == [v.tolist() for v in want]
        np.testing.assert_array_equal(at, [*want, x][position])
        assert count == 5
    with pytest.raises(RuntimeError, match="9"):
        model(vectors, x, np.int64(9))


def test_a_loop_that_collects(tmp_path: Path) -> None:
    model = _compile(
        tmp_path,
        f"""
func.func @f(%x: tensor<?xf32>, %times: tensor<i64>) -> {SEQ} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tensor.extract %times[] : tensor<i64>
  %n = arith.index_cast %t : i64 to index
  %empty = mlc.sequence_make () : () -> {SEQ}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %empty) -> ({SEQ}) {{
    %a = mlc.sequence_insert %s, %x : {SEQ}, tensor<?xf32>
    scf.yield %a : {SEQ}
  }}
  return %r : {SEQ}
}}""",
    )
    x = np.array([1, 2, 3], np.float32)
    for times in (0, 1, 5):
        (got,) = model(x, np.int64(times))
        assert [v.tolist() for v in got] == [x.tolist()] * times


def test_optionals(tmp_path: Path) -> None:
    optional = "!mlc.optional<tensor<?xf32>>"
    model = _compile(
        tmp_path,
        f"""
func.func @f(%o: {optional} {{mlc.name = "o"}}, %x: tensor<?xf32> {{mlc.name = "x"}})
    -> ({optional}, tensor<i1>, tensor<?xf32>) {{
  %has = mlc.optional_has %o : {optional}
  %h = tensor.extract %has[] : tensor<i1>
  %v = scf.if %h -> (tensor<?xf32>) {{
    %g = mlc.optional_get %o : {optional}
    scf.yield %g : tensor<?xf32>
  }} else {{
    scf.yield %x : tensor<?xf32>
  }}
  %s = mlc.optional_some %v : tensor<?xf32>
  return %s, %has, %v : {optional}, tensor<i1>, tensor<?xf32>
}}""",
    )
    x, y = np.array([1, 2], np.float32), np.array([3, 4, 5], np.float32)
    for given, want in ((y, y), (None, x)):
        some, has, value = model.run([given, x]).values()
        np.testing.assert_array_equal(some, want)
        np.testing.assert_array_equal(value, want)
        assert bool(has) == (given is not None)


def test_split_into_parts_of_run_time_size() -> None:
    """Parts that fit, a shorter last one, one part, and a size that makes no sense."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n,3] x, int64 k) => (seq(float[m,3]) s) { s = SplitToSequence<axis = 0>(x, k) }"""
    model = mlc.compile(onnx.parser.parse_model(text))
    x = np.arange(21, dtype=np.float32).reshape(7, 3)
    for size in (1, 2, 3, 7, 9):
        [parts] = model(x=x, k=np.array(size))
        assert [part.tolist() for part in parts] == [x[i : i + size].tolist() for i in range(0, 7, size)]
    for size in (0, -2):
        with pytest.raises(MlcError, match="must be positive"):
            model(x=x, k=np.array(size))


def test_split_into_slices_of_run_time_number() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,n] x) => (seq(float[2]) s) { s = SplitToSequence<axis = 1, keepdims = 0>(x) }"""
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    [parts] = mlc.compile(onnx.parser.parse_model(text))(x=x)
    assert [part.tolist() for part in parts] == x.T.tolist()


def test_the_shape_of_a_sequences_elements() -> None:
    """Models need not say of what rank the tensors in a sequence are; the caller may."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (seq(float) s) => (float[n,3] y) { y = ConcatFromSequence<axis = 0>(s) }"""
    model = onnx.parser.parse_model(text)
    model.graph.input[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError, match="tensors of unknown rank cannot be concatenated; give the shape of"):
        mlc.compile(model)
    compiled = mlc.compile(model, inputs={"s": ["n", 3]})
    parts = [np.arange(3 * n, dtype=np.float32).reshape(n, 3) for n in (2, 0, 1)]
    np.testing.assert_array_equal(compiled(parts)[0], np.concatenate(parts))  # type: ignore[operator]
    with pytest.raises(MlcError, match=r"must have the shape \[\?,3\]"):
        compiled([np.zeros(3, np.float32)])  # type: ignore[operator]
    model = onnx.parser.parse_model(text.replace("seq(float)", "seq(float[m,3])"))
    with pytest.raises(ModelError, match='input "s": it has rank 2, but the given shape'):
        mlc.compile(model, inputs={"s": [3]})
