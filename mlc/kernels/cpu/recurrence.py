"""`mlc.recurrence`: all steps of a recurrent layer, by work items that wait for nobody (`recurrent_rows`).

In each step a work item goes through the recurrent weights once, a panel of as many hidden elements as a vector has
lanes after the other: all gates of these elements, of all rows, are sums in registers, which begin as what the input
gave them. So the cell is computed where the sums are, and what is read is a row's state, an element at a time, and the
weights, in the order of memory. See "Optimizing Performance of Recurrent Neural Networks on GPUs" (Appleyard et al.,
2016) for how much of a step else is launches.

The weights are `[directions, panels, hidden, gates, lanes]` (`mlc-pack-weights`), with zeros behind the last hidden
element. With a `group` of 2 they are pairs of bf16 along the state, `[directions, panels, hidden / 2, gates, lanes,
2]`, and multiplied by `vdpbf16ps`. Fewer rows than a work item has are taken eight, four, two and one at a time.

Schedule parameters: `lanes` of a vector; `rows` of a work item; `panel`, the hidden elements of one, as many as lanes;
`group`: 1, or 2 for pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop, if_then
from mlc.kernels.common.index import Idx, IdxMath, Scalar
from mlc.kernels.common.intrinsics import x86
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.recurrent_cell import layer_of
from mlc.kernels.cpu.dot_product import in_every_lane
from mlc.kernels.cpu.recurrent_rows import BATCH, RecurrenceSchedule, RecurrentRows, Step, items

UNROLL = 4  # groups of elements of the state in an iteration
UNDER_WAY = 8  # multiply-adds that processors have under way: two units, four cycles each
_I = arith.CmpIPredicate


def expand(source: KernelSource, schedule: RecurrenceSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    op = defining_op(source.results[0])
    assert op is not None
    layer, s = layer_of(op), schedule
    if s.panel != s.lanes or layer.recurrence.type.rank != 4 + s.group:
        raise ValueError(f"kernel {source.func.name.value}: recurrent weights must be panels of {s.lanes} elements")

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Rows(frame, layer, s, coords[0]).emit(frame.math.mul(coords[1], s.rows))

    return emit_items(source, items(layer, s.rows), body)


class _Rows(RecurrentRows):
    """The rows of a work item, whose sums are in registers."""

    def emit(self, first: Scalar) -> None:
        """The rows from `first` on, as many as there are."""
        rows, batch = self.s.rows, self.frame.extent(self.layer.inputs, BATCH)
        if isinstance(batch, int) and batch % rows == 0:
            self.steps(first, rows)
            return
        left = self.math.minimum(self.math.sub(batch, first), rows)
        c = self.frame.constants.index
        is_whole = arith.cmpi(_I.eq, c(left), c(rows))
        if_then(is_whole, lambda: self.steps(first, rows), lambda: self._few(first, left, batch))

    def _few(self, first: Scalar, left: Scalar, batch: Scalar) -> None:
        """The last rows, `left` of them, by what their number is the sum of."""
        math, c = self.math, self.frame.constants.index
        for size in (8, 4, 2, 1):
            if size >= self.s.rows or (isinstance(batch, int) and not batch % self.s.rows & size):
                continue
            has_some = arith.cmpi(_I.ne, arith.andi(c(left), c(size)), c(0))
            begun = math.add(first, arith.andi(c(left), c(-2 * size)))  # behind those of larger sizes

            def some(begun: Scalar = begun, size: int = size) -> None:
                self.steps(begun, size)

            if_then(has_some, some)

    def panel(self, step: Step, number: Scalar) -> None:
        assert isinstance(step.rows, int)
        gates, unit = self.layer.gates, self.math.mul(number, self.s.lanes)
        mask = self.mask(unit)
        sums = self._sums(step, step.rows, number, mask)
        for row in range(step.rows):
            self.finish(step, row, unit, mask, sums[row * gates : (row + 1) * gates])

    def _sums(self, step: Step, rows: int, panel: Scalar, mask: ir.Value | None) -> list[ir.Value]:
        """The sums of all gates of a panel, row by row. Few of them have parts, by elements of the state in turns, so
        that a multiply-add need not wait for the one before."""
        unit, groups = self.math.mul(panel, self.s.lanes), -(-self.layer.hidden // self.s.group)
        starts = [self.start(step, row, gate, unit, mask) for row in range(rows) for gate in range(self.layer.gates)]
        count = len(starts)
        parts = next(n for n in (1, 2, UNROLL) if count * n >= UNDER_WAY or n == UNROLL)
        whole = groups - groups % UNROLL

        def several(k: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            for number in range(UNROLL):
                first = number % parts * count
                part = slice(first, first + count)
                carried[part] = self._add(step, rows, panel, self.math.step(k, number), carried[part])
            return carried

        sums = for_loop(self.frame, 0, whole, UNROLL, [*starts, *[self.zero] * (count * (parts - 1))], several)
        for first in range(count, len(sums), count):
            sums[:count] = [arith.addf(*pair) for pair in zip(sums[:count], sums[first : first + count], strict=True)]
        sums = sums[:count]
        for k in range(whole, groups):
            sums = self._add(step, rows, panel, k, sums)
        return sums

    def _add(self, step: Step, rows: int, panel: Scalar, k: Scalar, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """`sums`, and the products of group `k` of the states' elements."""
        gates, loaded = self.layer.gates, self._weights(panel, k)
        found = []
        for row in range(rows):
            state = self._state(step, row, k)
            for gate in range(gates):
                found.append(self._multiply(loaded[gate], state, sums[row * gates + gate]))
        return found

    def _weights(self, panel: Scalar, k: Scalar) -> list[ir.Value]:
        """What each gate of a panel multiplies group `k` by."""
        idx = IdxMath(self.math, self.s.lanes * self.s.group)
        place = [Idx(self.direction), Idx(panel), Idx(k)]
        last = [Idx(0, 1)] if self.s.group == 1 else [Idx(0), Idx(0, 1)]  # all of a panel's pairs behind each other
        weights = self.frame.buffers[self.layer.recurrence]
        return [memory.load(self.frame, idx, weights, [*place, Idx(g), *last], None) for g in range(self.layer.gates)]

    def _state(self, step: Step, row: int, k: Scalar) -> ir.Value:
        """Group `k` of a row's state in all lanes."""
        if self.rounded is None:
            at = self.math.add(self.math.mul(step.parity, step.rows), row)
            place = Idx(self.math.add(self.math.mul(at, self.width), k))
            return memory.splat(memory.load(self.frame, self.idx, self.h, [place], None), self.s.lanes)
        first = self.math.add(self.begins(step.rows, step.parity, row), self.math.mul(k, self.s.group))
        idx, i32 = IdxMath(self.math, self.s.group), ir.IntegerType.get_signless(32)
        pair = memory.load(self.frame, idx, self.rounded, [Idx(first, 1)], None)
        word = vector.extract(vector.bitcast(ir.VectorType.get([1], i32), pair), [], [0])
        return vector.bitcast(ir.VectorType.get([self.s.lanes * 2], self.narrow), in_every_lane(word, self.s.lanes))

    def _multiply(self, weights: ir.Value, state: ir.Value, total: ir.Value) -> ir.Value:
        if self.s.group == 1:
            return vector.FMAOp(weights, state, total).result
        return x86(f"avx512bf16.dpbf16ps.{32 * self.s.lanes}", total.type, [total, weights, state])
