"""LSTM layers with weights of eight bits, as onnxruntime's quantizer writes them (domain `com.microsoft`).

(onnxruntime, docs/ContribOperators.md.)
"""

from __future__ import annotations

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx.contrib_elementwise import DOMAIN
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.quantization import dequantized, dynamically_quantized
from mlc.frontends.onnx.recurrent import recurrent
from mlc.frontends.onnx.registry import Node, onnx_op


def _weights(b: Builder, codes: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    """Codes `[directions, in, 4 * hidden]` as the floats `[directions, 4 * hidden, in]`; scales and zero points are one
    for each direction, or for each of its columns."""
    wide = ew.cast(b, codes, "int32")
    parameters = []
    for value in (ew.cast(b, zero, "int32"), scale):
        extents = [b.dim(value, 0), 1, b.dim(value, 1) if value.rank == 2 else 1]
        parameters.append(shape.reshape(b, value, extents))
    floats = ew.cast(b, ew.binary(b, "sub", wide, parameters[0]), scale.dtype)
    return shape.transpose(b, ew.binary(b, "mul", floats, parameters[1]), [0, 2, 1])


@onnx_op("DynamicQuantizeLSTM", domain=DOMAIN)
def dynamic_quantize_lstm(g: GraphImporter, node: Node) -> list[Tensor]:
    """An LSTM of inputs that are rounded to eight bits by their own range. The state is not: it stays a float."""
    b = g.b
    codes, scale, zero = dynamically_quantized(b, node[0])
    x = dequantized(b, codes, scale, zero, 0)
    weights, recurrence = (_weights(b, node[at], node[scales], node[scales + 1]) for at, scales in ((1, 8), (2, 10)))
    inputs = [x, weights, recurrence, *(node.optional(place) for place in range(3, 8))]
    return recurrent(g, Node("LSTM", "", node.name, 14, inputs, node.outputs, node.attributes))
