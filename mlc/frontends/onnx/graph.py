"""Walks ONNX graphs and builds the operations of their nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from mlir import ir
from onnx import helper

from mlc.frontends.common import text
from mlc.frontends.common.builder import INLINE_LIMIT, Builder, Tensor, describe
from mlc.frontends.common.maps import Map, Rows
from mlc.frontends.onnx import forked, functions, load
from mlc.frontends.onnx.registry import Node, Result, find
from mlc.frontends.onnx.values import elem_dtype
from mlc.frontends.report import MismatchError, NodeError, Problem

_DOMAINS = {"ai.onnx": ""}
_OF_MAPS = ("CastMap", "DictVectorizer", "Identity")


class PoisonedError(Exception):
    """An operand comes from a node that failed: what follows from it is not a problem of its own."""


class ForkError(Exception):
    """The two branches of a node give values that no type covers: what follows is imported once for each of them."""

    def __init__(self, error: NodeError, condition: Tensor, branches: Sequence[Callable[[], list[Tensor]]]) -> None:
        super().__init__(error.reason)
        self.error = error
        self.condition = condition
        self.branches = branches


@dataclass
class Scope:
    """The names visible in a graph or function body: its own, then those of the graphs around it.

    `None` stands for an absent optional input; a name in `poisoned` belongs to a node that failed.
    """

    parent: Scope | None = None
    names: dict[str, Tensor | None] = field(default_factory=dict)
    poisoned: set[str] = field(default_factory=set)
    opsets: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, onnx.AttributeProto] = field(default_factory=dict)
    prefix: str = ""

    def lookup(self, name: str) -> Tensor | None:
        """The value of a name; `PoisonedError` after a failure, `KeyError` for an unknown one."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.poisoned:
                raise PoisonedError(name)
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        raise KeyError(name)

    def version(self, domain: str) -> int:
        """The opset version of a domain in this body."""
        scope: Scope | None = self
        while scope is not None:
            if scope.opsets:
                return scope.opsets.get(domain, 1)
            scope = scope.parent
        return 1


class GraphImporter:
    """Builds the nodes of one model; `b` is the builder that the operators' importers use."""

    def __init__(self, model: load.Model, builder: Builder) -> None:
        self.model = model
        self.b = builder
        self.problems: list[Problem] = []
        self.functions = {(f.domain, f.name): f for f in model.proto.functions}
        self.scope = Scope(opsets=opsets_of(model.proto.opset_import))
        self.sequences: dict[ir.Value, list[Tensor]] = {}
        self.forks = 0

    # Bodies ---------------------------------------------------------------------------------------------------------

    def initializers(self, graph: onnx.GraphProto, used: set[str] | None = None) -> None:
        """Builds the constants and weights of a graph (only those in `used`, when given) into the current scope."""
        for tensor in graph.initializer:
            if used is None or tensor.name in used:
                self.define_tensor(tensor.name, tensor)
        for sparse in graph.sparse_initializer:
            self.scope.names[sparse.values.name] = self.b.constant(functions.densified(sparse))

    def define_tensor(self, name: str, tensor: onnx.TensorProto) -> None:
        """Makes `name` a constant or weight with the elements of `tensor`."""
        with ir.Location.name(self.scope.prefix + name):
            try:
                self.scope.names[name] = self.tensor(self.scope.prefix + name, tensor)
            except NodeError as error:
                self.problems.append(Problem(f'tensor "{self.scope.prefix}{name}": {error.reason}', error.hint))
                self.scope.poisoned.add(name)

    def tensor(self, name: str, tensor: onnx.TensorProto) -> Tensor:
        """A constant, or a weight of that name when it has more than 64 elements."""
        if tensor.data_type == onnx.TensorProto.STRING:
            return text.constant(self.b, load.texts_of(tensor))
        shape = [int(extent) for extent in tensor.dims]
        dtype = elem_dtype(tensor.data_type)
        value = load.array_of(self.model, tensor)
        if int(np.prod(shape)) <= INLINE_LIMIT:
            return self.b.constant(value() if callable(value) else value)
        return self.b.weight(name, value, shape, dtype)

    def body(self, nodes: Sequence[onnx.NodeProto], results: Sequence[str] = ()) -> None:
        """Imports nodes in order into the current scope; problems are collected, not raised. `results` are the values
        that are needed afterwards.
        """
        for place, node in enumerate(nodes):
            try:
                self.node(node)
            except ForkError as fork:
                forked.follow(self, fork, nodes[place:], results)
                return

    def subgraph(self, graph: onnx.GraphProto, arguments: Sequence[Tensor | None]) -> list[Tensor]:
        """Imports a nested graph at the current insertion point and returns its outputs.

        Raises `PoisonedError` when one of its nodes failed.
        """
        outer = self.scope
        names = {value.name: argument for value, argument in zip(graph.input, arguments, strict=False)}
        self.scope = Scope(outer, names, prefix=outer.prefix)
        try:
            self.initializers(graph)
            self.body(sorted_nodes(graph.node), [value.name for value in graph.output])
            results = [self.scope.lookup(value.name) for value in graph.output]
        finally:
            self.scope = outer
        if any(result is None for result in results):
            raise NodeError("a nested graph has an output that is absent")
        if any(isinstance(result, Rows | Map) for result in results):
            raise NodeError("a nested graph gives a map", "put its ZipMap behind the node that has the graph")
        return [result for result in results if result is not None]

    # Nodes ----------------------------------------------------------------------------------------------------------

    def node(self, proto: onnx.NodeProto) -> None:
        """Imports one node and defines its outputs."""
        proto = self._bound(proto)
        name = name_of(proto)
        with ir.Location.name(self.scope.prefix + name):
            try:
                self.define(proto, self._results(proto, name))
                return
            except PoisonedError:
                self._report_unknown(proto, name)
            except NodeError as error:
                self.report(proto, name, error)
        self.scope.poisoned.update(out for out in proto.output if out)

    def _report_unknown(self, proto: onnx.NodeProto, name: str) -> None:
        """Names an operator that cannot be imported even where an earlier failure hides the node."""
        domain = _DOMAINS.get(proto.domain, proto.domain)
        version = self.scope.version(domain)
        local = (proto.domain, proto.op_type) in self.functions
        if not local and not functions.is_known(domain, proto.op_type, version):
            self.report(proto, name, NodeError(*functions.unknown(domain, proto.op_type, version)))

    def report(self, proto: onnx.NodeProto, name: str, error: NodeError) -> None:
        """Notes a problem of a node."""
        shapes = []
        for operand in proto.input:
            try:
                shapes.append(describe(self.scope.lookup(operand) if operand else None))
            except (KeyError, PoisonedError):
                shapes.append("?")
        domain = f"{proto.domain}::" if proto.domain else ""
        place = {"node": self.scope.prefix + name, "op": domain + proto.op_type, "shapes": ", ".join(shapes)}
        problem = Problem(error.reason, error.hint, mismatch=isinstance(error, MismatchError), **place)
        if problem not in self.problems:
            self.problems.append(problem)

    def _results(self, proto: onnx.NodeProto, name: str) -> Result:
        domain = _DOMAINS.get(proto.domain, proto.domain)
        attributes = {entry.name: _decoded(helper.get_attribute_value(entry)) for entry in proto.attribute}
        inputs = [self._operand(operand) for operand in proto.input]
        if proto.op_type not in _OF_MAPS and any(isinstance(value, Rows | Map) for value in inputs):
            raise NodeError("one of its inputs is a map", "only CastMap, DictVectorizer and Identity read maps")
        node = Node(proto.op_type, domain, name, self.scope.version(domain), inputs, list(proto.output), attributes)
        local = self.functions.get((proto.domain, proto.op_type))
        if local is not None:
            return functions.inline(self, proto, node, local)
        handler = find(domain, proto.op_type, node.version)
        if handler is not None:
            return handler(self, node)
        return functions.expand(self, proto, node)

    def _operand(self, name: str) -> Tensor | None:
        if not name:
            return None
        try:
            return self.scope.lookup(name)
        except KeyError:
            raise NodeError(f'input "{name}" is not defined by any node, input or initializer') from None

    def _bound(self, proto: onnx.NodeProto) -> onnx.NodeProto:
        """The node with references to attributes of the function around it replaced by their values."""
        if not any(attribute.ref_attr_name for attribute in proto.attribute):
            return proto
        result = onnx.NodeProto()
        result.CopyFrom(proto)
        del result.attribute[:]
        for attribute in proto.attribute:
            source = self.scope.attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            if source is not None:
                result.attribute.add().CopyFrom(source)
                result.attribute[-1].name = attribute.name
        return result

    def define(self, proto: onnx.NodeProto, results: Result) -> None:
        """Names the results of a node."""
        values = [results] if isinstance(results, Tensor) else list(results)
        for position, name in enumerate(proto.output):
            if not name:
                continue
            value = values[position] if position < len(values) else None
            if value is None:
                raise NodeError(f"output {position} is used, but not supported", "export the model for inference")
            self.scope.names[name] = value


def name_of(node: onnx.NodeProto) -> str:
    """How a node is called in locations and messages."""
    return node.name or f"{node.op_type}:{next((out for out in node.output if out), '')}"


def _decoded(value: Any) -> Any:
    """Attribute bytes as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [item.decode("utf-8", "surrogateescape") for item in value]
    return value


def opsets_of(imports: Sequence[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Domain to version."""
    return {_DOMAINS.get(entry.domain, entry.domain): entry.version for entry in imports}


def sorted_nodes(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes in an order in which every value is defined before it is used; `NodeError` for a cycle, and for a
    value that two nodes compute.

    Nodes keep their order where it is right already. Values from outside count as defined.
    """
    produced: dict[str, int] = {}
    for position, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in produced:
                raise NodeError(f'two nodes compute "{name}"', "each value has one name: rename one of the two")
            produced[name] = position
    order: list[int] = []
    state = [0] * len(nodes)
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            current = stack[-1]
            if state[current] == 2:
                stack.pop()
                continue
            state[current] = 1
            needed = [produced[name] for name in used_names(nodes[current]) if name in produced]
            waiting = next((other for other in needed if state[other] != 2 and other != current), None)
            if current in needed or (waiting is not None and state[waiting] == 1):
                ring = stack[stack.index(waiting) :] if waiting in stack else [current]
                names = " -> ".join(nodes[entry].name or nodes[entry].op_type for entry in ring)
                raise NodeError(f"the graph has a cycle: {names}", "ONNX graphs must be acyclic")
            if waiting is None:
                state[current] = 2
                order.append(current)
                stack.pop()
            else:
                stack.append(waiting)
    return [nodes[position] for position in order]


def used_names(node: onnx.NodeProto) -> Iterator[str]:
    """The values a node reads, with those that its nested graphs capture."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
        for graph in graphs:
            own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            for inner in graph.node:
                yield from (name for name in used_names(inner) if name not in own)
                own.update(inner.output)
            yield from (value.name for value in graph.output if value.name not in own)


def without_known(tensor: Tensor) -> Tensor:
    """The value alone, for the arguments of regions that run more than once."""
    return replace(tensor, known=None)
