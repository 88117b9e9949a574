"""The epilogue of 16-bit results, which are computed in the registers where the accumulators are.

What is staged in shared memory is the result itself, half the bytes of accumulators: threads write it as matrices
(PTX ISA, `stmatrix`) and read vectors of 16 bytes. Takes epilogues that read vectors along rows or columns, and at most
one matrix of 16 bits like the result, an addend: each thread has two columns of eight at a time, which would be a poor
way to read it, so that it comes the way that the result leaves, by vectors of 16 bytes and `ldmatrix`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from mlir import ir
from mlir.dialects import llvm, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import is_identity, is_reduction
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.tensor_cores.epilogue import WARP_ROWS, Epilogue
from mlc.kernels.nvidia.tensor_cores.words import assembly, fields

LANES = 8
"""16-bit elements of a vector of 16 bytes."""
_SIZE = 2  # bytes of an element
_WIDEST = 64  # columns of a block whose rows are 128 bytes


def packed_chunk(columns: int) -> int:
    """Columns that are staged at a time, of a tile of `columns`."""
    return next(c for c in (2 * _WIDEST, _WIDEST, 32, 16) if columns % c == 0)


def packed_bytes(columns: int, warps: int) -> int:
    """Shared memory that the epilogue of tiles of `columns` columns takes."""
    return warps * WARP_ROWS * packed_chunk(columns) * _SIZE


def takes(source: KernelSource, root: ir.Operation) -> bool:
    """Is the kernel's only result of 16 bits, and does what comes after the contraction `root` read nothing but vectors
    and an addend?"""
    if len(source.results) != 1 or not _has_16_bits(source.results[0]):
        return False
    matrices = matrices_behind(source, root)
    return not matrices or (len(matrices) == 1 and is_addend(source, root, matrices[0]))


def addend_of(source: KernelSource, root: ir.Operation) -> ir.Value | None:
    """The matrix that the epilogue of a kernel that `takes` accepts reads."""
    return next(iter(matrices_behind(source, root)), None)


def _has_16_bits(value: ir.Value) -> bool:
    element = value.type.element_type
    return isinstance(element, ir.FloatType) and element.width == 16


def matrices_behind(source: KernelSource, root: ir.Operation) -> list[ir.Value]:
    """The inputs that are more than vectors and are read besides the contraction: its operands too, where they are read
    again."""
    inputs = {t for t in source.tensors if t not in source.destinations}
    found: dict[ir.Value, None] = {}
    stack, seen = list(source.results), set()
    while stack:
        value = stack.pop()
        if value in inputs and sum(extent != 1 for extent in value.type.shape) > 1:
            found[value] = None
        op = defining_op(value)
        if op is None or op == root or is_contraction(op) or op in seen:
            continue
        seen.add(op)
        stack += _captured(op)
    return list(found)


def _captured(op: ir.Operation) -> list[ir.Value]:
    """The operands of an operation and of those in its regions."""
    inner = (o.operation for region in op.regions for block in region.blocks for o in block.operations)
    return [*op.operands, *(value for o in inner for value in _captured(o))]


def is_addend(source: KernelSource, root: ir.Operation, value: ir.Value) -> bool:
    """Is `value` of 16 bits, and does every element of the result depend on that at its own place alone?"""
    if not _has_16_bits(value) or list(value.type.shape) != list(source.results[0].type.shape):
        return False
    depending = {value}
    for op in (view.operation for view in list(source.block.operations)[:-1]):
        reads = [n for n, operand in enumerate(op.operands) if operand in depending]
        if op == root or not depending.intersection(_captured(op)):
            continue
        if op.name != "linalg.generic" or is_reduction(op) or len(op.results) != 1 or not reads:
            return False
        if not all(is_identity(op, n) for n in [*reads, len(op.operands) - 1]):
            return False
        depending.add(op.results[0])
    return True


class PackedEpilogue(Epilogue):
    """Stores the one result of `source`, which `takes` accepts; extents of columns are multiples of eight."""

    _SIZE = _SIZE
    _TOGETHER = 1  # results are only stored then
    _chunk_of = staticmethod(packed_chunk)

    @cached_property
    def _addend(self) -> ir.Value | None:
        return addend_of(self.source, self.root)

    def _stage(
        self,
        accumulators: Sequence[ir.Value],
        base: Scalar,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
    ) -> None:
        """Computes and stages columns. Thread 4r + t of a warp has, of every eight columns, 2t and 2t + 1 of the rows r
        and r + 8; thread l says where the row l % 8 of the matrix l / 8 of four goes."""
        math, words = self.words.math, self.words
        addend = self._addend
        if addend is not None:
            self._fetch(addend, base, lane, origin, outer)
            self._synchronize()
        width = min(_WIDEST, 2 * len(accumulators))
        rows = [self._clamped(math.add(math.add(origin[0], math.div(lane, 4)), 8 * half), 0, 1) for half in range(2)]
        pair, row, side = math.mul(math.rem(lane, 4), 2), math.rem(lane, 16), math.div(lane, 16)
        for group in range(len(accumulators) // 8):
            block, inside = divmod(16 * group, width)
            where = self._byte(width, block, row, words.xor(inside // 8, side))
            address = words.value(math.add(words.shared_address, math.add(base, where)))
            added = [None] * 4 if addend is None else self._read(addend, address)
            values = []
            for half in range(2):
                column = math.add(math.add(origin[1], 16 * group + 8 * half), pair)
                for number in range(2):
                    first = 8 * group + 4 * half + 2 * number
                    at = rows[number], self._clamped(column, 1, 2)
                    sums = accumulators[first : first + 2]
                    values.append(self._value(sums, added[2 * half + number], at, outer))
            text = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};"
            assembly(None, [address, *values], text, "r,r,r,r,r")

    def _fetch(
        self, addend: ir.Value, base: Scalar, lane: ir.Value, origin: tuple[Scalar, Scalar], outer: Sequence[Scalar]
    ) -> None:
        """Stages the addend."""

        def read(_: Scalar, at: tuple[Scalar, Scalar]) -> list[ir.Value]:
            point = self._point((self._clamped(at[0], 0, 1), self._clamped(at[1], 1, LANES)), outer)
            return [Evaluator(self.frame, LANES).tensor(addend, point)]

        def write(values: list[ir.Value], where: Scalar, _: tuple[Scalar, Scalar]) -> None:
            place = self.words.place(self.words.math.add(base, where))
            llvm.StoreOp(values[0], place, alignment=LANES * _SIZE)

        self._each_vector(lane, origin, Epilogue._TOGETHER, read, write)

    def _read(self, addend: ir.Value, address: ir.Value) -> list[ir.Value]:
        """The words of the addend that a thread needs of four matrices."""
        words, text = self.words, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];"
        struct = ir.Type.parse("!llvm.struct<(i32, i32, i32, i32)>")
        found = assembly(struct, [address], text, "=r,=r,=r,=r,r")
        assert found is not None
        type_ = ir.VectorType.get([2], addend.type.element_type)
        one = ir.VectorType.get([1], words.i32)
        return [vector.bitcast(type_, vector.from_elements(one, [w])) for w in fields(found, [words.i32] * 4)]

    def _value(
        self, pair: Sequence[ir.Value], added: ir.Value | None, at: tuple[Scalar, Scalar], outer: Sequence[Scalar]
    ) -> ir.Value:
        """Two neighbours of the result as a word; `added` are those of the addend."""
        overrides = self._overrides(pair)
        if self._addend is not None and added is not None:
            overrides[self._addend] = lambda _: added
        scope = Evaluator(self.frame, 2, overrides=overrides)
        point = self._point(at, outer)
        found = memory.splat(scope.tensor(self.source.results[0], point), 2)
        while self._computing:
            self._round_together(*self._computing.pop())
        word = vector.bitcast(ir.VectorType.get([1], self.words.i32), found)
        return vector.extract(word, [], [0])

    def _overrides(self, pair: Sequence[ir.Value]) -> dict[ir.Value, Override]:
        """Accumulators in place of what the contraction gives."""
        return self._sums(self.root, pair)

    def _sums(self, product: ir.Operation, pair: Sequence[ir.Value]) -> dict[ir.Value, Override]:
        """Two accumulators in place of what `product` gives."""
        sums = vector.from_elements(ir.VectorType.get([2], self.words.f32), list(pair))
        self._computing.append((sums, pair))
        return {product.results[0]: lambda _: sums}

    @cached_property
    def _computing(self) -> list[tuple[ir.Value, Sequence[ir.Value]]]:
        """The accumulators of which a result is being computed, as vectors and one by one."""
        return []

    def _round_together(self, sums: ir.Value, pair: Sequence[ir.Value]) -> None:
        """Rounds two accumulators to f16 by one instruction where more is computed of them. LLVM would round each by
        itself, which ptxas takes for a read while products are under way, and serializes those (C7514)."""
        for rounding in [use.owner for use in sums.uses]:
            op = rounding.operation
            is_half = op.name == "arith.truncf" and isinstance(op.results[0].type.element_type, ir.F16Type)
            if not is_half or not any(use.owner.operation.name == "arith.extf" for use in op.results[0].uses):
                continue
            with ir.InsertionPoint(op), op.location:
                word = assembly(self.words.i32, [pair[1], pair[0]], "cvt.rn.f16x2.f32 $0, $1, $2;", "=r,f,f", pure=True)
                assert word is not None
                one = vector.from_elements(ir.VectorType.get([1], self.words.i32), [word])
                op.results[0].replace_all_uses_with(vector.bitcast(op.results[0].type, one))

    def _byte(self, width: int, block: Scalar, row: Scalar, piece: Scalar) -> Scalar:
        """Byte of a piece of 16 bytes of a row of a block of `width` columns. Pieces are permuted so that neither those
        of eight rows nor those of a line lie in the same banks."""
        math, pieces = self.words.math, width // LANES
        permuted = self.words.xor(piece, math.rem(math.div(row, 8 // pieces), pieces))
        line = math.add(math.mul(block, WARP_ROWS), row)
        return math.add(math.mul(line, width * _SIZE), math.mul(permuted, LANES * _SIZE))

    def _vector(self, row: Scalar, piece: Scalar) -> Scalar:
        math, width = self.words.math, min(_WIDEST, self.chunk)
        each = width // LANES
        return self._byte(width, math.div(piece, each), row, math.rem(piece, each))

    def _staged(self, pointer: ir.Value) -> ir.Value:
        type_ = ir.VectorType.get([LANES], self.source.results[0].type.element_type)
        return llvm.LoadOp(type_, pointer, alignment=LANES * _SIZE).result

    def _computed(self, value: ir.Value, at: tuple[Scalar, Scalar], outer: Sequence[Scalar]) -> list[ir.Value]:
        return [value]
