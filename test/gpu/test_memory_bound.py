"""Kernels that memory bounds, without a GPU: what the assembler says of them, and how wide their accesses are."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from gpu.assembled import assemble
from onnx import helper, numpy_helper
from spread import spread
from toolchain import needs_ptxas

pytestmark = [needs_ptxas, pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")]

TYPES = {"float32": 1, "bfloat16": 16}
OTHERS = ["sm_80", "sm_86", "sm_89", "sm_100a"]


def _model(
    nodes: list[onnx.NodeProto], shape: list[int | str], result: list[int | str], dtype: str
) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    names = {n for node in nodes for n in node.input} & {"scale", "bias"}
    weights = [numpy_helper.from_array(rng.standard_normal(shape[-1]).astype("f4"), n) for n in sorted(names)]
    if dtype != "float32":
        weights = [
            helper.make_tensor(w.name, TYPES[dtype], w.dims, numpy_helper.to_array(w).tolist()) for w in weights
        ]
    values = [helper.make_tensor_value_info(n, TYPES[dtype], s) for n, s in (("x", shape), ("y", result))]
    graph = helper.make_graph(nodes, "rows", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _kernels(model: onnx.ModelProto, folder: Path, gpu: str | None = None) -> tuple[list[dict], str]:
    """What ptxas says of the kernels of a model, and their PTX."""
    assembly = assemble(model, folder / "cubin", gpu=gpu)
    return assembly.description, assembly.ptx


def _assert_light(kernels: list[dict]) -> None:
    for kernel in kernels:
        resources = kernel["resources"]
        assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)
        assert kernel["warnings"] == [] and kernel["threads"] % kernel["group"] == 0


SHAPES = [(6000, 64), (128, 768), (6304, 768), (70000, 197), (30000, 1000), (2048, 32768), (512, 50257), ("n", "m")]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_stay_in_registers(shape: tuple[int | str, int | str], dtype: str, tmp_path: Path) -> None:
    """No spills; a row that fits is read once, by the widest accesses that its length allows."""
    softmax = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    kernels, ptx = _kernels(_model([softmax], list(shape), list(shape), dtype), tmp_path)
    _assert_light(kernels)
    lanes = 16 // (4 if dtype == "float32" else 2)
    columns = shape[1]
    if "cp.async" in ptx:
        (kernel,) = kernels
        assert kernel["shared"] >= columns * 16 // lanes // 2 and "ld.global.nc.v4" not in ptx, "a row is read once"
    elif isinstance(columns, int) and columns % lanes == 0:
        (kernel,) = kernels
        accesses = ptx.count("ld.global.v4")
        assert accesses == -(-columns // (lanes * kernel["group"])), "a row is read once, 16 bytes at a time"
        assert ptx.count("st.global.v4") == accesses
    elif isinstance(columns, int) and lanes == 8:
        (kernel,) = kernels
        assert "ld.global.v4" in ptx and "st.global.v4" in ptx, "odd rows of narrow elements too"


def test_blocks_of_a_cluster_share_long_rows(tmp_path: Path) -> None:
    """Eight of them where there are few rows: each element is read once."""
    softmax = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    kernels, ptx = _kernels(_model([softmax], [16, 32768], [16, 32768], "float32"), tmp_path)
    _assert_light(kernels)
    assert ".reqnctapercluster 8" in ptx and ptx.count("ld.global.v4") == 32768 // 8 // 4 // kernels[0]["threads"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 50272), (700, 1000), (16384, 4096), (3, 1 << 20)], ids=str)
def test_positions_are_found_by_all_threads(shape: tuple[int, int], dtype: str, tmp_path: Path) -> None:
    """Accesses are as wide as what is read allows, not as what is written."""
    model = _model([helper.make_node("ArgMax", ["x"], ["y"], axis=-1)], list(shape), [shape[0], 1], dtype)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    kernels, ptx = _kernels(model, tmp_path)
    _assert_light(kernels)
    assert "ld.global.v4.b32" in ptx and len(kernels) == (2 if shape[1] > 100_000 else 1)
    assert (".reqnctapercluster 8" in ptx) == (shape[0] == 1)


@pytest.mark.parametrize("columns", [32768, 50257, 400_000])
@pytest.mark.parametrize("operator", ["Softmax", "LayerNormalization"])
def test_many_long_rows_are_in_shared_memory(operator: str, columns: int, tmp_path: Path) -> None:
    """Copied once, 16 bytes at a time; two blocks at least are on a multiprocessor."""
    inputs = ["x"] if operator == "Softmax" else ["x", "scale", "bias"]
    model = _model([helper.make_node(operator, inputs, ["y"], axis=-1)], [500, columns], [500, columns], "bfloat16")
    kernels, ptx = _kernels(model, tmp_path)
    _assert_light(kernels)
    assert "cp.async.cg.shared.global" in ptx and 2 * (kernels[-1]["shared"] + 2048) <= 228 * 1024


FEW_RESULTS = [
    ("ArgMax", (100_000, 4), 0), ("ArgMin", (100_000, 64), 0), ("ReduceMean", (1_000_000, 3), 0),
    ("ReduceSumSquare", (8, 50_000, 4), 1), ("ReduceLogSumExp", (100_003, 4), 0), ("ArgMax", (1, 1_000_003), 1),
]  # fmt: skip


@pytest.mark.parametrize(("gpu", "case"), spread(FEW_RESULTS, "sm_90a", OTHERS, 2), ids=str)
def test_few_results_have_many_blocks(gpu: str, case: tuple[str, tuple[int, ...], int], tmp_path: Path) -> None:
    """No spills, and nothing but the parts of a result in memory between kernels."""
    operator, shape, axis = case
    result = [extent for i, extent in enumerate(shape) if i != axis]
    attributes = {"axis": axis} if operator.startswith("Arg") else {"axes": [axis]}
    node = helper.make_node(operator, ["x"], ["y"], keepdims=0, **attributes)
    model = _model([node], list(shape), result, "float32")
    model.opset_import[0].version = 13 if operator.startswith("Arg") else 12
    model.graph.output[0].type.tensor_type.elem_type = 7 if operator.startswith("Arg") else 1
    kernels, _ = _kernels(model, tmp_path, gpu)
    _assert_light(kernels)
    assert max(kernel["threads"] for kernel in kernels) <= 1024 and len(kernels) <= 7


@pytest.mark.parametrize("shape", [(512, 50257), (512, 60001)], ids=str)
def test_long_rows_that_are_read_once_have_many_loads_under_way(shape: tuple[int, int], tmp_path: Path) -> None:
    """One test for the end at most, and as many blocks of a multiprocessor as two."""
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)
    model = _model([node], list(shape), [shape[0]], "float32")
    model.graph.output[0].type.tensor_type.elem_type = 7
    (kernel,), ptx = _kernels(model, tmp_path)
    _assert_light([kernel])
    assert ptx.count("ld.global") == -(-shape[1] // 512) and kernel["resources"]["registers"] <= 64


@pytest.mark.parametrize("dtype", TYPES)
def test_vectors_go_on_in_the_next_row(dtype: str, tmp_path: Path) -> None:
    """A sum with a row of 1001: wide accesses of what has many rows."""
    add = helper.make_node("Add", ["x", "bias"], ["y"])
    kernels, ptx = _kernels(_model([add], [5000, 1001], [5000, 1001], dtype), tmp_path)
    _assert_light(kernels)
    assert ptx.count("ld.global.v4") == ptx.count("st.global.v4") == 1


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(128, 768), (6304, 768), (16384, 4096), (77, 1001)], ids=str)
def test_norms(shape: tuple[int, int], dtype: str, tmp_path: Path) -> None:
    norm = helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=-1)
    _assert_light(_kernels(_model([norm], list(shape), list(shape), dtype), tmp_path)[0])


def test_launches_that_begin_early_read_weights_alone_before_others_are_done(tmp_path: Path) -> None:
    """Of what others may still be writing there is no `ld.global.nc`, which ptxas would move in front of the waiting;
    weights come to the cache before that."""
    norm = helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=-1)
    _, ptx = _kernels(_model([norm], [128, 768], [128, 768], "float32"), tmp_path)
    ahead, behind = ptx.split("griddepcontrol.wait;")
    assert ahead.count("prefetch.L2") == 2 and "ld.global" not in ahead and "griddepcontrol.launch_dependents" in ahead
    assert behind.count("ld.global.nc") == 2 * behind.count("ld.global.v4") > 0


def test_the_exponential_is_an_instruction(tmp_path: Path) -> None:
    """Once for an element of a softmax and of a GELU."""
    for operator, shape, count in (("Softmax", [4096, 1024], 32), ("Gelu", [4096, 1024], 4)):
        folder = tmp_path / operator
        folder.mkdir()
        _, ptx = _kernels(_model([helper.make_node(operator, ["x"], ["y"])], shape, shape, "float32"), folder)
        assert ptx.count("ex2.approx") == count, operator


def test_tanh_and_erf_divide_by_a_reciprocal(tmp_path: Path) -> None:
    for operator in ("Tanh", "Erf"):
        folder = tmp_path / operator
        folder.mkdir()
        node = helper.make_node(operator, ["x"], ["y"])
        kernels, ptx = _kernels(_model([node], [4096, 1024], [4096, 1024], "float32"), folder)
        _assert_light(kernels)
        assert ptx.count("rcp.approx") == 4 and "div." not in ptx, operator


def test_narrow_elements_are_transposed_several_at_a_time(tmp_path: Path) -> None:
    turn = helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    kernels, ptx = _kernels(_model([turn], [1000, 768], [768, 1000], "bfloat16"), tmp_path)
    _assert_light(kernels)
    assert "ld.global.b16" not in ptx and "st.global.b16" not in ptx


COLUMNS = [(8, 21, 32, 512), (2048, 64, 256), (512, 200, 300), (64, 1000, 512), (32, 2000, 64), (3, 777, 35)]


@pytest.mark.parametrize("gpu", ["sm_90a", *OTHERS])
@pytest.mark.parametrize("dtype", TYPES)
def test_columns_stay_in_registers(dtype: str, gpu: str, tmp_path: Path) -> None:
    """Softmax and normalization over elements that do not lie side by side: one kernel each, without spills."""
    nodes, values = [], []
    number_of_type = list(TYPES).index(dtype)
    others = OTHERS[number_of_type:] + OTHERS[:number_of_type]  # a chip has other shapes in each type
    for number, shape in enumerate(shape for arch, shape in spread(COLUMNS, "sm_90a", others, 2) if arch == gpu):
        for kind in "sn":
            x, y = f"{kind}{number}", f"{kind}{number}y"
            nodes += [helper.make_node("Softmax", [x], [y], axis=1)] if kind == "s" else _normalized(x, y)
            values.append([helper.make_tensor_value_info(n, TYPES[dtype], shape) for n in (x, y)])
    epsilon = helper.make_tensor("eps", TYPES[dtype], [], [1e-5])
    graph = helper.make_graph(nodes, "columns", *map(list, zip(*values, strict=True)), [epsilon])
    kernels, ptx = _kernels(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path, gpu)
    _assert_light(kernels)
    assert len(kernels) == len(values) and "st.global" in ptx


def _normalized(x: str, y: str) -> list[onnx.NodeProto]:
    """The nodes of `(x - mean) / sqrt(variance + eps)` over dimension 1."""
    m, d, q, v, e, s = (f"{y}_{n}" for n in "mdqves")
    steps = [("ReduceMean", [x], m), ("Sub", [x, m], d), ("Mul", [d, d], q), ("ReduceMean", [q], v),
             ("Add", [v, "eps"], e), ("Sqrt", [e], s), ("Div", [d, s], y)]  # fmt: skip
    axes = {"ReduceMean": {"axes": [1]}}
    return [helper.make_node(op, ins, [out], **axes.get(op, {})) for op, ins, out in steps]


def test_a_column_is_read_once(tmp_path: Path) -> None:
    """16 bytes at a time, all of them before anything is written."""
    shape = [64, 1000, 512]
    softmax = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    (kernel,), ptx = _kernels(_model([softmax], shape, shape, "float32"), tmp_path)
    _assert_light([kernel])
    elements = -(-1000 * 32 // (4 * kernel["threads"]))
    assert ptx.count("ld.global") == ptx.count("st.global") == elements
    assert ptx.rindex("ld.global") < ptx.index("st.global")
