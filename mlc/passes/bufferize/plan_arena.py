"""`mlc-plan-arena`: decides where every buffer of the host functions lies."""

from __future__ import annotations

from collections.abc import Mapping

import mlir.ir as ir

from mlc.passes.base import Pass
from mlc.passes.bufferize.liveness import Lifetime, Liveness
from mlc.passes.bufferize.place_weights import align, element_bytes
from mlc.passes.bufferize.signature import argument_dim_names
from mlc.passes.bufferize.sizes import Size, SizeAnalysis, evaluate, spell
from mlc.passes.bufferize.spaces import HOST, SpaceAnalysis
from mlc.passes.walk import functions

PAGE = 4096  # large buffers of known size begin at multiples of it; see `support.h`
PAGED = 1 << 14  # bytes from which on they do
# What an unbounded dimension is taken to be when sizes that the types do not order are compared.
TYPICAL_EXTENT = 128


class PlanArena(Pass):
    """Decide where every buffer of the host functions lies.

    A buffer that is returned once becomes the caller's output buffer. A buffer whose size the arguments
    decide lies in the arena: buffers of static size are packed into one region by their lifetimes, largest
    first, and large ones begin at pages; so are, for every unit of size (`batch*seq`), the buffers that are
    a multiple of it, with offsets that are multiples of it; what is left shares slots of the size of their
    largest tenant. A buffer whose size depends on data, or which a loop hands from iteration to iteration,
    comes from the pool.

    ```mlir
    %0 = memref.alloc(%n) : memref<?x4xf32>
    // becomes
    %0 = memref.alloc(%n) {mlc.place = {where = "arena", region = 1, offset = 0}} : memref<?x4xf32>
    ```

    The function gets `mlc.arena`, the list of its regions: `{bytes = 4096}` is a region of static size,
    `{bytes = 16, unit = "batch"}` one of 16 bytes a batch item, and one without `bytes` is a slot.
    `mlc.arena_formula` is the sum as a Python expression.
    """

    def run(self, op: ir.Operation) -> None:
        ranges: dict[str, list[int]] = {}
        if "mlc.dim_ranges" in op.attributes:
            for named in ir.DictAttr(op.attributes["mlc.dim_ranges"]):
                ranges[named.name] = list(ir.DenseI64ArrayAttr(named.attr))
        for function in functions(op):
            FunctionPlan(function, ranges).plan()


class FunctionPlan:
    """The plan of one host function."""

    def __init__(self, function: ir.Operation, ranges: Mapping[str, list[int]]) -> None:
        self.function = function
        self.names = dimension_names(function)
        self.analysis = SizeAnalysis(self.names)
        self.liveness = Liveness(function)
        self.spaces = SpaceAnalysis(function)
        self._typical = {place: _typical(ranges.get(name)) for place, name in self.names.items()}
        self._regions: list[dict[str, ir.Attribute]] = []
        self._formula: list[str] = []

    def plan(self) -> None:
        """Writes the decisions onto the allocations and the function."""
        outputs = self._outputs()
        static: list[tuple[Lifetime, int]] = []
        scaled: dict[str, tuple[Size, list[tuple[Lifetime, int]]]] = {}
        other: list[tuple[Lifetime, Size]] = []
        for number, lifetime in enumerate(self.liveness.lifetimes):
            if lifetime.first < 0:
                lifetime.first = lifetime.last = lifetime.order
            value = lifetime.alloc.results[0]
            size = self.analysis.elements(value) * Size.constant(element_bytes(value.type.element_type))
            if number in outputs:
                _place(lifetime, "output", number=outputs[number])
            elif lifetime.carried or not size.known_at_entry or self._beside_the_arena(value):
                _place(lifetime, "pool")
            elif size.static is not None:
                static.append((lifetime, align(size.static) if size.static < PAGED else align(size.static, PAGE)))
            elif len(size.terms) == 1 and size.terms[0][1] > 0:  # -4 * (-n // 4) is no number of units
                monomial, bytes_ = size.terms[0]
                unit = Size.of({monomial: 1})
                scaled.setdefault(spell(unit, self.names), (unit, []))[1].append((lifetime, align(bytes_)))
            else:
                other.append((lifetime, size))
        if static:
            self._region(Size.constant(1), "", self._pack(static))
        for name, (unit, members) in sorted(scaled.items()):
            self._region(unit, name, self._pack(members))
        self._slots(other)
        self.function.attributes["mlc.arena"] = ir.ArrayAttr.get([ir.DictAttr.get(r) for r in self._regions])
        self.function.attributes["mlc.arena_formula"] = ir.StringAttr.get(" + ".join(self._formula) or "0")

    def _beside_the_arena(self, value: ir.Value) -> bool:
        """The arena is the GPU's when there is one; the few buffers of the host come from its pool."""
        return self.spaces.placed and self.spaces.space(value) == HOST

    def _outputs(self) -> dict[int, int]:
        """Allocations that become output buffers: {allocation: result number}."""
        entry = self.function.regions[0].blocks[0]
        returned = list(entry.operations[len(entry.operations) - 1].operands)
        roots = [self.liveness.roots(value) for value in returned]
        chosen: dict[int, int] = {}
        for number, value in enumerate(returned):
            if len(roots[number]) != 1:
                continue
            (root,) = roots[number]
            alloc = self.liveness.lifetimes[root].alloc
            shared = sum(root in other for other in roots) > 1
            # An output buffer that nothing writes would be no one's: an empty result is copied.
            if shared or alloc.block != entry or root not in self.liveness.touched:
                continue
            whole = self.analysis.elements(value) == self.analysis.elements(alloc.results[0])
            dims = [self.analysis.dim(value, axis) for axis in range(value.type.rank)]
            if value == alloc.results[0] or (whole and all(d.known_at_entry for d in dims)):
                chosen[root] = number
        return chosen

    def _region(self, unit: Size, name: str, peak: int) -> None:
        """Closes the region being filled: `peak` units of size `unit`."""
        i64 = ir.IntegerType.get_signless(64)
        region: dict[str, ir.Attribute] = {"bytes": ir.IntegerAttr.get(i64, peak)}
        if name:
            region["unit"] = ir.StringAttr.get(name)
        self._regions.append(region)
        self._formula.append(spell(unit * Size.constant(peak), self.names))

    def _pack(self, members: list[tuple[Lifetime, int]]) -> int:
        """Largest first, each at the lowest offset where no buffer in use at the same time lies; returns
        the peak.
        """
        placed: list[tuple[int, int, Lifetime]] = []
        peak = 0
        for lifetime, size in sorted(members, key=lambda m: (-m[1], m[0].order)):
            offset = 0
            for start, end, other in placed:
                if start >= offset + size:
                    break
                if end > offset and lifetime.overlaps(other):
                    offset = end
            placed.append((offset, offset + size, lifetime))
            placed.sort(key=lambda p: (p[0], p[1]))
            peak = max(peak, offset + size)
            _place(lifetime, "arena", region=len(self._regions), offset=offset)
        return peak

    def _slots(self, members: list[tuple[Lifetime, Size]]) -> None:
        """Sizes without a common unit: slots, each as large as its largest tenant."""
        slots: list[tuple[list[Lifetime], list[Size]]] = []
        for lifetime, size in sorted(members, key=lambda m: (-self._estimate(m[1]), m[0].order)):
            free = [s for s in slots if not any(lifetime.overlaps(tenant) for tenant in s[0])]
            same = [s for s in free if size in s[1]]
            wanted = min(same or free, key=lambda s: self._estimate(s[1][0]) - self._estimate(size), default=None)
            if wanted is None:
                wanted = ([], [])
                slots.append(wanted)
            wanted[0].append(lifetime)
            if size not in wanted[1]:
                wanted[1].append(size)
        for tenants, sizes in slots:
            for tenant in tenants:
                _place(tenant, "arena", region=len(self._regions), offset=0)
            texts = [f"-(-({spell(size, self.names)}) // 64) * 64" for size in sizes]
            self._formula.append(texts[0] if len(texts) == 1 else f"max({', '.join(texts)})")
            self._regions.append({})

    def _estimate(self, size: Size) -> int:
        return evaluate(size, self._typical)


def dimension_names(function: ir.Operation) -> dict[tuple[int, int], str]:
    """A name for every dynamic argument dimension: its own, or one made from its position."""
    names = argument_dim_names(function)
    for number, argument in enumerate(function.regions[0].blocks[0].arguments):
        if isinstance(argument.type, ir.MemRefType):
            for axis in range(argument.type.rank):
                if argument.type.is_dynamic_dim(axis):
                    names.setdefault((number, axis), f"input{number}_dim{axis}")
    return names


def _typical(limits: list[int] | None) -> int:
    if limits is None:
        return TYPICAL_EXTENT
    lowest, highest = limits[0], limits[1]
    return highest if highest >= 0 else max(lowest, TYPICAL_EXTENT)


def _place(lifetime: Lifetime, where: str, **numbers: int) -> None:
    i64 = ir.IntegerType.get_signless(64)
    place: dict[str, ir.Attribute] = {name: ir.IntegerAttr.get(i64, value) for name, value in numbers.items()}
    place["where"] = ir.StringAttr.get(where)
    lifetime.alloc.attributes["mlc.place"] = ir.DictAttr.get(place)
