"""Cases of columns that threads keep: softmax and normalization over elements that do not lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.gpu_cases import Arrays, Case, normal, softmax


def _softmax(name: str, *shape: int, dtype: str = "float32", axis: int = 1, log: bool = False) -> Case:
    def expected(a: Arrays) -> list[np.ndarray]:
        found = softmax(a["x"], axis)
        return [np.log(found) if log else found]

    return Case(
        f"columns_softmax_{name}",
        [("LogSoftmax" if log else "Softmax", ["x"], ["y"], {"axis": axis})],
        lambda: {"x": (normal(*shape) * np.float32(3)).astype(dtype)},
        expected,
        {"y": dtype},
        tolerance=1e-6 if dtype == "float32" else 1e-3,
    )


def _norm(
    name: str,
    shape: Sequence[int],
    axes: Sequence[int],
    dtype: str = "float32",
    others: Sequence[str] = (),
    **options: Any,
) -> Case:
    """`(x - mean) / sqrt(variance + eps)` over `axes`; `others`: `Mul` and `Add` of further tensors of that shape."""
    kind = np.dtype(dtype)
    nodes: list[tuple[Any, ...]] = [
        ("ReduceMean", ["x"], ["m"], {"axes": list(axes)}),
        ("Sub", ["x", "m"], ["d"]),
        ("Mul", ["d", "d"], ["q"]),
        ("ReduceMean", ["q"], ["v"], {"axes": list(axes)}),
        ("Add", ["v", "eps"], ["e"]),
        ("Sqrt", ["e"], ["s"]),
        ("Div", ["d", "s"], ["n0"]),
        *((op, [f"n{i}", f"o{i}"], [f"n{i + 1}"]) for i, op in enumerate(others)),
        ("Identity", [f"n{len(others)}"], ["y"]),
    ]

    def inputs() -> Arrays:
        more = {f"o{i}": normal(*shape, seed=i + 1, dtype=dtype) for i in range(len(others))}
        return {"x": normal(*shape, dtype=dtype) + kind.type(2), **more}

    def expected(a: Arrays) -> list[np.ndarray]:
        x = a["x"].astype(np.float64)
        y = (x - x.mean(tuple(axes), keepdims=True)) / np.sqrt(x.var(tuple(axes), keepdims=True) + 1e-3)
        for i, op in enumerate(others):
            y = y * a[f"o{i}"] if op == "Mul" else y + a[f"o{i}"]
        return [y]

    return Case(
        f"columns_norm_{name}",
        nodes,
        inputs,
        expected,
        {"y": dtype},
        constants={"eps": np.array(1e-3, dtype)},
        tolerance=2e-6 if dtype == "float32" else 4e-3,
        **options,
    )


def _spread(name: str, *shape: int, axis: int) -> Case:
    """What is found along an axis meets a tensor that has it alone: two results that read nothing else of `x`."""
    nodes: list[tuple[Any, ...]] = [
        ("ReduceMax", ["x"], ["m"], {"axes": [axis]}),
        ("Sub", ["x", "m"], ["d"]),
        ("ReduceMean", ["d"], ["t"], {"axes": [axis]}),
        ("Mul", ["t", "s"], ["y"]),
        ("Sub", ["s", "m"], ["z"]),
    ]
    along = [extent if i == axis else 1 for i, extent in enumerate(shape)]

    def expected(a: Arrays) -> list[np.ndarray]:
        x, s = a["x"].astype(np.float64), a["s"].astype(np.float64)
        top = x.max(axis, keepdims=True)
        return [(x - top).mean(axis, keepdims=True) * s, s - top]

    inputs = {"x": normal(*shape), "s": normal(*along, seed=1)}
    return Case(f"spread_{name}", nodes, lambda: inputs, expected, {"y": "float32", "z": "float32"}, tolerance=2e-6)


def column_cases() -> list[Case]:
    """Threads that share a column: none, those of a warp, and those of a block, few and many; columns and elements that
    are no multiples of what threads take; tensors that are too many to be kept."""
    return [
        _softmax("alone", 3, 10, 24),
        _softmax("alone_pixels", 2, 21, 5, 12),
        _softmax("warp", 3, 64, 44),
        _softmax("block", 2, 300, 44),
        _softmax("block_odd", 1, 700, 3, axis=1),
        _softmax("full_block", 2, 1000, 20),
        _softmax("full_block_half", 1, 1003, 40, dtype="float16"),
        _softmax("first", 500, 12, axis=0),
        _softmax("log", 2, 200, 36, log=True),
        _softmax("log_half", 2, 150, 9, dtype="float16", log=True),
        _norm("pixels", (2, 13, 11, 10), (1, 2)),
        _norm("pixels_half", (2, 9, 7, 16), (1, 2), "float16"),
        _norm("channels", (2, 33, 5, 7), (1,)),
        _norm("images", (3, 4, 5, 12), (0, 1, 2)),
        _norm("double", (2, 30, 10), (1,), "float64"),
        _norm("too_long", (1, 1500, 8), (1,), others=("Mul", "Add")),
        _norm("dynamic_images", (3, 40, 12), (1,), dims={"x": ["n", 40, 12]}),
        _spread("rows", 5, 200, axis=1),
        _spread("columns", 3, 64, 44, axis=1),
    ]
