"""Functions as modules of PyTorch, to be exported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


class Wrapped(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def results_of(functions: Iterable[Callable[..., Any]]) -> Wrapped:
    """The results of all functions, as one module."""
    every = list(functions)
    return Wrapped(lambda *arguments: tuple(function(*arguments) for function in every))
