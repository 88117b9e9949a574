"""GPU cases of long reductions with few results, which are done in two steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from models.gpu_cases import Arrays, Case, integers, normal, softmax


def _reduced(
    name: str, op: str, function: Callable[..., Any], x: np.ndarray, axes: Sequence[int], tolerance: float = 0
) -> Case:
    """`op` of opset 18, with axes as an input; compared with `function` in float64, or in the type of integers."""

    def expected(a: Arrays) -> list[np.ndarray]:
        wide = a["x"].astype(np.float64) if a["x"].dtype.kind == "f" else a["x"]
        return [np.asarray(function(wide, axis=tuple(axes)))]

    return Case(
        f"parts_{name}", [(op, ["x", "axes"], ["y"], {"keepdims": 0})], lambda: {"x": x}, expected,
        {"y": x.dtype.name}, constants={"axes": np.array(axes, np.int64)}, tolerance=tolerance, opset=20,
    )  # fmt: skip


def _near_one(*shape: int) -> np.ndarray:
    return np.exp(normal(*shape) * np.float32(0.01))


def _log_sum_exp(x: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    top = x.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(x - top).sum(axis=axis))


def _extreme_cases() -> list[Case]:
    half = normal(24_000, 7, dtype="float16")
    half[11_111, 3], half[:, 5] = np.nan, np.inf
    return [
        _reduced("max_bytes", "ReduceMax", np.max, integers(0, 256, 3, 80_000, 4, dtype="uint8"), (1,)),
        _reduced("min_longs", "ReduceMin", np.min, integers(0, 1 << 60, 9001, 5) - (1 << 59), (0,)),
        _reduced("min_odd_half", "ReduceMin", np.min, half, (0,)),
        _reduced("max_row", "ReduceMax", np.max, normal(1, 200_003), (1,)),
    ]


def _statistics(shape: Sequence[int]) -> Case:
    """Mean and variance of channels, the last dimension: what is subtracted has an element for each."""
    axes = list(range(len(shape) - 1))

    def expected(a: Arrays) -> list[np.ndarray]:
        wide = a["x"].astype(np.float64)
        return [wide.mean(axis=tuple(axes), keepdims=True), wide.var(axis=tuple(axes), keepdims=True)]

    nodes = [
        ("ReduceMean", ["x", "axes"], ["m"], {"keepdims": 1}),
        ("Sub", ["x", "m"], ["d"]),
        ("Mul", ["d", "d"], ["s"]),
        ("ReduceMean", ["s", "axes"], ["v"], {"keepdims": 1}),
    ]
    return Case(
        f"parts_statistics_{shape[0]}", nodes, lambda: {"x": normal(*shape) + np.float32(3)}, expected,
        {"m": "float32", "v": "float32"}, constants={"axes": np.array(axes, np.int64)}, opset=20,
    )  # fmt: skip


def _joined_cases() -> list[Case]:
    """Operations in front of a reduction and behind it."""
    weighted = [("Mul", ["x", "w"], ["z"]), ("Abs", ["z"], ["a"]), ("ReduceSum", ["a", "axes"], ["y"], {"keepdims": 0})]
    x, w = normal(20_000, 6), normal(20_000, 1, seed=1)
    within = [("Mul", ["x", "w"], ["z"]), ("ReduceMax", ["z", "axes"], ["y"], {"keepdims": 0})]
    picture, line = normal(150, 300, 4), normal(300, 1, seed=1)
    return [
        Case("parts_weighted", weighted, lambda: {"x": x, "w": w},
             lambda a: [np.abs(a["x"].astype(np.float64) * a["w"]).sum(axis=0)], {"y": "float32"},
             constants={"axes": np.array([0])}, opset=20),
        # What is multiplied has one of the dimensions that are reduced together.
        Case("parts_weighted_lines", within, lambda: {"x": picture, "w": line},
             lambda a: [(a["x"] * a["w"]).max(axis=(0, 1))], {"y": "float32"},
             constants={"axes": np.array([0, 1])}, opset=20),
        Case("parts_softmax", [("Softmax", ["x"], ["y"], {"axis": 0})], lambda: {"x": normal(25_000, 4)},
             lambda a: [softmax(a["x"], 0)], {"y": "float32"}),
        _statistics((8, 50, 50, 5)),
        _statistics((7, 53, 61, 4)),
    ]  # fmt: skip


def _position(name: str, kind: str, x: np.ndarray, axis: int, last: bool = False) -> Case:
    def expected(a: Arrays) -> list[np.ndarray]:
        find = np.argmax if kind == "ArgMax" else np.argmin
        if not last:
            return [find(a["x"], axis=axis)]
        return [a["x"].shape[axis] - 1 - find(np.flip(a["x"], axis), axis=axis)]

    attributes = {"axis": axis, "keepdims": 0, "select_last_index": int(last)}
    return Case(
        f"parts_{name}", [(kind, ["x"], ["y"], attributes)], lambda: {"x": x}, expected, {"y": "int64"}, tolerance=0
    )


def _position_cases() -> list[Case]:
    """Ties in parts and between them, NaN, columns of one value, elements behind the last of equal parts."""
    odd = integers(0, 1000, 20_011, 7).astype(np.float32)
    odd[[999, 19_000], 1], odd[:, 2], odd[:, 3] = np.nan, -np.inf, np.inf
    odd[20_010, 4], odd[20_000:, 5] = 5000, np.nan
    odd[:, 6] = 0
    odd[::3, 6] = -0.0
    found = [
        _position(f"{kind.lower()}{'_last' if last else ''}", kind, odd, 0, last)
        for kind in ("ArgMax", "ArgMin")
        for last in (False, True)
    ]
    words = integers(-9, 9, 2, 40_000, 4, dtype="int32")
    return [
        *found,
        _position("argmax_words", "ArgMax", words, 1),
        _position("argmin_words_last", "ArgMin", words, 1, last=True),
        _position("argmax_bytes", "ArgMax", integers(0, 256, 90_000, 4, dtype="uint8"), 0),
        _position("argmin_half", "ArgMin", normal(24_000, 12, dtype="float16"), 0),
        _position("argmax_most_parts", "ArgMax", integers(0, 300, 700_001, 4).astype(np.float32), 0),
        _position("argmin_many_last", "ArgMin", integers(0, 900, 60_000, 14).astype(np.float32), 0, last=True),
        _position("argmax_row", "ArgMax", normal(1, 200_003), 1),
        _position("argmin_row_last", "ArgMin", integers(0, 9, 1, 200_003, dtype="int8"), 1, last=True),
    ]


def split_cases() -> list[Case]:
    """Sums, products, extremes, norms and positions across memory and along it."""
    return [
        _reduced("sum", "ReduceSum", np.sum, normal(20_000, 4), (0,), 2e-6),
        _reduced("sum_half", "ReduceSum", np.sum, normal(30_000, 8, dtype="float16"), (0,), 1e-3),
        _reduced("sum_longs", "ReduceSum", np.sum, integers(0, 1 << 40, 9000, 5) - (1 << 39), (0,)),
        _reduced("sum_row", "ReduceSum", np.sum, normal(1, 200_003), (1,), 2e-6),
        _reduced("mean_three", "ReduceMean", np.mean, normal(30_011, 3), (0,), 2e-6),
        _reduced("mean_sixty_four", "ReduceMean", np.mean, normal(2, 20_011, 64), (1,), 2e-6),
        _reduced("prod", "ReduceProd", np.prod, _near_one(20_000, 5), (0,), 1e-5),
        _reduced("l1", "ReduceL1", lambda x, axis: np.abs(x).sum(axis=axis), normal(20_011, 4), (0,), 2e-6),
        _reduced("l2", "ReduceL2", lambda x, axis: np.sqrt((x * x).sum(axis=axis)), normal(20_000, 4), (0,),
                 2e-6),
        _reduced("log_sum_exp", "ReduceLogSumExp", _log_sum_exp, normal(20_011, 4), (0,), 2e-6),
        *_extreme_cases(),
        *_joined_cases(),
        *_position_cases(),
    ]  # fmt: skip
