"""A contraction for tensor cores in numbers, which the choice of its tiles goes by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from mlir import ir

from mlc.kernels.common.analysis import is_contraction, reachable
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.generics import operand_map, starts_at
from mlc.kernels.common.roles import Roles, roles_of
from mlc.kernels.nvidia.accepts import FEWEST_EXACT
from mlc.kernels.nvidia.tensor_cores import packed_epilogue
from mlc.kernels.nvidia.tensor_cores.operands import operands_of
from mlc.kernels.nvidia.tensor_cores.tiles import ELEMENT_BYTES, FLOATS8, ROW
from mlc.kernels.nvidia.tensor_cores.twins import are_twins, products_of

ASSUMED = 512  # for an extent that is known at run time only
SMALLEST_SUM = 16
TURNED_EXACT, SHORTEST_EXACT = 64, 64  # rows and columns, and terms of a sum, that make turning a weight worth while
EXACT_TILE, TILES_WANTED = (64, 64), 128
# Instructions of operations that are several.
WORK = {"math.erf": 16, "math.tanh": 12, "math.exp": 6, "arith.divf": 6, "math.sqrt": 6, "math.rsqrt": 4}
ROWS = "mlc.rows"  # of a kernel module: the rows that its schedule is for, where only a run counts them


def rows_of(source: KernelSource) -> int | None:
    """How many rows the schedule of a kernel is for, where only a run counts them and somebody has said it."""
    if ROWS not in source.module.attributes:
        return None
    return ir.IntegerAttr(source.module.attributes[ROWS]).value


@dataclass(frozen=True)
class MatrixShape:
    """A contraction in numbers: `outer` products of `rows` x `columns`, each a sum of `depth` terms for all `taps`;
    about `work` operations on each element of the result come after it. Every `group` of columns is summed over
    channels of its own (0: all are summed over the same). For each element of the result `read` bytes of other matrices
    are read.

    Of `twins`, products of one left operand whose results meet, `columns` are those of all.

    `left_across` and `right_across`: are the operands contiguous along their rows, and not along the sum? `aligned`
    says of both which bytes their rows in memory begin at multiples of, at most a cache line's.
    """

    rows: int
    columns: int
    depth: int
    outer: int
    taps: int = 1
    is_known: bool = True
    left_across: bool = False
    right_across: bool = False
    aligned: tuple[int, int] = (ROW, ROW)
    work: int = 0
    group: int = 0
    read: int = 0
    twins: int = 1

    def bytes(self, size: int) -> int:
        """What must be read: the windows of a convolution overlap."""
        return size * self.outer * self.depth * (self.rows + self.taps * self.columns)

    def steps(self, depth: int) -> int:
        """Tiles of the sum, each of `depth` terms."""
        return self.taps * -(-self.depth // depth)

    def tiles(self, rows: int, columns: int) -> int:
        """Tiles of the result, each of `rows` x `columns`."""
        return -(-self.rows // rows) * -(-self.columns // columns) * self.outer


@dataclass(frozen=True)
class Matrices:
    """What tensor cores are to do in a kernel: kind of elements, the roles of dimensions, the shape,
    and how many elements of a row of the result a thread handles at a time."""

    element: str
    roles: Roles
    shape: MatrixShape
    lanes: int

    @property
    def turned(self) -> Matrices:
        """The same with the operands in each other's place."""
        shape = replace(
            self.shape, rows=self.shape.columns, columns=self.shape.rows, aligned=self.shape.aligned[::-1],
            left_across=self.shape.right_across, right_across=self.shape.left_across,
        )  # fmt: skip
        return replace(self, roles=self.roles.turned, shape=shape)


def matrices_of(source: KernelSource, root: ir.Operation, precision: str) -> Matrices | None:
    """The contraction `root` of a kernel as one for tensor cores; None when they cannot do it."""
    return _matrices(source, root, _element(root, precision))


def exact_matrices_of(source: KernelSource, root: ir.Operation) -> Matrices | None:
    """A contraction of f32 whose tiles are copied as for tensor cores and multiplied exactly, both operands along the
    sum; None for others, and for few rows or columns."""
    found = _matrices(source, root, "f32") if _is_f32(root) else None
    return None if found is None or min(found.shape.rows, found.shape.columns) < FEWEST_EXACT else found


def is_for_exact_tiles(source: KernelSource, root: ir.Operation) -> bool:
    """Is `root` a contraction of f32 of known sizes, with tiles enough to keep all multiprocessors busy?"""
    roles, operands = roles_of(root, source.results), list(root.operands)[:3]
    if roles is None or not _is_f32(root) or not all(v.type.has_static_shape for v in operands):
        return False
    shape = _shape(source, root, roles)
    is_small = min(shape.rows, shape.columns) < TURNED_EXACT or shape.depth * shape.taps < SHORTEST_EXACT
    return not is_small and shape.tiles(*EXACT_TILE) >= TILES_WANTED


def _is_f32(root: ir.Operation) -> bool:
    return all(str(v.type.element_type) == "f32" for v in list(root.operands)[:3])


def _matrices(source: KernelSource, root: ir.Operation, element: str | None) -> Matrices | None:
    roles = roles_of(root, source.results)
    products = products_of(source)
    if element is None or roles is None or not all(starts_at(product, 0.0) for product in products):
        return None
    if len(products) > 1 and not (are_twins(products, roles) and packed_epilogue.takes(source, root)):
        return None
    operands, size = operands_of(source, products[0], roles), ELEMENT_BYTES[element]
    others = [operands_of(source, product, roles) for product in products[1:]]
    if operands is None or None in others or any(o.problem(size) is not None for o in operands):
        return None
    if size != 2 and any(o.across for o in operands):
        return None  # the tensor cores take what has not 16 bits along the sum only
    aligned = operands[0].alignment(size), operands[1].alignment(size)
    shape = replace(
        _shape(source, root, roles), left_across=operands[0].across, right_across=operands[1].across, aligned=aligned,
        work=_work(source, root), read=_read(source, root), twins=len(products),
    )  # fmt: skip
    if shape.depth < SMALLEST_SUM and not roles.taps:
        return None
    lanes = _lanes(source, root, roles)
    if shape.twins > 1:
        if lanes != packed_epilogue.LANES or shape.read:
            return None
        shape = replace(shape, columns=shape.twins * shape.columns)
    return Matrices(element, roles, shape, lanes)


def _element(root: ir.Operation, precision: str) -> str | None:
    """What the tensor cores multiply; None for other types."""
    types = [str(v.type.element_type) for v in list(root.operands)[:2]]
    if not isinstance(root.results[0].type.element_type, ir.F32Type):
        return None
    if all(t in FLOATS8 for t in types):
        return "f8"
    if types == ["f32", "f32"]:
        return "tf32" if precision == "tf32" else None
    return types[0] if types[0] == types[1] and types[0] in ("bf16", "f16") else None


def _work(source: KernelSource, root: ir.Operation) -> int:
    """About how many operations the kernel does on an element behind the contraction."""
    names = [
        op.operation.name
        for generic in reachable(source.results)
        if generic.name == "linalg.generic" and not is_contraction(generic)
        for op in generic.regions[0].blocks[0].operations
    ]
    return sum(WORK.get(name, 1) for name in names if name != "linalg.yield")


def _read(source: KernelSource, root: ir.Operation) -> int:
    """Bytes of matrices that are read behind the contraction, for an element of the result."""
    return sum(v.type.element_type.width // 8 for v in packed_epilogue.matrices_behind(source, root))


def _shape(source: KernelSource, root: ir.Operation, roles: Roles) -> MatrixShape:
    type_ = root.results[0].type
    extents = [ASSUMED if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]
    rows, columns, outer = (
        prod(extents[p] for p in roles.positions(dims)) for dims in (roles.rows, roles.columns, roles.outer)
    )
    summed = [ASSUMED if e is None else e for e in reduction_shape(root)]
    taps = len(roles.taps)
    is_known = type_.has_static_shape and None not in reduction_shape(root)
    noted = rows_of(source)
    if noted is not None:
        rows, is_known = noted, True
    return MatrixShape(rows, columns, prod(summed[taps:]), outer, prod(summed[:taps]), is_known, group=roles.group[0])


def reduction_shape(root: ir.Operation) -> list[int | None]:
    """Extents of the dimensions that are summed over; None for those known at run time only."""
    extents: dict[int, int] = {}
    for operand in range(len(root.operands)):
        type_ = root.operands[operand].type
        for position, expr in enumerate(operand_map(root, operand).results):
            if isinstance(expr, ir.AffineDimExpr) and not type_.is_dynamic_dim(position):
                extents[expr.position] = type_.get_dim_size(position)
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    return [extents.get(d) for d, is_reduced in enumerate(kinds) if is_reduced]


def _lanes(source: KernelSource, root: ir.Operation, roles: Roles) -> int:
    """Elements of a row that a thread handles at a time: up to 16 bytes of f32, or of a 16-bit result."""
    type_ = source.results[0].type
    extents = [None if type_.is_dynamic_dim(p) else type_.get_dim_size(p) for p in roles.positions(roles.columns)]
    inner = None if None in extents else prod(e for e in extents if e is not None)
    widths = (8, 4, 2, 1) if packed_epilogue.takes(source, root) else (4, 2, 1)
    return next(lanes for lanes in widths if lanes == 1 or (inner is not None and inner % lanes == 0))
