"""The file of measured schedules: merging, reading what is damaged, keys."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from mlc.tuning import cache
from mlc.tuning.cache import Entry, TuningError

SCHEDULE: cache.Schedule = {"template": "contraction", "lanes": 16, "rows": 6, "vectors": 4, "unroll": 4, "block": 3}
ENTRY = Entry("cpu", "contraction f32[4,4]", SCHEDULE, 10.0, 12.0, 9, "2025-01-31")


def test_merging_keeps_the_faster_entry() -> None:
    fast, slow = replace(ENTRY, microseconds=8.0), replace(ENTRY, microseconds=11.0)
    assert cache.merged({"a": ENTRY, "b": ENTRY}, {"a": fast, "b": slow, "c": slow}) == {
        "a": fast,
        "b": ENTRY,
        "c": slow,
    }


def test_writing_merges_with_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tuning.json"
    cache.write(path, {"a": ENTRY, "b": ENTRY})
    cache.write(path, {"a": replace(ENTRY, microseconds=11.0), "b": replace(ENTRY, microseconds=2.5)})
    assert cache.read(path) == {"a": ENTRY, "b": replace(ENTRY, microseconds=2.5)}
    assert [p.name for p in path.parent.iterdir() if not p.name.endswith(".lock")] == ["tuning.json"]


def test_key_is_that_of_what_tuning_leaves_alone() -> None:
    key = cache.entry_key("text", SCHEDULE, "cpu")
    assert cache.entry_key("text", {**SCHEDULE, "rows": 5, "unroll": 1, "block": 9}, "cpu") == key
    assert cache.entry_key("text", {**SCHEDULE, "template": "panel_copy", "vector_operand": 1}, "cpu") == key
    for other in ({**SCHEDULE, "vectors": 3}, {**SCHEDULE, "panel": 64}, {**SCHEDULE, "template": "dot_product"}):
        assert cache.entry_key("text", other, "cpu") != key
    assert cache.entry_key("text", SCHEDULE, "cpu2") != key
    assert cache.entry_key("texts", SCHEDULE, "cpu") != key


def _file(**changes: object) -> str:
    return json.dumps({"format": 1, "kernels": {"a": {**asdict(ENTRY), **changes}}})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is no JSON"),
        ("\udcff", "it is no JSON"),
        ("[]", "it has no table 'kernels'"),
        ('{"format": 7, "kernels": {}}', "its format is 7, not 1"),
        ('{"format": 1, "kernels": {"a": {}}}', "entry 'a' needs the fields"),
        (_file(schedule={"rows": 1}), "names no template"),
        (_file(schedule={**SCHEDULE, "rows": 0}), "parameter 'rows' of entry 'a' cannot be 0"),
        (_file(schedule={**SCHEDULE, "rows": "6"}), "parameter 'rows' of entry 'a' cannot be '6'"),
        (_file(schedule={**SCHEDULE, "lanes": 1.5}), "parameter 'lanes' of entry 'a'"),
        (_file(tried=None), "how many schedules were tried"),
        (_file(microseconds="fast"), "the times of entry 'a'"),
    ],
)
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "tuning.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TuningError, match="is damaged: ") as raised:
        cache.read(path)
    assert reason in str(raised.value) and str(path) in str(raised.value)
    with pytest.raises(TuningError):  # and is not overwritten
        cache.write(path, {"a": ENTRY})
    assert path.read_bytes() == text.encode("utf-8", "surrogateescape")


def test_a_path_becomes_an_option() -> None:
    passed = "mlc-assign-schedules{vector-bits=512}"
    assert cache.with_file(passed, Path("a b.json")) == 'mlc-assign-schedules{vector-bits=512 tuned="a b.json"}'
    assert cache.with_file(passed, Path('a".json')) == "mlc-assign-schedules{vector-bits=512 tuned='a\".json'}"
    with pytest.raises(TuningError, match="both kinds of quotes"):
        cache.with_file(passed, Path("a\"'.json"))
