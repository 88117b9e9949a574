"""Loads and stores of one value per lane at a coordinate: contiguous, scalar, or gathered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common.alignment import access_alignment
from mlc.kernels.common.frame import Buffer, Frame, defining_op, if_then, storage_type
from mlc.kernels.common.index import Idx, IdxMath, Scalar


def address(buffer: Buffer, coords: Sequence[Idx], idx: IdxMath) -> Idx:
    """Element offset of `coords`; parts that belong to outer loops are summed first so that they hoist."""
    terms = [idx.scale(c, s) for c, s in zip(coords, buffer.strides, strict=True)]
    total = Idx(0)
    for term in sorted(terms, key=lambda t: t.level):
        total = idx.add(total, term)
    return total


def load(frame: Frame, idx: IdxMath, buffer: Buffer, coords: Sequence[Idx], mask: ir.Value | None) -> ir.Value:
    """Element(s) at `coords`: a scalar when the address is uniform, else a vector; lanes without mask give zero."""
    where = address(buffer, coords, idx)
    memory_type = storage_type(buffer.element)
    constants = frame.constants
    if where.uniform:
        aligned = access_alignment(frame, where.base, memory_type)
        value = memref.load(buffer.memory, [constants.index(where.base)], alignment=aligned)
        return from_memory(frame, value, buffer.element)
    type_ = ir.VectorType.get([idx.lanes], memory_type)
    if where.lanes is None and where.repeat > 1 and _reach(where, idx.lanes) <= idx.lanes:
        loaded = _repeated(frame, buffer, where, type_, mask)
    elif where.step == 1:
        base = [constants.index(where.base)]
        if mask is None:
            aligned = access_alignment(frame, where.base, memory_type)
            loaded = vector.LoadOp(type_, buffer.memory, base, alignment=aligned).result
        else:
            loaded = vector.MaskedLoadOp(type_, buffer.memory, base, mask, _zeros(frame, type_)).result
    elif where.step == -1 and where.repeat == 1 and frame.in_pieces:
        loaded = _backwards(frame, buffer, where, type_, mask)
    elif where.lanes is None and 1 < where.step <= _MAX_STRIDE and where.repeat == 1 and not frame.alignment:
        loaded = _strided(frame, buffer, where, type_, mask)
    else:
        everywhere = mask if mask is not None else full_mask(frame, idx.lanes)
        loaded = vector.GatherOp(
            type_, buffer.memory, [constants.index(0)], idx.vector(where), everywhere, _zeros(frame, type_)
        ).result
    return from_memory(frame, loaded, buffer.element)


_MAX_STRIDE = 4  # whole vectors are loaded up to here: as many loads, one exchange less; a gather is one load a lane


def _reach(where: Idx, lanes: int) -> int:
    """How many adjacent elements there are from that of the first of `lanes` to that of the last."""
    return (-(-lanes // where.repeat) - 1) * where.step + 1 if where.step > 0 else lanes + 1


def _repeated(frame: Frame, buffer: Buffer, where: Idx, type_: ir.VectorType, mask: ir.Value | None) -> ir.Value:
    """Every `step`-th element, each for `repeat` lanes. Nothing behind the last one is read."""
    lanes, reach = type_.shape[0], _reach(where, type_.shape[0])
    count = reach if where.step == 1 else lanes
    small, base = ir.VectorType.get([count], type_.element_type), [frame.constants.index(where.base)]
    if mask is None and count == reach:
        loaded = vector.LoadOp(small, buffer.memory, base).result
    else:
        every = mask if mask is not None else full_mask(frame, lanes)
        wanted = _spread(frame, every, 0, where.step, where.repeat, count)
        loaded = vector.MaskedLoadOp(small, buffer.memory, base, wanted, _zeros(frame, small)).result
    order = [lane // where.repeat * where.step for lane in range(lanes)]
    return vector.ShuffleOp(loaded, loaded, ir.DenseI64ArrayAttr.get(order)).result


def _backwards(frame: Frame, buffer: Buffer, where: Idx, type_: ir.VectorType, mask: ir.Value | None) -> ir.Value:
    """Adjacent elements, the last one first: a vector that is turned around."""
    lanes = type_.shape[0]
    order = ir.DenseI64ArrayAttr.get(list(reversed(range(lanes))))
    base = [frame.constants.index(frame.math.sub(where.base, lanes - 1))]
    if mask is None:
        loaded = vector.LoadOp(type_, buffer.memory, base).result
    else:
        wanted = vector.ShuffleOp(mask, mask, order).result
        loaded = vector.MaskedLoadOp(type_, buffer.memory, base, wanted, _zeros(frame, type_)).result
    return vector.ShuffleOp(loaded, loaded, order).result


def _strided(frame: Frame, buffer: Buffer, where: Idx, type_: ir.VectorType, mask: ir.Value | None) -> ir.Value:
    """Every `step`-th element: whole vectors, of which lanes are picked. Nothing behind the last element is read."""
    lanes, step, math = type_.shape[0], where.step, frame.math
    # Where each vector begins. Without a mask the last one ends with the last element.
    last = step * (lanes - 1) + 1 - lanes
    starts = [min(i * lanes, last) if mask is None else i * lanes for i in range(step)]
    owner = [min(lane * step // lanes, step - 1) for lane in range(lanes)]
    zeros, loaded = _zeros(frame, type_), None
    for i, start in enumerate(starts):
        base = [frame.constants.index(math.add(where.base, start))]
        if mask is None:
            piece = vector.LoadOp(type_, buffer.memory, base).result
        else:
            piece = vector.MaskedLoadOp(type_, buffer.memory, base, _spread(frame, mask, start, step), zeros).result
        picked = [lane * step - start for lane in range(lanes)]
        before = piece if loaded is None else loaded
        order = [
            lanes + picked[lane] if loaded is not None and owner[lane] == i
            else lane if loaded is not None
            else min(picked[lane], lanes - 1)
            for lane in range(lanes)
        ]  # fmt: skip
        loaded = vector.ShuffleOp(before, piece, ir.DenseI64ArrayAttr.get(order)).result
    assert loaded is not None
    return loaded


def _spread(frame: Frame, mask: ir.Value, start: int, step: int, repeat: int = 1, count: int | None = None) -> ir.Value:
    """The mask of `count` elements from `start` on, as many as lanes without a number, of which every `step`-th is
    wanted where the first of its `repeat` lanes is set in `mask`."""
    lanes = mask.type.shape[0]
    false = vector.broadcast(mask.type, frame.constants.get(ir.IntegerType.get_signless(1), 0))
    order = [lanes] * (lanes if count is None else count)
    for lane in range(0, lanes, repeat):
        place = lane // repeat * step - start
        if 0 <= place < len(order):
            order[place] = lane
    return vector.ShuffleOp(mask, false, ir.DenseI64ArrayAttr.get(order)).result


LINE = 64  # bytes that are fetched together
ALONE = 2  # how `past_caches` calls what is wanted where one thread has all of a kernel


def fetch(frame: Frame, idx: IdxMath, buffer: Buffer, coords: Sequence[Idx]) -> None:
    """Begin to bring the adjacent elements at `coords` into the cache; they need not exist."""
    where = address(buffer, coords, idx)
    if where.lanes is not None or where.step != 1 or where.repeat > 1:
        return
    for lane in range(0, idx.lanes, max(1, LINE * 8 // max(8, storage_type(buffer.element).width))):
        at = frame.constants.index(frame.math.add(where.base, lane))
        memref.PrefetchOp(buffer.memory, [at], False, 3, True)


def store(
    frame: Frame,
    idx: IdxMath,
    buffer: Buffer,
    coords: Sequence[Idx],
    value: ir.Value,
    mask: ir.Value | None,
    *,
    stream: bool = False,
) -> None:
    """Write `value` (scalar or vector, as the address demands) at `coords`; whole vectors past the caches when `stream`
    says so: then they are aligned to their size, see `past_caches`.
    """
    where = address(buffer, coords, idx)
    constants = frame.constants
    if where.uniform:
        memref.store(to_memory(value, buffer.element), buffer.memory, [constants.index(where.base)])
        return
    stored = to_memory(splat(value, idx.lanes), buffer.element)
    if where.step == 1 and where.repeat == 1:
        base = [constants.index(where.base)]
        if mask is None:
            element = storage_type(buffer.element)
            known = access_alignment(frame, where.base, element)
            aligned = stored.type.shape[0] * element.width // 8 if stream else known
            vector.StoreOp(stored, buffer.memory, base, nontemporal=stream or None, alignment=aligned)
        elif (count := _known_lanes(mask)) is not None and (count == 1 or frame.in_pieces):
            _store_first(frame, buffer, where.base, stored, count)
        else:
            vector.MaskedStoreOp(buffer.memory, base, mask, stored)
        return
    everywhere = mask if mask is not None else full_mask(frame, idx.lanes)
    vector.ScatterOp(None, buffer.memory, [constants.index(0)], idx.vector(where), everywhere, stored)


def _known_lanes(mask: ir.Value) -> int | None:
    """How many lanes a mask has where that is known."""
    op = defining_op(mask)
    if op is None or op.name != "vector.create_mask":
        return None
    count = defining_op(op.operands[0])
    if count is None or count.name != "arith.constant":
        return None
    return min(ir.IntegerAttr(count.attributes["value"]).value, mask.type.shape[0])


def _store_first(frame: Frame, buffer: Buffer, start: Scalar, stored: ir.Value, count: int) -> None:
    """Write the first `count` elements of a vector as parts of two, four … elements. The first one alone is written so
    for every target: LLVM 22 makes one store of such a masked one itself, but as wide as the elements were before they
    were narrowed, four bytes where an f32 became an i8.
    """
    done, size = 0, stored.type.shape[0]
    while done < count:
        if size <= count - done:
            at = [frame.constants.index(frame.math.add(start, done))]
            if size == 1:
                memref.store(vector.extract(stored, [], [done]), buffer.memory, at)
            else:
                type_ = ir.VectorType.get([size], stored.type.element_type)
                part = vector.extract_strided_slice(type_, stored, [done], [size], [1])
                vector.StoreOp(part, buffer.memory, at)
            done += size
        else:
            size //= 2


def begins_lines(frame: Frame, buffers: Sequence[Buffer]) -> ir.Value:
    """Does every tensor begin where a line of the caches does, so that it may be written past them?"""
    addresses = [memref.ExtractAlignedPointerAsIndexOp(buffer.memory).result for buffer in buffers]
    together = addresses[0]
    for address in addresses[1:]:
        together = arith.ori(together, address)
    low = arith.andi(together, frame.constants.index(LINE - 1))
    return arith.cmpi(arith.CmpIPredicate.eq, low, frame.constants.index(0))


def past_caches(
    frame: Frame, buffers: Sequence[Buffer], wanted: int, emit: Callable[[bool], None], items: Scalar | None = None
) -> None:
    """The stores of `emit`: past the caches where that is `wanted` and all `buffers` begin lines, which is asked when
    the kernel runs, ordinary ones else. `ALONE` wants it only for a call that has all of the `items`. What was written
    past the caches is there before anything that follows.
    """

    def streamed() -> None:
        emit(True)
        ordering = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SEQUENTIAL)
        ir.Operation.create("llvm.fence", [], [], {"ordering": ordering})

    if not wanted:
        emit(False)
        return
    condition = begins_lines(frame, buffers)
    if wanted == ALONE:
        assert items is not None
        done = arith.subi(frame.end, frame.begin)
        alone = arith.cmpi(arith.CmpIPredicate.eq, done, frame.constants.index(items))
        condition = arith.andi(condition, alone)
    if_then(condition, streamed, lambda: emit(False))


_SEQUENTIAL = 7  # LLVM's number of sequential consistency


def splat(value: ir.Value, lanes: int) -> ir.Value:
    """`value` as a vector of `lanes` lanes."""
    if isinstance(value.type, ir.VectorType) or lanes == 1:
        return value
    return vector.broadcast(ir.VectorType.get([lanes], value.type), value)


def full_mask(frame: Frame, lanes: int) -> ir.Value:
    """A mask with every lane set."""
    true = frame.constants.get(ir.IntegerType.get_signless(1), 1)
    return vector.broadcast(ir.VectorType.get([lanes], ir.IntegerType.get_signless(1)), true)


def _zeros(frame: Frame, type_: ir.VectorType) -> ir.Value:
    element = type_.element_type
    zero = 0.0 if isinstance(element, ir.FloatType) else 0
    return vector.broadcast(type_, frame.constants.get(element, zero))


def from_memory(frame: Frame, value: ir.Value, element: ir.Type) -> ir.Value:
    """What is narrower than a byte is one in memory, of which only the low bits count; a bool is any byte but 0."""
    if storage_type(element) == element:
        return value
    type_ = value.type
    if not _is_bool(element):
        narrow = arith.trunci(_shaped(type_, ir.IntegerType.get_signless(element.width)), value)
        return arith.bitcast(_shaped(type_, element), narrow) if isinstance(element, ir.FloatType) else narrow
    if isinstance(type_, ir.VectorType):
        return arith.cmpi(arith.CmpIPredicate.ne, value, _zeros(frame, type_))
    return arith.cmpi(arith.CmpIPredicate.ne, value, frame.constants.get(type_, 0))


def _is_bool(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and element.width == 1


def _shaped(like: ir.Type, element: ir.Type) -> ir.Type:
    """`element`, in a vector where `like` is one."""
    return ir.VectorType.get(like.shape, element) if isinstance(like, ir.VectorType) else element


def to_memory(value: ir.Value, element: ir.Type) -> ir.Value:
    """`value` as it is in memory, the other way round than `from_memory`."""
    memory_type = storage_type(element)
    if memory_type == element:
        return value
    if isinstance(element, ir.FloatType):
        value = arith.bitcast(_shaped(value.type, ir.IntegerType.get_signless(element.width)), value)
    return arith.extui(_shaped(value.type, memory_type), value)
