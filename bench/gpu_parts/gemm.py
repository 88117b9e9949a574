"""The part `gemm`: products of matrices against torch.matmul, with an epilogue against compiled PyTorch, of floats of
eight bits against torch._scaled_mm."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from gpu_parts.products import Product, compile_products, time_products

SEED = 20261122  # of the shapes that are drawn: a date
DRAWN = 24
FLOATS8 = (
    *((4096,) * 3, (8192,) * 3, (1024, 4096, 4096), (4096, 3072, 768), (4096, 768, 3072), (16, 4096, 4096)),
    *((1, 4096, 4096), (1, 8192, 2048)),
)  # rows, columns, sum


E4M3 = "float8_e4m3fn"


def drawn() -> list[Product]:
    """Random shapes with tails everywhere: of every three one has a sum and columns that are multiples of eight, one
    only such a sum, one neither, so that rows in memory begin anywhere."""
    rng, found = random.Random(SEED), []
    for number in range(DRAWN):
        rows, columns, depth = (int(2 ** rng.uniform(low, 13)) for low in (4, 6, 6))
        kind, turned = number % 3, rng.random() < 0.5
        depth += -depth % 8 if kind < 2 else 0
        columns += -columns % 8 if kind < 1 else 0
        found.append(Product(rows, columns, depth, turned_right=turned))
    return found


def products() -> list[Product]:
    """The shapes that are timed."""
    sizes = [
        (8192, 8192, 8192), (4096, 4096, 4096), (1024, 4096, 4096), (128, 4096, 4096), (4096, 768, 768),
        (4096, 3072, 768), (4096, 768, 3072), (6304, 3072, 768), (512, 8192, 2048), (128, 768, 768),
        (128, 3072, 768), (128, 768, 3072),
    ]  # fmt: skip
    found = [Product(m, n, k, turned_right=turned) for m, n, k in sizes for turned in (False, True)]
    found += [Product(m, 3072, 768, epilogue="gelu") for m in (4096, 6304, 128)]
    found += [Product(1, 8192, 2048), Product(16, 4096, 4096)]
    some = ((4096,) * 3, (1024, 4096, 4096), (6304, 3072, 768), (4096, 768, 3072), (128, 768, 768))
    found += [Product(*size, "float16") for size in some]
    found += [Product(*size, "float32", turned_right=True, precision="tf32") for size in some]
    found += [Product(*size, E4M3, turned_right=True, precision=p) for size in FLOATS8 for p in ("fp32", "bf16")]
    return found + drawn()


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    compile_products(products(), folder)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks and times every product."""
    return time_products(products(), folder)
