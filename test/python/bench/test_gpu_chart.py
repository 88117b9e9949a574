"""The page of a report of `bench/gpu.py`, drawn where there is no GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[3] / "bench" / "gpu.py"


def _time(median: float) -> dict[str, float]:
    return {"median": median, "least": median - 0.5, "most": median + 0.5}


def _draw(folder: Path, report: dict[str, Any]) -> tuple[int, str]:
    (folder / "report.json").write_text(json.dumps(report))
    done = subprocess.run([sys.executable, PROGRAM, "chart", folder], capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, (folder / "report.html").read_text()


def test_every_case_is_compared_with_its_best_peer(tmp_path: Path) -> None:
    rows = [
        {"name": "softmax <1>", "right": True, "mlc": _time(2), "copy": _time(1.5), "eager": _time(8), "inductor": _time(4)},
        {"name": "norm", "right": True, "mlc": _time(4), "copy": _time(1), "eager": _time(2), "inductor": _time(3)},
    ]
    models = [{"name": "bert", "bf16": {"ratio": 1.5, "mlc": _time(10), "default": _time(15)}, "difference": {"tf32": 0.1}}]
    code, page = _draw(tmp_path, {"rows": rows, "models": models})
    assert code == 0
    assert "best peer / mlc: geometric mean 1.000, least 0.500 (norm)" in page
    assert "softmax &lt;1&gt;" in page and "2.000 of inductor" in page and "0.500 of eager" in page
    assert "bert bf16" in page and "1.500 of default" in page
    assert page.count('class="mlc"') == 2 and page.count('class="peer"') == 1  # what loses is drawn as a peer
    assert "<th>copy" in page and "<td>1.50" in page


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    checks = [{"name": "a", "right": True, "error": 1e-3}, {"name": "b", "right": False, "error": 1.0}]
    code, page = _draw(tmp_path, {"check": checks})
    assert code == 1
    assert "2 rows, 1 wrong: b" in page and "<svg" not in page
