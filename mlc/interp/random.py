"""`random`: counter-based numbers, so that an element depends on the seed and its index only.

Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) with the key
`(seed mod 2^32, seed / 2^32)` and the counter `(i mod 2^32, i / 2^32, 0, 0)` for element i gives four words
r0..r3.

* `uniform` up to f32: `(r0 >> 8) * 2^-24`; f64: `((r0 << 32 | r1) >> 11) * 2^-53`.
* `normal`: `sqrt(-2 ln u) * cos(2 pi v)` (Box-Muller); up to f32 `u = ((r0 >> 8) + 1) * 2^-24`,
  `v = (r1 >> 8) * 2^-24`;
  f64 `u = (((r0 << 32 | r1) >> 11) + 1) * 2^-53`, `v = ((r2 << 32 | r3) >> 11) * 2^-53`.

f16 and bf16 round the f32 number.
"""

from __future__ import annotations

import math

import numpy as np

from mlc.interp.registry import Call, InterpError, evaluates

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def philox(seed: int, count: int) -> list[np.ndarray]:
    """The four 32-bit words (as uint64 arrays of `count` elements) of the counters 0, 1, ..., `count` - 1."""
    index = np.arange(count, dtype=np.uint64)
    c0, c1 = index & _LOW, index >> _32
    c2, c3 = np.zeros_like(index), np.zeros_like(index)
    key0, key1 = seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    for _ in range(10):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (product1 >> _32) ^ c1 ^ np.uint64(key0),
            product1 & _LOW,
            (product0 >> _32) ^ c3 ^ np.uint64(key1),
            product0 & _LOW,
        )
        key0, key1 = (key0 + _WEYL[0]) & 0xFFFFFFFF, (key1 + _WEYL[1]) & 0xFFFFFFFF
    return [c0, c1, c2, c3]


def _unit(high: np.ndarray, low: np.ndarray, double: bool, above_zero: bool) -> np.ndarray:
    """Words as numbers in [0, 1), or in (0, 1] when `above_zero`."""
    whole = ((high << _32) | low) >> np.uint64(11) if double else high >> np.uint64(8)
    shifted = whole + np.uint64(1) if above_zero else whole
    return shifted.astype(np.float64 if double else np.float32) * (2.0**-53 if double else np.float32(2.0**-24))


@evaluates("mlc.random", "seed sizes*")
def random(call: Call, seed: np.ndarray, sizes: list[int]) -> np.ndarray:
    """Uniform numbers in [0, 1) or standard normal ones, row-major element index as the counter."""
    kind, shape = call.need("kind"), call.mixed("sizes", sizes)
    words = philox(int(np.asarray(seed).reshape(())), math.prod(shape))
    double = call.dtype() == np.float64
    if kind == "uniform":
        return _unit(words[0], words[1], double, False).reshape(shape)
    if kind != "normal":
        raise InterpError(f"mlc.random: unknown kind '{kind}'")
    radius = _unit(words[0], words[1], double, True)
    angle = _unit(words[2], words[3], True, False) if double else _unit(words[1], words[1], False, False)
    of = radius.dtype.type
    return (np.sqrt(of(-2) * np.log(radius)) * np.cos(of(2 * math.pi) * angle)).reshape(shape)
