"""The first step of a compilation: a model of any framework as a module, by the front end that knows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mlir import ir

from mlc.frontends.report import ModelError, Problem
from mlc.options import Options, UsageError
from mlc.passes.adaptor import node_name
from mlc.weights import Store


def import_source(
    source: Any, context: ir.Context, store: Store, options: Options
) -> tuple[ir.Module, Callable[[], str]]:
    """The module of `source`, whose weights go to `store`, and a function that waits for the value of its attribute
    `mlc.source`, which is to be set. Raises UsageError, or ModelError with every problem of the model.
    """
    from mlc.frontends.common.entry import DimRange

    asked: dict[str, Any] = {
        "store": store,
        "input_shapes": options.inputs,
        "dims": {name: DimRange(*limits) for name, limits in options.dims.items()},
        "outputs": options.outputs,
    }
    hashing: list[Callable[[], str]] = []
    if is_torch(source):
        from mlc.frontends import torch

        module = torch.import_model(source, context, dtypes=options.dtypes, **asked)
        known = ir.StringAttr(module.operation.attributes["mlc.source"]).value
        hashing.append(lambda: known)
    else:
        from mlc.frontends import onnx

        module = onnx.import_model(source, context, later=hashing.append, **asked)
    _check_dtypes(module, options.dtypes)
    return module, hashing[0]


def is_torch(source: Any) -> bool:
    """A file of PyTorch, a module of `torch.jit`, or a program of `torch.export`."""
    if isinstance(source, (str, Path)):
        return Path(source).suffix in (".pt", ".pth", ".pt2")
    return type(source).__module__.startswith(("torch.jit", "torch.export"))


def _check_dtypes(module: ir.Module, dtypes: Mapping[str, str]) -> None:
    """What the caller said about dtypes must be what the model says."""
    found = {}
    for function in module.body.operations:
        for attributes in ir.ArrayAttr(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []:
            texts = [named for named in attributes if isinstance(named.attr, ir.StringAttr)]
            described = {named.name: ir.StringAttr(named.attr).value for named in texts}
            found[described.get("mlc.name", "")] = described.get("mlc.dtype", "")
    for name, dtype in dtypes.items():
        if name not in found:
            raise UsageError(f"the model has no input '{name}'; its inputs are {', '.join(found)}")
        if found[name] != dtype:
            raise UsageError(f"input '{name}' is {found[name]} in the model, not {dtype}")


def refuse_impossible(module: ir.Module, title: str) -> None:
    """Raises ModelError with every node of the model `title` that would compute with strings or whose result no
    machine could hold."""
    problems: list[Problem] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        for reason, hint in (*_computed_strings(op), *_huge_tensors(op)):
            problems.append(Problem(reason, hint, node_name(op.location), op.name))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if problems:
        raise ModelError(title, problems)


def _computed_strings(op: ir.Operation) -> Iterator[tuple[str, str]]:
    """Why `op` cannot be where it computes with strings, and what to do."""
    if op.name in _NUMERIC and any("mlc.str" in str(v.type) for v in [*op.operands, *op.results]):
        hint = "compute it before or after the model (--outputs can cut a model short)"
        yield "strings are no numbers that it could compute with", hint


def _huge_tensors(op: ir.Operation) -> Iterator[tuple[str, str]]:
    """Why `op` cannot be where a result is too large for any machine, and what to do."""
    for value in op.results:
        if not isinstance(value.type, ir.RankedTensorType):
            continue
        shape = [extent for extent in value.type.shape if extent >= 0]
        if 0 not in shape and math.prod(shape) > _MOST_ELEMENTS:
            reason = f"its result has more than 2^{_MOST_ELEMENTS.bit_length() - 1} elements: {value.type}"
            yield reason, "check the shapes and counts that the model has as constants"


_MOST_ELEMENTS = 1 << 56  # of 16 bytes at most: offsets within a tensor are 64 bits, with a sign
_NUMERIC = {f"mlc.{name}" for name in ("unary", "binary", "compare", "cast", "bitcast", "reduce", "arg_reduce", "scan")}
_NUMERIC |= {f"mlc.{name}" for name in ("sort", "topk", "matmul", "conv", "pool", "pad", "nonzero")}
