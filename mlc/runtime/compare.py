"""Outputs against a reference: NumPy archives, or a framework that runs the source model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import read_arrays
from .errors import ArgumentError


@dataclass(frozen=True)
class Difference:
    """One output against its reference. `relative` is the largest error over the reference's largest magnitude."""

    name: str
    passed: bool
    absolute: float
    relative: float
    wrong: int
    count: int
    reason: str = ""


def compare(name: str, ours: Any, reference: Any, rtol: float, atol: float) -> Difference:
    """Element by element: |ours - reference| <= atol + rtol * |reference|; NaNs and infinities must agree.

    Integers, bools and strings must be equal. Sequences compare item by item, as one.
    """
    if isinstance(ours, list) or isinstance(reference, list):
        return _compare_lists(name, ours, reference, rtol, atol)
    if ours is None or reference is None:
        same = ours is None and reference is None
        return Difference(name, same, 0, 0, int(not same), 1, "" if same else "one is empty, the other not")
    if isinstance(ours, dict) and isinstance(reference, dict):
        if ours.keys() != reference.keys():
            return Difference(name, False, np.inf, np.inf, 1, 1, "maps of different keys")
        ours, reference = list(ours.values()), [reference[key] for key in ours]
    a, b = np.asarray(ours), np.asarray(reference)
    if a.shape != b.shape:
        return Difference(name, False, np.inf, np.inf, a.size, a.size, f"shape {a.shape}, not {b.shape}")
    if a.dtype.kind in "OUST" or b.dtype.kind in "OUST":
        wrong = int(np.count_nonzero(a.astype(str) != b.astype(str)))
        return Difference(name, not wrong, 0, 0, wrong, a.size)
    exact = a.dtype.kind in "iub" and b.dtype.kind in "iub"
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        error = np.where(same, 0, np.abs(x - y))
        error = np.where(np.isnan(error), np.inf, error)
        allowed = np.zeros(()) if exact else atol + rtol * np.abs(y)
        bad = ~same & ~((error <= allowed) & np.isfinite(y))
    if not a.size:
        return Difference(name, True, 0, 0, 0, 0)
    finite = np.abs(y[np.isfinite(y)])
    scale = float(finite.max()) if finite.size else 0.0
    largest = float(error.max())
    relative = largest / scale if scale else (0.0 if not largest else np.inf)
    hollow = "ok, but no element is finite" if not bad.any() and not finite.size else ""
    return Difference(name, not bad.any(), largest, relative, int(bad.sum()), a.size, hollow)


def _compare_lists(name: str, ours: Any, reference: Any, rtol: float, atol: float) -> Difference:
    if not isinstance(ours, list) or not isinstance(reference, list) or len(ours) != len(reference):
        return Difference(name, False, np.inf, np.inf, 1, 1, "sequences of different lengths")
    parts = [compare(name, a, b, rtol, atol) for a, b in zip(ours, reference, strict=True)]
    return Difference(
        name,
        all(part.passed for part in parts),
        max((part.absolute for part in parts), default=0.0),
        max((part.relative for part in parts), default=0.0),
        sum(part.wrong for part in parts),
        sum(part.count for part in parts),
        next((part.reason for part in parts if part.reason), ""),
    )


def reference_outputs(path: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The expected outputs by name: arrays of an .npz file, or what onnxruntime (else onnx itself) computes.

    Raises ArgumentError when the file is neither, or when neither package is installed.
    """
    if not path.exists():
        raise ArgumentError(f"there is no file '{path}'")
    if path.suffix == ".npz":
        content = read_arrays(path)
        return {"": content} if isinstance(content, np.ndarray) else dict(content)
    if path.suffix != ".onnx":
        raise ArgumentError(f"'{path}': a reference is an .npz or an .onnx file")
    feeds = {name: value for name, value in inputs.items() if value is not None}
    try:
        return _onnxruntime(path, feeds)
    except ImportError:
        pass
    try:
        from onnx.reference import ReferenceEvaluator
    except ImportError as error:
        text = f"to compare with '{path}', onnxruntime or onnx must be installed: pip install onnxruntime"
        raise ArgumentError(text) from error
    evaluator = ReferenceEvaluator(str(path))
    return dict(zip(evaluator.output_names, evaluator.run(None, feeds), strict=True))


def _onnxruntime(path: Path, feeds: Mapping[str, Any]) -> dict[str, Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        outputs = session.run(None, dict(feeds))
    except Exception as error:
        raise ArgumentError(f"onnxruntime cannot run '{path}': {error}") from error
    return dict(zip((o.name for o in session.get_outputs()), outputs, strict=True))
