"""Elements at positions: of scalars, of distinct elements, sorted ones, and combined at the same place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc

pytest.importorskip("torch.nn", reason="PyTorch is an optional dependency: pip install torch==2.13.0")
import torch
from models.functions import results_of
from torch.export import Dim, export

aten = torch.ops.aten


def _reduced(reduce: str, include_self: bool) -> Callable[..., Any]:
    return lambda x, y, i, s: x.index_reduce(1, i, y, reduce, include_self=include_self)


# Of x of [n, 6] and y of [n, 3], small whole numbers as floats; positions i of [3] below 6; and a scalar s.
FUNCTIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "masked_select, a mask that is spread": lambda x, y, i, s: x.masked_select(x[0] > 0),
    "masked_select, elements that are spread": lambda x, y, i, s: x[0].masked_select(x > 0),
    "masked_select, both spread": lambda x, y, i, s: x[:, :1].masked_select(x[:1] > 0),
    "masked_select of a scalar": lambda x, y, i, s: s.masked_select(x > 0),
    "index_select of a scalar": lambda x, y, i, s: s.index_select(0, i[:1] * 0),
    "index_select at a scalar": lambda x, y, i, s: x.index_select(1, i[2]),
    "topk of a scalar": lambda x, y, i, s: s.topk(1, 0),
    "sort of a scalar": lambda x, y, i, s: s.sort(-1),
    "gather of a scalar": lambda x, y, i, s: s.gather(0, i[0] * 0),
    "gather of a scalar, several": lambda x, y, i, s: s.gather(-1, i * 0),
    "gather at a scalar": lambda x, y, i, s: x[0].gather(0, i[1]),
    "gather at nothing": lambda x, y, i, s: x.gather(1, torch.zeros(2, 0, dtype=torch.int64)),
    "gather at nothing, of another rank": lambda x, y, i, s: x.gather(0, torch.zeros(0, dtype=torch.int64)),
    "scatter into a scalar": lambda x, y, i, s: s.scatter(0, i[0] * 0, x[0, 0]),
    "scatter_add to a scalar": lambda x, y, i, s: s.scatter_add(0, i * 0, y[0]),
    "scatter_reduce of a scalar": lambda x, y, i, s: s.scatter_reduce(0, i * 0, y[0], "amax"),
    "index_add to a scalar": lambda x, y, i, s: s.index_add(0, i[:1] * 0, y[0, 0], alpha=2),
    "index_copy to a scalar": lambda x, y, i, s: s.index_copy(0, i[:1] * 0, y[0, :1]),
    "index_fill of a scalar": lambda x, y, i, s: s.index_fill(-1, i[0] * 0, 7.0),
    "put": lambda x, y, i, s: x.put(i[:2] - 6, y[0, :2]),
    "put, added": lambda x, y, i, s: x.put(torch.stack([i, i]), y[:2], accumulate=True),
    **{
        f"index_reduce, {reduce}{'' if own else ' alone'}": _reduced(reduce, own)
        for reduce in ("amax", "amin", "prod", "mean")
        for own in (True, False)
    },
    "index_reduce of whole numbers": lambda x, y, i, s: x.int().index_reduce(1, i, y.int(), "mean"),
    "index_reduce of a scalar": lambda x, y, i, s: s.index_reduce(0, i[:1] * 0, y[0, 0], "prod"),
    "segment_reduce": lambda x, y, i, s: [
        torch.segment_reduce(x.mT.contiguous(), reduce, lengths=torch.tensor([2, 0, 1, 3]))
        for reduce in ("sum", "mean", "max", "min", "prod")
    ],
    "segment_reduce between offsets": lambda x, y, i, s: [
        torch.segment_reduce(x[0], reduce, offsets=torch.tensor([0, 4, 4, 6]), initial=2)
        for reduce in ("sum", "mean", "max", "min", "prod")
    ],
    "unique": lambda x, y, i, s: torch.unique(x),
    "unique, all": lambda x, y, i, s: torch.unique(x.int(), return_inverse=True, return_counts=True),
    "unique of what is no number": lambda x, y, i, s: torch.unique(x / x, return_inverse=True, return_counts=True)[::2],
    "masked_scatter, spread": lambda x, y, i, s: x[0].masked_scatter(x > 0, y.repeat(1, 2)),
    "masked_scatter, a mask that is spread": lambda x, y, i, s: x.masked_scatter(x[0] > 0, y.repeat(1, 2)),
    "index_add of truth values": lambda x, y, i, s: (x > 1).index_add(1, i, y > 0),
    "scatter_add of truth values": lambda x, y, i, s: (x > 1).scatter_add(1, i.expand(3, 3), y[:3] > 0),
    "unique truth": lambda x, y, i, s: torch.unique(x > 0, return_counts=True),
    "unique of a scalar": lambda x, y, i, s: torch.unique(s, return_inverse=True),
    "unique of nothing": lambda x, y, i, s: torch.unique(x[:0], return_inverse=True, return_counts=True),
    "unique rows": lambda x, y, i, s: torch.unique(x[:, :2], return_inverse=True, return_counts=True, dim=0),
    "unique columns": lambda x, y, i, s: torch.unique(x[:2], return_inverse=True, dim=-1),
    "unique_consecutive": lambda x, y, i, s: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
    "unique_consecutive of nothing": lambda x, y, i, s: torch.unique_consecutive(x[:0], return_counts=True),
    "unique_consecutive of a scalar": lambda x, y, i, s: torch.unique_consecutive(s, return_inverse=True),
    "unique_consecutive columns": lambda x, y, i, s: torch.unique_consecutive(
        x[:2].sign(), return_inverse=True, return_counts=True, dim=1
    ),
    "nonzero_static": lambda x, y, i, s: torch.nonzero_static(x, size=40, fill_value=-7),
    "nonzero_static, fewer": lambda x, y, i, s: torch.nonzero_static(x, size=3),
    "nonzero_static of a scalar": lambda x, y, i, s: torch.nonzero_static(s, size=2),
    "searchsorted": lambda x, y, i, s: torch.searchsorted(x.sort(1).values, y),
    "searchsorted on the right": lambda x, y, i, s: torch.searchsorted(x.sort(1).values, y, side="right"),
    "searchsorted by order": lambda x, y, i, s: torch.searchsorted(x, y, sorter=x.argsort(1)),
    "searchsorted by order, a vector": lambda x, y, i, s: torch.searchsorted(x[0], s, sorter=x[0].argsort()),
    "searchsorted of what is no number": lambda x, y, i, s: torch.searchsorted(x[0].sort().values, y / 0 * 0),
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_values(tmp_path: Path, dynamic: bool) -> None:
    """The same values as in PyTorch, with a size that only the run knows, too."""
    torch.manual_seed(3)

    def drawn(rows: int) -> tuple[torch.Tensor, ...]:
        whole = [torch.randint(-2, 3, (rows, columns)).float() for columns in (6, 3)]
        return *whole, torch.tensor([4, 0, 4]), torch.tensor(1.5)

    count = {0: Dim("n", min=3)}
    shapes = ((count, count, None, None),) if dynamic else None
    module = results_of(FUNCTIONS.values())
    program = export(module, drawn(4), dynamic_shapes=shapes)
    inputs = drawn(5 if dynamic else 4)
    results = module(*(value.clone() for value in inputs))
    named = [(name, part) for name, result in zip(FUNCTIONS, results, strict=True) for part in _flat(result)]
    got = mlc.compile(program, output=tmp_path / "model.so")(*(value.numpy() for value in inputs))
    for (name, expected), value in zip(named, got, strict=True):
        assert value.dtype == expected.numpy().dtype and value.shape == tuple(expected.shape), name
        np.testing.assert_allclose(value, expected.numpy(), rtol=1e-6, err_msg=name)


def _flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]
