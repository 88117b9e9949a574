"""A decoder of the Llama family as onnxruntime's model builder writes it: weights of four bits in blocks (`MatMulNBits`),
`GroupQueryAttention` with a cache that grows, norms with and without a residual. Weights are random.

(onnxruntime-genai, src/python/py/models/builder.py; onnxruntime, docs/ContribOperators.md.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import TensorProto, helper

from models.llama import turns

DOMAIN = "com.microsoft"
OPSET = 21
INT64, FLOAT = TensorProto.INT64, TensorProto.FLOAT


@dataclass(frozen=True)
class Decoder:
    """Sizes of a model. The defaults are those of TinyLlama 1.1B with six of its 22 layers."""

    layers: int = 6
    width: int = 2048
    heads: int = 32
    groups: int = 4
    depth: int = 64
    inner: int = 5632
    words: int = 32000
    longest: int = 2048
    theta: float = 10000.0
    epsilon: float = 1e-5
    bits: int = 4
    block: int = 32
    symmetric: bool = True
    accuracy_level: int = 4
    packed: bool = False
    """One product for queries, keys and values."""

    def scaled(self, heads: int) -> Decoder:
        """One with another number of heads, as wide in proportion."""
        per_head, groups = self.inner // self.heads, max(1, heads * self.groups // self.heads)
        return replace(self, heads=heads, groups=groups, width=heads * self.depth, inner=heads * per_head)


class _Graph:
    """Nodes and initializers that are being collected."""

    def __init__(self, sizes: Decoder, seed: int) -> None:
        self.sizes, self.rng = sizes, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[TensorProto] = []

    def op(self, kind: str, inputs: list[str], outputs: list[str] | str, domain: str = "", **attributes: object) -> str:
        """The first result of a node that is called as it is."""
        made = [outputs] if isinstance(outputs, str) else outputs
        name = next(filter(None, made))
        self.nodes.append(helper.make_node(kind, inputs, made, name=f"{name}/node", domain=domain, **attributes))
        return made[0]

    def constant(self, name: str, values: np.ndarray) -> str:
        self.initializers.append(onnx.numpy_helper.from_array(values, name))
        return name

    def product(self, x: str, name: str, depth: int, columns: int) -> str:
        """`x [batch, tokens, depth]` times a quantized weight `[columns, depth]`."""
        s = self.sizes
        blocks, size = -(-depth // s.block), s.block * s.bits // 8
        codes = self.rng.integers(0, 256, (columns, blocks, size), np.uint8)
        scales = (self.rng.random(columns * blocks) + 0.5) * (0.2 / np.sqrt(depth) / 2 ** (s.bits - 4))
        scales *= self.rng.choice([-1, 1], scales.shape)  # else weights have a mean, which adds up from layer to layer
        given = {"codes": codes, "scales": scales.astype(np.float32)}
        inputs = [x, *(self.constant(f"{name}.{part}", values) for part, values in given.items())]
        if not s.symmetric:
            zeros = self.rng.integers(0, 256, columns * -(-blocks * s.bits // 8), np.uint8)
            inputs.append(self.constant(f"{name}.zeros", zeros))
        return self.op(
            "MatMulNBits", inputs, name, DOMAIN,
            K=depth, N=columns, bits=s.bits, block_size=s.block, accuracy_level=s.accuracy_level,
        )  # fmt: skip

    def scale(self, name: str) -> str:
        return self.constant(name, 1 + 0.1 * self.rng.standard_normal(self.sizes.width).astype(np.float32))

    def normed_sum(self, x: str, y: str, name: str, wanted: bool = True) -> tuple[str, str]:
        """The norm of `x + y`, and the sum, where it is wanted."""
        outputs = [name, "", "", f"{name}.sum"] if wanted else [name]
        inputs = [x, y, self.scale(f"{name}.scale")]
        self.op("SkipSimplifiedLayerNormalization", inputs, outputs, DOMAIN, epsilon=self.sizes.epsilon)
        return name, f"{name}.sum"


def _attention(g: _Graph, x: str, n: int) -> str:
    s = g.sizes
    queries, keys = s.heads * s.depth, s.groups * s.depth
    if s.packed:
        projected = [g.product(x, f"{n}.qkv", s.width, queries + 2 * keys), "", ""]
    else:
        projected = [
            g.product(x, f"{n}.{part}", s.width, width) for part, width in (("q", queries), ("k", keys), ("v", keys))
        ]
    past = [f"past_key_values.{n}.key", f"past_key_values.{n}.value"]
    inputs = [*projected, *past, "lengths", "total", "cosines", "sines"]
    outputs = [f"{n}.attention", f"present.{n}.key", f"present.{n}.value"]
    mixed = g.op(
        "GroupQueryAttention", inputs, outputs, DOMAIN,
        num_heads=s.heads, kv_num_heads=s.groups, scale=s.depth**-0.5, do_rotary=1, rotary_interleaved=0,
    )  # fmt: skip
    return g.product(mixed, f"{n}.o", queries, s.width)


def _layer(g: _Graph, x: str, residual: str, n: int) -> tuple[str, str]:
    """What layer `n` adds to the residual, and the residual without it; `x` is normalized."""
    s = g.sizes
    mixed = _attention(g, x, n)
    x, residual = g.normed_sum(residual, mixed, f"{n}.norm2")
    gate = g.product(x, f"{n}.gate", s.width, s.inner)
    up = g.product(x, f"{n}.up", s.width, s.inner)
    gate = g.op("Mul", [gate, g.op("Sigmoid", [gate], f"{n}.sigmoid")], f"{n}.silu")
    return g.product(g.op("Mul", [gate, up], f"{n}.both"), f"{n}.down", s.inner, s.width), residual


def _lengths(g: _Graph) -> None:
    """What `GroupQueryAttention` asks of the mask: each row's last position, and the number of positions."""
    ones = g.op("ReduceSum", ["attention_mask", g.constant("axis", np.array([1]))], "count", keepdims=1)
    last = g.op("Sub", [ones, g.constant("one", np.array([1]))], "last")
    g.op("Cast", [last], "lengths", to=TensorProto.INT32)
    size = g.op("Shape", ["attention_mask"], "mask_shape")
    extent = g.op("Gather", [size, g.constant("second", np.array(1))], "extent", axis=0)
    g.op("Cast", [extent], "total", to=TensorProto.INT32)


def decoder(sizes: Decoder, seed: int = 0) -> onnx.ModelProto:
    """`input_ids [batch, tokens]`, `attention_mask [batch, all]` and caches `past_key_values.N.key` and `.value` `[batch,
    groups, past, depth]` to `logits [batch, tokens, words]` and the caches `present.N…` with the new positions."""
    g = _Graph(sizes, seed)
    turned = turns(sizes.theta, sizes.depth, sizes.longest)
    g.constant("cosines", np.cos(turned).astype(np.float32))
    g.constant("sines", np.sin(turned).astype(np.float32))
    _lengths(g)
    words = g.rng.standard_normal((sizes.words, sizes.width), np.float32)
    residual = g.op("Gather", [g.constant("embed", words), "input_ids"], "embedded")
    inputs = [residual, g.scale("0.norm1.scale")]
    x = g.op("SimplifiedLayerNormalization", inputs, "0.norm1", axis=-1, epsilon=sizes.epsilon, stash_type=1)
    for n in range(sizes.layers):
        made, residual = _layer(g, x, residual, n)
        last = n + 1 == sizes.layers
        x, residual = g.normed_sum(residual, made, "norm" if last else f"{n + 1}.norm1", wanted=not last)
    g.product(x, "logits", sizes.width, sizes.words)
    caches = [("past_key_values", "past"), ("present", "total")]
    old, new = (
        [
            helper.make_tensor_value_info(f"{name}.{n}.{part}", FLOAT, ["batch", sizes.groups, extent, sizes.depth])
            for n in range(sizes.layers)
            for part in ("key", "value")
        ]
        for name, extent in caches
    )
    inputs_ = [
        helper.make_tensor_value_info("input_ids", INT64, ["batch", "tokens"]),
        helper.make_tensor_value_info("attention_mask", INT64, ["batch", "total"]),
        *old,
    ]
    logits = helper.make_tensor_value_info("logits", FLOAT, ["batch", "tokens", sizes.words])
    graph = helper.make_graph(g.nodes, "decoder", inputs_, [logits, *new], g.initializers)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
