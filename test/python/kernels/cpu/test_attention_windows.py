"""Attention whose visible keys coordinates and integers of the run limit, against softmax(q k) v in float64: blocks of
keys out of the limits are not asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from narrow_attention import check as check_narrow
from onnx import TensorProto, helper, numpy_helper
from test_attention import draw, weights
from tiles.emulated import Tiles

import mlc

HEADS, DEPTH = 8, 32


def _model(
    rows: int | str, keys: int | str, window: tuple[int | None, int | None], past: tuple[int, ...]
) -> onnx.ModelProto:
    """Keys from the row's number plus `window[0]` on, up to that plus `window[1]` (None: all); an input of the shape
    `past` is added, if there is one."""
    value, node = helper.make_tensor_value_info, helper.make_node
    shapes = [("q", [1, HEADS, rows, DEPTH]), ("k", [1, 2, keys, DEPTH]), ("v", [1, 2, keys, DEPTH])]
    inputs = [value(name, TensorProto.FLOAT, shape) for name, shape in shapes]
    inputs += [value("past", TensorProto.INT64, past)] if past else []
    numbers = {"zero": np.array(0), "one": np.array(1), "two": np.array(2)}
    numbers |= {f"by{i}": np.array(n) for i, n in enumerate(window) if n is not None}
    nodes = [
        node("Shape", ["q"], ["qs"]), node("Shape", ["k"], ["ks"]),
        node("Gather", ["qs", "two"], ["n"], axis=0), node("Gather", ["ks", "two"], ["m"], axis=0),
        node("Range", ["zero", "n", "one"], ["line"]), node("Range", ["zero", "m", "one"], ["key"]),
        node("Unsqueeze", ["line", "one"], ["column"]),
        node("Add", ["column", "past"], ["row"]) if past else node("Identity", ["column"], ["row"]),
    ]  # fmt: skip
    parts = []
    for number, operator in enumerate(("GreaterOrEqual", "LessOrEqual")):
        if window[number] is not None:
            nodes.append(node("Add", ["row", f"by{number}"], [f"limit{number}"]))
            nodes.append(node(operator, ["key", f"limit{number}"], [f"part{number}"]))
            parts.append(f"part{number}")
    nodes.append(node("And", [parts[0], parts[-1]], ["shown"]))
    nodes.append(node("Attention", ["q", "k", "v", "shown"], ["y"]))
    made = [numpy_helper.from_array(array, name) for name, array in numbers.items()]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", TensorProto.FLOAT, shapes[0][1])], made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def _seen(rows: int, keys: int, window: tuple[int | None, int | None], past: int) -> np.ndarray:
    away = np.arange(keys) - np.arange(rows)[:, None] - past
    first, last = window
    return (away >= (-np.inf if first is None else first)) & (away <= (np.inf if last is None else last))


def _right(model: Any, rows: int, keys: int, window: tuple[int | None, int | None], past: int | None = None) -> None:
    q, k, v = draw(1, HEADS, rows, DEPTH), draw(1, 2, keys, DEPTH, seed=1), draw(1, 2, keys, DEPTH, seed=2)
    shown = _seen(rows, keys, window, past or 0)
    want = weights(q.astype(np.float64) / np.sqrt(DEPTH), k, shown) @ np.repeat(v.astype(np.float64), HEADS // 2, axis=1)
    bad = v.copy()
    bad[:, :, : max(int(np.argmax(shown.any(0))) - 200, 0)] = np.nan
    given = () if past is None else (np.array([past]),)
    [got] = model(q, k, bad if shown.any(1).all() else v, *given)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=4e-6, err_msg=f"{rows} {keys} {past}")


FORMS: dict[str, tuple[int, int, tuple[int | None, int | None]]] = {
    "behind": (300, 300, (-100, 0)),
    "around": (300, 310, (-40, 40)),
    "narrow": (257, 257, (-3, 0)),
    "one_row": (1, 700, (600, 650)),
    "ahead": (150, 400, (20, None)),
    "rows_without_keys": (300, 90, (-50, 0)),
}


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("form", FORMS)
def test_windows(form: str, cpu: str, tmp_path: Path) -> None:
    """The kernel computes the mask itself, which is no tensor then."""
    rows, keys, window = FORMS[form]
    model = _model(rows, keys, window, ())
    mlc.compile(model, output=tmp_path / "m.mlir", cpu=cpu, emit="kernels", load=False)
    kernels = re.findall(r"func.func @k.*", (tmp_path / "m.mlir").read_text())
    assert kernels and not any("xi1>" in kernel for kernel in kernels)
    _right(mlc.compile(model, output=tmp_path / "m.so", cpu=cpu), rows, keys, window)


@pytest.mark.parametrize("window", [(-30, 0), (-500, 0), (None, 0), (-9, 9), (-(1 << 40), 0)], ids=str)
def test_limits_of_the_run(window: tuple[int | None, int | None], tmp_path: Path) -> None:
    model = mlc.compile(_model("n", "m", window, (1,)), output=tmp_path / "m.so")
    for rows, keys, past in ((1, 1, 0), (70, 70, 0), (1, 800, 799), (64, 900, 836), (200, 1000, 300), (33, 40, -20)):
        _right(model, rows, keys, window, past)
    _right(model, 20, 300, window, 1 << 40)  # far behind all keys: no row sees one, or all rows see all
    _right(model, 20, 300, window, -(1 << 40))


@pytest.mark.parametrize("window", [(-30, 0), (None, 0)], ids=str)
def test_limits_of_heads(window: tuple[int | None, int | None], tmp_path: Path) -> None:
    """Each head of a group, which share keys in a work item, has its own."""
    model = mlc.compile(_model(70, 900, window, (1, HEADS, 1, 1)), output=tmp_path / "m.so")
    past = np.arange(HEADS).reshape(1, HEADS, 1, 1) * 40
    q, k, v = draw(1, HEADS, 70, DEPTH), draw(1, 2, 900, DEPTH, seed=1), draw(1, 2, 900, DEPTH, seed=2)
    shown = np.concatenate([_seen(70, 900, window, p)[None] for p in past.ravel()])[None]
    want = weights(q.astype(np.float64) / np.sqrt(DEPTH), k, shown) @ np.repeat(v.astype(np.float64), HEADS // 2, axis=1)
    np.testing.assert_allclose(model(q, k, v, past)[0], want, rtol=2e-5, atol=4e-6)


def test_windows_on_tiles(tiles: Tiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four blocks of 128 keys two of four tiles of 32 rows see one, the others two but for the first ones."""
    monkeypatch.setenv("MLC_NUM_THREADS", "1")
    model = mlc.compile(_model(512, 512, (-64, 0), ()), output=tmp_path / "m.so", precision="bf16", cpu=tiles.cpu,
                        opt_level=1)  # fmt: skip
    q, k, v = draw(1, HEADS, 512, DEPTH), draw(1, 2, 512, DEPTH, seed=1), draw(1, 2, 512, DEPTH, seed=2)
    [got] = model(q, k, v)
    check_narrow(got, q, k, v, mask=_seen(512, 512, (-64, 0), 0))
    assert tiles.count("tdpbf16ps") == HEADS * (4 * (2 + 2 + 1 + 1) - 2) * 2 * 4 * (2 + 2)
