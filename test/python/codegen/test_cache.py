"""The cache of compiled objects: content keys, eviction, concurrent writers, folders that cannot be written."""

from __future__ import annotations

import os
import threading
from pathlib import Path

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
    cache = ObjectCache(tmp_path, limit=250)
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
