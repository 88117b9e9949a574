"""Compiled models on tensors of PyTorch, which are read without DLPack where that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import mlc
from mlc.runtime.errors import InputError

pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch


@pytest.fixture(scope="module")
def double() -> Any:
    """y = x + x for x[n, 4]."""
    return _sum(TensorProto.FLOAT)


def _sum(kind: int) -> Any:
    values = [helper.make_tensor_value_info(name, kind, ["n", 4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "sum", values[:1], values[1:])
    return mlc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))


def test_forms_of_tensors_and_arrays_in_turn(double: Any) -> None:
    """One context: what it knows of the argument before is never taken for the next one's."""
    x = torch.arange(24.0).view(6, 4)
    forms = [
        *(x, x[:2], x[:2].numpy(), x[2:4], x[2:4].numpy(), x[:2]),  # contiguous, of both kinds
        *(x.T.contiguous().T, x[::2], x[:, [3, 2, 1, 0]], torch.nn.Parameter(x[:3].clone()), torch.nn.Parameter(x.clone())[::3]),
        *(x[:0], torch.zeros(4).expand(5, 4), torch.view_as_complex(x.view(3, 4, 2)).conj().imag[:, :4]),
    ]
    with double.context() as context:
        for form in forms:
            (got,) = context.run([form]).values()
            np.testing.assert_array_equal(got, 2 * np.asarray(torch.as_tensor(form).detach().resolve_neg()))


def test_bfloat16() -> None:
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    (got,) = _sum(TensorProto.BFLOAT16)(x)
    np.testing.assert_array_equal(got.astype(np.float32), (x + x).float().numpy())


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (torch.zeros(3, 4, dtype=torch.float64), r"expected float32\[n,4\], got float64\[3,4\]"),
        (torch.zeros(4), r"expected float32\[n,4\], got float32\[4\]"),
        (torch.zeros(3, 5), r"'x'"),
        (torch.eye(4).to_sparse(), "does not export DLPack"),
    ],
)
def test_tensors_that_do_not_fit(tensor: torch.Tensor, said: str, double: Any) -> None:
    with pytest.raises(InputError, match=said):
        double(tensor)
    (got,) = double(torch.ones(1, 4))
    np.testing.assert_array_equal(got, np.full((1, 4), 2, np.float32))
