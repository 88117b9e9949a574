"""The part `gemm`: products of matrices against torch.matmul."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu_parts.products import Product, compile_products, time_products


def products() -> list[Product]:
    """The shapes that are timed."""
    sizes = [
        (8192, 8192, 8192), (4096, 4096, 4096), (1024, 4096, 4096), (128, 4096, 4096), (4096, 768, 768),
        (4096, 3072, 768), (4096, 768, 3072), (6304, 3072, 768), (512, 8192, 2048), (128, 768, 768),
        (128, 3072, 768), (128, 768, 3072),
    ]  # fmt: skip
    found = [Product(m, n, k, turned_right=turned) for m, n, k in sizes for turned in (False, True)]
    found += [Product(4096, 3072, 768, epilogue="gelu"), Product(1, 8192, 2048), Product(16, 4096, 4096)]
    found += [Product(4096, 4096, 4096, "float16")]
    found += [
        Product(m, n, k, "float32", turned_right=True, precision="tf32") for m, n, k in ((4096,) * 3, (128, 768, 768))
    ]
    return found


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    compile_products(products(), folder)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks and times every product."""
    return time_products(products(), folder)
