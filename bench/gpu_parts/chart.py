"""The page of a report: for each part how every case compares with its best peer, and a table of all times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from mlc.bench.chart import bars, page, table

OURS, NO_PEERS = "mlc", ("mlc", "copy")  # a copy of the same size is a bound
LETTER = 7  # units of a letter's width


@dataclass(frozen=True)
class Line:
    """A case: its name, whether its results are right, and microseconds by engine."""

    name: str
    right: bool
    times: Mapping[str, float]

    @property
    def peer(self) -> str:
        """The fastest peer; "" where there is none."""
        peers = [engine for engine in self.times if engine not in NO_PEERS]
        return min(peers, key=lambda engine: self.times[engine], default="") if OURS in self.times else ""

    @property
    def ratio(self) -> float:
        """Times as fast as the fastest peer."""
        return self.times[self.peer] / self.times[OURS]


def lines_of(rows: Iterable[Mapping[str, Any]]) -> list[Line]:
    """The timed cases of a part's rows; a row may have times by precision."""
    found = []
    for row in rows:
        nested = {key: value for key, value in row.items() if isinstance(value, dict) and not _is_time(value)}
        for name, times in ((row["name"], row), *((f"{row['name']} {key}", value) for key, value in nested.items())):
            medians = {engine: time["median"] for engine, time in times.items() if _is_time(time)}
            if medians:
                found.append(Line(name, row.get("right", True), medians))
    return found


def _is_time(value: object) -> bool:
    return isinstance(value, dict) and "median" in value


def page_of(report: Mapping[str, Sequence[Mapping[str, Any]]], title: str) -> str:
    """The page of a report of `bench/gpu.py`: rows by part."""
    parts = []
    for name, rows in report.items():
        wrong = [row["name"] for row in rows if not row.get("right", True)]
        said = f"{len(rows)} rows, {len(wrong)} wrong{': ' if wrong else ''}{', '.join(wrong)}"
        parts += [f"<h2>{escape(name)}</h2>", f"<p>{escape(said)}</p>", *_part(lines_of(rows))]
    return page(title, parts)


def _part(lines: Sequence[Line]) -> list[str]:
    if not lines:
        return []
    compared = [line for line in lines if line.peer]
    engines = list(dict.fromkeys(engine for line in lines for engine in line.times))
    cells = ([line.name, *(f"{line.times[e]:.2f}" if e in line.times else "" for e in engines)] for line in lines)
    times = table(["microseconds", *engines], cells)
    if not compared:
        return [times]
    mean = math.exp(sum(math.log(line.ratio) for line in compared) / len(compared))
    least = min(compared, key=lambda line: line.ratio)
    said = f"best peer / mlc: geometric mean {mean:.3f}, least {least.ratio:.3f} ({least.name})"
    longest = max(len(line.name) for line in compared)
    drawn = [(line.name, line.ratio, f"{line.ratio:.3f} of {line.peer}", _kind(line)) for line in compared]
    return [f"<p>{escape(said)}</p>", bars(drawn, longest * LETTER + 16), times]


def _kind(line: Line) -> str:
    """Slower than a peer is drawn as a peer."""
    if not line.right:
        return "wrong"
    return "mlc" if line.ratio >= 1 else "peer"
