"""Runs a bundle (`gpu/bundle.py`) on this machine's GPU and compares with NumPy in float64.

    python -m gpu.run FOLDER [REPORT.json]     (with test/ on the module path)

Needs NumPy and the CUDA driver. Every tensor lies between guard bands at an address that is a multiple of 16 bytes and
no more; destinations are poisoned; guards and inputs must be untouched afterwards. Cases marked `bench` are timed too.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from models.gpu_cases import Case, bench_cases, cases, differences

ELEMENTS = {"f32": "f4", "f64": "f8", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1"}
_SHIFT, _GUARD, _POISON = 256 + 16, 0xA5, 0xFF
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_PATIENCE = 20.0  # seconds after which a launch counts as hanging


class Driver:
    """The CUDA driver API, as far as needed. Raises RuntimeError when a call fails."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)

    def __call__(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def load(self, path: Path, name: str) -> ctypes.c_void_p:
        """The kernel `name` of a cubin."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), path.read_bytes())
        self("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def wait(self) -> None:
        """Waits for the GPU; a process whose kernel hangs ends here."""
        event = self.record()
        began = time.monotonic()
        while self.library.cuEventQuery(event) == 600:
            if time.monotonic() - began > _PATIENCE:
                print("HANG", flush=True)
                os._exit(7)
            time.sleep(0.0005)
        self("cuCtxSynchronize")
        self("cuEventDestroy_v2", event)

    def record(self) -> ctypes.c_void_p:
        """A new event at the end of what has been launched."""
        event = ctypes.c_void_p()
        self("cuEventCreate", ctypes.byref(event), 0)
        self("cuEventRecord", event, None)
        return event

    def microseconds(self, work: Any, repeats: int = 20) -> float:
        """The median time of `work()` over five rounds of `repeats`."""
        times = []
        for _ in range(5):
            begin = self.record()
            for _ in range(repeats):
                work()
            end = self.record()
            self("cuEventSynchronize", end)
            elapsed = ctypes.c_float()
            self("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
            times.append(elapsed.value * 1e3 / repeats)
        return sorted(times)[len(times) // 2]


class Buffer:
    """Device memory with guards around it, filled with poison or with an array."""

    def __init__(self, driver: Driver, nbytes: int, content: np.ndarray | None = None) -> None:
        self.driver, self.nbytes, self.content = driver, nbytes, content
        self.base = ctypes.c_uint64()
        driver("cuMemAlloc_v2", ctypes.byref(self.base), ctypes.c_size_t(nbytes + 2 * _SHIFT))
        image = np.full(nbytes + 2 * _SHIFT, _GUARD, np.uint8)
        image[_SHIFT : _SHIFT + nbytes] = _POISON if content is None else content.reshape(-1).view(np.uint8)
        driver("cuMemcpyHtoD_v2", self.base, image.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(image.nbytes))

    @property
    def address(self) -> int:
        return self.base.value + _SHIFT

    def read(self) -> tuple[np.ndarray, str]:
        """The bytes, and what is wrong with the guards or with an input, if anything."""
        image = np.empty(self.nbytes + 2 * _SHIFT, np.uint8)
        self.driver("cuMemcpyDtoH_v2", image.ctypes.data_as(ctypes.c_void_p), self.base, ctypes.c_size_t(image.nbytes))
        body = image[_SHIFT : _SHIFT + self.nbytes]
        if (image[:_SHIFT] != _GUARD).any() or (image[_SHIFT + self.nbytes :] != _GUARD).any():
            return body, "a guard band was written"
        if self.content is not None and not np.array_equal(body, self.content.reshape(-1).view(np.uint8)):
            return body, "an input was written"
        return body, ""

    def free(self) -> None:
        self.driver("cuMemFree_v2", self.base)


class Program:
    """One case on the GPU."""

    def __init__(self, driver: Driver, folder: Path, program: dict[str, Any], case: Case, constants: Any) -> None:
        self.driver, self.program, self.case = driver, program, case
        self.inputs = case.inputs()
        self.buffers = [self._buffer(b, constants) for b in program["buffers"]]
        self.error = Buffer(driver, 16)
        driver("cuMemsetD8_v2", ctypes.c_uint64(self.error.address), 0, ctypes.c_size_t(16))
        self.functions = {n: driver.load(folder / f"{n}.cubin", n) for n in program["kernels"]}

    def _buffer(self, described: dict[str, Any], constants: Any) -> Buffer:
        dtype = np.dtype(ELEMENTS[described["element"]])
        count = int(np.prod(described["shape"], dtype=np.int64))
        content = None
        if "input" in described:
            content = np.ascontiguousarray(self.inputs[described["input"]])
        elif "constant" in described:
            content = np.ascontiguousarray(constants[described["constant"]])
        if content is not None and content.nbytes != count * dtype.itemsize:
            raise ValueError(f"{self.case.name}: {described} does not fit its array of {content.nbytes} bytes")
        return Buffer(self.driver, count * dtype.itemsize, content)

    def launch(self, described: dict[str, Any]) -> None:
        """Launches one kernel, behind the copies of what it updates; nothing for an empty grid."""
        kernel = self.program["kernels"][described["kernel"]]
        per_block = kernel["threads"] // kernel["group"]
        blocks = -(-described["items"] // per_block)
        for source, target in described["copies"]:
            size = ctypes.c_size_t(self.buffers[source].nbytes)
            places = (ctypes.c_uint64(self.buffers[number].address) for number in (target, source))
            self.driver("cuMemcpyDtoD_v2", *places, size)
        if not blocks:
            return
        pointers = [self.buffers[i].address for i in described["buffers"]]
        values = [*pointers, *described["indices"], self.error.address, described["items"]]
        if len(values) != kernel["tensors"] + kernel["indices"] + 2:
            raise ValueError(f"{self.case.name}: {described['kernel']} takes other arguments")
        words = [ctypes.c_uint64(v) for v in values]
        arguments = (ctypes.c_void_p * len(words))(*(ctypes.cast(ctypes.byref(w), ctypes.c_void_p) for w in words))
        function = self.functions[described["kernel"]]
        if kernel["shared"]:
            self.driver("cuFuncSetAttribute", function, _DYNAMIC_SHARED, kernel["shared"])
        shape = blocks, 1, 1, kernel["threads"], 1, 1, kernel["shared"]
        self.driver("cuLaunchKernel", function, *shape, None, arguments, None)

    def check(self) -> tuple[float, str]:
        """Runs everything; gives the largest error relative to the largest expected value, and what is wrong."""
        for launch in self.program["launches"]:
            self.launch(launch)
        self.driver.wait()
        problems = [p for b in self.buffers for p in [b.read()[1]] if p]
        word = self.error.read()[0].view(np.int64)
        if tuple(int(v) for v in word) != self.case.error:
            problems.append(f"error word {word.tolist()}, expected {list(self.case.error)}")
        worst = 0.0
        if self.case.error[0]:
            return worst, "; ".join(problems)
        for number, want in zip(self.program["outputs"], self.case.expected(self.inputs), strict=True):
            described = self.program["buffers"][number]
            got = self.buffers[number].read()[0].view(ELEMENTS[described["element"]])
            error, problem = _compare(got, np.asarray(want), self.case.tolerance)
            worst = max(worst, error)
            problems.extend([problem] if problem else [])
        return worst, "; ".join(dict.fromkeys(problems))

    def times(self) -> list[tuple[str, float, float]]:
        """(kernel, microseconds, GB/s of its tensors read or written once) of every launch."""
        rows = []
        for launch in self.program["launches"]:
            nbytes = sum(self.buffers[i].nbytes for i in launch["buffers"])
            micros = self.driver.microseconds(lambda launch=launch: self.launch(launch))
            rows.append((launch["kernel"], micros, nbytes / micros / 1e3))
        return rows

    def free(self) -> None:
        for buffer in [*self.buffers, self.error]:
            buffer.free()


def _compare(got: np.ndarray, want: np.ndarray, tolerance: float) -> tuple[float, str]:
    flat = want.reshape(-1)
    if got.size != flat.size:
        return float("inf"), f"{got.size} elements instead of {flat.size}"
    if not got.size:
        return 0.0, ""
    if flat.dtype.kind == "u":  # a bundle's integers have signs
        got = got.view(flat.dtype)
    difference = differences(got, flat)
    worst = float(difference.max())
    if worst > tolerance:
        wrong = np.flatnonzero(~(difference <= tolerance))
        at = int(wrong[0])
        return worst, f"{wrong.size} of {flat.size} wrong, first at {at}: {got[at]} instead of {flat[at]}"
    return worst, ""


def _copy_rate(driver: Driver, nbytes: int = 1 << 29) -> float:
    """GB/s of a copy on the device, bytes read and written."""
    a, b = ctypes.c_uint64(), ctypes.c_uint64()
    for buffer in (a, b):
        driver("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(nbytes))
        driver("cuMemsetD8_v2", buffer, 0x3C, ctypes.c_size_t(nbytes))
    micros = driver.microseconds(lambda: driver("cuMemcpyDtoDAsync_v2", b, a, ctypes.c_size_t(nbytes), None), 5)
    for buffer in (a, b):
        driver("cuMemFree_v2", buffer)
    return 2 * nbytes / micros / 1e3


def run_bundle(folder: Path) -> list[dict[str, Any]]:
    """Runs every case of the bundle; one result each, with `problem` empty where all is well."""
    driver = Driver()
    known = {case.name: case for case in [*cases(), *bench_cases()]}
    constants = np.load(folder / "constants.npz")
    results: list[dict[str, Any]] = []
    for described in json.loads((folder / "program.json").read_text()):
        case = known[described["name"]]
        result: dict[str, Any] = {"name": case.name, "error": float("inf"), "problem": "", "times": []}
        results.append(result)
        try:
            program = Program(driver, folder / case.name, described, case, constants)
            result["error"], result["problem"] = program.check()
            if case.bench and not result["problem"]:
                result["times"] = program.times()
            program.free()
        except (RuntimeError, ValueError) as error:
            result["problem"] = str(error)
        print(_line(result), flush=True)
        if "illegal" in result["problem"] or "launch failure" in result["problem"]:
            print("the context is lost; stopping", flush=True)
            return results
    print(f"copy on the device: {_copy_rate(driver):.0f} GB/s")
    return results


def _line(result: dict[str, Any]) -> str:
    state = "ok   " if not result["problem"] else "WRONG"
    times = "".join(f"  {name} {micros:.1f} us {rate:.0f} GB/s" for name, micros, rate in result["times"])
    return f"{state} {result['name']:<28} error {result['error']:.1e} {result['problem']}{times}"


def main() -> int:
    """Exit status 1 when a case is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("report", type=Path, nargs="?", metavar="REPORT.json")
    options = parser.parse_args()
    results = run_bundle(options.folder)
    if options.report:
        options.report.write_text(json.dumps(results, indent=1))
    wrong = [r["name"] for r in results if r["problem"]]
    print(
        f"{len(results) - len(wrong)} of {len(results)} cases right" + (f"; wrong: {', '.join(wrong)}" if wrong else "")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
