"""Names of dimensions that are sums of others."""

from __future__ import annotations

import pytest

from mlc.runtime.dim_sums import extent_among, parse_sum, sum_of


@pytest.mark.parametrize(
    ("name", "constant", "factors", "text"),
    [
        ("past + new", 0, {"past": 1, "new": 1}, "past + new"),
        ("past_sequence_length + 1", 1, {"past_sequence_length": 1}, "past_sequence_length + 1"),
        ("past+1", 1, {"past": 1}, "past + 1"),
        ("2*s0 - 3", -3, {"s0": 2}, "2*s0 - 3"),
        ("s0*2", 0, {"s0": 2}, "2*s0"),
        ("1 - s", 1, {"s": -1}, "-s + 1"),
        ("-s + 1", 1, {"s": -1}, "-s + 1"),
        ("a + b + a + 2*3", 6, {"a": 2, "b": 1}, "2*a + b + 6"),
    ],
)
def test_sums(name: str, constant: int, factors: dict[str, int], text: str) -> None:
    found = parse_sum(name)
    assert found is not None and (found.constant, dict(found.factors)) == (constant, factors)
    assert str(found) == text and parse_sum(text) in (found, None if text.isidentifier() else found)


@pytest.mark.parametrize(
    "name",
    ["", "past", "5", "2 + 3", "a - a", "a b", "a//2", "a*b", "(a + 1)*2", "a +", "+", "unk__1.2", "batch-size", "s-1", "-", "floor(a/2)", "a + 1.5", "x?"],
)
def test_other_names(name: str) -> None:
    assert parse_sum(name) is None


def test_extents_of_sums() -> None:
    assert extent_among("a + 2*b - 1", {"a": 4, "b": 3}) == 9
    assert extent_among("a + b", {"a": 4, "b": 3, "a + b": 8}) == 8
    assert extent_among("a + b", {"a": 4}) is None
    found = sum_of("a + 2*b", ("a", "b"))
    assert found is not None and str(found.given({"b": 3})) == "a + 6" and str(found.given({"a": 1, "b": 0})) == "1"
    assert sum_of("a + 2*b", ("a",)) is None
