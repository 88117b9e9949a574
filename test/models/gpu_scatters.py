"""GPU cases that write updates into tensors: many threads, and the results of one update after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.gpu_cases import Arrays, Case, integers, normal

_COMBINED = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def updated(a: Arrays, at: tuple[np.ndarray, ...], kind: str) -> np.ndarray:
    """`x` with `u` at `at`, in order; floats are added in float64."""
    y = a["x"].astype(np.float64) if a["x"].dtype.kind == "f" else a["x"].copy()
    if kind == "none":
        y[at] = a["u"]  # of equal positions the last one counts
    else:
        _COMBINED[kind].at(y, at, a["u"])
    return y


def _elements(
    name: str, x: np.ndarray, i: np.ndarray, u: np.ndarray, axis: int = 0, kind: str = "none", **options: Any
) -> Case:
    def expected(a: Arrays) -> list[np.ndarray]:
        at = list(np.indices(a["i"].shape))
        at[axis] = a["i"] % a["x"].shape[axis]
        return [updated(a, tuple(at), kind)]

    node = ("ScatterElements", ["x", "i", "u"], ["y"], {"axis": axis, "reduction": kind})
    exact = {} if kind in ("add", "mul") and x.dtype.kind == "f" else {"tolerance": 0}
    return Case(
        name, [node], lambda: {"x": x, "i": i, "u": u}, expected, {"y": x.dtype.name}, opset=18, **{**exact, **options}
    )


def _slices(name: str, x: np.ndarray, i: np.ndarray, u: np.ndarray, kind: str = "none", **options: Any) -> Case:
    def expected(a: Arrays) -> list[np.ndarray]:
        at = tuple(a["i"][..., n] % a["x"].shape[n] for n in range(a["i"].shape[-1]))
        return [updated(a, at, kind)]

    node = ("ScatterND", ["x", "i", "u"], ["y"], {"reduction": kind})
    exact = {} if kind in ("add", "mul") and x.dtype.kind == "f" else {"tolerance": 0}
    return Case(
        name, [node], lambda: {"x": x, "i": i, "u": u}, expected, {"y": x.dtype.name}, opset=18, **{**exact, **options}
    )


def _places(count: int, extents: Sequence[int]) -> np.ndarray:
    """`count` coordinates within `extents`, some counted from the end."""
    found = [integers(-extent, extent, count, n + 1)[:, 0] for n, extent in enumerate(extents)]
    return np.stack(found, 1)


def _chained() -> Case:
    """What is updated is computed before, by nobody else wanted, and read afterwards."""
    x, i, u = normal(40, 60), integers(0, 60, 40, 30), normal(40, 30, seed=1)
    nodes = [
        ("Relu", ["x"], ["r"]),
        ("ScatterElements", ["r", "i", "u"], ["s"], {"axis": 1, "reduction": "add"}),
        ("Neg", ["s"], ["y"]),
    ]

    def expected(a: Arrays) -> list[np.ndarray]:
        rows = np.broadcast_to(np.arange(40)[:, None], a["i"].shape)
        return [-updated({**a, "x": np.maximum(a["x"], 0)}, (rows, a["i"]), "add")]

    return Case(
        "scatter_chained", nodes, lambda: {"x": x, "i": i, "u": u}, expected, {"y": "float32"}, opset=18,
        tolerance=2e-6,
    )  # fmt: skip


def _counted() -> Case:
    """How often each number occurs: into zeros."""
    i = integers(0, 50, 6000)
    node = ("ScatterElements", ["zeros", "i", "ones"], ["y"], {"axis": 0, "reduction": "add"})
    constants = {"zeros": np.zeros(50, np.int64), "ones": np.ones(6000, np.int64)}
    return Case(
        "scatter_counts", [node], lambda: {"i": i}, lambda a: [np.bincount(a["i"], minlength=50)], {"y": "int64"},
        constants=constants, opset=18, tolerance=0,
    )  # fmt: skip


def _into_weight() -> Case:
    """What is updated is a weight, which stays as it is."""
    x, i = normal(64, 12), integers(0, 64, 20, 1)
    node = ("ScatterND", ["x", "i", "u"], ["y"], {"reduction": "none"})
    return Case(
        "scatter_weight", [node], lambda: {"i": i, "u": normal(20, 12, seed=1)},
        lambda a: [updated({**a, "x": x}, (a["i"][:, 0],), "none")], {"y": "float32"}, constants={"x": x}, opset=18,
        tolerance=0,
    )  # fmt: skip


def scatter_cases() -> list[Case]:
    """Updates that replace, few and many; reductions in order, and those whose order does not matter."""
    wrong = _places(200, (30, 17))
    wrong[77, 1] = 17
    odd = normal(300, 40, seed=1)
    odd[::7, 3], odd[1::7, 3], odd[5] = np.nan, np.inf, -0.0
    words = (integers(0, 1 << 32, 5000) - (1 << 31)).astype(np.int32)
    places = integers(-300, 300, 5000)
    return [
        _elements("scatter_last", normal(300), places, normal(5000, seed=1)),
        _elements("scatter_last_rows", normal(20, 700, dtype="float16"), integers(0, 700, 18, 650),
                  normal(18, 650, seed=1, dtype="float16"), 1),
        _elements("scatter_last_columns", normal(90, 44), integers(0, 90, 70, 40), normal(70, 40, seed=1)),
        _elements("scatter_few", normal(500, 64), integers(0, 64, 500, 4), normal(500, 4, seed=1), 1),
        _elements("scatter_bools", integers(0, 2, 200).astype(bool), integers(0, 200, 900),
                  integers(0, 2, 900).astype(bool)),
        _elements("scatter_last_dynamic", normal(300, 6), integers(0, 300, 250, 6), normal(250, 6, seed=1),
                  dims={"x": ["n", "k"], "i": ["m", "k"], "u": ["m", "k"]}),
        _elements("scatter_add_columns", normal(120, 33), integers(0, 120, 300, 33), normal(300, 33, seed=1),
                  kind="add", tolerance=2e-6),
        _elements("scatter_mul", normal(8, 50), integers(0, 50, 8, 40), normal(8, 40, seed=1), 1, "mul",
                  tolerance=2e-6),
        _elements("scatter_max_odd", normal(60, 40), integers(0, 60, 300, 40), odd, kind="max"),
        _elements("scatter_add_bytes", integers(-5, 5, 50, 9, dtype="int8"), integers(0, 50, 70, 9),
                  integers(-3, 3, 70, 9, dtype="int8"), kind="add"),
        _elements("scatter_max_bytes", integers(0, 256, 50, 9, dtype="uint8"), integers(0, 50, 70, 9),
                  integers(0, 256, 70, 9, dtype="uint8"), kind="max"),
        _elements("scatter_add_longs", integers(0, 9, 300) << 40, places, integers(-9, 9, 5000) << 33, kind="add"),
        *(_elements(f"scatter_{kind}_words", words[:300], places, words, kind=kind) for kind in ("max", "min", "add")),
        _slices("scatter_nd_last", normal(30, 17, 8), _places(500, (30, 17)), normal(500, 8, seed=1)),
        _slices("scatter_nd_points", integers(-128, 127, 40, 50, dtype="int8"), _places(3000, (40, 50)),
                integers(-128, 127, 3000, dtype="int8")),
        _slices("scatter_nd_cache", normal(64, 4, 32), np.array([[7], [9], [7]]), normal(3, 4, 32, seed=1)),
        _slices("scatter_nd_add", normal(10, 300), _places(100, (10,)), normal(100, 300, seed=1), "add",
                tolerance=2e-6),
        _slices("scatter_nd_add_longs", integers(0, 9, 40, 50), _places(3000, (40, 50)), integers(-9, 9, 3000), "add"),
        _slices("scatter_nd_dynamic", normal(30, 17, 8), _places(500, (30, 17)).reshape(20, 25, 2),
                normal(20, 25, 8, seed=1), dims={"x": ["a", "b", "c"], "i": ["d", "e", 2], "u": ["d", "e", "c"]}),
        _slices("scatter_nd_wrong", normal(30, 17, 8), wrong, normal(200, 8, seed=1), error=(1, 17)),
        _chained(),
        _counted(),
        _into_weight(),
    ]  # fmt: skip
