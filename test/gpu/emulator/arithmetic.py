"""Arithmetic of the machine (PTX ISA, "Integer Arithmetic", "Floating Point", "Comparison", "Data Conversion")."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from gpu.emulator.decode import DTYPES, TABLE, Decoder, decodes
from gpu.emulator.machine import Array, Run, Warp
from gpu.emulator.parse import WIDTHS, Instruction

_PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "u16x2": "u16", "s16x2": "s16"}
_HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def _kinds(source: Instruction) -> list[str]:
    found = [p for p in source.parts if p in DTYPES]
    if not found:
        raise NotImplementedError(f"line {source.line}: {source.name}")
    return found


def _paired(function: Callable[..., Array], kind: str) -> Callable[..., Array]:
    """A function of numbers of 16 bits, on words with two of them."""
    half = DTYPES[_PAIRS[kind]]
    return lambda *values: np.ascontiguousarray(function(*(v.view(half) for v in values))).view(np.uint32)


def computes(name: str, function: Callable[..., Array]) -> None:
    """Adds an instruction whose operands have the type of its result."""

    def decode(d: Decoder, source: Instruction) -> Run:
        kind = _kinds(source)[-1]
        apply = _paired(function, kind) if kind in _PAIRS else function
        put, reads = d.write(source.operands[0]), [d.read(o, kind) for o in source.operands[1:]]

        def run(warp: Warp, mask: Array) -> None:
            put(warp, apply(*(r(warp) for r in reads)), mask)

        return run

    TABLE[name] = decode


def _fma(a: Array, b: Array, c: Array) -> Array:
    """One rounding: products of two floats of 32 bits are exact in 64."""
    if a.dtype in _HALVES or a.dtype == np.float32:
        wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return wide.astype(a.dtype)
    return a * b + c


def _shift(left: bool) -> Callable[[Array, Array], Array]:
    def apply(a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        count = np.minimum(b.astype(np.uint64), bits - 1 if a.dtype.kind == "i" else bits).astype(a.dtype)
        if left:
            return np.where(count >= bits, a.dtype.type(0), np.left_shift(a, np.minimum(count, bits - 1)))
        shifted = np.right_shift(a, np.minimum(count, bits - 1).astype(a.dtype))
        return shifted if a.dtype.kind == "i" else np.where(count >= bits, a.dtype.type(0), shifted)

    return apply


def _shifts(name: str, left: bool) -> None:
    def decode(d: Decoder, source: Instruction) -> Run:
        kind = _kinds(source)[-1]
        put, a, b = d.write(source.operands[0]), d.read(source.operands[1], kind), d.read(source.operands[2], "u32")
        apply = _shift(left)
        return lambda warp, mask: put(warp, apply(a(warp), b(warp)), mask)

    TABLE[name] = decode


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, a.dtype.type(1), b)
    quotient = a // safe
    if a.dtype.kind == "i":
        quotient = quotient + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, a.dtype.type(-1) if a.dtype.kind == "i" else ~a.dtype.type(0), quotient).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, a, a - _divide(a, b) * b).astype(a.dtype)


def _extreme(function: Callable[..., Array], with_nan: Callable[..., Array]) -> None:
    name = "max" if function is np.fmax else "min"
    computes(name, lambda a, b: function(a, b) if a.dtype.kind in "fV" or a.dtype in _HALVES else with_nan(a, b))
    computes(f"{name}.NaN", with_nan)


for _name, _function in {
    "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "not": np.invert, "neg": lambda a: np.negative(a), "abs": np.abs, "fma": _fma, "div": _divide, "rem": _remainder,
    "sqrt": np.sqrt, "rcp": lambda a: (1 / a.astype(np.float64)).astype(a.dtype),
    "rsqrt": lambda a: (1 / np.sqrt(a.astype(np.float64))).astype(a.dtype), "ex2": np.exp2, "lg2": np.log2,
    "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "copysign": lambda a, b: np.copysign(b, a),
}.items():  # fmt: skip
    computes(_name, _function)
_extreme(np.fmax, np.maximum)
_extreme(np.fmin, np.minimum)
_shifts("shl", True)
_shifts("shr", False)


# -- products of integers ----------------------------------------------------------------------------------------------


def _high(a: Array, b: Array) -> Array:
    bits = 8 * a.dtype.itemsize
    wide = [(int(x) * int(y)) >> bits for x, y in zip(a, b, strict=True)]
    return np.array([w & ((1 << bits) - 1) for w in wide], f"u{bits // 8}").view(a.dtype)


def _product(source: Instruction, kind: str) -> tuple[Callable[[Array, Array], Array], str]:
    """What multiplies, and the type of the product."""
    if "wide" in source.parts:
        wide = f"{kind[0]}{8 * 2 * WIDTHS[kind]}"
        return (lambda a, b: a.astype(DTYPES[wide]) * b.astype(DTYPES[wide])), wide
    if "hi" in source.parts:
        return _high, kind
    return np.multiply, kind


@decodes("mul")
def _mul(d: Decoder, source: Instruction) -> Run:
    kind = _kinds(source)[-1]
    apply, _ = _product(source, kind)
    apply = _paired(apply, kind) if kind in _PAIRS else apply
    put, a, b = d.write(source.operands[0]), d.read(source.operands[1], kind), d.read(source.operands[2], kind)

    def run(warp: Warp, mask: Array) -> None:
        put(warp, apply(a(warp), b(warp)), mask)

    return run


@decodes("mad")
def _mad(d: Decoder, source: Instruction) -> Run:
    kind = _kinds(source)[-1]
    apply, wide = _product(source, kind)
    put, a, b = d.write(source.operands[0]), d.read(source.operands[1], kind), d.read(source.operands[2], kind)
    c = d.read(source.operands[3], wide)
    return lambda warp, mask: put(warp, apply(a(warp), b(warp)) + c(warp), mask)


# -- comparisons -------------------------------------------------------------------------------------------------------

_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


def _compared(name: str, a: Array, b: Array) -> Array:
    if a.dtype.kind in "iub":
        return np.asarray(_ORDER[name](a, b))
    unordered = np.isnan(a) | np.isnan(b)
    if name in ("num", "nan"):
        return unordered if name == "nan" else ~unordered
    if name.endswith("u") and name != "u":
        return unordered | np.asarray(_ORDER[name[:-1]](a, b))
    return ~unordered & np.asarray(_ORDER[name](a, b))


@decodes("setp")
def _setp(d: Decoder, source: Instruction) -> Run:
    kind, name = _kinds(source)[-1], source.parts[1]
    both = next((p for p in source.parts[2:] if p in ("and", "or", "xor")), None)
    target, *others = source.operands[0].split("|")
    put, a, b = d.write(target), d.read(source.operands[1], kind), d.read(source.operands[2], kind)
    if others:
        raise NotImplementedError(source.name)
    c = d.read(source.operands[3], "pred") if both else None
    joined = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}

    def run(warp: Warp, mask: Array) -> None:
        found = _compared(name, a(warp), b(warp))
        put(warp, found if c is None else joined[both or ""](found, c(warp)), mask)

    return run


@decodes("selp")
def _selp(d: Decoder, source: Instruction) -> Run:
    kind = _kinds(source)[-1]
    put, a, b = d.write(source.operands[0]), d.read(source.operands[1], kind), d.read(source.operands[2], kind)
    which = d.read(source.operands[3], "pred")
    return lambda warp, mask: put(warp, np.where(which(warp), a(warp), b(warp)), mask)


# -- bits --------------------------------------------------------------------------------------------------------------


@decodes("bfe")
def _bfe(d: Decoder, source: Instruction) -> Run:
    kind = _kinds(source)[-1]
    put, a = d.write(source.operands[0]), d.read(source.operands[1], kind)
    at, size = d.read(source.operands[2], "u32"), d.read(source.operands[3], "u32")

    def run(warp: Warp, mask: Array) -> None:
        value, count = a(warp).astype(f"u{WIDTHS[kind]}").astype(np.uint64), size(warp).astype(np.uint64)
        found = (value >> at(warp).astype(np.uint64)) & ((np.uint64(1) << count) - np.uint64(1))
        if kind[0] == "s":
            raise NotImplementedError(source.name)
        put(warp, found.astype(DTYPES[kind]), mask)

    return run


@decodes("prmt")
def _prmt(d: Decoder, source: Instruction) -> Run:
    put, (a, b, chosen) = d.write(source.operands[0]), (d.read(o, "u32") for o in source.operands[1:4])

    def run(warp: Warp, mask: Array) -> None:
        joined = np.concatenate([x(warp)[:, None].view(np.uint8).reshape(-1, 4) for x in (a, b)], axis=1)
        which = chosen(warp)
        result = np.zeros((len(which), 4), np.uint8)
        for byte in range(4):
            nibble = (which >> np.uint32(4 * byte)) & np.uint32(15)
            picked = np.take_along_axis(joined, (nibble & np.uint32(7)).astype(np.int64)[:, None], 1)[:, 0]
            sign = np.where(picked >> 7, np.uint8(255), np.uint8(0))
            result[:, byte] = np.where(nibble & np.uint32(8), sign, picked)
        put(warp, result.view(np.uint32)[:, 0], mask)

    return run


def _counts(name: str, function: Callable[[int, int], int]) -> None:
    def decode(d: Decoder, source: Instruction) -> Run:
        kind = _kinds(source)[-1]
        put, a = d.write(source.operands[0]), d.read(source.operands[1], kind)
        bits = 8 * WIDTHS[kind]
        return lambda warp, mask: put(warp, np.array([function(int(v), bits) for v in a(warp)], np.uint32), mask)

    TABLE[name] = decode


_counts("clz", lambda v, bits: bits - v.bit_length())
_counts("popc", lambda v, bits: v.bit_count())


@decodes("mov")
def _mov(d: Decoder, source: Instruction) -> Run:
    kind = _kinds(source)[-1]
    target, value = source.operands
    if target.startswith("{"):
        puts, read = [d.write(t) for t in d.vector(target)], d.read(value, kind)
        half = np.dtype(f"u{WIDTHS[kind] // len(puts)}")

        def unpack(warp: Warp, mask: Array) -> None:
            pieces = read(warp)[:, None].view(half)
            for number, put in enumerate(puts):
                put(warp, np.ascontiguousarray(pieces[:, number]), mask)

        return unpack
    put = d.write(target)
    if value.startswith("{"):
        parts = d.vector(value)
        reads = [d.read(v, f"b{8 * WIDTHS[kind] // len(parts)}") for v in parts]
        whole = np.dtype(f"u{WIDTHS[kind]}")
        return lambda warp, mask: put(warp, np.stack([r(warp) for r in reads], 1).view(whole)[:, 0], mask)
    if value in d.module.parameters:
        number = list(d.module.parameters).index(value)
        fixed = np.full(32, PARAMETERS + number, np.uint64)
        return lambda warp, mask: put(warp, fixed, mask)
    read = d.read(value, kind)
    return lambda warp, mask: put(warp, read(warp), mask)


PARAMETERS = 0x10  # where pointers to parameters by value begin: nobody reads there


@decodes("cvta")
def _cvta(d: Decoder, source: Instruction) -> Run:
    put, read = d.write(source.operands[0]), d.read(source.operands[1], _kinds(source)[-1])
    return lambda warp, mask: put(warp, read(warp), mask)


# -- conversions -------------------------------------------------------------------------------------------------------

_SMALL = {"e4m3x2": ml_dtypes.float8_e4m3fn, "e5m2x2": ml_dtypes.float8_e5m2}
_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _converted(value: Array, kind: str, modifiers: list[str]) -> Array:
    dtype = DTYPES[kind]
    rounding = next((_WHOLE[m] for m in modifiers if m in _WHOLE), None)
    is_float = value.dtype.kind == "f" or value.dtype in _HALVES
    if is_float and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        whole = (rounding or np.trunc)(value.astype(np.float64))
        bounded = np.clip(np.nan_to_num(whole, nan=0.0), float(limits.min), float(limits.max))
        found = np.array([min(max(int(v), limits.min), limits.max) for v in bounded], dtype)
        return found
    if is_float and rounding is not None:
        return rounding(value.astype(np.float64)).astype(dtype)
    found = value.astype(dtype)
    if "sat" in modifiers and is_float:
        found = np.clip(np.nan_to_num(found, nan=0.0), dtype.type(0), dtype.type(1))
    return found


@decodes("cvt")
def _cvt(d: Decoder, source: Instruction) -> Run:
    kinds = [p for p in source.parts[1:] if p in DTYPES or p in _SMALL]
    put, modifiers = d.write(source.operands[0]), source.parts[1:]
    if kinds[0] in _PAIRS or kinds[0] in _SMALL:
        return _cvt_pair(d, source, kinds)
    read = d.read(source.operands[1], kinds[1])
    if kinds[0] == "tf32":
        return lambda warp, mask: put(warp, to_tf32(read(warp)), mask)

    def run(warp: Warp, mask: Array) -> None:
        put(warp, _converted(read(warp), kinds[0], modifiers), mask)

    return run


def _cvt_pair(d: Decoder, source: Instruction, kinds: list[str]) -> Run:
    """Two numbers in one register: the first operand is the upper one."""
    put = d.write(source.operands[0])
    if kinds[1] in _SMALL:
        read = d.read(source.operands[1], "b16")
        small, wide = np.dtype(_SMALL[kinds[1]]), DTYPES[_PAIRS[kinds[0]]]
        return lambda warp, mask: put(
            warp, np.ascontiguousarray(read(warp).view(small).astype(wide)).view(np.uint32), mask
        )
    if kinds[1] in _PAIRS:
        read = d.read(source.operands[1], "b32")
        return lambda warp, mask: put(
            warp, _small(read(warp).view(DTYPES[_PAIRS[kinds[1]]]).astype(np.float32), kinds[0]), mask
        )
    high, low = (d.read(o, kinds[1]) for o in source.operands[1:3])

    def run(warp: Warp, mask: Array) -> None:
        both = np.stack([low(warp), high(warp)], 1)
        if kinds[0] in _SMALL:
            put(warp, _small(both.reshape(-1), kinds[0]), mask)
        else:
            put(warp, np.ascontiguousarray(both.astype(DTYPES[_PAIRS[kinds[0]]])).view(np.uint32)[:, 0], mask)

    return run


def _small(values: Array, kind: str) -> Array:
    """Pairs of floats of eight bits; what is too large becomes the largest."""
    dtype = np.dtype(_SMALL[kind])
    largest = float(ml_dtypes.finfo(dtype).max)
    bounded = np.where(np.isnan(values), values, np.clip(values, -largest, largest))
    return np.ascontiguousarray(bounded.astype(dtype)).view(np.uint16)


def to_tf32(value: Array) -> Array:
    """Rounded to ten bits, halves away from zero."""
    bits = value.view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
