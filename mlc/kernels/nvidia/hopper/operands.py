"""Operands of a tensor core kernel: how their tiles lie in memory, and the copies that bring them to shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import llvm, nvvm

from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Scalar
from mlc.kernels.common.roles import Roles
from mlc.kernels.nvidia.hopper.wgmma import ROW, Tile
from mlc.kernels.nvidia.hopper.words import Words
from mlc.kernels.nvidia.tensor_maps import LARGEST_RANK, Axis, Product, TensorMap, extents_of

ALONG, ROWS_ROLE = "sum", "rows"


@dataclass(frozen=True)
class _Dim:
    """A dimension of an operand in memory: `role` is the sum, its matrix's rows, or an outer iteration dimension."""

    role: str | int
    axis: Axis


@dataclass(frozen=True)
class Operand:
    """An operand of a contraction as the copy engine sees it: dimensions of more than one element, contiguous first."""

    value: ir.Value
    dims: tuple[_Dim, ...] = field(default=())

    @property
    def across(self) -> bool:
        """Is it contiguous along the rows of its matrix?"""
        return self.dims[0].role == ROWS_ROLE

    def problem(self, size: int) -> str | None:
        """Why the copy engine cannot read it, with elements of `size` bytes; None when it can."""
        if self.dims[0].role not in (ALONG, ROWS_ROLE):
            return "its contiguous dimension is neither summed over nor one of the result's matrix"
        if len(self.dims) > LARGEST_RANK:
            return f"it has more than {LARGEST_RANK} dimensions"
        roles = [d.role for d in self.dims]
        if len(set(roles)) != len(roles):
            return "its dimensions of one role do not lie together"
        if any(d.axis.stride.factor * size % 16 for d in self.dims[1:]):
            return "its rows are not a multiple of 16 bytes apart"
        return None

    def map(self, number: int, tile: Tile, element: str) -> TensorMap:
        """The tensor map for copies of `tile`; of a tile across, of 64 of its rows."""
        width = min(tile.rows, tile.row_bytes // tile.bytes_each) if self.across else tile.rows
        boxes = {ALONG: tile.depth, ROWS_ROLE: width}
        box = tuple(boxes.get(d.role, 1) if isinstance(d.role, str) else 1 for d in self.dims)
        axes = tuple(d.axis for d in self.dims)
        return TensorMap(number, element, tile.bytes_each, axes, box, tile.row_bytes)


def operand_of(source: KernelSource, root: ir.Operation, number: int, roles: Roles) -> Operand | None:
    """Operand `number` of the contraction; None for one that the kernel computes."""
    value = root.operands[number]
    if value not in source.tensors:
        return None
    extents = extents_of(source, value)
    rows = roles.rows if number == roles.left else roles.columns
    exprs = list(operand_map(root, number).results)
    dims: list[_Dim] = []
    stride = Product(1)
    for position in reversed(range(len(exprs))):
        extent, expr = extents[position], exprs[position]
        if extent != Product(1) and isinstance(expr, ir.AffineDimExpr):
            dims.append(_Dim(_role(expr.position, roles, rows), Axis(extent, stride)))
        stride = stride.times(extent)
    return Operand(value, tuple(_merged(dims)))


def _role(dim: int, roles: Roles, rows: Sequence[int]) -> str | int:
    if dim in roles.reduced:
        return ALONG
    return ROWS_ROLE if dim in rows else dim


def _merged(dims: Sequence[_Dim]) -> list[_Dim]:
    """Neighbours of one role as one dimension: contiguous tensors have no gaps between them."""
    result: list[_Dim] = []
    for dim in dims:
        if result and result[-1].role == dim.role:
            last = result[-1].axis
            result[-1] = _Dim(dim.role, Axis(last.extent.times(dim.axis.extent), last.stride))
        else:
            result.append(dim)
    return result or [_Dim(ALONG, Axis(Product(1), Product(1)))]


@dataclass(frozen=True)
class Copies:
    """Emits the copies of an operand's tiles by the map `pointer`."""

    words: Words
    operand: Operand
    tile: Tile
    pointer: ir.Value

    @property
    def _width(self) -> int:
        """Rows of one copy."""
        return self.tile.row_bytes // self.tile.bytes_each if self.operand.across else self.tile.rows

    @property
    def bytes(self) -> int:
        """What the copies of a tile bring: all of it, unless the operand has a single row."""
        has_rows = any(d.role == ROWS_ROLE for d in self.operand.dims)
        return self.tile.size if has_rows else ROW

    def load(self, offset: Scalar, barrier: ir.Value, row: Scalar, step: Scalar, outer: dict[int, Scalar]) -> None:
        """The tile at row `row` and step `step` of the sum, to byte `offset` of the shared memory; `barrier` gets the
        bytes. What lies outside of the tensor is zero."""
        for block in range(self.tile.rows // self._width):
            first = self.words.math.add(row, block * self._width)
            places = {ALONG: step, ROWS_ROLE: first}
            at = [places[d.role] if isinstance(d.role, str) else outer[d.role] for d in self.operand.dims]
            target = self.words.math.add(offset, block * self.tile.block if self.operand.across else 0)
            self._copy(target, at, barrier)

    def _copy(self, offset: Scalar, at: Sequence[Scalar], barrier: ir.Value) -> None:
        cluster = ir.Type.parse("!llvm.ptr<7>")
        target = llvm.AddrSpaceCastOp(cluster, self.words.place(offset)).result
        coordinates = [self.words.value(x) for x in at]
        nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp(target, self.pointer, coordinates, barrier, [])
