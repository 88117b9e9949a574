"""Tensor core kernels without a GPU: what the assembler says of every form, and what their launches ask of the driver."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from gpu.stand_in import RUN, Outcome, run_with
from models.gpu_cases import build, cases
from onnx import helper, numpy_helper
from spread import spread
from toolchain import needs_ptxas

pytestmark = [needs_ptxas, pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")]

TYPES = {"bfloat16": 16, "float16": 10, "float32": 1, "float8_e4m3fn": 17, "float8_e5m2": 19}


def _product(
    rows: int | str, columns: int, depth: int | str, dtype: str = "bfloat16", turned: str = ""
) -> onnx.ModelProto:
    """y = a b; the letters of `turned` name what is stored transposed. Floats of eight bits have a scale of one."""
    shapes = {"a": [rows, depth], "b": [depth, columns]}
    nodes, names = [], {}
    for name in "ab":
        names[name] = name
        if name in turned:
            shapes[name], names[name] = shapes[name][::-1], f"{name}_turned"
            nodes.append(helper.make_node("Transpose", [name], [names[name]], perm=[1, 0]))
    kind, result, constants = TYPES[dtype], TYPES[dtype], []
    if dtype.startswith("float8"):
        result, constants = 16, [numpy_helper.from_array(np.array(1, ml_dtypes.bfloat16), "one")]
        nodes += [helper.make_node("DequantizeLinear", [n, "one"], [f"{n}_real"]) for n in names.values()]
        names = {name: f"{n}_real" for name, n in names.items()}
    nodes.append(helper.make_node("MatMul", list(names.values()), ["y"]))
    inputs = [helper.make_tensor_value_info(name, kind, shapes[name]) for name in "ab"]
    outputs = [helper.make_tensor_value_info("y", result, [rows, columns])]
    graph = helper.make_graph(nodes, "product", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _convolution(
    size: int, channels: int, filters: int, kernel: int, stride: int, groups: int = 1
) -> onnx.ModelProto:
    """Of f32, with padding, a bias and a ReLU."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((filters, channels // groups, kernel, kernel))
    arrays = {"w": weights, "b": rng.standard_normal(filters)}
    attributes = {"strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": groups}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    out = (size - 1) // stride + 1
    values = [("x", [2, channels, size, size]), ("y", [2, filters, out, out])]
    x, y = (helper.make_tensor_value_info(n, 1, s) for n, s in values)
    constants = [numpy_helper.from_array(a.astype("f4"), n) for n, a in arrays.items()]
    graph = helper.make_graph(nodes, "convolution", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _perceptron() -> onnx.ModelProto:
    """Two layers of f32 with a dynamic batch."""
    rng = np.random.default_rng(0)
    weights = {"w1": rng.standard_normal((32, 64)), "b1": rng.standard_normal(64), "w2": rng.standard_normal((64, 16))}
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Add", ["a", "b1"], ["b"], name="bias"),
        helper.make_node("Gelu", ["b"], ["c"], name="gelu"),
        helper.make_node("MatMul", ["c", "w2"], ["y"], name="second"),
    ]
    values = [helper.make_tensor_value_info(n, 1, ["n", d]) for n, d in (("x", 32), ("y", 16))]
    arrays = [numpy_helper.from_array(a.astype("f4"), n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "perceptron", values[:1], values[1:], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _compile(model: onnx.ModelProto, output: Path, **options: object) -> Path:
    from mlc.compilation import Compilation
    from mlc.options import make_options

    return Compilation(make_options(target="cuda", cache=False, **options)).run(model, output)


# Columns of a number of rows that only the run knows have no known distance: those are no form of the kernel.
FORMS = [
    (shape, turned)
    for shape in [(128, 768, 768), (4096, 4096, 4096), (6304, 3072, 768), ("m", 520, 136), (16, 2048, 8192)]
    for turned in ("", "a", "b", "ab")
    if "a" not in turned or shape[0] != "m"
]
FORMS += [((4096, 2304, 768), "b"), ((25088, 256, 512), "b")]  # tiles of 192 and of 128 rows in turns
FORMS += [((584, 1480, 1352), turned) for turned in ("", "a", "b", "ab")]  # clusters whose blocks copy for each other
FORMS += [((871, 1760, 4616), "b"), ((505, 2560, 5440), "b")]
FORMS += [((33, 520, 4104), ""), ((2048, 2304, "k"), "a")]  # parts of a sum, and one that may be empty (C7515)
FORMS += [((431, 6136, 1952), ""), ((7026, 744, 1344), "")]  # operands in each other's place


@pytest.mark.parametrize(("dtype", "form"), spread(FORMS, "bfloat16", ["float16"], 4), ids=str)
def test_ptxas_takes_every_form(
    dtype: str, form: tuple[tuple[int | str, int, int | str], str], tmp_path: Path
) -> None:
    """No spills, and no instruction of a group of warps waits for the one before (C7512, C7513, C7515, C7518)."""
    shape, turned = form
    folder = _compile(_product(*shape, dtype=dtype, turned=turned), tmp_path / "product", emit="cubin")
    kernels = json.loads((folder / "launch.json").read_text())
    assert len(kernels) == 1 or shape[0] == "m", "numbers of rows that the run knows have kernels of their own"
    for kernel in kernels:
        assert len(kernel["maps"]) == 2 and kernel["shared"] <= 227 * 1024 and kernel["warnings"] == []
        resources = kernel["resources"]
        assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)
        # At entry, where the groups share the registers alike; `setmaxnreg` gives them out later.
        assert 0 < resources["registers"] <= 65536 // kernel["threads"]


def test_who_copies_is_known_to_be_alone(tmp_path: Path) -> None:
    """No copy is in a loop over threads (`elect.sync`), and no address goes by way of a generic one."""
    folder = _compile(_product(4096, 768, 768), tmp_path / "product", emit="ptx")
    (kernel,) = json.loads((folder / "launch.json").read_text())
    text = (folder / f"{kernel['name']}.ptx").read_text()
    elected = text.index("elect.sync")
    assert "cp.async.bulk.tensor" in text[elected:] and "cp.async.bulk.tensor" not in text[:elected]
    assert "cvta.shared" not in text and "cvta.to.shared" not in text


@pytest.mark.parametrize("shape", [(512, 8192, 2048), (512, 2048, 8192), (25088, 512, 128), (49, 2048, 512)], ids=str)
def test_ptxas_takes_a_matrix_in_the_epilogue(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """A gate: every thread has all that it reads for a chunk of columns under way at a time, without spills."""
    model = _product(*shape)
    graph = model.graph
    rows, columns, _ = shape
    graph.node[-1].output[0] = "p"
    graph.node.extend([
        helper.make_node("Sigmoid", ["p"], ["s"]),
        helper.make_node("Mul", ["p", "s"], ["q"]),
        helper.make_node("Mul", ["q", "u"], ["y"]),
    ])  # fmt: skip
    graph.input.append(helper.make_tensor_value_info("u", graph.input[0].type.tensor_type.elem_type, [rows, columns]))
    folder = _compile(model, tmp_path / "gate", emit="cubin")
    (kernel,) = json.loads((folder / "launch.json").read_text())
    resources = kernel["resources"]
    assert kernel["warnings"] == []
    assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)


@pytest.mark.parametrize("turned", ["", "b"])
@pytest.mark.parametrize("shape", [(512, 8192, 2048), (1, 8192, 2048), (300, 168, 8192)], ids=str)
def test_ptxas_takes_twin_products(shape: tuple[int, int, int], turned: str, tmp_path: Path) -> None:
    """A gate and what it lets through are one launch with a tensor map for each operand."""
    model = _product(*shape, turned=turned)
    graph = model.graph
    _, columns, depth = shape
    graph.node[-1].output[0] = "p"
    dims = [columns, depth] if turned else [depth, columns]
    graph.input.append(helper.make_tensor_value_info("c", graph.input[0].type.tensor_type.elem_type, dims))
    if turned:
        graph.node.append(helper.make_node("Transpose", ["c"], ["right"], perm=[1, 0]))
    graph.node.extend([
        helper.make_node("MatMul", ["a", "right" if turned else "c"], ["u"]),
        helper.make_node("Sigmoid", ["p"], ["s"]),
        helper.make_node("Mul", ["p", "s"], ["q"]),
        helper.make_node("Mul", ["q", "u"], ["y"]),
    ])  # fmt: skip
    folder = _compile(model, tmp_path / "twins", emit="cubin")
    (kernel,) = json.loads((folder / "launch.json").read_text())
    resources = kernel["resources"]
    assert len(kernel["maps"]) == 3 and kernel["warnings"] == []
    assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)


# What comes after a product, and whether a matrix of the result's type is added; f32 in between.
ENDS = [("Bias",), ("Bias", "Gelu"), ("Bias", "Relu"), ("Bias", "Sigmoid"), ("Tanh",), ("Bias", "Add"), ("Add", "Relu")]
# Bytes that a thread stores of registers there, outside of the loop of products: all forms without these that were
# found take longer, by 1 to 7%; tanh was not timed since it is a quotient (bench/results/2026-11-23-h200.md).
BUDGETS = {
    ("bfloat16", "weights"): {"Bias": 12, "BiasRelu": 12, "BiasSigmoid": 136, "Tanh": 12, "BiasAdd": 8},
    ("bfloat16", "inputs"): {"Tanh": 28, "BiasAdd": 8},
    ("float16", "weights"): {"BiasSigmoid": 160, "Tanh": 144, "BiasAdd": 12, "AddRelu": 8},
    ("float16", "inputs"): {"Bias": 20, "BiasRelu": 20, "Tanh": 152, "BiasAdd": 12, "AddRelu": 8},
}


def _ended(
    dtype: str,
    ends: tuple[str, ...],
    constant: bool,
    shape: tuple[int, int, int] = (4096, 2304, 768),
    turned: str = "b",
) -> onnx.ModelProto:
    """A product and something after it; weights and bias are constants or inputs."""
    rows, columns, _ = shape
    model = _product(*shape, dtype=dtype, turned=turned)
    graph, rng, now = model.graph, np.random.default_rng(0), "wide"
    graph.node[-1].output[0] = "p"
    graph.node.append(helper.make_node("Cast", ["p"], ["wide"], to=1))
    for number, end in enumerate(ends):
        others = [f"other{number}"] if end in ("Bias", "Add") else []
        shape = [columns] if end == "Bias" else [rows, columns]
        graph.input.extend(helper.make_tensor_value_info(name, 1, shape) for name in others)
        graph.node.append(helper.make_node("Add" if others else end, [now, *others], [f"end{number}"]))
        now = f"end{number}"
    graph.node.append(helper.make_node("Cast", [now], ["y"], to=TYPES[dtype]))
    if constant:
        kinds = {"b": {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}[dtype], "other0": np.float32}
        for value in [i for i in graph.input if i.name == "b" or (i.name == "other0" and ends[0] == "Bias")]:
            dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
            array = rng.standard_normal(dims).astype(kinds[value.name])
            graph.initializer.append(numpy_helper.from_array(array, value.name))
            graph.input.remove(value)
    return model


@pytest.mark.parametrize(
    ("dtype", "form"), spread(list(itertools.product(ENDS, ("weights", "inputs"))), "bfloat16", ["float16"], 3), ids=str
)
def test_ptxas_takes_what_comes_after_large_products(
    dtype: str, form: tuple[tuple[str, ...], str], tmp_path: Path
) -> None:
    """Sums leave an epilogue few registers: 192 x 128 in turns, and 192 x 192 where a matrix is added."""
    ends, given = form
    folder = _compile(_ended(dtype, ends, given == "weights"), tmp_path / "ended", emit="cubin", precision="bf16")
    (kernel,) = json.loads((folder / "launch.json").read_text())
    assert kernel["warnings"] == []
    assert kernel["resources"]["spill_stores"] <= BUDGETS[dtype, given].get("".join(ends), 0)


@pytest.mark.parametrize(("depth", "turned"), [(512, ""), (256, "a"), (512, "a")])
def test_short_sums_of_many_copies(depth: int, turned: str, tmp_path: Path) -> None:
    """A step of operands across the sum is up to six copies, and the group that copies has 40 registers."""
    model = _ended("bfloat16", ("Bias", "Gelu"), False, (4096, 1024, depth), turned)
    folder = _compile(model, tmp_path / "short", emit="cubin")
    (kernel,) = json.loads((folder / "launch.json").read_text())
    resources = kernel["resources"]
    assert kernel["warnings"] == []
    assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)


@pytest.mark.parametrize("gpu", ["h200", "sm_80"])
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
def test_rows_that_begin_anywhere(turned: str, gpu: str, tmp_path: Path) -> None:
    """Operands are moved to rows of whole pieces of 16 bytes, and tensor cores multiply."""
    folder = _compile(_product(300, 521, 523, turned=turned), tmp_path / "product", emit="ptx", gpu=gpu)
    kernels = json.loads((folder / "launch.json").read_text())
    text = (folder / f"{kernels[-1]['name']}.ptx").read_text()
    assert len(kernels) > 1 and ("wgmma.mma_async" if gpu == "h200" else "mma.sync") in text


# What each form takes: fast sums in the registers of the tensor cores, or sums of every stage in those of the threads.
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize(
    "shape",
    [(128, 768, 768), (4096, 4096, 4096), (4096, 3072, 768), (6304, 768, 3072), ("m", 521, 144), (16, 2048, 8192), (1024, 768, 8192)],
    ids=str,
)
def test_ptxas_takes_floats_of_eight_bits(
    shape: tuple[int | str, int, int], dtype: str, precision: str, tmp_path: Path
) -> None:
    folder = _compile(_product(*shape, dtype=dtype, turned="b"), tmp_path / "p", emit="cubin", precision=precision)
    for kernel in json.loads((folder / "launch.json").read_text()):
        assert [m["element"] for m in kernel["maps"]] == ["u8", "u8"] and kernel["warnings"] == []
        resources = kernel["resources"]
        assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("depth", "precision", "together"),
    [(4096, "fp32", 2), (4224, "fp32", 1), (3072, "fp32", 1), (4096, "bf16", 0)],
    ids=["long", "odd", "short", "fast"],
)
def test_exact_sums_of_two_stages(depth: int, precision: str, together: int, tmp_path: Path) -> None:
    """Where a sum is long, of an even number of stages, and its result rounded to 16 bits."""
    model = _product(4096, 1024, depth, dtype="float8_e4m3fn", turned="b")
    _compile(model, tmp_path / "product.mlir", emit="schedule", precision=precision)
    found = re.findall(r"exact = (\d)", (tmp_path / "product.mlir").read_text())
    assert found == ([str(together)] if together else [])
    graph = model.graph
    graph.output[0].type.tensor_type.elem_type = 1
    graph.node[-1].output[0] = "p"
    graph.node.append(helper.make_node("Cast", ["p"], ["y"], to=1))
    _compile(model, tmp_path / "wide.mlir", emit="schedule", precision=precision)
    assert "exact = 2" not in (tmp_path / "wide.mlir").read_text()


@pytest.mark.parametrize("gpu", ["h200", "sm_80"])
def test_floats_of_eight_bits_across(gpu: str, tmp_path: Path) -> None:
    """A right operand by rows is transposed by a kernel; chips without such tensor cores multiply bf16."""
    source = _product(300, 520, 208, dtype="float8_e4m3fn")
    folder = _compile(source, tmp_path / "product", emit="ptx", gpu=gpu)
    kernels = json.loads((folder / "launch.json").read_text())
    if gpu == "h200":
        assert [len(k["maps"]) for k in kernels] == [0, 2]
    else:
        assert "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16" in "".join(p.read_text() for p in folder.glob("*.ptx"))


@pytest.mark.parametrize("shape", [(128, 768, 768), (4096, 4096, 4096), (300, 520, 136)], ids=str)
def test_ptxas_takes_tf32(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """Both operands along the sum: others are not for tensor cores."""
    folder = _compile(_product(*shape, "float32", "b"), tmp_path / "product", emit="cubin", precision="tf32")
    (kernel,) = json.loads((folder / "launch.json").read_text())
    assert [m["element"] for m in kernel["maps"]] == ["tf32", "tf32"] and kernel["warnings"] == []
    assert kernel["resources"]["spill_stores"] == 0
    folder = _compile(_product(*shape, "float32"), tmp_path / "across", emit="ptx", precision="tf32")
    assert all(not kernel["maps"] for kernel in json.loads((folder / "launch.json").read_text()))


@pytest.mark.parametrize(
    "form",
    [(56, 64, 64, 3, 1), (14, 256, 256, 3, 1), (17, 24, 40, 5, 2), (28, 512, 256, 1, 2), (56, 128, 128, 3, 1, 32)],
    ids=str,
)
def test_ptxas_takes_convolutions(form: tuple[int, ...], tmp_path: Path) -> None:
    folder = _compile(_convolution(*form), tmp_path / "convolution", emit="cubin", precision="bf16")
    kernels = [k for k in json.loads((folder / "launch.json").read_text()) if k["maps"]]
    assert len(kernels) == 1 and kernels[0]["maps"][0]["pixels"] and kernels[0]["warnings"] == []
    resources = kernels[0]["resources"]
    assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)


@pytest.mark.parametrize("shape", [(401408, 16, 32), (100352, 24, 144), (100352, 144, 24)], ids=str)
def test_small_matrices_stay_in_shared_memory(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """Where many rows are multiplied with a small matrix, each block copies it once."""
    _compile(_product(*shape), tmp_path / "product.mlir", emit="schedule")
    assert "resident = " in (tmp_path / "product.mlir").read_text()
    folder = _compile(_product(*shape), tmp_path / "product", emit="cubin")
    (kernel,) = json.loads((folder / "launch.json").read_text())
    assert kernel["warnings"] == [] and kernel["shared"] <= 227 * 1024
    resources = kernel["resources"]
    assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)


def _attention(heads: int, lengths: tuple[int | str, int | str], depth: int, **options: object) -> onnx.ModelProto:
    """Attention; options: `shared`, heads of keys and values; `causal`; `mask`, its ONNX type; `kind`, that of the rest
    (bf16)."""
    kind = options.get("kind", 16)
    queries, keys = lengths
    shapes = {"q": (2, heads, queries, depth)}
    shapes.update(dict.fromkeys("kv", (2, options.get("shared", heads), keys, depth)))
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    if "mask" in options:
        inputs.append(helper.make_tensor_value_info("mask", options["mask"], (2, 1, queries, keys)))
    node = helper.make_node("Attention", [i.name for i in inputs], ["y"], is_causal=int(bool(options.get("causal"))))
    result = helper.make_tensor_value_info("y", kind, shapes["q"])
    graph = helper.make_graph([node], "attention", inputs, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


ATTENTIONS: dict[str, tuple[int, tuple[int | str, int | str], int, dict[str, object]]] = {
    "plain": (4, (128, 128), 64, {}),
    "wide": (4, (1024, 1024), 128, {}),
    "short": (2, (100, 77), 128, {}),
    "causal": (4, (1024, 1024), 64, {"causal": True}),
    "grouped": (8, (1024, 1024), 128, {"causal": True, "shared": 2}),
    "run_time": (4, ("n", "m"), 64, {"causal": True}),
    "bool_mask": (4, (256, 256), 128, {"mask": 9}),
    "float_mask": (4, (200, 264), 64, {"mask": 1}),
}
# Few queries with many keys, which the blocks of a cluster share: a chip without clusters has three kernels.
SHARED_KEYS: dict[str, tuple[int, tuple[int | str, int | str], int, dict[str, object]]] = {
    "few": (4, (3, 4096), 128, {}),
    "few_run_time": (4, (5, "m"), 64, {}),
    "one_of_a_group": (8, (1, 2000), 64, {"shared": 2, "mask": 9}),
    "one_run_time": (32, (1, "m"), 128, {"shared": 8}),
    "one_for_all": (16, (1, 20000), 128, {"shared": 1}),
    "some_for_all": (8, (7, 30000), 64, {"shared": 1, "mask": 9}),
}


@pytest.mark.parametrize("form", [*ATTENTIONS, *SHARED_KEYS])
def test_ptxas_takes_attention(form: str, tmp_path: Path) -> None:
    """One kernel, without spills, and without a product that waits for the one before."""
    heads, lengths, depth, options = (ATTENTIONS | SHARED_KEYS)[form]
    folder = _compile(_attention(heads, lengths, depth, **options), tmp_path / "attention", emit="cubin")
    kernels = json.loads((folder / "launch.json").read_text())
    assert len(kernels) == 1 or isinstance(lengths[0], str)  # of any number of queries there may be some for few
    for kernel in kernels:
        # Queries, keys, values, and the result, which is only rounded.
        assert len(kernel["maps"]) == 4 and kernel["shared"] <= 227 * 1024 and kernel["warnings"] == []
        resources = kernel["resources"]
        assert (resources["spill_stores"], resources["spill_loads"], resources["stack"]) == (0, 0, 0)


def test_barriers_of_some_threads_are_read_again(tmp_path: Path) -> None:
    """IR in files has locations behind every operation."""
    tiled = _compile(_attention(4, (3, 4096), 128), tmp_path / "tiled.mlir", emit="tile")
    assert "llvm.nvvm.barrier.cta.sync.aligned.count" in tiled.read_text()
    from mlc.compilation import Compilation
    from mlc.options import make_options

    again = Compilation(make_options(target="cuda", cache=False, emit="ptx")).run(tiled, tmp_path / "ptx")
    assert "bar.sync" in (again / "k0.ptx").read_text()


@pytest.mark.parametrize("form", [{}, {"mask": 9}, {"causal": True}], ids=str)
@pytest.mark.parametrize("lengths", [(100, 264), (1, 264), ("n", "m")], ids=str)
def test_many_heads_with_one_of_keys_are_one_kernel(
    lengths: tuple[int | str, int | str], form: dict[str, object], tmp_path: Path
) -> None:
    text = _compile(_attention(8, lengths, 64, shared=1, **form), tmp_path / "attention.mlir", emit="schedule").read_text()
    assert text.count("mlc.schedule =") == text.count('template = "hopper_attention"') == 1


def test_parts_of_a_tensor(tmp_path: Path) -> None:
    """Queries, keys and values that are parts of one tensor are read there, each at its own coordinate."""
    parts = [helper.make_node("Gather", ["packed", f"at_{name}"], [name], axis=0) for name in "qkv"]
    numbers = [numpy_helper.from_array(np.array(i), f"at_{name}") for i, name in enumerate("qkv")]
    values = [("packed", [3, 2, 4, 128, 64]), ("y", [2, 4, 128, 64])]
    x, y = (helper.make_tensor_value_info(name, 16, shape) for name, shape in values)
    node = helper.make_node("Attention", list("qkv"), ["y"])
    graph = helper.make_graph([*parts, node], "attention", [x], [y], numbers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    folder = _compile(model, tmp_path / "parts", emit="cubin")
    (kernel,) = json.loads((folder / "launch.json").read_text())
    assert [m["tensor"] for m in kernel["maps"]] == [0, 0, 0, 1]
    assert all(m["extents"][-1] == [3] for m in kernel["maps"][:3])


def test_windows_of_images_are_one_dimension(tmp_path: Path) -> None:
    """Two dimensions of which a copy takes one element each, for a tensor of more than the copy engine knows."""
    (case,) = (case for case in cases() if case.name == "attention_windows")
    folder = _compile(build(case), tmp_path / "windows", emit="cubin", precision="bf16")
    maps = [m for kernel in json.loads((folder / "launch.json").read_text()) for m in kernel.get("maps", [])]
    assert [m["extents"] for m in maps[:3]] == [[[32], [2], [3], [49], [6]]] * 3


def test_maps_of_attention(driver: Path, tmp_path: Path) -> None:
    """Seven queries and seven keys of the run; f32 is rounded by kernels of its own, and the result stays f32: no map."""
    source = _attention(4, ("n", "m"), 64, kind=1, causal=True, shared=2)
    model = _compile(source, tmp_path / "model.so", precision="bf16")
    outcome = run_with(driver, [sys.executable, "-c", RUN, model])
    assert outcome.code == 0, outcome.said
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    maps = [line for line in outcome.log if line.startswith("map of")]
    assert maps[:3] == [
        "map of 5 dimensions, 64 x 7", "map of 4 dimensions, 64 x 7", "map of 4 dimensions, 64 x 7",
    ]  # fmt: skip


def test_clusters_that_share_keys_have_a_workspace(driver: Path, tmp_path: Path) -> None:
    """Its counters are 0, and of it a recorded launch knows, too; many clusters make a tile."""
    source = _attention(16, (1, 20000), 128, shared=1, kind=10)
    schedule = _compile(source, tmp_path / "attention.mlir", emit="schedule").read_text()
    groups = re.search(r"groups = (\d+)", schedule)
    assert groups is not None and int(groups[1]) > 2 and "split = 8" in schedule
    model = _compile(source, tmp_path / "model.so")
    outcome = run_with(driver, [sys.executable, "-c", RUN, model])
    assert outcome.code == 0, outcome.said
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    assert len([line for line in outcome.log if line.startswith("workspace of")]) >= 2
    (kernel,) = json.loads((_compile(source, tmp_path / "ptx", emit="ptx") / "launch.json").read_text())
    # Of two tiles each part has a matrix of 16 x 128 numbers, and two more for every row; counters are in front.
    assert kernel["workspace"] == 4096 + 2 * int(groups[1]) * 16 * 130 * 4


def test_windows_of_a_convolution(driver: Path, tmp_path: Path) -> None:
    """The tensor is not padded: the windows reach over its edges."""
    model = _compile(_convolution(17, 24, 40, 5, 2), tmp_path / "model.so", precision="bf16")
    outcome = run_with(driver, [sys.executable, "-c", RUN, model])
    assert outcome.code == 0, outcome.said
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    assert "windows of 24 channels, 17 x 17 pixels" in outcome.log


def test_launches_with_tensor_maps(driver: Path, tmp_path: Path) -> None:
    """Maps have the extents of the run, and recorded launches keep theirs."""
    model = _compile(_perceptron(), tmp_path / "model.so", precision="bf16")
    outcome: Outcome = run_with(driver, [sys.executable, "-c", RUN, model])
    assert outcome.code == 0, outcome.said
    log = outcome.log
    assert not [line for line in log if line.startswith("BREACH")]
    maps = [line for line in log if line.startswith("map")]
    # Of each product the left operand, with the seven rows of the run, and the weights.
    assert maps[:4] == [
        "map of 2 dimensions, 32 x 7", "map of 2 dimensions, 64 x 32",
        "map of 2 dimensions, 64 x 7", "map of 2 dimensions, 16 x 64",
    ]  # fmt: skip
    # No more than the seven rows are copied at a time; what lies outside takes longer.
    boxes = [line for line in log if line.startswith("box")]
    assert [boxes[0], boxes[2]] == ["box of 64 x 7", "box of 64 x 7"]
    assert len([line for line in log if line.startswith("shared ")]) >= 2
    assert [line for line in log if line.startswith("graph of")], "the second run is a graph"


def test_a_sum_of_nothing(driver: Path, tmp_path: Path) -> None:
    """The driver takes no map of a tensor without elements, and the kernel has nothing to copy of it."""
    model = _compile(_product(256, 512, "k", "float16", turned="a"), tmp_path / "model.so")
    outcome = run_with(driver, [sys.executable, "-c", RUN, model], RUN_SIZE="0")
    assert outcome.code == 0, outcome.said
    assert not [line for line in outcome.log if line.startswith("BREACH")]
    assert "map of 2 dimensions, 1 x 1" in outcome.log
    assert [line for line in outcome.log if line.startswith("shared ")], "it is launched all the same"


def test_a_map_that_the_driver_refuses(driver: Path, tmp_path: Path) -> None:
    model = _compile(_perceptron(), tmp_path / "model.so", precision="bf16")
    outcome = run_with(driver, [sys.executable, "-c", RUN, model], FAKE_CUDA_FAIL="cuTensorMapEncodeTiled:2:1")
    assert outcome.code == 1
    assert re.search(r"node 'second' \(kernel 'k2(_\d+)?'\): cuLaunchKernel: CUDA_ERROR_INVALID_VALUE", outcome.said)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("shape", "after"), [((512, 768, 768), "Relu"), ((1024, 4096, 4096), "Gelu")])
def test_what_comes_after_a_product_does_not_hold_it_up(
    shape: tuple[int, int, int], after: str, dtype: str, tmp_path: Path
) -> None:
    """Results are rounded to 16 bits before something else is computed of them: no product waits for that (C7514)."""
    model = _product(*shape, dtype=dtype)
    model.graph.node[-1].output[0] = "product"
    model.graph.node.append(helper.make_node(after, ["product"], ["y"]))
    folder = _compile(model, tmp_path / "product", emit="cubin")
    (kernel,) = json.loads((folder / "launch.json").read_text())
    assert kernel["warnings"] == []


def _residual(rows: int, channels: int) -> onnx.ModelProto:
    """Two layers, the sum of both, and its norms: what is added to is stored between kernels."""
    rng = np.random.default_rng(0)
    arrays = [numpy_helper.from_array(rng.standard_normal((channels, channels)).astype("f4"), n) for n in "vw"]
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["c"]),
        helper.make_node("Add", ["c", "b"], ["d"]),
        helper.make_node("ReduceL2", ["d"], ["y"], axes=[1]),
    ]
    values = [helper.make_tensor_value_info(n, 1, d) for n, d in (("x", [rows, channels]), ("y", [rows, 1]))]
    graph = helper.make_graph(nodes, "residual", values[:1], values[1:], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(("rows", "channels"), [(4096, 768), (6304, 768), (300, 520)])
def test_addends_come_as_results_go(rows: int, channels: int, tmp_path: Path) -> None:
    """Results of 16 bits to which a matrix of 16 bits is added, which comes while products are computed: whole pieces
    of 16 bytes, no spills."""
    folder = _compile(_residual(rows, channels), tmp_path / "r", emit="cubin", precision="bf16")
    sources = _compile(_residual(rows, channels), tmp_path / "s", emit="ptx", precision="bf16")
    names = [k["name"] for k in json.loads((sources / "launch.json").read_text())]
    texts = {name: (sources / f"{name}.ptx").read_text() for name in names}
    (name,) = [name for name, text in texts.items() if "ldmatrix" in text]
    assert "stmatrix" in texts[name] and "cp.async.cg.shared.global" in texts[name]
    (kernel,) = [k for k in json.loads((folder / "launch.json").read_text()) if k["name"] == name]
    assert kernel["warnings"] == [] and kernel["resources"]["spill_stores"] == 0
