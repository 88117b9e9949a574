"""The shape functions of operations: as affine expressions, and reified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from mlir import ir
from mlir.dialects import func

from mlc import _native
from mlc.compiler_setup import new_context
from mlc.dialects import mlc as m
from mlc.passes.base import run_pipeline


@dataclass
class Scope:
    """Makes arguments of a function under construction."""

    module: ir.Module
    body: ir.Block

    def tensor(self, text: str) -> ir.Value:
        return self.body.add_argument(ir.Type.parse(f"tensor<{text}>"), ir.Location.unknown())

    def index(self) -> ir.Value:
        return self.body.add_argument(ir.IndexType.get(), ir.Location.unknown())


@pytest.fixture
def scope() -> Iterator[Scope]:
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([], []))
        body = function.add_entry_block()
        with ir.InsertionPoint(body):
            yield Scope(module, body)


def symbols(count: int) -> list[ir.AffineExpr]:
    return [ir.AffineSymbolExpr.get(i) for i in range(count)]


def constant(value: int) -> ir.AffineExpr:
    return ir.AffineConstantExpr.get(value)


def texts(results: list[list[ir.AffineExpr | None]]) -> list[list[str | None]]:
    return [[None if dim is None else str(dim) for dim in dims] for dims in results]


def test_equal_extents_stay_equal(scope: Scope) -> None:
    add = m.binary("add", scope.tensor("?x4xf32"), scope.tensor("?x4xf32")).owner
    s0, s1 = symbols(2)
    assert texts(_native.infer_dims(add, [[s0, constant(4)], [s0, constant(4)]], [])) == [["s0", "4"]]
    assert texts(_native.infer_dims(add, [[s0, constant(4)], [s1, constant(4)]], [])) == [[None, "4"]]
    assert texts(_native.infer_dims(add, [[s0, constant(4)], [constant(1), constant(4)]], [])) == [["s0", "4"]]
    assert texts(_native.infer_dims(add, [[s0, constant(4)], [None, constant(4)]], [])) == [[None, "4"]]


CASES: list[tuple[Callable[[Scope], ir.Value], list[list[str]], list[list[str | None]]]] = [
    (lambda s: m.matmul(s.tensor("?x?xf32"), s.tensor("?x?xf32")), [["a", "b"], ["b", "c"]], [["s0", "s2"]]),
    (lambda s: m.transpose(s.tensor("?x?x?xf32"), [2, 0, 1]), [["a", "b", "c"]], [["s2", "s0", "s1"]]),
    (lambda s: m.concat([s.tensor("?x?xf32")] * 2, 0), [["a", "b"], ["a", "b"]], [["s0 * 2", "s1"]]),
    (lambda s: m.gather(s.tensor("?x?xf32"), s.tensor("?xi64"), 1), [["a", "b"], ["c"]], [["s0", "s2"]]),
    (lambda s: m.pad(s.tensor("?xf32"), [1], [-3]), [["a"]], [["s0 - 2"]]),
    (lambda s: m.nonzero(s.tensor("?x?xf32")), [["a", "b"]], [["2", None]]),
    (lambda s: m.shape_of(s.tensor("?x?xf32")), [["a", "b"]], [["2"]]),
    (lambda s: m.reduce("sum", s.tensor("?x?xf32"), [0]), [["a", "b"]], [["s1"]]),
    (lambda s: m.reduce("sum", s.tensor("?xf32"), [0]), [["a"]], [[]]),
    (
        lambda s: m.pool("max", s.tensor("1x1x?xf32"), [3], [2], [1, 1], [1]),
        [["1", "1", "a"]],
        [["1", "1", "(s0 - 1) floordiv 2 + 1"]],
    ),
    (
        lambda s: m.einsum([s.tensor("?x?xf32"), s.tensor("?x?xf32")], "ij,jk"),
        [["a", "b"], ["b", "c"]],
        [["s0", "s2"]],
    ),
    (
        lambda s: m.unique(s.tensor("?xf32"))[0],
        [["a"]],
        [[None], [None], ["s0"], [None]],
    ),
]


@pytest.mark.parametrize(("build", "given", "expected"), CASES)
def test_dims_of(
    scope: Scope, build: Callable[[Scope], ir.Value], given: list[list[str]], expected: list[list[str | None]]
) -> None:
    op = build(scope).owner
    named = {name: ir.AffineSymbolExpr.get(i) for i, name in enumerate("abc")}
    dims = [[constant(int(d)) if d.isdigit() else named[d] for d in shape] for shape in given]
    assert texts(_native.infer_dims(op, dims, [])) == expected


def test_index_operands_give_sizes(scope: Scope) -> None:
    s0, s1 = symbols(2)
    n = scope.index()
    reshape = m.reshape(scope.tensor("?xf32"), [4, n]).owner
    quarter = ir.AffineExpr.get_floor_div(s0, constant(4))
    assert texts(_native.infer_dims(reshape, [[s0]], [quarter])) == [["4", "s0 floordiv 4"]]
    values, _ = m.topk(scope.tensor("?x8xf32"), n, 1)
    assert texts(_native.infer_dims(values.owner, [[s0, constant(8)]], [s1])) == [["s0", "s1"]] * 2


def test_operands_must_be_described(scope: Scope) -> None:
    (s0,) = symbols(1)
    exp = m.unary("exp", scope.tensor("?xf32")).owner
    with pytest.raises(ValueError, match="has 1 tensor and 0 index operands, but 0 shapes and 0 values"):
        _native.infer_dims(exp, [], [])
    with pytest.raises(ValueError, match="a shape of rank 2 was given"):
        _native.infer_dims(exp, [[s0, s0]], [])
    with pytest.raises(TypeError, match="no shape function"):
        _native.infer_dims(m.weight("w", ir.Type.parse("tensor<4xf32>")).owner, [], [])
    assert _native.has_dims(exp)


def test_contradictions_found_with_given_extents(scope: Scope) -> None:
    add = m.binary("add", scope.tensor("?xf32"), scope.tensor("?xf32")).owner
    with pytest.raises(ValueError, match="shapes 2 and 3 do not broadcast"):
        _native.infer_dims(add, [[constant(2)], [constant(3)]], [])


def test_reify_gives_constants_and_values(scope: Scope) -> None:
    x, n = scope.tensor("?x4xf32"), scope.index()
    padded = m.pad(x, [0, 1], [n, 2])
    ((rows, columns),) = _native.reify(padded.owner)
    assert isinstance(rows, ir.Value)
    assert str(rows.type) == "index"
    assert columns == 7
    assert _native.reify(m.nonzero(x).owner) is None
    assert "arith.addi" in str(scope.module)


def test_refined_result_types_are_valid() -> None:
    """A pass may make a result type more static than the inferred one, or leave it less static."""
    with ir.Context():
        module = ir.Module.parse(
            """
            func.func @f(%x: tensor<?x4xf32>, %y: tensor<2x4xf32>) -> (tensor<8x4xf32>, tensor<?x?xf32>) {
              %0 = mlc.unary exp %x : tensor<?x4xf32> -> tensor<8x4xf32>
              %1 = mlc.binary add %y, %y : tensor<2x4xf32> -> tensor<?x?xf32>
              return %0, %1 : tensor<8x4xf32>, tensor<?x?xf32>
            }
            """
        )
        before = str(module)
        run_pipeline(module, "canonicalize")
        assert str(module) == before
