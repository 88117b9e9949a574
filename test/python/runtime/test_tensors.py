"""What is read of PyTorch's tensors, with a stand-in for PyTorch; real ones are in `frontends/torch/test_tensors.py`."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from mlc.runtime import tensors

SIDE_STREAM = 77


class Tensor:
    """What PyTorch's has."""

    def __init__(self, dtype: Any, **own: Any) -> None:
        self.dtype, self.contiguous, self.negated, self.number, self.memory = dtype, True, False, -1, 4096
        self.__dict__.update(own)

    def is_contiguous(self) -> bool:
        return self.contiguous

    def is_neg(self) -> bool:
        return self.negated

    @property
    def is_cpu(self) -> bool:
        return self.number == -1

    @property
    def is_cuda(self) -> bool:
        return self.number >= 0

    def get_device(self) -> int:
        return self.number

    def data_ptr(self) -> int:
        if not self.memory:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return self.memory


class Parameter(Tensor):
    """One of a module."""


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A PyTorch that nobody has seen a tensor of."""
    Tensor.__module__, Parameter.__module__ = "torch", "torch.nn.parameter"
    current = {"stream": 0}
    module = SimpleNamespace(
        Tensor=Tensor,
        nn=SimpleNamespace(Parameter=Parameter),
        version=SimpleNamespace(hip=None),
        float32=object(),
        int64=object(),
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda number: current["stream"]),
        current=current,
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(tensors, "_known", set())
    monkeypatch.setattr(tensors, "_dtypes", {})
    monkeypatch.setattr(tensors, "_current_stream", None)
    return module


def test_contiguous_tensors_of_the_right_type(torch: Any) -> None:
    assert tensors.place_of(Tensor(torch.float32), "float32", None) == (4096, (1, 0))
    assert tensors.place_of(Parameter(torch.int64, number=3), "int64", None) == (4096, (2, 3))
    assert tensors.is_cuda_tensor(Tensor(torch.float32, number=0)) and not tensors.is_cuda_tensor(Tensor(torch.int64))


@pytest.mark.parametrize(
    ("dtype", "own"),
    [
        ("int64", {}),
        ("complex64", {}),
        ("float32", {"contiguous": False}),
        ("float32", {"negated": True}),
        ("float32", {"memory": 0}),  # sparse, say
        ("float32", {"number": -2}),  # on another kind of device
    ],
)
def test_what_dlpack_is_to_say(dtype: str, own: dict[str, Any], torch: Any) -> None:
    assert tensors.place_of(Tensor(torch.float32, **own), dtype, None) is None


def test_a_stream_that_the_runtime_does_not_wait_for(torch: Any) -> None:
    """DLPack makes the default stream wait for PyTorch's; where the caller names one, what it holds is in order."""
    tensor = Tensor(torch.float32, number=0)
    torch.current["stream"] = SIDE_STREAM
    assert tensors.place_of(tensor, "float32", None) is None
    assert tensors.place_of(tensor, "float32", SIDE_STREAM) == (4096, (2, 0))
    assert tensors.place_of(Tensor(torch.float32), "float32", None) == (4096, (1, 0))


def test_builds_for_other_gpus_and_other_classes(torch: Any) -> None:
    torch.version.hip = "6.0"
    assert tensors.place_of(Tensor(torch.float32), "float32", None) is None
    assert not tensors.is_cuda_tensor(Tensor(torch.float32, number=0))
    assert tensors.place_of([1.0], "float32", None) is None
