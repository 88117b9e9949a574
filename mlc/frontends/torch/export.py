"""Programs of `torch.export`: a `.pt2` file, or an `ExportedProgram`, becomes one entry.

PyTorch makes the program functional first (nothing is changed in place, operators with an importer stay whole), so that
its graph is a list of calls of aten operators and of arithmetic on sizes. The file has shapes and dtypes; its symbols
become dynamic dimensions, which `input_shapes` may rename or fix. Source: PyTorch documentation, "torch.export",
"Export IR Specification".
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlir import ir

from mlc.frontends.common import control_flow, elementwise
from mlc.frontends.common.builder import Builder, Tensor, describe
from mlc.frontends.common.entry import Continued, DimRange
from mlc.frontends.report import ModelError, NodeError, Problem
from mlc.frontends.torch import aten, files
from mlc.frontends.torch.complex_numbers import imported
from mlc.frontends.torch.decompositions import decomposed_from, without_unknown
from mlc.frontends.torch.program_inputs import Inputs
from mlc.frontends.torch.program_state import ProgramState, changed_constants, changes, held
from mlc.frontends.torch.registry import Call, Value, as_tensor, find
from mlc.frontends.torch.schema import Schema
from mlc.frontends.torch.walk import POISON, PoisonedError, Walk, is_poisoned, module_of


def import_model(
    source: str | Path | Any,
    context: ir.Context,
    *,
    store: Any,
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    dtypes: Mapping[str, str] | None = None,
    dims: Mapping[str, DimRange] | None = None,
    outputs: Sequence[str] | None = None,
) -> ir.Module:
    """The module of a file of `torch.export.save`, or of a `torch.export.ExportedProgram`.

    `input_shapes` may give the names or extents of dynamic dimensions; `dtypes` are the program's, and what is said of
    them is checked by the caller. Raises ModelError with every problem of the model.
    """
    del dtypes
    aten.load()
    torch, title, digest, program = _load(source)
    state = ProgramState(program)
    inputs = Inputs(program, title, state, dict(input_shapes or {}), dict(dims or {}))

    def body(arguments: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
        return Importer(torch, program, state, Builder(store), title).run(arguments)

    return module_of(context, title, digest, inputs.arguments, inputs.dims, outputs, body)


def is_program(source: Any) -> bool:
    """Whether an object is a `torch.export.ExportedProgram`."""
    return type(source).__module__ == "torch.export.exported_program"


def _load(source: str | Path | Any) -> tuple[Any, str, str, Any]:
    """PyTorch, the title, the digest and the functional program of a model."""
    if isinstance(source, str | Path):
        path = Path(source)
        title, digest, torch = path.name, files.digest(path), files.pytorch(path.name)
        program = files.read_program(torch, path)
    else:
        title, torch, program = "ExportedProgram", files.pytorch("ExportedProgram"), source
        text = f"{program.graph}{program.graph_signature}"
        digest = hashlib.sha256(text.encode()).hexdigest()
    if program.graph_signature.input_tokens:
        raise ModelError(title, [Problem("has effects beside its results", "export it without prints and assertions")])
    return torch, title, digest, without_unknown(torch, _functional(title, program))


def _functional(title: str, program: Any) -> Any:
    """The program without operators that change something in place. PyTorch rewrites it only where there are some: it
    cannot rewrite every program that it can save.
    """
    if is_functional(program):
        return program
    try:
        with files.quiet():
            return program.run_decompositions({})
    except Exception as error:
        if constants := changed_constants(program):
            reason = f"changes {', '.join(constants)} in place, which the export took for constants"
            hint = "register them as buffers of the module, and export with strict=True where another object holds them"
            raise ModelError(title, [Problem(reason, hint)]) from error
        hint = "call program.run_decompositions({}) before saving, or use operators that return new tensors"
        problem = Problem(f"changes tensors in place, and PyTorch cannot rewrite that: {files.first_line(error)}", hint)
        raise ModelError(title, [problem]) from error


def is_functional(program: Any) -> bool:
    """Whether no operator of a program changes something in place."""
    graphs = (part.graph for part in program.graph_module.modules() if hasattr(part, "graph"))
    return not any(True for graph in graphs for _ in changes(graph))


class Importer(Walk):
    """Walks the graph of a program, and those of the branches and bodies in it."""

    def __init__(self, torch: Any, program: Any, state: ProgramState, b: Builder, title: str) -> None:
        super().__init__(torch, b, title)
        self.program, self.state = program, state

    def run(self, inputs: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
        """The results by name, what they are the new contents of last. Raises ModelError."""
        values = self.results(inputs)
        results: list[tuple[str, Tensor]] = []
        changed: list[tuple[str, Tensor]] = []
        names = self.state.name_results(self._names())
        for name, source, value in zip(names, self.state.results, values, strict=True):
            if isinstance(value, ir.Value | bool | int | float):
                value = as_tensor(self.b, value)
            if source and isinstance(value, Tensor):
                changed.append((name, Continued(value.value, value.unsigned, source=source)))
            elif value is not None:
                self.flatten(name, value, results)
        if self.problems:
            raise ModelError(self.title, self.problems)
        return results + changed

    def results(self, inputs: Mapping[str, Value]) -> list[Value]:
        """What the program makes of `inputs`, by their names; what cannot be imported is among the problems."""
        graph, specs = self.program.graph, self.program.graph_signature.input_specs
        for node, spec in zip(graph.find_nodes(op="placeholder"), specs, strict=True):
            name = self.state.inputs.get(node.name, node.name)
            if name in inputs:
                self.values[node.name] = inputs[name]
            elif node.users:
                self.values[node.name] = self._held(node.name, spec)
        self._nodes(self.program.graph_module, self.values)
        (output,) = graph.find_nodes(op="output")
        return self._arguments(output.args[0], self.values)

    def _held(self, name: str, spec: Any) -> Value:
        """A parameter, buffer or constant of the program."""
        if spec.kind.name == "USER_INPUT" and hasattr(spec.arg, "value"):
            return spec.arg.value
        if spec.kind.name not in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            kind = type(spec.arg).__name__.removesuffix("Argument")
            reason = f'its input "{name}" is a {kind}, which no library takes'
            self.problems.append(Problem(reason, "export it with a tensor, or with a constant, in its place"))
            return POISON
        return self.weight(held(self.program, spec.target), spec.target)

    def _names(self) -> list[str]:
        """The names of the results: the keys of dictionaries and classes, places in lists, else `output`."""
        pytree = self.torch.utils._pytree
        spec = self.program.call_spec.out_spec
        paths, _ = pytree.tree_flatten_with_path(pytree.tree_unflatten(range(spec.num_leaves), spec))
        named = [[_key(part) for part in path] for path, _ in paths]
        return ["_".join(["output"] * (not parts or parts[0].isdigit()) + parts) for parts in named]

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _nodes(self, owner: Any, values: dict[str, Value]) -> None:
        needed = _needed(owner.graph)
        for node in owner.graph.nodes:
            if node.op == "get_attr":
                held = functools.reduce(getattr, node.target.split("."), owner)
                values[node.name] = held if hasattr(held, "graph") else self.python(held, node.target)
            elif node.op == "call_function" and node in needed:
                with ir.Location.name(_place(node)):
                    self._node(node, values)

    def _node(self, node: Any, values: dict[str, Value]) -> None:
        try:
            if any(is_poisoned(values.get(used.name, POISON)) for used in node.all_input_nodes):
                values[node.name] = POISON
            else:
                values[node.name] = self._call(node, values)
        except PoisonedError:
            values[node.name] = POISON
        except NodeError as error:
            operands = [values.get(used.name) for used in node.all_input_nodes]
            shapes = ", ".join(describe(value) for value in operands if isinstance(value, Tensor))
            self.problems.append(Problem(error.reason, error.hint, _place(node), _described(node), shapes))
            values[node.name] = POISON

    def _arguments(self, arguments: Any, values: dict[str, Value]) -> list[Value]:
        def converted(value: Any) -> Value:
            if isinstance(value, self.torch.fx.Node):
                return values[value.name]
            if isinstance(value, list | tuple):
                return [converted(item) for item in value]
            return self.python(value, "")

        return [converted(value) for value in arguments]

    def _call(self, node: Any, values: dict[str, Value]) -> Value:
        target = node.target
        arguments = self._arguments(node.args, values)
        if isinstance(target, self.torch._ops.HigherOrderOperator):
            return self._higher_order(target.name(), arguments)
        if not isinstance(target, self.torch._ops.OpOverload):
            return self._python_call(target, arguments)
        schema = Schema.of(target._schema)
        named = dict(zip(node.kwargs, self._arguments(node.kwargs.values(), values), strict=True))
        for place in range(len(arguments), len(schema.names)):
            default = self.python(schema.defaults[place], "")
            arguments.append(named.get(schema.names[place], default))
        op = target._schema.name
        handler = find(op)
        if handler is None:
            raise NodeError("there is no importer for this operator", "rewrite the model without it, or report it")
        call = Call(self.b, op, arguments, schema.names, len(target._schema.returns))
        result = imported(call, handler)
        schema.check_read(call)
        return result

    def _python_call(self, target: Callable[..., Any], arguments: list[Value]) -> Value:
        """Arithmetic on sizes, and the parts of operators with several results."""
        name = target.__name__
        if name == "getitem":
            return arguments[0][arguments[1]]
        if name == "sym_sum":
            return functools.reduce(lambda a, b: self.b.arith("addi", a, b), arguments[0])
        op = _ON_SIZES.get(name, "")
        handler = find(op)
        if handler is None:
            raise NodeError(f"there is no importer for {name} of sizes", "rewrite the model without it, or report it")
        return handler(Call(self.b, op, arguments, ["self", "other"][: len(arguments)]))

    # -- branches and loops -------------------------------------------------------------------------------------------

    def _higher_order(self, name: str, arguments: list[Value]) -> Value:
        if name == "cond":
            condition, on_true, on_false, operands = (*arguments, [])[:4]
            flag = elementwise.cast(self.b, as_tensor(self.b, condition), "bool")
            branches = [functools.partial(self._tensors, body, operands) for body in (on_true, on_false)]
            return list(control_flow.if_(self.b, flag, branches))
        if name == "while_loop":
            return self._while(*arguments)
        if name == "wrap_with_set_grad_enabled":
            return self._inlined(arguments[1], arguments[2:])
        if name == "wrap_with_autocast" and arguments[2] is False:
            return self._inlined(arguments[4], arguments[5:])
        raise NodeError("there is no importer for this operator", "rewrite the model without it, or report it")

    def _inlined(self, body: Any, operands: Sequence[Value]) -> list[Value]:
        """The results of a graph of the program, built here."""
        placeholders = body.graph.find_nodes(op="placeholder")
        values = {node.name: value for node, value in zip(placeholders, operands, strict=True)}
        self._nodes(body, values)
        (output,) = body.graph.find_nodes(op="output")
        results = output.args[0]
        return self._arguments(results if isinstance(results, list | tuple) else [results], values)

    def _tensors(self, body: Any, operands: Sequence[Value]) -> list[Tensor]:
        results = self._inlined(body, operands)
        if any(is_poisoned(value) for value in results):
            raise PoisonedError
        return [as_tensor(self.b, value) for value in results]

    def _while(self, test: Any, body: Any, carried: list[Value], more: Sequence[Value] = ()) -> Value:
        def going(values: Sequence[Value]) -> Tensor:
            return elementwise.cast(self.b, self._tensors(test, [*values, *more])[0], "bool")

        def step(_: Tensor, __: Tensor, values: Sequence[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
            following = self._tensors(body, [*values, *more])
            return going(following), following, []

        first = [as_tensor(self.b, value) for value in carried]
        return control_flow.while_(self.b, None, going(first), first, step)


def _key(part: Any) -> str:
    """One part of the path to a result: a key, an attribute or a place."""
    return str(next(getattr(part, name) for name in ("key", "name", "idx") if hasattr(part, name)))


def _needed(graph: Any) -> set[Any]:
    """The nodes that results depend on: what only checks something is not among them."""
    needed: set[Any] = set()
    waiting = list(graph.find_nodes(op="output"))
    while waiting:
        for node in waiting.pop().all_input_nodes:
            if node not in needed:
                needed.add(node)
                waiting.append(node)
    return needed


def _modules(node: Any) -> Iterator[str]:
    for path, kind in (node.meta.get("nn_module_stack") or {}).values():
        if path != kind:  # else it is what a pass of PyTorch left behind
            yield path


def _place(node: Any) -> str:
    """A name for a node: its module in the model, and its operator."""
    scope = [path for path in _modules(node) if path][-1:]
    return "/".join([*scope, _operator(node.target).split("::")[-1].split(".")[0]])


def _operator(target: Any) -> str:
    schema = getattr(target, "_schema", None)
    return schema.name if schema is not None else str(getattr(target, "__name__", target))


def _described(node: Any) -> str:
    """The operator of a node, with that of the program which it is a part of."""
    own, whole = _operator(node.target), decomposed_from(node)
    return f"{own}, a part of {whole}" if whole and whole != own else own


_ON_SIZES = {
    **{name: f"aten::{name}" for name in ("add", "sub", "mul", "floordiv", "pow", "neg")},
    **{name: f"aten::{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge", "ceil", "floor", "trunc", "round")},
    "mod": "aten::remainder", "truediv": "aten::div", "and_": "aten::bitwise_and", "or_": "aten::bitwise_or",
    "sym_max": "prim::max", "sym_min": "prim::min", "sym_not": "aten::__not__", "sym_float": "aten::Float",
    "sym_int": "aten::trunc",
}  # fmt: skip
"""Operators of Python on sizes, by the names of `operator`, `math` and `torch`."""
