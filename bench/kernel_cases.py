"""Single kernels as ONNX models of one node, with the arithmetic and the traffic that they need at least."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 20, 9
FLOAT = TensorProto.FLOAT


@dataclass(frozen=True)
class Case:
    """A kernel. `flops` is what it cannot do without, None where that is a matter of taste (softmax, …);
    `bytes` is that of its inputs, constants and results, each once.
    """

    family: str
    name: str
    model: onnx.ModelProto
    flops: int | None
    bytes: int
    specs: Mapping[str, str] = field(default_factory=dict)
    """How inputs are filled, as `mlc-run --input` takes it; random numbers unless said otherwise."""
    arithmetic: str = "fp32"
    """The peak that `flops` are compared with, as `peak.c` names it."""


def one_node(
    op: str,
    inputs: dict[str, Sequence[int]],
    output: Sequence[int],
    constants: dict[str, np.ndarray] | None = None,
    *,
    types: Mapping[str, int] | None = None,
    results: Sequence[str] = ("y",),
    opset: int = OPSET,
    **attributes: Any,
) -> tuple[onnx.ModelProto, int]:
    """A model of one operator, and the bytes of all its tensors. The node takes inputs, then constants; an empty name
    is an input that is left out. `types` are those of inputs and results that are not float32; all `results` have the
    shape `output`.
    """
    constants = constants or {}
    node = helper.make_node(op, [*inputs, *constants], list(results), name="kernel", **attributes)
    tensors = {**inputs, **dict.fromkeys(results, output)}
    return model_of([node], tensors, len(inputs), {n: v for n, v in constants.items() if n}, types or {}, opset)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    tensors: Mapping[str, Sequence[int]],
    inputs: int,
    constants: Mapping[str, np.ndarray],
    types: Mapping[str, int],
    opset: int = OPSET,
) -> tuple[onnx.ModelProto, int]:
    """A model with the shapes of its inputs, then of its results, in `tensors`; and the bytes of them and of float
    constants.
    """
    value = helper.make_tensor_value_info
    infos = [value(name, types.get(name, FLOAT), list(shape)) for name, shape in tensors.items()]
    given = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "kernel", infos[:inputs], infos[inputs:], given)
    version = IR_VERSION if opset <= OPSET else IR_VERSION + 2
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)
    onnx.checker.check_model(model)
    moved = sum(item_size(types.get(name, FLOAT)) * math.prod(shape) for name, shape in tensors.items())
    return model, moved + sum(array.nbytes for array in constants.values() if array.dtype == np.float32)


def item_size(type_: int) -> int:
    """Bytes of an element in memory."""
    return helper.tensor_dtype_to_np_dtype(type_).itemsize


def weight(*shape: int) -> np.ndarray:
    """Seeded values of about the size that keeps results near 1."""
    generator = np.random.default_rng(math.prod(shape))
    fan_in = math.prod(shape[1:]) if len(shape) > 2 else shape[0]
    return (generator.standard_normal(shape) / math.sqrt(fan_in)).astype(np.float32)


def gemm(m: int, n: int, k: int) -> Case:
    """[m, k] times a constant [k, n]."""
    model, size = one_node("MatMul", {"a": (m, k)}, (m, n), {"b": weight(k, n)})
    return Case("gemm", f"{m}x{n}x{k}", model, 2 * m * n * k, size)


def gemm_int8(m: int, n: int, k: int) -> Case:
    """[m, k] codes of uint8 times constant [k, n] codes of int8, as a quantized model has it: to floats with the scales
    of both, one for every column.
    """
    codes = np.clip(np.rint(weight(k, n) * math.sqrt(k) * 40), -127, 127).astype(np.int8)
    constants: dict[str, np.ndarray] = {
        "sa": np.asarray(0.02, np.float32), "za": np.asarray(113, np.uint8), "b": codes,
        "sb": (np.arange(n) % 7 + 1).astype(np.float32) / 1000, "zb": np.zeros(n, np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["a", "sa", "za"], ["x"]),
        helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["w"], axis=1),
        helper.make_node("MatMul", ["x", "w"], ["y"], name="kernel"),
    ]
    model, _ = model_of(nodes, {"a": (m, k), "y": (m, n)}, 1, constants, {"a": TensorProto.UINT8})
    size = m * k + k * n + 4 * m * n
    return Case("gemm-int8", f"{m}x{n}x{k}", model, 2 * m * n * k, size, {"a": "random:0:256"}, "int8")


def gemm_run_time(m: int, n: int, k: int, batch: int = 1) -> Case:
    """[batch, m, k] times [batch, k, n], both inputs."""
    lead = (batch,) if batch > 1 else ()
    model, size = one_node("MatMul", {"a": (*lead, m, k), "b": (*lead, k, n)}, (*lead, m, n))
    name = f"{batch}x" if batch > 1 else ""
    return Case("gemm-run-time", f"{name}{m}x{n}x{k}", model, 2 * batch * m * n * k, size)


def conv(channels: int, extent: int, filters: int, kernel: int, stride: int = 1, groups: int = 1) -> Case:
    """A square convolution with padding kernel / 2 and a bias. Its FLOPs are those of taps inside the input."""
    pad = kernel // 2
    out = (extent + 2 * pad - kernel) // stride + 1
    constants = {"w": weight(filters, channels // groups, kernel, kernel), "b": weight(filters)}
    model, size = one_node(
        "Conv", {"x": (1, channels, extent, extent)}, (1, filters, out, out), constants,
        kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups,
    )  # fmt: skip
    flops = 2 * filters * (channels // groups) * inner_taps(extent, kernel, stride, pad) ** 2
    family = "depthwise" if groups == channels else "conv"
    return Case(family, f"{channels}x{extent}-{filters}k{kernel}s{stride}", model, flops, size)


def inner_taps(extent: int, kernel: int, stride: int, pad: int) -> int:
    """How many taps of all windows along a dimension are not in the padding."""
    out = (extent + 2 * pad - kernel) // stride + 1
    return sum(0 <= o * stride - pad + tap < extent for o in range(out) for tap in range(kernel))


def gemm_transposed(m: int, n: int, k: int, batch: int = 1) -> Case:
    """[batch, m, k] times the transposed [batch, n, k], both inputs, as the scores of attention are."""
    lead = (batch,) if batch > 1 else ()
    nodes = [
        helper.make_node("Transpose", ["b"], ["t"], perm=[*range(len(lead)), len(lead) + 1, len(lead)]),
        helper.make_node("MatMul", ["a", "t"], ["y"], name="kernel"),
    ]
    model, size = model_of(nodes, {"a": (*lead, m, k), "b": (*lead, n, k), "y": (*lead, m, n)}, 2, {}, {})
    name = f"{batch}x" if batch > 1 else ""
    return Case("gemm-transposed", f"{name}{m}x{n}x{k}", model, 2 * batch * m * n * k, size)


def moving(
    family: str, name: str, op: str, *arguments: Any, specs: Mapping[str, str] | None = None, **more: Any
) -> Case:
    """A kernel that memory bounds."""
    model, size = one_node(op, *arguments, **more)
    return Case(family, name, model, None, size, specs or {})


def transpose(shape: Sequence[int], order: Sequence[int], type_: int = FLOAT) -> Case:
    """A permutation of axes."""
    name = "x".join(map(str, shape)) + "-" + "".join(map(str, order))
    kind = "" if type_ == FLOAT else f"-{item_size(type_)}byte"
    types = {"x": type_, "y": type_}
    result = [shape[axis] for axis in order]
    return moving("transpose", name + kind, "Transpose", {"x": shape}, result, types=types, perm=list(order))


def window(kind: str, channels: int, extent: int, kernel: int, stride: int, pad: int) -> Case:
    """A pool; `kind` is `Max` or `Average`."""
    out = (extent + 2 * pad - kernel) // stride + 1
    return moving(
        "pool", f"{kind.lower()}-{channels}x{extent}k{kernel}s{stride}", f"{kind}Pool",
        {"x": (1, channels, extent, extent)}, (1, channels, out, out),
        kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
    )  # fmt: skip


def resize(mode: str, channels: int, extent: int, factor: int) -> Case:
    """An image enlarged by `factor`."""
    scales = np.array([1, 1, factor, factor], np.float32)
    out = (1, channels, extent * factor, extent * factor)
    return moving(
        "resize", f"{mode}-{channels}x{extent}by{factor}", "Resize", {"x": (1, channels, extent, extent)}, out,
        {"": np.zeros(0), "scales": scales}, mode=mode,
        nearest_mode="floor", coordinate_transformation_mode="asymmetric" if mode == "nearest" else "half_pixel",
    )  # fmt: skip


def nothing() -> Case:
    """Next to no work: its time is that of a call."""
    return moving("call", "16", "Neg", {"x": (1, 16)}, (1, 16))
