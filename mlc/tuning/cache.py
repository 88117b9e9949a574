"""What tuning has measured: a JSON file of schedules, readable, mergeable, and safe for concurrent writers.

```json
{"format": 1, "kernels": {"<key>": {"target": "…", "kernel": "…", "schedule": {"template": "contraction", …},
                                    "microseconds": 81.5, "default": 93.1, "tried": 9, "date": "2025-01-31"}}}
```
A key stands for a kernel before it is scheduled, the target, and the parameters that tuning never explores. So an entry
never changes which format a weight is stored in, and one that no longer fits is not found.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

Schedule = dict[str, int | str]

FORMAT = 1
PACKAGED = Path(__file__).parent / "data"
"""Where files of what was measured on an architecture come with the compiler."""
EXPLORED = ("rows", "unroll", "block", "grid")
EXPLORED_IN_LINES = ("vectors", "steps", "line", "item")
"""Of `line_product`."""
EXPLORED_ON_GPUS = {
    "hopper_contraction": (
        "tile_rows", "tile_columns", "stages", "consumers", "raster", "blocks", "threads", "group", "split", "pairs",
        "held", "resident", "turns", "early", "cluster_rows", "cluster_columns", "fetched", "turned",
    ),
    "hopper_attention": (
        "keys", "stages", "consumers", "queries", "order", "blocks", "threads", "group", "split", "early",
    ),
    "depthwise": ("lanes", "rows", "columns", "threads", "blocks", "early"),
}  # fmt: skip
"""Of templates for GPUs: what tuning explores of each."""
COPYING = ("contraction", "panel_copy")
"""Two templates that differ in a copy of an operand at run time: either may take the other's place."""
OF_COPIES = ("vector_operand", "beside", "fetched", "joined")
"""What the second one has for its copy."""


class TuningError(OSError):
    """The file is no cache of tuning, or cannot be read or written."""


@dataclass(frozen=True)
class Entry:
    """The best schedule known of a kernel, what it and the cost model's took when it was measured, and how many were
    tried.
    """

    target: str
    kernel: str
    schedule: Schedule
    microseconds: float
    default: float
    tried: int
    date: str


def fixed_part(schedule: Schedule) -> Schedule:
    """The parameters that tuning leaves alone."""
    table = {"line_product": EXPLORED_IN_LINES, **EXPLORED_ON_GPUS}
    explored = table.get(str(schedule.get("template")), EXPLORED)
    fixed = {name: value for name, value in schedule.items() if name not in explored}
    if fixed.get("template") in COPYING:
        fixed = {name: value for name, value in fixed.items() if name not in OF_COPIES}
        fixed["template"] = COPYING[0]
    return fixed


def entry_key(text: str, schedule: Schedule, target: str) -> str:
    """The key of the kernel whose text before scheduling is `text` and whose default schedule is `schedule`."""
    content = json.dumps([FORMAT, target, text, fixed_part(schedule)], sort_keys=True)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def digest(used: Mapping[str, Schedule]) -> str:
    """A hash of decisions by key: what an artefact says of its tuning."""
    return hashlib.blake2b(json.dumps(used, sort_keys=True).encode(), digest_size=16).hexdigest()


def with_file(scheduling: str, path: Path) -> str:
    """The text of pass `mlc-assign-schedules{…}` with its option `tuned`. Raises TuningError for a path with both kinds
    of quotes, which no pipeline's text can hold.
    """
    quote = next((q for q in "\"'" if q not in str(path)), None)
    if quote is None:
        raise TuningError(f"tuning cache '{path}': a path with both kinds of quotes; rename it")
    return f"{scheduling[:-1]} tuned={quote}{path}{quote}}}"


def merged(*tables: Mapping[str, Entry]) -> dict[str, Entry]:
    """All entries; of two with one key the faster, of two equally fast the first."""
    result: dict[str, Entry] = {}
    for table in tables:
        for key, entry in table.items():
            if key not in result or entry.microseconds < result[key].microseconds:
                result[key] = entry
    return result


def read(path: Path) -> dict[str, Entry]:
    """The entries of a file. Raises TuningError when it cannot be read or is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TuningError(f"tuning cache '{path}': {error.strerror}") from error
    except ValueError as error:
        raise _damaged(path, f"it is no JSON ({error})") from error
    if not isinstance(content, dict) or not isinstance(content.get("kernels"), dict):
        raise _damaged(path, "it has no table 'kernels'")
    if content.get("format") != FORMAT:
        raise _damaged(path, f"its format is {content.get('format')!r}, not {FORMAT}")
    return {key: _entry(path, key, value) for key, value in content["kernels"].items()}


def check_writable(path: Path) -> None:
    """Finds out whether `write` would fail. Raises TuningError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise TuningError(f"tuning cache '{path}': {error.strerror}") from error


def write(path: Path, entries: Mapping[str, Entry]) -> None:
    """Merges `entries` into the file, which appears or changes as a whole. Raises TuningError."""
    from filelock import FileLock, Timeout

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=10):
            known = read(path) if path.exists() else {}
            replace(path, merged(known, entries))
    except Timeout as error:
        raise TuningError(f"tuning cache '{path}': another process has been writing it for 10 s") from error
    except TuningError:
        raise
    except OSError as error:
        raise TuningError(f"tuning cache '{path}': {error.strerror or error}") from error


def replace(path: Path, entries: Mapping[str, Entry]) -> None:
    """Makes `entries` all that the file has, which appears or changes as a whole."""
    table = {key: asdict(entry) for key, entry in sorted(entries.items())}
    text = json.dumps({"format": FORMAT, "kernels": table}, indent=1) + "\n"
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _entry(path: Path, key: str, value: Any) -> Entry:
    """One entry, if every field is what it should be."""
    names = {field.name for field in fields(Entry)}
    if not isinstance(value, dict) or not names <= value.keys():
        raise _damaged(path, f"entry '{key}' needs the fields {', '.join(sorted(names))}")
    entry = Entry(**{name: value[name] for name in names})
    if not isinstance(entry.schedule, dict) or not isinstance(entry.schedule.get("template"), str):
        raise _damaged(path, f"the schedule of entry '{key}' names no template")
    for name, number in entry.schedule.items():
        if not isinstance(number, (int, str)) or isinstance(number, bool):
            raise _damaged(path, f"parameter '{name}' of entry '{key}' is neither an integer nor a string")
        if name in EXPLORED and not (isinstance(number, int) and number >= (name in ("rows", "unroll"))):
            raise _damaged(path, f"parameter '{name}' of entry '{key}' cannot be {number!r}")
    for time in (entry.microseconds, entry.default):
        if not isinstance(time, (int, float)) or not math.isfinite(time):
            raise _damaged(path, f"the times of entry '{key}' are no numbers")
    if not isinstance(entry.tried, int):
        raise _damaged(path, f"entry '{key}' does not say how many schedules were tried")
    return entry


def _damaged(path: Path, reason: str) -> TuningError:
    return TuningError(f"tuning cache '{path}' is damaged: {reason}; remove the file, and --tune writes a new one")
