"""What a benchmark found, as plain data (JSON) and as a table."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlc import __version__
from mlc.bench.contest import Result, paired_ratio
from mlc.bench.engines import ENGINES
from mlc.bench.peak import arithmetic_seconds
from mlc.bench.subject import Subject, peer_file_bytes

SCHEMA = 1


@dataclass(frozen=True)
class Round:
    """All engines at one number of threads, and the arithmetic peaks (GFLOP/s) of that many: at the precision, and of
    integers of eight bits, where the model multiplies some."""

    threads: int
    results: list[Result]
    peak: float | None
    byte_peak: float | None = None

    def least_ms(self, subject: Subject) -> float | None:
        """Milliseconds that the arithmetic of a run takes at the peaks; None where one is not known."""
        flops, of_bytes = subject.compiled.flops, subject.compiled.byte_flops or 0
        seconds = arithmetic_seconds(flops, of_bytes, self.peak, self.byte_peak) if flops and self.peak else None
        return None if seconds is None else seconds * 1e3


def cpu_name() -> str:
    """The processor's name as the kernel gives it."""
    try:
        with open("/proc/cpuinfo") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return platform.processor()


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {"cpu": cpu_name(), "processors": len(os.sched_getaffinity(0)), "system": platform.platform()}


def plain(
    subject: Subject, rounds: Sequence[Round], missing: Sequence[str], reference: str, static: bool
) -> dict[str, Any]:
    """The JSON data of a benchmark; `reference` is the engine that the others were compared with. Times are in
    milliseconds unless their name says seconds; a ratio above 1 says that mlc is faster.
    """
    compiled = asdict(subject.compiled)
    del compiled["library"]
    return {
        "schema": SCHEMA,
        "compiler": f"mlc {__version__}",
        "model": subject.name,
        "precision": subject.precision,
        "static": static,
        "reference": reference,
        "machine": machine(),
        "inputs": {n: {"dtype": a.dtype.name, "shape": list(a.shape)} for n, a in subject.inputs.items()},
        "compiled": compiled,
        "missing": [{"engine": name, "install": install_hint(name)} for name in missing],
        "runs": [_run(subject, each) for each in rounds],
    }


def install_hint(engine: str) -> str:
    """The command that installs an engine."""
    return f"pip install {' '.join(ENGINES[engine].packages)}"


def _run(subject: Subject, each: Round) -> dict[str, Any]:
    ours = next(r for r in each.results if r.engine == "mlc")
    peers = [r for r in each.results if r is not ours and r.status == "ok"]
    best = min(peers, key=lambda r: r.median or float("inf"), default=None)
    return {
        "threads": each.threads,
        "peak_gflops": each.peak,
        "byte_peak_gflops": each.byte_peak,
        "best_peer": best.engine if best else None,
        "ratio": paired_ratio(ours, peers),
        "engines": [_engine(subject, each, ours, result) for result in each.results],
    }


def _engine(subject: Subject, each: Round, ours: Result, result: Result) -> dict[str, Any]:
    median, flops, least = result.median, subject.compiled.flops, each.least_ms(subject)
    gflops = flops / median * 1e-6 if median and flops else None
    size = result.file_bytes or peer_file_bytes(subject, result.engine)
    return {
        "engine": result.engine,
        "version": ENGINES[result.engine].version,
        "precision": ENGINES[result.engine].precision(subject.precision),
        "status": result.status,
        "message": result.message,
        "median_ms": median,
        "best_ms": result.best,
        "rounds_ms": result.rounds,
        "relative_error": result.relative_error,
        "gflops": gflops,
        "share_of_peak": least / median if least and median else None,
        "ratio": None if result is ours else paired_ratio(ours, [result]),
        "load_seconds": result.load_seconds,
        "memory_bytes": result.memory_bytes,
        "file_bytes": size,
    }


# --- The table --------------------------------------------------------------------------------------------------


def amount(number: float | None, unit: str) -> str:
    """A number with three digits and a prefix: `4.09 GFLOP`; empty when it is not known."""
    if number is None:
        return ""
    factor, prefix = next(((f, p) for f, p in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if number >= f), (1.0, ""))
    return f"{number / factor:.3g} {prefix}{unit}"


def headline(data: Mapping[str, Any]) -> list[str]:
    """What is said above the tables."""
    compiled = data["compiled"]
    shapes = ", ".join(f"{n} {v['dtype']}[{','.join(map(str, v['shape']))}]" for n, v in data["inputs"].items())
    memory = compiled["weight_bytes"], compiled["arena_bytes"]
    parts = [f"weights {amount(memory[0], 'B')}", f"arena {amount(memory[1], 'B') or '?'}"]
    parts += [f"file {amount(compiled['file_bytes'], 'B')}", f"{compiled['kernels']} kernels"]
    parts += [amount(compiled["flops"], "FLOP") or "FLOPs depend on the data"]
    versions = {e["engine"]: e["version"] for run in data["runs"] for e in run["engines"]}
    engines = ", ".join(f"{name} {version}".strip() for name, version in versions.items())
    return [
        f"{data['model']} ({data['precision']}): {shapes}",
        f"compiled in {compiled['seconds']:.1f} s with {amount(compiled['peak_bytes'], 'B')}; " + ", ".join(parts),
        f"{engines}; reference: {data['reference']}",
    ]


COLUMNS = ("engine", "ms", "GFLOP/s", "of peak", "mlc is", "error", "load s", "memory", "file")


def rows(run: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The rows of one number of threads, by COLUMNS; what failed has a message in place of numbers."""
    return [_row(engine) for engine in run["engines"]]


def _row(e: Mapping[str, Any]) -> tuple[str, ...]:
    name = e["engine"] + (" bf16" if e["precision"] == "bf16" else "")
    if e["status"] == "failed":
        return (name, "", "", "", "", "", "", "", f"failed: {e['message']}")
    error = "?" if e["relative_error"] is None else f"{e['relative_error']:.1e}"
    return (
        name,
        f"{e['median_ms']:.3f}",
        f"{e['gflops']:.1f}" if e["gflops"] else "",
        f"{e['share_of_peak']:.1%}" if e["share_of_peak"] else "",
        f"{e['ratio']:.2f}x" if e["ratio"] else "",
        error if e["status"] == "ok" else f"{error} DIFFERS",
        f"{e['load_seconds']:.2f}",
        amount(e["memory_bytes"], "B"),
        amount(e["file_bytes"], "B"),
    )


def closing(run: Mapping[str, Any]) -> str:
    """The sentence under a table."""
    peak = f"; peak {run['peak_gflops']:.0f} GFLOP/s" if run["peak_gflops"] else ""
    peak += f", of bytes {run['byte_peak_gflops']:.0f}" if run["byte_peak_gflops"] else ""
    if run["ratio"] is None:
        return f"no peer to compare with{peak}"
    spread = statistics.pstdev(_ratios(run))
    return (
        f"mlc is {run['ratio']:.2f}x as fast as the best peer of each round "
        f"(median of {len(_ratios(run))} rounds, standard deviation {spread:.2f}){peak}"
    )


def _ratios(run: Mapping[str, Any]) -> list[float]:
    timed = [e for e in run["engines"] if e["rounds_ms"]]
    mine = next(e["rounds_ms"] for e in timed if e["engine"] == "mlc")
    others = [e["rounds_ms"] for e in timed if e["engine"] != "mlc" and e["status"] == "ok"]
    return [min(row) / m for m, *row in zip(mine, *others, strict=True)]
