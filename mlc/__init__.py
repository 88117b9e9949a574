"""mlc, a deep-learning compiler: `mlc.compile` makes a shared library of a model, `mlc.load` runs one.

Importing the package imports nothing heavy: each public name loads its module when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# public name -> (module, name in it)
_PUBLIC = {
    "compile": ("mlc.driver", "compile"),
    "load": ("mlc.runtime.loader", "load"),
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    """Loads a public name on first use (PEP 562)."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'mlc' has no attribute {name!r}")
    module, attribute = _PUBLIC[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *_PUBLIC})
