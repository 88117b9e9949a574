"""Matrix products."""

from __future__ import annotations

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import linalg, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op


@onnx_op("MatMul")
def matmul(g: GraphImporter, node: Node) -> Tensor:
    """`numpy.matmul`."""
    return linalg.matmul(g.b, node[0], node[1])


@onnx_op("Gemm")
def gemm(g: GraphImporter, node: Node) -> Tensor:
    """alpha * A * B + beta * C."""
    b = g.b
    product = linalg.matmul(b, node[0], node[1], bool(node.attr("transA", 0)), bool(node.attr("transB", 0)))
    product = ew.scaled(b, product, float(node.attr("alpha", 1.0)))
    bias = node.optional(2)
    beta = float(node.attr("beta", 1.0))
    if bias is None or beta == 0:
        return product
    return ew.binary(b, "add", product, ew.scaled(b, bias, beta))


@onnx_op("MatMulInteger")
def matmul_integer(g: GraphImporter, node: Node) -> Tensor:
    """Products of 8-bit integers, shifted by their zero points, in 32 bits."""
    lhs = shifted(g.b, node[0], node.optional(2), -2)
    rhs = shifted(g.b, node[1], node.optional(3), -1)
    return linalg.matmul(g.b, lhs, rhs)


def shifted(b: Builder, x: Tensor, zero_point: Tensor | None, axis: int) -> Tensor:
    """`x` minus its zero point as `int32`; a rank-1 zero point runs along `axis` of `x`."""
    wide = ew.cast(b, x, "int32")
    if zero_point is None:
        return wide
    zero = ew.cast(b, zero_point, "int32")
    if zero.rank == 1 and zero.shape[0] == 1:
        zero = shape.reshape(b, zero, [])
    elif zero.rank == 1:
        extents = [1] * x.rank
        sizes = [b.dim(zero, 0) if dim == axis % x.rank else extent for dim, extent in enumerate(extents)]
        zero = shape.reshape(b, zero, sizes)
    return ew.binary(b, "sub", wide, zero)


@onnx_op("Einsum")
def einsum(g: GraphImporter, node: Node) -> Tensor:
    """Einstein summation."""
    equation = node.required("equation").replace(" ", "")
    return g.b.op("einsum", [node.present()], equation=equation, unsigned=node[0].unsigned)


@onnx_op("Det")
def det(g: GraphImporter, node: Node) -> Tensor:
    """Determinants of square matrices, by elimination with pivoting."""
    return linalg.determinant(g.b, node[0])
