"""What the options of a compilation ask of tuning."""

from __future__ import annotations

import os
from pathlib import Path

from mlc import _native
from mlc.codegen.cache import default_folder
from mlc.options import Options, UsageError
from mlc.targets.cpu import CpuTarget, resolve
from mlc.tuning import cache


def tuning_file(options: Options) -> Path | None:
    """The file of measured schedules; None when nobody asks for one."""
    if options.tuning_cache is not None:
        return options.tuning_cache
    if os.environ.get("MLC_TUNING_CACHE"):
        return Path(os.environ["MLC_TUNING_CACHE"])
    return default_folder() / "tuning.json" if options.tune is not None else None


def is_measuring(options: Options) -> bool:
    """Are schedules to be measured before they are decided?"""
    return options.tune is not None or options.tune_bundle is not None


def check_request(options: Options, target: CpuTarget, first: int) -> None:
    """Finds out before the phase number `first` begins whether schedules can be measured for `target`, and whether
    their file is one. Raises UsageError, or what reading the file raises.
    """
    wanted = any(o is not None for o in (options.tune, options.tuning_cache, options.tune_bundle))
    if wanted and first > options.phases.index("schedule"):
        raise UsageError("tune: schedules are decided in phase 'schedule', which the IR is beyond")
    if options.tune is not None and options.target == "cpu":
        here = set(resolve("native", _native.host_info()).required.split(","))
        missing = sorted(set(target.required.split(",")) - here)
        if missing:
            reason = f"this machine lacks {', '.join(missing)}"
            raise UsageError(f"tune: code for CPU '{target.cpu}' cannot be measured: {reason}")
    path = tuning_file(options)
    if path is not None:
        if options.tune is not None:
            cache.check_writable(path)
        if options.tune is None or path.exists():
            cache.read(path)
