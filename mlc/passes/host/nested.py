"""Upstream passes on the host module alone: run on the whole program they would convert the kernels too."""

from __future__ import annotations

from collections.abc import Sequence

import mlir.ir as ir

from mlc.passes.base import run_pipeline
from mlc.passes.host.isolate_host import host_module


def run_on_host(program: ir.Operation, passes: Sequence[str]) -> None:
    """Runs `passes` on the host module of `program`. Raises ValueError when there is none or a pass fails."""
    host = host_module(program)
    if host is None:
        raise ValueError("no host module; run mlc-isolate-host before")
    run_pipeline(host, passes)
