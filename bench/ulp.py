"""Measures the error of `mlc.kernels.common.vector_math` in units in the last place (ulp).

    python bench/ulp.py exp log            # every float32 input, 2^32 of them: some minutes a function
    python bench/ulp.py --stride 257 all   # every 257th bit pattern
    python bench/ulp.py --samples 24 pow   # 2^24 pairs for the functions of two arguments

The expansion is compiled for this machine the way kernels are and compared with a float64 reference of NumPy
(erf: a series below). The error of a result r against the exact value v is |r - v| / ulp(v), an infinite
result counting as 2^128; a NaN, an infinity or a signed zero in the wrong place counts as infinite error.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

Array = np.ndarray
Function = Callable[..., Array]
CHUNK = 1 << 22
WIDTH = 16


def erf(x: Array) -> Array:
    """float64 erf to about 1e-15: 2/sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (2n+1)!!, all terms positive."""
    inside = np.abs(x) < 6.5
    z = np.abs(x[inside])
    square = z * z
    term, total = z.copy(), z.copy()
    reach = np.max(z, initial=0.0)
    for n in range(1, 150 if reach > 2 else 45 if reach > 0.25 else 12):
        term *= 2 * square / (2 * n + 1)
        total += term
    result = np.where(np.isnan(x), x, np.sign(x))
    result[inside] = np.copysign(2 / math.sqrt(math.pi) * np.exp(-square) * total, x[inside])
    return result


def exp_nonpositive(x: Array) -> Array:
    """float64 exponential of arguments up to 0, small results as 0."""
    return np.where(x > 0, 1.0, np.where(x < -126.5 * math.log(2), 0.0, np.exp(np.minimum(x, 0.0))))


def sigmoid(x: Array) -> Array:
    """float64 logistic function."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


#: Operation -> float64 reference, operands widened from float32.
REFERENCES: dict[str, Function] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "sigmoid": sigmoid,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": erf, "powf": np.power, "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
BINARY = ("atan2", "powf")
#: Functions of their own, which are no operations of the `math` dialect.
HELPERS = (
    *("sigmoid", "exp_nonpositive", "exp_nonpositive/scalef", "exp_nonpositive/scalef=2"),
    "exp_nonpositive/scalef=3",
    *("one_plus_erf", "one_plus_tanh"),
)
OF_ROWS = "exp_shifted"  # its second operand is a scalar


def kernel_text(name: str, width: int, constant: float | None = None) -> str:
    """Returns a kernel module (docs/ir.md, section 6) that applies operation `name`; width 0: scalars.

    `constant` is the second operand of a binary operation, if that is to be known at compile time.
    """
    from mlir import ir
    from mlir.dialects import arith, func, memref, scf, vector

    from mlc.kernels.common import vector_math

    inputs = 2 if name in BINARY and constant is None else 1
    with ir.Context(), ir.Location.unknown():
        f32, index = ir.F32Type.get(), ir.IndexType.get()
        pointer, word = ir.MemRefType.get([], f32), ir.MemRefType.get([2], ir.IntegerType.get_signless(64))
        array = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], f32)
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            kernel = func.FuncOp("k", ([pointer] * (inputs + 1) + [index, word, index, index], []))
            grid = func.FuncOp("k_grid", ([index], [index]))
        with ir.InsertionPoint(grid.add_entry_block()):
            func.ReturnOp([grid.arguments[0]])
        block = kernel.add_entry_block()
        size, _, begin, end = block.arguments[inputs + 1 :]
        with ir.InsertionPoint(block):
            views = [
                memref.ReinterpretCastOp(array, argument, [], [size], [], [0], [array.shape[0]], [1]).result
                for argument in block.arguments[: inputs + 1]
            ]
            loop = scf.ForOp(begin, end, arith.ConstantOp(index, max(width, 1)).result)
            with ir.InsertionPoint(loop.body):
                at = [loop.induction_variable]
                lanes = ir.VectorType.get([width], f32) if width else f32
                load = (
                    (lambda v: vector.LoadOp(lanes, v, at).result) if width else (lambda v: memref.LoadOp(v, at).result)
                )
                operands = [load(view) for view in views[:-1]]
                if constant is not None:
                    splat = arith.ConstantOp(f32, ir.FloatAttr.get(f32, constant)).result
                    is_scalar = not width or name.startswith(OF_ROWS)
                    operands.append(splat if is_scalar else vector.BroadcastOp(lanes, splat).result)
                if name in HELPERS or name.startswith(OF_ROWS):
                    function, _, option = name.partition("/")
                    option, _, number = option.partition("=")
                    result = getattr(vector_math, function)(*operands, **({option: int(number or 1)} if option else {}))
                else:
                    result = vector_math.expand(f"math.{name}", operands)
                (vector.StoreOp if width else memref.StoreOp)(result, views[-1], at)
                scf.YieldOp([])
            func.ReturnOp([])
        module.operation.verify()
        return str(module)


def compile_object(text: str) -> bytes:
    """Returns the object file of a kernel module, compiled for this machine."""
    import mlc.compiler_setup  # noqa: F401  (loads the native module)
    from mlc import _native
    from mlc.codegen.object import Target, Unit, compile_unit

    host = _native.host_info()
    return compile_unit(Unit("k", text), Target(host["triple"], host["cpu"], ",".join(host["features"])))


STUB = """
#include <stdint.h>
void k(int64_t *args, int64_t *error, int64_t begin, int64_t end);
void run(int64_t *args, int64_t n) { int64_t error[2] = {0, 0}; k(args, error, 0, n); }
"""


def build(name: str, width: int = WIDTH, constant: float | None = None) -> Function:
    """Compiles operation `name`; the function takes and returns float32 arrays of a multiple of `width`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "k.o").write_bytes(compile_object(kernel_text(name, width, constant)))
        (path / "stub.c").write_text(STUB)
        library = path / "k.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", library, path / "stub.c", path / "k.o", "-lm"], check=True
        )
        run = ctypes.CDLL(str(library)).run

    def call(*arrays: Array) -> Array:
        result = np.empty_like(arrays[0])
        n = result.size
        pointers = [array.ctypes.data for array in (*arrays, result)]
        run((ctypes.c_int64 * (len(pointers) + 1))(*pointers, n), ctypes.c_int64(n))
        return result

    return call


def ulp_error(result: Array, exact: Array) -> Array:
    """Returns the error of float32 `result` against float64 `exact` in ulp of float32 at `exact`."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(exact)
        _, exponent = np.frexp(np.where(finite, exact, 1.0))
        ulp = np.ldexp(1.0, np.maximum(exponent - 24, -149))
        wide = np.where(np.isinf(result), np.copysign(2.0**128, result.astype(np.float64)), result)
        error = np.abs(wide - exact) / ulp
        rounded = exact.astype(np.float32)
        same = (result.view(np.uint32) == rounded.view(np.uint32)) | (np.isnan(result) & np.isnan(exact))
        wrong = np.isnan(result) | np.isnan(exact) | ((exact == 0) & (np.signbit(result) != np.signbit(exact)))
        return np.where(
            same,
            np.where(np.isfinite(error) & np.isfinite(result), error, 0.0),
            np.where(wrong, np.inf, error),
        )


def reference(name: str, operands: Sequence[Array]) -> Array:
    """Returns the float64 result of operation `name`."""
    with np.errstate(all="ignore"):
        return REFERENCES[name](*(operand.astype(np.float64) for operand in operands))


def special_values() -> Array:
    """Zeros, infinities, NaN, subnormals, and where functions over- or underflow or change branch."""
    magnitudes = [
        0.0,
        1e-45,
        1.1754942e-38,
        1.1754944e-38,
        1e-20,
        2**-12,
        0.3,
        0.5,
        0.625,
        0.925,
        0.99999994,
        1.0,
        1.0000001,
    ]
    magnitudes += [
        1.5,
        2.0,
        2.5,
        3.0,
        3.8,
        3.92,
        4.0,
        4.25,
        5.0,
        9.01,
        9.02,
        9.3,
        10.0,
        16.6,
        40.0,
        44.5,
        87.33655,
        88.72283,
        88.72284,
        89.415985,
        89.5,
    ]
    magnitudes += [
        103.97207,
        103.97208,
        104.0,
        126.0,
        127.99999,
        128.0,
        149.0,
        149.5,
        150.0,
        8388607.5,
        8388609.0,
        16777215.0,
    ]
    magnitudes += [16777216.0, 131072.0, 131072.02, 1e10, 1e30, 3.4028235e38, math.inf, math.nan]
    values = np.array(magnitudes, np.float32)
    return np.concatenate([values, -values])


def pairs(rng: np.random.Generator, count: int) -> Iterator[tuple[Array, Array]]:
    """Yields arrays of `count` pairs: all special pairs, random bits, and powers that stay in range."""
    special = special_values()
    grid = np.resize(
        np.stack(np.meshgrid(special, special)).reshape(2, -1),
        (2, max(count, special.size**2 // WIDTH * WIDTH + WIDTH)),
    )
    yield grid[0].copy(), grid[1].copy()
    yield tuple(rng.integers(0, 2**32, (2, count), dtype=np.uint64).astype(np.uint32).view(np.float32))
    for spread in (88.0, 0.5, 0.001):
        base = np.exp(rng.uniform(-spread, spread, count)).astype(np.float32)
        with np.errstate(divide="ignore"):
            exponent = rng.uniform(-104, 89, count) / np.log(base.astype(np.float64))
        yield base, exponent.astype(np.float32)
    base = rng.uniform(-10, 10, count).astype(np.float32)
    yield base, rng.integers(-30, 30, count).astype(np.float32)
    yield base, rng.uniform(-10, 10, count).astype(np.float32)


def patterns(stride: int) -> Iterator[tuple[Array]]:
    """Yields every `stride`-th float32 bit pattern, in chunks."""
    for start in range(0, 1 << 32, CHUNK * stride):
        bits = np.arange(start, min(start + CHUNK * stride, 1 << 32), stride, dtype=np.uint64)
        yield (np.resize(bits.astype(np.uint32), -(-bits.size // WIDTH) * WIDTH).view(np.float32),)


def measure(name: str, inputs: Iterator[tuple[Array, ...]]) -> tuple[float, tuple[float, ...]]:
    """Returns the largest error of operation `name` over `inputs`, and the operands where it occurs."""
    function = build(name)
    worst, where = -1.0, tuple[float, ...]()
    for operands in inputs:
        error = ulp_error(function(*operands), reference(name, operands))
        at = int(np.argmax(error))
        if error[at] > worst:
            worst, where = float(error[at]), tuple(float(operand[at]) for operand in operands)
    return worst, where


def main() -> int:
    """Command line entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="+", choices=["all", *REFERENCES], metavar="FUNCTION")
    parser.add_argument("--stride", type=int, default=1, help="test every STRIDE-th bit pattern (default: 1)")
    parser.add_argument("--samples", type=int, default=20, help="log2 of the pairs per distribution (default: 20)")
    options = parser.parse_args()
    for name in REFERENCES if "all" in options.functions else options.functions:
        start = time.perf_counter()
        inputs = pairs(np.random.default_rng(0), 1 << options.samples) if name in BINARY else patterns(options.stride)
        worst, where = measure(name, inputs)
        operands = ", ".join(f"{value:.9g}" for value in where)
        print(f"{name:8} {worst:.3f} ulp at {operands}  ({time.perf_counter() - start:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
