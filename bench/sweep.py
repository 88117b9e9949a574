#!/usr/bin/env python3
"""Many architectures compiled by mlc against other engines: which are wrong, and which are slow.

    python bench/sweep.py timm/edgenext_xx_small transformers/segformer     # these
    python bench/sweep.py --draw 5 --of torchvision --seed 2026-11-26       # five that a text draws
    python bench/sweep.py --draw 40 --of timm --smallest --json sweep.json  # one of a family each, its smallest
    python bench/sweep.py --files net.onnx other.onnx --threads 1,2         # models that are there

Every architecture (of `bench/architectures.py`) is exported by a process of its own and timed by `mlc-bench`, whose
result of each engine is compared with onnxruntime's. A line is printed when a model is done, the table at the end goes
from the worst to the best. The ratio is how many times as fast mlc is as the best peer of each round. What cannot be
exported is passed over with the reason; exits 1 when a model does not compile or computes something else.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import architectures
from measure import check_files

from mlc.bench.output import machine

EXPORT = Path(__file__).resolve().with_name("architectures.py")
SMALL = re.compile("tiny|nano|micro|mini|small|_s|_t|xx|18|26|_b0|_0|050|002|atto|pico")  # in names of variants


@dataclass(frozen=True)
class Row:
    """One model at one number of threads; milliseconds by engine."""

    name: str
    threads: int
    ratio: float | None
    milliseconds: dict[str, float]
    error: float | None
    status: str = "ok"
    message: str = ""


@dataclass
class Sweep:
    """What was measured, what has failed (wrong, not compiled) and what could not be tried (not exported)."""

    rows: list[Row] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    passed_over: dict[str, str] = field(default_factory=dict)


# --- Which ----------------------------------------------------------------------------------------------------------


def drawn(options: argparse.Namespace) -> list[str]:
    """The architectures that `options.seed` draws from a package's."""
    candidates = [name for name in architectures.names() if name.startswith(f"{options.of}/")]
    if options.smallest:
        candidates = smallest_of_families(candidates)
    if not candidates:
        raise SystemExit(f"--of {options.of}: no architecture; python {EXPORT.name} --list shows them")
    return random.Random(options.seed).sample(sorted(candidates), min(options.draw, len(candidates)))


def smallest_of_families(names: Sequence[str]) -> list[str]:
    """Of each module of timm (a family of architectures) the one with the fewest parameters in its usual variants."""
    import timm
    import torch

    found: dict[str, tuple[int, str]] = {}
    for name in names:
        package, _, architecture = name.partition("/")
        if package != "timm":
            raise SystemExit("--smallest is about the families of timm")
        family = timm.models.model_entrypoint(architecture).__module__
        if family in found and not SMALL.search(architecture):
            continue
        with torch.device("meta"):
            try:
                model = timm.create_model(architecture, pretrained=False)
            except (RuntimeError, NotImplementedError):  # not on the device without memory
                continue
        size = sum(p.numel() for p in model.parameters())
        found[family] = min(found.get(family, (size, name)), (size, name))
    return [name for _, name in found.values()]


# --- Measuring ------------------------------------------------------------------------------------------------------


def last_line(text: str) -> str:
    """What a program said last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def exported(name: str, folder: Path, seconds: float) -> Path:
    """The ONNX file of an architecture. Raises RuntimeError with what the export said."""
    path = folder / f"{name.replace('/', '-')}.onnx"
    if path.exists():
        return path
    command = [sys.executable, str(EXPORT), name, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not exported in {seconds:g} s") from None
    if done.returncode:
        path.unlink(missing_ok=True)
        raise RuntimeError(last_line(done.stderr))
    return path


def timed(name: str, model: Path, options: argparse.Namespace) -> list[Row]:
    """The rows of one model. Raises RuntimeError with what `mlc-bench` said."""
    with tempfile.TemporaryDirectory(prefix="mlc-sweep-") as folder:
        numbers = Path(folder) / "numbers.json"
        command = [
            sys.executable, "-m", "mlc.cli.bench", str(model), "--threads", options.threads, "--peers", options.peers,
            "--rounds", str(options.rounds), "--burst", str(options.burst), "--precision", options.precision,
            "--json", str(numbers),
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, check=False)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"not timed in {options.timeout:g} s") from None
        if not numbers.exists():
            raise RuntimeError(last_line(done.stderr))
        return rows_of(name, json.loads(numbers.read_text()))


def rows_of(name: str, data: dict[str, Any]) -> list[Row]:
    """The rows of what `mlc-bench` wrote."""
    rows = []
    for run in data["runs"]:
        ours = next(engine for engine in run["engines"] if engine["engine"] == "mlc")
        times = {e["engine"]: e["median_ms"] for e in run["engines"] if e["median_ms"] is not None}
        error, status = ours["relative_error"], ours["status"]
        rows.append(Row(name, run["threads"], run["ratio"], times, error, status, ours["message"]))
    return rows


def sweep(names: Sequence[tuple[str, Path | None]], folder: Path, options: argparse.Namespace) -> Sweep:
    """Measures one after the other, and prints the rows of each when it is done."""
    known = Sweep()
    for name, given in names:
        try:
            model = given or exported(name, folder, options.timeout)
        except RuntimeError as error:
            known.passed_over[name] = str(error)
            continue
        try:
            for row in timed(name, model, options):
                print(line(row), flush=True)
                known.rows.append(row)
                if row.status != "ok":
                    known.failed[name] = f"{row.status}: {row.message}"
        except RuntimeError as error:
            known.failed[name] = str(error)
        if given is None and options.keep is None:
            for file in folder.glob(f"{model.name}*"):
                file.unlink()
    return known


# --- What is said ---------------------------------------------------------------------------------------------------


def line(row: Row) -> str:
    """A row as a line of the table."""
    times = "  ".join(f"{engine} {time:.2f}" for engine, time in row.milliseconds.items())
    ratio = f"{row.ratio:.2f}" if row.ratio is not None else " -  "
    error = "?" if row.error is None else f"{row.error:.1e}"
    return f"{ratio}  {row.threads}T  {row.name:48}  {times}  error {error}"


def tell(known: Sweep) -> None:
    """Prints the table, worst first."""
    print(f"\n{len({row.name for row in known.rows})} models; ms, and the best peer's time by mlc's, worst first")
    for threads in sorted({row.threads for row in known.rows}):
        rows = [row for row in known.rows if row.threads == threads]
        for row in sorted(rows, key=lambda row: row.ratio or math.inf):
            print(line(row))
        ratios = [row.ratio for row in rows if row.ratio]
        if ratios:
            average = statistics.geometric_mean(ratios)
            print(f"geometric mean at {threads} thread{'s' if threads > 1 else ''}: {average:.2f}")
    for title, found in (("FAILED", known.failed), ("not exported", known.passed_over)):
        for name, reason in found.items():
            print(f"{title}: {name}: {reason}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PACKAGE/ARCHITECTURE")
    parser.add_argument("--files", nargs="+", type=Path, default=[], metavar="MODEL.onnx", help="models that are there")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="N drawn architectures")
    parser.add_argument("--of", default="timm", choices=("timm", "torchvision", "transformers"), help="draw from these")
    parser.add_argument("--smallest", action="store_true", help="draw families of timm, the smallest of each")
    parser.add_argument("--seed", default=time.strftime("%Y-%m-%d"), help="what draws (default today's date)")
    parser.add_argument("--threads", default="1", help="1,2 (default 1)")
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--burst", type=float, default=0.1, metavar="SECONDS", help="of an engine in a round")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="for an export, and for a model")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the exported models, and use what is there")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    if not (options.names or options.files or options.draw):
        parser.error("name architectures, or give --files or --draw")
    return options


def main() -> int:
    options = parsed()
    check_files(options.files)
    names: list[tuple[str, Path | None]] = [(path.stem, path) for path in options.files]
    names += [(name, None) for name in [*options.names, *(drawn(options) if options.draw else [])]]
    with tempfile.TemporaryDirectory(prefix="mlc-sweep-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        known = sweep(names, folder, options)
    tell(known)
    if options.json:
        data = {"machine": machine(), "rows": [vars(row) for row in known.rows]}
        data |= {"failed": known.failed, "not exported": known.passed_over}
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    return 1 if known.failed else 0


if __name__ == "__main__":
    sys.exit(main())
