"""Which chains of producers are copied; what copies are is in the pass's lit test."""

from __future__ import annotations

import pytest
from mlir import ir
from mlir.passmanager import PassManager

from mlc.compiler_setup import new_context

TYPE, SUM = "tensor<64x100xf32>", "tensor<100xf32>"
ALL, COLUMN = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (j)>"


def _generic(result: str, ins: list[str], body: str, out: str, kinds: str, maps: list[str]) -> str:
    types = ", ".join([TYPE] * len(ins))
    of = SUM if out == "%z" else TYPE
    arguments = ", ".join(f"%in{i}: f32" for i in range(len(ins)))
    return (
        f"{result} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}}"
        f" ins({', '.join(ins)} : {types}) outs({out} : {of}) {{\n^bb0({arguments}, %out: f32):\n"
        f"%r = {body}\nlinalg.yield %r : f32\n}} -> {of}"
    )


def _squares(depth: int) -> str:
    """`depth` squares of squares, a sum over the columns of the last, and a function of it. There are 2**depth ways
    through them."""
    parallel, across = '"parallel", "parallel"', '"reduction", "parallel"'
    lines = [
        _generic(f"%v{n + 1}", [f"%v{n}", f"%v{n}"], "arith.mulf %in0, %in1 : f32", "%o", parallel, [ALL] * 3)
        for n in range(depth)
    ]
    last = f"%v{depth}"
    lines.append(_generic("%s", [last], "arith.addf %out, %in0 : f32", "%z", across, [ALL, COLUMN]))
    lines.append(_generic("%y", [last], "arith.negf %in0 : f32", "%o", parallel, [ALL, ALL]))
    text = "\n".join(lines)
    return (
        f"func.func @f(%v0: {TYPE}, %o: {TYPE}, %z: {SUM}) -> ({SUM}, {TYPE}) {{\n{text}\n"
        f"return %s, %y : {SUM}, {TYPE}\n}}"
    )


@pytest.mark.parametrize(("depth", "squares"), [(10, 20), (400, 400)])
def test_only_a_few_functions_are_computed_again(depth: int, squares: int) -> None:
    with new_context():
        module = ir.Module.parse(_squares(depth))
        PassManager.parse("builtin.module(mlc-recompute-producers)").run(module.operation)
    assert str(module).count("arith.mulf") == squares
