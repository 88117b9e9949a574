"""A GPU through the CUDA driver: memory with random numbers, and the time of work by replays of graphs.

Needs NumPy and the driver, no compiler and no CUDA toolkit: what a compiler has made elsewhere is measured where the
GPU is.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.runtime import abi

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: other threads may go on
_NOT_READY = 600
_PATIENCE = 30.0  # seconds after which a launch counts as hanging
_BLOCK = 1 << 20  # random numbers that are drawn; larger tensors repeat them
_CUDA = 2  # DLPack's device type
_CODES = {"bool": (6, 8), "bfloat16": (4, 16)}
_KINDS = {"int": 0, "uint": 1, "float": 2}


class GpuError(OSError):
    """There is no GPU to measure on, or a call of its driver failed."""


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", abi.Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Driver:
    """The CUDA driver and one stream of GPU `device`. Raises GpuError when there is none."""

    def __init__(self, device: int = 0) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise GpuError("there is no NVIDIA driver (libcuda.so.1) on this machine") from error
        self.device = device
        number, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(number), device)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self("cuCtxPushCurrent_v2", context)
        self._stream = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(self._stream), 1)
        major, minor = (self._attribute(which, number) for which in (75, 76))
        self.capability = (major, minor)

    def __call__(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(code, ctypes.byref(text))
            raise GpuError(f"{name}: {(text.value or b'unknown error').decode()}")

    def _attribute(self, which: int, number: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self("cuDeviceGetAttribute", ctypes.byref(value), which, number)
        return value.value

    @property
    def stream(self) -> int:
        """The stream's address, as `Context.run` takes it."""
        return self._stream.value or 0

    def wait(self) -> None:
        """Waits for the stream; a process whose kernel hangs ends here."""
        event = self._record()
        began = time.monotonic()
        query = getattr(self._library, "cuEventQuery", None)
        while query is not None and query(event) == _NOT_READY:
            if time.monotonic() - began > _PATIENCE:
                print("a kernel does not end", flush=True)
                os._exit(7)
            time.sleep(0.0002)
        self("cuStreamSynchronize", self._stream)
        self("cuEventDestroy_v2", event)

    def _record(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self("cuEventCreate", ctypes.byref(event), 0)
        self("cuEventRecord", event, self._stream)
        return event

    def graph(self, work: Callable[[int], None], repeats: int) -> Graph:
        """`repeats` calls of `work`, which launches on the stream, as one graph."""
        captured, ready = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuStreamBeginCapture_v2", self._stream, _RELAXED)
        try:
            for number in range(repeats):
                work(number)
        finally:
            self("cuStreamEndCapture", self._stream, ctypes.byref(captured))
        self("cuGraphInstantiateWithFlags", ctypes.byref(ready), captured, ctypes.c_ulonglong(0))
        self("cuGraphDestroy", captured)
        return Graph(self, ready, repeats)


class Graph:
    """Recorded work. Use as a context manager."""

    def __init__(self, driver: Driver, handle: ctypes.c_void_p, repeats: int) -> None:
        self._driver, self._handle, self._repeats = driver, handle, repeats

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver("cuGraphExecDestroy", self._handle)

    def microseconds(self) -> float:
        """The time of one of its calls, over one replay."""
        driver = self._driver
        begin = driver._record()
        driver("cuGraphLaunch", self._handle, driver._stream)
        end = driver._record()
        driver.wait()
        elapsed = ctypes.c_float()
        driver("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
        for event in (begin, end):
            driver("cuEventDestroy_v2", event)
        return elapsed.value * 1e3 / self._repeats


class DeviceArray:
    """A tensor on the GPU, which exports itself by DLPack: random numbers, or zeros for integers. `dtype` is a name as
    models have it (bfloat16, float32, …)."""

    def __init__(self, driver: Driver, dtype: str, shape: Sequence[int], seed: int) -> None:
        code, bits = _type(dtype)
        self._driver, self.dtype, self.shape = driver, dtype, tuple(shape)
        self._count = int(np.prod(self.shape, dtype=np.int64))
        self._bytes = max(1, self._count * bits // 8)
        self._address = ctypes.c_uint64()
        driver("cuMemAlloc_v2", ctypes.byref(self._address), ctypes.c_size_t(self._bytes))
        self._extents = (ctypes.c_int64 * max(1, len(self.shape)))(*self.shape)
        extents = ctypes.addressof(self._extents)
        described = (self._address.value, _CUDA, driver.device, len(self.shape), code, bits, 1, extents, None, 0)
        self._exported = _Managed(abi.Tensor(*described))
        self.fill(_random(dtype, min(self._count, _BLOCK), seed))

    def __dlpack__(self, **_: Any) -> Any:
        return _new_capsule(ctypes.addressof(self._exported), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self._driver.device

    def fill(self, content: np.ndarray) -> None:
        """Writes `content`, over and over."""
        pattern, image = content.view(np.uint8).reshape(-1)[: self._bytes], np.empty(self._bytes, np.uint8)
        whole = self._bytes // pattern.size * pattern.size
        image[:whole].reshape(-1, pattern.size)[:] = pattern
        image[whole:] = pattern[: self._bytes - whole]
        source = ctypes.c_void_p(image.ctypes.data)
        self._driver("cuMemcpyHtoD_v2", self._address, source, ctypes.c_size_t(self._bytes))

    def poison(self) -> None:
        """Writes what is no number over everything."""
        self.fill(np.full(_BLOCK, 0xFF, np.uint8))

    def read(self, most: int) -> np.ndarray:
        """The first elements, at most `most`, as float64."""
        size = min(self._bytes, most * _type(self.dtype)[1] // 8)
        raw, stream = np.empty(size, np.uint8), self._driver._stream
        target = ctypes.c_void_p(raw.ctypes.data)
        self._driver("cuMemcpyDtoHAsync_v2", target, self._address, ctypes.c_size_t(size), stream)
        self._driver("cuStreamSynchronize", stream)
        if self.dtype == "bfloat16":
            return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return raw.view(np.dtype(self.dtype)).astype(np.float64)

    def free(self) -> None:
        """Gives the memory back; the array cannot be used afterwards."""
        self._driver("cuMemFree_v2", self._address)


def _type(dtype: str) -> tuple[int, int]:
    """DLPack's code and bits of a type."""
    if dtype in _CODES:
        return _CODES[dtype]
    kind = dtype.rstrip("0123456789")
    if kind not in _KINDS:
        raise GpuError(f"tensors of {dtype} are not measured")
    return _KINDS[kind], int(dtype[len(kind) :])


def _random(dtype: str, count: int, seed: int) -> np.ndarray:
    """Normal numbers of a floating-point type; zeros of others, which may be indices."""
    code, bits = _type(dtype)
    if code not in (2, 4):
        return np.zeros(max(1, count * bits // 8), np.uint8)
    numbers = np.random.default_rng(seed).standard_normal(max(1, count), np.float32)
    if dtype == "bfloat16":
        return (numbers.view(np.uint32) >> 16).astype(np.uint16)
    return numbers.astype(np.dtype(dtype))
