"""Matrix products."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise, indexing, linalg, reduction, shape
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.reduction import vector_norm
from mlc.frontends.torch.registry import Call, aten, promoted


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
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    return elementwise.binary(b, "mul", shape.unsqueeze(b, x, [1]), shape.unsqueeze(b, y, [0]))


@aten("cross", "linalg_cross")
def cross(call: Call) -> Tensor:
    """Products of vectors of three elements that stand at right angles to both."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    sizes = [shape.broadcast_size(b, *pair) for pair in zip(b.dims(x), b.dims(y), strict=True)]
    x, y = (shape.broadcast(b, value, sizes) for value in (x, y))
    given = call.get("dim")
    axis = x.shape.index(3) if given is None else shape.normalize_axis(int(given), x.rank)
    (x1, x2), (y1, y2) = (
        [indexing.gather(b, value, b.constant(np.array(order)), axis) for order in ([1, 2, 0], [2, 0, 1])]
        for value in (x, y)
    )
    return elementwise.binary(b, "sub", elementwise.binary(b, "mul", x1, y2), elementwise.binary(b, "mul", x2, y1))


@aten("cdist", "_cdist_forward", "pairwise_distance", "dist")
def distance(call: Call) -> Tensor:
    """Norms of the differences of rows: of all pairs, of those in the same place, or of all elements at once."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    if "cdist" in call.op:
        call.get("compute_mode")  # how, not what
        x, y = shape.unsqueeze(b, x, [x.rank - 1]), shape.unsqueeze(b, y, [y.rank - 2])
    difference = elementwise.binary(b, "sub", x, y)
    if call.op == "aten::pairwise_distance":
        difference = elementwise.binary(b, "add", difference, b.like(float(call.get("eps", 1e-6)), difference))
    axes = list(range(difference.rank)) if call.op == "aten::dist" else [difference.rank - 1]
    return vector_norm(b, difference, float(call.get("p", 2)), axes, bool(call.get("keepdim", False)))


@aten("trace")
def trace(call: Call) -> Tensor:
    """The sum of a matrix's diagonal."""
    b, x = call.b, call.tensor(0)
    lines = [shape.iota(b, b.dims(x), axis, "int64") for axis in (0, 1)]
    kept = elementwise.select(b, elementwise.compare(b, "eq", *lines), x, b.like(0, x))
    total = kept if x.is_float else elementwise.cast(b, kept, "int64")
    return reduction.reduce(b, "sum", total, [0, 1], False)


@aten("_grouped_mm")
def grouped_mm(call: Call) -> Tensor:
    """Products of consecutive rows with one matrix for each group: offsets say where groups end.

    Rows behind the last group, which PyTorch leaves as they are, become 0.
    """
    b, x, matrices, ends = call.b, call.tensor(0), call.tensor(1), call.get("offs")
    if x.rank != 2 or matrices.rank != 3 or ends is None or matrices.shape[0] is None:
        raise NodeError(f"grouped products of {x} and {matrices}", "groups of rows, with offsets, are supported")
    begin: Size = 0
    parts = []
    for group in range(matrices.shape[0]):
        end = b.arith("maxsi", b.element(ends, group), begin)
        rows = shape.window(b, x, 0, begin, b.arith("subi", end, begin))
        matrix = shape.squeeze(b, shape.window(b, matrices, 0, group, 1), [0])
        parts.append(linalg.matmul(b, rows, matrix))
        begin = end
    count, width = b.dim(x, 0), b.dim(matrices, 2)
    parts.append(shape.full(b, [b.arith("subi", count, begin), width], b.like(0, x)))
    return shape.reshape(b, shape.concat(b, parts, 0), [count, width])
