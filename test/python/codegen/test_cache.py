"""The cache of compiled objects: content keys, eviction, concurrent writers, folders that cannot be written."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from mlc.codegen.cache import ObjectCache


def test_keys_keep_the_boundaries_of_their_parts() -> None:
    keys = {ObjectCache.key(*parts) for parts in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc")]}
    assert len(keys) == 5


def test_what_was_put_is_found(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    key = cache.key("kernel")
    assert cache.get(key) is None
    cache.put(key, b"code")
    assert ObjectCache(tmp_path).get(key) == b"code"
    assert (cache.hits, cache.misses) == (0, 1)


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit=10_000)
    keys = [cache.key(str(i)) for i in range(3)]
    for age, key in enumerate(keys):
        cache.put(key, bytes(100))
        os.utime(cache._path(key), (1000 + age, 1000 + age))
    assert cache.get(keys[0]) is not None  # now the youngest
    cache.trim()
    assert [cache.get(key) is not None for key in keys] == [True, False, True]


def test_concurrent_writers_leave_whole_objects(tmp_path: Path) -> None:
    key = ObjectCache.key("shared")
    seen: list[bytes] = []

    def work(number: int) -> None:
        cache = ObjectCache(tmp_path)
        for _ in range(50):
            cache.put(key, bytes([number]) * 4096)
            data = cache.get(key)
            if data is not None:
                seen.append(data)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen and all(len(data) == 4096 and len(set(data)) == 1 for data in seen)
    assert not list(tmp_path.glob("**/.new-*"))


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = ObjectCache(blocked / "cache")
    key = cache.key("x")
    cache.put(key, b"code")
    cache.trim()
    assert cache.get(key) is None


def test_the_folder_is_looked_through_once_in_a_while(tmp_path: Path) -> None:
    limit = 16 * 10 * 65536  # to be looked at after ten compilations that write something small
    sizes = []
    for number in range(300):
        cache = ObjectCache(tmp_path, limit=limit)
        cache.put(cache.key(str(number)), bytes(60_000))
        cache.trim()
        sizes.append(sum(f.stat().st_size for f in (tmp_path / "objects").glob("*/*.o")))
    assert max(sizes) <= limit
    shrunk = [i for i, (before, after) in enumerate(zip(sizes, sizes[1:], strict=False)) if after < before]
    assert shrunk and all(later - earlier == 11 for earlier, later in zip(shrunk, shrunk[1:], strict=False))
    newest, oldest = ObjectCache.key("299"), ObjectCache.key("0")
    assert ObjectCache(tmp_path).get(newest) is not None and ObjectCache(tmp_path).get(oldest) is None


def test_what_killed_writers_left_is_removed(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit=100_000)
    cache.put(cache.key("x"), b"code")
    folder = next((tmp_path / "objects").iterdir())
    for name, age in (("old", 7200), ("young", 60)):
        (folder / f".new-{name}").write_bytes(b"half")
        then = time.time() - age
        os.utime(folder / f".new-{name}", (then, then))
    cache.trim()
    assert sorted(f.name for f in folder.glob(".new-*")) == [".new-young"]
    assert cache.get(cache.key("x")) == b"code"


def test_a_folder_of_somebody_else_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ObjectCache(tmp_path)
    cache.put(cache.key("x"), b"code")

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", refuse)
    assert cache.get(cache.key("x")) == b"code"
