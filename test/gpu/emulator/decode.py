"""From instructions to functions: operands, and the table that `arithmetic`, `data`, `tensor_cores` and `copies` fill."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
from gpu.emulator.machine import LANES, STORED, WARP, Array, Program, Run, Step, Warp
from gpu.emulator.memory import SharedMemory
from gpu.emulator.parse import WIDTHS, Instruction, Module, number

Read = Callable[[Warp], Array]
Decode = Callable[["Decoder", Instruction], Run]

DTYPES: dict[str, np.dtype] = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64), "pred": np.dtype(np.bool_), "tf32": np.dtype(np.float32),
    "f16x2": np.dtype(np.uint32), "bf16x2": np.dtype(np.uint32), "u16x2": np.dtype(np.uint32),
    "s16x2": np.dtype(np.uint32),
}  # fmt: skip
for _bits in (8, 16, 32, 64):
    DTYPES |= {f"{k}{_bits}": np.dtype(f"{'i' if k == 's' else 'u'}{_bits // 8}") for k in "bus"}

TABLE: dict[str, Decode] = {}
"""What decodes instructions, by the first parts of their names."""

_DYNAMIC = 1024  # alignment of the dynamic shared memory


def decodes(*names: str) -> Callable[[Decode], Decode]:
    """Adds a function to the table."""

    def add(function: Decode) -> Decode:
        TABLE.update(dict.fromkeys(names, function))
        return function

    return add


def _special(name: str) -> Read | None:
    """A register that says where a thread is."""
    axis = name[-2:]
    if name in ("%laneid",):
        return lambda _: LANES.astype(np.uint32)
    if name.startswith("%") and axis in (".y", ".z"):
        return _filled(lambda w: int(name.startswith(("%n",))))
    found: dict[str, Callable[[Warp], Any]] = {
        "%ctaid.x": lambda w: w.block.number, "%nctaid.x": lambda w: w.block.launch.blocks,
        "%ntid.x": lambda w: w.block.launch.threads, "%warpid": lambda w: w.number,
        "%cluster_ctarank": lambda w: w.block.rank, "%cluster_nctarank": lambda w: len(w.block.cluster.blocks),
        "%clusterid.x": lambda w: w.block.number // len(w.block.cluster.blocks),
    }  # fmt: skip
    if name == "%tid.x":
        return lambda w: w.threads.astype(np.uint32)
    return _filled(found[name]) if name in found else None


def _filled(value: Callable[[Warp], Any]) -> Read:
    return lambda w: np.full(WARP, value(w), np.uint32)


class Decoder:
    """Decodes the entry of a module, whose launches have `dynamic` bytes of shared memory."""

    def __init__(self, module: Module, dynamic: int, variables: dict[str, int]) -> None:
        self.module = module
        self.numbers = {name: i for i, name in enumerate(module.registers)}
        self.widths = [max(1, WIDTHS[t]) if t != "pred" else 0 for t in module.registers.values()]
        self.places = dict(variables)
        end = 0
        for name, one in module.variables.items():
            if one.space == "shared" and one.size:
                start = -(-end // one.alignment) * one.alignment
                self.places[name], end = SharedMemory.ADDRESS + start, start + one.size
        aligned = -(-(SharedMemory.ADDRESS + end) // _DYNAMIC) * _DYNAMIC - SharedMemory.ADDRESS if dynamic else end
        for name, one in module.variables.items():
            if one.space == "shared" and not one.size:
                self.places[name] = SharedMemory.ADDRESS + aligned
        self.shared = aligned + dynamic

    # -- operands ------------------------------------------------------------------------------------------------------

    def read(self, text: str, kind: str) -> Read:
        """What gives an operand as NumPy's type for `kind`."""
        dtype = DTYPES[kind]
        if text in self.numbers:
            return self._register(self.numbers[text], dtype)
        special = _special(text)
        if special is not None:
            return special
        bits = number(text)
        if bits is None and text in self.places:
            bits = self.places[text]
        if bits is None:
            raise NotImplementedError(f"operand {text}")
        if dtype == np.bool_:
            constant = np.full(WARP, bool(bits))
        else:
            raw = np.dtype(f"u{dtype.itemsize}")
            constant = np.full(WARP, bits & ((1 << 8 * dtype.itemsize) - 1), raw).view(dtype)
        return lambda _: constant

    def _register(self, index: int, dtype: np.dtype) -> Read:
        stored = np.dtype(STORED[self.widths[index]])
        if stored == dtype:
            return lambda w: w.registers[index]
        if stored.itemsize == dtype.itemsize:
            return lambda w: w.registers[index].view(dtype)
        raw = np.dtype(f"u{dtype.itemsize}")
        return lambda w: w.registers[index].astype(raw).view(dtype)

    def write(self, text: str) -> Callable[[Warp, Array, Array], None]:
        """What sets a register: of the warp, to an array, for the threads of a mask."""
        if text == "_":
            return lambda w, value, mask: None
        index = self.numbers[text]
        stored = np.dtype(STORED[self.widths[index]])

        def put(warp: Warp, value: Array, mask: Array) -> None:
            if value.dtype != stored:
                if value.dtype.itemsize == stored.itemsize:
                    value = value.view(stored)
                elif value.dtype.kind == "i":
                    value = value.astype(f"i{stored.itemsize}").view(stored)
                else:
                    value = value.view(f"u{value.dtype.itemsize}").astype(stored)
            warp.put(index, value, mask)

        return put

    def vector(self, text: str) -> list[str]:
        """The operands between braces, or the one that there is."""
        return [v.strip() for v in text.strip("{}").split(",")] if text.startswith("{") else [text]

    def address(self, text: str) -> Read:
        """What gives the addresses of `[register+offset]`."""
        found = re.fullmatch(r"\[\s*([\w$%@.]+)\s*(?:\+\s*(-?\w+))?\s*\]", text)
        assert found is not None, text
        offset = np.int64(int(found[2] or "0", 0))
        if found[1] in self.places:
            fixed = np.full(WARP, self.places[found[1]] + offset, np.int64)
            return lambda _: fixed
        index = self.numbers[found[1]]
        return lambda w: w.registers[index].astype(np.int64) + offset

    # -- instructions --------------------------------------------------------------------------------------------------

    def step(self, source: Instruction) -> Step:
        """One instruction."""
        guard = self.numbers[source.guard] if source.guard else -1
        name = source.parts[0]
        if name == "bra":
            target = self.module.target(source.operands[0], source.scope)
            return Step(None, guard, source.negated, source, target)
        if name in ("ret", "exit"):
            return Step(None, guard, source.negated, source, ends=True)
        return Step(self._run(source), guard, source.negated, source)

    def _run(self, source: Instruction) -> Run:
        parts = source.parts
        for length in range(min(4, len(parts)), 0, -1):
            found = TABLE.get(".".join(parts[:length]))
            if found is not None:
                return found(self, source)
        raise NotImplementedError(f"line {source.line}: {source.name} {source.operands}")


def decode(module: Module, dynamic: int, variables: dict[str, int]) -> Program:
    """The program of a module; `variables` are the addresses of those with contents."""
    for name in ("arithmetic", "data", "tensor_cores", "copies"):  # they fill the table
        import_module(f"gpu.emulator.{name}")
    decoder = Decoder(module, dynamic, variables)
    steps = [decoder.step(one) for one in module.code]
    return Program(module, steps, decoder.widths, decoder.places, decoder.shared)
