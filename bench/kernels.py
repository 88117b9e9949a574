#!/usr/bin/env python3
"""Single kernels against onnxruntime and OpenVINO, and against what the machine can do.

    python bench/kernels.py                          # all of them: about half an hour
    python bench/kernels.py --only 'gemm|conv:64x'   # those whose family:name matches
    python bench/kernels.py --gemm 300x70x500        # a product [300, 500] x [500, 70] with a constant right side
    python bench/kernels.py --products 32            # so many products of sizes that are drawn
    python bench/kernels.py --transposes 32          # so many transpositions
    python bench/kernels.py --date 2026-11-21        # the odd sizes of another day
    python bench/kernels.py --json k.json --chart k.html

Every kernel is an ONNX model of one node. Engines run in processes of their own, are compared with onnxruntime first,
and are timed in bursts that take turns. In the same rounds the machine's arithmetic peak is measured, and the speed
of a copy that touches as many bytes as the kernel, so that caches count for both. A kernel's share is that of the
bound that is nearer: the time that its arithmetic or its bytes take at least, over the time that it takes. That is
compared round by round, as engines are, arithmetic with stretches of the peak as long as a call: what takes time from
all programs alike, interrupts and busy neighbours, is no part of it. FLOPs are
those that are needed: taps in the padding of a convolution are not. What a call of an engine takes that does nothing
is measured first, and is no part of rates and shares; ratios are those of whole calls. The sizes that no model has are
drawn by the date. Exits 1 when a kernel of mlc does not compile or differs from onnxruntime.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from kernel_cases import Case, gemm, nothing
from kernel_lists import cases, drawn_products, drawn_transposes

from mlc.bench.chart import Point, page, roofline, table, write_page
from mlc.bench.contest import Plan, Result, WorkerError, contest, paired_ratio, save_reference
from mlc.bench.engines import ENGINES
from mlc.bench.output import machine
from mlc.bench.peak import Peak, build
from mlc.bench.subject import CompileError, make_subject
from mlc.runtime.errors import MlcError

PEERS = ("onnxruntime", "openvino")
THROUGH_MEMORY = 1 << 28  # bytes of a copy that no cache holds
TOLERANCE = 1e-4
COLUMNS = ("kernel", "engine", "ms", "GFLOP/s", "GB/s", "bound", "share", "mlc is", "error")


def measure(
    case: Case, engines: Sequence[str], plan: Plan, program: Path | None, peak: Peak, calls: Mapping[str, float]
) -> dict[str, Any]:
    """The data of one kernel at the threads of `peak`, which is sampled once more each round. `calls` are the
    milliseconds of a call that does nothing, by engine. Raises what compiling or the reference raises.
    """
    threads = peak.threads
    with tempfile.TemporaryDirectory(prefix="mlc-kernel-") as name:
        folder = Path(name)
        path = folder / "kernel.onnx"
        onnx.save(case.model, path)
        subject = make_subject(path, folder, specs=case.specs, dims={}, shapes={})
        save_reference(subject.job(subject.references()[0], threads), folder / "reference.npz", plan.timeout)
        copy = Peak(program, threads, "copy", case.bytes)

        def each_round() -> None:
            peak.sample()
            copy.sample()

        jobs = [subject.job(engine, threads) for engine in engines]
        sampled = len(peak.samples)
        results = contest(jobs, folder / "reference.npz", plan, each_round, lambda text: None)
        flops = case.flops if case.flops is not None else subject.compiled.flops
    ours = results[0]
    rounds = range(sampled, len(peak.samples))
    return {
        "family": case.family,
        "kernel": case.name,
        "threads": threads,
        "flops": flops,
        "bytes": case.bytes,
        "peak_gflops": peak.best,
        "copy_gbs": copy.best,
        "copies_gbs": [sample[0] for sample in copy.samples],
        "ratio": paired_ratio(ours, [r for r in results[1:] if r.status == "ok"]),
        "engines": [
            _engine(r, ours, flops, case.bytes, calls.get(r.engine, 0.0))
            | {"peaks_gflops": [peak.typical(number, (r.median or 0.0) / 1e3) for number in rounds]}
            for r in results
        ],
    }


def call_times(engines: Sequence[str], plan: Plan, peak: Peak) -> dict[str, float]:
    """Milliseconds of a call that does nothing, by engine."""
    record = measure(nothing(), engines, plan, None, peak, {})
    return {e["engine"]: e["median_ms"] for e in record["engines"] if e["median_ms"]}


def add_shares(record: dict[str, Any]) -> None:
    """Adds which bound is nearer, and each engine's share of it, to the data of a kernel."""
    peak, copy, flops = record["peak_gflops"], record["copy_gbs"], record["flops"] or 0
    least = {"compute": flops / peak / 1e9 if peak else None, "memory": record["bytes"] / copy / 1e9 if copy else None}
    known = {bound: value for bound, value in least.items() if value is not None}
    bound = max(known, key=lambda name: known[name], default=None)
    record["bound"] = bound
    for engine in record["engines"]:
        engine["share"] = None
        if bound == "compute" and engine["net_rounds_ms"]:
            pairs = zip(engine["peaks_gflops"], engine["net_rounds_ms"], strict=False)  # a peak may be out of reach
            engine["share"] = statistics.median(flops / rate / 1e6 / milliseconds for rate, milliseconds in pairs)
        elif bound == "memory" and engine["net_rounds_ms"]:
            pairs, size = zip(record["copies_gbs"], engine["net_rounds_ms"], strict=False), record["bytes"]
            engine["share"] = statistics.median(size / rate / 1e6 / milliseconds for rate, milliseconds in pairs)


def _engine(result: Result, ours: Result, flops: int | None, size: int, call: float) -> dict[str, Any]:
    # At least a tenth: a kernel that takes less than calls differ by has no rate.
    rounds = [max(milliseconds - call, milliseconds / 10) for milliseconds in result.rounds]
    net = statistics.median(rounds) if rounds else None
    seconds = net / 1e3 if net else None
    return {
        "engine": result.engine,
        "status": result.status,
        "message": result.message,
        "median_ms": result.median,
        "net_ms": net,
        "best_ms": result.best,
        "rounds_ms": result.rounds,
        "net_rounds_ms": rounds,
        "relative_error": result.relative_error,
        "gflops": flops / seconds / 1e9 if flops and seconds else None,
        "gbs": size / seconds / 1e9 if seconds else None,
        "ratio": None if result is ours else paired_ratio(ours, [result]),
    }


def rows(record: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The lines of one kernel, by COLUMNS."""
    lines: list[tuple[str, ...]] = []
    for e in record["engines"]:
        name = f"{record['family']}:{record['kernel']}" if e["engine"] == "mlc" else ""
        if e["status"] == "failed":
            lines.append((name, e["engine"], "", "", "", "", "", "", f"failed: {e['message']}"))
            continue
        error = "?" if e["relative_error"] is None else f"{e['relative_error']:.0e}"
        lines.append((
            name, e["engine"], f"{e['median_ms']:.4f}", f"{e['gflops']:.1f}" if e["gflops"] else "",
            f"{e['gbs']:.1f}", record["bound"] or "", f"{e['share']:.0%}" if e["share"] else "",
            f"{e['ratio']:.2f}x" if e["ratio"] else "", error + ("" if e["status"] == "ok" else " DIFFERS"),
        ))  # fmt: skip
    return lines


def show(record: Mapping[str, Any]) -> None:
    widths = (34, 12, 10, 9, 8, 8, 6, 7)
    for line in rows(record):
        names = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(line[2:-1], widths[2:], strict=True)]
        print(*names, *numbers, line[-1], flush=True)


def markdown(data: Mapping[str, Any]) -> str:
    """The tables of `bench/results`: a line for a kernel, slowest against its best peer first."""
    parts = list[str]()
    for threads in dict.fromkeys(record["threads"] for record in data["kernels"]):
        lines = [_summary(r) for r in data["kernels"] if r["threads"] == threads]
        parts += [f"### {threads} thread{'s' if threads > 1 else ''}", ""]
        names = ("kernel", "mlc, us", "best peer", "its us", "best peer / mlc", "bound", "share")
        parts += [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
        parts += [text for _, text in sorted(lines)] + [""]
    return "\n".join(parts)


def _summary(record: Mapping[str, Any]) -> tuple[float, str]:
    """The ratio of a kernel, and its line."""
    ours, *peers = record["engines"]
    best = min((p for p in peers if p["status"] == "ok"), key=lambda p: p["net_ms"], default=None)
    if ours["net_ms"] is None:
        return 0.0, f"| {record['family']}:{record['kernel']} | failed | | | | | |"
    cells = [f"{record['family']}:{record['kernel']}", f"{ours['net_ms'] * 1e3:.1f}", "", "", "", record["bound"] or ""]
    ratio = best["net_ms"] / ours["net_ms"] if best else 0.0
    if best:
        cells[2:5] = [best["engine"], f"{best['net_ms'] * 1e3:.1f}", f"{ratio:.2f}"]
    cells.append(f"{ours['share']:.0%}" if ours["share"] else "")
    return ratio, f"| {' | '.join(cells)} |"


def chart(data: Mapping[str, Any]) -> str:
    """The page: a roofline and a table for every number of threads."""
    parts = [f"<p>{data['machine']['cpu']}, {data['date']}. Green: mlc; grey: its peers.</p>"]
    for threads in dict.fromkeys(record["threads"] for record in data["kernels"]):
        records = [r for r in data["kernels"] if r["threads"] == threads]
        parts.append(f"<h2>{threads} thread{'s' if threads > 1 else ''}</h2>")
        peaks, copies = [r["peak_gflops"] for r in records], [r["copy_gbs"] for r in records]
        if all(peaks) and all(copies):
            # The roof of memory is that of the largest kernel: the others are in caches.
            largest = max(records, key=lambda r: r["bytes"])
            parts.append(roofline(points(records), max(peaks), largest["copy_gbs"]))
        parts.append(table(COLUMNS, [row for record in records for row in rows(record)]))
    return page("Single kernels", parts)


def points(records: Sequence[Mapping[str, Any]]) -> list[Point]:
    """A point for every engine that ran a kernel; ours last, so that it is on top."""
    found = []
    for record in records:
        for e in record["engines"]:
            if e["gflops"]:
                kind = "mlc" if e["engine"] == "mlc" else "peer"
                name = f"{record['family']} {record['kernel']}, {e['engine']}"
                found.append(Point(name, record["flops"] / record["bytes"], e["gflops"], kind))
    return sorted(found, key=lambda point: point.kind == "mlc")


def run(options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """All data, and whether every kernel of mlc was right."""
    engines = ["mlc"]
    for name in PEERS:
        if ENGINES[name].installed:
            engines.append(name)
        else:
            print(f"{name}: not installed (pip install {' '.join(ENGINES[name].packages)})")
    chosen = [gemm(*shape) for shape in options.gemm] + list(drawn_products(options.date, options.products))
    chosen += drawn_transposes(options.date, options.transposes)
    chosen = chosen or [c for c in cases(options.date) if re.search(options.only, f"{c.family}:{c.name}")]
    plan = Plan(options.rounds, options.burst, TOLERANCE, timeout=300)
    right, records = True, list[dict[str, Any]]()
    with tempfile.TemporaryDirectory(prefix="mlc-peak-") as folder:
        program = build(Path(folder))
        for threads in options.threads:
            print(f"{threads} thread{'s' if threads > 1 else ''}")
            peaks = {kind: Peak(program, threads, kind) for kind in sorted({case.arithmetic for case in chosen})}
            calls = call_times(engines, plan, peaks["fp32"] if "fp32" in peaks else Peak(program, threads))
            print("a call:", ", ".join(f"{name} {value * 1e3:.1f} us" for name, value in calls.items()), flush=True)
            memory = Peak(program, threads, "copy", THROUGH_MEMORY)
            for case in chosen:
                peak = peaks[case.arithmetic]
                if case.family == "transpose":
                    memory.sample()
                try:
                    records.append(measure(case, engines, plan, program, peak, calls))
                except (CompileError, WorkerError, MlcError) as error:
                    print(f"{case.family}:{case.name}: {error}")
                    right = False
                    continue
                add_shares(records[-1])
                show(records[-1])
                right &= records[-1]["engines"][0]["status"] == "ok"
            if memory.best:
                show_slowest(records, threads, memory.best)
    versions = {name: ENGINES[name].version for name in engines}
    return {"machine": machine(), "date": options.date, "versions": versions, "kernels": records}, right


def show_slowest(records: Sequence[dict[str, Any]], threads: int, memory: float) -> None:
    """Shows what a copy through memory reaches (GB/s), and the transposition that is slowest beside it."""
    moved = [r for r in records if r["family"] == "transpose" and r["threads"] == threads]
    rates = [(r["engines"][0]["gbs"], r["kernel"]) for r in moved if r["engines"][0]["gbs"]]
    rate, name = min(rates, default=(0.0, "none"))
    slowest = f"the slowest transposition, {name}, {rate:.1f}: {rate / memory:.0%}"
    print(f"a copy through memory has {memory:.1f} GB/s, {slowest}", flush=True)


def integers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def products(text: str) -> list[tuple[int, int, int]]:
    """`128x768x768,1x64x64` -> shapes (M, N, K)."""
    shapes = [[int(n) for n in part.split("x")] for part in text.split(",")]
    return [(m, n, k) for m, n, k in shapes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="regular expression for family:name")
    parser.add_argument("--gemm", type=products, default=[], metavar="MxNxK,…", help="these products and nothing else")
    parser.add_argument("--products", type=int, default=0, metavar="N", help="N drawn products and nothing else")
    parser.add_argument("--transposes", type=int, default=0, metavar="N", help="N drawn transpositions")
    parser.add_argument("--threads", type=integers, default=[1], help="comma-separated (default 1)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--burst", type=float, default=0.05, help="seconds of a burst (default 0.05)")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="draws the odd sizes (default today)")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--markdown", type=Path, help="write the table of times less those of calls to this .md file")
    parser.add_argument("--chart", type=Path, help="write a page with rooflines to this .html file")
    options = parser.parse_args()
    data, right = run(options)
    if options.json:
        write_page(options.json, json.dumps(data, indent=1) + "\n")
    if options.markdown:
        write_page(options.markdown, markdown(data))
    if options.chart:
        write_page(options.chart, chart(data))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
