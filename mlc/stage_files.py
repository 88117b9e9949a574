"""The two files in which a compilation stops and goes on: `x.mlir`, the module with its locations, and `x.weights`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlir import ir

from mlc.frontends.report import ModelError, Problem
from mlc.interp import ResultType
from mlc.interp.from_ir import result_type
from mlc.options import InternalError
from mlc.packaging import module_attribute
from mlc.passes.simplify.weight_recipes import read_recipes, stack_of
from mlc.weights import Store, WeightError
from mlc.weights.safetensors import FormatError, atomic_file

KEEP = "keep the .weights file beside the .mlir file that was written with it"


def module_text(module: ir.Module) -> str:
    """The module with its locations: what a later compilation goes on from."""
    return module.operation.get_asm(enable_debug_info=True) + "\n"


def text_attribute(module: ir.Module, name: str) -> str:
    """A string attribute of the module; empty when it has none of that name."""
    attributes = module.operation.attributes
    return ir.StringAttr(attributes[name]).value if name in attributes else ""


def write_stage(module: ir.Module, store: Store, output: Path) -> None:
    """Writes both files; when one cannot be written, neither appears."""
    with atomic_file(output) as file:
        file.write(module_text(module).encode())
        file.flush()
        store.save(output.with_suffix(".weights"))


def read_stage(path: Path) -> tuple[ir.Module, Store]:
    """The module of `path` and the store beside it. Raises ModelError for files that are damaged or do not belong
    together.
    """
    module = _parse(path)
    weights = path.with_suffix(".weights")
    try:
        store = Store.load(weights, check=True) if weights.exists() else Store()
    except (FormatError, WeightError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _fault(path, f"its weights '{weights}' cannot be used: {reason}") from error
    said = text_attribute(module, "mlc.store")
    if said and store.key and said != store.key:
        raise _fault(path, f"its weights '{weights}' belong to another model")
    _check_weights(path, module, store, weights)
    return module, store


def blame_stage(path: Path, phase: str, failure: InternalError) -> None:
    """After a failure: raises ModelError when the module of `path` is not what `phase` leaves behind (docs/ir.md),
    which makes it the fault of the file and not of the compiler.
    """
    from mlc.passes.verify import verify_phase

    try:
        verify_phase(_parse(path), phase)
    except ValueError as error:
        if failure.reproducer is not None:
            failure.reproducer.unlink(missing_ok=True)
        raise _fault(path, str(error), "it was damaged or edited: write it again with --emit") from error


def _fault(path: Path, reason: str, hint: str = KEEP) -> ModelError:
    return ModelError(str(path), [Problem(reason, hint)])


def _parse(path: Path) -> ir.Module:
    hint = "give a file that --emit has written"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise _fault(path, f"cannot be read: {error.strerror}", "") from error
    except UnicodeDecodeError as error:
        raise _fault(path, "is no IR: it is not a text file", hint) from error
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:
        found = [f"line {d.location.start_line}: {d.message}" for d in error.error_diagnostics]
        raise _fault(path, f"is no valid IR: {'; '.join(found) or error}", hint) from error


def _stored_type(weight: ir.Operation) -> ResultType:
    """The type of what `mlc.weight` names in the store: of a stack, where the result is one of it."""
    one = result_type(weight.results[0].type)
    stack = stack_of(weight)
    return one if stack is None else ResultType([stack[1], *one.shape], one.dtype)


def _check_weights(path: Path, module: ir.Module, store: Store, weights: Path) -> None:
    """Every weight that the module reads, itself or through a recipe, is there and has the type that it says."""
    recipes = read_recipes(module)
    wanted: dict[str, Any] = {name: None for recipe in recipes.values() for name in recipe.inputs()}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "mlc.weight":
            wanted[ir.StringAttr(op.attributes["name"]).value] = _stored_type(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for row in module_attribute(module, "mlc.weight_image", []):
        wanted.setdefault(row["name"], None)
    for name, kind in wanted.items():
        if name in recipes:
            continue
        if name not in store:
            reason = f"it reads the weight '{name}', which is not in '{weights}'"
            raise _fault(path, reason if weights.exists() else f"its weights '{weights}' are missing")
        info = store.info(name)
        if kind is not None and (tuple(kind.shape), kind.dtype) != (info.shape, info.dtype):
            shapes = f"{kind.dtype}{list(kind.shape)} there, {info.dtype}{list(info.shape)} in '{weights}'"
            raise _fault(path, f"the weight '{name}' is {shapes}")
