"""GPU cases that select elements: the best of a line, and where extreme ones are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.gpu_cases import Arrays, Case, integers, normal, softmax


def _top_k(
    name: str, x: np.ndarray, k: int, axis: int = -1, largest: bool = True, dims: Sequence[int | str] | None = None
) -> Case:
    """A NaN is the largest; of equals the first one comes first."""

    def expected(a: Arrays) -> list[np.ndarray]:
        wide = np.where(np.isnan(a["x"]), np.inf, a["x"].astype(np.float64))
        first = np.lexsort((-wide, ~np.isnan(a["x"])) if largest else (wide, np.isnan(a["x"])), axis=axis)
        order = np.take(first, range(k), axis=axis)
        return [np.take_along_axis(a["x"], order, axis=axis), order]

    return Case(
        name, [("TopK", ["x", "k"], ["v", "i"], {"axis": axis, "largest": int(largest)})], lambda: {"x": x}, expected,
        {"v": x.dtype.name, "i": "int64"}, {"x": dims} if dims else None,
        {"k": np.array([k], np.int64)}, tolerance=0,
    )  # fmt: skip


def top_k_cases() -> list[Case]:
    odd, ties = normal(5, 999), integers(0, 9, 5, 999).astype(np.float32)
    odd[0, ::7], odd[1, 3::9], odd[2, ::2], odd[3] = np.nan, np.inf, -0.0, -np.inf
    odd[2, 1::2], ties[4] = 0, 3
    whole = (integers(0, 1 << 32, 3, 4000) - (1 << 31)).astype(np.int32)
    return [
        _top_k("top_k", normal(12, 50), 5),
        _top_k("top_k_vocabulary", normal(1, 50257), 50),
        _top_k("top_k_ties", ties, 200),
        _top_k("top_k_odd", odd, 200),
        _top_k("top_k_odd_least", odd, 200, largest=False),
        _top_k("top_k_all", normal(3, 700), 700),
        _top_k("top_k_most", normal(2, 5000), 1024),
        _top_k("top_k_one", normal(500, 1000), 1),
        _top_k("top_k_least_half", normal(4, 2000, dtype="float16"), 33, largest=False),
        _top_k("top_k_integers", whole, 100),
        _top_k("top_k_unsigned_least", whole.view(np.uint32), 100, largest=False),
        _top_k("top_k_bytes", integers(0, 256, 7, 800, dtype="uint8"), 40),
        _top_k("top_k_columns", normal(3, 600, 7), 10, axis=1),
        _top_k("top_k_signed_bytes_least", integers(-128, 128, 5, 900, dtype="int8"), 70, largest=False),
        _top_k("top_k_bytes_least", integers(0, 256, 5, 900, dtype="uint8"), 70, largest=False),
        _top_k("top_k_dynamic", normal(9, 400), 20, dims=["n", "m"]),
        *_top_k_parts(),
    ]


def _top_k_parts() -> list[Case]:
    """Few and long lines: the best of parts, and of these."""
    odd, ties = normal(3, 30_011), integers(0, 9, 3, 30_011).astype(np.float32)
    odd[0, 2_000::7_000], odd[1, 3::9], odd[2, ::2], ties[2] = np.nan, np.inf, -0.0, 3
    odd[2, 1::2] = 0
    whole = (integers(0, 1 << 32, 2, 20_000) - (1 << 31)).astype(np.int32)
    columns = integers(0, 300, 2, 12_000, 3).astype(np.float32)
    return [
        _top_k("top_k_parts", normal(1, 20_000), 50),
        _top_k("top_k_parts_one", normal(40, 16_384), 1),
        _top_k("top_k_parts_most", normal(1, 20_000), 1024),
        _top_k("top_k_parts_ties", ties, 200),
        _top_k("top_k_parts_ties_least", ties, 200, largest=False),
        _top_k("top_k_parts_odd", odd, 100),
        _top_k("top_k_parts_odd_least", odd, 100, largest=False),
        _top_k("top_k_parts_half", normal(2, 33_000, dtype="float16"), 60),
        _top_k("top_k_parts_bytes", integers(0, 256, 2, 40_000, dtype="uint8"), 30),
        _top_k("top_k_parts_integers", whole, 100),
        _top_k("top_k_parts_unsigned_least", whole.view(np.uint32), 100, largest=False),
        _top_k("top_k_parts_columns", columns, 40, axis=1),
    ]


def _position(
    name: str, kind: str, x: np.ndarray, axis: int = -1, last: bool = False, dims: Sequence[int | str] | None = None
) -> Case:
    """Of equal elements the first one, or the last; a NaN is the extreme."""

    def expected(a: Arrays) -> list[np.ndarray]:
        find = np.argmax if kind == "ArgMax" else np.argmin
        if not last:
            return [find(a["x"], axis=axis, keepdims=True)]
        return [a["x"].shape[axis] - 1 - find(np.flip(a["x"], axis), axis=axis, keepdims=True)]

    attributes = {"axis": axis, "keepdims": 1, "select_last_index": int(last)}
    return Case(
        name, [(kind, ["x"], ["y"], attributes)], lambda: {"x": x}, expected, {"y": "int64"},
        {"x": dims} if dims else None, tolerance=0,
    )  # fmt: skip


def _both(x: np.ndarray) -> Case:
    """An extreme value and its position."""
    nodes = [
        ("ReduceMin", ["x"], ["v"], {"axes": [1], "keepdims": 0}),
        ("ArgMin", ["x"], ["i"], {"axis": 1, "keepdims": 0}),
    ]
    return Case(
        "argmin_and_value", nodes, lambda: {"x": x}, lambda a: [a["x"].min(axis=1), a["x"].argmin(axis=1)],
        {"v": x.dtype.name, "i": "int64"}, tolerance=0,
    )  # fmt: skip


def _likeliest(x: np.ndarray) -> Case:
    """The position of the largest probability, and that."""
    nodes = [
        ("Softmax", ["x"], ["p"], {"axis": 1}),
        ("ArgMax", ["p"], ["i"], {"axis": 1, "keepdims": 0}),
        ("ReduceMax", ["p"], ["v"], {"axes": [1], "keepdims": 0}),
    ]
    return Case(
        "argmax_softmax", nodes, lambda: {"x": x}, lambda a: [a["x"].argmax(axis=1), softmax(a["x"]).max(axis=1)],
        {"i": "int64", "v": "float32"},
    )  # fmt: skip


def position_cases() -> list[Case]:
    """Short rows, long ones that blocks share and those that are done in two steps, columns, all kinds of elements."""
    odd, ties = normal(7, 5003), integers(0, 9, 9, 3001).astype(np.float32)
    odd[0, 9::70], odd[1, 3::9], odd[2], odd[3], odd[4], odd[5, 4000] = np.nan, np.inf, 0, -np.inf, np.nan, -np.inf
    odd[2, ::2], odd[6] = -0.0, np.inf
    wide = integers(-3, 3, 5, 4099) + (1 << 60)
    wide[:, ::1000] += np.arange(5) * 3
    long = integers(0, 250, 2, 400_000, dtype="uint8")
    cases = [
        _position("argmax_rows", "ArgMax", normal(14, 33)),
        _position("argmax_columns", "ArgMax", normal(14, 32), 0),
        _position("argmax_vocabulary", "ArgMax", normal(1, 50257)),
        _position("argmax_vocabulary_half", "ArgMax", normal(3, 50264, dtype="float16")),
        _position("argmax_many", "ArgMax", normal(700, 1000)),
        _position("argmin_odd_half", "ArgMin", normal(400, 777, dtype="float16"), last=True),
        _position("argmax_short", "ArgMax", integers(0, 5, 5000, 10, dtype="int8"), last=True),
        _position("argmax_wide", "ArgMax", wide),
        _position("argmin_wide_last", "ArgMin", wide, last=True),
        _position("argmin_whole", "ArgMin", (integers(0, 1 << 32, 3, 40000) - (1 << 31)).astype(np.int32)),
        _position("argmax_double", "ArgMax", normal(6, 5000, dtype="float64")),
        _position("argmin_bytes", "ArgMin", integers(0, 256, 7, 4800, dtype="uint8")),
        _position("argmax_long", "ArgMax", normal(1 << 20), 0),
        _position("argmax_long_bytes", "ArgMax", long),
        _position("argmin_long_bytes_last", "ArgMin", long, last=True),
        _position("argmax_few_columns", "ArgMax", normal(2, 4000, 7), 1),
        _position("argmin_few_columns_last", "ArgMin", integers(0, 256, 3000, 12, dtype="uint8"), 0, last=True),
        _position("argmax_many_columns", "ArgMax", integers(0, 9, 40, 6001).astype(np.float32), 0),
        _position("argmax_columns_half", "ArgMax", normal(2, 900, 64, dtype="float16"), 1),
        _position("argmax_pixels", "ArgMax", normal(2, 21, 40, 52), 1),
        _position("argmax_dynamic", "ArgMax", normal(9, 4001), dims=["n", "m"]),
        _position("argmin_columns_dynamic", "ArgMin", ties, 0, dims=["n", "m"]),
        _both(integers(0, 1000, 50, 2000, dtype="int32")),
        _likeliest(normal(64, 1000)),
    ]
    for kind in ("ArgMax", "ArgMin"):
        for last in (False, True):
            name = kind.lower() + ("_last" if last else "")
            cases.append(_position(f"{name}_odd", kind, odd, last=last))
            cases.append(_position(f"{name}_odd_columns", kind, np.ascontiguousarray(odd.T), 0, last=last))
            cases.append(_position(f"{name}_ties", kind, ties, last=last))
    return cases
