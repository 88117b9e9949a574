"""Decide which reductions are done in two steps: `mlc.parts` on those, the number of parts that the first one has.

```mlir
%s = linalg.generic … sum over %x : 100000x4    →    %s = linalg.generic … {mlc.parts = 200}
```
A GPU has a block for each few results of a reduction, or a cluster of them where chips have clusters: with few results
most of it would be idle. Takes reductions over neighbouring dimensions, of known extents: along contiguous memory those
that are longer than what the blocks of a cluster hold between them (a softmax of such rows would be six kernels instead
of one), across it those whose blocks are too few to keep the memory busy, and would read for longer than another launch
takes. What a reduction alone reads of elementwise operations must be computable in parts, too, or it would be written
to memory. `mlc-split-reductions` obeys.

With `threads` it is for a CPU, whose work items are rows along memory and strips of columns across it: long reductions
with few of them leave threads without work, and high strips touch a page of memory for every line that they read. A
reduction whose results are spread over what it read, and written, as those of a normalisation are, stays: its kernel
has that at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir import ir

from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_identity, is_number, is_reduction, operand_map
from mlc.kernels.common.positions import finds_position
from mlc.kernels.common.reduce import combiner
from mlc.passes.adaptor import DYNAMIC
from mlc.passes.base import Pass
from mlc.passes.fuse.chains import Chain, Group
from mlc.passes.fuse.graph import host_blocks
from mlc.passes.schedule.extents import ITEMS_ENOUGH, ITEMS_WANTED

PARTS = "mlc.parts"

FEWEST_PARTS = 8  # where there can be as many
VECTOR = 16  # elements of the widest accesses
_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")

# Of GPUs.
MOST_PARTS = 1024  # of all results together
FEW_RESULTS = 64
LINE = 64  # bytes across a reduction that a block reads at least
BUSY = 57  # blocks that read whole lines and keep the memory busy
LAUNCH = 256 * 1024  # bytes that a block reads while another kernel is launched
PART = 8 * 1024  # bytes of the results of a block that are worth a part of their own
MOST_BLOCKS = 4 * 132  # of the first step across memory
MOST_LINES = 2 * 132  # parts across memory, of which the second step's threads read each as a line

# Of CPUs: fewer than `ITEMS_ENOUGH` work items leave threads without work.
FEW_BYTES = 1 << 20  # that one thread has read before the others have begun
STRIP = 256  # columns of a work item
HIGH_STRIP = 1 << 20  # bytes of one that touches more pages than a processor remembers
LINES = 64  # of a part across memory: each strip finds the part's pages again
LEAST_PART, LEAST_STRIPS = 1 << 17, 1 << 16  # bytes of a part along and across memory


@dataclass(frozen=True)
class Reduced:
    """A reduction over neighbouring dimensions, the `group`: `length` elements for each of `outer` times `inner`
    results, of which those of `inner` lie side by side; each of `size` bytes."""

    group: Group
    outer: int
    length: int
    inner: int
    size: int

    @property
    def elements(self) -> int:
        """All that are read."""
        return self.outer * self.length * self.inner


class PlanSplits(Pass):
    """Decide which reductions are done in two steps."""

    statistics = {"planned": "reductions that will be done in two steps"}

    shortest: int = 65536
    "The fewest elements along contiguous memory for a result that are split"
    threads: bool = False
    "Is this for the threads of a CPU? It is for the blocks of a GPU otherwise"

    def run(self, root: ir.OpView) -> None:
        for block in host_blocks(root.operation):
            for view in block.operations:
                op = view.operation
                found = reduced(op)
                if found is None:
                    continue
                parts = _parts_for_threads(found) if self.threads else self._parts_for_blocks(found)
                if parts is None or (self.threads and _is_spread(op, found.elements)):
                    continue
                if Chain(op, found.group).is_whole:
                    op.attributes[PARTS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), parts)
                    self.count("planned", 1)

    def _parts_for_blocks(self, found: Reduced) -> int | None:
        """Into how many parts the elements of each result fall; None when the reduction stays."""
        if found.inner == 1:
            if found.outer > FEW_RESULTS or found.length < self.shortest:
                return None
            return _number(found.length, MOST_PARTS // found.outer, VECTOR)
        columns = -(-found.inner * found.size // LINE)
        blocks, size = found.outer * columns, found.elements * found.size
        if blocks >= BUSY or size // blocks - size // BUSY < LAUNCH:
            return None
        most = min(MOST_LINES, MOST_BLOCKS // blocks, size // (blocks * PART), found.length // FEWEST_PARTS)
        return _number(found.length, most, 1) if most >= FEWEST_PARTS else None


def _parts_for_threads(found: Reduced) -> int | None:
    """Into how many parts the elements of each result fall, or None."""
    line = found.inner * found.size
    column = found.length * line
    if found.outer * column < FEW_BYTES:
        return None
    if found.inner == 1:
        most = min(ITEMS_WANTED // found.outer, column // LEAST_PART)
        return _number(found.length, most, VECTOR) if found.outer < ITEMS_ENOUGH and most > 1 else None
    strips = found.outer * -(-found.inner // STRIP)
    if strips >= ITEMS_ENOUGH and found.length * min(line, STRIP * found.size) < HIGH_STRIP:
        return None
    most = column // max(LEAST_STRIPS, line * LINES)
    return _number(found.length, most, 1) if most > 1 else None


def _number(length: int, most: int, multiple: int) -> int:
    """How many parts, at least half of the `most` if there are as many: all elements in equal ones, if possible, of
    whole accesses of `multiple` elements."""
    few = max(FEWEST_PARTS if most >= FEWEST_PARTS else 2, -(-most // 2))
    return max(range(few, most + 1), key=lambda n: (length % n == 0, length // n % multiple == 0, n))


def _is_spread(op: ir.Operation, elements: int) -> bool:
    """Is a tensor of as many `elements` as the reduction `op` reads written that is computed of its results, element by
    element? One that other reductions alone read is not."""
    waiting, seen = [*op.results], {op}
    while waiting:
        value = waiting.pop()
        is_large = prod(value.type.shape) >= elements
        for user in [use.owner.operation for use in value.uses]:
            is_generic = user.name == "linalg.generic" and not is_contraction(user)
            if is_large and not is_generic and user.name not in _VIEWS:
                return True
            if is_large and is_generic and is_reduction(user):
                continue
            if (is_generic or user.name in _VIEWS) and user not in seen:
                seen.add(user)
                waiting += user.results
    return False


def reduced(op: ir.Operation) -> Reduced | None:
    """What `op` reduces, if it can be done in parts."""
    if op.name != "linalg.generic" or not is_reduction(op) or is_contraction(op) or not is_identity(op, 0):
        return None
    if len(op.operands) != 1 + len(op.results) or not _begins_with_nothing(op):
        return None
    shape = list(op.operands[0].type.shape)
    dims = [i for i, kind in enumerate(op.attributes["iterator_types"]) if "reduction" in str(kind)]
    kept = [i for i in range(len(shape)) if i not in dims]
    exprs = [ir.AffineExpr.get_dim(i) for i in kept]
    in_order = all(list(operand_map(op, 1 + i).results) == exprs for i in range(len(op.results)))
    if DYNAMIC in shape or 0 in shape or not in_order or dims != list(range(dims[0], dims[-1] + 1)):
        return None
    group = dims[0], dims[-1]
    length, inner = prod(shape[i] for i in dims), prod(shape[dims[-1] + 1 :])
    return Reduced(group, prod(shape[: dims[0]]), length, inner, (op.operands[0].type.element_type.width + 7) // 8)


def _begins_with_nothing(op: ir.Operation) -> bool:
    """Does a reduction begin with what changes no result? That of a position may begin with its value twice."""
    fills = [defining_op(out) for out in list(op.operands)[1:]]
    if any(fill is None or fill.name != "linalg.fill" for fill in fills):
        return False
    if finds_position(op):
        return not list(op.results[0].uses)
    combine = combiner(op)
    constant = None if combine is None or fills[0] is None else defining_op(fills[0].operands[0])
    if combine is None or constant is None or constant.name != "arith.constant":
        return False
    value = constant.attributes["value"]
    if isinstance(value, ir.FloatAttr):
        return is_number(constant.results[0], combine.identity)
    width = ir.IntegerType(constant.results[0].type).width
    return (int(ir.IntegerAttr(value).value) - int(combine.identity)) % (1 << width) == 0
