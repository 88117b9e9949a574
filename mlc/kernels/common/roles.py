"""The roles of a contraction's dimensions: which are rows, columns, summed over, or shared by everything.

A contraction is seen as products of matrices: the *right* operand has the dimension that the result is contiguous
along (its columns), the *left* one the rows. Dimensions that both operands and the result have, and those of either
side that cannot be walked together with the others, are *outer*: there is a product of matrices for each of their
points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir import ir

from mlc.kernels.common.analysis import can_flatten, can_flatten_reduction, touches
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import operand_map, reduced_loops
from mlc.kernels.common.padding import padding_of


@dataclass(frozen=True)
class Window:
    """Dimension `position` of an input is read at `out * stride + tap * dilation`, for iteration dimensions `out` and
    `tap`; a window of one element has no tap."""

    position: int
    out: int
    tap: int | None
    stride: int
    dilation: int


@dataclass(frozen=True)
class Roles:
    """Iteration dimensions by role, and `left`, the number of the left operand (0 or 1).

    `rows` and `columns` are neighbours in the result, `reduced` in both operands: each group can be walked as one
    dimension. `order` is the iteration dimension of every dimension of the result.

    In a convolution the left operand has `windows`: its rows are pixels, and the sum is over `taps`, the dimensions of
    the window, besides `reduced`, the channels. Where pixels are small, those of a line of a window lie together like
    the channels of one: the taps along it are `reduced` too. `group`: every so many columns of a convolution in groups
    are summed over so many channels of their own; (0, 0) in one group.
    """

    left: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    reduced: tuple[int, ...]
    outer: tuple[int, ...]
    order: tuple[int, ...]
    taps: tuple[int, ...] = ()
    windows: tuple[Window, ...] = ()
    group: tuple[int, int] = (0, 0)

    @property
    def right(self) -> int:
        """The number of the right operand."""
        return 1 - self.left

    @property
    def turned(self) -> Roles:
        """The same product with the operands, and so rows and columns, in each other's place."""
        return replace(self, left=self.right, rows=self.columns, columns=self.rows)

    def positions(self, dims: Sequence[int]) -> tuple[int, ...]:
        """The result's dimensions that `dims` are."""
        return tuple(self.order.index(d) for d in dims)


def contraction_roles(root: ir.Operation, results: Sequence[ir.Value]) -> Roles | None:
    """The roles of the dimensions of `root`, in a kernel that returns `results`; None for contractions that are no
    products of matrices: windows, sums over dimensions that do not lie together, results in another order.
    """
    out = list(operand_map(root, len(root.operands) - 1).results)
    if not out or not all(isinstance(e, ir.AffineDimExpr) for e in out) or len(root.operands) != 3:
        return None
    order = tuple(ir.AffineDimExpr(e).position for e in out)
    shape = root.results[0].type.shape
    axis = max((i for i, e in enumerate(shape) if e != 1), default=len(shape) - 1)
    holders = [i for i in range(2) if touches(root, i, order[axis])]
    if len(holders) != 1 or not all(_is_plain(root, i) for i in range(2)):
        return None
    left = 1 - holders[0]
    columns = _group(root, results, order, axis, holders[0], left)
    free = [i for i in range(axis) if i not in columns and _only(root, order[i], left)]
    rows = _group(root, results, order, free[-1], left, 1 - left) if free else ()
    reduced = tuple(reduced_loops(root))
    if not reduced or (len(reduced) > 1 and not _together(root, reduced)):
        return None
    taken = {*columns, *rows}
    outer = tuple(order[i] for i in range(len(order)) if i not in taken)
    return Roles(left, tuple(order[i] for i in rows), tuple(order[i] for i in columns), reduced, outer, order)


def _group(
    root: ir.Operation, results: Sequence[ir.Value], order: Sequence[int], last: int, holder: int, other: int
) -> tuple[int, ...]:
    """Positions up to `last` in the result of dimensions that operand `holder` alone has and that can be walked as one;
    dimensions of extent 1 that no operand has go along."""
    first = last
    while first > 0 and not touches(root, other, order[first - 1]) and touches(root, holder, order[first - 1]):
        if not can_flatten(results, first - 1, last):
            break
        first -= 1
    return tuple(range(first, last + 1))


def _together(root: ir.Operation, reduced: Sequence[int]) -> bool:
    first, last = reduced[0], reduced[-1]
    return tuple(reduced) == tuple(range(first, last + 1)) and can_flatten_reduction(root, first, last)


def _is_plain(root: ir.Operation, operand: int) -> bool:
    """Is every coordinate of an operand a dimension or a constant?"""
    exprs = operand_map(root, operand).results
    return all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in exprs)


def _only(root: ir.Operation, dim: int, operand: int) -> bool:
    return touches(root, operand, dim) and not touches(root, 1 - operand, dim)


def convolution_roles(root: ir.Operation, results: Sequence[ir.Value]) -> Roles | None:
    """The roles of the dimensions of `root` where it is a convolution with channels last, in a kernel that returns
    `results`; None for anything else."""
    out = list(operand_map(root, len(root.operands) - 1).results)
    if len(root.operands) != 3 or len(out) < 3 or not all(isinstance(e, ir.AffineDimExpr) for e in out):
        return None
    order = tuple(ir.AffineDimExpr(e).position for e in out)
    exprs = list(operand_map(root, 0).results)
    windows = [window_of(e, i) for i, e in enumerate(exprs)]
    found = tuple(w for w in windows if w is not None)
    plain = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in exprs]
    channel, group = _grouped_channel(exprs[-1], order[-1])
    if channel is not None:
        plain[-1], windows[-1], found = channel, None, tuple(w for w in windows[:-1] if w is not None)
    if not found or len(exprs) != len(order) or windows[0] is not None or windows[-1] is not None:
        return None
    if None in (plain[0], plain[-1]) or any(w is None for w in windows[1:-1]) or not _is_plain(root, 1):
        return None
    taps, channels = tuple(w.tap for w in found if w.tap is not None), plain[-1]
    if (plain[0], *(w.out for w in found)) != order[:-1]:
        return None
    assert channels is not None
    filters = [e.position for e in operand_map(root, 1).results if isinstance(e, ir.AffineDimExpr)]
    members = [*taps, channels, order[-1]]
    if sorted(filters) != sorted(members) or [d for d in filters if d in taps] != list(taps):
        return None
    if not can_flatten(results, 0, len(order) - 2, [root]):
        return None
    reduced: tuple[int, ...] = (channels,)
    if channel is None and _lies_together(root, found[-1], filters, channels):
        *others, last = found
        reduced, taps, found = (taps[-1], channels), taps[:-1], (*others, replace(last, tap=None, dilation=0))
    return Roles(0, order[:-1], order[-1:], reduced, (), order, taps, found, group)


def _grouped_channel(expr: ir.AffineExpr, column: int) -> tuple[int | None, tuple[int, int]]:
    """The dimension d of `column floordiv filters * channels + d`, and both numbers; None and zeros for others."""
    none = None, (0, 0)
    expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
    if not isinstance(expr, ir.AffineAddExpr):
        return none
    sides = [expr.lhs.maybe_downcast(), expr.rhs.maybe_downcast()]
    product = next((s for s in sides if isinstance(s, ir.AffineMulExpr)), None)
    channel = next((s for s in sides if isinstance(s, ir.AffineDimExpr)), None)
    if product is None or channel is None:
        return none
    quotient, channels = product.lhs.maybe_downcast(), product.rhs.maybe_downcast()
    if not isinstance(quotient, ir.AffineFloorDivExpr) or not isinstance(channels, ir.AffineConstantExpr):
        return none
    divided, filters = quotient.lhs.maybe_downcast(), quotient.rhs.maybe_downcast()
    is_column = isinstance(divided, ir.AffineDimExpr) and divided.position == column
    if not is_column or not isinstance(filters, ir.AffineConstantExpr):
        return none
    return channel.position, (filters.value, channels.value)


LINE = 128 * 8
"""Bits of a pixel that a step of a sum takes: as many as a line of a window may have in all."""


def _lies_together(root: ir.Operation, window: Window, filters: Sequence[int], channels: int) -> bool:
    """Are the pixels of a line of a window one piece of memory, small and without padding, and so is its filter?"""
    image, taps = root.operands[0], root.operands[1].type
    if window.tap is None or (window.stride, window.dilation, window.position) != (1, 1, image.type.rank - 2):
        return False
    at, line = filters.index(window.tap), window.position
    if filters[at + 1 : at + 2] != [channels] or not taps.has_static_shape or image.type.is_dynamic_dim(line):
        return False
    exprs = [e.position if isinstance(e, ir.AffineDimExpr) else None for e in operand_map(root, 1).results]
    extent, size = taps.shape[exprs.index(window.tap)], image.type.shape[-1] * image.type.element_type.width
    padding = None if (op := defining_op(image)) is None else padding_of(op)
    if padding is not None and line in padding.dims:
        return False
    return bool(extent > 1 and extent * size <= LINE and size % 128 == 0)


def window_of(expr: ir.AffineExpr, position: int) -> Window | None:
    """An expression as a window; None for others."""
    expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
    if isinstance(expr, ir.AffineMulExpr):
        single = _scaled(expr)
        return None if single is None else Window(position, single[0], None, single[1], 0)
    if not isinstance(expr, ir.AffineAddExpr):
        return None
    sides = [_scaled(expr.lhs), _scaled(expr.rhs)]
    if sides[0] is None or sides[1] is None:
        return None
    (out, stride), (tap, dilation) = sides[0], sides[1]
    return Window(position, out, tap, stride, dilation)


def _scaled(expr: ir.AffineExpr) -> tuple[int, int] | None:
    """(dimension, factor) of a dimension or its product with a positive constant."""
    expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
    if isinstance(expr, ir.AffineDimExpr):
        return expr.position, 1
    if isinstance(expr, ir.AffineMulExpr):
        left, right = expr.lhs.maybe_downcast(), expr.rhs.maybe_downcast()
        if isinstance(left, ir.AffineDimExpr) and isinstance(right, ir.AffineConstantExpr) and right.value > 0:
            return left.position, right.value
    return None


def roles_of(root: ir.Operation, results: Sequence[ir.Value]) -> Roles | None:
    """The roles of the dimensions of `root` as products of matrices, or as a convolution; None where it is neither."""
    return contraction_roles(root, results) or convolution_roles(root, results)
