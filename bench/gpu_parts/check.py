"""The part `check`: many small products and convolutions, right or wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu_parts.conv import Convolution, ConvolutionRun, compile_convolutions
from gpu_parts.products import Product, ProductRun, compile_products

FLOATS8 = ((300, 521, 208), (130, 96, 4096), (1, 512, 768), (6304, 384, 1040), (33, 520, 1000))


def checks() -> list[Product]:
    """Products whose extents are no multiples of anything, in every order and type."""
    found = []
    for dtype in ("bfloat16", "float16"):
        for turned_left in (False, True):
            for turned_right in (False, True):
                found.append(Product(200, 328, 120, dtype, turned_left, turned_right))
    found += [Product(m, n, k) for m, n, k in ((1, 512, 768), (7, 64, 64), (130, 1000, 264), (1000, 24, 4096))]
    found += [Product(100, 200, 1000), Product(33, 520, 4104, "float16"), Product(5, 2048, 2048, turned_right=True)]
    found += [Product(257, 136, 72, batch=5), Product(64, 256, 128, turned_right=True, batch=3)]
    for kind in ("float8_e4m3fn", "float8_e5m2"):
        for precision in ("fp32", "bf16"):
            found += [Product(*size, kind, turned_right=True, precision=precision) for size in FLOATS8]
    found += [Product(300, 520, 208, "float8_e4m3fn"), Product(300, 520, 208, "float8_e4m3fn", epilogue="gelu")]
    found += [Product(200, 328, 120, "float32", turned_right=True, precision="tf32")]
    found += [Product(m, 2312, 200, turned_right=True, epilogue=e) for m in (3004, 4100) for e in ("", "gelu")]
    found += [Product(4000, 1100, 360, "float32", turned_right=True, precision="tf32")]
    found += [Product(300, 521, 88), Product(300, 520, 88, epilogue="gelu"), Product(4096, 1024, 512, epilogue="gelu")]
    # Rows that begin within cache lines and long sums: clusters whose blocks copy for each other.
    for turned_left in (False, True):
        for turned_right in (False, True):
            found.append(Product(584, 1480, 1352, turned_left=turned_left, turned_right=turned_right))
    # Two products whose results meet are one; few tiles and long sums are shared by the blocks of a cluster.
    sizes = ((512, 8192, 2048), (1, 8192, 2048), (200, 328, 120), (130, 1000, 264), (33, 2312, 4104))
    found += [Product(*size, turned_right=turned, epilogue="gate") for size in sizes for turned in (False, True)]
    found += [Product(257, 136, 72, "float16", epilogue="gate"), Product(300, 168, 8192, epilogue="gate")]
    found += [Product(*size, turned_right=True, epilogue="gelu") for size in ((512, 2048, 8192), (500, 1976, 4104))]
    found += [Product(*size, turned_right=True) for size in ((512, 2048, 8192), (200, 1000, 8192), (1, 2056, 8192))]
    return [*found, Product(871, 1760, 4616, turned_right=True, epilogue="gelu"), Product(431, 6136, 1952)]


def odd_convolutions() -> list[Convolution]:
    """Convolutions with edges everywhere."""
    return [
        Convolution(2, 9, 24, 40, 3), Convolution(3, 17, 64, 72, 3, stride=2), Convolution(2, 15, 136, 64, 5),
        Convolution(1, 20, 64, 64, 3, dilation=2), Convolution(5, 14, 32, 48, 1, stride=2),
        Convolution(3, 30, 32, 16, 1), Convolution(3, 30, 96, 24, 1), Convolution(2, 17, 16, 144, 1),
        Convolution(2, 14, 96, 96, 3, groups=3), Convolution(2, 15, 64, 128, 1, groups=8),
        Convolution(1, 13, 96, 192, 5, groups=2), Convolution(3, 9, 48, 48, 3, dilation=2, groups=4),
        Convolution(2, 10, 240, 240, 1, groups=3), Convolution(2, 20, 128, 128, 3, stride=2, groups=32),
    ]  # fmt: skip


def compile_part(folder: Path) -> None:
    """Writes the libraries of the part."""
    compile_products(checks(), folder)
    compile_convolutions(odd_convolutions(), folder)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Checks every product and convolution."""
    rows = []
    for product in checks():
        bound = 5e-3 if product.result == "bfloat16" else 1e-3
        rows.append(_row(product.name, ProductRun(folder, product, 1).error(), bound))
    for conv in odd_convolutions():
        rows.append(_row(conv.name, ConvolutionRun(folder, conv, 1).error(), 5e-3))
    return rows


def _row(name: str, error: float, bound: float) -> dict[str, Any]:
    is_right = error < bound
    print(f"{'right' if is_right else 'WRONG'} {name:48s} {error:.1e}", flush=True)
    return {"name": name, "error": error, "right": is_right}
