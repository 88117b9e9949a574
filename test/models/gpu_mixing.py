"""GPU cases of what goes through tokens or pixels by weights: mixing, pooling, patches and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.gpu_cases import Arrays, Case, normal, softmax
from models.gpu_convolutions import same

TOKENS, CHANNELS = 140, 128  # a number of tokens that tensor cores do not take, of products that are worth moving


def _mixing() -> Case:
    """Tokens are mixed by two layers between transposes, added to what they were, and gate half of the channels."""
    shapes = {"w1": (TOKENS, 72), "w2": (72, TOKENS), "w3": (TOKENS, TOKENS)}
    constants = {n: normal(*s, seed=i) / s[0] ** 0.5 for i, (n, s) in enumerate(shapes.items(), 1)}
    constants = {n: v.astype("f4") for n, v in constants.items()}
    constants |= {"b1": normal(72, seed=4), "b3": normal(TOKENS, seed=5)}

    def expected(a: Arrays) -> list[np.ndarray]:
        c = {name: value.astype(np.float64) for name, value in constants.items()}
        x = a["x"].astype(np.float64)
        mixed = x + (np.maximum(x.swapaxes(1, 2) @ c["w1"] + c["b1"], 0) @ c["w2"]).swapaxes(1, 2)
        u, v = np.split(mixed, 2, axis=2)
        return [u * (v.swapaxes(1, 2) @ c["w3"] + c["b3"]).swapaxes(1, 2)]

    turn = {"perm": [0, 2, 1]}
    nodes: list[Any] = [
        ("Transpose", ["x"], ["t"], turn), ("MatMul", ["t", "w1"], ["p"]), ("Add", ["p", "b1"], ["q"]),
        ("Relu", ["q"], ["r"]), ("MatMul", ["r", "w2"], ["s"]), ("Transpose", ["s"], ["m"], turn),
        ("Add", ["x", "m"], ["a"]), ("Split", ["a"], ["u", "v"], {"axis": 2}),
        ("Transpose", ["v"], ["vt"], turn), ("MatMul", ["vt", "w3"], ["g"]), ("Add", ["g", "b3"], ["h"]),
        ("Transpose", ["h"], ["ht"], turn), ("Mul", ["u", "ht"], ["y"]),
    ]  # fmt: skip
    return Case(
        "mixing", nodes, lambda: {"x": normal(2, TOKENS, CHANNELS)}, expected, {"y": "float32"}, constants=constants,
        tolerance=2e-6,
    )  # fmt: skip


def _pooling() -> Case:
    """The mean of pixels by the shares of a softmax, a product with one vector for each image."""

    def expected(a: Arrays) -> list[np.ndarray]:
        x = a["x"].astype(np.float64).reshape(3, 24, -1)
        shares = softmax(np.einsum("nch,c->nh", x, a["w"][0, :, 0, 0].astype(np.float64)))
        return [np.einsum("nch,nh->nc", x, shares)[:, :, None]]

    nodes: list[Any] = [
        ("Conv", ["x", "w"], ["c"]), ("Reshape", ["c", "row"], ["r"]), ("Softmax", ["r"], ["s"], {"axis": -1}),
        ("Transpose", ["s"], ["t"], {"perm": [0, 2, 1]}), ("Reshape", ["x", "flat"], ["f"]),
        ("MatMul", ["f", "t"], ["y"]),
    ]  # fmt: skip
    shapes = {"row": np.array([3, 1, -1]), "flat": np.array([3, 24, -1])}
    inputs = {"x": normal(3, 24, 5, 7), "w": normal(1, 24, 1, 1, seed=1) / 5}
    return Case(
        "pooling_by_shares", nodes, lambda: {n: v.astype("f4") for n, v in inputs.items()}, expected, {"y": "float32"},
        constants=shapes, tolerance=2e-6,
    )  # fmt: skip


def _windows(name: str, filters: int, channels: int, size: tuple[int, int], *place: int) -> Case:
    """Windows (size, distance, border) that touch each other or are far apart, with borders around the image and pixels that none sees."""
    window, stride, padding = place

    def expected(a: Arrays) -> list[np.ndarray]:
        x = np.pad(a["x"].astype(np.float64), [(0, 0), (0, 0), (padding, padding), (padding, padding)])
        seen = np.lib.stride_tricks.sliding_window_view(x, (window, window), axis=(2, 3))[:, :, ::stride, ::stride]
        return [np.einsum("nchwij,ocij->nohw", seen, a["w"].astype(np.float64))]

    inputs = {"x": normal(2, channels, *size), "w": normal(filters, channels, window, window, seed=1)}
    nodes: list[Any] = [("Conv", ["x", "w"], ["y"], {"strides": [stride] * 2, "pads": [padding] * 4})]
    return Case(name, nodes, lambda: inputs, expected, {"y": "float32"}, tolerance=2e-6)


def _small_matrices() -> Case:
    """Heads of six elements, whose products are no rows of 16 bytes, and as many of them that each is a small block."""

    def expected(a: Arrays) -> list[np.ndarray]:
        q, k, v = (a[n].astype(np.float64) for n in "qkv")
        return [softmax(q @ k.swapaxes(2, 3)) @ v]

    nodes: list[Any] = [
        ("Transpose", ["k"], ["t"], {"perm": [0, 1, 3, 2]}), ("MatMul", ["q", "t"], ["s"]),
        ("Softmax", ["s"], ["p"], {"axis": -1}), ("MatMul", ["p", "v"], ["y"]),
    ]  # fmt: skip
    inputs = {name: normal(40, 4, 16, 6, seed=i) for i, name in enumerate("qkv")}
    return Case("small_matrices", nodes, lambda: inputs, expected, {"y": "float32"}, tolerance=2e-6)


def _parts(name: str, *widths: int) -> Case:
    """A function of tensors side by side."""

    def expected(a: Arrays) -> list[np.ndarray]:
        return [np.exp(np.concatenate([v.astype(np.float64) for v in a.values()], axis=-1))]

    inputs = {f"x{i}": normal(3, 10, width, seed=i) for i, width in enumerate(widths)}
    nodes: list[Any] = [("Concat", list(inputs), ["c"], {"axis": -1}), ("Exp", ["c"], ["y"])]
    return Case(name, nodes, lambda: inputs, expected, {"y": "float32"}, tolerance=2e-6)


def _dense_block() -> Case:
    """Convolutions of all that those before have computed, scaled each time, and a pool of it at the end."""
    grown, nodes, features = 16, [], ["x"]
    constants: dict[str, np.ndarray] = {}
    for n in range(3):
        width = grown * (n + 1)
        constants[f"s{n}"] = normal(1, width, 1, 1, seed=10 + n)
        constants[f"w{n}"] = (normal(grown, width, 3, 3, seed=n) / (9 * width) ** 0.5).astype("f4")
        joined = [("Concat", list(features), [f"c{n}"], {"axis": 1})] if n else [("Identity", ["x"], ["c0"])]
        nodes += [*joined, ("Mul", [f"c{n}", f"s{n}"], [f"m{n}"]), ("Relu", [f"m{n}"], [f"r{n}"])]
        nodes += [("Conv", [f"r{n}", f"w{n}"], [f"f{n}"], {"pads": [1, 1, 1, 1]})]
        features.append(f"f{n}")
    nodes += [("Concat", features, ["c"], {"axis": 1}), ("Exp", ["c"], ["e"])]
    nodes += [("AveragePool", ["e"], ["y"], {"kernel_shape": [2, 2], "strides": [2, 2]})]

    def expected(a: Arrays) -> list[np.ndarray]:
        found = [a["x"].astype(np.float64)]
        for n in range(3):
            x = np.maximum(np.concatenate(found, axis=1) * constants[f"s{n}"], 0)
            found.append(same(x, constants[f"w{n}"]))
        e = np.exp(np.concatenate(found, axis=1))
        return [e.reshape(2, 64, 12, 2, 12, 2).mean(axis=(3, 5))]

    inputs = {"x": normal(2, grown, 24, 24)}
    return Case("dense_block", nodes, lambda: inputs, expected, {"y": "float32"}, constants=constants, tolerance=2e-6)


def mixing_cases() -> list[Case]:
    """Layers between transposes, sums by shares, patches with borders, one or two classes, small matrices, parts."""
    return [
        _mixing(),
        _pooling(),
        _windows("patches_with_borders", 16, 3, (14, 19), 4, 4, 1),
        _windows("patches_far_apart", 16, 1, (37, 41), 12, 9, 0),
        _windows("two_classes", 2, 16, (9, 7), 3, 1, 1),
        _small_matrices(),
        _parts("parts_even", 32, 16, 8, 24),
        _parts("parts_odd", 5, 16, 3, 7),
        _dense_block(),
    ]
