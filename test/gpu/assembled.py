"""Kernels as they leave the compiler, their PTX and what ptxas says of them, from the compilation that a test wants
anyway."""

from __future__ import annotations

from pathlib import Path

import onnx

from mlc.codegen.ptx import CompiledKernel, launch_description
from mlc.compilation import Compilation
from mlc.options import make_options

# Architectures beside Hopper.
OTHERS = ["sm_80", "sm_86", "sm_89", "sm_100a"]
# Cases whose kernel has a thread for each item, whose arrays are in local memory on every chip.
SPILLED = {"scatter_nd"}


class Assembly(Compilation):
    """A compilation for GPUs that keeps its kernels."""

    kernels: list[CompiledKernel]

    def _gpu_kernels(self) -> list[CompiledKernel]:
        self.kernels = super()._gpu_kernels()
        return self.kernels

    @property
    def ptx(self) -> str:
        """The text of all kernels, in the order of their names."""
        return "".join(one.ptx for one in sorted(self.kernels, key=lambda one: one.kernel.name))

    @property
    def description(self) -> list[dict]:
        """What `launch.json` says of the kernels."""
        return launch_description(self.kernels)


def assemble(model: onnx.ModelProto, output: Path, *, cache: bool = False, **options: object) -> Assembly:
    """Compiles `model` for GPUs, down to machine code unless `options` say otherwise."""
    compilation = Assembly(make_options(target="cuda", cache=cache, **{"emit": "cubin", **options}))
    compilation.run(model, output)
    return compilation
