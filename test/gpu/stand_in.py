"""A process that runs a library for GPUs with `fake_libcuda.c` in the driver's place."""

from __future__ import annotations

import os
import subprocess
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FAKE = Path(__file__).with_name("fake_libcuda.c")

RUN = """
import os
import sys
import numpy as np
from mlc.runtime.loader import load
model = load(sys.argv[1])
feeds = {}
for number, info in enumerate(model.inputs):
    shape = [d if isinstance(d, int) else int(os.environ.get("RUN_SIZE", 7)) for d in info.dims]
    feeds[info.name] = np.arange(np.prod(shape)).reshape(shape).astype(info.dtype)
for _ in range(2):
    with model.context() as context:
        for _ in range(2):
            context.run(feeds)
"""
# The same of several libraries, one after the other; sizes that were not computed are errors.
RUN_ALL = f"""
import sys
from mlc.runtime.errors import ModelError
for sys.argv[1] in sys.argv[1:]:
    try:{textwrap.indent(RUN, 8 * " ")}
    except ModelError as error:
        print(error)
"""


@dataclass
class Outcome:
    """How a process with the stand-in ended: its exit code, what it said and printed, what was asked of the driver."""

    code: int
    said: str
    printed: str
    log: list[str]


def run_with(driver: Path, arguments: Sequence[object], **settings: str) -> Outcome:
    """Runs a command in a process that finds the stand-in of the folder `driver`; `settings` are environment variables."""
    log = driver / "log"
    log.unlink(missing_ok=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "FAKE_CUDA_LOG": str(log), **settings}
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, env=environment)
    return Outcome(done.returncode, done.stderr, done.stdout, log.read_text().splitlines() if log.exists() else [])
