"""An MLIR context for each thread of code generation.

A new one has no dialects, and loading them takes as long as lowering a small kernel. Modules never leave the thread
that parsed them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_THREAD = threading.local()


@contextmanager
def thread_context() -> Iterator[Any]:
    """The context of this thread, entered. One in which something went wrong is not used again: nobody knows what was
    left in it.
    """
    import mlir.ir as ir

    context = getattr(_THREAD, "context", None)
    _THREAD.context = None  # whoever asks again before the end gets another one
    if context is None:
        context = ir.Context(load_on_create_dialects=[])  # they are loaded when they are met
        context.enable_multithreading(False)
    with context, ir.Location.unknown():
        yield context
    _THREAD.context = context
