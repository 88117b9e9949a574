"""Matrix products."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise, experts, indexing, linalg, reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.reduction import vector_norm
from mlc.frontends.torch.registry import Call, aten, promoted


@aten("matmul", "mm", "bmm", "mv", "dot")
def matmul(call: Call) -> Tensor:
    """Products of vectors, matrices and batches of matrices."""
    return _product(call.b, call.tensor(0), call.tensor(1))


def _product(b: Builder, lhs: Tensor, rhs: Tensor, transpose_rhs: bool = False) -> Tensor:
    """A product in the dtype of its operands; what bytes overflow is cut, as in PyTorch."""
    result = linalg.matmul(b, lhs, rhs, transpose_rhs=transpose_rhs)
    return elementwise.cast(b, result, lhs.dtype)


@aten("linear")
def linear(call: Call) -> Tensor:
    """`x @ weight.T + bias`."""
    product = _product(call.b, call.tensor(0), call.tensor(1), transpose_rhs=True)
    bias = call.get("bias")
    return product if bias is None else elementwise.binary(call.b, "add", product, bias)


@aten("addmm", "baddbmm", "addmv", "addbmm")
def addmm(call: Call) -> Tensor:
    """`beta * c + alpha * a @ b`, where `addbmm` sums the products of a batch."""
    b = call.b
    product = _product(b, call.tensor(1), call.tensor(2))
    if call.op.rstrip("_") == "aten::addbmm":
        product = reduction.reduce(b, "sum", product, [0], False)
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
    b, equation, factors = call.b, str(call[0]).replace(" ", ""), call[1]
    if len(factors) == 1 and not factors[0].is_float and _sums(equation):
        factors = [elementwise.cast(b, factors[0], "int64")]  # as sums of integers are
    return b.op("einsum", [factors], equation=equation, unsigned=factors[0].unsigned)


def _sums(equation: str) -> bool:
    """Whether Einstein summation of one operand adds anything up."""
    labels, _, kept = equation.partition("->")
    letters = set(labels) - set(".")
    return bool(letters - set(kept)) if "->" in equation else any(labels.count(letter) > 1 for letter in letters)


@aten("tensordot")
def tensordot(call: Call) -> Tensor:
    """Sums of products over pairs of dimensions, one of which may have an extent of 1 and stands for its copies."""
    b, x, y = call.b, call.tensor(0), call.tensor(1)
    pairs = [[shape.normalize_axis(axis, t.rank) for axis in call.ints(i)] for i, t in ((2, x), (3, y))]
    for left_axis, right_axis in zip(*pairs, strict=True):
        left_size, right_size = x.shape[left_axis], y.shape[right_axis]
        if left_size != right_size and left_size == 1:
            y = reduction.reduce(b, "sum", y, [right_axis], True)
        elif left_size != right_size and right_size == 1:
            x = reduction.reduce(b, "sum", x, [left_axis], True)
    rest = [[axis for axis in range(t.rank) if axis not in used] for t, used in zip((x, y), pairs, strict=True)]
    sizes = [[b.dim(t, axis) for axis in axes] for t, axes in zip((x, y), rest, strict=True)]
    total = b.product([b.dim(x, axis) for axis in pairs[0]])
    left = shape.reshape(b, shape.transpose(b, x, [*rest[0], *pairs[0]]), [b.product(sizes[0]), total])
    right = shape.reshape(b, shape.transpose(b, y, [*pairs[1], *rest[1]]), [total, b.product(sizes[1])])
    return shape.reshape(b, _product(b, left, right), [*sizes[0], *sizes[1]])


@aten("bilinear")
def bilinear(call: Call) -> Tensor:
    """`x transpose(weight[o]) y + bias[o]` for each feature o: `[..., i]` and `[..., j]` give `[..., o]`."""
    b, x, y, weight = call.b, call.tensor(0), call.tensor(1), call.tensor(2)
    lead = b.dims(x)[:-1]
    x, y = (shape.reshape(b, value, [b.product(lead), b.dim(value, value.rank - 1)]) for value in (x, y))
    features, left, right = b.dims(weight)
    table = shape.reshape(b, shape.transpose(b, weight, [1, 0, 2]), [left, b.arith("muli", features, right)])
    half = shape.reshape(b, _product(b, x, table), [b.dim(x, 0), features, right])
    result = reduction.reduce(b, "sum", elementwise.binary(b, "mul", half, shape.unsqueeze(b, y, [1])), [2], False)
    result = shape.reshape(b, result, [*lead, features])
    bias = call.get("bias")
    return result if bias is None else elementwise.binary(b, "add", result, bias)


@aten("_trilinear")
def trilinear(call: Call) -> Tensor:
    """Sums of products of three tensors, each of which lacks the dimensions that its list names."""
    lacking = [call.ints(place) for place in (3, 4, 5)]
    call.get("unroll_dim")  # how, not what
    rank = call.tensor(0).rank + len(lacking[0])
    letters = [chr(ord("a") + axis) for axis in range(rank)]
    parts = ["".join(letter for axis, letter in enumerate(letters) if axis not in gone) for gone in lacking]
    summed = shape.normalize_axes(call.ints(6), rank)
    kept = "".join(letter for axis, letter in enumerate(letters) if axis not in summed)
    return call.b.op("einsum", [[call.tensor(place) for place in range(3)]], equation=f"{','.join(parts)}->{kept}")


@aten("outer")
def outer(call: Call) -> Tensor:
    """All products of two vectors."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    return elementwise.binary(b, "mul", shape.unsqueeze(b, x, [1]), shape.unsqueeze(b, y, [0]))


@aten("kron")
def kronecker(call: Call) -> Tensor:
    """The product of Kronecker: each element of the first times all of the second, dimension by dimension."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    rank = max(x.rank, y.rank)
    x, y = (shape.unsqueeze(b, value, list(range(rank - value.rank))) for value in (x, y))
    sizes = [b.arith("muli", *pair) for pair in zip(b.dims(x), b.dims(y), strict=True)]
    x = shape.unsqueeze(b, x, list(range(1, 2 * rank, 2)))
    y = shape.unsqueeze(b, y, list(range(0, 2 * rank, 2)))
    return shape.reshape(b, elementwise.binary(b, "mul", x, y), sizes)


@aten("cross", "linalg_cross")
def cross(call: Call) -> Tensor:
    """Products of vectors of three elements that stand at right angles to both."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    x, y = shape.broadcast_together(b, [x, y])
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
    difference = elementwise.binary(b, "sub", elementwise.floating(b, x), elementwise.floating(b, y))
    if call.op == "aten::pairwise_distance":
        difference = elementwise.binary(b, "add", difference, b.like(float(call.get("eps", 1e-6)), difference))
    axes = list(range(difference.rank)) if call.op == "aten::dist" else [difference.rank - 1]
    return vector_norm(b, difference, float(call.get("p", 2)), axes, bool(call.get("keepdim", False)))


@aten("pdist", "_pdist_forward")
def pair_distance(call: Call) -> Tensor:
    """Norms of the differences of all pairs of rows, in the order of the upper triangle: `[n (n - 1) / 2]`."""
    b, x = call.b, call.tensor(0)
    number = b.dim(x, 0)
    if isinstance(number, int):
        places = [b.constant(line) for line in np.triu_indices(number, 1)]
    else:
        lines = [shape.iota(b, [number, number], axis, "int64") for axis in (0, 1)]
        found = b.op("nonzero", [elementwise.compare(b, "lt", *lines)])
        places = [shape.squeeze(b, shape.window(b, found, 0, axis, 1), [0]) for axis in (0, 1)]
    difference = elementwise.binary(b, "sub", *(indexing.gather(b, x, line, 0) for line in places))
    return vector_norm(b, difference, float(call.get("p", 2)), [1], False)


@aten("trace")
def trace(call: Call) -> Tensor:
    """The sum of a matrix's diagonal."""
    b, x = call.b, call.tensor(0)
    lines = [shape.iota(b, b.dims(x), axis, "int64") for axis in (0, 1)]
    kept = elementwise.select(b, elementwise.compare(b, "eq", *lines), x, b.like(0, x))
    total = kept if x.is_float else elementwise.cast(b, kept, "int64")
    return reduction.reduce(b, "sum", total, [0, 1], False)


@aten("_grouped_mm", "transformers::grouped_mm_fallback")
def grouped_mm(call: Call) -> Tensor:
    """Products of consecutive rows with one matrix for each group: offsets say where groups end.

    Rows behind the last group, which PyTorch leaves as they are, become 0.
    """
    b, x, matrices, ends = call.b, call.tensor(0), call.tensor(1), call.get("offs")
    if x.rank != 2 or matrices.rank != 3 or ends is None:
        raise NodeError(f"grouped products of {x} and {matrices}", "groups of rows, with offsets, are supported")
    count = shape.size_scalar(b, b.dim(x, 0))
    ends = elementwise.clamp(b, elementwise.cast(b, ends, "int64"), b.like(0, count), count)
    first = shape.reshape(b, b.like(0, ends), [1])
    begins = shape.window(b, shape.concat(b, [first, ends], 0), 0, 0, b.dim(ends, 0))

    def product(rows: Tensor, group: Size) -> Tensor:
        return linalg.matmul(b, rows, shape.squeeze(b, shape.window(b, matrices, 0, group, 1), [0]))

    return experts.by_groups(b, x, begins, ends, b.dim(matrices, 2), product)
