"""Which single kernels `kernels.py` measures: those of known models, and some of sizes that no model has."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np
from kernel_cases import (
    FLOAT,
    Case,
    conv,
    gemm,
    gemm_int8,
    gemm_run_time,
    gemm_transposed,
    item_size,
    moving,
    resize,
    transpose,
    weight,
    window,
)
from onnx import TensorProto

INT8 = ((128, 768, 768), (128, 3072, 768), (128, 768, 3072), (512, 1024, 1024), (1, 1024, 1024), (196, 256, 1024))
GEMMS = ((128, 768, 768), (128, 3072, 768), (128, 768, 3072), (197, 2304, 768), (512, 512, 512))
SMALL_M = (
    (1, 4096, 4096), (1, 1000, 2048), (1, 768, 3072), (2, 768, 768), (4, 4096, 1024), (8, 768, 3072), (13, 1000, 768),
    (16, 3072, 768),
)  # fmt: skip
RUN_TIME = (
    (512, 512, 512, 1), (128, 128, 64, 12), (128, 64, 128, 12), (197, 197, 64, 12), (1, 2048, 2048, 1),
    (1, 64, 1024, 12), (4, 1024, 768, 1), (16, 512, 512, 1),
)  # fmt: skip
TRANSPOSED = ((128, 128, 64, 12), (1, 1024, 64, 12), (1, 2048, 2048, 1), (8, 512, 128, 4))
# Channels, extent, filters, kernel, stride: every distinct convolution of ResNet-50.
RESNET = (
    (3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1),
    (256, 56, 128, 1, 1), (128, 56, 128, 3, 2), (128, 28, 512, 1, 1), (256, 56, 512, 1, 2), (512, 28, 128, 1, 1),
    (128, 28, 128, 3, 1), (512, 28, 256, 1, 1), (256, 28, 256, 3, 2), (256, 14, 1024, 1, 1), (512, 28, 1024, 1, 2),
    (1024, 14, 256, 1, 1), (256, 14, 256, 3, 1), (1024, 14, 512, 1, 1), (512, 14, 512, 3, 2), (512, 7, 2048, 1, 1),
    (1024, 14, 2048, 1, 2), (2048, 7, 512, 1, 1), (512, 7, 512, 3, 1),
)  # fmt: skip
# Channels, extent, kernel, stride: the distinct depthwise convolutions of MobileNetV2 and V3-large and EfficientNet-B0.
DEPTHWISE = (
    (32, 112, 3, 1), (96, 112, 3, 2), (144, 56, 3, 1), (144, 56, 3, 2), (192, 28, 3, 1), (192, 28, 3, 2),
    (384, 14, 3, 1), (576, 14, 3, 1), (576, 14, 3, 2), (960, 7, 3, 1), (16, 112, 3, 1), (64, 112, 3, 2), (72, 56, 3, 1),
    (72, 56, 5, 2), (120, 28, 5, 1), (240, 28, 3, 2), (200, 14, 3, 1), (184, 14, 3, 1), (480, 14, 3, 1),
    (672, 14, 3, 1), (672, 14, 5, 2), (960, 7, 5, 1), (144, 56, 5, 2), (240, 28, 5, 1), (480, 14, 5, 1),
    (672, 14, 5, 1), (1152, 7, 5, 1), (1152, 7, 3, 1),
)  # fmt: skip
HALF, BYTE, LONG = TensorProto.FLOAT16, TensorProto.INT8, TensorProto.INT64
# Shape, permutation and element type.
TRANSPOSES = (
    ((1, 128, 12, 64), (0, 2, 1, 3)), ((1, 12, 128, 64), (0, 2, 1, 3)), ((8, 512, 12, 64), (0, 2, 1, 3)),
    ((1, 64, 56, 56), (0, 2, 3, 1)), ((1, 56, 56, 64), (0, 3, 1, 2)), ((1, 256, 112, 112), (0, 2, 3, 1)),
    ((1, 112, 112, 256), (0, 3, 1, 2)), ((1, 3, 224, 224), (0, 2, 3, 1)), ((1, 224, 224, 3), (0, 3, 1, 2)),
    ((1, 960, 7, 7), (0, 2, 3, 1)), ((12, 197, 64), (0, 2, 1)), ((256, 256), (1, 0)), ((2048, 2048), (1, 0)),
    ((1000, 1500), (1, 0)), ((197, 768), (1, 0)), ((4096, 768), (1, 0)), ((2048, 2048), (1, 0), HALF),
    ((500, 700), (1, 0), HALF), ((1, 64, 56, 56), (0, 2, 3, 1), HALF), ((2048, 2048), (1, 0), BYTE),
    ((500, 700), (1, 0), BYTE), ((1, 64, 56, 56), (0, 2, 3, 1), BYTE),
)  # fmt: skip


def cases(seed: str) -> Iterator[Case]:
    """All kernels: those of known models, and some of odd sizes drawn from `seed`."""
    yield from (gemm(*shape) for shape in GEMMS)
    yield from (gemm(*shape) for shape in SMALL_M)
    yield from (gemm_int8(*shape) for shape in INT8)
    yield from (gemm_run_time(*shape) for shape in RUN_TIME)
    yield from (gemm_transposed(*shape) for shape in TRANSPOSED)
    yield from (conv(*shape) for shape in RESNET)
    yield from (conv(c, extent, c, kernel, stride, groups=c) for c, extent, kernel, stride in DEPTHWISE)
    yield from odd_cases(seed)
    yield from row_cases()
    yield from (transpose(*arguments) for arguments in TRANSPOSES)
    yield from moving_cases()
    yield from indexing_cases()


def odd_cases(seed: str) -> Iterator[Case]:
    """Sizes that no kernel was made for."""
    draw = random.Random(seed)
    for _ in range(3):
        yield gemm(draw.randint(2, 300), draw.randint(17, 1200), draw.randint(17, 1200))
    yield gemm_run_time(draw.randint(2, 200), draw.randint(17, 300), draw.randint(17, 300), draw.randint(2, 9))
    for kernel, stride in ((3, 1), (1, 1), (5, 2)):
        yield conv(draw.randint(5, 200), draw.randint(9, 60), draw.randint(5, 200), kernel, stride)


def drawn_products(seed: str, count: int) -> Iterator[Case]:
    """`count` products of drawn sizes, the logarithms of which are evenly spread; every fourth right side is an input
    and has at least 128 rows on its left.
    """
    draw = random.Random(f"products {seed}")

    def extent(low: int, high: int) -> int:
        return round(math.exp(draw.uniform(math.log(low), math.log(high))))

    for number in range(count):
        if number % 4 == 3:
            yield gemm_run_time(extent(128, 1024), extent(32, 2048), extent(32, 2048))
        else:
            yield gemm(extent(16, 1024), extent(32, 2048), extent(32, 2048))


def drawn_transposes(seed: str, count: int) -> Iterator[Case]:
    """`count` transpositions of 64 KB to 32 MB, the logarithms of which are evenly spread: half of them of f32, half
    with extents that are no multiples of anything.
    """
    draw = random.Random(f"transposes {seed}")
    for number in range(count):
        type_ = FLOAT if number % 2 == 0 else draw.choice((HALF, BYTE, LONG))
        elements = 2 ** draw.uniform(16, 25) / item_size(type_)
        rows = math.sqrt(elements * 2 ** draw.uniform(-3, 3))
        multiple = draw.choice((1, 1, 8, 64))
        shape = [max(1, round(e / multiple)) * multiple for e in (rows, elements / rows)]
        yield transpose((*shape,), (1, 0), type_)


def row_cases() -> Iterator[Case]:
    """Kernels along rows, and elementwise ones: their rows in the cache, behind it, and of odd lengths."""
    for r, c in ((1536, 128), (2364, 197), (2048, 1024), (16, 32000)):
        yield moving("softmax", f"{r}x{c}", "Softmax", {"x": (r, c)}, (r, c))
    for r, c in ((128, 768), (197, 1000), (4096, 768)):
        constants = {"scale": weight(c), "bias": weight(c)}
        yield moving("layernorm", f"{r}x{c}", "LayerNormalization", {"x": (r, c)}, (r, c), constants)
    for r, c in ((128, 768), (1024, 4096)):
        yield moving("rmsnorm", f"{r}x{c}", "RMSNormalization", {"x": (r, c)}, (r, c), {"scale": weight(c)}, opset=23)
    for approximate in ("none", "tanh"):
        for r, c in ((128, 3072), (2048, 3072)):
            name = "gelu" if approximate == "none" else "gelu-tanh"
            yield moving(name, f"{r}x{c}", "Gelu", {"x": (r, c)}, (r, c), approximate=approximate)


def moving_cases() -> Iterator[Case]:
    """Reductions, windows, joins and running sums."""
    for shape, axes in (
        ((4096, 1024), (0,)), ((4096, 1024), (1,)), ((128, 768), (0,)), ((197, 1000), (0,)), ((16, 197, 768), (1,)),
        ((8, 64, 56, 56), (0, 2, 3)),
    ):  # fmt: skip
        name = "x".join(map(str, shape)) + "-axis" + "".join(map(str, axes))
        out = [e for i, e in enumerate(shape) if i not in axes]
        yield moving("reduction", name, "ReduceSum", {"x": shape}, out, {"axes": np.array(axes)}, keepdims=0)
    yield moving("reduction", "2048x7x7-pool", "GlobalAveragePool", {"x": (1, 2048, 7, 7)}, (1, 2048, 1, 1))
    for axis, joined in ((1, (1, 512, 56, 56)), (3, (1, 256, 56, 112))):
        shapes = dict.fromkeys(("a", "b"), (1, 256, 56, 56))
        yield moving("concat", f"256x56x56-axis{axis}", "Concat", shapes, joined, axis=axis)
    yield window("Max", 64, 112, 3, 2, 1)
    yield window("Max", 192, 28, 3, 1, 1)
    yield window("Max", 128, 56, 2, 2, 0)
    yield window("Average", 128, 56, 2, 2, 0)
    yield window("Average", 192, 28, 3, 1, 1)
    for mode in ("nearest", "linear"):
        yield resize(mode, 64, 56, 2)
    yield resize("linear", 21, 65, 8)
    for shape, axis in (((128, 1024), 1), ((1024, 128), 0), ((8, 32000), 1)):
        name = "x".join(map(str, shape)) + f"-axis{axis}"
        yield moving("cumsum", name, "CumSum", {"x": shape}, shape, {"axis": np.array(axis)})


def indexing_cases() -> Iterator[Case]:
    """Kernels that give or take positions."""
    int64 = TensorProto.INT64
    for rows, width, count in ((30522, 768, 128), (1000, 64, 4096)):
        model = moving(
            "gather", f"{count}of{rows}x{width}", "Gather", {"x": (rows, width), "i": (count,)}, (count, width),
            types={"i": int64}, specs={"i": f"random:0:{rows}"}, axis=0,
        )  # fmt: skip
        touched = 4 * 2 * count * width + 8 * count
        yield Case(model.family, model.name, model.model, None, touched, model.specs)
    for rows, width, k in ((1, 1000, 5), (128, 4096, 16), (1, 30000, 100)):
        yield moving(
            "topk", f"{k}of{rows}x{width}", "TopK", {"x": (rows, width)}, (rows, k), {"k": np.array([k])},
            types={"i": int64}, results=("y", "i"), axis=1,
        )  # fmt: skip
    for shape, axis in (((128, 30522), 1), ((1000, 64), 1), ((1, 21, 256, 256), 1)):
        out = [e for i, e in enumerate(shape) if i != axis]
        yield moving(
            "argmax", "x".join(map(str, shape)), "ArgMax", {"x": shape}, out, types={"y": int64}, axis=axis, keepdims=0,
        )  # fmt: skip
