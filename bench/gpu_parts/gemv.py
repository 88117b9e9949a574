"""The part `gemv`: products of few rows, which read a large matrix once, against torch.matmul."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu_parts.products import Product, compile_products, time_products

WEIGHTS = ((4096, 4096), (8192, 2048), (2048, 8192), (14336, 4096), (3072, 768), (32000, 4096))  # columns x sum


def products() -> list[Product]:
    """One to 64 rows, against weights stored by rows and by columns."""
    found = [Product(1, n, k, turned_right=turned) for n, k in WEIGHTS for turned in (False, True)]
    found += [Product(1, n, k, "float32", turned_right=turned) for n, k in WEIGHTS[:2] for turned in (False, True)]
    found += [Product(m, n, k) for n, k in WEIGHTS for m in (4, 16)]
    found += [Product(m, n, k) for n, k in WEIGHTS[:2] for m in (2, 8, 32, 64)]
    found += [Product(m, 4096, 4096, turned_right=True) for m in (4, 16, 32)]
    return found


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    compile_products(products(), folder)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks and times every product."""
    return time_products(products(), folder)
