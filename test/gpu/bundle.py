"""Compiles cases for a machine that has a GPU but not the compiler: cubins, and the launches of each model as data.

    python -m gpu.bundle FOLDER [NAME…]     (with test/ on the module path)

A bundle is a folder with the cubins of every case and `program.json`: for each case its buffers and its launches with
all sizes computed, which `gpu/run.py` follows with NumPy and the CUDA driver alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from gpu.run import ELEMENTS
from mlir import ir
from models.gpu_cases import Case, bench_cases, build, cases
from plan.arithmetic import computed, is_arithmetic
from plan.contents import CannotFollowError

from mlc.kernels.common.frame import storage_type
from mlc.options import make_options
from mlc.passes.schedule.assign_placement import is_host_kernel


class OnHostError(ValueError):
    """A case needs the host for more than plain launches: the tests of whole libraries run it."""


class _Sizes:
    """Values of index arithmetic; `known` holds what does not come from arithmetic."""

    def __init__(self) -> None:
        self.known: dict[ir.Value, int] = {}

    def value(self, value: ir.Value) -> int:
        if value in self.known:
            return self.known[value]
        op = value.owner.operation
        return int(computed(op, [self.value(v) for v in op.operands]))


def grid_items(kernel: ir.Operation, name: str, indices: Sequence[int]) -> int:
    """What the grid function of a tiled kernel module says for the sizes `indices`."""
    for view in kernel.regions[0].blocks[0].operations:
        function = view.operation
        if function.name == "func.func" and function.attributes["sym_name"].value == f"{name}_grid":
            sizes = _Sizes()
            block = function.regions[0].blocks[0]
            sizes.known = dict(zip(block.arguments, indices, strict=True))
            return sizes.value(block.operations[len(block.operations) - 1].operands[0])
    raise ValueError(f"kernel {name} has no grid function")


class Host:
    """Walks the host function of a case and writes down buffers and launches."""

    def __init__(self, case: Case, module: ir.Module, weights: Any, *, everything: bool = False) -> None:
        self.case = case
        self.everything = everything  # elements that NumPy alone does not have, too
        self.module = module
        self.weights = weights
        self.sizes = _Sizes()
        self.extracted = list(case.sizes(case.inputs()))
        self.buffers: list[dict[str, Any]] = []
        self.places: dict[ir.Value, int] = {}
        self.shapes: dict[ir.Value, list[int]] = {}
        self.launches: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.kernels = {
            o.operation.attributes["sym_name"].value: o.operation
            for o in module.body.operations
            if o.operation.name == "builtin.module"
        }

    def run(self) -> dict[str, Any]:
        function = next(o for o in self.module.body.operations if o.operation.name == "func.func")
        block = function.regions[0].blocks[0]
        for argument, (name, array) in zip(block.arguments, self.case.inputs().items(), strict=True):
            self._buffer(argument, list(array.shape), input=name)
        for view in block.operations:
            self._step(view.operation)
        last = block.operations[len(block.operations) - 1]
        return {
            "name": self.case.name,
            "buffers": self.buffers,
            "launches": self.launches,
            "outputs": [self.places[v] for v in last.operands],
        }

    def _buffer(self, value: ir.Value, shape: list[int], **source: str) -> None:
        element = str(storage_type(value.type.element_type))
        if element not in ELEMENTS and not self.everything:
            raise OnHostError(f"NumPy has no elements of type {element}")
        self.places[value], self.shapes[value] = len(self.buffers), shape
        self.buffers.append({"shape": shape, "element": element, **source})

    def _shape(self, type_: ir.RankedTensorType, dynamic: Sequence[ir.Value]) -> list[int]:
        rest = iter(dynamic)
        return [
            self.sizes.value(next(rest)) if type_.is_dynamic_dim(i) else type_.get_dim_size(i)
            for i in range(type_.rank)
        ]

    def _step(self, op: ir.Operation) -> None:
        if op.name == "tensor.empty":
            self._buffer(op.results[0], self._shape(op.results[0].type, op.operands))
        elif op.name == "tensor.dim":
            axis = self.sizes.value(op.operands[1])
            self.sizes.known[op.results[0]] = self.shapes[op.operands[0]][axis]
        elif op.name in ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast"):
            self._view(op)
        elif op.name == "tensor.extract":
            self.sizes.known[op.results[0]] = self._extract(op)
        elif op.name in ("mlc.weight", "mlc.constant"):
            self._constant(op)
        elif op.name == "mlc.launch":
            self._launch(op)
        elif op.name not in ("func.return", "mlc.check") and not is_arithmetic(op):
            raise OnHostError(f"the host runs {op.name}")

    def _extract(self, op: ir.Operation) -> int:
        """An element that the host reads: of an input, or the next of the case's data-dependent sizes."""
        buffer = self.buffers[self.places[op.operands[0]]]
        array = self.case.inputs().get(buffer.get("input"), self.arrays.get(buffer.get("constant")))
        if array is None:
            return self.extracted.pop(0)
        return int(array[tuple(self.sizes.value(v) for v in list(op.operands)[1:])])

    def _view(self, op: ir.Operation) -> None:
        source, result = op.operands[0], op.results[0]
        shape = self.shapes[source]
        if op.name == "tensor.expand_shape":
            shape = self._shape(result.type, list(op.operands)[1:])
        elif op.name == "tensor.collapse_shape":
            groups = [[a.value for a in group] for group in op.attributes["reassociation"]]
            shape = [int(np.prod([shape[i] for i in group], dtype=np.int64)) for group in groups]
        self.places[result], self.shapes[result] = self.places[source], shape

    def _constant(self, op: ir.Operation) -> None:
        if op.name == "mlc.weight":
            array = self.weights.get(op.attributes["name"].value)
        else:
            attribute = op.attributes["value"]
            array = np.array(attribute).astype(bool) if "xi1" in str(attribute.type) else np.array(attribute)
        shape = list(op.results[0].type.shape)
        name = f"{self.case.name}.{len(self.arrays)}"
        self.arrays[name] = np.broadcast_to(array.reshape(shape) if array.size > 1 else array, shape)
        self._buffer(op.results[0], shape, constant=name)

    def _launch(self, op: ir.Operation) -> None:
        name = ir.FlatSymbolRefAttr(op.attributes["kernel"]).value
        if is_host_kernel(self.kernels[name]):
            raise OnHostError(f"the host runs kernel {name}")
        tensors = [v for v in op.operands if isinstance(v.type, ir.RankedTensorType)]
        indices = [
            self.shapes[t][i] for t in tensors for i in range(t.type.rank) if self._kernel_dim_is_dynamic(t, i)
        ] + [self.sizes.value(v) for v in op.operands if isinstance(v.type, ir.IndexType)]
        results = len(op.results)
        places, copies = [self.places[t] for t in tensors], []
        if "mlc.inout" in op.attributes and "mlc.in_place" not in op.attributes:  # what it updates stays as it was
            [result] = op.results
            self._buffer(result, self.shapes[tensors[-1]])
            copies, places[-1] = [[places[-1], self.places[result]]], self.places[result]
        for result, destination in zip(op.results, tensors[len(tensors) - results :], strict=True):
            self.shapes[result] = self.shapes[destination]
        self.places.update(zip(op.results, places[len(places) - results :], strict=True))
        self.launches.append(
            {
                "kernel": name,
                "copies": copies,
                "buffers": places,
                "results": results,
                "indices": indices,
                "items": grid_items(self.kernels[name], name, indices),
            }
        )

    @staticmethod
    def _kernel_dim_is_dynamic(tensor: ir.Value, dim: int) -> bool:
        return tensor.type.is_dynamic_dim(dim)


def bundle_case(case: Case, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Compile a case into `folder`/NAME; gives its program and its constants."""
    from mlc.compilation import Compilation
    from mlc.compiler_setup import new_context
    from mlc.passes.simplify.weight_recipes import read_recipes
    from mlc.weights import Store

    folder.mkdir(parents=True, exist_ok=True)
    model, tiled = folder / "model.onnx", folder / "tiled.mlir"
    onnx.save(build(case), model)
    Compilation(make_options(target="cuda", emit="tile")).run(model, tiled)
    Compilation(make_options(target="cuda", emit="cubin", cache=False)).run(tiled, folder)
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(tiled.read_text())
        store = Store.load(tiled.with_suffix(".weights"))
        store.add_recipes(read_recipes(module))
        host = Host(case, module, store)
        program = host.run()
    program["kernels"] = {k["name"]: k for k in json.loads((folder / "launch.json").read_text())}
    for name, kernel in program["kernels"].items():
        if kernel["maps"]:
            raise OnHostError(f"kernel {name} has tensor maps")
    for name in ("model.onnx", "tiled.mlir", "tiled.weights", "launch.json"):
        (folder / name).unlink(missing_ok=True)
    return program, host.arrays


def bundle(chosen: Sequence[Case], folder: Path) -> list[str]:
    """Compile all cases into one bundle, but those that need more of the host than launches; gives the names of those
    that it has."""
    folder.mkdir(parents=True, exist_ok=True)
    programs, constants = [], {}
    for case in chosen:
        try:
            program, arrays = bundle_case(case, folder / case.name)
        except (OnHostError, CannotFollowError) as error:
            print(f"{case.name} is left out: {error}")
            continue
        programs.append(program)
        constants.update(arrays)
    np.savez(folder / "constants.npz", **constants)
    (folder / "program.json").write_text(json.dumps(programs, indent=1))
    return [program["name"] for program in programs]


def main() -> None:
    """Bundles the named cases, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="some of the cases [all]")
    options = parser.parse_args()
    every = [*cases(), *bench_cases()]
    bundle([c for c in every if not options.names or c.name in options.names], options.folder)


if __name__ == "__main__":
    main()
