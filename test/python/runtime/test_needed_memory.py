"""What is said of the memory that a model needs."""

from __future__ import annotations

import pytest

from mlc.runtime.needed_memory import needed_memory


@pytest.mark.parametrize(
    ("weights", "arenas", "text"),
    [
        (4_990_000, {"forward": "3928576"}, "8.9 MB (weights 5.0 MB, arena 3.9 MB)"),
        (10, {"prefill": "2000", "decode": "64"}, "2.0 kB (weights 10 B, arena 2.0 kB)"),
        (0, {"forward": "64"}, "arena 64 B"),
        (434_000_000, {"forward": "0"}, "weights 434.0 MB"),
        (0, {}, "0 B"),
        (5, {"a": "64", "b": "64 * max(seq, batch)"}, "weights 5 B, an arena that depends on batch, seq"),
        (5, {"a": "16 * p2o.Dim.0"}, "weights 5 B, an arena that depends on p2o.Dim.0"),
    ],
)
def test_texts(weights: int, arenas: dict[str, str], text: str) -> None:
    assert needed_memory(weights, arenas) == text
