"""Random numbers, from counter-based generators with explicit seeds."""

from __future__ import annotations

import zlib

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.common.random import random
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.onnx.values import elem_dtype


def seed_of(b: Builder, node: Node) -> Tensor:
    """The node's seed as an `i64` scalar: its attribute's bits, or without one a hash of the node's name."""
    seed = node.attr("seed")
    if seed is None:
        bits = zlib.crc32(node.name.encode())
    else:
        bits = int(np.array(seed, np.float32).view(np.uint32))
    return b.constant(np.array(bits, np.int64))


@onnx_op("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike")
def generate(g: GraphImporter, node: Node) -> Tensor:
    """Scaled to the wanted mean and deviation, or range."""
    b = g.b
    like = node.op.endswith("Like")
    to = node.attr("dtype")
    dtype = elem_dtype(to) if to else node[0].dtype if like and node[0].is_float else "float32"
    sizes: list[Size] = b.dims(node[0]) if like else [int(extent) for extent in node.required("shape")]
    if "Normal" in node.op:
        low, width = float(node.attr("mean", 0.0)), float(node.attr("scale", 1.0))
        kind = "normal"
    else:
        low = float(node.attr("low", 0.0))
        kind, width = "uniform", float(node.attr("high", 1.0)) - low
    x = random(b, kind, seed_of(b, node), sizes, dtype)
    return ew.binary(b, "add", ew.scaled(b, x, width), b.like(low, x))


@onnx_op("Bernoulli")
def bernoulli(g: GraphImporter, node: Node) -> Tensor:
    """1 with the probability that the input gives."""
    b, x = g.b, node[0]
    to = node.attr("dtype")
    noise = random(b, "uniform", seed_of(b, node), b.dims(x), x.dtype)
    return ew.cast(b, ew.compare(b, "lt", noise, x), elem_dtype(to) if to else x.dtype)


@onnx_op("Multinomial")
def multinomial(g: GraphImporter, node: Node) -> Tensor:
    """Classes drawn with the log-probabilities of each row, by the Gumbel trick."""
    b, x = g.b, node[0]
    count = int(node.attr("sample_size", 1))
    batch, classes = b.dims(x)
    uniform = random(b, "uniform", seed_of(b, node), [batch, count, classes], x.dtype)
    tiny = b.like(float(np.finfo(np.float32).tiny), x)
    gumbel = ew.unary(b, "neg", ew.unary(b, "log", ew.binary(b, "max", uniform, tiny)))
    gumbel = ew.unary(b, "neg", ew.unary(b, "log", ew.binary(b, "max", gumbel, tiny)))
    scores = ew.binary(b, "add", shape.unsqueeze(b, x, [1]), gumbel)
    drawn = reduction.arg_reduce(b, "max", scores, 2, False, False)
    to = node.attr("dtype")
    return ew.cast(b, drawn, elem_dtype(to) if to else "int32")
