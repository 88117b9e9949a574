#!/usr/bin/env python3
"""The hottest kernels of whole models, and how near each is to what the machine can do.

    python bench/hottest.py net.onnx other.onnx            # ten kernels of each
    python bench/hottest.py net.onnx --input x=1x3x224x224 --threads 1,2 --top 20 --json hot.json

A model is compiled, run with every kernel timed, and its kernels are listed by the time that they take in a run. A
kernel's bound is the least time that its FLOPs take at this machine's arithmetic peak, or its bytes (every tensor once)
at the speed of a copy of as many bytes, whichever is more; its share is that bound over the least time of a call, or,
where calls differ in their extents, over the least mean of a run. Copies are at least 512 KB large: what a kernel reads
was written by another one, and is no nearer than the second level of cache. Exponentials, divisions and the like count
as one FLOP each, so kernels full of them stay far from either bound. `products` is the share of the time that
contractions, convolutions and attention take together.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measure import check_files, random_inputs, shape_option

from mlc.bench.output import machine
from mlc.bench.peak import Peak, arithmetic_seconds, build
from mlc.bench.subject import CompileError, compile_model
from mlc.runtime.loader import load

COLUMNS = ("kernel", "template", "calls", "ms a run", "share", "us a call", "GFLOP/s", "GB/s", "bound", "of it", "node")
NEAREST = 512 << 10  # bytes
LOW = 0.6


class Machine:
    """The rates of this machine, each measured when it is first asked for."""

    def __init__(self, program: Path | None, threads: int, precision: str) -> None:
        self._program, self._threads = program, threads
        self._precision = precision
        self._copies: dict[int, float | None] = {}
        self._peak = self._sampled(Peak(program, threads, precision))
        self._byte_peak: float | None = None

    @staticmethod
    def _sampled(rate: Peak) -> float | None:
        for _ in range(8):
            rate.sample()
        return rate.best

    @property
    def peak(self) -> float | None:
        """GFLOP/s."""
        return self._peak

    @property
    def byte_peak(self) -> float | None:
        """GFLOP/s of products of bytes; the other peak where none is known."""
        if self._byte_peak is None:
            self._byte_peak = self._sampled(Peak(self._program, self._threads, "int8")) or self._peak
        return self._byte_peak

    def _compute(self, kernel: Mapping[str, Any]) -> float:
        """Seconds that a kernel's arithmetic takes at the peaks."""
        flops, of_bytes = kernel["flops"] or 0, kernel["byte_flops"] or 0
        if not self.peak:
            return 0.0
        return arithmetic_seconds(flops, of_bytes, self.peak, self.byte_peak if of_bytes else None) or 0.0

    def copy(self, size: int) -> float | None:
        """GB/s of a copy that touches `size` bytes, to the nearest power of two."""
        rounded = max(NEAREST, 1 << (size - 1).bit_length())
        if rounded not in self._copies:
            self._copies[rounded] = self._sampled(Peak(self._program, self._threads, "copy", rounded))
        return self._copies[rounded]

    def bound(self, kernel: Mapping[str, Any]) -> tuple[str, float] | None:
        """Which bound of a kernel of the report is nearer, and its seconds."""
        copy = self.copy(kernel["bytes"]) if kernel["bytes"] else None
        times = {
            "compute": self._compute(kernel),
            "memory": kernel["bytes"] / copy / 1e9 if copy else 0.0,
        }
        name = max(times, key=lambda n: times[n])
        return (name, times[name]) if times[name] else None


def profile(library: Path, inputs: Mapping[str, Any], threads: int, runs: int) -> dict[str, dict[str, Any]]:
    """Calls and nanoseconds of every kernel over `runs` runs, the least nanoseconds of a call (`min_ns`), and those of
    its mean call in a run (`mean_ns`)."""
    model = load(library, threads=threads)
    found: dict[str, dict[str, Any]] = {}
    with model.context(profile=True) as context:
        for _ in range(3):
            context.run(inputs)
        context.profile()
        for _ in range(runs):
            context.run(inputs)
            for kernel in context.profile()["kernels"]:
                add_run(found, kernel)
    return found


def add_run(found: dict[str, dict[str, Any]], kernel: Mapping[str, Any]) -> None:
    """Adds what one run says of a kernel."""
    mean = kernel["ns"] / max(1, kernel["calls"])
    entry = found.setdefault(kernel["name"], {**kernel, "calls": 0, "ns": 0, "mean_ns": mean})
    entry["calls"] += kernel["calls"]
    entry["ns"] += kernel["ns"]
    entry["min_ns"], entry["mean_ns"] = min(entry["min_ns"], kernel["min_ns"]), min(entry["mean_ns"], mean)


def records(report: Mapping[str, Any], timed: Mapping[str, Any], here: Machine, runs: int) -> list[dict[str, Any]]:
    """What is known of every kernel that ran, hottest first."""
    found = []
    total = sum(kernel["ns"] for kernel in timed.values())
    for kernel in report["kernels"]:
        times = timed.get(kernel["name"])
        if not times or not times["calls"]:
            continue
        # The report has the mean work of launches that differ.
        ns = times["mean_ns"] if kernel["uneven"] else times["min_ns"]
        seconds, bound = ns / 1e9, here.bound(kernel)
        found.append({
            "name": kernel["name"], "template": kernel["template"], "nodes": kernel["nodes"],
            "calls": times["calls"] / runs, "ms": times["ns"] / runs / 1e6, "share": times["ns"] / total,
            "product": kernel["contraction"], "us": seconds * 1e6,
            "gflops": (kernel["flops"] or 0) / seconds / 1e9, "gbs": (kernel["bytes"] or 0) / seconds / 1e9,
            "bound": bound[0] if bound else None, "of_bound": bound[1] / seconds if bound else None,
        })  # fmt: skip
    return sorted(found, key=lambda record: -record["ms"])


def show(title: str, found: Sequence[Mapping[str, Any]], top: int) -> None:
    """Prints the table of one model."""
    total = sum(record["ms"] for record in found)
    products = sum(record["ms"] for record in found if record["product"])
    print(f"\n{title}: {total:.3f} ms in {len(found)} kernels, products {products / total:.1%}")
    rows = [COLUMNS]
    for r in found[:top]:
        more = f" and {len(r['nodes']) - 1} more" if len(r["nodes"]) > 1 else ""
        rows.append((
            r["name"], r["template"], f"{r['calls']:g}", f"{r['ms']:.3f}", f"{r['share']:.1%}", f"{r['us']:.1f}",
            f"{r['gflops']:.1f}", f"{r['gbs']:.1f}", r["bound"] or "", f"{r['of_bound']:.0%}" if r["of_bound"] else "",
            (r["nodes"][0] if r["nodes"] else "") + more,
        ))  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths, strict=False)]
        numbers = [cell.rjust(width) for cell, width in zip(row[2:-1], widths[2:], strict=False)]
        print("  ".join([*left, *numbers, row[-1]]))
    low = [r["name"] for r in found[:top] if r["of_bound"] is not None and r["of_bound"] < LOW]
    print(f"below {LOW:.0%} of their bound: {', '.join(low) or 'none'}", flush=True)


def bench(model: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The data of one model at every number of threads. Raises CompileError."""
    inputs = random_inputs(model, dict(options.input))
    found = []
    with tempfile.TemporaryDirectory(prefix="mlc-hottest-") as name:
        folder = Path(name)
        shapes = {given: array.shape for given, array in inputs.items()}
        library, *_, report = compile_model(model, folder, options.precision, shapes)
        program = build(folder)
        for threads in options.threads:
            here = Machine(program, threads, options.precision)
            kernels = records(report, profile(library, inputs, threads, options.runs), here, options.runs)
            plural = "s" if threads > 1 else ""
            show(f"{model.stem}, {threads} thread{plural}, peak {here.peak or 0:.0f} GFLOP/s", kernels, options.top)
            found.append({"model": model.stem, "threads": threads, "peak_gflops": here.peak, "kernels": kernels})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL.onnx")
    parser.add_argument("--input", type=shape_option, action="append", default=[], help="NAME=1x3x224x224")
    parser.add_argument("--threads", type=lambda t: [int(p) for p in t.split(",")], default=[1], help="1,2 (default 1)")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    check_files(options.models)
    data: list[dict[str, Any]] = []
    failed = False
    for model in options.models:
        try:
            data += bench(model, options)
        except CompileError as error:
            print(f"{model}: {error}", file=sys.stderr)
            failed = True
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "models": data}, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
