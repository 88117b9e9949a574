"""PyTorch models: TorchScript, traced or scripted, and programs of `torch.export`, through tables of aten operators by
family.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlir import ir

from mlc.frontends.torch import export, files, torchscript


def import_model(source: Any, context: ir.Context, **asked: Any) -> ir.Module:
    """The module of a file or object of PyTorch; `asked` as in `torchscript.import_model` and `export.import_model`.

    What a file is, its content says. Raises ModelError with every problem of the model.
    """
    if isinstance(source, str | Path):
        program = files.kind_of(Path(source)) == files.PROGRAM
    else:
        program = export.is_program(source)
    return (export if program else torchscript).import_model(source, context, **asked)


__all__ = ["import_model"]
