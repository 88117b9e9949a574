"""Names of dimensions that are sums of others."""

from __future__ import annotations

import pytest

from mlc.runtime.dim_sums import DimSum, extent_among, extent_by, parse_sum, sum_of


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


def test_what_is_left_where_some_are_numbers() -> None:
    both = DimSum(-1, {"a": 1, "b": 2})
    assert both.given({"a": 3, "b": 1}).extent == 4
    assert both.given({"a": 3}).extent == "2*b + 2"
    assert both.given({"a": 0, "b": 0}).extent == "-1"  # no extent: a run that gets there is refused
    assert DimSum(0, {"a": 1}).extent == "a"
    assert both.renamed({"a": "batch"}).extent == "batch + 2*b - 1"
    assert both.renamed({"a": "n", "b": "n"}).extent == "3*n - 1"


def test_extents_from_those_of_the_parts() -> None:
    known = {"a": 4, "b": 3, "c + d": 9}
    assert extent_by("a + b - 1", known, known.__getitem__) == 6
    assert extent_by("1 - a", known, known.__getitem__) == 0  # none is negative
    assert extent_by("b", known, known.__getitem__) == 3 and extent_by("c + d", known, known.__getitem__) == 9
