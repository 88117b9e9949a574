"""A language model of the Llama family as ONNX, with ONNX's own operators: RMSNormalization, RotaryEmbedding, grouped-query
Attention, and TensorScatter into caches of a fixed length when it decodes a token at a time. Weights are random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

ELEMENTS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
OPSET = 24


@dataclass(frozen=True)
class Llama:
    """Sizes of a model. The defaults are those of Llama 3.2 1B with half of its layers."""

    layers: int = 8
    width: int = 2048
    heads: int = 32
    groups: int = 8
    depth: int = 64
    inner: int = 8192
    words: int = 128256
    theta: float = 500000.0
    epsilon: float = 1e-5
    dtype: str = "bfloat16"

    def weights(self) -> dict[str, tuple[int, ...]]:
        """Shapes by name; the rows of `embed` are those of the words."""
        found = {"embed": (self.words, self.width), "norm": (self.width,)}
        for n in range(self.layers):
            found |= {
                f"{n}.norm1": (self.width,),
                f"{n}.q": (self.heads * self.depth, self.width),
                f"{n}.k": (self.groups * self.depth, self.width),
                f"{n}.v": (self.groups * self.depth, self.width),
                f"{n}.o": (self.width, self.heads * self.depth),
                f"{n}.norm2": (self.width,),
                f"{n}.gate": (self.inner, self.width),
                f"{n}.up": (self.inner, self.width),
                f"{n}.down": (self.width, self.inner),
            }
        return found

    def angles(self, positions: int) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines of the rotations, `[positions, depth / 2]`."""
        turned, kind = turns(self.theta, self.depth, positions), _numpy(self.dtype)
        return np.cos(turned).astype(np.float32).astype(kind), np.sin(turned).astype(np.float32).astype(kind)


def turns(theta: float, depth: int, positions: int) -> np.ndarray:
    """The angles of rotary embeddings, `[positions, depth / 2]`, in float64."""
    rates = theta ** (-np.arange(0, depth, 2, dtype=np.float64) / depth)
    return np.arange(positions)[:, None] * rates


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def random_weights(sizes: Llama, seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights of the sizes that trained ones have."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in sizes.weights().items():
        values = rng.standard_normal(shape, np.float32)
        values = 1 + 0.1 * values if len(shape) == 1 else values * (0.5 / np.sqrt(shape[-1]))
        found[name] = values.astype(_numpy(sizes.dtype))
    return found


class _Graph:
    """Nodes and initializers that are being collected."""

    def __init__(self, sizes: Llama) -> None:
        self.sizes, self.nodes, self.initializers = sizes, [], []
        self.element = ELEMENTS[sizes.dtype]

    def op(self, kind: str, inputs: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def constant(self, name: str, values: np.ndarray) -> str:
        element = self.element if values.dtype.kind not in "iu" else TensorProto.INT64
        tensor = helper.make_tensor(name, element, values.shape, values.tobytes(), raw=True)
        self.initializers.append(tensor)
        return name

    def product(self, x: str, weight: str, name: str) -> str:
        """`x` times the transposed weight."""
        return self.op("MatMul", [x, self.op("Transpose", [weight], f"{weight}.t", perm=[1, 0])], name)

    def norm(self, x: str, scale: str, name: str) -> str:
        return self.op("RMSNormalization", [x, scale], name, axis=-1, epsilon=self.sizes.epsilon)

    def heads(self, x: str, weight: str, name: str, count: int, tokens: int) -> str:
        """`[1, count, tokens, depth]` of a product with `weight`."""
        split = self.constant(f"{name}.shape", np.array([1, tokens, count, self.sizes.depth]))
        made = self.op("Reshape", [self.product(x, weight, f"{name}.product"), split], f"{name}.split")
        return self.op("Transpose", [made], name, perm=[0, 2, 1, 3])

    def rotated(self, x: str, name: str) -> str:
        return self.op("RotaryEmbedding", [x, "cosines", "sines", "positions"], name)


def _layer(g: _Graph, x: str, n: int, tokens: int, cache: int) -> str:
    """Layer `n` on `[1, tokens, width]`."""
    s = g.sizes
    inner = g.norm(x, f"{n}.norm1", f"{n}/norm1")
    query = g.rotated(g.heads(inner, f"{n}.q", f"{n}/q", s.heads, tokens), f"{n}/q.rotated")
    key = g.rotated(g.heads(inner, f"{n}.k", f"{n}/k", s.groups, tokens), f"{n}/k.rotated")
    value = g.heads(inner, f"{n}.v", f"{n}/v", s.groups, tokens)
    if cache:
        key = g.op("TensorScatter", [f"past_key.{n}", key, "position"], f"present_key.{n}", axis=2)
        value = g.op("TensorScatter", [f"past_value.{n}", value, "position"], f"present_value.{n}", axis=2)
        operands = [query, key, value, "", "", "", "length"]
        mixed = g.op("Attention", operands, f"{n}/attention", is_causal=int(tokens > 1))
    else:
        mixed = g.op("Attention", [query, key, value], f"{n}/attention", is_causal=1)
    joined = g.op("Transpose", [mixed], f"{n}/joined", perm=[0, 2, 1, 3])
    flat = g.constant(f"{n}/flat.shape", np.array([1, tokens, s.heads * s.depth]))
    mixed = g.op("Reshape", [joined, flat], f"{n}/mixed")
    x = g.op("Add", [x, g.product(mixed, f"{n}.o", f"{n}/o")], f"{n}/sum1")
    inner = g.norm(x, f"{n}.norm2", f"{n}/norm2")
    gate = g.product(inner, f"{n}.gate", f"{n}/gate")
    gate = g.op("Mul", [gate, g.op("Sigmoid", [gate], f"{n}/gate.sigmoid")], f"{n}/gate.silu")
    both = g.op("Mul", [gate, g.product(inner, f"{n}.up", f"{n}/up")], f"{n}/both")
    return g.op("Add", [x, g.product(both, f"{n}.down", f"{n}/down")], f"{n}/sum2")


def llama(
    sizes: Llama, tokens: int, cache: int = 0, weights: Callable[[str], np.ndarray] | None = None
) -> onnx.ModelProto:
    """The model for `tokens` tokens at once: `ids [1, tokens]` to `logits [1, 1, words]` of the last one.

    With a `cache`, its positions, the tokens are appended at the input `position [1]` to caches `past_key.N` and
    `past_value.N` `[1, groups, cache, depth]`, which come out as `present_…`; the results of the model are the logits
    and these. Without one it begins a text, and returns its keys and values too. `weights` gives each by its name; without
    it initializers have no data.
    """
    g = _Graph(sizes)
    whole = cache or tokens
    for name, table in zip(("cosines", "sines"), sizes.angles(whole), strict=True):
        g.constant(name, table)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, tokens])
    inputs, outputs = [ids], [helper.make_tensor_value_info("logits", g.element, [1, 1, sizes.words])]
    if cache:
        inputs.append(helper.make_tensor_value_info("position", TensorProto.INT64, [1]))
        steps = g.constant("steps", np.arange(tokens)[None])
        g.op("Add", ["position", steps], "positions")
        g.op("Add", ["position", g.constant("tokens", np.array([tokens]))], "length")
    else:
        g.constant("positions", np.arange(tokens)[None])
    shape = [1, sizes.groups, whole, sizes.depth]
    x = g.op("Gather", ["embed", "ids"], "embedded", axis=0)
    for n in range(sizes.layers):
        x = _layer(g, x, n, tokens, cache)
        for part, made in (("key", f"{n}/k.rotated"), ("value", f"{n}/v")):
            if cache:
                inputs.append(helper.make_tensor_value_info(f"past_{part}.{n}", g.element, shape))
            else:
                g.op("Identity", [made], f"present_{part}.{n}")
            outputs.append(helper.make_tensor_value_info(f"present_{part}.{n}", g.element, shape))
    if tokens > 1:
        x = g.op("Gather", [x, g.constant("last", np.array([tokens - 1]))], "last_token", axis=1)
    g.product(g.norm(x, "norm", "normed"), "embed", "logits")
    if weights is not None:
        for name in sizes.weights():
            g.constant(name, weights(name))
    graph = helper.make_graph(g.nodes, "llama", inputs, outputs, g.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)


def save(model: onnx.ModelProto, sizes: Llama, path: Path, seed: int = 0) -> None:
    """Writes a model without data to `path`, and random weights for it beside it, a part at a time."""
    rng, place = np.random.default_rng(seed), path.with_suffix(".weights")
    with place.open("wb") as file:
        for name, shape in sizes.weights().items():
            offset = file.tell()
            for start in range(0, shape[0], 16384):
                part = rng.random((min(16384, shape[0] - start), *shape[1:]), np.float32)
                values = part if len(shape) == 1 else (part - 0.5) / np.sqrt(shape[-1])
                file.write(values.astype(_numpy(sizes.dtype)).tobytes())
            tensor = TensorProto(name=name, data_type=ELEMENTS[sizes.dtype], dims=shape, raw_data=b"")
            onnx.external_data_helper.set_external_data(tensor, place.name, offset, file.tell() - offset)
            tensor.ClearField("raw_data")
            model.graph.initializer.append(tensor)
    path.write_bytes(model.SerializeToString())
