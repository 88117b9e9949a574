"""GPU cases of attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.gpu_cases import Arrays, Case, normal, softmax


def _attention(order: dict[str, list[int]]) -> list[tuple[Any, ...]]:
    """Queries `s`, keys `t` with their rows across, and values `w`, to `y` in another `order`."""
    nodes: list[tuple[Any, ...]] = [("MatMul", ["s", "t"], ["scores"]), ("Mul", ["scores", "scale"], ["scaled"])]
    nodes += [("Add", ["scaled", "mask"], ["logits"]), ("Softmax", ["logits"], ["p"], {"axis": -1})]
    return [*nodes, ("MatMul", ["p", "w"], ["r"]), ("Transpose", ["r"], ["y"], order)]


def _exact_attention(name: str, queries: int, keys: int, width: int, *, causal: bool) -> Case:
    """Attention of two by three heads, whose keys lie as a product writes them (batch x keys x heads x width)."""
    hidden = np.triu(np.full((queries, keys), -np.inf, "f4"), 1) if causal else np.zeros((queries, keys), "f4")
    constants = {"scale": np.array(width**-0.5, "f4"), "mask": hidden}

    def expected(a: Arrays) -> list[np.ndarray]:
        q, k, v = (a[n].astype(np.float64).transpose(0, 2, 1, 3) for n in "qkv")
        return [(softmax(q @ k.transpose(0, 1, 3, 2) * width**-0.5 + hidden) @ v).transpose(0, 2, 1, 3)]

    order = {"perm": [0, 2, 1, 3]}
    nodes: list[tuple[Any, ...]] = [("Transpose", ["q"], ["s"], order), ("Transpose", ["v"], ["w"], order)]
    nodes += [("Transpose", ["k"], ["t"], {"perm": [0, 2, 3, 1]}), *_attention(order)]
    lengths = {"q": queries, "k": keys, "v": keys}
    inputs = {n: normal(2, rows, 3, width, seed=i) for i, (n, rows) in enumerate(lengths.items())}
    return Case(name, nodes, lambda: inputs, expected, {"y": "float32"}, constants=constants)


def _window_attention(name: str, windows: int, pixels: int, heads: int, width: int) -> Case:
    """Attention within each of the windows of two images; queries, keys and values are parts of one tensor of six
    dimensions, as a product writes them."""
    bias, order = normal(1, heads, pixels, pixels, seed=1), {"perm": [0, 1, 3, 2, 4]}
    constants = {"mask": bias, "scale": np.array(width**-0.5, "f4")}
    constants |= {n: np.array(i) for i, n in enumerate("qkv")}

    def expected(a: Arrays) -> list[np.ndarray]:
        q, k, v = a["x"].astype(np.float64).transpose(3, 0, 1, 4, 2, 5)
        return [(softmax(q @ k.swapaxes(-1, -2) * width**-0.5 + bias) @ v).transpose(0, 1, 3, 2, 4)]

    nodes: list[tuple[Any, ...]] = []
    for number, moved, perm in zip("qkv", "stw", (order, {"perm": [0, 1, 3, 4, 2]}, order), strict=True):
        part = f"part_{number}"
        nodes += [("Gather", ["x", number], [part], {"axis": 3}), ("Transpose", [part], [moved], perm)]
    nodes += _attention(order)
    inputs = {"x": normal(2, windows, pixels, 3, heads, width)}
    return Case(name, nodes, lambda: inputs, expected, {"y": "float32"}, constants=constants)


def _heads_attention(name: str, windows: int, tokens: int, heads: int, width: int) -> Case:
    """Attention within many windows; a head's queries, keys and values lie side by side."""
    bias, order = normal(1, heads, tokens, tokens, seed=1), {"perm": [0, 2, 1, 3]}
    constants = {"mask": bias, "scale": np.array(width**-0.5, "f4")}

    def expected(a: Arrays) -> list[np.ndarray]:
        q, k, v = (p.transpose(0, 2, 1, 3) for p in np.split(a["x"].astype(np.float64), 3, axis=-1))
        return [(softmax(q @ k.swapaxes(-1, -2) * width**-0.5 + bias) @ v).transpose(0, 2, 1, 3)]

    nodes: list[tuple[Any, ...]] = [("Split", ["x"], ["q", "k", "v"], {"axis": -1})]
    nodes += [("Transpose", ["q"], ["s"], order), ("Transpose", ["k"], ["t"], {"perm": [0, 2, 3, 1]})]
    nodes += [("Transpose", ["v"], ["w"], order), *_attention(order)]
    inputs = {"x": normal(windows, tokens, heads, 3 * width)}
    return Case(name, nodes, lambda: inputs, expected, {"y": "float32"}, constants=constants)


def _channel_attention(name: str, tokens: int, heads: int, width: int) -> Case:
    """Attention of the channels of a head, which are divided by their lengths over all tokens (XCiT)."""
    constants = {"scale": np.linspace(1, 2, heads, dtype="f4").reshape(heads, 1, 1), "least": np.array(1e-6, "f4")}
    constants |= {n: np.array(i) for i, n in enumerate("qkv")}

    def expected(a: Arrays) -> list[np.ndarray]:
        q, k, v = a["x"].astype(np.float64).transpose(2, 0, 3, 4, 1)
        q, k = (x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6) for x in (q, k))
        return [(softmax(q @ k.swapaxes(-1, -2) * constants["scale"]) @ v).transpose(0, 3, 1, 2)]

    nodes: list[tuple[Any, ...]] = [("Transpose", ["x"], ["parts"], {"perm": [2, 0, 3, 4, 1]})]
    for n in "qkv":
        nodes += [("Gather", ["parts", n], [f"part_{n}"], {"axis": 0})]
    for n in "qk":
        nodes += [("ReduceL2", [f"part_{n}"], [f"length_{n}"], {"axes": [-1]})]
        nodes += [("Max", [f"length_{n}", "least"], [f"by_{n}"]), ("Div", [f"part_{n}", f"by_{n}"], [f"unit_{n}"])]
    nodes += [("Transpose", ["unit_k"], ["turned"], {"perm": [0, 1, 3, 2]}), ("MatMul", ["unit_q", "turned"], ["m"])]
    nodes += [("Mul", ["m", "scale"], ["scaled"]), ("Softmax", ["scaled"], ["p"], {"axis": -1})]
    nodes += [("MatMul", ["p", "part_v"], ["r"]), ("Transpose", ["r"], ["y"], {"perm": [0, 3, 1, 2]})]
    inputs = {"x": normal(2, tokens, 3, heads, width)}
    return Case(name, nodes, lambda: inputs, expected, {"y": "float32"}, constants=constants)


def attention_cases() -> list[Case]:
    """Without and with a mask; heads of a tensor with more dimensions than the copy engine knows, many windows of few
    tokens, attention of channels."""
    return [
        _exact_attention("attention_100x77x64", 100, 77, 64, causal=False),
        _exact_attention("attention_70x70x40", 70, 70, 40, causal=True),
        _window_attention("attention_windows", 3, 49, 2, 32),
        _heads_attention("attention_heads_apart", 3, 49, 2, 32),
        _heads_attention("attention_few_tokens", 256, 4, 1, 16),
        _channel_attention("attention_channels", 49, 2, 24),
    ]
