"""What the functions of kernels and entries are called in objects.

All kernels' symbols have one length, so that an object compiled under the anonymous name becomes any kernel's
by replacing bytes: equal kernels of different models, or under different numbers, are compiled once.
"""

from __future__ import annotations

import re

_PREFIX, _WIDTH = "mlc_kernel_", 8


def entry_symbol(name: str) -> str:
    """The C symbol of entry `name`."""
    return "mlc_entry_" + re.sub(r"\W", "_", name, flags=re.ASCII)


def kernel_symbol(name: str) -> str:
    """The C symbol of the kernel module `name`; its grid function has `_grid` behind it."""
    return _PREFIX + name.rjust(_WIDTH, "_")


ANONYMOUS = kernel_symbol("")


def can_be_anonymous(name: str) -> bool:
    """Whether the symbol of `name` has the common length."""
    return len(kernel_symbol(name)) == len(ANONYMOUS)


def renamed(text: str, name: str, symbol: str) -> str:
    """The text of kernel module `name` with its functions, and itself, called `symbol`."""
    return re.sub(rf"@{re.escape(name)}(?=_grid\b|[^\w.$-])", f"@{symbol}", text)


def named(data: bytes, name: str) -> bytes:
    """The object of an anonymous kernel as that of kernel `name`."""
    return data.replace(ANONYMOUS.encode(), kernel_symbol(name).encode())
