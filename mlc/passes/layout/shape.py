"""Data movement: `transpose` composes, the others have their lists over dimensions reordered."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import tensor

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, shape_of
from mlc.passes.decompose import build as b
from mlc.passes.layout import Moved, moves
from mlc.passes.layout.context import Layouts, channels_last, inverse, permuted, rebuilt, relayout
from mlc.passes.layout.elementwise import chosen
from mlc.passes.lower.to_linalg.shape import matching_groups


@moves("transpose")
def transpose(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Two transpositions are one, or none; one alone is where an order begins that others follow (`makes_an_image`)."""
    moved, permutation = layouts.of(op.operands[0]), OpAdaptor(op).ints("permutation")
    if moved is None:
        return [Moved(op.operands[0], tuple(permutation))]
    return [Moved(moved.inner, tuple(moved.permutation[p] for p in permutation))]


def makes_an_image(op: ir.Operation) -> bool:
    """Does a transposition make an image with channels first of one with channels last, or of tokens, or their heads,
    that reshapes make an image of?"""
    if op.name != "mlc.transpose":
        return False
    permutation = tuple(OpAdaptor(op).ints("permutation"))
    rank, users = len(permutation), [use.owner.operation for use in op.results[0].uses]
    if permutation == (0, 1, 3, 2):
        return all(u.name == "mlc.reshape" and u.results[0].type.rank > 3 and _becomes_an_image(u) for u in users)
    if rank < 3 or permutation != channels_last(rank):
        return False
    return rank > 3 or all(u.name == "mlc.reshape" and u.results[0].type.rank > 3 for u in users)


@moves("concat")
def concat(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Followed when at most as many inputs have to be transposed as are already moved."""
    permutation = chosen(layouts, list(op.operands))
    if permutation is None:
        return None
    operands = [layouts.inner(v, permutation) for v in op.operands]
    axis = permutation[OpAdaptor(op).int("axis")]
    new = rebuilt(op, operands, permutation, {"axis": b.integer(axis)})
    return [Moved(new.results[0], permutation)]


def _mixed_lists(
    op: ir.Operation, names: Sequence[str], groups: Sequence[Sequence[ir.Value]], permutation: Sequence[int]
) -> tuple[list[ir.Value], list[int], dict[str, ir.Attribute]]:
    """Mixed lists over the dimensions, reordered: operands, how many each list has, attributes."""
    operands: list[ir.Value] = []
    counts: list[int] = []
    changes: dict[str, ir.Attribute] = {}
    for name, group in zip(names, groups, strict=True):
        values: list[Size] = permuted(OpAdaptor(op).mixed(name, group), permutation)
        changes[f"static_{name}"] = b.integers([v if isinstance(v, int) else DYNAMIC for v in values])
        dynamic = [v for v in values if isinstance(v, ir.Value)]
        operands += dynamic
        counts.append(len(dynamic))
    return operands, counts, changes


@moves("slice")
def slice_(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Offsets, sizes and strides are reordered."""
    moved = layouts.of(op.operands[0])
    assert moved is not None
    _, *groups = OpAdaptor(op).segments()
    names = ["offsets", "sizes", "strides"]
    operands, counts, changes = _mixed_lists(op, names, groups, moved.permutation)
    changes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, *counts])
    new = rebuilt(op, [moved.inner, *operands], moved.permutation, changes)
    return [Moved(new.results[0], moved.permutation)]


@moves("pad")
def pad(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Low and high paddings are reordered."""
    moved = layouts.of(op.operands[0])
    if moved is None:
        return None
    _, value, *groups = OpAdaptor(op).segments()
    operands, counts, changes = _mixed_lists(op, ["low", "high"], groups, moved.permutation)
    changes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, len(value), *counts])
    new = rebuilt(op, [moved.inner, *value, *operands], moved.permutation, changes)
    return [Moved(new.results[0], moved.permutation)]


@moves("broadcast")
def broadcast(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Between tensors of the same rank."""
    moved = layouts.of(op.operands[0])
    if moved is None or op.results[0].type.rank != len(moved.permutation):
        return None
    operands, _, changes = _mixed_lists(op, ["sizes"], [list(op.operands)[1:]], moved.permutation)
    new = rebuilt(op, [moved.inner, *operands], moved.permutation, changes)
    return [Moved(new.results[0], moved.permutation)]


@moves("reshape")
def reshape(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """When every group of dimensions that is split or joined also lies together, in order, in the inner value; where it
    makes an image, as a shuffle of pixels does, it is put together, with the channels last."""
    moved = layouts.of(op.operands[0])
    assert moved is not None
    facts, inner = layouts.facts, moved.inner
    groups = list(zip(*matching_groups(facts.symbols, facts.operand(op, 0), facts.result(op, 0)), strict=True))
    sources = [[moved.permutation[i] for i in inputs] for inputs, _ in groups]
    if any(not s for s in sources):
        return None
    if any(s != list(range(s[0], s[0] + len(s))) for s in sources):
        if not _becomes_an_image(op):
            return None
        last = len(moved.permutation) - 1
        together = [i for s in sorted(sources, key=lambda s: (last in s, s[0])) for i in s]
        inner, places = relayout(inner, together), inverse(together)
        sources = [[places[i] for i in s] for s in sources]
    order = sorted(range(len(groups)), key=lambda g: sources[g][0])
    sizes = OpAdaptor(op).mixed("sizes", list(op.operands)[1:])
    permutation = [0] * len(sizes)
    inner_sizes: list[Size] = []
    for group in order:
        for position in groups[group][1]:
            permutation[position] = len(inner_sizes)
            inner_sizes.append(sizes[position])
    dynamic = [s for s in inner_sizes if isinstance(s, ir.Value)]
    changes = {"static_sizes": b.integers([s if isinstance(s, int) else DYNAMIC for s in inner_sizes])}
    new = rebuilt(op, [inner, *dynamic], permutation, changes)
    return [Moved(new.results[0], tuple(permutation))]


def _becomes_an_image(op: ir.Operation) -> bool:
    """Does a convolution or a pool read the result, perhaps behind elementwise operations?"""
    waiting, seen = [op], set[ir.Operation]()
    while waiting:
        users = [use.owner.operation for use in waiting.pop().results[0].uses]
        for user in users:
            if user.name in ("mlc.conv", "mlc.pool") and user.operands[0].type.rank == op.results[0].type.rank:
                return True
            if user.name in _POINTWISE and user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


_POINTWISE = frozenset(f"mlc.{name}" for name in ("unary", "activation", "binary", "clamp", "cast", "concat"))


@moves("shape_of")
def shape_of_(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """The extents of the inner value, reordered."""
    moved = layouts.of(op.operands[0])
    assert moved is not None
    shape = b.operation("shape_of", [moved.inner])[0]
    parts = [b.slice_(shape, [source], [1]) for source in moved.permutation]
    return [Moved(b.concat(parts, 0), (0,))]


def extent_of(moved: Moved, position: int) -> ir.Value:
    """`tensor.dim` of a moved value."""
    source = moved.permutation[position]
    known = shape_of(moved.inner)[source]
    return b.index(known) if known != DYNAMIC else tensor.dim(moved.inner, b.index(source))
