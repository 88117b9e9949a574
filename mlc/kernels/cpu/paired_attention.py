"""What attention of bf16 has in common where an instruction sums products of pairs: how operands are packed.

Queries lie row by row, `depth_pitch` elements each. Keys are groups of two elements of the head dimension, values
groups of two keys; a vector of groups has one for each of `lanes` keys or columns. Where a vector lies is the
template's affair. Behind the last element of a key, and for values behind the last key, there are zeros.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common.attention_points import contiguous_dim
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.attention_kernel import AttentionKernel
from mlc.kernels.cpu.transpose import transposed

GROUP = 2  # elements of bf16 in 32 bits


class PairedAttention(AttentionKernel):
    """The memref function of one kernel that multiplies pairs of bf16."""

    def _operands(self) -> dict[str, ir.Value]:
        """With a panel for exponentials, as bf16."""
        s = self.s
        self.step = GROUP * s.lanes  # elements of bf16 that a vector has
        self.steps = -(-self.depth // self.step)
        self.depth_pitch = self.steps * self.step
        sizes = {
            "queries": s.row_block * s.together * self.depth_pitch,
            "panel": self._groups_of_depth() * GROUP * self.key_pitch,
            "values": self.key_pitch * self.width_pitch,
            "powers": s.rows * self.key_pitch,
        }
        return self.on_stack(ir.BF16Type.get(), sizes)

    @abstractmethod
    def _groups_of_depth(self) -> int:
        """The groups of two elements that a packed key has."""

    @abstractmethod
    def _key_place(self, group: Scalar, number: Scalar) -> Scalar:
        """Where group `group` of the `lanes` keys from `number` of the block on lies in the panel."""

    # -- lines ------------------------------------------------------------------------------------------------------

    def _zeros(self, lanes: int) -> ir.Value:
        bf16 = ir.BF16Type.get()
        return vector.broadcast(ir.VectorType.get([lanes], bf16), self.frame.constants.get(bf16, 0.0))

    def _line(self, op: ir.Operation, number: int, dims: list[Idx], lanes: int, left: int) -> ir.Value:
        """`lanes` elements of an operand of one of the products, of which `left` exist; zeros behind them."""
        mask = None if left >= lanes else lane_mask(self.frame, lanes, self.frame.constants.index(left))
        value = self.read(Evaluator(self.frame, lanes, mask), op, number, dims)
        return value if mask is None else arith.select(mask, value, self._zeros(lanes))

    def _existing(self, key: Scalar, number: Scalar, count: Scalar | None) -> Scalar:
        """The position of key `number` of the block that begins at `key`, or of the last one that exists; `count` is
        how many keys the block has where they do not fill all vectors."""
        math = self.frame.math
        position = math.add(key, number)
        return position if count is None else math.minimum(position, math.sub(self.keys, 1))

    # -- panels -----------------------------------------------------------------------------------------------------

    def _pack_queries(self) -> None:
        scores, math = self.a.scores, self.frame.math

        def row(local: ir.Value) -> None:
            for step in range(self.steps):
                dims = list(self.score_dims)
                dims[scores.row], dims[scores.inner] = self._row(local), Idx(step * self.step, 1)
                line = self._line(scores.op, 0, dims, self.step, self.depth - step * self.step)
                self.store("queries", math.add(math.mul(local, self.depth_pitch), step * self.step), line)

        self._for_rows(row)

    def _pack_groups_of_keys(self, key: Scalar, masks: Sequence[ir.Value | None], count: Scalar | None) -> None:
        """The keys from `key` on, in groups along the head dimension. `masks` are those of the vectors of keys."""
        scores, lanes = self.a.scores, self.s.lanes
        if contiguous_dim(scores.op, 1) == scores.inner:
            for step in range(self.steps):
                self.loop(0, len(masks) * lanes, lanes, partial(self._pack_lines_of_keys, key, count, step))
            return
        whole, rest = divmod(self.depth, GROUP)
        self.loop(0, whole, 1, partial(self._pack_lines_of_depth, key, masks, GROUP))
        if rest:
            self._pack_lines_of_depth(key, masks, 1, whole)
        if whole + rest < self._groups_of_depth():
            self.loop(whole + rest, self._groups_of_depth(), 1, partial(self._pack_lines_of_depth, key, masks, 0))

    def _pack_lines_of_keys(self, key: Scalar, count: Scalar | None, step: int, at: ir.Value) -> None:
        """A vector's elements of `lanes` keys from `key + at` on; keys behind the end repeat the last one."""
        scores, math, lanes = self.a.scores, self.frame.math, self.s.lanes
        words = ir.VectorType.get([lanes], ir.IntegerType.get_signless(32))
        lines = []
        for k in range(lanes):
            dims = list(self.score_dims)
            dims[scores.column] = Idx(self._existing(key, math.add(at, k), count), level=4)
            dims[scores.inner] = Idx(step * self.step, 1)
            line = self._line(scores.op, 1, dims, self.step, self.depth - step * self.step)
            lines.append(vector.bitcast(words, line))
        for group, column in enumerate(transposed(lines, lanes)):
            if step * lanes + group < self._groups_of_depth():
                groups = vector.bitcast(ir.VectorType.get([self.step], ir.BF16Type.get()), column)
                self.store("panel", self._key_place(step * lanes + group, at), groups)

    def _pack_lines_of_depth(self, key: Scalar, masks: Sequence[ir.Value | None], live: int, number: Scalar) -> None:
        """Group `number` of the head dimension, of which `live` elements exist, of keys that lie across it."""
        scores, math, lanes = self.a.scores, self.frame.math, self.s.lanes
        for j, mask in enumerate(masks):
            parts = []
            for k in range(live):
                dims = list(self.score_dims)
                dims[scores.column] = self.key_point(key, j)
                dims[scores.inner] = Idx(math.add(math.mul(number, GROUP), k), level=4)
                parts.append(self.read(Evaluator(self.frame, lanes, mask), scores.op, 1, dims))
            parts += [self._zeros(lanes)] * (GROUP - live)
            self.store("panel", self._key_place(number, j * lanes), vector.InterleaveOp(*parts).result)

    def _pack_group_of_values(
        self, key: Scalar, number: Scalar, count: Scalar | None, place: Callable[[int], Scalar]
    ) -> None:
        """The values of two keys from `key + number` on; those of vector j of columns go to `place(j)`."""
        out, math, c, lanes = self.a.output, self.frame.math, self.frame.constants, self.s.lanes
        groups_type = ir.VectorType.get([self.step], ir.BF16Type.get())
        for j in range(0, self.columns, GROUP):
            wide, parts = min(GROUP, self.columns - j), []
            for k in (math.add(number, n) for n in range(GROUP)):
                dims = list(self.dims)
                dims[out.inner], dims[out.column] = Idx(self._existing(key, k, count), level=4), Idx(j * lanes, 1)
                line = self._line(out.op, 1, dims, wide * lanes, self.width - j * lanes)
                if count is not None:
                    exists = arith.cmpi(arith.CmpIPredicate.slt, c.index(k), c.index(count))
                    line = arith.select(exists, line, self._zeros(wide * lanes))
                parts.append(line)
            groups = vector.InterleaveOp(*parts).result
            for n in range(wide):
                part = vector.extract_strided_slice(groups_type, groups, [n * self.step], [self.step], [1])
                self.store("values", place(j + n), part)

    def _keep_power(self, place: Scalar, power: ir.Value) -> None:
        rounded = arith.truncf(ir.VectorType.get([self.s.lanes], ir.BF16Type.get()), power)
        self.store("powers", place, rounded)
