"""The ONNX importer: `import_model` turns a model into an `mlc` module and fills a weight store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

import onnx
from mlir import ir

from mlc.frontends.common import cleanup, entry
from mlc.frontends.common.builder import Builder, Store, Tensor
from mlc.frontends.common.entry import Argument, DimRange
from mlc.frontends.common.maps import Map, with_maps
from mlc.frontends.onnx import functions, load
from mlc.frontends.onnx import operators as _operators  # noqa: F401  (registers the importers of all families)
from mlc.frontends.onnx.blame import blame
from mlc.frontends.onnx.graph import GraphImporter, PoisonedError, sorted_nodes, used_names
from mlc.frontends.onnx.load import Source
from mlc.frontends.onnx.values import declared_shape, input_arguments
from mlc.frontends.report import ModelError, NodeError, Problem

__all__ = ["DimRange", "ModelError", "import_model"]


def import_model(
    source: Source,
    context: ir.Context,
    *,
    store: Store,
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    dims: Mapping[str, DimRange] | None = None,
    outputs: Sequence[str] | None = None,
    later: Callable[[Callable[[], str]], None] | None = None,
) -> ir.Module:
    """Imports an ONNX model as a module with one entry, `forward`.

    `source` is a path, the bytes of a file, or a `ModelProto`. `input_shapes` replaces the shapes of inputs; a string
    is the name of a dynamic dimension. `dims` gives ranges to named dimensions; a range of one extent makes it static.
    `outputs` chooses which values the entry returns, in that order: any value of the main graph. Weights go to `store`.
    Hashing gigabytes takes as long as a small compilation: `later` is given a function that waits for the value of
    `mlc.source`, which is the caller's to set then.

    Raises `ModelError` with every problem found.
    """
    model = load.load(source)
    try:
        module = _import(model, context, store, input_shapes, dims, outputs)
    except ModelError:
        raise
    except Exception as error:
        problems = blame(model)
        if not problems:
            raise
        raise ModelError(model.title, problems) from error
    if later is not None:
        later(lambda: _source_hash(model.hashing, input_shapes, dims, outputs))
    else:
        source_hash = _source_hash(model.hashing, input_shapes, dims, outputs)
        module.operation.attributes["mlc.source"] = ir.StringAttr.get(source_hash, context)
    return module


def _import(
    model: load.Model,
    context: ir.Context,
    store: Store,
    input_shapes: Mapping[str, Sequence[int | str]] | None,
    dims: Mapping[str, DimRange] | None,
    outputs: Sequence[str] | None,
) -> ir.Module:
    nodes = _checked(model)
    with context, ir.Location.name(Path(model.title).name):
        module = ir.Module.create()
        importer = GraphImporter(model, Builder(store))
        arguments = _arguments(model, dict(input_shapes or {}), dict(dims or {}))
        main = entry.Entry(module, "forward", arguments)
        results = _body(importer, model, main, nodes, outputs)
        main.finish(results)
        cleanup.drop_unused(main.block)
        entry.describe_module(module, arguments, dict(dims or {}))
        _verify(module, model)
    return module


def _source_hash(hashing: Future[str], *options: object) -> str:
    """A hash of the model and of what the import was asked for: equal hashes mean equal weight stores."""
    if not any(options):
        return hashing.result()
    return hashlib.sha256(f"{hashing.result()} {options}".encode()).hexdigest()


def _checked(model: load.Model) -> list[onnx.NodeProto]:
    """The nodes of the main graph in order; raises `ModelError` for what makes an import pointless."""
    problems = [*load.newer_opset(model.proto), *load.external_problems(model)]
    nodes: list[onnx.NodeProto] = []
    try:
        nodes = sorted_nodes(model.proto.graph.node)
    except NodeError as error:
        problems.append(Problem(error.reason, error.hint))
    if not problems and list(model.proto.graph.node) == nodes and _all_known(model.proto):
        problems = load.check(model)
    if problems:
        raise ModelError(model.title, problems)
    return nodes


def _all_known(proto: onnx.ModelProto) -> bool:
    """Whether the checker has something to say beyond unknown operators, which the import names better."""
    local = {(function.domain, function.name) for function in proto.functions}
    return all(
        (node.domain, node.op_type) in local
        or functions.is_known(node.domain, node.op_type, load.opset(proto, node.domain))
        for node in proto.graph.node
    )


def _arguments(model: load.Model, shapes: dict[str, Sequence[int | str]], dims: dict[str, DimRange]) -> list[Argument]:
    graph = model.proto.graph
    weights = {tensor.name for tensor in graph.initializer}
    weights |= {sparse.values.name for sparse in graph.sparse_initializer}
    arguments: list[Argument] = []
    declared = [declared_shape(value.type.tensor_type) or [] for value in graph.input]
    problems = entry.unknown_dims([*shapes.values(), *declared], dims)
    for value in graph.input:
        if value.name in weights:
            continue
        try:
            arguments.extend(input_arguments(value, shapes.pop(value.name, None), dims))
        except NodeError as error:
            problems.append(Problem(f'input "{value.name}": {error.reason}', error.hint))
    names = ", ".join(value.name for value in graph.input if value.name not in weights)
    problems.extend(Problem(f'there is no input "{name}"', f"the inputs are: {names}") for name in shapes)
    if problems:
        raise ModelError(model.title, problems)
    return arguments


def _body(
    importer: GraphImporter,
    model: load.Model,
    main: entry.Entry,
    nodes: list[onnx.NodeProto],
    outputs: Sequence[str] | None,
) -> list[tuple[str, Tensor]]:
    graph = model.proto.graph
    wanted = [value.name for value in graph.output] if outputs is None else list(outputs)
    maps = [argument.map for argument in main.arguments if argument.map]
    importer.scope.names.update(with_maps(main.inputs(), maps))
    needed = _needed(nodes, wanted)
    used = {name for node in needed for name in used_names(node)} | set(wanted)
    with ir.InsertionPoint(main.block):
        importer.initializers(graph, used)
        importer.body(needed, wanted)
        results = []
        for name in wanted:
            try:
                value = importer.scope.lookup(name)
                assert value is not None
                if isinstance(value, Map):
                    importer.problems.append(Problem(f'the output "{name}" is an input, a map', "leave it out"))
                results.append((name, value))
            except PoisonedError:
                continue
            except KeyError:
                importer.problems.append(Problem(f'there is no value "{name}" to return', "check the output names"))
    if importer.problems:
        raise ModelError(model.title, importer.problems)
    return results


def _needed(nodes: list[onnx.NodeProto], wanted: Sequence[str]) -> list[onnx.NodeProto]:
    """The nodes that the wanted values depend on, in order."""
    live = set(wanted)
    kept = []
    for node in reversed(nodes):
        if live.intersection(node.output):
            live.update(used_names(node))
            kept.append(node)
    return kept[::-1]


def _verify(module: ir.Module, model: load.Model) -> None:
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        hint = "check its attributes and inputs; if they are what ONNX allows, this is a bug in mlc"
        problems = [
            Problem(f"node {str(found.location).removeprefix('loc(').removesuffix(')')}: {found.message}", hint)
            for found in error.error_diagnostics
        ]
        raise ModelError(model.title, problems) from error
