"""Sequences and optionals.

A sequence whose elements are all known at import (built by `SequenceConstruct`, or a split into a static number of
parts) is remembered element by element, so that reading from it needs no sequence at run time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from mlir import ir

from mlc.frontends.common import control_flow, shape, types
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common.builder import DYNAMIC, Size, Tensor, is_argument
from mlc.frontends.onnx.control_flow import loop_body
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.onnx.values import elem_dtype, optional_of, sequence_of, value_type
from mlc.frontends.report import NodeError


def element_type(kind: ir.Type) -> ir.Type:
    """The type inside a sequence or optional type."""
    text = str(kind)
    return ir.Type.parse(text[text.index("<") + 1 : -1])


def _items(g: GraphImporter, sequence: Tensor) -> list[Tensor] | None:
    return g.sequences.get(sequence.value)


def make(g: GraphImporter, items: Sequence[Tensor]) -> Tensor:
    """A sequence of known elements; its element type covers all of theirs."""
    kind = items[0].value.type
    for item in items[1:]:
        kind = control_flow.joined(kind, item.value.type)
    cast = [g.b.cast_type(item, kind) for item in items]
    result = g.b.op("sequence_make", [cast], [sequence_of(kind)], unsigned=items[0].unsigned)
    g.sequences[result.value] = list(items)
    return result


@onnx_op("SequenceConstruct")
def construct(g: GraphImporter, node: Node) -> Tensor:
    """A sequence of the inputs."""
    return make(g, node.present())


@onnx_op("SequenceEmpty")
def empty(g: GraphImporter, node: Node) -> Tensor:
    """An empty sequence; what goes in later decides the type of its elements."""
    dtype = elem_dtype(int(node.attr("dtype", 1)))
    kind = ir.RankedTensorType.get([], types.element_type(dtype))
    result = g.b.op("sequence_make", [[]], [sequence_of(kind)], unsigned=types.is_unsigned(dtype))
    g.sequences[result.value] = []
    return result


def _position(g: GraphImporter, node: Node, place: int) -> Tensor | None:
    given = node.optional(place)
    if given is None:
        return None
    return ew.cast(g.b, shape.reshape(g.b, given, []), "int64")


def _known_position(position: Tensor | None, count: int, default: int) -> int | None:
    if position is None:
        return default
    if position.constant is None:
        return None
    value = int(position.constant)
    if not -count <= value <= count:
        raise NodeError(f"position {value} in a sequence of {count}")
    return value + count if value < 0 else value


@onnx_op("SequenceAt")
def at(g: GraphImporter, node: Node) -> Tensor:
    """The element at a position."""
    sequence, position = node[0], _position(g, node, 1)
    assert position is not None
    items = _items(g, sequence)
    if items is not None:
        place = _known_position(position, len(items), 0)
        if place is not None and place < len(items):
            return items[place]
    kind = element_type(sequence.value.type)
    return g.b.op("sequence_at", [sequence, position], [kind], unsigned=sequence.unsigned)


@onnx_op("SequenceInsert")
def insert(g: GraphImporter, node: Node) -> Tensor:
    """The sequence with an element inserted before a position, or at the end."""
    sequence, item, position = node[0], node[1], _position(g, node, 2)
    items = _items(g, sequence)
    if items is not None:
        place = _known_position(position, len(items), len(items))
        if place is not None:
            return make(g, [*items[:place], item, *items[place:]])
    kind = _covering(sequence, item)
    if sequence_of(kind) != sequence.value.type and is_argument(sequence.value):
        sequence = g.b.cast_type(sequence, sequence_of(kind))
    if sequence_of(kind) != sequence.value.type:
        # The argument of a loop's body: the loop starts again with a sequence of this type.
        if isinstance(sequence.value.owner, ir.Block):
            g.b.wanted[sequence.value] = sequence_of(kind)
        raise NodeError(f"{item} does not fit a sequence of {element_type(sequence.value.type)}")
    cast = g.b.cast_type(item, kind)
    operands = [sequence, cast, position]
    return g.b.op("sequence_insert", operands, [sequence.value.type], unsigned=sequence.unsigned)


def _covering(sequence: Tensor, item: Tensor) -> ir.Type:
    """The element type of a sequence that also takes `item`; rank-0 floats are what `SequenceEmpty` starts with."""
    have = element_type(sequence.value.type)
    try:
        return control_flow.joined(have, item.value.type)
    except control_flow.PathError:
        if isinstance(have, ir.RankedTensorType) and have.rank == 0:
            return item.value.type
        raise


@onnx_op("SequenceErase")
def erase(g: GraphImporter, node: Node) -> Tensor:
    """The sequence without one element, the last by default."""
    sequence, position = node[0], _position(g, node, 1)
    items = _items(g, sequence)
    if items:
        place = _known_position(position, len(items), len(items) - 1)
        rest = [item for number, item in enumerate(items) if number != place]
        if place is not None and rest:
            return make(g, rest)
    return g.b.op("sequence_erase", [sequence, position], [sequence.value.type], unsigned=sequence.unsigned)


@onnx_op("SequenceLength")
def length(g: GraphImporter, node: Node) -> Tensor:
    """How many elements there are."""
    items = _items(g, node[0])
    if items is not None:
        return g.b.constant(np.array(len(items), np.int64))
    kind = ir.RankedTensorType.get([], types.element_type("int64"))
    return g.b.op("sequence_length", [node[0]], [kind])


@onnx_op("ConcatFromSequence")
def concat(g: GraphImporter, node: Node) -> Tensor:
    """All elements concatenated, or stacked along a new axis."""
    b = g.b
    items = _items(g, node[0])
    axis, stack = int(node.required("axis")), bool(node.attr("new_axis", 0))
    if not items:
        return _concat_at_run_time(g, node[0], axis, stack)
    place = shape.normalize_axis(axis, items[0].rank + stack)
    parts = [shape.unsqueeze(b, item, [place]) for item in items] if stack else items
    return shape.concat(b, parts, place)


def _concat_at_run_time(g: GraphImporter, sequence: Tensor, axis: int, stack: bool) -> Tensor:
    """A loop that appends one element after the other to the first."""
    b = g.b
    kind = ir.RankedTensorType(element_type(sequence.value.type))
    if not kind.rank and not stack:
        hint = "give the shape of the sequence's elements, of inputs with --input NAME=SHAPE"
        raise NodeError("tensors of unknown rank cannot be concatenated", hint)
    place = shape.normalize_axis(axis, kind.rank + stack)
    line = ir.RankedTensorType.get([], types.element_type("int64"))
    count = b.arith("subi", b.element(b.op("sequence_length", [sequence], [line])), 1)

    def part(position: Tensor) -> Tensor:
        item = b.op("sequence_at", [sequence, position], [kind], unsigned=sequence.unsigned)
        return shape.unsqueeze(b, item, [place]) if stack else item

    def step(counter: Tensor, values: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        following = ew.binary(b, "add", counter, b.constant(np.array(1, np.int64)))
        return [shape.concat(b, [values[0], part(following)], place)], []

    return control_flow.for_(b, count, [part(b.constant(np.array(0, np.int64)))], step)[0]


@onnx_op("SequenceMap")
def map_(g: GraphImporter, node: Node) -> list[Tensor]:
    """The body applied to each element; further inputs are sequences of the same length, or the same for all."""
    body = node.required("body")
    columns = [_items(g, value) if is_sequence(value.value.type) else None for value in node.present()]
    pairs = list(zip(columns, node.present(), strict=True))
    if columns[0] and not any(items is None and is_sequence(value.value.type) for items, value in pairs):
        rows = [
            g.subgraph(body, [value if items is None else items[place] for items, value in pairs])
            for place in range(len(columns[0]))
        ]
        return [make(g, list(column)) for column in zip(*rows, strict=True)]
    return _mapped_at_run_time(g, node, body)


def _mapped_at_run_time(g: GraphImporter, node: Node, body: onnx.GraphProto) -> list[Tensor]:
    """A loop that appends to sequences, whose element types show when the body is built."""
    b = g.b
    kind = ir.RankedTensorType.get([], types.element_type("int64"))
    count = b.element(b.op("sequence_length", [node[0]], [kind]))
    start = sequence_of(ir.RankedTensorType.get([], types.element_type("float32")))
    initial = [b.op("sequence_make", [[]], [start]) for _ in body.output]

    def step(counter: Tensor, values: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        parts = [_element(g, value, counter) if is_sequence(value.value.type) else value for value in node.present()]
        grown = []
        for sequence, item in zip(values, loop_body(g, body, parts), strict=True):
            wanted = sequence_of(_covering(sequence, item))
            if wanted != sequence.value.type:
                b.wanted[sequence.value] = wanted
                continue
            cast = b.cast_type(item, element_type(wanted))
            grown.append(b.op("sequence_insert", [sequence, cast, None], [wanted], unsigned=item.unsigned))
        if b.wanted:
            raise control_flow.RetypeError
        return grown, []

    return control_flow.for_(b, count, initial, step)


def _element(g: GraphImporter, sequence: Tensor, position: Tensor) -> Tensor:
    kind = element_type(sequence.value.type)
    return g.b.op("sequence_at", [sequence, position], [kind], unsigned=sequence.unsigned)


@onnx_op("SplitToSequence")
def split(g: GraphImporter, node: Node) -> Tensor:
    """Parts of the given sizes; without sizes, single slices, whose dimension `keepdims` 0 drops."""
    b, x = g.b, node[0]
    axis = shape.normalize_axis(node.attr("axis", 0), x.rank)
    sizes = node.optional(1)
    extent = x.shape[axis]
    lengths: list[Size]
    if sizes is not None and sizes.rank == 1:
        lengths = b.elements(sizes, "split")
    else:
        step = 1 if sizes is None else b.scalar(sizes)
        drop = sizes is None and not node.attr("keepdims", 1)
        if isinstance(step, int) and step < 1:
            raise NodeError(f"parts of {step} elements", "the size of the parts must be positive")
        if not isinstance(step, int):
            assert sizes is not None
            positive = ew.compare(b, "gt", shape.reshape(b, sizes, []), b.like(0, sizes))
            control_flow.require(b, positive, True, f"{node.name}: the size of the parts must be positive")
            step = b.arith("maxsi", step, 1)
        if extent is None or not isinstance(step, int):
            return _split_at_run_time(g, x, axis, step, drop)
        lengths = [min(step, extent - start) for start in range(0, extent, step)]
    parts = shape.split(b, x, axis, lengths)
    if sizes is None and not node.attr("keepdims", 1):
        parts = [shape.squeeze(b, part, [axis]) for part in parts]
    return make(g, parts)


def _split_at_run_time(g: GraphImporter, x: Tensor, axis: int, step: Size, drop: bool) -> Tensor:
    """A loop that appends windows of `step` elements, the last one perhaps shorter; `drop` removes their dimension."""
    b, extent = g.b, g.b.dim(x, axis)
    extents = list(x.type.shape)
    extents[axis : axis + 1] = [] if drop else [DYNAMIC]
    kind = sequence_of(ir.RankedTensorType.get(extents, x.element))
    empty_ = b.op("sequence_make", [[]], [kind], unsigned=x.unsigned)

    def append(counter: Tensor, values: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        offset = b.arith("muli", b.element(counter), step)
        item = shape.window(b, x, axis, offset, b.arith("minsi", step, b.arith("subi", extent, offset)))
        item = b.cast_type(shape.squeeze(b, item, [axis]) if drop else item, element_type(kind))
        return [b.op("sequence_insert", [values[0], item, None], [kind], unsigned=x.unsigned)], []

    return control_flow.for_(b, b.arith("ceildivsi", extent, step), [empty_], append)[0]


@onnx_op("Optional")
def optional(g: GraphImporter, node: Node) -> Tensor:
    """An optional with the input's value, or nothing of the type that the attribute gives."""
    value = node.optional(0)
    if value is not None:
        return g.b.op("optional_some", [value], [optional_of(value.value.type)], unsigned=value.unsigned)
    return g.b.op("optional_none", [], [optional_of(value_type(node.required("type")))])


def is_sequence(kind: ir.Type) -> bool:
    """Whether a type is `!mlc.seq`."""
    return str(kind).startswith("!mlc.seq")


def is_optional(kind: ir.Type) -> bool:
    """Whether a type is `!mlc.optional`."""
    return str(kind).startswith("!mlc.optional")


@onnx_op("OptionalHasElement")
def has_element(g: GraphImporter, node: Node) -> Tensor:
    """Whether there is a value; always, for what is no optional."""
    value = node.optional(0)
    if value is None or not is_optional(value.value.type):
        return g.b.constant(np.array(value is not None))
    kind = ir.RankedTensorType.get([], types.element_type("bool"))
    return g.b.op("optional_has", [value], [kind])


@onnx_op("OptionalGetElement")
def get_element(g: GraphImporter, node: Node) -> Tensor:
    """The value of an optional."""
    value = node[0]
    if not is_optional(value.value.type):
        return value
    return g.b.op("optional_get", [value], [element_type(value.value.type)], unsigned=value.unsigned)
