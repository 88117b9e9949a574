"""Charts of benchmarks: one HTML file with SVG inside that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from mlc.bench.output import COLUMNS, closing, headline, rows
from mlc.weights.safetensors import atomic_file

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #1a1a1a }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 2em }
table { border-collapse: collapse } th, td { padding: .2em .9em .2em 0; text-align: right; white-space: nowrap }
th { border-bottom: 2px solid #888 } td:first-child, th:first-child { text-align: left }
svg text { font: 12px system-ui, sans-serif; fill: currentColor }
.mlc { fill: #0b6e4f } .peer { fill: #8a94a6 } .wrong { fill: #c0392b } .axis { stroke: #8886; stroke-width: 1 }
.roof { stroke: #c0392b; stroke-width: 1.5; fill: none }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #ddd } .mlc { fill: #3ecf8e } }
"""
BAR, GAP, LABEL, WIDTH = 22, 8, 190, 620


def page(title: str, parts: Iterable[str]) -> str:
    """A complete page out of pieces of HTML."""
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{STYLE}</style>"
    return "\n".join([head, f"<h1>{escape(title)}</h1>", *parts, "</html>\n"])


def table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of plain texts."""
    head = "".join(f"<th>{escape(name)}" for name in columns)
    body = ("<tr>" + "".join(f"<td>{escape(cell)}" for cell in line) for line in lines)
    return "\n".join([f"<table><tr>{head}", *body, "</table>"])


def bars(items: Sequence[tuple[str, float, str, str]], label: int = LABEL) -> str:
    """Horizontal bars: name, length, text beside it, class; names have `label` units of width."""
    longest = max((length for _, length, _, _ in items), default=1.0) or 1.0
    height = (BAR + GAP) * len(items) + GAP
    lines = [f'<svg viewBox="0 0 {label + WIDTH + 160} {height}" width="100%" role="img">']
    for number, (name, length, text, kind) in enumerate(items):
        y = GAP + number * (BAR + GAP)
        wide = max(length / longest * WIDTH, 1)
        middle = y + BAR * 0.7
        lines.append(f'<text x="{label - 8}" y="{middle:.0f}" text-anchor="end">{escape(name)}</text>')
        lines.append(f'<rect x="{label}" y="{y}" width="{wide:.1f}" height="{BAR}" class="{kind}"/>')
        lines.append(f'<text x="{label + wide + 6:.1f}" y="{middle:.0f}">{escape(text)}</text>')
    return "\n".join([*lines, "</svg>"])


def benchmark_page(data: Mapping[str, Any]) -> str:
    """The page of `mlc-bench`, from its JSON data."""
    title, *facts = headline(data)
    parts = [f"<p>{escape(fact)}</p>" for fact in facts]
    parts.append(f"<p>{escape(data['machine']['cpu'])}, {data['machine']['processors']} processors</p>")
    for run in data["runs"]:
        timed = [e for e in run["engines"] if e["median_ms"]]
        parts.append(f"<h2>{run['threads']} thread{'s' if run['threads'] > 1 else ''}: milliseconds a run</h2>")
        parts.append(bars([(e["engine"], e["median_ms"], f"{e['median_ms']:.3f} ms", _kind(e)) for e in timed]))
        parts += [table(COLUMNS, rows(run)), f"<p>{escape(closing(run))}</p>"]
    return page(title, parts)


def _kind(engine: Mapping[str, Any]) -> str:
    if engine["status"] != "ok":
        return "wrong"
    return "mlc" if engine["engine"] == "mlc" else "peer"


def write_page(path: Path, text: str) -> None:
    """Writes a page; the file appears when it is complete."""
    with atomic_file(path) as file:
        file.write(text.encode())


def write_png(path: Path, data: Mapping[str, Any]) -> None:
    """The bars of `mlc-bench` as a picture. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(data["runs"]), 1, squeeze=False, figsize=(8, 2.4 * len(data["runs"])))
    colours = {"mlc": "#0b6e4f", "peer": "#8a94a6", "wrong": "#c0392b"}
    for axis, run in zip(axes[:, 0], data["runs"], strict=True):
        timed = [e for e in reversed(run["engines"]) if e["median_ms"]]
        drawn = axis.barh([e["engine"] for e in timed], [e["median_ms"] for e in timed])
        for bar, engine in zip(drawn, timed, strict=True):
            bar.set_color(colours[_kind(engine)])
        axis.bar_label(drawn, fmt="%.3f ms", padding=3)
        axis.set_title(f"{data['model']}, {run['threads']} thread{'s' if run['threads'] > 1 else ''}")
    figure.tight_layout()
    with atomic_file(path) as file:
        pyplot.savefig(file, format="png", dpi=120)
    pyplot.close(figure)


# --- Rooflines --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """A kernel in a roofline: FLOPs a byte, GFLOP/s, and whether it is ours."""

    name: str
    intensity: float
    gflops: float
    kind: str


def roofline(points: Sequence[Point], peak: float, bandwidth: float) -> str:
    """The points under the roof of an arithmetic peak (GFLOP/s) and a memory bandwidth (GB/s), on logarithmic axes."""
    width, height, left, bottom = 760, 420, 60, 40
    shown = [p for p in points if p.intensity > 0 and p.gflops > 0]
    low_x, high_x = _decades([p.intensity for p in shown] + [peak / bandwidth])
    low_y, high_y = _decades([p.gflops for p in shown] + [peak])

    def x(value: float) -> float:
        return left + (math.log10(value) - low_x) / (high_x - low_x) * (width - left - 20)

    def y(value: float) -> float:
        return height - bottom - (math.log10(value) - low_y) / (high_y - low_y) * (height - bottom - 20)

    lines = [f'<svg viewBox="0 0 {width} {height}" width="100%" role="img">']
    for power in range(low_x, high_x + 1):
        at = x(10.0**power)
        lines.append(f'<line x1="{at:.1f}" y1="20" x2="{at:.1f}" y2="{height - bottom}" class="axis"/>')
        lines.append(f'<text x="{at:.1f}" y="{height - bottom + 16}" text-anchor="middle">{10.0**power:g}</text>')
    for power in range(low_y, high_y + 1):
        at = y(10.0**power)
        lines.append(f'<line x1="{left}" y1="{at:.1f}" x2="{width - 20}" y2="{at:.1f}" class="axis"/>')
        lines.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    start = max(10.0**low_x, 10.0**low_y / bandwidth)
    corner, end = peak / bandwidth, 10.0**high_x
    roof = [(start, start * bandwidth), (corner, peak), (max(end, corner), peak)]
    lines.append(f'<polyline class="roof" points="{" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in roof)}"/>')
    for p in shown:
        title = f"<title>{escape(p.name)}: {p.gflops:.1f} GFLOP/s at {p.intensity:.3g} FLOP/byte</title>"
        place = f'cx="{x(p.intensity):.1f}" cy="{y(p.gflops):.1f}"'
        lines.append(f'<circle {place} r="5" class="{p.kind}">{title}</circle>')
    lines.append(f'<text x="{width / 2}" y="{height - 6}" text-anchor="middle">FLOPs a byte</text>')
    lines.append(f'<text x="6" y="14">GFLOP/s (roof: {peak:.0f} GFLOP/s, {bandwidth:.0f} GB/s)</text></svg>')
    return "\n".join(lines)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)
