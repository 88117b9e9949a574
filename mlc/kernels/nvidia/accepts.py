"""The GPU templates' answers to the fusion planner, by the kind of the kernel's root."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from mlir import ir

from mlc.kernels.common.analysis import holds_part, is_contraction, mentions, touches
from mlc.kernels.common.attention import attention_of
from mlc.kernels.common.attention_chain import chain_of
from mlc.kernels.common.fusion import (
    Accepts,
    Dims,
    Role,
    accepts_pointwise,
    accepts_rows,
    loads_at_computed,
    refuses_all,
)
from mlc.kernels.common.generics import is_reduction, operand_map, reduced_loops
from mlc.kernels.common.padding import padding_of
from mlc.kernels.common.roles import convolution_roles, roles_of
from mlc.kernels.nvidia import attention_fusion
from mlc.kernels.nvidia.depthwise import find_depthwise
from mlc.kernels.nvidia.tensor_cores.attention_operands import extent, head_dims
from mlc.kernels.nvidia.tensor_cores.tiles import FLOATS8

FEW_QUERIES, MANY_KEYS = 32, 512  # few tiles with long rows leave most of the chip idle
LONGEST_LOADED = 8192  # elements of a row that is kept whole beside addresses and other inputs
FEWEST_EXACT = 16  # rows and columns from which exact tiles are faster than reading along the sum without them
WIDEST_MASKED = 192  # columns of a head where more is computed on the scores than a scale and a causal mask


def _contraction(role: Role, op: ir.Operation, dims: Dims, *, widths: tuple[int, ...]) -> str | None:
    """Consumers run on the accumulators, and so do loads beside them. Operands are read from memory: by tensor cores,
    which take elements of `widths` bits, and in exact tiles with any strides, and windows of tensors without their
    padding."""
    types = [dims.root.operands[i].type.element_type for i in range(2)]
    by_tensor_cores = all(t.width in widths or str(t) in FLOATS8 for t in types)
    if dims.through is not None and not by_tensor_cores and not _is_in_tiles(dims.root):
        return "only tiles are read or written that are not in order"
    if dims.through is not None:
        return _moved_result(dims) if role == "consumer" else _moved_operand(dims)
    if role == "producer":
        is_beside = dims.reader != dims.root and dims.is_same_point
        return None if is_beside and _costs_a_load(op) else _padding(op, dims, by_tensor_cores)
    return accepts_pointwise(role, op, dims) or _parts_of_pixels(op, dims.root)


def _parts_of_pixels(op: ir.Operation, root: ir.Operation) -> str | None:
    """The rows of a convolution are the pixels of all images, one after the other."""
    roles = roles_of(root, root.results)
    if roles is None or not roles.windows or find_depthwise(root) is not None:
        return None
    if not holds_part(op, 0, len(roles.order) - 2):
        return None
    return "it reads a tensor that all images share, and tensor cores have the pixels of all in one dimension"


def _padding(op: ir.Operation, dims: Dims, by_tensor_cores: bool) -> str | None:
    padding = padding_of(op)
    if padding is None:
        return "it would be computed again for every tile of the contraction"
    number = padding.value.value
    if number != 0:
        return f"the padding is {number}, not 0"
    if dims.reader != dims.root or dims.operand != 0:
        return "it is not the input of a convolution"
    if find_depthwise(dims.root) is not None:
        return None if padding.low[0] == padding.low[-1] == 0 else "images or channels are padded"
    roles, source = convolution_roles(dims.root, dims.root.results), padding.source.type
    channels = source.shape[-1]
    whole = channels >= 0 and channels * source.element_type.width % 128 == 0
    if roles is None or not by_tensor_cores or source.rank > 4 or not whole:
        return "tensor cores do not take the convolution"
    if any(source.is_dynamic_dim(i) for i in range(1, source.rank)):
        return "its pixels are known at run time only"
    return None if padding.low[0] == padding.low[-1] == 0 else "images or channels are padded"


def _reduction(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """Windows read tensors without their padding too: a test for each element costs less than a copy of all."""
    if role == "consumer" and _skips_ones(dims):
        return None
    padding = padding_of(op) if role == "producer" and dims.reader == dims.root else None
    if padding is None or padding.low[-1] != 0 or padding.source.type.rank - 1 in padding.dims:
        return accepts_pointwise(role, op, dims)
    return None


def _skips_ones(dims: Dims) -> bool:
    """Is the result read at the reader's own point, but for dimensions of one element that only the reader has, in
    front of its last one? Means over pixels that keep these dimensions are so."""
    shape, exprs = dims.reader.results[0].type.shape, dims.coordinates or []
    found = [e.position for e in exprs if isinstance(e, ir.AffineDimExpr)]
    plain = all(isinstance(e, ir.AffineDimExpr) or isinstance(e, ir.AffineConstantExpr) and e.value == 0 for e in exprs)
    is_last = bool(found) and found[-1] == len(shape) - 1 and len(exprs) <= len(shape)
    return plain and is_last and found == [i for i, e in enumerate(shape) if i in found or e != 1]


def _rows(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """Loads at computed addresses, as those of the vectors of words, join rows that stay in registers: what is computed
    there is computed once. Branches, as those of concatenations, take a row longer than the launch that is saved."""
    reason = accepts_rows(role, op, dims)
    if reason is None or role == "consumer" or not dims.is_same_point and _elementwise(role, op, dims) is not None:
        return reason
    shape = op.results[0].type.shape
    names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    is_load = not any(n.startswith(("math.", "scf.")) for n in names)
    return None if is_load and 0 < shape[-1] <= LONGEST_LOADED else reason


def _columns(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """Functions in front of columns that stay in registers are computed once, too."""
    reason = _rows(role, op, dims)
    if reason is None or role == "consumer" or not dims.is_same_point:
        return reason
    return reason if loads_at_computed(op) else None


def _elementwise(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """What costs no more than the load of its result may be computed at every point that reads it: positions, and
    vectors of a table. That is a launch and a tensor less."""
    reason = accepts_pointwise(role, op, dims)
    if reason is None or role == "consumer" or op.name != "linalg.generic" or is_reduction(op):
        return reason
    is_part = all(isinstance(e, ir.AffineDimExpr) for e in dims.coordinates or [None])
    return None if is_part and _costs_a_load(op) else reason


def _costs_a_load(op: ir.Operation) -> bool:
    """Does an elementwise operation no more than load an element, or compute a position?"""
    if op.name != "linalg.generic" or is_reduction(op) or len(op.operands) - len(op.results) > 1:
        return False
    names = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    return not any(n.startswith(("math.", "scf.")) for n in names) and names.count("tensor.extract") <= 1


def _is_in_tiles(root: ir.Operation) -> bool:
    """Is `root` a product of f32 that is large enough for exact tiles, as far as its sizes are known?"""
    types = [v.type.element_type for v in root.operands]
    roles = roles_of(root, root.results) if all(isinstance(t, ir.F32Type) for t in types) else None
    if roles is None or roles.taps:
        return False
    shape = root.results[0].type.shape
    extents = [[shape[p] for p in roles.positions(dims)] for dims in (roles.rows, roles.columns)]
    return all(min(found, default=1) < 0 or prod(found) >= FEWEST_EXACT for found in extents)


def _moved_operand(dims: Dims) -> str | None:
    """The copy engine wants rows of a matrix that are multiples of 16 bytes apart."""
    width = dims.root.operands[dims.operand].type.element_type.width
    exprs = dims.coordinates or []
    if not exprs or not all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in exprs):
        return "it would be read at computed addresses"
    kinds = ["reduction" in str(t) for t in dims.root.attributes["iterator_types"]]
    moving = [e.position for e in exprs if isinstance(e, ir.AffineDimExpr)]
    extent = _extent(dims, moving[-1]) if moving else None
    if extent is None or extent * width % 128:
        return "its rows would not be multiples of 16 bytes apart"
    other = operand_map(dims.root, 1 - dims.operand).results
    is_across = not kinds[moving[-1]]
    if is_across and (width != 16 and not _is_values(dims) or any(mentions(e, moving[-1]) for e in other)):
        return "its contiguous dimension is none that tensor cores take"
    result = operand_map(dims.root, len(dims.root.operands) - 1).results
    if is_across and not _ends_with(moving, other, result):
        return "its contiguous dimension is not the last of its rows"
    if sum(kinds[d] for d in moving) > 1:
        return "its sum would be over dimensions that do not lie together"
    return None


def _ends_with(moving: Sequence[int], other: Sequence[ir.AffineExpr], result: Sequence[ir.AffineExpr]) -> bool:
    """Is the contiguous dimension of an operand, which has the dimensions `moving`, the last one of the result that it
    has alone? Tiles are copied along it."""
    order = [e.position for e in result if isinstance(e, ir.AffineDimExpr)]
    own = [d for d in order if d in moving and not any(mentions(e, d) for e in other)]
    return not own or own[-1] == moving[-1]


def _is_values(dims: Dims) -> bool:
    """Is the operand the values of an attention? Those are taken across the sum whatever their width."""
    attention = attention_of(dims.root)
    return attention is not None and attention.output.op == dims.root and dims.operand == 1


def _extent(dims: Dims, dim: int) -> int | None:
    """The extent of an iteration dimension of the contraction; None when it is known at run time only."""
    for operand in range(len(dims.root.operands)):
        type_ = dims.root.operands[operand].type
        for position, expr in enumerate(operand_map(dims.root, operand).results):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == dim and not type_.is_dynamic_dim(position):
                return int(type_.get_dim_size(position))
    return None


def _moved_result(dims: Dims) -> str | None:
    """Columns stay the last dimension that is not 1, and one dimension; so may rows instead (`_may_turn`)."""
    exprs, shape = dims.coordinates or [], dims.reader.results[0].type.shape
    before = list(operand_map(dims.root, len(dims.root.operands) - 1).results)
    moving = [i for i, extent in enumerate(shape) if extent != 1]
    same = bool(moving) and bool(before) and exprs[moving[-1]] == before[-1]
    if not all(_reads_in_order(dims.root, number, [exprs[i] for i in moving]) for number in range(2)):
        return "rows that an operand has side by side would lie apart"
    return None if same or (moving and _may_turn(dims.root, exprs[moving[-1]])) else "its rows would be scattered"


def _reads_in_order(root: ir.Operation, number: int, result: Sequence[ir.AffineExpr]) -> bool:
    """Does an operand that lies across the sum lie along the last rows of such a result?"""
    exprs, other = (operand_map(root, n).results for n in (number, 1 - number))
    dims = [e.position for e in exprs if isinstance(e, ir.AffineDimExpr)]
    is_across = bool(dims) and dims[-1] not in reduced_loops(root)
    return not is_across or _ends_with(dims, other, result)


def _may_turn(root: ir.Operation, last: ir.AffineExpr) -> bool:
    """May rows of a product become columns, the operands taking each other's place? Tensor cores read those of 16 bits
    in either order. Not in one that an attention of one kernel may end with: its values are rows."""
    summed = reduced_loops(root)
    if len(root.operands) != 3 or len(summed) != 1 or any(v.type.element_type.width != 16 for v in root.operands[:2]):
        return False
    others = [d for d in range(len(root.attributes["iterator_types"])) if d not in summed]
    has_batch = any(touches(root, 0, d) and touches(root, 1, d) for d in others)
    if not isinstance(last, ir.AffineDimExpr) or touches(root, 1, last.position) or not has_batch:
        return False
    along_sum = mentions(operand_map(root, 1).results[-1], summed[0])
    return attention_of(root) is None or along_sum


def _unsplit_attention(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """That of `mma.sync` has a block for every tile of queries, whatever its keys."""
    reason = attention_fusion.accepts(role, op, dims)
    attention = attention_of(dims.root) if role == "producer" and is_contraction(op) else None
    if reason is not None or attention is None:
        return reason
    rows = extent(attention.scores, 0, attention.scores.row)
    keys = extent(attention.output, 1, attention.output.inner)
    if 0 < rows < FEW_QUERIES and not 0 < keys <= MANY_KEYS:
        return "few queries do not fill tiles, and keys are not split between them"
    if max(head_dims(attention)) > WIDEST_MASKED and not chain_of(attention).is_plain:
        return "a mask on heads as wide as this takes more registers than there are"
    return None


def _attention(role: Role, op: ir.Operation, dims: Dims) -> str | None:
    """f32 is multiplied by `mma.sync`, or exactly, in the same way everywhere: Hopper's tensor cores want values along
    the sum."""
    attention = attention_of(dims.root)
    if attention is not None and isinstance(attention.scores.element, ir.F32Type):
        return _unsplit_attention(role, op, dims)
    return attention_fusion.accepts(role, op, dims)


ACCEPTS: dict[str, Accepts] = {
    "attention": _attention,
    "contraction": partial(_contraction, widths=(16,)),
    "rows": _rows,
    "columns": _columns,
    "reduction": _reduction,
    "elementwise": _elementwise,
    "opaque": refuses_all,
}
ACCEPTS_TF32: dict[str, Accepts] = {**ACCEPTS, "contraction": partial(_contraction, widths=(16, 32))}
"""The answers where contractions of f32 may round their operands to tf32."""
TARGETS: dict[str, dict[str, Accepts]] = {
    "cuda": ACCEPTS,
    "cuda-tf32": ACCEPTS_TF32,
    "cuda-mma": {**ACCEPTS, "attention": _unsplit_attention},
    "cuda-mma-tf32": {**ACCEPTS_TF32, "attention": _unsplit_attention},
}
"""The answers by the name that passes have for a kind of chips: with Hopper's tensor cores, or those of `mma.sync`."""
