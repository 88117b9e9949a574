"""Random host programs, with branches, loops and sizes of every kind, against the same programs in NumPy.

A buffer that is reused too early, an offset or a size that is wrong, or a copy that is missing changes a result.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import mlc

# out[i] = a[i mod |a|] + b[i mod |b|]: any three extents fit.
KERNEL = """
module @mix attributes {mlc.kernel} {
  func.func @mix(%a: memref<f32> {llvm.noalias}, %b: memref<f32> {llvm.noalias}, %o: memref<f32> {llvm.noalias},
                 %n: index, %m: index, %k: index, %error: memref<2xi64>, %begin: index, %end: index) {
    %c1 = arith.constant 1 : index
    %A = memref.reinterpret_cast %a to offset: [0], sizes: [%n], strides: [1] : memref<f32> to memref<?xf32>
    %B = memref.reinterpret_cast %b to offset: [0], sizes: [%m], strides: [1] : memref<f32> to memref<?xf32>
    %O = memref.reinterpret_cast %o to offset: [0], sizes: [%k], strides: [1] : memref<f32> to memref<?xf32>
    scf.for %i = %begin to %end step %c1 {
      %p = arith.remui %i, %n : index
      %q = arith.remui %i, %m : index
      %x = memref.load %A[%p] : memref<?xf32>
      %y = memref.load %B[%q] : memref<?xf32>
      %s = arith.addf %x, %y : f32
      memref.store %s, %O[%i] : memref<?xf32>
    }
    return
  }
  func.func @mix_grid(%n: index, %m: index, %k: index) -> index {
    return %k : index
  }
}
"""
V = "tensor<?xf32>"
HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %nm = arith.muli %n, %m : index
  %sum = arith.addi %n, %m : index
  %twice = arith.addi %n, %n : index
  %t64 = tensor.extract %t[] : tensor<i64>
  %data = arith.index_cast %t64 : i64 to index
"""
SIZES: dict[str, Callable[[int, int, int], int]] = {
    "%n": lambda n, m, t: n,
    "%m": lambda n, m, t: m,
    "%nm": lambda n, m, t: n * m,
    "%sum": lambda n, m, t: n + m,
    "%twice": lambda n, m, t: 2 * n,
    "%c16": lambda n, m, t: 16,
    "%data": lambda n, m, t: t,
}
State = dict[str, np.ndarray]
Step = Callable[[State, int, int, int], None]
Maker = Callable[[list[str], int], tuple[str, Step]]


def _mix(a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    i = np.arange(size)
    return a[i % len(a)] + b[i % len(b)]


@dataclass
class Program:
    """IR text, and the same steps as functions of (values by name, n, m, t)."""

    rng: random.Random
    lines: list[str]
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def launch(self, known: list[str]) -> tuple[str, Step]:
        a, b, size = self.rng.choice(known), self.rng.choice(known), self.rng.choice(list(SIZES))
        result, empty = self.name(), self.name()
        self.lines.append(f"{empty} = tensor.empty({size}) : {V}")
        self.lines.append(f"{result} = mlc.launch @mix({a}, {b}) outs({empty}) : ({V}, {V}) outs({V}) -> {V}")

        def step(state: State, n: int, m: int, t: int) -> None:
            state[result] = _mix(state[a], state[b], SIZES[size](n, m, t))

        return result, step

    def steps(self, known: list[str], count: int, depth: int) -> tuple[list[str], Step]:
        """`count` statements; returns all values known after them, and what they do."""
        known, done = list(known), []
        for _ in range(count):
            choice = self.rng.random() if depth else 1.0
            make = next((m for limit, m in self.makers() if choice < limit), None)
            result, step = make(known, depth) if make else self.launch(known)
            known.append(result)
            done.append(step)

        def run(state: State, n: int, m: int, t: int) -> None:
            for step in done:
                step(state, n, m, t)

        return known, run

    def makers(self) -> list[tuple[float, Maker]]:
        """Statements with regions and their cumulated probabilities."""
        return [(0.15, self.branch), (0.27, self.loop), (0.36, self.while_loop)]

    def branch(self, known: list[str], depth: int) -> tuple[str, Step]:
        result, flag, limit = self.name(), self.name(), self.rng.randint(1, 6)
        self.lines.append(f"{flag}_limit = arith.constant {limit} : index")
        self.lines.append(f"{flag} = arith.cmpi ult, %n, {flag}_limit : index")
        self.lines.append(f"{result} = scf.if {flag} -> ({V}) {{")
        sides = []
        for end in ("} else {", "}"):
            inner, run = self.steps(known, self.rng.randint(1, 3), depth - 1)
            taken = self.rng.choice(inner[-3:])
            self.lines += [f"scf.yield {taken} : {V}", end]
            sides.append((taken, run))

        def step(state: State, n: int, m: int, t: int) -> None:
            taken, run = sides[0 if n < limit else 1]
            inner = dict(state)
            run(inner, n, m, t)
            state[result] = inner[taken]

        return result, step

    def loop(self, known: list[str], depth: int) -> tuple[str, Step]:
        result, first = self.name(), [self.rng.choice(known), self.rng.choice(known)]
        carried, times = [self.name(), self.name()], self.rng.choice(["%m", "%c1", "%n"])
        head = ", ".join(f"{c} = {f}" for c, f in zip(carried, first, strict=True))
        index = self.name()
        self.lines.append(f"{result}:2 = scf.for {index} = %c0 to {times} step %c1 iter_args({head}) -> ({V}, {V}) {{")
        inner, run = self.steps([*known, *carried], self.rng.randint(1, 3), depth - 1)
        # Often a permutation, a value from outside, or what came in.
        yielded = [self.rng.choice([*inner[-2:], *carried, known[0]]) for _ in carried]
        self.lines += [f"scf.yield {', '.join(yielded)} : {V}, {V}", "}"]
        pick = self.rng.randint(0, 1)
        alias = self.name()
        empty = self.name()
        self.lines.append(f"{empty} = tensor.empty(%sum) : {V}")
        self.lines.append(
            f"{alias} = mlc.launch @mix({result}#{pick}, {result}#{1 - pick}) outs({empty}) : ({V}, {V}) outs({V}) -> {V}"
        )

        def step(state: State, n: int, m: int, t: int) -> None:
            values = [state[f] for f in first]
            for _ in range({"%m": m, "%c1": 1, "%n": n}[times]):
                scope = {**state, **dict(zip(carried, values, strict=True))}
                run(scope, n, m, t)
                values = [scope[y] for y in yielded]
            state[alias] = _mix(values[pick], values[1 - pick], n + m)

        return alias, step

    def while_loop(self, known: list[str], depth: int) -> tuple[str, Step]:
        """A counter and two tensors; the condition may hand them on in the other order."""
        result, first = self.name(), [self.rng.choice(known), self.rng.choice(known)]
        before, after, counter = [self.name(), self.name()], [self.name(), self.name()], self.name()
        times, swap = self.rng.choice(["%m", "%c1"]), self.rng.random() < 0.4
        passed = before[::-1] if swap else before
        self.lines += [
            f"{result}:3 = scf.while ({counter} = %c0, {before[0]} = {first[0]}, {before[1]} = {first[1]})"
            f" : (index, {V}, {V}) -> (index, {V}, {V}) {{",
            f"{counter}_more = arith.cmpi ult, {counter}, {times} : index",
            f"scf.condition({counter}_more) {counter}, {passed[0]}, {passed[1]} : index, {V}, {V}",
            "} do {",
            f"^bb0({counter}_now: index, {after[0]}: {V}, {after[1]}: {V}):",
        ]
        inner, run = self.steps([*known, *after], self.rng.randint(1, 2), depth - 1)
        yielded = [self.rng.choice([*inner[-2:], *after, known[0]]) for _ in after]
        self.lines += [
            f"{counter}_next = arith.addi {counter}_now, %c1 : index",
            f"scf.yield {counter}_next, {', '.join(yielded)} : index, {V}, {V}",
            "}",
        ]
        joined, empty = self.name(), self.name()
        self.lines.append(f"{empty} = tensor.empty(%sum) : {V}")
        self.lines.append(
            f"{joined} = mlc.launch @mix({result}#1, {result}#2) outs({empty}) : ({V}, {V}) outs({V}) -> {V}"
        )

        def step(state: State, n: int, m: int, t: int) -> None:
            values = [state[f] for f in first]
            for number in range({"%m": m, "%c1": 1}[times] + 1):
                handed = values[::-1] if swap else values
                if number == {"%m": m, "%c1": 1}[times]:
                    break
                scope = {**state, **dict(zip(after, handed, strict=True))}
                run(scope, n, m, t)
                values = [scope[y] for y in yielded]
            state[joined] = _mix(handed[0], handed[1], n + m)

        return joined, step


@pytest.mark.parametrize("seed", range(24))
def test_random_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "cache"))
    rng = random.Random(seed)
    program = Program(rng, [])
    known, run = program.steps(["%x", "%y"], rng.randint(4, 14), 2)
    results = [rng.choice(known) for _ in range(rng.randint(1, 4))]
    arguments = f'%x: {V} {{mlc.dims = ["n"]}}, %y: {V} {{mlc.dims = ["m"]}}, %t: tensor<i64>'
    kinds = ", ".join([V] * len(results))
    body = "\n".join(program.lines)
    source = tmp_path / "program.mlir"
    source.write_text(
        'module attributes {mlc.phase = "tile"} {\n'
        f"func.func @f({arguments}) -> ({kinds}) {{{HEAD}{body}\nreturn {', '.join(results)} : {kinds}\n}}\n{KERNEL}}}\n"
    )
    model = mlc.compile(source, opt_level=1)
    for n, m, t in ((1, 1, 1), (5, 3, 7), (2, 9, 40), (33, 2, 5)):
        data = np.random.default_rng(n)
        x, y = (data.standard_normal(size).astype(np.float32) for size in (n, m))
        state = {"%x": x, "%y": y}
        with np.errstate(over="ignore", invalid="ignore"):
            run(state, n, m, t)
        got = model(x, y, np.int64(t))  # type: ignore[operator]
        for value, name in zip(got, results, strict=True):
            np.testing.assert_array_equal(value, state[name], err_msg=f"{name} for n={n}, m={m}, t={t}")
