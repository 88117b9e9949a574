"""Compiled kernels against the NumPy interpreter: every template, odd sizes, tails, dynamic extents, special values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mlc
from mlc.runtime import MlcError

_NAMES = {
    "f32": "float32", "f64": "float64", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "i1": "bool"
}  # fmt: skip
_NUMPY = {name: np.dtype(dtype) for name, dtype in _NAMES.items()}


def _entry(body: str, arguments: Sequence[str], results: Sequence[str]) -> str:
    """A module with one entry; `%0`, `%1`, … are its arguments."""

    def attributes(type_: str, name: str) -> str:
        element = type_[len("tensor<") : -1].rsplit("x", 1)[-1]
        rank = type_.count("x")
        dims = ", ".join('""' for _ in range(rank))
        return f'{{mlc.name = "{name}", mlc.dtype = "{_NAMES[element]}", mlc.dims = [{dims}]}}'

    args = ", ".join(f"%a{i}: {t} {attributes(t, f'a{i}')}" for i, t in enumerate(arguments))
    outs = ", ".join(f"{t} {attributes(t, f'r{i}')}" for i, t in enumerate(results))
    return f"module {{ func.func @forward({args}) -> ({outs}) {{\n{body}\n}} }}"


def check(
    tmp_path: Path,
    body: str,
    arguments: Sequence[str],
    results: Sequence[str],
    runs: Sequence[Sequence[np.ndarray]],
    tolerance: float = 2e-6,
    cpu: str = "native",
) -> mlc.Model:
    """Compile `body` for `cpu`, run it and compare with the interpreter for every set of inputs."""
    from mlir import ir

    import mlc.compiler_setup
    from mlc.interp.module import run_function

    text = _entry(body, arguments, results)
    path = tmp_path / "kernel.mlir"
    path.write_text(text)
    model = mlc.compile(path, output=tmp_path / "kernel.so", from_phase="import", cache=False, cpu=cpu)
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        function = module.body.operations[0]
        for inputs in runs:
            expected = run_function(function, inputs)
            for got, want in zip(model(*inputs), expected, strict=True):
                assert got.shape == want.shape
                assert got.dtype == want.dtype
                if np.issubdtype(got.dtype, np.floating):
                    scale = max(1.0, float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0)))
                    np.testing.assert_allclose(got, want, rtol=tolerance * 8, atol=tolerance * scale)
                else:
                    np.testing.assert_array_equal(got, want)
    return model


def draw(shape: Sequence[int], dtype: str = "f32", seed: int = 0) -> np.ndarray:
    """Random data: floats around zero, integers in ±100, bools."""
    rng = np.random.default_rng(seed + sum(shape))
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.startswith("f"):
        return rng.standard_normal(shape).astype(_NUMPY[dtype])
    return rng.integers(-100, 100, shape).astype(_NUMPY[dtype])


@pytest.mark.parametrize("width", [1, 3, 15, 16, 17, 100])
def test_elementwise_tails_and_broadcasting(tmp_path: Path, width: int) -> None:
    a, b = f"tensor<?x{width}xf32>", f"tensor<{width}xf32>"
    body = f"""
      %s = mlc.binary add %a0, %a1 : {a}, {b} -> {a}
      %e = mlc.unary exp %s : {a}
      %c = mlc.compare lt %a0, %e : {a}, {a} -> tensor<?x{width}xi1>
      %r = mlc.select %c, %s, %a0 : tensor<?x{width}xi1>, {a}, {a} -> {a}
      return %r, %c : {a}, tensor<?x{width}xi1>"""
    runs = [(draw((n, width)), draw((width,), seed=1)) for n in (0, 1, 7)]
    check(tmp_path, body, [a, b], [a, f"tensor<?x{width}xi1>"], runs)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "i32", "i8"])
def test_arithmetic_of_every_width(tmp_path: Path, dtype: str) -> None:
    t = f"tensor<5x33x{dtype}>"
    body = f"""
      %m = mlc.binary mul %a0, %a1 : {t}, {t} -> {t}
      %s = mlc.binary sub %m, %a0 : {t}, {t} -> {t}
      %r = mlc.binary max %s, %a1 : {t}, {t} -> {t}
      return %r : {t}"""
    check(tmp_path, body, [t, t], [t], [(draw((5, 33), dtype), draw((5, 33), dtype, 1))])


def test_transpose_with_inlined_producer(tmp_path: Path) -> None:
    t, o = "tensor<5x?x19xf32>", "tensor<19x5x?xf32>"
    body = f"""
      %n = mlc.unary neg %a0 : {t}
      %r = mlc.transpose %n {{permutation = array<i64: 2, 0, 1>}} : {t} -> {o}
      return %r : {o}"""
    check(tmp_path, body, [t], [o], [(draw((5, n, 19)),) for n in (1, 8, 33)])


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axes", ["0", "1", "2", "1, 2", "0, 2", "0, 1, 2"])
def test_reductions_over_any_axes(tmp_path: Path, kind: str, axes: str) -> None:
    kept = [d for i, d in enumerate(["?", "37", "21"]) if str(i) not in axes.split(", ")]
    out = f"tensor<{''.join(d + 'x' for d in kept)}f32>"
    t = "tensor<?x37x21xf32>"
    body = f"""
      %r = mlc.reduce {kind} %a0 {{axes = array<i64: {axes}>, keepdims = false}} : {t} -> {out}
      return %r : {out}"""
    data = [draw((n, 37, 21)) for n in (1, 9)]
    if kind == "prod":  # near one, so that long products stay in range
        data = [(1 + d * 0.02).astype(np.float32) for d in data]
    check(tmp_path, body, [t], [out], [(d,) for d in data], 2e-5)


def test_nan_and_infinity_pass_through_reductions(tmp_path: Path) -> None:
    t, o = "tensor<4x40xf32>", "tensor<4xf32>"
    data = draw((4, 40))
    data[1, 7], data[2, 39], data[3, 0] = np.nan, np.inf, -np.inf
    body = f"""
      %m = mlc.reduce max %a0 {{axes = array<i64: 1>, keepdims = false}} : {t} -> {o}
      %s = mlc.reduce sum %a0 {{axes = array<i64: 1>, keepdims = false}} : {t} -> {o}
      return %m, %s : {o}, {o}"""
    check(tmp_path, body, [t], [o, o], [(data,)])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("last", ["false", "true"])
def test_position_of_the_maximum(tmp_path: Path, axis: int, last: str) -> None:
    t, o = "tensor<17x23xf32>", f"tensor<{23 if axis == 0 else 17}xi64>"
    body = f"""
      %r = mlc.arg_reduce max %a0 {{axis = {axis} : i64, keepdims = false, select_last = {last}}} : {t} -> {o}
      return %r : {o}"""
    check(tmp_path, body, [t], [o], [(np.round(draw((17, 23)) * 2).astype(np.float32),)])


@pytest.mark.parametrize("shape", ["4x130", "?x33", "2x3x7", "?x5x257"])
def test_row_patterns(tmp_path: Path, shape: str) -> None:
    t = f"tensor<{shape}xf32>"
    rank = shape.count("x") + 1
    width = int(shape.split("x")[-1])
    w = f"tensor<{width}xf32>"
    body = f"""
      %s = mlc.softmax %a0 {{axis = {rank - 1} : i64, log = false}} : {t}
      %n = mlc.layer_norm %a0 scale(%a1 : {w}) bias(%a1 : {w}) {{axis = {rank - 1} : i64, epsilon = 1.0e-5 : f64}} : {t}
      return %s, %n : {t}, {t}"""
    extents = [[9 if d == "?" else int(d) for d in shape.split("x")]]
    check(tmp_path, body, [t, w], [t, t], [(draw(e) * 4, draw((width,))) for e in extents], 5e-6)


@pytest.mark.parametrize(
    "m, n, k", [(1, 1, 1), (1, 64, 3), (5, 7, 9), (6, 64, 16), (13, 100, 33), (64, 48, 20), (7, 200, 1)]
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_matmul_of_any_size(tmp_path: Path, m: int, n: int, k: int, dynamic: bool) -> None:
    rows, columns = ("?", "?") if dynamic else (str(m), str(n))
    a, b, o = f"tensor<{rows}x{k}xf32>", f"tensor<{k}x{columns}xf32>", f"tensor<{rows}x{columns}xf32>"
    body = f"""
      %r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}
      %e = mlc.unary neg %r : {o}
      return %e : {o}"""
    check(tmp_path, body, [a, b], [o], [(draw((m, k)), draw((k, n), seed=1))], 1e-5)


@pytest.mark.parametrize("transposed", ["lhs", "rhs"])
def test_transposed_and_batched_matmul(tmp_path: Path, transposed: str) -> None:
    a = "tensor<2x3x20x9xf32>" if transposed == "lhs" else "tensor<2x3x9x20xf32>"
    b = "tensor<3x33x20xf32>" if transposed == "rhs" else "tensor<3x20x33xf32>"
    o = "tensor<2x3x9x33xf32>"
    body = f"""
      %r = mlc.matmul %a0, %a1 {{transpose_{transposed}}} : {a}, {b} -> {o}
      return %r : {o}"""
    shapes = [tuple(int(d) for d in t[7:-5].split("x")) for t in (a, b)]
    check(tmp_path, body, [a, b], [o], [(draw(shapes[0]), draw(shapes[1], seed=1))], 1e-5)


def test_integer_matmul(tmp_path: Path) -> None:
    a, b, o = "tensor<5x40xi8>", "tensor<40x18xi8>", "tensor<5x18xi32>"
    body = f"%r = mlc.matmul %a0, %a1 : {a}, {b} -> {o}\nreturn %r : {o}"
    check(tmp_path, body, [a, b], [o], [(draw((5, 40), "i8"), draw((40, 18), "i8", 1))])


@pytest.mark.parametrize("groups, channels, filters", [(1, 3, 20), (1, 16, 64), (4, 8, 12), (8, 8, 8)])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolution(tmp_path: Path, groups: int, channels: int, filters: int, stride: int) -> None:
    size = (13 + 2 - 3) // stride + 1
    a, w = f"tensor<?x{channels}x13x13xf32>", f"tensor<{filters}x{channels // groups}x3x3xf32>"
    o = f"tensor<?x{filters}x{size}x{size}xf32>"
    body = f"""
      %r = mlc.conv %a0, %a1 {{strides = array<i64: {stride}, {stride}>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = {groups} : i64, layout = "nchw"}} : {a}, {w} -> {o}
      return %r : {o}"""
    filter_ = draw((filters, channels // groups, 3, 3), seed=1)
    check(tmp_path, body, [a, w], [o], [(draw((n, channels, 13, 13)), filter_) for n in (1, 2)], 1e-5)


def test_gather_takes_negative_indices_and_reports_bad_ones(tmp_path: Path) -> None:
    t, i, o = "tensor<6x20xf32>", "tensor<?xi64>", "tensor<?x20xf32>"
    body = f"%r = mlc.gather %a0, %a1 {{axis = 0 : i64}} : {t}, {i} -> {o}\nreturn %r : {o}"
    data = draw((6, 20))
    model = check(tmp_path, body, [t, i], [o], [(data, np.array([0, -1, 5, -6], np.int64))])
    with pytest.raises(MlcError, match="7"):
        model(data, np.array([0, 7], np.int64))
    with pytest.raises(MlcError, match="-7"):
        model(data, np.array([-7], np.int64))
    np.testing.assert_array_equal(model(data, np.array([3], np.int64))[0], data[3:4])  # the error does not stick


@pytest.mark.parametrize("dtype", ["f32", "i64", "i1"])
def test_nonzero(tmp_path: Path, dtype: str) -> None:
    t, o = f"tensor<?x5x{dtype}>", "tensor<2x?xi64>"
    body = f"%r = mlc.nonzero %a0 : {t} -> {o}\nreturn %r : {o}"
    runs = [((draw((n, 5), dtype) * (draw((n, 5), seed=3) > 0)).astype(_NUMPY[dtype]),) for n in (0, 1, 40)]
    check(tmp_path, body, [t], [o], runs)


@pytest.mark.parametrize("kind", ["sum", "prod", "max"])
@pytest.mark.parametrize("exclusive, reverse", [("false", "false"), ("true", "true")])
def test_scan(tmp_path: Path, kind: str, exclusive: str, reverse: str) -> None:
    t = "tensor<3x?x4xf32>"
    body = f"""
      %r = mlc.scan {kind} %a0 {{axis = 1 : i64, exclusive = {exclusive}, reverse = {reverse}}} : {t}
      return %r : {t}"""
    check(tmp_path, body, [t], [t], [(draw((3, n, 4)),) for n in (0, 1, 11)], 1e-5)


@pytest.mark.parametrize("shape", [(2, 1000), (2, 1000, 40)])
def test_sums_of_narrow_floats_are_rounded_once(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """257 is no bf16: a sum that was rounded after every element would stay at 256."""
    t, h = ("tensor<" + "x".join(map(str, shape)) + f"x{kind}>" for kind in ("f32", "bf16"))
    body = f"""
      %h = mlc.cast %a0 : {t} -> {h}
      %s = mlc.scan sum %h {{axis = 1 : i64}} : {h}
      %r = mlc.cast %s : {h} -> {t}
      return %r : {t}"""
    check(tmp_path, body, [t], [t], [(np.ones(shape, np.float32),)])


@pytest.mark.parametrize("largest", ["true", "false"])
@pytest.mark.parametrize("count", [1, 4, 29])
def test_topk_with_ties_and_nans(tmp_path: Path, largest: str, count: int) -> None:
    t, v, i = "tensor<3x29xf32>", f"tensor<3x{count}xf32>", f"tensor<3x{count}xi64>"
    body = f"""
      %k = arith.constant {count} : index
      %v, %i = mlc.topk %a0, %k {{axis = 1 : i64, largest = {largest}, sorted = true}} : {t} -> {v}, {i}
      return %v, %i : {v}, {i}"""
    data = np.round(draw((3, 29)) * 3).astype(np.float32)
    data[1, 5], data[2, 3] = np.inf, -np.inf
    check(tmp_path, body, [t], [v, i], [(data,)])


@pytest.mark.parametrize("descending", ["true", "false"])
def test_sort_is_stable(tmp_path: Path, descending: str) -> None:
    t, i = "tensor<?x3xf32>", "tensor<?x3xi64>"
    body = f"""
      %v, %i = mlc.sort %a0 {{axis = 0 : i64, descending = {descending}}} : {t} -> {t}, {i}
      return %v, %i : {t}, {i}"""
    check(tmp_path, body, [t], [t, i], [(np.round(draw((n, 3)) * 2).astype(np.float32),) for n in (0, 1, 2, 50)])


@pytest.mark.parametrize("reduction", ["none", "add", "max"])
def test_scatter(tmp_path: Path, reduction: str) -> None:
    t, i, u = "tensor<6x4xf32>", "tensor<3x4xi64>", "tensor<3x4xf32>"
    body = f"""
      %r = mlc.scatter_elements %a0, %a1, %a2 {{axis = 0 : i64, reduction = "{reduction}"}} : {t}, {i}, {u} -> {t}
      return %r : {t}"""
    indices = np.array([[0, 5, -1, 2], [1, 0, 3, -6], [2, 1, 4, 0]], np.int64)
    model = check(tmp_path, body, [t, i, u], [t], [(draw((6, 4)), indices, draw((3, 4)))])
    indices[0, 0] = 6
    with pytest.raises(MlcError, match="6"):
        model(draw((6, 4)), indices, draw((3, 4)))


@pytest.mark.parametrize("kind", ["max", "min"])
def test_scatter_compares_unsigned_numbers(kind: str, tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    numbers, indices = np.array([200, 1, 3, 255], np.uint8), np.array([0, 1, 2], np.int64)
    updates = np.array([100, 250, 2], np.uint8)
    described = (("x", TensorProto.UINT8, [4]), ("i", TensorProto.INT64, [3]), ("u", TensorProto.UINT8, [3]))
    inputs = [helper.make_tensor_value_info(*value) for value in described]
    result = helper.make_tensor_value_info("y", TensorProto.UINT8, [4])
    for operator, places, where in (("ScatterElements", indices, {"axis": 0}), ("ScatterND", indices[:, None], {})):
        inputs[1] = helper.make_tensor_value_info("i", TensorProto.INT64, places.shape)
        node = helper.make_node(operator, ["x", "i", "u"], ["y"], reduction=kind, **where)
        model = helper.make_model(
            helper.make_graph([node], "g", inputs, [result]), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
        )
        wanted = numbers.copy()
        (np.maximum if kind == "max" else np.minimum).at(wanted, indices, updates)
        found = mlc.compile(model, output=tmp_path / "model.so", cache=False)(numbers, places, updates)[0]
        np.testing.assert_array_equal(found, wanted)


def test_narrow_floats_compute_in_f32(tmp_path: Path) -> None:
    assert ml_dtypes.bfloat16(1.0) == 1.0  # inputs of bfloat16 models come as ml_dtypes arrays
    t, h = "tensor<4x33xf32>", "tensor<4x33xbf16>"
    body = f"""
      %h = mlc.cast %a0 : {t} -> {h}
      %s = mlc.binary mul %h, %h : {h}, {h} -> {h}
      %r = mlc.cast %s : {h} -> {t}
      return %r : {t}"""
    check(tmp_path, body, [t], [t], [(draw((4, 33)),)])
