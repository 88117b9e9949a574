"""The expansions of `mlc.kernels.common.vector_math`: accuracy, IEEE special cases, and the form of the IR.

`bench/ulp.py` measures the same functions on every float32.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("mlir.ir")
pytest.importorskip("mlc.compiler_setup")

from mlir import ir
from mlir.dialects import arith, func

from mlc import _native
from mlc.kernels.common import vector_math

ROOT = Path(__file__).resolve().parents[4]
Array = np.ndarray
NAN, INF = math.nan, math.inf

#: The largest error allowed, in ulp; measured over all float32 the errors are a little below.
LIMITS = {
    "exp": 1.0, "exp2": 1.0, "expm1": 1.5, "sigmoid": 3.5,
    "log": 1.0, "log2": 1.25, "log10": 1.0, "log1p": 1.75,
    "sin": 1.5, "cos": 1.5, "tan": 2.5, "asin": 1.5, "acos": 1.25, "atan": 1.5, "atan2": 1.75,
    "sinh": 1.75, "cosh": 1.5, "tanh": 3.5, "asinh": 1.75, "acosh": 2.25, "atanh": 1.5,
    "erf": 4.0, "powf": 1.75, "cbrt": 1.0, "rsqrt": 1.5,
}  # fmt: skip
UNARY = [name for name in LIMITS if name not in ("atan2", "powf")]
ODD = ["sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "cbrt", "expm1", "log1p"]


def load(path: str) -> ModuleType:
    """Imports a script of the repository."""
    name = Path(path).stem
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


ulp = load("bench/ulp.py")
Function = Callable[..., Array]


@functools.cache
def compiled(name: str, width: int = 16) -> Function:
    """The compiled function, once per session."""
    return ulp.build(name, width)


def evaluate(name: str, *operands: Sequence[float] | Array, width: int = 16) -> Array:
    """Applies operation `name` to short lists."""
    count = len(operands[0])
    lanes = max(width, 1)
    padded = [np.resize(np.array(values, np.float32), -(-count // lanes) * lanes) for values in operands]
    return compiled(name, width)(*padded)[:count]


def stratified(seed: int) -> Array:
    """2^20 bit patterns, one at random from each run of 4096, behind all special values."""
    rng = np.random.default_rng(seed)
    bits = np.arange(1 << 20, dtype=np.uint64) * 4096 + rng.integers(0, 4096, 1 << 20, dtype=np.uint64)
    special = ulp.special_values()
    values = bits.astype(np.uint32).view(np.float32)
    values[: special.size] = special
    return values


@pytest.mark.parametrize("name", UNARY)
def test_error_over_all_magnitudes(name: str) -> None:
    """A point in every 4096 bit patterns, and every special value."""
    values = stratified(len(name))
    error = ulp.ulp_error(compiled(name)(values), ulp.reference(name, [values]))
    at = int(np.argmax(error))
    assert error[at] <= LIMITS[name], f"{name}({values[at]!r}): {error[at]:.3f} ulp"


@pytest.mark.parametrize("name", UNARY)
def test_error_where_models_live(name: str) -> None:
    """Uniformly distributed moderate inputs, which bit patterns cover thinly."""
    values = np.random.default_rng(1).uniform(-12, 12, 1 << 20).astype(np.float32)
    error = ulp.ulp_error(compiled(name)(values), ulp.reference(name, [values]))
    at = int(np.argmax(error))
    assert error[at] <= LIMITS[name], f"{name}({values[at]!r}): {error[at]:.3f} ulp"


@pytest.mark.parametrize("name", ["powf", "atan2"])
def test_error_of_pairs(name: str) -> None:
    """All pairs of special values, random bits, powers that nearly over- or underflow."""
    for operands in ulp.pairs(np.random.default_rng(2), 1 << 18):
        error = ulp.ulp_error(compiled(name)(*operands), ulp.reference(name, operands))
        at = int(np.argmax(error))
        assert error[at] <= LIMITS[name], f"{name}{tuple(float(o[at]) for o in operands)}: {error[at]:.3f} ulp"


def test_sine_near_multiples_of_half_pi() -> None:
    """The float32 numbers closest to multiples of pi/2, small and huge, where cancellation is worst."""
    multiples = np.concatenate([np.arange(1, 100000), np.logspace(5, 38, 100000)]) * (math.pi / 2)
    values = multiples[: multiples.size // 16 * 16].astype(np.float32)
    for name in ("sin", "cos", "tan"):
        error = ulp.ulp_error(compiled(name)(values), ulp.reference(name, [values]))
        at = int(np.argmax(error))
        assert error[at] <= LIMITS[name], f"{name}({values[at]!r}): {error[at]:.3f} ulp"


@pytest.mark.parametrize(
    ("name", "inputs", "expected"),
    [
        ("exp", [-INF, INF, -0.0, -104.0, 89.0, -103.0], [0, INF, 1, 0, INF, 1.4012985e-45]),
        (
            "exp2",
            [-INF, INF, 0.0, -149.0, -151.0, 128.0, 127.0],
            [0, INF, 1, 1.4012985e-45, 0, INF, 2.0**127],
        ),
        ("expm1", [-INF, INF, -0.0, 1e-45], [-1, INF, -0.0, 1e-45]),
        ("sigmoid", [-INF, INF, 0.0], [0, 1, 0.5]),
        ("log", [0.0, -0.0, -1.0, -INF, INF, 1.0], [-INF, -INF, NAN, NAN, INF, 0]),
        ("log2", [0.0, -1.0, INF, 8.0, 1.4012985e-45, 2.0**-130], [-INF, NAN, INF, 3, -149, -130]),
        ("log10", [0.0, -1.0, INF, 1.0], [-INF, NAN, INF, 0]),
        ("log1p", [-1.0, -2.0, INF, -0.0, 1e-45], [-INF, NAN, INF, -0.0, 1e-45]),
        ("sin", [0.0, -0.0, INF, -INF], [0, -0.0, NAN, NAN]),
        ("cos", [0.0, -0.0, INF, -INF], [1, 1, NAN, NAN]),
        ("tanh", [0.0, -0.0, INF, -INF, 1e-45, 20.0], [0, -0.0, 1, -1, 1e-45, 1]),
        ("erf", [0.0, -0.0, INF, -INF, 5.0], [0, -0.0, 1, -1, 1]),
        ("asin", [1.5, -0.0, -1.0], [NAN, -0.0, -math.pi / 2]),
        ("acos", [1.5, 1.0, -1.0], [NAN, 0, math.pi]),
        ("acosh", [1.0, 0.5, INF, -INF], [0, NAN, INF, NAN]),
        ("atanh", [1.0, -1.0, 1.5, -0.0], [INF, -INF, NAN, -0.0]),
        ("cosh", [0.0, -INF, INF], [1, INF, INF]),
        ("cbrt", [27.0, -0.0, -INF, -8.0], [3, -0.0, -INF, -2]),
        ("rsqrt", [0.0, -0.0, INF, -1.0, 4.0], [INF, -INF, 0, NAN, 0.5]),
    ],
)
def test_special_values(name: str, inputs: list[float], expected: list[float]) -> None:
    """Exact results of IEEE 754 / C99 Annex F, bit for bit; a NaN argument gives NaN."""
    result = evaluate(name, [*inputs, NAN])
    wanted = np.array([*expected, NAN], np.float32)
    np.testing.assert_array_equal(result, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(wanted[numbers]))


POWERS = [
    (0.0, -3.0, INF), (-0.0, -3.0, -INF), (-0.0, -2.0, INF), (0.0, 3.0, 0.0), (-0.0, 3.0, -0.0),
    (-0.0, 2.5, 0.0), (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (1.0, NAN, 1.0), (NAN, 0.0, 1.0),
    (NAN, 1.0, NAN), (2.0, NAN, NAN), (0.5, -INF, INF), (2.0, -INF, 0.0), (0.5, INF, 0.0), (2.0, INF, INF),
    (-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 0.5, INF), (INF, -0.1, 0.0),
    (INF, 0.1, INF), (-2.0, 3.0, -8.0), (-2.0, 0.5, NAN), (-2.0, -2.0, 0.25), (2.0, -149.0, 1.4012985e-45),
    (2.0, 128.0, INF), (0.0, 1e-30, 0.0), (-1.0, 16777215.0, -1.0),
]  # fmt: skip


def test_power_special_values() -> None:
    """C99 Annex F.9.4.4."""
    base, exponent, wanted = (np.array(column, np.float32) for column in zip(*POWERS, strict=True))
    result = evaluate("powf", base, exponent)
    np.testing.assert_array_equal(result, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize(
    ("exponent", "limit"),
    [
        (0.0, 0),
        (1.0, 0),
        (2.0, 0.5),
        (3.0, 1.5),
        (-1.0, 0.5),
        (0.5, 0.5),
        (-0.5, 1.5),
    ],
)
def test_powers_with_a_constant_exponent(exponent: float, limit: float) -> None:
    """The products and roots agree with the power, special cases included."""
    values = stratified(7)
    exact = ulp.reference("powf", [values, np.full_like(values, exponent)])
    error = ulp.ulp_error(ulp.build("powf", constant=exponent)(values), exact)
    at = int(np.argmax(error))
    assert error[at] <= limit, f"{values[at]!r}**{exponent}: {error[at]:.3f} ulp"
    assert "arith.select" not in str(emitted_power(2.0))


def test_exponential_for_softmax() -> None:
    """Its error hardly grows with the argument, which is not rounded after it is scaled; 0 for -inf and where the result's quotient
    by a sum may be subnormal, 1 for 0, NaN for NaN.
    """
    values = -np.abs(stratified(8))
    result = ulp.build("exp_nonpositive")(values)
    exact = ulp.reference("exp", [values])
    normal = exact >= 2.0**-103.4
    assert (result[~normal & (exact >= 2.0**-103.6)] <= 2.0**-103).all()
    small = np.abs(values) <= 0.5
    assert ulp.ulp_error(result[small], exact[small]).max() <= 2.0
    error = np.abs(result[normal] / exact[normal] - 1)
    assert (error <= 2.0**-22.5 + np.abs(values[normal]) * 2.0**-26).all()
    assert (result[exact < 2.0**-103.6] == 0).all()
    assert (result[values == 0] == 1).all() and (values == 0).any()
    assert np.isnan(result[np.isnan(values)]).all()


needs_avx512 = pytest.mark.skipif("+avx512f" not in _native.host_info()["features"], reason="AVX-512 only")


@needs_avx512
@pytest.mark.parametrize("option", ["scalef", "scalef=2"])
def test_exponential_for_softmax_by_scalef(option: str) -> None:
    """The argument is rounded once more; results that are too small to be divided are 0."""
    values = -np.abs(stratified(8))
    values[-5:] = -1e9, -1e16, -1e30, np.finfo(np.float32).min, -np.inf
    result, normal = ulp.build(f"exp_nonpositive/{option}")(values), values >= -71.6
    error = np.abs(result[normal] / np.exp(values[normal].astype(np.float64)) - 1)
    assert normal.any() and (error <= 2.0**-22.6 + np.abs(values[normal]) * 2.0**-23.6).all()
    small = ~np.isnan(values) & ~normal
    assert (np.abs(result[small] - np.exp(values[small].astype(np.float64))) <= 2.0**-103).all()
    assert (result[values < -71.9].view(np.uint32) == 0).all()
    assert (result[values == 0] == 1).all() and (values == 0).any()
    assert np.isnan(result[np.isnan(values)]).all()


@needs_avx512
def test_exponential_for_softmax_with_subnormal_results() -> None:
    values = -np.abs(stratified(8))
    values[-5:] = -1e9, -1e16, -1e30, np.finfo(np.float32).min, -np.inf
    result, exact = ulp.build("exp_nonpositive/scalef=3")(values), np.exp(values.astype(np.float64))
    normal = values >= -87
    assert (np.abs(result[normal] / exact[normal] - 1) <= 2.0**-22.6 + np.abs(values[normal]) * 2.0**-23.6).all()
    small = (values < -87) & (values > -103)
    assert small.any() and ((result[small] > 0) & (np.abs(result[small] - exact[small]) <= 2.0**-143)).all()
    assert (result[values < -104.1].view(np.uint32) == 0).all()
    assert (result[values == 0] == 1).all() and np.isnan(result[np.isnan(values)]).all()


@needs_avx512
@pytest.mark.parametrize("most", [0.0, 3.25, -700.125, 1e5, -1e9, 1.07e9, 1.08e9, -1e20, 3.4e38, -3.4028235e38])
def test_exponential_of_a_shifted_row(most: float) -> None:
    """Quotients by the power of the largest element are those of e^(x - most), for x of any size; what is not finite
    comes out as the difference would say."""
    most = float(np.float32(most))
    below = np.abs(stratified(8))
    below = below[np.isfinite(below)]
    with np.errstate(over="ignore"):
        x = (most - below[: below.size // 16 * 16].astype(np.float64)).astype(np.float32)
    x[:16] = most
    x[-1] = -np.inf
    result = ulp.build("exp_shifted/scalef=3", constant=most)(x).astype(np.float64)
    distance = x.astype(np.float64) - most
    near = distance >= -60
    assert near[:16].all() and np.isfinite(result).all() and (2.0**-65 <= result[0] <= 2.0**65)
    error = np.abs(result[near] / result[0] / np.exp(distance[near]) - 1)
    assert (error <= 2.0**-21.5 + np.abs(distance[near]) * 2.0**-23.6).all()
    assert (result[~near] / result[0] <= 2.0**-60).all() and result[-1] == 0


@needs_avx512
@pytest.mark.parametrize("most", [np.inf, -np.inf])
def test_exponential_of_a_row_that_is_not_finite(most: float) -> None:
    x = np.array([most, -np.inf, np.nan, *[-1.0] * 13], np.float32)
    result = ulp.build("exp_shifted/scalef=3", constant=most)(x)
    with np.errstate(invalid="ignore"):
        expected = np.exp(np.minimum(x - np.float32(most), 0))
    kept = 16 if most > 0 else 3  # nothing is larger than the largest
    np.testing.assert_array_equal(result[:kept], expected[:kept])


@pytest.mark.parametrize("name", ODD)
def test_small_arguments_return_themselves(name: str) -> None:
    """Functions with slope 1 at 0 return a subnormal x unchanged; tanh (1 ulp), erf and cbrt keep at least its sign."""
    values = [1e-45, -1e-45, 3e-39, -3e-39, 0.0, -0.0]
    result = evaluate(name, values)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(np.array(values, np.float32)))
    if name not in ("tanh", "erf", "cbrt"):
        np.testing.assert_array_equal(result, np.array(values, np.float32))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("width", [0, 5])
def test_other_widths_agree(name: str, width: int) -> None:
    """Scalars and vectors of odd length compute the same bits as vectors of 16."""
    values = np.random.default_rng(3).uniform(-20, 20, 1280).astype(np.float32)
    values[: ulp.special_values().size] = ulp.special_values()
    np.testing.assert_array_equal(evaluate(name, values, width=width), evaluate(name, values))


ALLOWED_MATH = {"math.fma", "math.absf", "math.copysign", "math.sqrt", "math.trunc"}


def emitted(name: str, type_text: str, operands: int = 1) -> ir.Module | None:
    """A verified module with the expansion of `name` on arguments of the given type; None if refused."""
    with ir.Context(), ir.Location.unknown():
        module, type_ = ir.Module.create(), ir.Type.parse(type_text)
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([type_] * operands, [type_]))
        with ir.InsertionPoint(function.add_entry_block()):
            result = vector_math.expand(name, list(function.arguments))
            if result is None:
                return None
            func.ReturnOp([result])
        assert module.operation.verify()
        return module


def emitted_power(exponent: float) -> ir.Module:
    """The expansion of x ** exponent on vectors."""
    with ir.Context(), ir.Location.unknown():
        module, type_ = ir.Module.create(), ir.Type.parse("vector<16xf32>")
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([type_], [type_]))
        with ir.InsertionPoint(function.add_entry_block()):
            splat = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(ir.F32Type.get(), exponent))
            power = vector_math.expand("math.powf", [function.arguments[0], arith.ConstantOp(type_, splat).result])
            func.ReturnOp([power])
        return module


@pytest.mark.parametrize("name", sorted(vector_math.SUPPORTED))
@pytest.mark.parametrize("type_text", ["f32", "vector<16xf32>", "vector<2x8xf32>"])
def test_only_operations_with_instructions(name: str, type_text: str) -> None:
    """No call to libm is left, and no fast-math flag endangers NaN and infinity."""
    module = emitted(name, type_text, 2 if name in ("math.powf", "math.atan2") else 1)
    assert module is not None
    text = str(module)
    assert "fastmath" not in text
    used = {word for word in text.split() if word.startswith("math.")}
    assert used <= ALLOWED_MATH, used - ALLOWED_MATH


@pytest.mark.parametrize("type_text", ["f64", "f16", "bf16", "vector<8xf64>"])
def test_other_types_are_refused(type_text: str) -> None:
    """Types without an expansion leave the operation to the caller."""
    assert emitted("math.exp", type_text) is None


def test_unknown_operations_are_refused() -> None:
    """Operations that are instructions already stay as they are."""
    assert emitted("math.floor", "f32") is None


def test_coefficients_are_up_to_date() -> None:
    """Running the fitter again gives the checked-in file (but for last digits on another LAPACK)."""
    fitter = load("tools/fit_minimax.py")
    names: dict[str, object] = {}
    exec(fitter.render(), names)  # the text of a Python module of constants
    from mlc.kernels.common.vector_math import coefficients

    stored = {key: value for key, value in vars(coefficients).items() if key.isupper()}
    assert stored.keys() == {key for key in names if key.isupper()}
    for key, value in stored.items():
        np.testing.assert_allclose(
            np.array(names[key], np.float64), np.array(value, np.float64), rtol=2.0**-22, err_msg=key
        )


@pytest.mark.parametrize(("name", "one"), [("tanh", 9.3), ("erf", 3.8)])
def test_functions_of_halves_stay_within_one(name: str, one: float) -> None:
    """Their formula does not forbid more than 1, their coefficients do; and they are odd to the last bit."""
    values = np.concatenate([stratified(9), np.linspace(one / 2, one * 1.25, 1 << 20, dtype=np.float32)])
    result = compiled(name)(values)
    numbers = ~np.isnan(values)
    assert np.abs(result[numbers]).max() == 1
    assert (np.abs(result[numbers & (np.abs(values) >= one)]) == 1).all()
    np.testing.assert_array_equal(compiled(name)(-values)[numbers].view(np.uint32), (-result[numbers]).view(np.uint32))


@pytest.mark.parametrize("name", ["one_plus_erf", "one_plus_tanh"])
def test_functions_plus_one_are_absolutely_accurate(name: str) -> None:
    edges = [0.0, -0.0, 1e-30, -1e-30, 3e38, -3e38, INF, -INF] * 2
    values = np.concatenate([np.linspace(-12, 12, 1 << 20), edges]).astype(np.float32)
    wide = values.astype(np.float64)
    expected = 1 + (np.tanh(wide) if name.endswith("tanh") else ulp.erf(wide))
    result = ulp.build(name)(values).astype(np.float64)
    assert np.max(np.abs(result - expected)) <= 2.0**-21.9
    assert np.all((result >= 0) & (result <= 2))
    assert np.all(result[np.abs(wide) > 1e30] == np.where(wide[np.abs(wide) > 1e30] < 0, 0, 2))
    far = wide < -8
    assert np.all(result[far] < 3e-7)
    assert np.isnan(ulp.build(name)(np.full(16, NAN, np.float32))).all()
