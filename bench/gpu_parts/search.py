"""The part `search`: models, language models and convolutions against PyTorch's longest search, `max-autotune`.

Every case is a process of its own, in three steps. First many at a time compile all that a search will want, by one
that times nothing: Triton's cache keeps it. Then one after the other searches: where several did, even with a lock
around what they timed, one shape took 5 to 90 s instead of 0.3, and wrong times were chosen by. At last the cases are
timed, each with its engines in turn: the library, `torch.compile` in its default mode and in
`max-autotune-no-cudagraphs`, captured into graphs as everything is. Each knows what those before it have found, so a
network is searched for in 40 s after its layers, which take 8 s each (13 in tf32).

MLC_SEARCH_LIMIT seconds [300] are for the first two steps, half of them at most for the first, which
MLC_SEARCH_COMPILED=1 leaves out where another run has done it. What is not done then is ended, and the report says so.
MLC_SEARCH_CASES names the cases, with commas [all]; the libraries are those of the
parts `models`, `language` and `conv`, and cases without one are left out. What was compiled stays in FOLDER/search.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMPILING, SEARCHING = 12, 1  # processes at a time
PATIENCE = 120.0  # seconds for the timing of one case
LANGUAGE = ("gpt2_512", "llama_1b_prefill_512", "llama_1b_decode")
MODE = "max-autotune-no-cudagraphs"
LAYERS = {f"layers_{net}_b{images}": (net, images) for images in (32, 1) for net in ("resnet50", "mobilenet_v2")}
"""Cases of all convolutions of a network, each by itself."""


def cases() -> list[str]:
    """The names of all cases: those first whose search matters most, a network after its layers."""
    first = ["bert_base_b32.bf16", "vit_b_16_b32.bf16", *LANGUAGE, "bert_base_b1.bf16"]
    networks = [case for layers in LAYERS for case in (layers, f"{layers.removeprefix('layers_')}.bf16")]
    names = ("bert_base_b32", "resnet50_b32", "vit_b_16_b32", "bert_base_b1", "resnet50_b1")
    return [*first, *networks, *(f"{name}.tf32" for name in names)]


def compile_part(folder: Path) -> None:
    """Writes the libraries of the convolutions; those of the others are written by `models` and `language`."""
    from gpu_parts.conv import compile_convolutions

    for name in LAYERS:
        compile_convolutions(_layers(name), folder)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Compiles for all cases side by side, then searches for and times one after the other."""
    named = os.environ.get("MLC_SEARCH_CASES", "")
    asked = [name for name in (named.split(",") if named else cases()) if _has_library(folder, name)]
    (folder / "search").mkdir(exist_ok=True)
    began, limit = time.monotonic(), float(os.environ.get("MLC_SEARCH_LIMIT", "300"))
    if not os.environ.get("MLC_SEARCH_COMPILED"):
        compiled = _go("compile", COMPILING, [_Case(folder, name) for name in asked], began + limit / 2)
        print(f"{len(compiled)} of {len(asked)} compiled in {time.monotonic() - began:.0f} s", flush=True)
    found = _go("search", SEARCHING, [_Case(folder, name) for name in asked], began + limit)
    print(f"{len(found)} of {len(asked)} searches done in {time.monotonic() - began:.0f} s", flush=True)
    rows = [case.measured() for case in found]
    for name in [name for name in asked if name not in {case.name for case in found}]:
        print(f"{name}: no search was done in {limit:.0f} s, {folder}/search/{name}.log", flush=True)
        rows.append([{"name": name, "searched": False}])
    return [row for some in rows for row in some]


def _has_library(folder: Path, name: str) -> bool:
    libraries = [layer.name for layer in _layers(name)] if name in LAYERS else [name]
    return all((folder / f"{library}.so").exists() for library in libraries)


def _layers(name: str) -> list[Any]:
    from gpu_parts import conv

    network, images = LAYERS[name]
    return [conv.Convolution(images, *layer) for layer in getattr(conv, network)()]


@dataclass
class _Case:
    """A case and its process; files in FOLDER/search say how far it is."""

    folder: Path
    name: str
    process: subprocess.Popen[bytes] | None = field(default=None)

    def file(self, suffix: str) -> Path:
        """One of the case's files."""
        return self.folder / "search" / f"{self.name}.{suffix}"

    def start(self, step: str, threads: int) -> None:
        """Begins to "compile" or to "search"."""
        for suffix in ("ready", "go", "json"):
            self.file(suffix).unlink(missing_ok=True)
        command = [sys.executable, "-m", "gpu_parts.search", str(self.folder.absolute()), self.name, step]
        paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", str(Path.cwd()))]
        caches = self.folder.absolute() / "search"
        settings = {
            "PYTHONPATH": ":".join(paths),
            # What a step chooses is not the other's, but every case's: a network knows what its layers found.
            "TORCHINDUCTOR_CACHE_DIR": str(caches / step),
            "TRITON_CACHE_DIR": str(caches / "triton"),
            "TORCHINDUCTOR_COMPILE_THREADS": str(threads),
            "OMP_NUM_THREADS": "2",  # of arithmetic on the CPU, which would only be in the way
            # Milliseconds for a choice: with Inductor's 25 and 100 a layer takes twice as long.
            "TORCHINDUCTOR_DEFAULT_AUTOTUNE_WARMUP": "5",
            "TORCHINDUCTOR_DEFAULT_AUTOTUNE_REP": "25",
        }
        with self.file("log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True,
                                            env={**os.environ, **settings})  # fmt: skip

    def write(self, suffix: str, content: Any) -> None:
        """Writes one of the files at once."""
        partial = self.file("partial")
        partial.write_text(json.dumps(content))
        partial.rename(self.file(suffix))

    def has_ended(self) -> bool:
        """Is the process gone?"""
        return self.process is not None and self.process.poll() is not None

    def kill(self) -> None:
        """Ends the process and those that it started."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def measured(self) -> list[dict[str, Any]]:
        """Lets the process go on to what it times; its rows of the report."""
        assert self.process is not None
        self.file("go").touch()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
        if not self.file("json").exists():
            print(f"{self.name:24s} failed: {self.file('log')}", flush=True)
            return [{"name": self.name, "right": False}]
        rows: list[dict[str, Any]] = json.loads(self.file("json").read_text())
        seconds = json.loads(self.file("ready").read_text())
        print(f"{self.name}: ready after {seconds:.0f} s\n{self.file('said').read_text()}", end="", flush=True)
        return rows


def _go(step: str, at_once: int, asked: Sequence[_Case], deadline: float) -> list[_Case]:
    """Runs a step of the cases, some at a time; those that are done in time. After a search they wait to be timed."""
    waiting, threads = list(asked), max(2, (os.cpu_count() or 2) // min(at_once, len(asked)))
    running: list[_Case] = []
    found: list[_Case] = []
    while (waiting or running) and time.monotonic() < deadline:
        while waiting and len(running) < at_once:
            running.append(waiting.pop(0))
            running[-1].start(step, threads)
        found += [case for case in running if case.file("ready").exists()]
        running = [case for case in running if case not in found and not case.has_ended()]
        time.sleep(0.1)
    for case in running:
        case.kill()
    return sorted(found, key=asked.index)


def _time_nothing() -> None:
    """Makes Inductor find all kernels equally fast, without running them."""
    from torch._inductor.runtime import benchmarking

    setattr(type(benchmarking.benchmarker), "benchmark_gpu", lambda *_, **__: 1.0)  # noqa: B010


def main(folder: Path, name: str, step: str) -> None:
    """The process of a case: compiles, or searches, says that it is ready, waits, and writes its rows."""
    began = time.monotonic()
    case = _Case(folder, name)
    if step == "compile":
        _time_nothing()

    def ready() -> None:
        case.write("ready", time.monotonic() - began)
        if step == "compile":
            sys.exit()
        while not case.file("go").exists():
            time.sleep(0.02)
        sys.stdout = case.file("said").open("w", buffering=1)

    case.write("json", _rows(folder, name, ready))


def _rows(folder: Path, name: str, ready: Callable[[], None]) -> list[dict[str, Any]]:
    if name in LAYERS:
        from gpu_parts import conv

        return conv.run_searched(folder, _layers(name), MODE, ready)
    if name in LANGUAGE:
        from gpu_parts import language

        return [language.run_searched(folder, name, MODE, ready)]
    from gpu_parts import models

    twin, precision = name.rsplit(".", 1)
    return [models.run_twin(folder, twin, (precision,), ("default", "max-autotune"), ready)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
