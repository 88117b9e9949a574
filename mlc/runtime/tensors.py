"""Tensors of PyTorch as they are: a few attributes, where DLPack takes a capsule, and on a GPU an event.

PyTorch is not imported for it: where there is a tensor, it has been.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .dtypes import DTYPES

CPU, GPU = (1, 0), 2  # of DLPack: the CPU with its number, and the kind of GPUs
_DEFAULT_STREAM = 0

_known: set[type] = set()  # PyTorch's own classes, once one has been seen
_dtypes: dict[str, Any] = {}  # PyTorch's types by the ABI's names
_current_stream: Callable[[int], int] | None = None


def _learn(kind: type) -> bool:
    """Whether a class is one of PyTorch's own; what else there is to know of PyTorch is looked up then. Tensors for
    AMD's GPUs, which say that they are CUDA's, are left to DLPack."""
    global _current_stream
    if kind.__module__ not in ("torch", "torch.nn.parameter"):
        return False
    torch: Any = sys.modules["torch"]
    own = {torch.Tensor, torch.nn.Parameter}
    if kind not in own or torch.version.hip is not None:
        return False
    names = (name for name, (_, bits) in DTYPES.items() if bits >= 8 and "complex" not in name)
    _dtypes.update({name: getattr(torch, name) for name in names if hasattr(torch, name)})
    _current_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    _known.update(own)
    return True


def place_of(tensor: Any, dtype: str, stream: int | None) -> tuple[int, tuple[int, int]] | None:
    """The address of a contiguous tensor of PyTorch whose elements are `dtype`, and its DLPack device.

    None where DLPack is to say it: what is no such tensor, and tensors on a GPU for a run in no `stream` of the caller
    while PyTorch's is not the default one, which the runtime's waits for by itself.
    """
    kind = type(tensor)
    if kind not in _known and not _learn(kind):
        return None
    try:
        if tensor.dtype is not _dtypes.get(dtype) or not tensor.is_contiguous() or tensor.is_neg():
            return None
        if tensor.is_cpu:
            return tensor.data_ptr(), CPU
        if not tensor.is_cuda:
            return None
        number = tensor.get_device()
        if stream is None and (_current_stream is None or _current_stream(number) != _DEFAULT_STREAM):
            return None
        return tensor.data_ptr(), (GPU, number)
    except (RuntimeError, NotImplementedError):  # it has no memory of its own: sparse, or part of a transformation
        return None


def is_cuda_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch on a GPU of NVIDIA's."""
    kind = type(value)
    return (kind in _known or _learn(kind)) and bool(value.is_cuda)


def exportable(value: Any) -> Any:
    """A tensor of PyTorch that DLPack can say all of: without a pending negation, which its export forgets, and without
    gradients, which it refuses. Anything else as it is."""
    kind = type(value)
    if kind not in _known and not _learn(kind):
        return value
    return (value.detach() if value.requires_grad else value).resolve_neg()
