"""Attention of bf16 in one kernel whose products are sums of pairs (`vdpbf16ps`), with scores and sums in f32.

The work items, masks, shifts and register tiles of `attention`; what differs is what is multiplied. Keys and values are
packed as groups of two (`paired_attention`), queries and exponentials, which are rounded to bf16, give two elements as
32 bits, broadcast to all lanes. The sums of the rows are those of the exponentials before they are rounded.

A single row of a head reads keys and values where they lie, widened to f32; so do its exponentials stay.

`vdpbf16ps` takes denormal numbers for zeros and rounds to nearest even whatever the mode (Intel, "Architecture
Instruction Set Extensions Programming Reference", VDPBF16PS).

Schedule parameters: those of `attention`, with `lanes` 16.
"""

from __future__ import annotations

from functools import partial

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common.index import Scalar
from mlc.kernels.common.intrinsics import x86
from mlc.kernels.cpu.attention import RegisterAttention
from mlc.kernels.cpu.dot_product import in_every_lane
from mlc.kernels.cpu.paired_attention import GROUP, PairedAttention


class DotAttention(PairedAttention, RegisterAttention):
    """The memref function of one kernel."""

    def _groups_of_depth(self) -> int:
        return -(-self.depth // GROUP)

    def _key_place(self, group: Scalar, number: Scalar) -> Scalar:
        math = self.frame.math
        return math.mul(math.add(math.mul(group, self.key_pitch), number), GROUP)

    def _value_place(self, group: Scalar, j: int) -> Scalar:
        """Where the values of group `group` of the block's keys and vector `j` of columns lie."""
        math = self.frame.math
        return math.mul(math.add(math.mul(group, self.width_pitch), j * self.s.lanes), GROUP)

    # -- operands ---------------------------------------------------------------------------------------------------

    def _pack_keys(self, key: Scalar, vectors: int, mask: ir.Value | None) -> None:
        count = None if mask is None else self.frame.math.sub(self.keys, key)
        self._pack_groups_of_keys(key, [*[None] * (vectors - 1), mask], count)

    def _pack_values(self, key: Scalar, count: Scalar) -> None:
        math = self.frame.math
        known = None if isinstance(count, int) else count

        def group(number: ir.Value) -> None:
            self._pack_group_of_values(key, math.mul(number, GROUP), known, partial(self._value_place, number))

        self.loop(0, math.ceildiv(count, GROUP), 1, group)

    def _keep_power(self, place: Scalar, power: ir.Value) -> None:
        if self.single:
            self.store("scores", place, power)
        else:
            super()._keep_power(place, power)

    def load(self, panel: str, at: Scalar) -> ir.Value:
        """A vector of f32; what is packed is widened, for a single row."""
        if panel != "queries":
            return super().load(panel, at)
        narrow = ir.VectorType.get([self.s.lanes], ir.BF16Type.get())
        queries = vector.LoadOp(narrow, self.stack[panel], [self.frame.constants.index(at)]).result
        return arith.extf(self.vector, queries)

    def load_scalar(self, panel: str, at: Scalar) -> ir.Value:
        value = super().load_scalar(panel, at)
        return arith.extf(ir.F32Type.get(), value) if panel == "queries" else value

    def _vector_of_groups(self, panel: str, at: Scalar) -> ir.Value:
        """A vector of groups of a panel."""
        groups = ir.VectorType.get([self.step], ir.BF16Type.get())
        return vector.LoadOp(groups, self.stack[panel], [self.frame.constants.index(at)]).result

    def _group_in_every_lane(self, panel: str, at: Scalar) -> ir.Value:
        """The group of a row that begins at element `at` of a panel."""
        pair = ir.VectorType.get([GROUP], ir.BF16Type.get())
        group = vector.LoadOp(pair, self.stack[panel], [self.frame.constants.index(at)]).result
        word = vector.bitcast(ir.VectorType.get([1], ir.IntegerType.get_signless(32)), group)
        spread = in_every_lane(vector.extract(word, [], [0]), self.s.lanes)
        return vector.bitcast(ir.VectorType.get([self.step], ir.BF16Type.get()), spread)

    # -- steps of the products ----------------------------------------------------------------------------------------

    @property
    def depth_steps(self) -> int:
        return self._groups_of_depth()

    def _key_steps(self, count: Scalar) -> Scalar:
        return self.frame.math.ceildiv(count, GROUP)

    def _query_of_step(self, at: Scalar, r: int, d: Scalar) -> ir.Value:
        math = self.frame.math
        row = math.mul(math.add(at, r), self.depth_pitch)
        return self._group_in_every_lane("queries", math.add(row, math.mul(d, GROUP)))

    def _keys_of_step(self, d: Scalar, j: int) -> ir.Value:
        return self._vector_of_groups("panel", self._key_place(d, j * self.s.lanes))

    def _power_of_step(self, r: int, k: Scalar) -> ir.Value:
        math = self.frame.math
        return self._group_in_every_lane("powers", math.add(math.mul(k, GROUP), r * self.key_pitch))

    def _values_of_step(self, k: Scalar, j: int) -> ir.Value:
        return self._vector_of_groups("values", self._value_place(k, j))

    def _dot(self, accumulator: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        return x86(f"avx512bf16.dpbf16ps.{32 * self.s.lanes}", self.vector, [accumulator, right, left])


expand = DotAttention.expand
