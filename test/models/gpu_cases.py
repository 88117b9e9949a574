"""Models whose kernels are run on a GPU; inputs and expected results need NumPy only, to be made anywhere.

Expected results are computed in float64 from the inputs as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

Arrays = dict[str, np.ndarray]
_DTYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "bfloat16": 16, "float16": 10, "float64": 11, "uint32": 12,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A model of `nodes` (operator, inputs, outputs, attributes), and what it computes.

    `dims` are the model's dimensions where they are not those of the arrays: names, for dynamic ones.
    `sizes` are the data-dependent sizes that the host reads, in order. `tolerance` bounds the error of every element
    relative to the largest expected one; 0 means equal. `error` is the error word that must be there afterwards.
    """

    name: str
    nodes: Sequence[tuple[Any, ...]]
    inputs: Callable[[], Arrays]
    expected: Callable[[Arrays], Sequence[np.ndarray]]
    outputs: Mapping[str, str]
    dims: Mapping[str, Sequence[int | str]] | None = None
    constants: Mapping[str, np.ndarray] | None = None
    sizes: Callable[[Arrays], Sequence[int]] = lambda _: ()
    tolerance: float = 1e-6
    error: tuple[int, int] = (0, 0)
    bench: bool = False
    opset: int = 17


def build(case: Case) -> onnx.ModelProto:
    """The ONNX model of a case."""
    from onnx import helper, numpy_helper

    nodes = [
        helper.make_node(op, list(ins), list(outs), name=f"{op.lower()}_{i}", **(rest[0] if rest else {}))
        for i, (op, ins, outs, *rest) in enumerate(case.nodes)
    ]
    values = []
    for name, array in case.inputs().items():
        dims = (case.dims or {}).get(name, array.shape)
        values.append(helper.make_tensor_value_info(name, _DTYPES[array.dtype.name], list(dims)))
    results = [helper.make_tensor_value_info(name, _DTYPES[dtype], None) for name, dtype in case.outputs.items()]
    constants = [numpy_helper.from_array(array, name) for name, array in (case.constants or {}).items()]
    graph = helper.make_graph(nodes, case.name, values, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)])
    model.ir_version = 8 if case.opset < 19 else 9
    return model


def normal(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Normally distributed numbers."""
    rng = np.random.default_rng([seed, *shape])
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)


def integers(low: int, high: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    """Uniformly distributed integers, `low` to `high` - 1."""
    return np.random.default_rng([low + 1000, high, *shape]).integers(low, high, shape).astype(dtype)


def differences(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """How far elements are apart, relative to the largest finite one; 0 where both are the same infinity or NaN."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max(initial=0)) or 1.0
    with np.errstate(invalid="ignore"):
        found = np.abs(a - b) / scale
    found = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, found)
    return np.where(np.isnan(found), np.inf, found)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """In float64."""
    e = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# --- The ten operators ------------------------------------------------------------------------------------------------

_W, _B = normal(32, 64, seed=1) * np.float32(0.2), normal(64, seed=2)
_TEN_NODES = (
    ("MatMul", ["x", "w"], ["product"]),
    ("Add", ["product", "b"], ["biased"]),
    ("Relu", ["biased"], ["hidden"]),
    ("Softmax", ["hidden"], ["probabilities"], {"axis": -1}),
    ("Reshape", ["probabilities", "shape"], ["square"]),
    ("Transpose", ["square"], ["turned"], {"perm": [0, 2, 1]}),
    ("ReduceMean", ["turned"], ["mean"], {"axes": [2], "keepdims": 0}),
    ("Gather", ["turned", "columns"], ["picked"], {"axis": 2}),
    ("Concat", ["turned", "picked"], ["joined"], {"axis": 2}),
    ("NonZero", ["hidden"], ["places"]),
)


def _hidden(x: np.ndarray) -> np.ndarray:
    return np.maximum(x.astype(np.float64) @ _W.astype(np.float64) + _B, 0)


def _ten_expected(inputs: Arrays) -> list[np.ndarray]:
    hidden = _hidden(inputs["x"])
    turned = softmax(hidden).reshape(-1, 8, 8).transpose(0, 2, 1)
    joined = np.concatenate([turned, turned[:, :, [2, 0, -1]]], axis=2)
    return [joined, turned.mean(axis=2), np.array(np.nonzero(hidden))]


def ten_operators(batch: int, dynamic: bool) -> Case:
    """MatMul, Add, Relu, Softmax, Reshape, Transpose, ReduceMean, Gather, Concat and NonZero."""
    return Case(
        f"ten_{'dynamic' if dynamic else 'static'}_{batch}",
        _TEN_NODES,
        lambda: {"x": normal(batch, 32, seed=3)},
        _ten_expected,
        {"joined": "float32", "mean": "float32", "places": "int64"},
        dims={"x": ["batch", 32]} if dynamic else None,
        constants={
            "w": _W,
            "b": _B,
            "shape": np.array([0, 8, 8], np.int64),
            "columns": np.array([2, 0, -1], np.int64),
        },
        sizes=lambda inputs: [int(np.count_nonzero(_hidden(inputs["x"])))],
    )


# --- Single kernels ---------------------------------------------------------------------------------------------------


def _unary(op: str, function: Callable[[np.ndarray], np.ndarray], *shape: int, **options: Any) -> Case:
    return Case(
        f"{op.lower()}_{'x'.join(map(str, shape))}",
        [(op, ["x"], ["y"])],
        lambda: {"x": normal(*shape)},
        lambda a: [function(a["x"].astype(np.float64))],
        {"y": "float32"},
        **options,
    )


def _binary(name: str, op: str, function: Any, a: np.ndarray, b: np.ndarray, **options: Any) -> Case:
    return Case(
        name,
        [(op, ["a", "b"], ["y"])],
        lambda: {"a": a, "b": b},
        lambda v: [function(v["a"].astype(np.float64), v["b"].astype(np.float64))],
        {"y": a.dtype.name},
        **options,
    )


def _softmax(rows: int, width: int, dims: Sequence[int | str] | None = None, **options: Any) -> Case:
    return Case(
        f"softmax_{rows}x{width}{'_dynamic' if dims else ''}",
        [("Softmax", ["x"], ["y"], {"axis": -1})],
        lambda: {"x": normal(rows, width) * np.float32(3)},
        lambda a: [softmax(a["x"])],
        {"y": "float32"},
        dims={"x": dims} if dims else None,
        **options,
    )


def _softmax_half(rows: int, width: int) -> Case:
    return Case(
        f"softmax_half_{rows}x{width}",
        [("Softmax", ["x"], ["y"], {"axis": -1})],
        lambda: {"x": normal(rows, width, dtype="float16") * np.float16(3)},
        lambda a: [softmax(a["x"])],
        {"y": "float16"},
        tolerance=1e-3,
    )


def _softmax_across(name: str, *shape: int, dtype: str = "float32", axis: int = 1, **options: Any) -> Case:
    """A softmax over elements that do not lie side by side."""
    return Case(
        f"softmax_{name}",
        [("Softmax", ["x"], ["y"], {"axis": axis})],
        lambda: {"x": (normal(*shape) * np.float32(3)).astype(dtype)},
        lambda a: [softmax(a["x"], axis)],
        {"y": dtype},
        **options,
    )


def _layer_norm(rows: int, width: int, dtype: str = "float32", **options: Any) -> Case:
    def expected(a: Arrays) -> list[np.ndarray]:
        x = a["x"].astype(np.float64)
        centred = x - x.mean(axis=-1, keepdims=True)
        return [centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * a["scale"] + a["shift"]]

    return Case(
        f"layer_norm_{rows}x{width}" + ("" if dtype == "float32" else f"_{dtype}"),
        [("LayerNormalization", ["x", "scale", "shift"], ["y"], {"axis": -1, "epsilon": 1e-5})],
        lambda: {
            "x": normal(rows, width, dtype=dtype),
            "scale": normal(width, seed=1, dtype=dtype),
            "shift": normal(width, seed=2, dtype=dtype),
        },
        expected,
        {"y": dtype},
        tolerance=2e-6 if dtype == "float32" else 1e-3,
        **options,
    )


def _reduce(name: str, op: str, function: Any, shape: Sequence[int], axes: Sequence[int], **options: Any) -> Case:
    node = (op, ["x"], ["y"], {"axes": list(axes), "keepdims": 0})
    if op == "ReduceSum":
        node = (op, ["x", "axes"], ["y"], {"keepdims": 0})
        options["constants"] = {"axes": np.array(axes, np.int64)}
    return Case(
        name,
        [node],
        lambda: {"x": normal(*shape)},
        lambda a: [np.asarray(function(a["x"].astype(np.float64), axis=tuple(axes)))],
        {"y": "float32"},
        **options,
    )


def _matmul(name: str, a: np.ndarray, b: np.ndarray, **options: Any) -> Case:
    return _binary(name, "MatMul", np.matmul, a, b, tolerance=2e-6, **options)


def _sum_of_run(terms: int) -> Case:
    """A product whose sum has as many terms as the run says: of f16, with the left operand stored transposed."""
    return Case(
        f"matmul_sum_of_run_{terms}",
        [("Transpose", ["a"], ["t"], {"perm": [1, 0]}), ("MatMul", ["t", "b"], ["y"])],
        lambda: {"a": normal(terms, 256, dtype="float16"), "b": normal(terms, 136, seed=1, dtype="float16")},
        lambda v: [v["a"].astype(np.float64).T @ v["b"].astype(np.float64)],
        {"y": "float16"},
        dims={"a": ["terms", 256], "b": ["terms", 136]},
        tolerance=1e-3,
    )


def _exact_tiles(name: str, rows: int, depth: int, columns: int) -> Case:
    """A product with a weight, a bias and a ReLU, of tiles enough for all multiprocessors."""
    constants = {"w": normal(depth, columns, seed=1), "c": normal(columns, seed=2)}

    def expected(a: Arrays) -> list[np.ndarray]:
        return [np.maximum(a["x"].astype(np.float64) @ constants["w"] + constants["c"], 0)]

    nodes = [("MatMul", ["x", "w"], ["t"]), ("Add", ["t", "c"], ["u"]), ("Relu", ["u"], ["y"])]
    return Case(
        name, nodes, lambda: {"x": normal(rows, depth)}, expected, {"y": "float32"}, constants=constants, tolerance=2e-6
    )


def _float8(x: np.ndarray) -> np.ndarray:
    """Rounded to e4m3, half to even; what is too large does not occur."""
    exponent = np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 1e-30))), -6)
    quantum = 2.0 ** (exponent - 3)
    return np.rint(x / quantum) * quantum


def _float8_product(name: str, rows: int, columns: int, depth: int, *, turned: bool) -> Case:
    """A product of floats of eight bits with a scale for every row and column, and a ReLU. A right operand that is not
    `turned` is a constant."""
    a, b = 8 * normal(rows, depth), normal(depth, columns, seed=1)
    scales = {"of_rows": np.linspace(0.1, 1, rows, dtype="f4"), "of_columns": np.linspace(2, 1, columns, dtype="f4")}
    float8 = {"to": 17}
    nodes: list[tuple[Any, ...]] = [("Cast", ["a"], ["a8"], float8), ("Cast", ["b"], ["b8"], float8)]
    nodes += [("DequantizeLinear", ["a8", "of_rows"], ["x"], {"axis": 0})]
    nodes += [("DequantizeLinear", ["b8", "of_columns"], ["w"], {"axis": 0 if turned else 1})]
    nodes += [("Transpose", ["w"], ["v"], {"perm": [1, 0]})] if turned else []
    nodes += [("MatMul", ["x", "v" if turned else "w"], ["p"]), ("Relu", ["p"], ["y"])]
    inputs = {"a": a, "b": b.T.copy()} if turned else {"a": a}
    wanted = np.maximum(_float8(a).astype("f8") @ _float8(b) * np.outer(scales["of_rows"], scales["of_columns"]), 0)
    constants = scales if turned else {**scales, "b": b}
    return Case(
        name, nodes, lambda: inputs, lambda _: [wanted], {"y": "float32"}, constants=constants, tolerance=5e-4, opset=19
    )


def _max_pool(a: Arrays) -> list[np.ndarray]:
    x = a["x"].astype(np.float64)
    return [np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, ::2].max(axis=(4, 5))]


def _scatter(a: Arrays) -> list[np.ndarray]:
    y = a["x"].astype(np.float64)
    y[a["i"][:, 0], a["i"][:, 1]] = a["u"]
    return [y]


def _gelu(x: np.ndarray) -> np.ndarray:
    import math

    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


_GELU_NODES = (
    ("Div", ["x", "root"], ["d"]),
    ("Erf", ["d"], ["e"]),
    ("Add", ["e", "one"], ["f"]),
    ("Mul", ["x", "f"], ["g"]),
    ("Mul", ["g", "half"], ["y"]),
)
_GELU_CONSTANTS = {n: np.array(v, np.float32) for n, v in (("root", 2**0.5), ("one", 1), ("half", 0.5))}


def _elementwise_cases() -> list[Case]:
    half = normal(6, 40, dtype="float16")
    return [
        _unary("Relu", lambda x: np.maximum(x, 0), 7, 13, 5, tolerance=0),
        _unary("Relu", lambda x: np.maximum(x, 0), 3, 11, dims={"x": ["batch", "seq"]}, tolerance=0),
        *(_unary(op.title(), getattr(np, op), 33, 12) for op in ("exp", "tanh", "sin", "cos")),
        Case("gelu_8x96", _GELU_NODES, lambda: {"x": normal(8, 96)}, lambda a: [_gelu(a["x"].astype(np.float64))],
             {"y": "float32"}, constants=_GELU_CONSTANTS),
        _binary("add_broadcast", "Add", np.add, normal(4, 1, 32), normal(6, 1)),
        _binary("add_across_rows", "Add", np.add, normal(601, 1001), normal(1001)),
        _binary("add_across_rows_half", "Add", np.add, normal(1101, 1001, dtype="float16"),
                normal(1001, dtype="float16"), tolerance=1e-3),
        _binary("add_across_channels", "Add", np.add, normal(90, 67, 101), normal(67, 1)),
        _binary("add_half", "Add", np.add, half, half[:1], tolerance=1e-3),
        _binary("pow", "Pow", np.power, np.abs(normal(5, 24)) + 1, normal(5, 24), tolerance=2e-6),
        _binary("div_int64", "Div", lambda a, b: np.trunc(a / b), integers(-50, 50, 4, 6), integers(1, 9, 4, 6),
                tolerance=0),
        Case("where_bool", [("Greater", ["a", "b"], ["c"]), ("Where", ["c", "a", "b"], ["y"])],
             lambda: {"a": normal(9, 16), "b": normal(9, 16, seed=1)}, lambda v: [v["a"] > v["b"],
             np.maximum(v["a"], v["b"])], {"c": "bool", "y": "float32"}, tolerance=0),
        Case("cast_int64", [("Cast", ["x"], ["y"], {"to": 7})], lambda: {"x": normal(8, 8) * np.float32(100)},
             lambda a: [np.trunc(a["x"]).astype(np.int64)], {"y": "int64"}, tolerance=0),
        Case("double", [("Mul", ["x", "x"], ["a"]), ("Sqrt", ["a"], ["b"]), ("Max", ["b", "x"], ["y"])],
             lambda: {"x": normal(6, 10, dtype="float64")}, lambda a: [np.abs(a["x"])], {"y": "float64"},
             tolerance=1e-15),
    ]  # fmt: skip


def _movement_cases() -> list[Case]:
    index = np.array([[0, 4, -1], [7, 2, 2]], np.int64)
    return [
        Case("transpose", [("Transpose", ["x"], ["y"], {"perm": [0, 3, 1, 2]})], lambda: {"x": normal(2, 5, 6, 8)},
             lambda a: [a["x"].transpose(0, 3, 1, 2)], {"y": "float32"}, tolerance=0),
        Case("transpose_square", [("Transpose", ["x"], ["y"], {"perm": [1, 0]})], lambda: {"x": normal(100, 70)},
             lambda a: [a["x"].T], {"y": "float32"}, tolerance=0),
        Case("transpose_read_twice", [("Softplus", ["x"], ["s"], {}), ("Transpose", ["s"], ["y"], {"perm": [1, 0]})],
             lambda: {"x": normal(100, 70)}, lambda a: [np.logaddexp(a["x"], 0).transpose(1, 0)], {"y": "float32"}),
        Case("transpose_half", [("Transpose", ["x"], ["y"], {"perm": [1, 2, 0]})],
             lambda: {"x": normal(33, 5, 64, dtype="float16")}, lambda a: [a["x"].transpose(1, 2, 0)],
             {"y": "float16"}, tolerance=0),
        Case("transpose_fused", [("Greater", ["x", "b"], ["g"]), ("Cast", ["g"], ["f"], {"to": 1}),
                                 ("Transpose", ["f"], ["t"], {"perm": [0, 2, 1]}), ("Mul", ["t", "c"], ["y"])],
             lambda: {"x": normal(3, 70, 130), "b": normal(130, seed=1), "c": normal(70, seed=2)},
             lambda a: [(a["x"] > a["b"]).transpose(0, 2, 1) * a["c"]], {"y": "float32"}, tolerance=0,
             dims={"x": ["n", "m", "k"], "b": ["k"], "c": ["m"]}),
        Case("transpose_bool", [("Transpose", ["x"], ["t"], {"perm": [1, 0]}), ("Not", ["t"], ["y"])],
             lambda: {"x": normal(40, 90) > 0}, lambda a: [~a["x"].T], {"y": "bool"}, tolerance=0),
        Case("gather_rows", [("Gather", ["x", "i"], ["y"], {"axis": 0})], lambda: {"x": normal(8, 64), "i": index},
             lambda a: [a["x"][a["i"]]], {"y": "float32"}, tolerance=0),
        Case("gather_dynamic", [("Gather", ["x", "i"], ["y"], {"axis": 0})], lambda: {"x": normal(8, 64), "i": index},
             lambda a: [a["x"][a["i"]]], {"y": "float32"}, dims={"i": ["n", "m"]}, tolerance=0),
        Case("gather_out_of_range", [("Gather", ["x", "i"], ["y"], {"axis": 0})],
             lambda: {"x": normal(8, 64), "i": np.array([3, 9])}, lambda a: [], {"y": "float32"}, error=(1, 9)),
        Case("slice_backwards", [("Slice", ["x", "start", "end", "axes", "step"], ["y"])], lambda: {"x": normal(6, 20)},
             lambda a: [a["x"][:, 18:3:-3]], {"y": "float32"}, tolerance=0,
             constants={n: np.array([v], np.int64) for n, v in (("start", 18), ("end", 3), ("axes", 1), ("step", -3))}),
        Case("pad_reflect", [("Pad", ["x", "pads"], ["y"], {"mode": "reflect"})], lambda: {"x": normal(3, 10)},
             lambda a: [np.pad(a["x"], [(0, 0), (2, 4)], mode="reflect")], {"y": "float32"}, tolerance=0,
             constants={"pads": np.array([0, 2, 0, 4], np.int64)}),
        Case("scatter_nd", [("ScatterND", ["x", "i", "u"], ["y"])],
             lambda: {"x": normal(5, 6, 8), "i": np.array([[0, 1], [4, 5], [2, -1]]), "u": normal(3, 8, seed=9)},
             _scatter, {"y": "float32"}, tolerance=0),
        Case("cumsum", [("CumSum", ["x", "axis"], ["y"])], lambda: {"x": normal(40, 17)},
             lambda a: [np.cumsum(a["x"].astype(np.float64), axis=1)], {"y": "float32"},
             constants={"axis": np.array(1, np.int64)}),
    ]  # fmt: skip


def _reduction_cases() -> list[Case]:
    return [
        *(_softmax(rows, width) for rows, width in ((3, 5), (9, 64), (6, 1000), (5, 4096), (600, 2048))),
        _softmax(7, 77, ["n", "m"]),
        _softmax_across("across", 7, 50, 36),
        _softmax_across("across_half", 3, 21, 264, dtype="float16", tolerance=1e-3),
        _softmax_across("across_dynamic", 4, 13, 28, dims={"x": ["n", "c", "p"]}),
        Case("softmax_half", [("Softmax", ["x"], ["y"], {"axis": -1})], lambda: {"x": normal(10, 96, dtype="float16")},
             lambda a: [softmax(a["x"])], {"y": "float16"}, tolerance=1e-3),
        *(_softmax_half(rows, width) for rows, width in ((301, 1001), (37, 197), (1, 50257), (3, 40003), (140, 20001),
                                                        (133, 18000))),
        *(_softmax(rows, width) for rows, width in ((1, 50257), (5, 40000), (21, 50257), (134, 33001))),
        _layer_norm(77, 1001, "float16"),
        _layer_norm(140, 16901, "float16"),
        Case("max_rows_odd", [("ReduceMax", ["x"], ["y"], {"axes": [1], "keepdims": 0})],
             lambda: {"x": normal(333, 1001, dtype="float16")}, lambda a: [a["x"].max(axis=1)], {"y": "float16"},
             tolerance=0),
        Case("max_rows_cut", [("Slice", ["x", "from", "to", "axes"], ["c"]),
                              ("ReduceMax", ["c"], ["y"], {"axes": [1], "keepdims": 0})],
             lambda: {"x": normal(40, 1009, dtype="float16")}, lambda a: [a["x"][:, 5:1006].max(axis=1)],
             {"y": "float16"}, constants={"from": np.array([5]), "to": np.array([1006]), "axes": np.array([1])},
             tolerance=0),
        Case("softmax_columns", [("Softmax", ["x"], ["y"], {"axis": 1})], lambda: {"x": normal(2, 9, 8)},
             lambda a: [softmax(a["x"], 1)], {"y": "float32"}),
        *(_layer_norm(rows, width) for rows, width in ((11, 12), (10, 768), (4, 3000))),
        _reduce("sum_all", "ReduceSum", np.sum, (64, 33, 50), (0, 1, 2), tolerance=2e-6),
        _reduce("max_rows", "ReduceMax", np.max, (700, 40), (1,), tolerance=0),
        _reduce("mean_columns", "ReduceMean", np.mean, (50, 36), (0,)),
        _reduce("max_columns_odd", "ReduceMax", np.max, (3, 100, 37), (1,), tolerance=0),
        _reduce("sum_columns_dynamic", "ReduceSum", np.sum, (70, 5, 21), (0, 1), dims={"x": ["n", "m", "k"]}),
        Case("all_columns", [("Less", ["x", "limit"], ["b"]), ("Cast", ["b"], ["c"], {"to": 2}),
                             ("ReduceMin", ["c"], ["y"], {"axes": [0], "keepdims": 0})],
             lambda: {"x": normal(60, 24)}, lambda a: [(a["x"] < 2).all(axis=0).astype(np.uint8)], {"y": "uint8"},
             constants={"limit": np.array(2, np.float32)}, tolerance=0),
        _reduce("mean_image", "ReduceMean", np.mean, (2, 24, 7, 7), (2, 3)),
        _reduce("prod_inner", "ReduceProd", np.prod, (6, 8, 10), (1,)),
        Case("any_byte", [("Greater", ["x", "zero"], ["b"]), ("Cast", ["b"], ["c"], {"to": 6}),
                          ("ReduceMax", ["c"], ["y"], {"axes": [1], "keepdims": 0})],
             lambda: {"x": normal(20, 6)}, lambda a: [(a["x"] > 0).any(axis=1).astype(np.int32)], {"y": "int32"},
             constants={"zero": np.array(0, np.float32)}, tolerance=0),
    ]  # fmt: skip


def _contraction_cases() -> list[Case]:
    return [
        _matmul("matmul_odd", normal(37, 29), normal(29, 44, seed=1)),
        _matmul("matmul_batched", normal(3, 20, 16), normal(3, 16, 24, seed=1)),
        Case("matmul_dynamic", [("MatMul", ["a", "b"], ["y"])], lambda: {"a": normal(19, 31), "b": normal(31, 21)},
             lambda v: [v["a"].astype(np.float64) @ v["b"]], {"y": "float32"}, tolerance=2e-6,
             dims={"a": ["m", "k"], "b": ["k", "n"]}),
        *(_sum_of_run(terms) for terms in (0, 200)),
        Case("gemm_transposed", [("Gemm", ["a", "b", "c"], ["y"], {"transB": 1})],
             lambda: {"a": normal(18, 256), "b": normal(30, 256, seed=1), "c": normal(30, seed=2)},
             lambda v: [v["a"].astype(np.float64) @ v["b"].T + v["c"]], {"y": "float32"}, tolerance=2e-6),
        _binary("matmul_half_odd", "MatMul", np.matmul, normal(200, 181, dtype="float16"),
                normal(181, 133, seed=1, dtype="float16"), tolerance=1e-3),
        _float8_product("matmul_float8", 37, 44, 272, turned=True),
        _float8_product("matmul_float8_weight", 70, 40, 144, turned=False),
        _float8_product("matmul_float8_odd", 37, 44, 40, turned=True),
        *(_exact_tiles(f"matmul_tiles_{m}", m, k, n) for m, k, n in ((1111, 520, 1000), (4100, 72, 580))),
        _matmul("matmul_row", normal(1, 300), normal(300, 70, seed=1)),
        _binary("matmul_double", "MatMul", np.matmul, normal(17, 40, dtype="float64"),
                normal(40, 24, seed=1, dtype="float64"), tolerance=1e-15),
        Case("max_pool", [("MaxPool", ["x"], ["y"], {"kernel_shape": [3, 3], "strides": [2, 2]})],
             lambda: {"x": normal(2, 6, 11, 13)}, _max_pool, {"y": "float32"}, tolerance=0),
    ]  # fmt: skip


def bench_cases() -> list[Case]:
    """Sizes that fill a chip, for timing."""
    big = lambda n=8192, m=4096, s=0: normal(n, m, seed=s)  # noqa: E731
    return [
        _binary("bench_add", "Add", np.add, big(), big(s=1), bench=True),
        Case("bench_gelu", _GELU_NODES, lambda: {"x": big()}, lambda a: [_gelu(a["x"].astype(np.float64))],
             {"y": "float32"}, constants=_GELU_CONSTANTS, bench=True),
        _softmax(8192, 4096, bench=True),
        _softmax(16384, 1024, bench=True),
        _layer_norm(16384, 1024, bench=True),
        _reduce("bench_sum_rows", "ReduceSum", np.sum, (8192, 4096), (1,), bench=True),
        Case("bench_transpose", [("Transpose", ["x"], ["y"], {"perm": [1, 0]})], lambda: {"x": big()},
             lambda a: [a["x"].T], {"y": "float32"}, tolerance=0, bench=True),
        _matmul("bench_matmul", normal(1024, 1024), normal(1024, 1024, seed=1), bench=True),
    ]  # fmt: skip


@cache
def cases() -> tuple[Case, ...]:
    """All cases that check results, made once: drawing their constants takes a third of a second."""
    from models.gpu_attentions import attention_cases
    from models.gpu_columns import column_cases
    from models.gpu_convolutions import convolution_cases
    from models.gpu_mixing import mixing_cases
    from models.gpu_recurrent import recurrent_cases
    from models.gpu_scans import scan_cases
    from models.gpu_scatters import scatter_cases
    from models.gpu_selections import position_cases, top_k_cases
    from models.gpu_splits import split_cases

    ten = [ten_operators(5, True), ten_operators(16, False)]
    moving = [*_movement_cases(), *top_k_cases(), *position_cases(), *scan_cases(), *scatter_cases(), *split_cases()]
    reduced = [*_reduction_cases(), *column_cases()]
    multiplied = [*_contraction_cases(), *recurrent_cases(), *convolution_cases(), *mixing_cases(), *attention_cases()]
    return (*ten, *_elementwise_cases(), *moving, *reduced, *multiplied)
