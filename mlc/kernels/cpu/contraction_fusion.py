"""What the contraction template of CPUs takes into its kernels.

Consumers run on the accumulators before they are stored, and with them what is computed from other tensors at the same
points. Of producers of its operands it takes the padding of a convolution (its
windows then read the tensor that is not padded; so does the template of depthwise convolutions over planes), and what
turns over the highest bits of bytes. Movements of data become indexing maps where the operand that is loaded as
vectors, and the result, keep their vectors contiguous, or where both operands come to lie along the reduction and a
template takes that; the other operand may have any strides, except that bf16 and integers of eight bits are read in
groups along the innermost reduction.
"""

from __future__ import annotations

from itertools import pairwise

from mlir import ir

from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.fusion import Dims, Role, accepts_pointwise, is_expensive
from mlc.kernels.common.generics import is_identity, operand_map, turned_over
from mlc.kernels.common.padding import padding_of
from mlc.kernels.common.streamed import is_streamed
from mlc.kernels.cpu.inner_product import has_few_rows, lies_along_sum
from mlc.kernels.cpu.panel_copy import MOST_STEPS
from mlc.kernels.cpu.planes import find_plane, plane_padding


def accepts(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """None when the template takes `op` into the kernel of the contraction `dims.root`, else the reason."""
    if dims.through is not None:
        return _moved_result(dims) if role == "consumer" else _moved_operand(dims)
    if role == "consumer":
        return accepts_pointwise(role, op, dims)
    if dims.behind and dims.is_same_point and _is_in_order(op):
        return None  # it is computed once, on the way to the result
    padding = padding_of(op)
    if turned_over(op) is not None and not _holds_columns(dims):
        return None
    if is_streamed(op) or padding is None and _is_dequantization(op) and _holds_columns(dims):
        return None  # the memory that it saves is worth the arithmetic
    if padding is None:
        return "it would be computed again for every tile of the contraction"
    number = padding.value.value
    if number != 0:
        return f"the padding is {number}, not 0"
    if dims.reader != dims.root or dims.coordinates is None:
        return "it is not an operand of the contraction"
    if find_plane(dims.root) is not None and plane_padding(dims.root) is not None:
        return None
    columns = _vector_dim(dims.root)
    for dim in padding.dims:
        expr = dims.coordinates[dim]
        if isinstance(expr, ir.AffineDimExpr | ir.AffineConstantExpr):
            return f"dimension {dim} is padded, which is not one of the window"
        if columns is None or mentions(expr, columns):
            return f"dimension {dim} is padded, along which vectors are loaded"
    return None


def _is_in_order(op: ir.Operation) -> bool:
    """Is `op` cheap, and does it read vectors where it writes some: tensors in the order of its loops, or fewer
    dimensions of them?"""
    if op.name != "linalg.generic" or is_expensive(op) or not is_identity(op, len(op.operands) - 1):
        return False
    for number in range(len(op.operands) - 1):
        exprs = [e for e in operand_map(op, number).results if not isinstance(e, ir.AffineConstantExpr)]
        places = [ir.AffineDimExpr(e).position if isinstance(e, ir.AffineDimExpr) else -1 for e in exprs]
        if -1 in places or any(a >= b for a, b in pairwise(places)):
            return False
    return True


def _is_dequantization(op: ir.Operation) -> bool:
    """Does it make floats of integers of eight bits, an element of each, with nothing but a scale and a zero point?"""
    if op.name != "linalg.generic" or len(op.results) != 1:
        return False
    if not isinstance(op.results[0].type.element_type, ir.F32Type):
        return False
    first = op.operands[0].type.element_type
    if not isinstance(first, ir.IntegerType) or first.width != 8 or not is_identity(op, 0):
        return False
    return all(o.operation.name in _SCALING for o in op.regions[0].blocks[0].operations)


_SCALING = ("arith.extsi", "arith.extui", "arith.subi", "arith.sitofp", "arith.mulf", "linalg.yield", "arith.constant")


def _holds_columns(dims: Dims) -> bool:
    """Is it the operand that is loaded as vectors?"""
    columns = _vector_dim(dims.root)
    return columns is None or any(mentions(e, columns) for e in dims.coordinates or [])


_FAR = 64  # steps of the reduction across memory that a row may take
_FAR_IN_WINDOW = 32  # the same for a window, which takes them once more for each of its taps


def _moved_operand(dims: Dims) -> str | None:
    exprs, columns = dims.coordinates or [], _vector_dim(dims.root)
    if columns is None or not exprs:
        return "the result has a single element"
    touching = [i for i, e in enumerate(exprs) if mentions(e, columns)]
    if touching:
        plain = touching == [len(exprs) - 1] and isinstance(exprs[-1], ir.AffineDimExpr)
        return None if plain or _is_along_sum(dims) else "its vectors would be gathered"
    kinds = ["reduction" in str(t) for t in dims.root.attributes["iterator_types"]]
    element = dims.root.operands[dims.operand].type.element_type
    if isinstance(element, ir.BF16Type) or isinstance(element, ir.IntegerType) and element.width == 8:
        inner = max(d for d, reduced in enumerate(kinds) if reduced)
        paired = isinstance(exprs[-1], ir.AffineDimExpr) and exprs[-1].position == inner
        return None if paired else "its elements would not stand in groups"
    last = [reduced for d, reduced in enumerate(kinds) if mentions(exprs[-1], d)]
    if last and all(last):
        return None
    steps, most = 1, _FAR_IN_WINDOW if any(last) else _FAR
    for e, extent in zip(
        operand_map(dims.root, dims.operand).results, dims.root.operands[dims.operand].type.shape, strict=True
    ):
        if isinstance(e, ir.AffineDimExpr) and kinds[e.position]:
            steps *= extent if extent >= 0 else most + 1
    return None if steps <= most else "its rows would be read across memory"


def _is_along_sum(dims: Dims) -> bool:
    """Would both operands lie along the reduction, and does a template take that: for few rows sums along vectors, for
    many panels that are transposed on the way?"""
    root, shape = dims.root, dims.root.results[0].type.shape
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    exprs = [list(operand_map(root, i).results) for i in range(2)]
    exprs[dims.operand] = list(dims.coordinates or [])
    if not lies_along_sum(root, exprs):
        return False
    depth = _extent_of(root, kinds.index(True))
    rows = 1
    for e, extent in zip(operand_map(root, 2).results, shape, strict=True):
        if not any(mentions(own, e.position) for own in exprs[dims.operand]):
            if extent < 0:
                return False
            rows *= extent
    is_f32 = isinstance(root.results[0].type.element_type, ir.F32Type)
    return has_few_rows(rows, depth) or is_f32 and 1 < depth <= MOST_STEPS


def _extent_of(root: ir.Operation, dim: int) -> int:
    """The extent of a reduction dimension; 0 where it is not known."""
    for operand in range(2):
        for e, extent in zip(operand_map(root, operand).results, root.operands[operand].type.shape, strict=True):
            if isinstance(e, ir.AffineDimExpr) and e.position == dim and extent >= 0:
                return int(extent)
    return 0


def _moved_result(dims: Dims) -> str | None:
    """Columns stay the last dimension that is not 1."""
    exprs, shape = dims.coordinates or [], dims.reader.results[0].type.shape
    moving = [i for i, extent in enumerate(shape) if extent != 1]
    columns = _vector_dim(dims.root)
    last = exprs[moving[-1]] if moving else None
    same = isinstance(last, ir.AffineDimExpr) and last.position == columns
    return None if same else "its vectors would be scattered"


def _vector_dim(root: ir.Operation) -> int | None:
    """The iteration dimension of the output's last dimension that is not 1; None when all are."""
    shape = root.results[0].type.shape
    moving = [i for i, extent in enumerate(shape) if extent != 1]
    exprs = list(operand_map(root, len(root.operands) - 1).results)
    return ir.AffineDimExpr(exprs[moving[-1]]).position if moving else None
