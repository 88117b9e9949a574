"""`verify=N`: a compiled library against the interpreter, which evaluates the imported module with NumPy.

Inputs are random: normal floats, integers 0 and 1. Every named dimension gets another extent in every run, as
far as its range allows. Results must agree to about a thousandth of each output's largest magnitude (three hundredths
when contractions read bfloat16, or codes of eight bits in place of floats where a node allows it: the interpreter's
read float32); integers and bools exactly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from mlir import ir

from mlc.interp import InterpError
from mlc.interp.dtypes import signed_view
from mlc.interp.module import run_function
from mlc.options import InternalError, UsageError
from mlc.passes.walk import operations
from mlc.runtime.dim_sums import extent_by
from mlc.runtime.dtypes import numpy_dtype
from mlc.runtime.errors import MlcError
from mlc.runtime.loader import DimInfo, Model, load
from mlc.runtime.maps import as_matrix
from mlc.runtime.values import ValueInfo
from mlc.weights import Store

RELATIVE, ABSOLUTE = {"fp32": 1e-3, "bf16": 3e-2, "codes": 3e-2}, 1e-6
EXTENTS = (3, 1, 8, 2, 17)


def verify_library(path: Path, imported: ir.Operation, store: Store, runs: int) -> None:
    """Runs the library `path` and the module `imported` on the same inputs, `runs` times.

    Raises InternalError when they disagree, UsageError when the model rejects random inputs.
    """
    model = load(path)
    functions = [c.operation for c in imported.regions[0].blocks[0].operations if c.operation.name == "func.func"]
    for function in functions:
        name = ir.StringAttr(function.attributes["sym_name"]).value
        precision = model.metadata.get("precision", "fp32")
        precision = "codes" if model.metadata.get("row_bits") or _may_round_rows(function) else precision
        entry = model.entry(name)
        for run in range(runs):
            inputs = random_inputs(model, entry.inputs, run)
            try:
                want = run_function(function, list(inputs.values()), store)
                got = entry.run(inputs)
            except (InterpError, MlcError) as error:
                raise UsageError(f"cannot verify '{name}': it does not take random inputs: {error}") from error
            for (output, value), reference in zip(got.items(), want, strict=True):
                problem = difference(as_matrix(value), reference, RELATIVE[precision])
                if problem:
                    shapes = ", ".join(f"{n}{list(v.shape)}" for n, v in inputs.items())
                    raise InternalError("verify", f"output '{output}' of '{name}' ({shapes}): {problem}", None)


def _may_round_rows(function: ir.Operation) -> bool:
    """May rows of floats become codes (`lhs_bits`)?"""
    return any("lhs_bits" in op.attributes for op in operations(function))


def random_inputs(model: Model, infos: list[ValueInfo], run: int) -> dict[str, np.ndarray]:
    """Inputs of run number `run`; the same for the same number. UsageError for an input that is no tensor."""
    rng = np.random.default_rng(run)
    inputs = {}
    for info in infos:
        if tuple(info.kind) != ("tensor",) or info.dims is None:
            raise UsageError(f"cannot verify: input '{info.name}' is no tensor of known rank")
        shape = [_extent(model.dims, dim, run) for dim in info.dims]
        dtype = numpy_dtype(info.dtype)
        if info.dtype.startswith(("float", "bfloat", "complex")):
            inputs[info.name] = rng.standard_normal(shape).astype(dtype)
        elif info.dtype == "string":
            raise UsageError(f"cannot verify: input '{info.name}' holds strings")
        else:
            inputs[info.name] = rng.integers(0, 2, shape).astype(dtype)
    return inputs


def _extent(dims: dict[str, DimInfo], dim: int | str | None, run: int) -> int:
    if isinstance(dim, int):
        return dim
    wanted = EXTENTS[run % len(EXTENTS)]

    def drawn(name: str) -> int:
        info = dims[name]
        lowest = -(-info.lowest // info.multiple) * info.multiple
        extent = max(lowest, wanted * info.multiple)
        return extent if info.highest < 0 else min(extent, info.highest // info.multiple * info.multiple)

    return wanted if dim is None else extent_by(dim, dims, drawn)


def difference(value: Any, reference: Any, relative: float = RELATIVE["fp32"]) -> str | None:
    """What is wrong with `value`, None when it agrees with `reference` to `relative` of its largest magnitude."""
    if not isinstance(reference, np.ndarray):
        agree = isinstance(value, (list, tuple)) and _all_agree(value, reference, relative)
        return None if agree else "the values differ"
    got, want = signed_view(np.asarray(value)), signed_view(reference)
    if got.shape != want.shape:
        return f"its shape is {list(got.shape)}, the interpreter's {list(want.shape)}"
    if want.dtype.kind in "biO":
        count = int((got != want).sum())
        return f"{count} of {want.size} elements differ" if count else None
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    exact, seen = want.astype(kind), got.astype(kind)
    finite = np.isfinite(exact)
    scale = float(np.abs(exact[finite]).max(initial=0.0))
    close = np.isclose(seen, exact, rtol=relative, atol=relative * scale + ABSOLUTE, equal_nan=True)
    if close.all():
        return None
    worst = float(np.nanmax(np.abs(np.where(close, 0, seen - exact)), initial=0.0))
    return f"{int((~close).sum())} of {want.size} elements differ, by up to {worst:.3g} (largest magnitude {scale:.3g})"


def _all_agree(values: Any, references: Any, relative: float) -> bool:
    items = list(references)
    if len(values) != len(items):
        return False
    return all(difference(v, r, relative) is None for v, r in zip(values, items, strict=True))
