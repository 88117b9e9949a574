"""Settings shared by all tests: markers that depend on the machine, and hypothesis' profile."""

from __future__ import annotations

import collections
import importlib.util
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mlc.cli import process

if TYPE_CHECKING:
    from tiles.emulated import Tiles

SLOW_COUNTS_AS = 20  # tests
GPU_MISSING = "this machine has no NVIDIA GPU"


def pytest_configure(config: pytest.Config) -> None:
    """Property tests are seeded and have no deadline: CI machines are slow, and a run must be repeatable."""
    del config
    process.collect_seldom()  # as the commands do: a twentieth of the tests' time
    # A runner in the background may have been started with Ctrl-C ignored, and children inherit that.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if importlib.util.find_spec("hypothesis"):
        import hypothesis

        hypothesis.settings.register_profile("mlc", deadline=None, derandomize=True, print_blob=True)
        hypothesis.settings.load_profile("mlc")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than processors: a test often waits, for a linker, or for a thread that has nothing to do beside it."""
    return min(os.cpu_count() or 1, 16) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips, with the reason, the tests whose marker names something that this machine lacks. For workers that share the
    files of a run, those that may take long come first: no worker should be busy with one while the others are done.
    """
    if hasattr(config, "workerinput"):
        weights: collections.Counter[Path] = collections.Counter()
        for item in items:
            weights[item.path] += SLOW_COUNTS_AS if item.get_closest_marker("slow") else 1
        items.sort(key=lambda item: -weights[item.path])  # stable: files, and tests of a file, stay together
    if shutil.which("nvidia-smi") is None:
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason=GPU_MISSING))


@pytest.fixture(scope="session")
def tile_emulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that carries out instructions of matrix tiles; skips where it cannot."""
    from tiles.emulated import build_emulator, missing_here

    if reason := missing_here():
        pytest.skip(reason)
    return build_emulator(tmp_path_factory.mktemp("tiles"))


@pytest.fixture(scope="session")
def tile_library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes instructions of matrix tiles work in a process: the machine's own, or the emulator's."""
    from tiles.emulated import are_here, build_real

    return build_real(tmp_path_factory.mktemp("tiles")) if are_here() else request.getfixturevalue("tile_emulator")


@pytest.fixture
def tiles(tile_library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tiles]:
    """Matrix tiles for the time of a test: what runs in this process may use them, `mlc.compile(…, cpu=tiles.cpu)`
    makes code with them that loads here, and `tiles.count` says how often which instruction ran. They are those of this
    machine where it has any: nothing is counted then.
    """
    from tiles.emulated import RealTiles, Tiles, allow_tiles, are_here

    allow_tiles(monkeypatch)
    found = (RealTiles if are_here() else Tiles)(tile_library)
    found.start()
    yield found
    found.stop()
