"""Operators of linear attention and its gates (domain `com.microsoft`), as the model builder writes them.

(onnxruntime, docs/ContribOperators.md.)
"""

from __future__ import annotations

from onnx import helper

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import normalization, shape
from mlc.frontends.common.builder import Tensor
from mlc.frontends.onnx import functions
from mlc.frontends.onnx.contrib_elementwise import DOMAIN
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, Result, onnx_op
from mlc.frontends.report import NodeError

_OPSET = 27  # ONNX has both since then, without the attributes below
_USUAL = {"state_window": 0, "channels_last": 0, "dilation": 1, "ndim": 1}


@onnx_op("CausalConvWithState", "LinearAttention", domain=DOMAIN)
def stateful(g: GraphImporter, node: Node) -> Result:
    """ONNX's operator of the same name."""
    unusual = [name for name, usual in _USUAL.items() if int(node.attr(name, usual)) != usual]
    if unusual:
        raise NodeError(f"{node.op} with {', '.join(unusual)} is not supported", "export without")
    attributes = {name: value for name, value in node.attributes.items() if name not in _USUAL}
    names = ["" if value is None else f"x{place}" for place, value in enumerate(node.inputs)]
    proto = helper.make_node(node.op, names, node.outputs, name=node.name, **attributes)
    inner = Node(node.op, "", node.name, _OPSET, node.inputs, node.outputs, attributes)
    return functions.expand(g, proto, inner)


@onnx_op("GatedAdd", domain=DOMAIN)
def gated_add(g: GraphImporter, node: Node) -> Tensor:
    """x + y * gate."""
    return ew.binary(g.b, "add", node[0], ew.binary(g.b, "mul", node[1], node[2]))


@onnx_op("GatedRMSNorm", domain=DOMAIN)
def gated_norm(g: GraphImporter, node: Node) -> Tensor:
    """Groups of as many elements as there are scales, divided by their root mean square, times an activated gate."""
    b, x, scale, gate = g.b, node[0], ew.cast(g.b, node[1], "float32"), ew.cast(g.b, node[2], "float32")
    size, wide = b.dim(scale, 0), ew.cast(b, x, "float32")
    groups = [*b.dims(x)[:-1], b.arith("divsi", b.dim(x, x.rank - 1), size), size]
    normal = normalization.layer_norm(
        b, shape.reshape(b, wide, groups), scale, None, x.rank, float(node.attr("epsilon", 1e-6)), rms=True
    )
    kind = node.attr("activation", "silu")
    if kind not in ("silu", "swish", "sigmoid"):
        raise NodeError(f'the activation "{kind}" is not supported', "use silu, swish or sigmoid")
    opened = ew.unary(b, "sigmoid", gate) if kind == "sigmoid" else ew.activation(b, "silu", gate)
    return ew.cast(b, ew.binary(b, "mul", shape.reshape(b, normal, b.dims(x)), opened), x.dtype)


@onnx_op("LinearAttentionGate", domain=DOMAIN)
def gates(g: GraphImporter, node: Node) -> list[Tensor | None]:
    """decay_scale * softplus(a + dt_bias), and sigmoid(b)."""
    b = g.b
    a, bias, scale = (ew.cast(b, node[place], "float32") for place in range(3))
    decay = ew.binary(b, "mul", scale, ew.activation(b, "softplus", ew.binary(b, "add", a, bias)))
    rate = node.optional(3)
    beta = None if rate is None else ew.cast(b, ew.unary(b, "sigmoid", ew.cast(b, rate, "float32")), rate.dtype)
    return [ew.cast(b, decay, node[0].dtype), beta]
