"""Files and tensors of PyTorch, for both of its importers."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlc.frontends.common.builder import Tensor
from mlc.frontends.report import ModelError, Problem

SCRIPT, PROGRAM = "TorchScript", "torch.export"
"""The kinds of models that PyTorch writes."""
_REGISTERING = ("transformers", "diffusers")
"""Packages whose modules make their classes of results known to PyTorch: no others are imported for a file's sake."""
_UNKNOWN_CLASS = re.compile(r"Deserializing ([\w.]+)\.\w+ in pytree is not registered")
_UNKNOWN_OPERATOR = re.compile(r"Failed deserializing node Node\(target='torch\.ops\.(\w+)\.")
_OPERATORS = {"transformers": "transformers.integrations.moe", "torchvision": "torchvision"}
"""The modules that make operators of a namespace known to PyTorch."""


def pytorch(title: str) -> Any:
    """The package. Raises ModelError where it is not installed."""
    try:
        # A folder of the name `torch` on the path would pass for the package, but has no such module.
        import torch
        import torch.jit
    except ImportError as error:
        hint = "pip install mlc[torch]"
        raise ModelError(title, [Problem("a model of PyTorch needs PyTorch, which is not installed", hint)]) from error
    return torch


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """PyTorch without what it says of its own code when it copies a program; what it cannot do, it raises as well."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`isinstance\(treespec", FutureWarning)
            yield
    finally:
        logging.disable(before)


def first_line(error: Exception) -> str:
    """The first line of what PyTorch says, or the name of an error that says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def digest(path: Path) -> str:
    """The SHA-256 of a file. Raises ModelError where it cannot be read."""
    hashed = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                hashed.update(block)
    except OSError as error:
        raise ModelError(path.name, [Problem(f"cannot be read: {error.strerror}")]) from error
    return hashed.hexdigest()


def kind_of(path: Path) -> str:
    """`SCRIPT` or `PROGRAM`, by the names in an archive of PyTorch; what is no archive, the file's name says.

    Raises ModelError for an archive that holds no program.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.split("/", 1)[-1] for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError):
        return PROGRAM if path.suffix == ".pt2" else SCRIPT
    if "constants.pkl" in names:
        return SCRIPT
    if any("exported_program" in name or (name.startswith("models/") and name.endswith(".json")) for name in names):
        return PROGRAM
    if any(name.startswith("data/aotinductor/") for name in names):
        reason = "is a package of AOTInductor: machine code without the program"
        raise ModelError(path.name, [Problem(reason, "give the exported program: torch.export.save(program, FILE)")])
    if "data.pkl" in names:
        reason = "is a pickle of torch.save: weights or Python objects without the program"
        hint = "make the module in Python, load the weights, torch.export.export(module.eval(), example), and save that"
        raise ModelError(path.name, [Problem(reason, f"{hint} with torch.export.save")])
    return SCRIPT


def chosen(title: str, results: list[tuple[str, Tensor]], outputs: Sequence[str]) -> list[tuple[str, Tensor]]:
    """The results that are asked for, by name. Raises ModelError for a name that no result has."""
    found = dict(results)
    missing = [name for name in outputs if name not in found]
    if missing:
        hint = f"the outputs are: {', '.join(found)}"
        raise ModelError(title, [Problem(f'there is no output "{name}"', hint) for name in missing])
    return [(name, found[name]) for name in outputs]


def as_array(torch: Any, tensor: Any) -> np.ndarray:
    """The elements of a tensor; bfloat16 and float8 through their bits."""
    try:
        return tensor.numpy()
    except TypeError:
        import ml_dtypes

        name = str(tensor.dtype).removeprefix("torch.")
        raw = tensor.view(torch.uint8 if tensor.element_size() == 1 else torch.int16).numpy()
        return raw.view(getattr(ml_dtypes, name))


def read_program(torch: Any, path: Path) -> Any:
    """The `ExportedProgram` of a file. A known package is imported where it registers a class of the program's results,
    or an operator. Raises ModelError where PyTorch cannot read it."""
    tried: set[str] = set()
    while True:
        try:
            return _loaded(path)
        except Exception as error:
            what, module = _registering(error)
            if not module or module in tried:
                raise _unreadable(torch, path, error) from error
            tried.add(module)
            try:
                importlib.import_module(module)
            except Exception as missing:  # whatever a build for another torch raises
                package = module.split(".")[0]
                reason = f"{what} of {package}, which cannot be imported: {missing}"
                hint = f"pip install {package}, or export a module that does without"
                raise ModelError(path.name, [Problem(reason, hint)]) from missing


def _registering(error: Exception) -> tuple[str, str]:
    """What PyTorch did not know, and the module of a known package that registers it; two empty texts otherwise."""
    unknown = _UNKNOWN_CLASS.search(str(error))
    if unknown is not None and unknown[1].split(".")[0] in _REGISTERING:
        return "its results are objects", unknown[1]
    unknown = _UNKNOWN_OPERATOR.search(str(error))
    if unknown is not None and unknown[1] in _OPERATORS:
        return "it has operators", _OPERATORS[unknown[1]]
    return "", ""


def _loaded(path: Path) -> Any:
    """The program of a file. Raises what is wrong with it, which PyTorch writes to its log before it raises another
    error that says less."""
    told: list[BaseException] = []

    def keep(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1] is not None:
            told.append(record.exc_info[1])
        return not record.exc_info

    log = logging.getLogger("torch.export")
    log.addFilter(keep)
    try:
        return importlib.import_module("torch.export").load(str(path))
    except Exception as error:
        raise told[-1] if told else error from error
    finally:
        log.removeFilter(keep)


def _unreadable(torch: Any, path: Path, error: Exception) -> ModelError:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    reason = lines[0].rstrip(".:") if lines else type(error).__name__
    hint = f"save it with torch.export.save; this PyTorch is {torch.__version__}"
    if any(text in reason for text in ("_OpNamespace", "Unknown op", "pytree", "TreeSpec")):
        hint = "import the package that registers its operators and classes, and pass the program itself to mlc.compile"
    return ModelError(path.name, [Problem(f"is no program of torch.export that can be read: {reason}", hint)])
