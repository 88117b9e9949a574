"""What a worker is asked to run, and what an engine makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Feeds = Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """What a worker is asked to run. Paths are text; `onnx`, `torchscript`, `program` (of `torch.export`) and `library`
    are empty when there is none, `inputs` is an archive of `mlc.bench.arrays`, `folder` one that engines may keep files
    in. Outputs that are in `shared` have the memory of inputs, in the engines that can do that: names of outputs and of
    inputs. `state` are the outputs that the next run gets as inputs: PyTorch changes buffers or inputs instead.
    """

    engine: str
    threads: int
    precision: str
    inputs: str
    folder: str
    onnx: str = ""
    torchscript: str = ""
    program: str = ""
    library: str = ""
    weights: str = ""
    shared: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The job as one line of JSON."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Loaded:
    """A model that is ready: `run` is timed, `fetch` turns its result into arrays in the order of the outputs. `files`
    are what the engine made or needs in place of the model's own file.
    """

    run: Callable[[], Any]
    fetch: Callable[[Any], list[Any]]
    files: tuple[Path, ...] = ()
