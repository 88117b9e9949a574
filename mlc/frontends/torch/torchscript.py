"""TorchScript: a traced or scripted module becomes one entry.

The graph is inlined by PyTorch; attributes of modules are read when the graph asks for them, so that weights keep their
names. A file has no shapes: the caller gives them. `prim::If` with a known condition takes its branch. Source:
PyTorch's `torch/csrc/jit/OVERVIEW.md`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlir import ir

from mlc.frontends.common import control_flow, elementwise, entry, types
from mlc.frontends.common.builder import Builder, Tensor, describe
from mlc.frontends.common.entry import Argument, DimRange
from mlc.frontends.report import ModelError, NodeError, Problem
from mlc.frontends.torch import aten, files, views
from mlc.frontends.torch.aten.elementwise import dtype_of, whole
from mlc.frontends.torch.aten.scalar import known
from mlc.frontends.torch.complex_numbers import Complex, imported
from mlc.frontends.torch.memory import Memory
from mlc.frontends.torch.operator_programs import OperatorPrograms
from mlc.frontends.torch.registry import Call, Handler, Literal, Value, as_tensor, find
from mlc.frontends.torch.schema import Schema
from mlc.frontends.torch.walk import POISON, PoisonedError, Walk, is_poisoned, module_of

_UNROLLED = 1024
"""The largest number of iterations of a loop of a script."""
_CHANGE_SHAPE = ("aten::squeeze", "aten::unsqueeze", "aten::transpose", "aten::t", "aten::swapaxes")
"""What changes the extents of its operand when it works in place, not its elements."""


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
    """The module of a TorchScript file or of a `torch.jit.ScriptModule`.

    `input_shapes` must name the shape of every input, with strings for dynamic dimensions; `dtypes` are "float32"
    unless given. Raises ModelError with every problem of the model.
    """
    torch, title, digest, script = _load(source)
    graph, limits = script.inlined_graph, dict(dims or {})
    aten.load()
    arguments = _arguments(graph, title, dict(input_shapes or {}), dict(dtypes or {}), limits)

    def body(inputs: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
        return _Importer(torch, script, Builder(store), title).run(graph, inputs)

    return module_of(context, title, digest, arguments, limits, outputs, body)


def _load(source: str | Path | Any) -> tuple[Any, str, str, Any]:
    """PyTorch, the title, the digest and the module of a model."""
    if not isinstance(source, str | Path):
        text, title = str(source.inlined_graph), type(source).__name__
        return files.pytorch(title), title, hashlib.sha256(text.encode()).hexdigest(), source.eval()
    path = Path(source)
    digest, torch = files.digest(path), files.pytorch(path.name)
    try:
        script = _read(torch, path)
    except (RuntimeError, ValueError) as error:
        reason = files.first_line(error).split(". ")[0].rstrip(":")
        hint = "save it with torch.jit.save"
        if "torchvision::" in str(error):
            reason, hint = "its operators are torchvision's", "pip install torchvision, of the same build as torch"
        raise ModelError(path.name, [Problem(f"is no TorchScript file: {reason}", hint)]) from error
    return torch, path.name, digest, script


def _read(torch: Any, path: Path) -> Any:
    """The module of a file; operators of torchvision are known when that has been imported."""
    try:
        return torch.jit.load(str(path), map_location="cpu").eval()
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        try:
            importlib.import_module("torchvision")
        except Exception as missing:  # whatever a build for another torch raises
            raise error from missing
        return torch.jit.load(str(path), map_location="cpu").eval()


def _input_names(graph: Any) -> list[str]:
    """Names of the inputs as the source code has them (TorchScript appends `.1`); numbered where several have one, as
    those of `forward(self, *inputs)` may."""
    names: list[str] = []
    for value in list(graph.inputs())[1:]:
        base = value.debugName().split(".")[0]
        numbered = (f"{base}_{number}" for number in itertools.count(2))
        names.append(next(name for name in itertools.chain([base], numbered) if name not in names))
    return names


def _arguments(
    graph: Any,
    title: str,
    shapes: dict[str, Sequence[int | str]],
    dtypes: dict[str, str],
    dims: dict[str, DimRange],
) -> list[Argument]:
    names, arguments = _input_names(graph), []
    problems = entry.unknown_dims(shapes.values(), dims)
    for name in names:
        if name not in shapes:
            hint = f"give it with --input {name}=SHAPE:DTYPE, for example --input {name}=batchx3x224x224:float32"
            problems.append(Problem(f'the shape of input "{name}" is not known; TorchScript files have none', hint))
            continue
        dtype = dtypes.get(name, "float32")
        if not types.is_dtype(dtype):
            problems.append(Problem(f'input "{name}": there is no dtype "{dtype}"', "use float32, int64, bool, ..."))
            continue
        arguments.append(Argument(name, dtype, entry.resolve(list(shapes[name]), dims)))
    known = ", ".join(names)
    problems += [Problem(f'there is no input "{n}"', f"the inputs are: {known}") for n in shapes if n not in names]
    if problems:
        raise ModelError(title, problems)
    return arguments


class _Importer(Walk):
    """Walks a graph of TorchScript."""

    def __init__(self, torch: Any, script: Any, b: Builder, title: str) -> None:
        super().__init__(torch, b, title)
        self.script = script
        self.schemas: dict[str, Schema] = {}
        self.attributes: dict[str, Value] = {}
        self.memory: Memory | None = None
        self.programs = OperatorPrograms(torch, b, title)

    def run(self, graph: Any, inputs: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
        first, *rest = graph.inputs()
        if self._writes(graph):
            self.memory = Memory(self.b)
        self.values[first.debugName()] = ("", self.script)
        for value, tensor in zip(rest, inputs.values(), strict=True):
            self.values[value.debugName()] = tensor
        self._nodes(graph.nodes())
        results: list[tuple[str, Tensor]] = []
        for value in graph.outputs():
            name = value.debugName().split(".")[0]
            try:
                held = self._now(self.values.get(value.debugName(), POISON))
            except NodeError as error:
                self.problems.append(Problem(f'output "{name}": {error.reason}', error.hint))
                continue
            self.flatten("output" if name.isdigit() else name, held, results)
        if self.problems:
            raise ModelError(self.title, self.problems)
        return results

    def _schema(self, node: Any) -> Schema:
        text = node.schema()
        if text not in self.schemas:
            self.schemas[text] = Schema.parse(self.torch, text)
        return self.schemas[text]

    def _writes(self, block: Any) -> bool:
        """Whether anything in a block changes a value in place."""
        return any(
            self._schema(node).writes or any(self._writes(inner) for inner in node.blocks()) for node in block.nodes()
        )

    def _now(self, value: Value) -> Value:
        return value if self.memory is None else self.memory.now(value)

    def _nodes(self, nodes: Any) -> None:
        for node in nodes:
            with ir.Location.name(_place(node)):
                try:
                    self._node(node)
                except NodeError as error:
                    self._report(node, error)

    def _report(self, node: Any, error: NodeError) -> None:
        shapes = ", ".join(
            describe(v) for i in node.inputs() if isinstance(v := self.values.get(i.debugName()), Tensor)
        )
        self.problems.append(Problem(error.reason, error.hint, _place(node), node.kind(), shapes))
        for output in node.outputs():
            self.values[output.debugName()] = POISON

    def _node(self, node: Any) -> None:
        inputs = [self.values[value.debugName()] for value in node.inputs()]
        if any(is_poisoned(value) for value in inputs):
            for output in node.outputs():
                self.values[output.debugName()] = POISON
            return
        special = _SPECIAL.get(node.kind())
        if special is not None:
            results = special(self, node, inputs)
        else:
            results = self._call(node, inputs)
        outputs = list(node.outputs())
        if len(outputs) == 1:
            results = [results]
        for output, result in zip(outputs, results, strict=True):
            self.values[output.debugName()] = result

    def _call(self, node: Any, inputs: list[Value]) -> Value:
        schema, op = self._schema(node), node.kind()
        if schema.writes and find(op.removesuffix("_")) is not None:
            op = op.removesuffix("_")  # what is written is computed first
        own = find(op)
        handler = own or self.programs.importer(node.schema())
        if handler is None:
            raise NodeError("there is no importer for this operator", "rewrite the model without it, or report it")
        codes = [place for place in schema.dtypes if isinstance(inputs[place], int)]
        inputs = [dtype_of(value) if place in codes else value for place, value in enumerate(inputs)]
        call = Call(self.b, op, self._now(inputs), schema.names, len(list(node.outputs())))
        if schema.writes and isinstance(inputs[schema.writes[0]], list):
            return handler(Call(self.b, op, inputs, schema.names))  # the list itself
        result = imported(call, own) if own else handler(call)  # programs know complex numbers
        if self.memory is not None and isinstance(result, Complex):
            reason = "it makes complex numbers, in a model that changes tensors in place"
            raise NodeError(reason, "export the model with torch.export.export")
        schema.check_read(call)
        if self.memory is None:
            return result
        if schema.writes:
            return self._written(call, handler, inputs[schema.writes[0]], result, schema)
        return views.results(self.memory, call, handler, inputs[0] if inputs else None, result, schema.aliases)

    def _written(self, call: Call, handler: Handler, target: Value, result: Value, schema: Schema) -> Value:
        """The operand `target` of an in-place operator, after the change."""
        if self.memory is None or not isinstance(target, Tensor):
            return result  # arithmetic on numbers, which nothing else holds
        if call.op in _CHANGE_SHAPE:
            return self.memory.become(target, views.results(self.memory, call, handler, target, result, True))
        if len(schema.writes) > 1 or not isinstance(result, Tensor):
            raise NodeError("it changes several tensors in place", "use the operator that returns new tensors")
        return self.memory.write(target, result)

    # -- prim operators -----------------------------------------------------------------------------------------------

    def constant(self, node: Any, _: list[Value]) -> Value:
        output = node.output()
        if not node.hasAttribute("value"):
            return None
        value = output.toIValue()
        held = self.python(value, f"constant_{output.debugName()}")
        return Literal(held.value, held.unsigned, held.known) if isinstance(held, Tensor) and not held.rank else held

    def attribute(self, node: Any, inputs: list[Value]) -> Value:
        """`prim::GetAttr`: a submodule, or one of its tensors and numbers."""
        path, owner = inputs[0]
        name = node.s("name")
        value = getattr(owner, name)
        full = f"{path}.{name}" if path else name
        if isinstance(value, self.torch.jit.ScriptModule | self.torch.nn.Module):
            return (full, value)
        if self.memory is None:
            return self.python(value, full)
        if self.memory.level:
            return self.python(value, full)
        if full not in self.attributes:
            held = self.python(value, full)
            self.attributes[full] = self.memory.keep(held, full) if isinstance(held, Tensor) else held
        return self.attributes[full]

    def branch(self, node: Any, inputs: list[Value]) -> list[Value] | Value:
        """`prim::If`: the branch that a condition known at import chooses, else both."""
        condition = known(self._now(inputs[0]))
        blocks = list(node.blocks())
        if isinstance(condition, Tensor):
            results = self._both(elementwise.cast(self.b, condition, "bool"), blocks)
        elif isinstance(condition, bool | int):
            results = self._block(blocks[0 if condition else 1])
        else:
            raise NodeError("its condition is known at run time only", "trace the model instead of scripting it")
        return results[0] if len(results) == 1 else results

    def _block(self, block: Any) -> list[Value]:
        self._nodes(block.nodes())
        return [self.values.get(value.debugName(), POISON) for value in block.outputs()]

    def _both(self, condition: Tensor, blocks: list[Any]) -> list[Value]:
        """The results of the block that the run chooses, which must be tensors or numbers."""

        def taken(block: Any) -> list[Tensor]:
            results = self._block(block)
            if any(is_poisoned(value) for value in results):
                raise PoisonedError
            results = self._now(results)
            if any(isinstance(value, list | str) or value is None for value in results):
                raise NodeError("a branch gives something else than tensors", "return tensors from both branches")
            return [as_tensor(self.b, value) for value in results]

        if self.memory is not None:
            self.memory.level += 1
        try:
            return list(control_flow.if_(self.b, condition, [functools.partial(taken, block) for block in blocks]))
        except PoisonedError:
            return [POISON for _ in blocks[0].outputs()]
        finally:
            if self.memory is not None:
                self.memory.level -= 1

    def loop(self, node: Any, inputs: list[Value]) -> list[Value] | Value:
        """`prim::Loop`, iteration by iteration, where it is known how many there are."""
        (block,) = node.blocks()
        arguments = [value.debugName() for value in block.inputs()]
        limit, going, *carried = [known(self._now(value)) for value in inputs[:2]] + inputs[2:]
        iteration = 0
        while isinstance(limit, int) and going is True and iteration < limit:
            if iteration == _UNROLLED:
                raise NodeError(f"a loop of more than {_UNROLLED} iterations", "trace or export the model")
            self.values.update(zip(arguments, [iteration, *carried], strict=True))
            going, *carried = self._block(block)
            going, iteration = known(self._now(going)), iteration + 1
        if not isinstance(limit, int) or not isinstance(going, bool):
            if going is not POISON:
                raise NodeError("how often it is repeated is known at run time only", "trace or export the model")
            carried = [POISON for _ in carried]
        return carried[0] if len(carried) == 1 else carried


def _place(node: Any) -> str:
    """A name for a node: its module in the model, and its operator."""
    scope = node.scopeName().rsplit("/", 1)[-1].replace("__module.", "")
    scope = scope.split("::")[-1]
    kind = node.kind().split("::")[-1]
    return f"{scope}/{kind}" if scope and scope != "__module" else kind


def _list(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    return list(inputs)


def _dictionary(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    return dict(zip(inputs[::2], inputs[1::2], strict=True))


def _unpack(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    values = inputs[0]
    return values[0] if len(values) == 1 else values


def _number(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    """Numbers stay what they are: traced shape arithmetic is done on sizes."""
    return importer._now(inputs[0])


def _whole(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    """A number cut to an integer."""
    return whole(importer.b, importer._now(inputs[0]))


def _nothing(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    raise NodeError("the model raises an exception here", "trace the model with inputs that do not reach it")


def _uninitialized(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    """What a path that is not taken would have made."""
    return None


def _silent(importer: _Importer, node: Any, inputs: list[Value]) -> list[Value]:
    """What says something while the model runs, and has no result."""
    return []


_SPECIAL = {
    "prim::Constant": _Importer.constant,
    "prim::GetAttr": _Importer.attribute,
    "prim::If": _Importer.branch,
    "prim::Loop": _Importer.loop,
    "prim::ListConstruct": _list,
    "prim::TupleConstruct": _list,
    "prim::DictConstruct": _dictionary,
    "prim::ListUnpack": _unpack,
    "prim::TupleUnpack": _unpack,
    "prim::Uninitialized": _uninitialized,
    "aten::warn": _silent,
    "prim::NumToTensor": _number,
    "prim::RaiseException": _nothing,
    "aten::Int": _whole,
    "aten::ScalarImplicit": _number,
    "aten::IntImplicit": _number,
}
