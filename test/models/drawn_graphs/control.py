"""Steps with bodies: branches, loops and scans, which read what is outside of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from models.drawn_graphs import floats, integers, movements, with_itself
from models.drawn_graphs.graph import BOOL, F32, I32, I64, Graph, Step, Steps, Value

step = Steps()
NUMBERS = (F32, I64, I32)
INSIDE: list[Step] = [*floats.step, *movements.step, *integers.step, *with_itself.step]
DEEPEST = 2


def _typed(v: Value) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(v.name, v.dtype, v.shape)


def _open(v: Value) -> onnx.ValueInfoProto:
    """Of any shape: inside of a model for any extents nothing else is true."""
    return helper.make_tensor_value_info(v.name, v.dtype, None)


def _last(body: Graph, x: Value, steps: int) -> Value:
    """The last value of the body that has the shape and the type of another, after some steps."""
    body.grow([*INSIDE, *(step if body.depth < DEEPEST else [])], len(body.nodes) + steps)
    made = {name for node in body.nodes for name in node.output}
    found = [v for v in body.values if (v.shape, v.dtype) == (x.shape, x.dtype) and v.name in made]
    return found[-1] if found else body.move(x, "Neg", [], x.shape)


def _limited(body: Graph, y: Value) -> Value:
    """What turn after turn goes on with: nothing grows without limit."""
    return y if y.dtype != F32 else body.add("Clip", [y.name, body.number(-20), body.number(20)], y.shape)


def _condition(g: Graph) -> str:
    """A truth value that is not known when the model is compiled; without an exact value it is constant."""
    x = g.pick(lambda v: v.moved and v.size > 0, g.one_of([F32, I64, I32]))
    if x is None:
        return g.constant(g.often(0.5), np.bool_)
    flat = g.intermediate("Reshape", [x.name, g.constant([-1])])
    first = g.intermediate("Gather", [flat, g.constant(int(g.rng.integers(x.size)))], axis=0)
    return g.intermediate("Greater", [first, g.number(0, x.dtype)])


def _graph(
    body: Graph, name: str, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
) -> onnx.GraphProto:
    return helper.make_graph(body.nodes, name, list(inputs), list(outputs), body.constants)


@step(times=2, dtypes=NUMBERS)
def branch(g: Graph, x: Value) -> None:
    """Both branches read values of the graph around them."""
    condition, seen = _condition(g), [v for v in g.values if v.size < 5000][-5:] + [x]
    branches, exact = [], True
    for _ in range(2):
        body = g.body(seen)
        y = _last(body, x, g.one_of([1, 2, 4]))
        exact = exact and y.moved
        branches.append(_graph(body, g.new_name("branch"), [], [_open(y)]))
    moved = exact and x.moved
    g.add("If", [condition], x.shape, moved, dtype=x.dtype, then_branch=branches[0], else_branch=branches[1])


@step(times=2, dtypes=NUMBERS)
def loop(g: Graph, x: Value) -> None:
    """A value is carried, and given out in each turn; how often is a constant or an integer of the run."""
    if x.size > 2000 or x.rank > 3:
        return
    turns = g.one_of([0, 1, 2, 3, 5])
    number, going = Value(g.new_name("i"), (), True, I64), Value(g.new_name("b"), (), True, BOOL)
    carried = Value(g.new_name("s"), x.shape, False if x.dtype == F32 else x.moved, x.dtype)
    outside = [v for v in g.values if v.size < 2000][-3:]
    body = g.body([number, *outside, carried])
    y = _limited(body, _last(body, carried, g.one_of([1, 2, 4])))
    if g.often(0.3):
        goes_on = body.intermediate("Less", [number.name, body.number(2, I64)])
        turns = min(turns, 3)
    else:
        goes_on = body.intermediate("Identity", [going.name])
    given = body.intermediate("Identity", [y.name])
    results = [_open(v) for v in (Value(goes_on, (), True, BOOL), y, Value(given, x.shape, y.moved, x.dtype))]
    graph = _graph(body, g.new_name("body"), [_typed(number), _typed(going), _open(carried)], results)
    moved = x.moved and y.moved
    count = g.constant(turns)
    z = g.add("Loop", [count, "", x.name], x.shape, moved, dtype=x.dtype, unread=1, body=graph)
    if turns and turns * x.size < 5000:
        g.values.append(Value(f"{z.name}_0", (turns, *x.shape), moved, x.dtype))


@step(ranks=(2, 3), dtypes=NUMBERS)
def scan(g: Graph, x: Value) -> None:
    """Along an axis, forwards or backwards: a state, and what is made of each slice."""
    axis = g.axis(x)
    rest = tuple(n for i, n in enumerate(x.shape) if i != axis)
    if x.size > 5000 or not math.prod(rest):
        return
    state, part = (Value(g.new_name("s"), rest, x.dtype != F32 and x.moved, x.dtype) for _ in range(2))
    body = g.body([state, part])
    joined = body.add("Add", [state.name, part.name], rest, state.moved, dtype=x.dtype)
    y = _limited(body, _last(body, joined, g.one_of([1, 2, 3])))
    given = body.intermediate("Identity", [y.name])
    graph = _graph(
        body,
        g.new_name("body"),
        [_typed(state), _typed(part)],
        [_typed(y), _typed(Value(given, rest, y.moved, x.dtype))],
    )
    options = {"num_scan_inputs": 1, "scan_input_axes": [axis], "scan_input_directions": [int(g.often(0.5))]}
    z = g.add("Scan", [g.constant_like(x, rest), x.name], rest, y.moved, dtype=x.dtype, unread=1, body=graph, **options)
    g.values.append(Value(f"{z.name}_0", (x.shape[axis], *rest), y.moved, x.dtype))
