"""Products with weights of few bits that have scales in blocks: against float64, with floats and with codes as the other
operand, for numbers of rows that take other ways through a kernel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from models.few_bits import Weight
from models.processors import skip_unless_it_runs
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc import _native
from mlc.options import UsageError
from mlc.targets.cpu import resolve

IN_BYTES = 4  # accuracy level that lets rows become codes


def _in_codes(x: np.ndarray, block: int) -> np.ndarray:
    """Rows as codes of eight bits stand for them, in float64; the factors are those of float32."""
    parts = x.reshape(x.shape[0], -1, block)
    largest = np.abs(parts).max(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(largest == 0, np.float32(0), np.float32(127) / largest)
    codes = np.rint(parts * factor).astype(np.float64)
    return (codes * (largest * np.float32(1 / 127)).astype(np.float64)).reshape(x.shape)


INSTRUCTIONS = {0: {"lookup", "fma"}, IN_BYTES: {"vpdpbusd", "vpmaddubsw"}}


def _check(tmp_path: Path, weight: Weight, rows: int | str, counts: Sequence[int], cpu: str, level: int) -> None:
    skip_unless_it_runs(cpu)
    proto, matrix = weight.model(rows, level)
    model = mlc.compile(proto, output=tmp_path / "model.so", cpu=cpu)
    kernels = [k for k in model.metadata["kernels"] if k["template"] == "scaled_blocks"]
    assert len(kernels) == 1
    for count in counts:
        x = np.random.default_rng(count).standard_normal((count, weight.depth)).astype(np.float32)
        x[:, : weight.block] = 0  # a block without a largest number
        [got] = model(x)
        want = (_in_codes(x, weight.block) if level == IN_BYTES else x.astype(np.float64)) @ matrix
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.abs(want).max(), err_msg=f"{count} rows")


CPUS = ["native", "x86-64-v4", "x86-64-v3"]
ROWS = [1, 2, 5, 13, 47, 200]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("level", [0, IN_BYTES])
@pytest.mark.parametrize(
    "weight",
    [
        Weight(4, 32, 512, 640),
        Weight(4, 32, 512, 600, has_zeros=True),
        Weight(4, 128, 768, 200, has_zeros=True),
        Weight(4, 16, 5120, 100),
        Weight(2, 32, 576, 128),
    ],
    ids=str,
)
def test_rows_that_only_a_run_counts(tmp_path: Path, weight: Weight, level: int, cpu: str) -> None:
    """Tiles of every height, weights that are taken apart on the stack in one piece and in several."""
    _check(tmp_path, weight, "rows", ROWS, cpu, level)


@pytest.mark.parametrize("cpu", [*CPUS, "x86-64"])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_bytes_by_floats(tmp_path: Path, has_zeros: bool, cpu: str) -> None:
    _check(tmp_path, Weight(8, 32, 512, 200, has_zeros), "rows", ROWS, cpu, 0)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("rows", [1, 7, 30, 100])
@pytest.mark.parametrize("level", [0, IN_BYTES])
def test_known_rows(tmp_path: Path, rows: int, level: int, cpu: str) -> None:
    _check(tmp_path, Weight(4, 64, 512, 336, has_zeros=True), rows, [rows], cpu, level)


def test_bytes(tmp_path: Path) -> None:
    """Codes of eight bits, which codes of rows need `vpdpbusd` for."""
    if not resolve("native", _native.host_info()).int8_dot:
        pytest.skip("this processor has no vpdpbusd")
    for has_zeros in (False, True):
        _check(tmp_path, Weight(8, 32, 512, 200, has_zeros), "rows", ROWS, "native", IN_BYTES)


@pytest.mark.parametrize("cpu", [*CPUS, "x86-64"])
@pytest.mark.parametrize("level", [0, IN_BYTES])
@pytest.mark.parametrize("columns", [16, 40])
def test_few_columns(tmp_path: Path, columns: int, level: int, cpu: str) -> None:
    """Tiles of one vector, of any number of rows. Vectors of 128 bits have no instruction for codes of rows."""
    level = 0 if cpu == "x86-64" else level
    _check(tmp_path, Weight(4, 32, 4096, columns, has_zeros=True), "rows", [1, 3, 5, 7, 12, 30], cpu, level)


@pytest.mark.parametrize("level", [0, IN_BYTES])
def test_blocks_that_do_not_divide_the_depth(tmp_path: Path, level: int) -> None:
    """The last block is shorter; rows stay floats then."""
    weight = Weight(4, 32, 712, 192, has_zeros=True)
    proto, matrix = weight.model("rows", level)
    model = mlc.compile(proto, output=tmp_path / "model.so")
    [kernel] = [k for k in model.metadata["kernels"] if k["template"] == "scaled_blocks"]
    for count in ROWS:
        x = np.random.default_rng(count).standard_normal((count, weight.depth)).astype(np.float32)
        want = x.astype(np.float64) @ matrix
        np.testing.assert_allclose(model(x)[0], want, rtol=0, atol=3e-6 * np.abs(want).max())


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    """An infinity or NaN in a row makes that row NaN, and no other."""
    weight = Weight(4, 32, 512, 192)
    proto, matrix = weight.model("rows", IN_BYTES)
    model = mlc.compile(proto, output=tmp_path / "model.so")
    x = np.random.default_rng(0).standard_normal((20, weight.depth)).astype(np.float32)
    x[3, 5], x[7, 100] = np.inf, np.nan
    [got] = model(x)
    assert np.isnan(got[[3, 7]]).all()
    others = [i for i in range(20) if i not in (3, 7)]
    want = (_in_codes(x[others], weight.block)) @ matrix
    np.testing.assert_allclose(got[others], want, rtol=0, atol=3e-6 * np.abs(want).max())


def test_work_is_that_of_the_product(tmp_path: Path) -> None:
    """Scales are not counted, which multiply sums of blocks; a weight is as many bytes as it has."""
    proto, _ = Weight(4, 32, 512, 640).model(20, 0)
    mlc.compile(proto, output=tmp_path / "model.so", report=str(tmp_path / "report.json"))
    kernels = json.loads((tmp_path / "report.json").read_text())["kernels"]
    [kernel] = [k for k in kernels if k["template"] == "scaled_blocks"]
    assert kernel["flops"] == 2 * 20 * 512 * 640 and kernel["byte_flops"] == 0
    assert kernel["bytes"] == 512 * 640 // 2 + 4 * (16 * 640 + 20 * 512 + 20 * 640)


def test_rows_are_rounded_on_request(tmp_path: Path) -> None:
    """`row_bits`, for a model that does not say it; the library tells, and what is verified allows for it."""
    weight = Weight(4, 32, 512, 192)
    proto, matrix = weight.model("rows", 0)
    model = mlc.compile(proto, output=tmp_path / "model.so", row_bits=8, verify=1)
    x = np.random.default_rng(0).standard_normal((20, weight.depth)).astype(np.float32)
    want = _in_codes(x, weight.block) @ matrix
    np.testing.assert_allclose(model(x)[0], want, rtol=0, atol=3e-6 * np.abs(want).max())
    assert model.metadata["row_bits"] == 8
    stage = mlc.compile(proto, output=tmp_path / "model.mlir", emit="linalg")
    with pytest.raises(UsageError, match="the IR was made for row_bits 0, not 8"):
        mlc.compile(stage, output=tmp_path / "again.so", row_bits=8)
    with pytest.raises(UsageError, match="row_bits is for target 'cpu'"):
        mlc.compile(proto, output=tmp_path / "gpu.so", target="cuda", row_bits=8)


@pytest.mark.parametrize("block", [8, 24, 48, 320])
def test_blocks_of_other_lengths(tmp_path: Path, block: int) -> None:
    """`DequantizeLinear` has blocks of any length; rows are rounded where vectors divide it, and it is no long one."""
    rng, depth = np.random.default_rng(block), 4 * block * (64 // block + 1)
    codes, scale = rng.integers(-8, 8, (depth, 512)), (rng.random((depth // block, 512)) + 0.1).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=block),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["r", e]) for n, e in (("x", depth), ("y", 512))]
    weights = [helper.make_tensor("w", TensorProto.INT4, codes.shape, codes.reshape(-1).tolist())]
    weights.append(numpy_helper.from_array(scale, "s"))
    graph = helper.make_graph(nodes, "product", values[:1], values[1:], weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model = mlc.compile(proto, output=tmp_path / "model.so", row_bits=8)
    matrix = codes * scale.astype(np.float64).repeat(block, 0)
    for rows in (1, 40):
        x = rng.standard_normal((rows, depth)).astype(np.float32)
        want = (_in_codes(x, block) if block == 48 else x.astype(np.float64)) @ matrix
        np.testing.assert_allclose(model(x)[0], want, rtol=0, atol=3e-6 * np.abs(want).max())


def test_one_block(tmp_path: Path) -> None:
    """A column has one scale, as where there are no blocks: rows are not rounded."""
    proto, matrix = Weight(4, 256, 256, 640).model("rows", IN_BYTES)
    model = mlc.compile(proto, output=tmp_path / "model.so")
    for rows in (1, 30):
        x = np.random.default_rng(rows).standard_normal((rows, 256)).astype(np.float32)
        want = x.astype(np.float64) @ matrix
        np.testing.assert_allclose(model(x)[0], want, rtol=0, atol=3e-6 * np.abs(want).max())
