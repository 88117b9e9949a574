"""If, Loop and Scan as `scf` operations on tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from mlc.frontends.common import control_flow as common
from mlc.frontends.common import shape
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.onnx.graph import ForkError, GraphImporter, PoisonedError, without_known
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError, Problem


@onnx_op("If")
def if_(g: GraphImporter, node: Node) -> list[Tensor]:
    """`scf.if`; with a condition that is known only the branch taken is imported."""
    condition = node[0]
    branches = [node.required("then_branch"), node.required("else_branch")]
    if condition.constant is not None:
        return g.subgraph(branches[0 if bool(condition.constant.reshape(-1)[0]) else 1], [])
    builders = [_Branch(g, graph) for graph in branches]
    try:
        return common.if_(g.b, condition, builders)
    except PoisonedError:
        taken = _other_than_impossible(g, builders)
        if taken is None:
            raise
        reason = f"{node.name}: the branch taken does not fit the shapes that the model was compiled for"
        common.require(g.b, condition, taken == 0, reason)
        return builders[taken]()
    except common.PathError as error:
        taken = _squeezing(branches)
        if taken is None:
            raise ForkError(error, condition, builders) from error
        # torch.onnx writes squeeze(dim) of an unknown extent as an If between Squeeze and Identity. A result of two
        # ranks has no type: compile the squeeze, and check at run time that it is right.
        reason = f"{node.name}: {error.reason}; compiled for the branch that squeezes: fix the input's shape"
        common.require(g.b, condition, taken == 0, reason)
        return builders[taken]()


class _Branch:
    """Imports a branch when called; remembers the problems of the last time."""

    def __init__(self, g: GraphImporter, graph: onnx.GraphProto) -> None:
        self.g = g
        self.graph = graph
        self.problems: list[Problem] = []

    def __call__(self) -> list[Tensor]:
        """The values of the branch."""
        before = len(self.g.problems)
        try:
            return self.g.subgraph(self.graph, [])
        finally:
            self.problems = self.g.problems[before:]


def _other_than_impossible(g: GraphImporter, branches: Sequence[_Branch]) -> int | None:
    """Where one branch cannot run for the shapes at hand, the number of the other; its problems are forgotten.

    A model for two sampling rates has such branches once its input has a fixed length.
    """
    failed = [number for number, branch in enumerate(branches) if branch.problems]
    if len(failed) != 1 or not all(problem.mismatch for problem in branches[failed[0]].problems):
        return None
    del g.problems[-len(branches[failed[0]].problems) :]
    return 1 - failed[0]


def _squeezing(branches: Sequence[onnx.GraphProto]) -> int | None:
    """Which of two branches squeezes where the other passes its input on."""
    ops = [{node.op_type for node in graph.node} - {"Constant"} for graph in branches]
    for taken, other in ((0, 1), (1, 0)):
        if "Squeeze" in ops[taken] and "Squeeze" not in ops[other]:
            return taken
    return None


@onnx_op("Loop")
def loop(g: GraphImporter, node: Node) -> list[Tensor]:
    """`scf.for` when the trip count alone ends the loop, else `scf.while`."""
    b = g.b
    body: onnx.GraphProto = node.required("body")
    trip, condition = node.optional(0), node.optional(1)
    carried = [without_known(value) for value in node.inputs[2:] if value is not None]
    if len(carried) != len(node.inputs[2:]):
        raise NodeError("an initial value of the loop is missing")
    count = len(carried)
    endless = condition is None or (condition.constant is not None and bool(condition.constant.reshape(-1)[0]))

    def step(iteration: Tensor, going: Tensor, values: Sequence[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        results = loop_body(g, body, [iteration, going, *values])
        return results[0], results[1 : 1 + count], results[1 + count :]

    # A negative number of iterations is none: what the loop stacks has that many elements.
    limit: Size | None = None if trip is None else b.arith("maxsi", b.scalar(trip), 0)
    if limit is not None and endless and _keeps_going(body):
        return common.for_(b, limit, carried, lambda iteration, values: step(iteration, _true(g), values)[1:])
    going = _true(g) if condition is None else shape.reshape(b, condition, [])
    return common.while_(b, trip, going, carried, step)


def loop_body(g: GraphImporter, body: onnx.GraphProto, arguments: Sequence[Tensor]) -> list[Tensor]:
    """Imports the body of a loop. Raises `RetypeError`, without problems, when an argument needs another type."""
    before = len(g.problems)
    try:
        return g.subgraph(body, arguments)
    except PoisonedError:
        if not g.b.wanted:
            raise
        del g.problems[before:]
        raise common.RetypeError from None


def _true(g: GraphImporter) -> Tensor:
    return g.b.constant(np.array(True))


def _keeps_going(body: onnx.GraphProto) -> bool:
    """Whether the condition that a body returns is the one it was given, or constantly true."""
    name = body.output[0].name
    for tensor in body.initializer:
        if tensor.name == name:
            return bool(onnx.numpy_helper.to_array(tensor).reshape(-1)[0])
    for node in reversed(body.node):
        if name in node.output:
            if node.op_type == "Identity" or node.op_type == "Cast" and node.input[0] == body.input[1].name:
                name = node.input[0]
            elif node.op_type == "Constant" and node.attribute[0].name == "value":
                return bool(onnx.numpy_helper.to_array(node.attribute[0].t).reshape(-1)[0])
            else:
                return False
    return name == body.input[1].name


@onnx_op("Scan", since=9)
def scan(g: GraphImporter, node: Node) -> list[Tensor]:
    """`scf.for` over slices of the scanned inputs."""
    b = g.b
    body: onnx.GraphProto = node.required("body")
    scanned_count = int(node.required("num_scan_inputs"))
    inputs = [without_known(value) for value in node.present()]
    states, scanned = inputs[: len(inputs) - scanned_count], inputs[len(inputs) - scanned_count :]
    axes = _axes(node.attr("scan_input_axes"), scanned)
    backwards = list(node.attr("scan_input_directions") or [0] * scanned_count)
    length = b.dim(scanned[0], axes[0])

    def step(iteration: Tensor, values: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        parts = [
            common.take(b, tensor, axis, iteration, bool(reverse))
            for tensor, axis, reverse in zip(scanned, axes, backwards, strict=True)
        ]
        results = loop_body(g, body, [*values, *parts])
        return results[: len(states)], results[len(states) :]

    results = common.for_(b, length, states, step)
    outputs = results[len(states) :]
    flips = list(node.attr("scan_output_directions") or [0] * len(outputs))
    targets = list(node.attr("scan_output_axes") or [0] * len(outputs))
    finished = [
        _placed(g, output, shape.normalize_axis(axis, output.rank), bool(reverse))
        for output, axis, reverse in zip(outputs, targets, flips, strict=True)
    ]
    return [*results[: len(states)], *finished]


def _axes(given: Sequence[int] | None, tensors: Sequence[Tensor]) -> list[int]:
    axes = given or [0] * len(tensors)
    return [shape.normalize_axis(axis, tensor.rank) for axis, tensor in zip(axes, tensors, strict=True)]


def _placed(g: GraphImporter, output: Tensor, axis: int, reverse: bool) -> Tensor:
    """A stacked output with its new dimension reversed and moved to `axis`."""
    if reverse:
        output = shape.slice_axes(g.b, output, [0], [-1], [-shape.INT64_MAX], [-1])
    order = list(range(1, output.rank))
    order.insert(axis, 0)
    return shape.transpose(g.b, output, order)


@onnx_op("Scan", since=8)
def scan_batched(g: GraphImporter, node: Node) -> list[Tensor]:
    """Opset 8: every value has a batch dimension in front, and a sequence for each element of the batch."""
    b = g.b
    if node.optional(0) is not None:
        raise NodeError("sequences of different lengths are not supported", "convert the model to opset 9 or newer")
    body: onnx.GraphProto = node.required("body")
    scanned_count = int(node.required("num_scan_inputs"))
    inputs = [without_known(value) for value in node.present()]
    state_count = len(inputs) - scanned_count
    backwards = list(node.attr("directions") or [0] * scanned_count)

    def element(number: Tensor, _: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        own = [common.take(b, value, 0, number, False) for value in inputs]
        states, scanned = own[:state_count], own[state_count:]

        def step(iteration: Tensor, values: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            parts = [
                common.take(b, tensor, 0, iteration, bool(reverse))
                for tensor, reverse in zip(scanned, backwards, strict=True)
            ]
            results = loop_body(g, body, [*values, *parts])
            return results[:state_count], results[state_count:]

        return [], common.for_(b, b.dim(scanned[0], 0), states, step)

    return common.for_(b, b.dim(inputs[0], 0), [], element)
