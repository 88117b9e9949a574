"""Matrix products."""

from __future__ import annotations

from mlc.frontends.common import elementwise, linalg, shape
from mlc.frontends.common.builder import Tensor
from mlc.frontends.torch.registry import Call, aten


@aten("matmul", "mm", "bmm", "mv", "dot")
def matmul(call: Call) -> Tensor:
    """Products of vectors, matrices and batches of matrices."""
    return linalg.matmul(call.b, call.tensor(0), call.tensor(1))


@aten("linear")
def linear(call: Call) -> Tensor:
    """`x @ weight.T + bias`."""
    product = linalg.matmul(call.b, call.tensor(0), call.tensor(1), transpose_rhs=True)
    bias = call.get("bias")
    return product if bias is None else elementwise.binary(call.b, "add", product, bias)


@aten("addmm", "baddbmm", "addmv")
def addmm(call: Call) -> Tensor:
    """`beta * c + alpha * a @ b`."""
    b = call.b
    product = linalg.matmul(b, call.tensor(1), call.tensor(2))
    c, alpha, beta = call.tensor(0), call.get("alpha", 1), call.get("beta", 1)
    if alpha != 1:
        product = elementwise.binary(b, "mul", product, b.like(alpha, product))
    if beta == 0:
        return product
    if beta != 1:
        c = elementwise.binary(b, "mul", c, b.like(beta, c))
    return elementwise.binary(b, "add", product, c)


@aten("einsum")
def einsum(call: Call) -> Tensor:
    """Einstein summation."""
    return call.b.op("einsum", [call[1]], equation=str(call[0]).replace(" ", ""))


@aten("tensordot")
def tensordot(call: Call) -> Tensor:
    """Sums of products over pairs of dimensions."""
    b, x, y = call.b, call.tensor(0), call.tensor(1)
    pairs = [[shape.normalize_axis(axis, t.rank) for axis in call.ints(i)] for i, t in ((2, x), (3, y))]
    rest = [[axis for axis in range(t.rank) if axis not in used] for t, used in zip((x, y), pairs, strict=True)]
    sizes = [[b.dim(t, axis) for axis in axes] for t, axes in zip((x, y), rest, strict=True)]
    total = b.product([b.dim(x, axis) for axis in pairs[0]])
    left = shape.reshape(b, shape.transpose(b, x, [*rest[0], *pairs[0]]), [b.product(sizes[0]), total])
    right = shape.reshape(b, shape.transpose(b, y, [*pairs[1], *rest[1]]), [total, b.product(sizes[1])])
    return shape.reshape(b, linalg.matmul(b, left, right), [*sizes[0], *sizes[1]])


@aten("outer")
def outer(call: Call) -> Tensor:
    """All products of two vectors."""
    column = shape.unsqueeze(call.b, call.tensor(0), [1])
    row = shape.unsqueeze(call.b, call.tensor(1), [0])
    return elementwise.binary(call.b, "mul", column, row)
