"""Composites of the larger families: decomposed, run, and compared with the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from linalg_runner import check_decomposition

RNG = np.random.default_rng(3)
NAMES = {"float32": "f32", "float64": "f64", "int8": "i8", "int32": "i32", "int64": "i64", "bool": "i1"}


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def kind_of(array: np.ndarray, dynamic: bool = False) -> str:
    shape = ["?"] * array.ndim if dynamic else [str(n) for n in array.shape]
    return f"tensor<{'x'.join([*shape, NAMES[str(array.dtype)]])}>"


def check(operation: str, results: list[str], *arrays: np.ndarray, tolerance: float = 1e-4, before: str = "") -> str:
    """`operation` uses `%0`, … for the arguments, `<0>`, … for their types and `<r0>`, … for the results' types."""
    for i, array in enumerate(arrays):
        operation = operation.replace(f"<{i}>", kind_of(array))
    for i, result in enumerate(results):
        operation = operation.replace(f"<r{i}>", result)
    arguments = ", ".join(f"%{i}: {kind_of(a)}" for i, a in enumerate(arrays))
    names = ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
    bound = f"%r:{len(results)}" if len(results) > 1 else "%r"
    listed = ", ".join(results)
    text = f"func.func @f({arguments}) -> ({listed}) {{\n{before}\n{bound} = {operation}\nreturn {names} : {listed} }}"
    return check_decomposition(text, *arrays, tolerance=tolerance)


EINSUMS = [
    ("ij,jk->ik", [(2, 3), (3, 4)], "2x4"),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)], "2x3x5"),
    ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)], "2x2x3x5"),
    ("ij->ji", [(2, 3)], "3x2"),
    ("ij->", [(2, 3)], ""),
    ("ii->i", [(3, 3)], "3"),
    ("ii", [(3, 3)], ""),
    ("biji->jb", [(2, 3, 4, 3)], "4x2"),
    ("iii->i", [(3, 3, 3)], "3"),
    ("jiik,k->ij", [(2, 3, 3, 4), (4,)], "3x2"),
    ("i,j->ij", [(2,), (3,)], "2x3"),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)], "2x5x3x2"),
    ("abc,cd,de->abe", [(2, 3, 4), (4, 5), (5, 2)], "2x3x2"),
    ("ijkl,jlm->mik", [(2, 3, 4, 5), (3, 5, 6)], "6x2x4"),
    ("ij,ij->i", [(3, 4), (3, 4)], "3"),
    ("ab,cd->", [(2, 3), (4, 5)], ""),
]


@pytest.mark.parametrize(("equation", "shapes", "result"), EINSUMS)
def test_einsum(equation: str, shapes: list[tuple[int, ...]], result: str) -> None:
    names = ", ".join(f"%{i}" for i in range(len(shapes)))
    types = ", ".join(f"<{i}>" for i in range(len(shapes)))
    kind = f"tensor<{result}xf32>" if result else "tensor<f32>"
    check(f'mlc.einsum "{equation}"({names}) : {types} -> <r0>', [kind], *(floats(*s) for s in shapes))


# sizes, inputs, outputs per group, groups, taps, strides, padding, dilations, output padding, result sizes
TRANSPOSED = [
    ((3, 4), 2, 3, 1, (3, 3), (2, 2), (0, 0, 0, 0), (1, 1), (0, 0), (7, 9)),
    ((3, 4), 4, 2, 2, (3, 2), (2, 3), (1, 0, 1, 1), (1, 1), (1, 0), (6, 10)),
    ((3, 3), 2, 1, 1, (3, 3), (1, 1), (1, 1, 1, 1), (2, 2), (0, 0), (5, 5)),
    ((5,), 3, 2, 1, (4,), (2,), (1, 1), (1,), (0,), (10,)),
    ((2, 2), 2, 2, 1, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), (0, 0), (4, 4)),
    ((5,), 3, 2, 1, (2,), (3,), (0, 0), (1,), (0,), (14,)),  # a kernel shorter than the stride
    ((4, 5), 4, 3, 2, (5, 4), (2, 1), (3, 2, 2, 1), (1, 2), (1, 0), (7, 8)),  # more padding than the stride
    ((4,), 2, 3, 1, (3,), (2,), (-1, 0), (1,), (1,), (11,)),  # what is added is the bias alone
    ((2, 3, 2), 2, 2, 1, (3, 2, 4), (2, 1, 3), (1, 0, 0, 0, 1, 2), (1, 1, 1), (0, 0, 1), (4, 3, 6)),
    ((3, 4), 4, 1, 4, (4, 4), (2, 2), (1, 1, 1, 1), (1, 1), (0, 0), (6, 8)),  # depthwise
    ((3,), 2, 2, 1, (3,), (2,), (0, 0), (2,), (0,), (9,)),  # taps apart
]


@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_conv_transpose(case: tuple) -> None:
    sizes, inputs, outputs, groups, taps, strides, padding, dilations, extra, out = case

    def listed(values: tuple[int, ...]) -> str:
        return f"array<i64: {', '.join(map(str, values))}>"

    attrs = f"{{strides = {listed(strides)}, padding = {listed(padding)}, dilations = {listed(dilations)}, "
    attrs += f"groups = {groups} : i64, output_padding = {listed(extra)}}}"
    result = f"tensor<{'x'.join(map(str, [2, outputs * groups, *out]))}xf32>"
    operation = f"mlc.conv_transpose %0, %1 bias(%2 : <2>) {attrs} : <0>, <1> -> <r0>"
    check(operation, [result], floats(2, inputs, *sizes), floats(inputs, outputs, *taps), floats(outputs * groups))


@pytest.mark.parametrize("column_major", ["true", "false"])
def test_pool_indices(column_major: str) -> None:
    attrs = "{kernel = array<i64: 2, 3>, strides = array<i64: 2, 1>, padding = array<i64: 0, 1, 0, 1>, "
    attrs += f"dilations = array<i64: 1, 1>, column_major = {column_major}}}"
    results = ["tensor<2x3x2x5xf32>", "tensor<2x3x2x5xi64>"]
    x = floats(2, 3, 4, 5)
    x[0, 0, 1, 1] = np.nan
    x[1, 0] = -np.inf
    check(f"mlc.pool_indices %0 {attrs} : <0> -> <r0>, <r1>", results, x)


@pytest.mark.parametrize("attrs", ["", "{causal = true}", "{scale = 0.3 : f64, softcap = 2.0 : f64}"])
def test_attention(attrs: str) -> None:
    arrays = [floats(2, 3, 4, 5), floats(2, 3, 6, 5), floats(2, 3, 6, 7)]
    check(f"mlc.attention %0, %1, %2 {attrs} : <0>, <1>, <2> -> <r0>", ["tensor<2x3x4x7xf32>"], *arrays)


def test_attention_with_grouped_heads_and_masks() -> None:
    arrays = [floats(2, 4, 3, 5), floats(2, 2, 6, 5), floats(2, 2, 6, 5)]
    mask = RNG.random((2, 1, 3, 6)) > 0.4
    mask[0, 0, 1] = False
    operation = "mlc.attention %0, %1, %2 mask(%3 : <3>) : <0>, <1>, <2> -> <r0>"
    check(operation, ["tensor<2x4x3x5xf32>"], *arrays, mask)
    additive = np.where(mask, np.float32(0.5), np.float32(-np.inf))
    check(operation, ["tensor<2x4x3x5xf32>"], *arrays, additive)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("steps", [2, 6])
def test_recurrent(kind: str, direction: str, steps: int) -> None:
    directions, gates = (2 if direction == "bidirectional" else 1), {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    arrays = [floats(steps, 2, 3), floats(directions, gates * 4, 3), floats(directions, gates * 4, 4)]
    arrays += [floats(directions, 2 * gates * 4), np.array([steps, steps - 1], np.int32)]
    arrays += [floats(directions, 2, 4)]
    state = f"tensor<{directions}x2x4xf32>"
    operands = "bias(%3 : <3>) lengths(%4 : <4>) initial_h(%5 : <5>)"
    attrs = f'{{direction = "{direction}", activations = []}}'
    operation = f"mlc.recurrent {kind} %0, %1, %2 {operands} {attrs} : <0>, <1>, <2> -> <r0>, <r1>, <r2>"
    decomposed = check(operation, [f"tensor<{steps}x{directions}x2x4xf32>", state, state], *arrays)
    assert ("scf.for" in decomposed) == (steps == 6)


def test_lstm_with_peepholes_and_clip() -> None:
    arrays = [floats(5, 2, 3), floats(1, 16, 3), floats(1, 16, 4), floats(1, 2, 4), floats(1, 12)]
    attrs = '{activations = ["HardSigmoid:0.3:0.4", "Tanh", "Softsign"], clip = 0.8 : f64}'
    operation = f"mlc.recurrent lstm %0, %1, %2 initial_c(%3 : <3>) peepholes(%4 : <4>) {attrs}"
    results = ["tensor<5x1x2x4xf32>", "tensor<1x2x4xf32>", "tensor<1x2x4xf32>"]
    check(operation + " : <0>, <1>, <2> -> <r0>, <r1>, <r2>", results, *arrays)


def test_gru_linear_before_reset() -> None:
    arrays = [floats(5, 2, 3), floats(1, 12, 3), floats(1, 12, 4), floats(1, 24)]
    attrs = "{linear_before_reset = true, activations = []}"
    operation = f"mlc.recurrent gru %0, %1, %2 bias(%3 : <3>) {attrs} : <0>, <1>, <2> -> <r0>, <r1>, <r2>"
    check(operation, ["tensor<5x1x2x4xf32>", "tensor<1x2x4xf32>", "tensor<1x2x4xf32>"], *arrays)


COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]


def resize(mode: str, sizes: tuple[int, int], attrs: str, constant: bool = False) -> str:
    scales = [1.0, 1.0, sizes[0] / 4, sizes[1] / 5]
    result = f"tensor<1x2x{sizes[0]}x{sizes[1]}xf32>"
    before = f"%s = mlc.constant dense<{scales}> : tensor<4xf32>" if constant else ""
    operands, types = ("%0, %s", "<0>, tensor<4xf32>") if constant else ("%0, %1", "<0>, <1>")
    arrays = [floats(1, 2, 4, 5)] + ([] if constant else [np.array(scales, np.float32)])
    operation = f"mlc.resize {mode} {operands} [1, 2, {sizes[0]}, {sizes[1]}] {{{attrs}}} : {types} -> <r0>"
    return check(operation, [result], *arrays, before=before)


@pytest.mark.parametrize("coordinate", [*COORDINATES, "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [(7, 10), (3, 2)])
def test_resize(mode: str, coordinate: str, sizes: tuple[int, int]) -> None:
    resize(mode, sizes, f'coordinate = "{coordinate}"')


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("coordinate", ["half_pixel", "asymmetric"])
def test_resize_nearest_by_whole_factors(rounding: str, coordinate: str) -> None:
    attrs = f'coordinate = "{coordinate}", nearest_mode = "{rounding}"'
    decomposed = resize("nearest", (8, 15), attrs, constant=True)
    regular = (coordinate == "asymmetric") == (rounding == "floor") and rounding != "ceil"
    assert ("mlc.gather" not in decomposed) == regular


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resize_exclude_outside(mode: str) -> None:
    resize(mode, (9, 3), "exclude_outside = true")


QUANTIZATIONS = [((), []), ((3,), ["axis = 1 : i64"]), ((2, 2), ["axis = 1 : i64", "block_size = 2 : i64"])]


@pytest.mark.parametrize(("shape", "attrs"), QUANTIZATIONS)
@pytest.mark.parametrize("unsigned", [True, False])
def test_quantize_and_dequantize(shape: tuple[int, ...], attrs: list[str], unsigned: bool) -> None:
    columns = 4 if len(shape) == 2 else 3
    scale = np.asarray(np.abs(floats(*shape)) * 0.05 + 0.01, np.float32)
    zero = np.asarray(RNG.integers(-5, 5, shape), np.int8)
    attributes = f"{{{', '.join([*attrs, *(['unsigned'] if unsigned else [])])}}}"
    operation = f"mlc.quantize %0, %1 zero_point(%2 : <2>) {attributes} : <0>, <1> -> <r0>"
    check(operation, [f"tensor<2x{columns}xi8>"], floats(2, columns) * 5, scale, zero)
    x = RNG.integers(-128, 127, (2, columns)).astype(np.int8)
    operation = f"mlc.dequantize %0, %1 zero_point(%2 : <2>) {attributes} : <0>, <1> -> <r0>"
    check(operation, [f"tensor<2x{columns}xf32>"], x, scale, zero)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("outer", [(), (2,)])
def test_unpack(bits: int, outer: tuple[int, ...]) -> None:
    words = RNG.integers(-128, 128, (*outer, 3, 5, 4)).astype(np.int8)
    result = "x".join(map(str, [*outer, 3 * 32 // bits, 5]))
    check(f"mlc.unpack %0 {{bits = {bits} : i64}} : <0> -> <r0>", [f"tensor<{result}xi8>"], words)


@pytest.mark.parametrize(("axis", "result"), [(0, "5x2x3"), (2, "2x3x5")])
def test_one_hot(axis: int, result: str) -> None:
    indices = np.array([[0, 4, -1], [5, -5, 2]], np.int64)
    before = "%d = arith.constant 5 : index"
    operation = f"mlc.one_hot %0, %d, %1 {{axis = {axis} : i64}} : <0>, <1> -> <r0>"
    check(operation, [f"tensor<{result}xf32>"], indices, np.array([-1.0, 3.0], np.float32), before=before)


@pytest.mark.parametrize("upper", ["true", "false"])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_trilu(upper: str, k: int) -> None:
    before = f"%k = arith.constant {k} : index"
    operation = f"mlc.trilu %0, %k {{upper = {upper}}} : tensor<2x3x4xf32>"
    check(operation, ["tensor<2x3x4xf32>"], floats(2, 3, 4), before=before)
