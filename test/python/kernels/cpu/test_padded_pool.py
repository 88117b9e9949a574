"""Pools of padded images whose channels are vectors: taps in the padding are left out, without a padded copy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mlc


@dataclass(frozen=True)
class Case:
    """One pool: the image, and per dimension of it window, stride, dilation and padding in front and behind."""

    image: Sequence[int]
    window: Sequence[int]
    strides: Sequence[int]
    padding: Sequence[tuple[int, int]]
    dilations: Sequence[int] = ()
    channels: int = 16
    images: int = 2
    ceil_extra: Sequence[int] = ()

    def dilation(self) -> Sequence[int]:
        return self.dilations or [1] * len(self.image)

    def extents(self) -> list[int]:
        """Of the result."""
        dims = zip(self.image, self.window, self.strides, self.padding, self.dilation(), strict=True)
        return [(n + low + high - (k - 1) * d - 1) // s + 1 for n, k, s, (low, high), d in dims]


CASES = {
    "3x3 by 2, as in ResNet": Case((14, 14), (3, 3), (2, 2), ((1, 1), (1, 1))),
    "3x3 by 1": Case((9, 7), (3, 3), (1, 1), ((1, 1), (1, 1)), channels=24),
    "channels that are no whole vectors": Case((9, 7), (3, 3), (1, 1), ((1, 1), (1, 1)), channels=13),
    "3 channels": Case((8, 9), (2, 3), (1, 2), ((1, 0), (1, 2)), channels=3),
    "1 channel": Case((8, 19), (3, 3), (2, 2), ((1, 1), (1, 1)), channels=1),
    "dilated": Case((11, 13), (3, 3), (1, 2), ((2, 2), (3, 3)), (2, 3)),
    "dilated, both taps beside one pixel": Case((1, 1), (2, 2), (1, 1), ((1, 1), (1, 1)), (2, 2)),
    "padding behind only": Case((8, 8), (3, 3), (2, 2), ((0, 1), (0, 1))),
    "padding that no window reads": Case((7, 7), (2, 2), (2, 2), ((0, 1), (0, 1))),
    "window larger than the image": Case((2, 3), (5, 5), (1, 1), ((3, 3), (2, 2))),
    "one dimension padded": Case((8, 8), (3, 1), (1, 1), ((1, 1), (0, 0))),
    "rounded up": Case((8, 8), (3, 3), (2, 2), ((1, 2), (1, 2)), ceil_extra=(1, 1)),
    "line": Case((21,), (4,), (3,), ((2, 1),)),
    "volume": Case((4, 5, 6), (3, 2, 3), (2, 1, 2), ((1, 1), (0, 1), (1, 0))),
}
TYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "i8": np.int8,
    "ui8": np.uint8,
}


def _pooled(x: np.ndarray, case: Case, kind: str) -> np.ndarray:
    """The pool by its definition, computed in `float64` or `int64`."""
    wide = x.astype(int if x.dtype.kind in "iu" else np.float64)
    result = np.zeros((len(x), *case.extents(), x.shape[-1]))
    for point in itertools.product(*map(range, case.extents())):
        where = [p * s - low for p, s, (low, _) in zip(point, case.strides, case.padding, strict=True)]
        found, counted = [], 0
        for tap in itertools.product(*map(range, case.window)):
            at = [w + t * d for w, t, d in zip(where, tap, case.dilation(), strict=True)]
            extra = case.ceil_extra or [0] * len(at)
            ends = [n + high - e for n, (_, high), e in zip(case.image, case.padding, extra, strict=True)]
            counted += all(a < end for a, end in zip(at, ends, strict=True))
            if all(0 <= a < n for a, n in zip(at, case.image, strict=True)):
                found.append(wide[(slice(None), *at)])
        if kind == "max":
            result[(slice(None), *point)] = np.max(found, 0) if found else -np.inf
        else:
            total = np.sum(found, 0) if found else 0 * wide[(slice(None), *[0] * len(where))]
            result[(slice(None), *point)] = total / {"sum": 1, "avg": len(found) or np.nan, "counted": counted}[kind]
    return result


def _compiled(tmp_path: Path, case: Case, kind: str, element: str, dynamic: str = "") -> mlc.Model:
    """`mlc.pool` of the case; `dynamic` names what is known at run time only: "n" for images, "hw" for the image."""
    images = ["?" if "n" in dynamic else case.images]
    image, result = ([["?"] * len(case.image)] * 2) if "hw" in dynamic else (case.image, case.extents())
    of = element.removeprefix("u")
    source, target = (f"tensor<{'x'.join(map(str, [*images, *size, case.channels, of]))}>" for size in (image, result))
    arrays = {
        "kernel": case.window,
        "strides": case.strides,
        "padding": [*(low for low, _ in case.padding), *(high for _, high in case.padding)],
        "dilations": case.dilation(),
        **({"ceil_extra": case.ceil_extra} if case.ceil_extra else {}),
    }
    attributes = [f"{name} = array<i64: {', '.join(map(str, values))}>" for name, values in arrays.items()]
    attributes.append(f"count_include_pad = {str(kind == 'counted').lower()}")
    attributes += ['layout = "nhwc"', *(["unsigned"] if element == "ui8" else [])]
    word = {"counted": "avg"}.get(kind, kind)
    path = tmp_path / "pool.mlir"
    path.write_text(f"""module attributes {{mlc.phase = "layout"}} {{
      func.func @main(%x: {source} {{mlc.name = "x"}}) -> ({target} {{mlc.name = "y"}}) {{
        %y = mlc.pool {word} %x {{{", ".join(attributes)}}} : {source} -> {target}
        return %y : {target} }} }}""")
    return mlc.compile(path, output=tmp_path / "pool.so")


def _templates(model: mlc.Model) -> list[str]:
    return [kernel["template"] for kernel in model.metadata["kernels"]]


@pytest.mark.parametrize("kind", ["max", "avg", "counted", "sum"])
@pytest.mark.parametrize("name", CASES)
def test_pools_of_every_form(tmp_path: Path, name: str, kind: str) -> None:
    case = CASES[name]
    model = _compiled(tmp_path, case, kind, "f32")
    x = np.random.default_rng(1).standard_normal((case.images, *case.image, case.channels)).astype(np.float32)
    np.testing.assert_allclose(model(x)[0], _pooled(x, case, kind), rtol=1e-5, atol=1e-6)
    assert _templates(model) == ["loops"] * (1 if case.channels > 1 else 2)


@pytest.mark.parametrize("kind", ["max", "sum"])
@pytest.mark.parametrize("element", TYPES)
def test_pools_of_every_type(tmp_path: Path, element: str, kind: str) -> None:
    case = Case((9, 8), (3, 3), (2, 2), ((1, 1), (1, 1)), channels=37)
    model = _compiled(tmp_path, case, kind, element)
    assert _templates(model) == ["loops"]
    low, high = (0, 28) if element == "ui8" else (-14, 15)
    x = np.random.default_rng(2).integers(low, high, (2, 9, 8, 37)).astype(TYPES[element])
    if element == "ui8":
        x[:, ::2] += 200 if kind == "max" else 0
        (y,) = model(x.view(np.int8))  # the IR's types have no signs
    else:
        (y,) = model(x)
    np.testing.assert_array_equal(y.view(x.dtype), _pooled(x, case, kind).astype(x.dtype))


@pytest.mark.parametrize("dynamic", ["n", "hw", "nhw"])
@pytest.mark.parametrize("kind", ["max", "avg", "counted"])
@pytest.mark.parametrize("name", ["3x3 by 2, as in ResNet", "dilated", "rounded up", "line"])
def test_pools_of_extents_that_only_a_run_knows(tmp_path: Path, name: str, kind: str, dynamic: str) -> None:
    case = CASES[name]
    model = _compiled(tmp_path, case, kind, "f32", dynamic)
    assert _templates(model) == ["loops"]
    for more in (0, 5):
        images = case.images + more if "n" in dynamic else case.images
        other = replace(case, images=images, image=[n + more * ("hw" in dynamic) for n in case.image])
        x = np.random.default_rng(1).standard_normal((images, *other.image, case.channels)).astype(np.float32)
        np.testing.assert_allclose(model(x)[0], _pooled(x, other, kind), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_nan_and_infinities(tmp_path: Path, element: str) -> None:
    """A NaN, of either sign, is the largest of its windows, and windows of nothing but the least number have that."""
    case = Case((7, 7), (3, 3), (2, 2), ((1, 1), (1, 1)), channels=19)
    model = _compiled(tmp_path, case, "max", element)
    x = np.full((2, 7, 7, 19), -np.inf, np.float32)
    x[:, 2] = 1
    x[1, 3, 0, 5], x[1, 3, 0, 6], x[0, 0, 0, 3] = np.nan, np.copysign(np.nan, np.float32(-1)), np.inf
    expected = np.full((2, 4, 4, 19), -np.inf, np.float32)
    expected[:, 1] = 1
    expected[1, 1:3, 0, 5:7], expected[0, 0, 0, 3] = np.nan, np.inf
    (y,) = model(x.astype(TYPES[element]))
    np.testing.assert_array_equal(y.astype(np.float32), expected)


def test_largest_of_every_number(tmp_path: Path) -> None:
    """Numbers of bf16 are compared by their bits: each of them against others, of which none is in its order."""
    case = Case((256, 256), (1, 3), (1, 1), ((0, 0), (1, 1)), channels=2, images=1)
    model = _compiled(tmp_path, case, "max", "bf16")
    bits = np.arange(1 << 16, dtype=np.uint16)
    both = np.stack([bits, bits * np.uint16(40503)], -1).reshape(1, 256, 256, 2)
    x = both.view(ml_dtypes.bfloat16)
    wide = np.pad(x.astype(np.float32), ((0, 0), (0, 0), (1, 1), (0, 0)), constant_values=-np.inf)
    expected = np.maximum(np.maximum(wide[:, :, :-2], wide[:, :, 1:-1]), wide[:, :, 2:])
    np.testing.assert_array_equal(model(x)[0].astype(np.float32), expected)
