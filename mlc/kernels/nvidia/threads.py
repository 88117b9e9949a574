"""Threads that work on one item together: who they are, and how they combine what each of them has.

A group is 2, 4, 8, 16 or 32 neighbouring threads of a warp, or a whole block. Inside a warp values travel by
`shfl.sync` (PTX ISA, "shfl.sync"); the warps of a block meet in shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, memref, nvvm, vector

from mlc.kernels.common.frame import Frame, storage_type
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia import ALIGNMENT

WARP = 32
Values = Sequence[ir.Value]
"""What threads combine: one value, or several that belong together, as an extreme value and its position."""
Combine = Callable[[Values, Values], Values]


def thread_in_group(frame: Frame, group: int, *, is_block: bool = False) -> ir.Value:
    """The number of this thread within its group, of type index; `is_block` when a block is a group."""
    thread = arith.index_castui(ir.IndexType.get(), nvvm.read_ptx_sreg_tid_x(ir.IntegerType.get_signless(32)))
    return thread if is_block else arith.remui(thread, frame.constants.index(group))


def combine_group(frame: Frame, values: Values, group: int, combine: Combine, number: int = 0) -> Values:
    """`combine` over the `values` of all threads of the group, in every one of them.

    `combine` must be associative and commutative. The order is fixed by `group`, so that results do not vary. All
    threads of the block must get here. Combinations of different `number`s meet in different places, and each may be
    reached only once; those of number 0 as often as one likes, for one more barrier.
    """
    distance = 1
    while distance < min(group, WARP):
        values = combine(values, [from_neighbour(frame, value, distance) for value in values])
        distance *= 2
    return _combine_warps(frame, values, group // WARP, combine, number) if group > WARP else values


def combine_lanes(frame: Frame, values: Values, first: int, combine: Combine, last: int = WARP) -> Values:
    """`combine` over the `values`, scalars or vectors, of the threads of each `last` neighbours of a warp whose numbers
    are equal modulo `first`, in every one of them; both are powers of two."""
    distance = first
    while distance < last:
        values = combine(values, [_neighbours_vector(frame, value, distance) for value in values])
        distance *= 2
    return values


def combine_pairs(found: Sequence[Values], combine: Combine) -> Values:
    """`combine` over all of `found`: neighbours first, then neighbours of these."""
    while len(found) > 1:
        pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
        found = [combine(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return found[0]


def _neighbours_vector(frame: Frame, value: ir.Value, distance: int) -> ir.Value:
    if not isinstance(value.type, ir.VectorType):
        return from_neighbour(frame, value, distance)
    lanes = range(value.type.shape[0])
    found = [from_neighbour(frame, vector.extract(value, [], [lane]), distance) for lane in lanes]
    return vector.from_elements(value.type, found)


def to_bits(value: ir.Value) -> ir.Value:
    """A scalar of any integer or float type as an i32, or as an i64 where it has 64 bits."""
    i32, bits = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(value.type.width)
    raw = value if value.type == bits else arith.bitcast(bits, value)
    return raw if bits.width >= 32 else arith.extui(i32, raw)


def from_bits(raw: ir.Value, type_: ir.Type) -> ir.Value:
    """What `to_bits` was given."""
    bits = ir.IntegerType.get_signless(type_.width)
    raw = raw if bits.width >= 32 else arith.trunci(bits, raw)
    return raw if type_ == bits else arith.bitcast(type_, raw)


def from_neighbour(frame: Frame, value: ir.Value, distance: int) -> ir.Value:
    """The `value` of the thread whose number in the warp differs in the bit `distance`; any integer or float type."""
    return _from_other(frame, value, "bfly", distance)


def from_lane_below(frame: Frame, value: ir.Value, distance: int) -> ir.Value:
    """The `value` of the thread whose number in the warp is lower by `distance`, this one's own where there is none."""
    return _from_other(frame, value, "up", distance)


def from_lane(frame: Frame, value: ir.Value, lane: ir.Value) -> ir.Value:
    """The `value` of the thread whose number in the warp is `lane`, of type index."""
    return _from_other(frame, value, "idx", arith.index_cast(ir.IntegerType.get_signless(32), lane))


def _from_other(frame: Frame, value: ir.Value, kind: str, which: int | ir.Value) -> ir.Value:
    raw, i32 = to_bits(value), ir.IntegerType.get_signless(32)
    if raw.type.width == 64:
        shift = frame.constants.get(raw.type, 32)
        low = _shuffle(frame, arith.trunci(i32, raw), kind, which)
        high = _shuffle(frame, arith.trunci(i32, arith.shrui(raw, shift)), kind, which)
        raw = arith.ori(arith.extui(raw.type, low), arith.shli(arith.extui(raw.type, high), shift))
    else:
        raw = _shuffle(frame, raw, kind, which)
    return from_bits(raw, value.type)


def _shuffle(frame: Frame, value: ir.Value, kind: str, which: int | ir.Value) -> ir.Value:
    i32, constants = value.type, frame.constants
    everyone, clamp = constants.get(i32, -1), constants.get(i32, 0 if kind == "up" else WARP - 1)
    which = constants.get(i32, which) if isinstance(which, int) else which
    return nvvm.ShflOp(i32, everyone, value, which, clamp, ir.Attribute.parse(f"#nvvm<shfl_kind {kind}>")).result


def _combine_warps(frame: Frame, values: Values, warps: int, combine: Combine, number: int) -> Values:
    """Every thread of warp w has the values of w; afterwards every thread has the combination, pairs of warps first."""
    constants = frame.constants
    names = [f"{number}_{part}" if part else number for part in range(len(values))]
    shared = [shared_array(frame, warps, value.type, name) for value, name in zip(values, names, strict=True)]
    thread = thread_in_group(frame, warps * WARP, is_block=True)
    warp = arith.divui(thread, constants.index(WARP))
    if not number:  # a slower warp may still read the previous combination
        nvvm.Barrier0Op()
    for array, value in zip(shared, values, strict=True):
        to_shared(frame, array, warp, value)
    nvvm.Barrier0Op()
    found = [all_of(frame, array, warps, value.type) for array, value in zip(shared, values, strict=True)]
    return combine_pairs(list(zip(*found, strict=True)), combine)


def all_of(frame: Frame, shared: ir.Value, count: int, type_: ir.Type) -> list[ir.Value]:
    """The `count` elements of an array in shared memory."""
    found: list[ir.Value] = []
    while len(found) < count:
        together = 4 if type_.width == 32 and count - len(found) >= 4 else 1
        if together == 1:
            found.append(from_shared(frame, shared, len(found), type_))
            continue
        loaded = from_shared(frame, shared, len(found), ir.VectorType.get([together], type_))
        found += [vector.extract(loaded, [], [lane]) for lane in range(together)]
    return found


def shared_array(frame: Frame, size: int, element: ir.Type, number: int | str = 0) -> ir.Value:
    """An array in shared memory, one for each element type, size and number of a kernel; a bool takes a byte."""
    space = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 3)
    type_ = ir.MemRefType.get([size], storage_type(element), memory_space=space)
    name = f"{frame.name}_shared_{size}x{element}" + (f"_{number}" if number else "")
    block = frame.func.operation.parent.regions[0].blocks[0]
    known = {ir.StringAttr(o.operation.attributes["sym_name"]).value for o in block.operations}
    if name not in known:
        with ir.InsertionPoint.at_block_begin(block):
            visibility = ir.StringAttr.get("private")
            memref.GlobalOp(name, type_, sym_visibility=visibility, initial_value=ir.UnitAttr.get(), alignment=16)
    return memref.GetGlobalOp(type_, name).result


def to_shared(frame: Frame, shared: ir.Value, at: Scalar, value: ir.Value) -> None:
    """Write a scalar or vector to element `at` of an array in shared memory; a vector must be aligned to its size."""
    where, stored = [frame.constants.index(at)], _retyped(value, storage_type(_element(value.type)))
    if isinstance(stored.type, ir.VectorType):
        vector.StoreOp(stored, shared, where, alignment=_shared_alignment(stored.type))
    else:
        memref.store(stored, shared, where)


def from_shared(frame: Frame, shared: ir.Value, at: Scalar, type_: ir.Type) -> ir.Value:
    """Read what `to_shared` has written, a value of `type_`."""
    where = [frame.constants.index(at)]
    if isinstance(type_, ir.VectorType):
        stored = ir.VectorType.get(type_.shape, storage_type(type_.element_type))
        return _retyped(
            vector.LoadOp(stored, shared, where, alignment=_shared_alignment(stored)).result, _element(type_)
        )
    return _retyped(memref.load(shared, where), type_)


def _element(type_: ir.Type) -> ir.Type:
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _retyped(value: ir.Value, element: ir.Type) -> ir.Value:
    """A bool as a byte, or the other way round."""
    if _element(value.type) == element:
        return value
    type_ = ir.VectorType.get(value.type.shape, element) if isinstance(value.type, ir.VectorType) else element
    return arith.trunci(type_, value) if element.width == 1 else arith.extui(type_, value)


def _shared_alignment(type_: ir.VectorType) -> int:
    return min(ALIGNMENT, type_.shape[0] * type_.element_type.width // 8)
