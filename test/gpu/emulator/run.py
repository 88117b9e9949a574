"""Runs cases (`models/gpu_cases.py`) on the machine: the PTX that is shipped, launched as the host program says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from gpu.bundle import Host
from gpu.emulator.copies import Tensor
from gpu.emulator.decode import decode
from gpu.emulator.machine import Launch, Program
from gpu.emulator.memory import EmulationError, Memory
from gpu.emulator.parse import parse
from gpu.lockstep import dtype_of, wrong
from mlir import ir
from models.gpu_cases import Case, build

Array = np.ndarray
_BYTES = {"u8": 1, "f16": 2, "bf16": 2, "f32": 4, "tf32": 4}
_BETWEEN, _TABLES = 512, 1 << 18  # bytes round a buffer, and for constants of kernels
_COUNTERS = 4096  # bytes of the workspace that are 0


class Machine:
    """A GPU whose kernels are the PTX files of a folder; it has `room` bytes of memory for tensors and constants."""

    def __init__(self, folder: Path, room: int) -> None:
        self.folder = folder
        self.kernels = {k["name"]: k for k in json.loads((folder / "launch.json").read_text())}
        self.memory = Memory(room + sum(k["workspace"] for k in self.kernels.values()))
        self.programs: dict[str, Program] = {}
        most = max((k["workspace"] for k in self.kernels.values()), default=0)
        self.workspace = self.memory.workspace(_COUNTERS, most) if most else 0

    def _program(self, name: str) -> Program:
        if name not in self.programs:
            module = parse((self.folder / f"{name}.ptx").read_text())
            places = {
                n: self.memory.allocate(v.content, constant=v.space == "const", alignment=max(16, v.alignment))
                for n, v in module.variables.items()
                if v.space in ("global", "const")
            }
            self.programs[name] = decode(module, self.kernels[name]["shared"], places)
        return self.programs[name]

    def launch(self, name: str, words: Sequence[int], items: int, error: int) -> None:
        """Launches a kernel with the words of its arguments."""
        kernel, program = self.kernels[name], self._program(name)
        blocks = -(-items * kernel["group"] // kernel["threads"])
        if len(words) != kernel["tensors"] + kernel["indices"]:
            raise ValueError(f"{name} takes {kernel['tensors'] + kernel['indices']} words")
        values = [*words, error, items, *([self.workspace] if kernel["workspace"] else [])]
        names = list(program.module.parameters)
        given = {n: (v & (1 << 64) - 1).to_bytes(8, "little") for n, v in zip(names, values, strict=False)}
        maps = {n: tensor(m, words) for n, m in zip(names[len(values) :], kernel["maps"], strict=True)}
        Launch(program, self.memory, kernel["threads"], blocks, given, maps).run()
        if kernel["workspace"] and any(self.memory.contents(self.workspace, _COUNTERS)):
            raise EmulationError(f"{name} leaves counters that are not 0")


def tensor(described: Mapping[str, Any], words: Sequence[int]) -> Tensor:
    """A tensor map for the words of a launch (mlc/runtime/src/cuda_maps.cpp)."""

    def size(product: Sequence[int]) -> int:
        return int(product[0]) * int(np.prod([words[w] for w in product[1:]], dtype=np.int64))

    extents = tuple(size(e) for e in described["extents"])
    each = _BYTES[described["element"]]
    box = tuple(min(b, e) if i in described["fitted"] else b for i, (b, e) in enumerate(zip(described["box"], extents, strict=True)))
    strides = (each, *(size(s) for s in described["strides"]))
    windows = [tuple(described[name]) for name in ("low", "high", "step")]
    address = words[described["tensor"]]
    return Tensor(
        address, described["element"], each, extents, strides, box, described["swizzle"], described["pixels"], *windows
    )


def run_case(case: Case, folder: Path, gpu: str = "sm_90a", precision: str = "fp32") -> str:
    """What is wrong with a case's results ("": nothing). Raises OnHostError where it is more than launches, and
    EmulationError where a kernel does what it must not."""
    from mlc.compilation import Compilation
    from mlc.compiler_setup import new_context
    from mlc.options import make_options
    from mlc.passes.simplify.weight_recipes import read_recipes
    from mlc.weights import Store

    model, tiled = folder / "model.onnx", folder / "tiled.mlir"
    onnx.save(build(case), model)
    Compilation(make_options(target="cuda", gpu=gpu, precision=precision, emit="tile")).run(model, tiled)
    Compilation(make_options(target="cuda", gpu=gpu, precision=precision, emit="ptx")).run(tiled, folder)
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(tiled.read_text())
        store = Store.load(tiled.with_suffix(".weights"))
        store.add_recipes(read_recipes(module))
        host = Host(case, module, store, everything=True)
        return _follow(case, host, folder)


def _follow(case: Case, host: Host, folder: Path) -> str:
    program, inputs = host.run(), case.inputs()
    wanted = [8 * int(np.prod(b["shape"], dtype=np.int64)) + _BETWEEN for b in program["buffers"]]
    machine = Machine(folder, sum(wanted) + _TABLES)
    memory, places, sizes = machine.memory, [], []
    for described in program["buffers"]:
        name = described.get("input", described.get("constant"))
        array = inputs.get(name, host.arrays.get(name))
        dtype = dtype_of(ir.Type.parse(described["element"]))
        sizes.append(int(np.prod(described["shape"], dtype=np.int64)) * dtype.itemsize)
        given = None if array is None else np.ascontiguousarray(array).tobytes()
        if given is not None and len(given) != sizes[-1]:
            raise ValueError(f"{case.name}: {described} does not fit its array of {len(given)} bytes")
        places.append(memory.allocate(sizes[-1] if given is None else given, constant=given is not None))
    error = memory.allocate(bytes(16))
    for launch in program["launches"]:
        for source, target in launch["copies"]:
            memory.copy(places[target], places[source], sizes[source])
        words = [*(places[n] for n in launch["buffers"]), *launch["indices"]]
        machine.launch(launch["kernel"], words, launch["items"], error)
    found = np.frombuffer(memory.contents(error, 16), np.int64)
    if case.error[0] or found.any():
        return "" if found.tolist() == list(case.error) else f"the error words are {found}, not {case.error}"
    outputs = []
    for number in program["outputs"]:
        dtype = dtype_of(ir.Type.parse(program["buffers"][number]["element"]))
        outputs.append(np.frombuffer(memory.contents(places[number], sizes[number]), dtype))
    return wrong(case, inputs, outputs)
