"""`--report`: what was decided about a model, as one HTML file that needs nothing else, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from mlc.inspect.collect import KernelReport, Report
from mlc.weights.safetensors import atomic_file

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 100em; padding: 0 1em; color: #1a1a1a }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 2em }
table { border-collapse: collapse } th, td { padding: .25em .8em .25em 0; text-align: left; vertical-align: top }
th { border-bottom: 2px solid #888; position: sticky; top: 0; background: #fff }
tr + tr td { border-top: 1px solid #ddd }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } .w { color: #a40000 }
code { font-size: .92em } td.s { max-width: 28em } td.s code { overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) { body, th { background: #161616; color: #ddd } .w { color: #ff8a80 } }
"""
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def write_report(report: Report, path: Path) -> None:
    """Writes `path`: JSON when its name ends in `.json`, else HTML. Raises OSError."""
    text = to_json(report) if path.suffix == ".json" else to_html(report)
    with atomic_file(path) as file:
        file.write(text.encode())


def to_json(report: Report) -> str:
    """The report as JSON text; `Report` says what the fields are."""
    return json.dumps(report.plain(), indent=1, ensure_ascii=False) + "\n"


def to_html(report: Report) -> str:
    """The report as a page."""
    extents = ", ".join(f"{name} = {extent}" for name, extent in report.extents.items())
    facts = [
        ("compiled by", report.compiler),
        ("target", report.target),
        ("kernels", str(len(report.kernels))),
        ("work is counted at", extents or "the model's own extents"),
        ("weights", f"{amount(report.weight_bytes)}B"),
        *((f"arena of {name}", f"{formula} bytes") for name, formula in report.arena.items()),
    ]
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(report.model)}</title>",
        f"<style>{STYLE}</style><h1>{escape(report.model)}</h1>",
        table((), ([escape(label), escape(text)] for label, text in facts)),
        "<h2>Warnings</h2>",
        _list(report.warnings, "w") or "<p>None.</p>",
        "<h2>Kernels</h2>",
        _kernels(report.kernels),
        "<h2>What was not fused</h2>",
        _refusals(report),
        "<h2>Time of the compilation</h2>",
        table(("stage", "#s"), ([escape(name), f"{seconds:.2f}"] for name, seconds in report.stages.items())),
        "</html>\n",
    ]
    return "\n".join(parts)


def amount(number: float | None) -> str:
    """A number with three digits and a unit's prefix; `?` when it is not known."""
    if number is None:
        return "?"
    for factor, prefix in UNITS:
        if number >= factor:
            return f"{number / factor:.3g} {prefix}"
    return f"{number:.3g} "


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already; columns whose name begins with # hold numbers."""
    kinds = [" class=n" if name.startswith("#") else "" for name in head]
    titles = "".join(f"<th{kind}>{escape(name.lstrip('#'))}" for kind, name in zip(kinds, head, strict=True))
    lines = [f"<tr>{titles}"] if head else []
    for row in rows:
        padded = [*kinds, *[""] * (len(row) - len(kinds))]
        lines.append("<tr>" + "".join(f"<td{kind}>{cell}" for kind, cell in zip(padded, row, strict=True)))
    return "<table>" + "\n".join(lines) + "</table>"


def _list(items: Sequence[str], kind: str) -> str:
    return "<ul>" + "".join(f"<li class={kind}>{escape(item)}" for item in items) + "</ul>" if items else ""


def _kernels(kernels: Sequence[KernelReport]) -> str:
    total = sum((k.flops or 0) * k.launches for k in kernels)
    head = (
        "kernel",
        "template",
        "#launches",
        "#FLOPs",
        "#share",
        "#bytes",
        "#FLOPs/byte",
        "shapes",
        "schedule",
        "nodes",
    )
    rows = []
    for k in sorted(kernels, key=lambda k: -(k.flops or 0) * k.launches):
        flops = None if k.flops is None else k.flops * k.launches
        share = f"{flops / total:.1%}" if flops is not None and total else ""
        intensity = f"{k.flops / k.bytes:.2g}" if k.flops and k.bytes else ""
        schedule = ", ".join(f"{name} {value}" for name, value in k.schedule.items())
        numbers = [str(k.launches), amount(flops), share, amount(k.bytes), intensity]
        texts = ["<br>".join(f"<code>{escape(s)}</code>" for s in k.shapes), f"<code>{escape(schedule)}</code>"]
        rows.append([escape(k.name), escape(k.template), *numbers, *texts, "<br>".join(map(escape, k.nodes))])
    return table(head, rows)


def _refusals(report: Report) -> str:
    if not report.refusals:
        return "<p>Nothing was refused.</p>"
    rows = [[escape(r.get(key, "")) for key in ("kernel", "node", "role", "reason")] for r in report.refusals]
    return table(("kernel", "node", "as", "because"), rows)
