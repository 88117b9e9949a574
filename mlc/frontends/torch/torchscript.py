"""TorchScript: a traced or scripted module becomes one entry.

The graph is inlined by PyTorch; attributes of modules are read when the graph asks for them, so that weights keep their
names. A file has no shapes: the caller gives them. `prim::If` with a known condition takes its branch. Source:
PyTorch's `torch/csrc/jit/OVERVIEW.md`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir

from mlc.frontends.common import cleanup, entry
from mlc.frontends.common.builder import INLINE_LIMIT, Builder, Tensor, describe
from mlc.frontends.common.entry import Argument, DimRange
from mlc.frontends.report import ModelError, NodeError, Problem
from mlc.frontends.torch import aten
from mlc.frontends.torch.registry import Call, Value, find

_POISON = object()


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
    graph = script.inlined_graph
    aten.load()
    with context, ir.Location.name(title):
        module = ir.Module.create()
        importer = _Importer(torch, script, Builder(store), title)
        arguments = _arguments(graph, title, dict(input_shapes or {}), dict(dtypes or {}), dict(dims or {}))
        main = entry.Entry(module, "forward", arguments)
        with ir.InsertionPoint(main.block):
            results = importer.run(graph, main.inputs())
        if outputs is not None:
            results = _chosen(title, results, outputs)
        main.finish(results)
        cleanup.drop_unused(main.block)
        entry.describe_module(module, arguments, dict(dims or {}), digest)
        module.operation.verify()
    return module


def _torch(title: str) -> Any:
    try:
        # A folder of the name `torch` on the path would pass for the package, but has no such module.
        import torch
        import torch.jit
    except ImportError as error:
        hint = "pip install mlc[torch]"
        raise ModelError(title, [Problem("a TorchScript file needs PyTorch, which is not installed", hint)]) from error
    return torch


def _load(source: str | Path | Any) -> tuple[Any, str, str, Any]:
    """PyTorch, the title, the digest and the module of a model."""
    if not isinstance(source, str | Path):
        text, title = str(source.inlined_graph), type(source).__name__
        return _torch(title), title, hashlib.sha256(text.encode()).hexdigest(), source.eval()
    path = Path(source)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(path.name, [Problem(f"cannot be read: {error.strerror}")]) from error
    torch = _torch(path.name)
    try:
        script = torch.jit.load(str(path), map_location="cpu").eval()
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0].split(". ")[0]
        raise ModelError(
            path.name, [Problem(f"is no TorchScript file: {reason}", "save it with torch.jit.save")]
        ) from error
    return torch, path.name, hashlib.sha256(content).hexdigest(), script


def _input_names(graph: Any) -> list[str]:
    """Names of the inputs as the source code has them (TorchScript appends `.1`)."""
    return [value.debugName().split(".")[0] for value in list(graph.inputs())[1:]]


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
        arguments.append(Argument(name, dtypes.get(name, "float32"), entry.resolve(list(shapes[name]), dims)))
    known = ", ".join(names)
    problems += [Problem(f'there is no input "{n}"', f"the inputs are: {known}") for n in shapes if n not in names]
    if problems:
        raise ModelError(title, problems)
    return arguments


def _chosen(title: str, results: list[tuple[str, Tensor]], outputs: Sequence[str]) -> list[tuple[str, Tensor]]:
    found = dict(results)
    missing = [name for name in outputs if name not in found]
    if missing:
        hint = f"the outputs are: {', '.join(found)}"
        raise ModelError(title, [Problem(f'there is no output "{name}"', hint) for name in missing])
    return [(name, found[name]) for name in outputs]


class _Importer:
    """Walks a graph; values are kept by their names in it."""

    def __init__(self, torch: Any, script: Any, b: Builder, title: str) -> None:
        self.torch, self.script, self.b, self.title = torch, script, b, title
        self.values: dict[str, Value] = {}
        self.problems: list[Problem] = []
        self.names: dict[int, str] = {}

    def run(self, graph: Any, inputs: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
        first, *rest = graph.inputs()
        self.values[first.debugName()] = ("", self.script)
        for value, tensor in zip(rest, inputs.values(), strict=True):
            self.values[value.debugName()] = tensor
        self._nodes(graph.nodes())
        results: list[tuple[str, Tensor]] = []
        for value in graph.outputs():
            name = value.debugName().split(".")[0]
            self._flatten("output" if name.isdigit() else name, self.values.get(value.debugName(), _POISON), results)
        if self.problems:
            raise ModelError(self.title, self.problems)
        return results

    def _flatten(self, name: str, value: Value, results: list[tuple[str, Tensor]]) -> None:
        if isinstance(value, Tensor):
            results.append((name, value))
        elif isinstance(value, list):
            for number, item in enumerate(value):
                self._flatten(f"{name}_{number}", item, results)
        elif value is not _POISON:
            self.problems.append(Problem(f'output "{name}" is a {type(value).__name__}', "return tensors only"))

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
            self.values[output.debugName()] = _POISON

    def _node(self, node: Any) -> None:
        inputs = [self.values[value.debugName()] for value in node.inputs()]
        if any(_is_poisoned(value) for value in inputs):
            for output in node.outputs():
                self.values[output.debugName()] = _POISON
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
        handler = find(node.kind())
        if handler is None:
            raise NodeError("there is no importer for this operator", "rewrite the model without it, or report it")
        schema = node.schema()
        names = [a.name for a in self.torch._C.parse_schema(schema).arguments] if schema != "(no schema)" else []
        return handler(Call(self.b, node.kind(), inputs, names, len(list(node.outputs()))))

    # -- prim operators -----------------------------------------------------------------------------------------------

    def constant(self, node: Any, _: list[Value]) -> Value:
        output = node.output()
        if not node.hasAttribute("value"):
            return None
        value = output.toIValue()
        return self.python(value, f"constant_{output.debugName()}")

    def python(self, value: Any, name: str) -> Value:
        """A Python or torch value as an import-time value; tensors become constants or weights."""
        if isinstance(value, self.torch.Tensor):
            return self.weight(value, name)
        if isinstance(value, self.torch.dtype):
            return str(value).removeprefix("torch.")
        if isinstance(value, self.torch.device):
            return str(value)
        if isinstance(value, list | tuple):
            return [self.python(item, f"{name}_{i}") for i, item in enumerate(value)]
        return value

    def weight(self, tensor: Any, name: str) -> Tensor:
        tensor = tensor.detach().contiguous()
        dtype = str(tensor.dtype).removeprefix("torch.")
        array = _as_array(self.torch, tensor)
        if array.size <= INLINE_LIMIT:
            return self.b.constant(array, dtype)
        return self.b.weight(name, array, list(array.shape), dtype)

    def attribute(self, node: Any, inputs: list[Value]) -> Value:
        """`prim::GetAttr`: a submodule, or one of its tensors and numbers."""
        path, owner = inputs[0]
        name = node.s("name")
        value = getattr(owner, name)
        full = f"{path}.{name}" if path else name
        if isinstance(value, self.torch.jit.ScriptModule | self.torch.nn.Module):
            return (full, value)
        return self.python(value, full)

    def branch(self, node: Any, inputs: list[Value]) -> list[Value] | Value:
        """`prim::If` with a condition known at import."""
        condition = inputs[0]
        if isinstance(condition, Tensor) and condition.constant is not None:
            condition = bool(condition.constant.reshape(-1)[0])
        if not isinstance(condition, bool | int):
            raise NodeError("its condition is known at run time only", "trace the model instead of scripting it")
        block = list(node.blocks())[0 if condition else 1]
        self._nodes(block.nodes())
        results = [self.values.get(value.debugName(), _POISON) for value in block.outputs()]
        return results[0] if len(results) == 1 else results


def _is_poisoned(value: Value) -> bool:
    return value is _POISON or (isinstance(value, list) and any(_is_poisoned(v) for v in value))


def _place(node: Any) -> str:
    """A name for a node: its module in the model, and its operator."""
    scope = node.scopeName().rsplit("/", 1)[-1].replace("__module.", "")
    scope = scope.split("::")[-1]
    kind = node.kind().split("::")[-1]
    return f"{scope}/{kind}" if scope and scope != "__module" else kind


def _as_array(torch: Any, tensor: Any) -> np.ndarray:
    """The elements of a tensor; bfloat16 and float8 through their bits."""
    try:
        return tensor.numpy()
    except TypeError:
        import ml_dtypes

        name = str(tensor.dtype).removeprefix("torch.")
        raw = tensor.view(torch.uint8 if tensor.element_size() == 1 else torch.int16).numpy()
        return raw.view(getattr(ml_dtypes, name))


def _list(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    return list(inputs)


def _unpack(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    values = inputs[0]
    return values[0] if len(values) == 1 else values


def _number(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    """Numbers stay what they are: traced shape arithmetic is done on sizes."""
    return inputs[0]


def _nothing(importer: _Importer, node: Any, inputs: list[Value]) -> Value:
    raise NodeError("the model raises an exception here", "trace the model with inputs that do not reach it")


_SPECIAL = {
    "prim::Constant": _Importer.constant,
    "prim::GetAttr": _Importer.attribute,
    "prim::If": _Importer.branch,
    "prim::ListConstruct": _list,
    "prim::TupleConstruct": _list,
    "prim::ListUnpack": _unpack,
    "prim::TupleUnpack": _unpack,
    "prim::NumToTensor": _number,
    "prim::RaiseException": _nothing,
    "aten::Int": _number,
    "aten::ScalarImplicit": _number,
    "aten::IntImplicit": _number,
}
