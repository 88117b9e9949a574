"""The part `runtime`: what the runtime promises, on a block of a transformer of dynamic length.

The same bits in 300 runs, between guard bands; tensors elsewhere at every call; memory that stays flat over many
shapes and many runs; two streams, and two processes; a stream that the caller captures; compute-sanitizer, where it is
installed.
"""

from __future__ import annotations

import math
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpu_parts.measure import compile_to, wait

WIDTH, HEADS, GUARD = 512, 8, 256
NAME = "runtime_block.so"
REPEATS, SHAPES, RUNS = 300, 10_000, 10_000
LENGTH = 384
CALLS, TURNS = 400, 5  # a time is the median of so many calls, and that of so many turns
MODELS = "*_b1.bf16.so"  # libraries of the part `models`
_Set = tuple[list[Any], list[Any]]  # inputs and outputs of a call


def block_model() -> Any:
    """Norm, attention with a residual, norm, and a perceptron with a residual: x[n, 512] -> y[n, 512]."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    arrays = {f"w{name}": rng.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5 for name in "qkvo"}
    arrays["w1"] = rng.standard_normal((WIDTH, 4 * WIDTH)) / WIDTH**0.5
    arrays["w2"] = rng.standard_normal((4 * WIDTH, WIDTH)) / WIDTH
    arrays |= {name: rng.standard_normal(WIDTH) for name in ("g1", "b1", "g2", "b2")}
    initial = [numpy_helper.from_array(a.astype("f4"), n) for n, a in arrays.items()]
    initial.append(numpy_helper.from_array(np.array([0, -1, HEADS, WIDTH // HEADS]), "heads"))
    initial.append(numpy_helper.from_array(np.array([-1, WIDTH]), "whole"))
    initial.append(numpy_helper.from_array(np.array([1, -1, WIDTH]), "batched"))
    nodes = [helper.make_node("LayerNormalization", ["x", "g1", "b1"], ["a"])]
    for name in "qkv":
        nodes += [
            helper.make_node("MatMul", ["a", f"w{name}"], [name]),
            helper.make_node("Reshape", [name, "batched"], [f"{name}1"]),
            helper.make_node("Reshape", [f"{name}1", "heads"], [f"{name}2"]),
            helper.make_node("Transpose", [f"{name}2"], [f"{name}h"], perm=[0, 2, 1, 3]),
        ]
    nodes += [
        helper.make_node("Attention", ["qh", "kh", "vh"], ["h"]),
        helper.make_node("Transpose", ["h"], ["ht"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["ht", "whole"], ["hw"]),
        helper.make_node("MatMul", ["hw", "wo"], ["o"]),
        helper.make_node("Add", ["x", "o"], ["r"]),
        helper.make_node("LayerNormalization", ["r", "g2", "b2"], ["c"]),
        helper.make_node("MatMul", ["c", "w1"], ["u"]),
        helper.make_node("Gelu", ["u"], ["e"]),
        helper.make_node("MatMul", ["e", "w2"], ["d"]),
        helper.make_node("Add", ["r", "d"], ["y"]),
    ]
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", WIDTH]) for n in "xy"]
    graph = helper.make_graph(nodes, "block", value[:1], value[1:], initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def compile_part(folder: Path) -> None:
    """Writes the library of the part."""
    import onnx

    source = folder / "runtime_block.onnx"
    onnx.save(block_model(), source)
    compile_to(source, folder / NAME, "bf16")
    source.unlink()


class Guarded:
    """A tensor of `rows` between guard bands."""

    def __init__(self, rows: int) -> None:
        import torch

        self.whole = torch.full((rows * WIDTH + 2 * GUARD,), float("inf"), device="cuda")
        self.tensor = self.whole[GUARD:-GUARD].view(rows, WIDTH)

    @property
    def is_whole(self) -> bool:
        edges = (self.whole[:GUARD], self.whole[-GUARD:])
        return all(bool(edge.isposinf().all()) for edge in edges)


def run_part(folder: Path) -> list[dict[str, Any]]:
    """Runs every check; each gives a row."""
    rows = []
    moving = (_moved, _pointers, _moved_models)
    checks = (_same_bits, *moving, _shapes, _long, _streams, _captured, _processes, _sanitized, _messages)
    for check in checks:
        began = time.monotonic()
        try:
            is_right, said = check(folder)
        except Exception as error:  # a check that cannot run is a check that fails
            is_right, said = False, f"{type(error).__name__}: {error}"
        name = check.__name__.strip("_")
        took = time.monotonic() - began
        print(f"{'right' if is_right else 'WRONG'} {name:12s} {said}  ({took:.0f} s)", flush=True)
        rows.append({"name": name, "right": is_right, "said": said})
    return rows


def _load(folder: Path) -> Any:
    from mlc.runtime.loader import load

    return load(folder / NAME)


def _expected(folder: Path, x: Any) -> Any:
    """What another context gives that has seen nothing yet."""
    import torch

    y = torch.full_like(x, float("nan"))
    with _load(folder).context() as context:
        context.run([x], out=[y])
    wait()
    return y


def _same_bits(folder: Path) -> tuple[bool, str]:
    """Every run gives the bits of the first; nothing is written beside the result."""
    import torch

    x, y = Guarded(LENGTH), Guarded(LENGTH)
    x.tensor.normal_()
    kept, first, differ = x.tensor.clone(), _expected(folder, x.tensor), 0
    with _load(folder).context() as context:
        for _ in range(REPEATS):
            y.tensor.fill_(float("nan"))
            torch.cuda.synchronize()
            context.run([x.tensor], out=[y.tensor])
            differ += not torch.equal(y.tensor, first)
    is_kept = torch.equal(x.tensor, kept) and x.is_whole and y.is_whole and bool(first.isfinite().all())
    return (
        is_kept and not differ,
        f"{REPEATS} runs, {differ} differ; guards and input {'whole' if is_kept else 'SPOILT'}",
    )


def _median(work: Callable[[int], None], times: int = CALLS) -> float:
    """The median microseconds of `work(number)`."""
    found = []
    for number in range(times):
        began = time.perf_counter()
        work(number)
        found.append(time.perf_counter() - began)
    return statistics.median(found) * 1e6


def _views(count: int, shape: tuple[int, ...], kind: Any) -> list[Any]:
    """Zeroed tensors of one block that begin elsewhere, every one."""
    import torch

    size = math.prod(shape)
    apart = 256 // kind.itemsize  # as far as torch's own tensors begin from each other, at least
    whole = torch.zeros(size + apart * count, device="cuda", dtype=kind)
    return [whole[apart * i :][:size].view(shape) for i in range(count)]


def _cost_of_moving(context: Any, sets: list[_Set], unseen: Iterator[_Set]) -> str:
    """What calls cost with one of `sets`, with a few and all of them in turn, and with sets never seen."""

    def run(tensors: _Set) -> None:
        context.run(tensors[0], out=tensors[1])

    ways: dict[str, Callable[[int], None]] = {
        "the same": lambda _: run(sets[0]),
        "4 sets in turn": lambda i: run(sets[i % 4]),
        f"{len(sets)} sets in turn": lambda i: run(sets[i % len(sets)]),
        "tensors never seen": lambda _: run(next(unseen)),
    }
    times: dict[str, list[float]] = {}
    for way in list(ways) * TURNS:
        times.setdefault(way, []).append(_median(ways[way]))
    stays, *moves = (statistics.median(found) for found in times.values())
    said = (f"{way} {t:.1f} ({100 * (t / stays - 1):+.1f}%)" for way, t in zip(list(ways)[1:], moves, strict=True))
    return f"a call takes {stays:.1f} us, with {', '.join(said)}"


def _moved(folder: Path) -> tuple[bool, str]:
    """Tensors elsewhere at every call, a few in turn or none seen before: right results, and what the calls cost."""
    import torch

    xs = [torch.randn(LENGTH, WIDTH, device="cuda") for _ in range(40)]
    ys = [torch.empty_like(x) for x in xs]
    sets: list[_Set] = [([xs[i]], [ys[i * 7 % 40]]) for i in range(40)]
    new = (_views(TURNS * CALLS, (LENGTH, WIDTH), torch.float32) for _ in range(2))
    unseen = iter([([x], [y]) for x, y in zip(*new, strict=True)])  # each of them once
    torch.cuda.synchronize()
    with _load(folder).context() as context:
        said = _cost_of_moving(context, sets, unseen)
        for x, y in zip(xs, ys, strict=True):
            y.fill_(float("nan"))
            torch.cuda.synchronize()
            context.run([x], out=[y])
    wrong = sum(not torch.equal(y, _expected(folder, x)) for x, y in list(zip(xs, ys, strict=True))[:8])
    return not wrong, f"{wrong} wrong; {said}"


def _pointers(folder: Path) -> tuple[bool, str]:
    """What other addresses cost alone: calls of the C function that differ by two pointers, so that neither Python's
    tensors nor the caches, which hold all that they point to, have a part in it."""
    import torch

    count = TURNS * CALLS
    xs, ys = (_views(count, (LENGTH, WIDTH), torch.float32) for _ in range(2))
    xs[0].normal_()
    places = [(x.data_ptr(), y.data_ptr()) for x, y in zip(xs, ys, strict=True)]
    unseen = iter(places)
    with _load(folder).context() as context:
        context.run([xs[0]], out=[ys[0]])
        frame, entry = context._frames[0], context._model.entry()
        asked = (context._handle, entry.index, frame.inputs_at, 1, frame.outputs_at, 1, None, context._status_at)

        def run(place: tuple[int, int]) -> None:
            frame.inputs[0].tensor.data, frame.outputs[0].tensor.data = place
            codes.add(context._call(*asked))

        codes: set[int] = set()
        found: dict[str, list[float]] = {"the same": [], "never seen": []}
        for _ in range(TURNS):
            found["the same"].append(_median(lambda _: run(places[0])))
            found["never seen"].append(_median(lambda _: run(next(unseen))))
    stays, moves = (statistics.median(times) for times in found.values())
    said = f"a call takes {stays:.1f} us, with addresses never seen {moves:.1f} ({100 * (moves / stays - 1):+.1f}%)"
    return codes == {0}, said


def _moved_models(folder: Path) -> tuple[bool, str]:
    """The same of whole models with one input, whose libraries are those of the part `models`."""
    found = [_moved_model(library) for library in sorted(folder.glob(MODELS))]
    said = "; ".join(text for _, text in found) or f"not measured: there is no {MODELS}"
    return all(right for right, _ in found), said


def _moved_model(library: Path) -> tuple[bool, str]:
    import torch

    from gpu_parts.models import ModelRun

    weights = library.with_suffix(".safetensors")
    is_ours = not weights.exists()
    first = ModelRun(library)
    if is_ours:
        weights.unlink()  # random ones, which the part `models` would take for those of the model that it compares with
    first.run(0)
    wait()
    kinds = [(tuple(tensor.shape), tensor.dtype) for tensor in (*first.inputs, *first.results)]
    count = len(first.inputs)

    def sets(many: int) -> list[_Set]:
        every = zip(*(_views(many, *kind) for kind in kinds), strict=True)
        return [(list(tensors[:count]), list(tensors[count:])) for tensors in every]

    with first.model.context() as context:
        given, found = sets(1)[0]
        said = _cost_of_moving(context, sets(40), iter(sets(TURNS * CALLS)))
        for tensor, x in zip(given, first.inputs, strict=True):
            tensor.copy_(x)
        torch.cuda.synchronize()
        context.run(given, out=found)
    wait()
    wrong = sum(not torch.equal(a, b) for a, b in zip(found, first.results, strict=True))
    return not wrong, f"{library.name.split('.')[0]}: {wrong} wrong, {said}"


def _free() -> int:
    import torch

    torch.cuda.synchronize()
    return int(torch.cuda.mem_get_info()[0])


def _shapes(folder: Path) -> tuple[bool, str]:
    """Memory after many shapes, each of them plain and as a graph; the longest comes first."""
    import torch

    x = torch.randn(SHAPES, WIDTH, device="cuda")
    y = torch.empty_like(x)
    free = []
    with _load(folder).context() as context:
        for n in (SHAPES, *range(1, SHAPES)):
            for _ in range(2):
                context.run([x[:n]], out=[y[:n]])
            if n in (20, SHAPES - 1):
                free.append(_free())
    grown = free[0] - free[1]
    return grown <= 0, f"{SHAPES} shapes: {grown} bytes more after the last than after the 20th"


def _long(folder: Path) -> tuple[bool, str]:
    """Memory after many runs."""
    import torch

    x = torch.randn(64, WIDTH, device="cuda")
    y = torch.empty_like(x)
    with _load(folder).context() as context:
        for _ in range(3):
            context.run([x], out=[y])
        before = _free()
        for _ in range(RUNS):
            context.run([x], out=[y])
        grown = before - _free()
    return grown == 0, f"{RUNS} runs: {grown} bytes more"


def _streams(folder: Path) -> tuple[bool, str]:
    """Two contexts of one model, each in a thread and a stream of its own."""
    import threading

    import torch

    model = _load(folder)
    xs = [torch.randn(n, WIDTH, device="cuda") for n in (LENGTH, 200)]
    wanted, wrong = [_expected(folder, x) for x in xs], [0, 0]

    def work(number: int) -> None:
        stream, y = torch.cuda.Stream(), torch.empty_like(xs[number])
        with model.context() as context:
            for _ in range(REPEATS):
                with torch.cuda.stream(stream):
                    y.fill_(float("nan"))
                context.run([xs[number]], out=[y], stream=stream.cuda_stream)
                stream.synchronize()
                wrong[number] += not torch.equal(y, wanted[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong == [0, 0], f"2 x {REPEATS} runs at once: {sum(wrong)} wrong"


def _captured(folder: Path) -> tuple[bool, str]:
    """Inside of `torch.cuda.graph`, between other work."""
    import torch

    x, y = torch.randn(LENGTH, WIDTH, device="cuda"), torch.empty(LENGTH, WIDTH, device="cuda")
    with _load(folder).context() as context:
        context.run([x], out=[y])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            doubled = x * 2
            context.run([doubled], out=[y], stream=torch.cuda.current_stream().cuda_stream)
            z = y + 1
        wrong = 0
        for _ in range(20):
            x.normal_()
            graph.replay()
            torch.cuda.synchronize()
            wrong += not torch.equal(z, _expected(folder, x * 2) + 1)
    return not wrong, f"20 replays, {wrong} wrong"


def _command(folder: Path, *words: str) -> list[str]:
    return [*words, sys.executable, "-m", "mlc.cli.run", str(folder / NAME), "--dim", "n=100"]


def _processes(folder: Path) -> tuple[bool, str]:
    """Two processes at once print the same summary."""
    both = [subprocess.Popen(_command(folder), stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    codes = [process.returncode for process in both]
    return codes == [0, 0] and said[0] == said[1], f"exit codes {codes}"


def _sanitized(folder: Path) -> tuple[bool, str]:
    """No access outside of tensors, no race in shared memory, nothing read that was not written."""
    if not shutil.which("compute-sanitizer"):
        return True, "compute-sanitizer is not installed"
    said = []
    for tool in ("memcheck", "racecheck", "initcheck"):
        words = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
        done = subprocess.run(_command(folder, *words), capture_output=True, text=True, timeout=120)
        last = [line for line in done.stdout.splitlines() if "SUMMARY" in line]
        said.append(f"{tool} {last[-1].split('SUMMARY:')[1].strip() if last else done.stdout[-200:]}")
        if done.returncode:
            said.append(done.stdout[:600])
    return all("0 errors" in s or "0 hazards" in s for s in said), "; ".join(said)


def _messages(folder: Path) -> tuple[bool, str]:
    """Without a GPU: one line."""
    import os

    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(_command(folder), capture_output=True, text=True, env=environment)
    lines = done.stderr.strip().splitlines()
    return done.returncode == 1 and len(lines) == 1, f"exit code {done.returncode}, {lines}"
