"""Data movement: shapes, slices, padding, gathers, scatters, sorting, against NumPy and ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_oracle import check, interp, onnx_run

from mlc.interp import DYNAMIC, InterpError, ResultType

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_mixed_sizes() -> None:
    check("mlc.reshape", [X, 6], {"static_sizes": [4, DYNAMIC]}, X.reshape(4, 6))
    check("mlc.broadcast", [X[:1], 5], {"static_sizes": [DYNAMIC, 3, 4]}, np.broadcast_to(X[:1], (5, 3, 4)))
    with pytest.raises(InterpError, match="does not have the elements of"):
        interp("mlc.reshape", [X], {"static_sizes": [5, 5]}, like=np.zeros((5, 5), np.float32))
    with pytest.raises(InterpError, match="takes operands"):
        interp("mlc.reshape", [X, 1, 2], {"static_sizes": [4, DYNAMIC]}, like=X.reshape(4, 6))


@pytest.mark.parametrize("axis", [0, 1])
def test_iota(axis: int) -> None:
    want = np.indices((2, 3))[axis].astype(np.int32)
    check("mlc.iota", [3], {"static_sizes": [2, DYNAMIC], "axis": axis}, want)


def test_transpose_concat_shape_of() -> None:
    check("mlc.transpose", [X], {"permutation": [2, 0, 1]}, X.transpose(2, 0, 1))
    check("mlc.concat", [X, X[:, :1], X[:, :0]], {"axis": 1}, np.concatenate([X, X[:, :1]], 1))
    check("mlc.shape_of", [X], {}, np.int64([2, 3, 4]))
    check("mlc.shape_of", [np.float32(1)], {}, np.zeros(0, np.int64))


@pytest.mark.parametrize(
    ("offset", "size", "stride", "numpy_slice"),
    [
        (0, 4, 1, slice(None)),
        (1, 2, 2, slice(1, None, 2)),
        (3, 4, -1, slice(None, None, -1)),
        (3, 2, -3, slice(3, None, -3)),
        (2, 2, -1, slice(2, 0, -1)),
        (4, 0, 1, slice(4, 4)),
    ],
)
def test_slice(offset: int, size: int, stride: int, numpy_slice: slice) -> None:
    attrs = {
        "static_offsets": [0, 0, DYNAMIC],
        "static_sizes": [2, 3, DYNAMIC],
        "static_strides": [1, 1, stride],
        "operandSegmentSizes": [1, 1, 1, 0],
    }
    check("mlc.slice", [X, offset, size], attrs, X[:, :, numpy_slice])


def test_slice_out_of_range() -> None:
    attrs = {"static_offsets": [3], "static_sizes": [3], "static_strides": [-2]}
    with pytest.raises(InterpError, match="elements 3 to -1 of dimension 0"):
        interp("mlc.slice", [X[0, 0]], attrs, like=np.zeros(3, np.float32))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [[(1, 2), (0, 0), (2, 1)], [(0, 1), (3, 3), (5, 0)]])
def test_pad(mode: str, pads: list[tuple[int, int]]) -> None:
    attrs = {"static_low": [p[0] for p in pads], "static_high": [p[1] for p in pads], "mode": mode}
    check("mlc.pad", [X], attrs, np.pad(X, pads, mode=mode))


def test_pad_value_and_crop() -> None:
    attrs = {
        "static_low": [DYNAMIC, 0],
        "static_high": [0, 1],
        "mode": "constant",
        "operandSegmentSizes": [1, 1, 1, 0],
    }
    check("mlc.pad", [X[0], np.float32(9), -1], attrs, np.pad(X[0, 1:], [(0, 0), (0, 1)], constant_values=9))
    grow = {"static_low": [2], "static_high": [1], "mode": "constant"}
    check("mlc.pad", [np.zeros(0, np.int8), np.int8(3)], grow, np.full(3, 3, np.int8))
    gone = {"static_low": [-3, 1], "static_high": [5, -2], "mode": "constant"}  # all of the first dimension is cropped
    check("mlc.pad", [np.zeros((2, 3), np.int8), np.int8(3)], gone, np.full((4, 2), 3, np.int8))
    only_low = {"static_low": [DYNAMIC], "static_high": [1], "mode": "constant"}
    check("mlc.pad", [np.int8([1]), 1], only_low, np.int8([0, 1, 0]))


def test_gather() -> None:
    at = np.int64([[0, -1], [2, 1]])
    check("mlc.gather", [X, at], {"axis": 1}, np.take(X, at, 1))
    check("mlc.gather", [X, np.int32(-2)], {"axis": 2}, X[:, :, -2])
    with pytest.raises(InterpError, match="index 3 is out of range for 3 elements"):
        interp("mlc.gather", [X, np.int64([3])], {"axis": 1}, like=X[:, :1])
    empty = np.zeros((0, 3), np.float32)
    check("mlc.gather", [empty, np.zeros(0, np.int64)], {"axis": 0}, empty)


def test_gather_elements_with_shorter_indices() -> None:
    at = np.int64([[[0, 3], [-1, 1]]])
    (want,) = onnx_run("GatherElements", [X, at], axis=2)
    check("mlc.gather_elements", [X, at], {"axis": 2}, want)


@pytest.mark.parametrize(
    ("at", "batch_dims"), [([[0, 1], [1, -1]], 0), ([[1]], 0), ([[2], [0]], 1), ([[[1], [0]], [[2], [2]]], 1)]
)
def test_gather_nd(at: list[list[int]], batch_dims: int) -> None:
    (want,) = onnx_run("GatherND", [X, np.int64(at)], batch_dims=batch_dims)
    check("mlc.gather_nd", [X, np.int64(at)], {"batch_dims": batch_dims}, want)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction: str) -> None:
    duplicates = reduction != "none"
    at = np.int64([[0, 1, 1 if duplicates else 2], [2, 0, -2]])
    updates = np.float32([[5, 6, 7], [-1, 0.5, 30]])
    (want,) = onnx_run("ScatterElements", [X[0, :2], at, updates], axis=1, reduction=reduction)
    check("mlc.scatter_elements", [X[0, :2], at, updates], {"axis": 1, "reduction": reduction}, want)
    at = np.int64([[0, 1], [1, 2], [0, 1 if duplicates else 0]])
    updates = np.arange(12, dtype=np.float32).reshape(3, 4) - 3
    (want,) = onnx_run("ScatterND", [X, at, updates], reduction=reduction)
    check("mlc.scatter_nd", [X, at, updates], {"reduction": reduction}, want)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("starts", [[0, 1], [2, -1], [5, -7]])
def test_insert(axis: int, starts: list[int]) -> None:
    """Element by element: what would lie outside is left out."""
    update = -1 - np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, : (2 if axis == 1 else 3), : (4 if axis == 1 else 2)]
    want = X.copy()
    for place in np.ndindex(*update.shape):
        target = list(place)
        target[axis] += starts[place[0]]
        if 0 <= target[axis] < X.shape[axis]:
            want[tuple(target)] = update[place]
    check("mlc.insert", [X, update, np.int64(starts)], {"axis": axis}, want)


def test_nonzero() -> None:
    x = np.float32([[0, 1], [np.nan, 0]])
    check("mlc.nonzero", [x], {}, np.int64([[0, 1], [1, 0]]))
    check("mlc.nonzero", [np.float32(2)], {}, np.zeros((0, 1), np.int64))


@pytest.mark.parametrize("largest", [True, False])
def test_topk(largest: bool) -> None:
    x = np.float32([[3, 1, 3, 2], [0, 0, 0, 0]])
    values, at = onnx_run("TopK", [x, np.int64([2])], outputs=2, axis=1, largest=int(largest), sorted=1)
    check("mlc.topk", [x, 2], {"axis": 1, "largest": largest, "sorted": True}, [values, at])
    with pytest.raises(InterpError, match="k = 5 of 4"):
        interp("mlc.topk", [x, 5], {"axis": 1}, results=[ResultType((2, 5), "f32"), ResultType((2, 5), "i64")])


@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_parts(largest: bool) -> None:
    x = np.float32([[3, 1, 3, 2, 0, 3, 1, 1], [0, 0, 0, 0, 0, 0, -1, np.nan]])
    values, at = onnx_run("TopK", [x, np.int64([2])], outputs=2, axis=1, largest=int(largest), sorted=1)
    attributes, types = {"axis": 1, "largest": largest}, [ResultType((2, 6), "f32"), ResultType((2, 6), "i64")]
    best, places = interp("mlc.topk", [x, 2], {**attributes, "part": 3}, results=types)
    assert places[0].tolist() == ([0, 2, 5, 3, 6, 7] if largest else [1, 0, 4, 3, 6, 7])
    check("mlc.topk", [best, 2, places], attributes, [values, at])


def test_sort_is_stable_and_puts_nan_highest() -> None:
    x = np.float32([2, np.nan, 1, 2])
    check("mlc.sort", [x], {"axis": 0}, [np.float32([1, 2, 2, np.nan]), np.int64([2, 0, 3, 1])])
    want = [np.float32([np.nan, 2, 2, 1]), np.int64([1, 0, 3, 2])]
    check("mlc.sort", [x], {"axis": 0, "descending": True}, want)
    x = np.uint8([200, 3]).view(np.int8)
    check("mlc.sort", [x], {"axis": 0, "unsigned": True}, [np.int8([3, -56]), np.int64([1, 0])])


@pytest.mark.parametrize("in_order", [True, False])
def test_unique(in_order: bool) -> None:
    x = np.float32([2, 1, 1, 3, 2])
    want = onnx_run("Unique", [x], outputs=4, sorted=int(in_order))
    check("mlc.unique", [x], {"sorted": in_order}, want)


def test_one_hot_and_trilu() -> None:
    at, values = np.int64([[0, 2], [-1, 7]]), np.float32([5, 9])
    (want,) = onnx_run("OneHot", [at, np.int64(3), values], axis=1)
    check("mlc.one_hot", [at, 3, values], {"axis": 1}, want)
    for upper in (True, False):
        for k in (-1, 0, 2, 9):
            (want,) = onnx_run("Trilu", [X, np.int64(k)], upper=int(upper))
            check("mlc.trilu", [X, k], {"upper": upper}, want)
