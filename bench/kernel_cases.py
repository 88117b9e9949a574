"""Single kernels as ONNX models of one node, with the arithmetic and the traffic that they need at least."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 20, 9
ITEM = 4  # bytes of a float32


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


def one_node(
    op: str,
    inputs: dict[str, Sequence[int]],
    output: Sequence[int],
    constants: dict[str, np.ndarray] | None = None,
    **attributes: Any,
) -> tuple[onnx.ModelProto, int]:
    """A model of one operator on float32 tensors, and the bytes of all of them. The node takes inputs, then
    constants.
    """
    constants = constants or {}
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op, [*inputs, *constants], ["y"], name="kernel", **attributes)],
        "kernel",
        [value(name, TensorProto.FLOAT, list(shape)) for name, shape in inputs.items()],
        [value("y", TensorProto.FLOAT, list(output))],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    floats = [array.size for array in constants.values() if array.dtype == np.float32]
    return model, ITEM * (sum(math.prod(shape) for shape in (*inputs.values(), output)) + sum(floats))


def weight(*shape: int) -> np.ndarray:
    """Seeded values of about the size that keeps results near 1."""
    generator = np.random.default_rng(math.prod(shape))
    fan_in = math.prod(shape[1:]) if len(shape) > 2 else shape[0]
    return (generator.standard_normal(shape) / math.sqrt(fan_in)).astype(np.float32)


# --- Families ---------------------------------------------------------------------------------------------------


def gemm(m: int, n: int, k: int) -> Case:
    """[m, k] times a constant [k, n]."""
    model, size = one_node("MatMul", {"a": (m, k)}, (m, n), {"b": weight(k, n)})
    return Case("gemm", f"{m}x{n}x{k}", model, 2 * m * n * k, size)


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


def moving(family: str, name: str, op: str, *arguments: Any, **attributes: Any) -> Case:
    """A kernel that memory bounds."""
    model, size = one_node(op, *arguments, **attributes)
    return Case(family, name, model, None, size)


# --- Lists ------------------------------------------------------------------------------------------------------

GEMMS = (
    (128, 768, 768), (128, 3072, 768), (128, 768, 3072), (197, 2304, 768), (512, 512, 512), (1, 4096, 4096),
    (1, 1000, 2048),
)  # fmt: skip
RUN_TIME = ((512, 512, 512, 1), (128, 128, 64, 12), (128, 64, 128, 12), (197, 197, 64, 12))
RESNET = (
    (3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 512, 1, 2),
    (128, 56, 128, 3, 2), (128, 28, 128, 3, 1), (512, 28, 128, 1, 1), (256, 14, 256, 3, 1), (1024, 14, 256, 1, 1),
    (512, 7, 512, 3, 1), (512, 7, 2048, 1, 1),
)  # fmt: skip
DEPTHWISE = ((32, 112, 1), (96, 112, 2), (144, 56, 1), (192, 28, 1), (384, 14, 1), (576, 14, 2), (960, 7, 1))


def cases(seed: str) -> Iterator[Case]:
    """All kernels: those of known models, and some of odd sizes drawn from `seed`."""
    yield from (gemm(*shape) for shape in GEMMS)
    yield from (gemm_run_time(*shape) for shape in RUN_TIME)
    yield from (conv(*shape) for shape in RESNET)
    yield from (conv(c, extent, c, 3, stride, groups=c) for c, extent, stride in DEPTHWISE)
    yield from odd_cases(seed)
    yield from moving_cases()


def odd_cases(seed: str) -> Iterator[Case]:
    """Sizes that no kernel was made for."""
    draw = random.Random(seed)
    for _ in range(3):
        yield gemm(draw.randint(2, 300), draw.randint(17, 1200), draw.randint(17, 1200))
    yield gemm_run_time(draw.randint(2, 200), draw.randint(17, 300), draw.randint(17, 300), draw.randint(2, 9))
    for kernel, stride in ((3, 1), (1, 1), (5, 2)):
        yield conv(draw.randint(5, 200), draw.randint(9, 60), draw.randint(5, 200), kernel, stride)


def moving_cases() -> Iterator[Case]:
    """Kernels that memory bounds: what is read once and written once."""
    for r, c in ((1536, 128), (2048, 1024)):
        yield moving("softmax", f"{r}x{c}", "Softmax", {"x": (r, c)}, (r, c))
    for r, c in ((128, 768), (4096, 768)):
        constants = {"scale": weight(c), "bias": weight(c)}
        yield moving("layernorm", f"{r}x{c}", "LayerNormalization", {"x": (r, c)}, (r, c), constants)
    for r, c in ((128, 3072), (2048, 3072)):
        yield moving("gelu", f"{r}x{c}", "Gelu", {"x": (r, c)}, (r, c))
    heads, shape = (1, 12, 128, 64), {"x": (1, 128, 12, 64)}
    yield moving("transpose", "128x12x64-heads", "Transpose", shape, heads, perm=[0, 2, 1, 3])
    yield moving("transpose", "2048x2048", "Transpose", {"x": (2048, 2048)}, (2048, 2048), perm=[1, 0])
    for axis, out in ((0, (1024,)), (1, (4096,))):
        axes = {"axes": np.array([axis])}
        yield moving("reduction", f"4096x1024-axis{axis}", "ReduceSum", {"x": (4096, 1024)}, out, axes, keepdims=0)
    yield moving("reduction", "2048x7x7-pool", "GlobalAveragePool", {"x": (1, 2048, 7, 7)}, (1, 2048, 1, 1))
    for axis, joined in ((1, (1, 512, 56, 56)), (3, (1, 256, 56, 112))):
        shapes = dict.fromkeys(("a", "b"), (1, 256, 56, 56))
        yield moving("concat", f"256x56x56-axis{axis}", "Concat", shapes, joined, axis=axis)
